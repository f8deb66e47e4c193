// SPDX-License-Identifier: Apache-2.0
/* spool.c - writes small spools byte by byte, as the format says, for tests of the reading side */
#include "test/support/spool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_hash.h"

struct kp_file_head *test_spool_head(struct test_spool *s) { return (void *)s->bytes; }

struct kp_chunk_head *test_spool_at(struct test_spool *s, uint32_t chunk)
{
    return (void *)(s->bytes + (size_t)chunk * KP_CHUNK_BYTES);
}

static uint32_t grow(struct test_spool *s)
{
    if (s->chunks == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 8;
        s->bytes = realloc(s->bytes, (size_t)s->cap * KP_CHUNK_BYTES);
        assert(s->bytes);
    }
    memset(s->bytes + (size_t)s->chunks * KP_CHUNK_BYTES, 0, KP_CHUNK_BYTES);
    return s->chunks++;
}

void test_spool_init(struct test_spool *s)
{
    struct kp_file_head *head;
    memset(s, 0, sizeof *s);
    grow(s);
    head = test_spool_head(s);
    memcpy(head->magic, KP_FORMAT_MAGIC, 8);
    head->version = KP_FORMAT_VERSION;
    head->chunk_bytes = KP_CHUNK_BYTES;
    head->head_bytes = sizeof *head;
    head->pid = 4242, head->ppid = 1;
    head->clock_kind = KP_CLOCK_TSC;
    head->start_real_ns = 1790857026000000000u + 5;
    head->chunks = 1;
    strcpy(head->host, "node7");
    strcpy(head->program, "python");
    s->next_id = 1;
}

void test_spool_free(struct test_spool *s)
{
    free(s->bytes);
    memset(s, 0, sizeof *s);
}

void test_spool_text(struct test_spool *s, const char *lines)
{
    struct kp_file_head *head = test_spool_head(s);
    size_t n = strlen(lines);
    assert(head->text_bytes + n < KP_FILE_TEXT_MAX);
    memcpy(head->text + head->text_bytes, lines, n);
    head->text_bytes += (uint32_t)n;
}

uint32_t test_spool_chunk(struct test_spool *s, uint32_t kind, uint32_t cycle, uint32_t tid, uint32_t thread_no,
                          const char *name)
{
    uint32_t i = grow(s);
    struct kp_chunk_head *c = test_spool_at(s, i);
    c->magic = KP_CHUNK_MAGIC;
    c->kind = kind;
    c->cycle = cycle;
    c->tid = tid;
    c->thread_no = thread_no;
    c->used = sizeof *c;
    c->order = ++s->order;
    snprintf(c->thread_name, sizeof c->thread_name, "%s", name);
    test_spool_head(s)->chunks = s->chunks;
    return i;
}

int test_spool_put(struct test_spool *s, uint32_t chunk, const void *rec, uint32_t bytes)
{
    struct kp_chunk_head *c = test_spool_at(s, chunk);
    if (c->used + bytes > KP_CHUNK_BYTES) return 0;
    memcpy((uint8_t *)c + c->used, rec, bytes);
    c->used += bytes;
    return 1;
}

uint32_t test_spool_name(struct test_spool *s, const char *bytes, uint32_t len)
{
    uint32_t need = ((uint32_t)offsetof(struct kp_str, bytes) + len + 1 + KP_STR_CELL - 1) / KP_STR_CELL * KP_STR_CELL;
    struct kp_chunk_head *c;
    struct kp_str *str;
    if (!s->strings_chunk || test_spool_at(s, s->strings_chunk)->used + need > KP_CHUNK_BYTES)
        s->strings_chunk = test_spool_chunk(s, KP_CHUNK_STRINGS, 0, 0, 0, "");
    c = test_spool_at(s, s->strings_chunk);
    str = (void *)((uint8_t *)c + c->used);
    str->id = s->next_id;
    str->len = len;
    memcpy(str->bytes, bytes, len);
    str->hash = kp_hash64(bytes, len);
    str->magic = KP_STR_MAGIC;
    c->used += need;
    return s->next_id++;
}

void test_spool_clock(struct test_spool *s, uint32_t chunk, uint64_t ticks, uint64_t real_ns, uint64_t mono_ns)
{
    struct kp_rec_clock r = {
        .head = {.kind = KP_KIND_CLOCK, .size = sizeof r}, .ticks = ticks, .real_ns = real_ns, .mono_ns = mono_ns};
    test_spool_put(s, chunk, &r, sizeof r);
}

void test_spool_cycle(struct test_spool *s, uint32_t chunk, uint32_t cycle, uint64_t begin, uint64_t end,
                      uint32_t steps)
{
    struct kp_rec_cycle r = {.head = {.kind = KP_KIND_CYCLE, .size = sizeof r, .flags = end ? 1 : 0},
                             .cycle = cycle,
                             .steps = steps,
                             .begin = begin,
                             .end = end,
                             .warm_begin = begin > 500 ? begin - 500 : begin};
    test_spool_put(s, chunk, &r, sizeof r);
}

int test_spool_op(struct test_spool *s, uint32_t chunk, const struct test_op *op)
{
    uint64_t room[KP_MAX_RECORD / 8] = {0};
    struct kp_rec_op *r = (void *)room;
    uint8_t *more = (uint8_t *)(r + 1);
#define ADD(flag, condition, value, type) \
    if (condition) {                      \
        type v_ = (value);                \
        memcpy(more, &v_, sizeof v_);     \
        more += sizeof v_;                \
        r->head.flags |= (flag);          \
    }
    r->head = (struct kp_rec){.kind = KP_KIND_OP, .flags = op->flags, .name = op->name};
    r->start = op->start;
    r->ticks = op->ticks;
    r->rt_tid = op->rt_tid;
    r->scope = op->scope;
    r->ends_step = op->ends_step;
    ADD(KP_OP_SEQ, op->seq >= 0, op->seq, int64_t)
    ADD(KP_OP_SEQ, op->seq >= 0, op->fwd_tid, uint64_t)
    ADD(KP_OP_HANDLE, op->handle, op->handle, uint64_t)
    ADD(KP_OP_INPUTS, op->inputs, op->inputs_count, uint32_t)
#undef ADD
    if (op->inputs) memcpy(more, op->inputs, op->inputs_bytes);
    more += op->inputs_bytes;
    r->head.size = (uint16_t)((more - (uint8_t *)room + 7) / 8 * 8);
    return test_spool_put(s, chunk, room, r->head.size);
}

int test_spool_step(struct test_spool *s, uint32_t chunk, uint64_t start, uint64_t end, uint64_t number)
{
    struct kp_rec_step r = {
        .head = {.kind = KP_KIND_STEP, .size = sizeof r}, .start = start, .ticks = end - start, .number = number};
    return test_spool_put(s, chunk, &r, sizeof r);
}

void test_spool_save(const struct test_spool *s, const char *path, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    size_t all = (size_t)s->chunks * KP_CHUNK_BYTES;
    assert(f);
    assert(fwrite(s->bytes, 1, bytes && bytes < all ? bytes : all, f) == (bytes && bytes < all ? bytes : all));
    fclose(f);
}

/* One step: a linear layer forward on the main thread, its backward on autograd's. */
static void one_step(struct test_spool *s, const uint32_t *id, uint32_t main_chunk, uint32_t back_chunk, uint64_t at,
                     uint64_t n)
{
    static const uint8_t inputs[] = {1, 6, 0, 2, 8, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0,
                                     0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 7, 0, 0, 0, 0, 0, 0, 0};
    int64_t seq = (int64_t)(n * 2);
    test_spool_step(s, main_chunk, at + 50, at + 400, n);
    test_spool_op(s, main_chunk,
                  &(struct test_op){
                      .name = id[2], .start = at + 100, .ticks = 80, .scope = 7, .rt_tid = 1, .seq = -1, .handle = n});
    test_spool_op(s, main_chunk,
                  &(struct test_op){.name = id[0],
                                    .start = at + 110,
                                    .ticks = 50,
                                    .rt_tid = 1,
                                    .seq = seq,
                                    .inputs = inputs,
                                    .inputs_bytes = sizeof inputs,
                                    .inputs_count = 2});
    test_spool_op(s, main_chunk,
                  &(struct test_op){.name = id[1], .start = at + 120, .ticks = 30, .rt_tid = 1, .seq = seq});
    test_spool_op(s, back_chunk,
                  &(struct test_op){.name = id[3], .start = at + 200, .ticks = 60, .rt_tid = 2, .seq = -1});
    test_spool_op(
        s, back_chunk,
        &(struct test_op){
            .name = id[4], .start = at + 210, .ticks = 40, .scope = 1, .rt_tid = 2, .seq = seq, .fwd_tid = 1});
}

void test_spool_training(struct test_spool *s)
{
    static const char *const names[] = {"aten::linear", "aten::addmm", "## forward \"x\" ##",
                                        "autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0"};
    const uint64_t wall = 1790857026000000000u + 1000000000u;
    uint32_t id[5], meta, main_chunk, back_chunk;
    test_spool_init(s);
    test_spool_text(
        s, "KPROF_RECORD_SHAPES=1\ntorch_version=2.15.0\nstep_source=optimizer\nenv.RANK=3\nenv.WORLD_SIZE=8\n");
    for (int i = 0; i < 5; i++) id[i] = test_spool_name(s, names[i], (uint32_t)strlen(names[i]));
    meta = test_spool_chunk(s, KP_CHUNK_META, 0, 4242, 1, "python");
    main_chunk = test_spool_chunk(s, KP_CHUNK_DATA, 1, 4242, 1, "python");
    back_chunk = test_spool_chunk(s, KP_CHUNK_DATA, 1, 4250, 2, "pt_autograd_0");
    test_spool_clock(s, meta, 1000, wall, 5000);
    test_spool_cycle(s, meta, 1, 2000, 0, 0);
    for (uint64_t n = 1; n <= 3; n++) one_step(s, id, main_chunk, back_chunk, 1000 + n * 1000, n);
    test_spool_clock(s, meta, 11000, wall + 10000, 15000);
    test_spool_cycle(s, meta, 1, 2000, 5000, 3);
}
