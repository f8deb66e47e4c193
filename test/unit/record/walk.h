// SPDX-License-Identifier: Apache-2.0
/* walk.h - a small reader of a spool for the tests of the write side (not collector/read: it must not share its faults) */
#ifndef KP_TEST_WALK_H
#define KP_TEST_WALK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_hash.h"
#include "collector/base/kp_io.h"
#include "collector/record/room.h"
#include "test/support/support.h"

/* The records of the tests: `number` counts up per thread, `check` tells a torn one. */
struct test_rec {
    struct kp_rec head;
    uint64_t number, check;
    uint32_t thread_no, filler;
};
#define TEST_CHECK(n, thread) (((uint64_t)(n)*0x9e3779b97f4a7c15u) ^ (thread))

struct walk {
    uint8_t *base;
    size_t bytes;
    struct kp_file_head *head;
    uint32_t chunks, by_kind[4]; /* by_kind: chunks of each enum kp_chunk_kind */
    uint64_t records[KP_KIND_N];
    uint32_t strings, strings_torn;
};

static inline void walk_open(struct walk *w, const char *path)
{
    struct stat st;
    memset(w, 0, sizeof *w);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    w->bytes = (size_t)st.st_size;
    assert_true(w->bytes >= KP_CHUNK_BYTES);
    w->base = mmap(NULL, w->bytes, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(w->base != MAP_FAILED);
    close(fd);
    w->head = (struct kp_file_head *)w->base;
    assert_memory_equal(w->head->magic, KP_FORMAT_MAGIC, 8);
    w->chunks = kp_load_acquire(&w->head->chunks);
    assert_true((size_t)w->chunks * KP_CHUNK_BYTES <= w->bytes);
}

static inline void walk_close(struct walk *w) { munmap(w->base, w->bytes); }

static inline const struct kp_chunk_head *walk_chunk(const struct walk *w, uint32_t i)
{
    return (const struct kp_chunk_head *)(w->base + (size_t)i * KP_CHUNK_BYTES);
}

typedef void (*walk_fn)(void *arg, const struct kp_chunk_head *chunk, uint32_t thread_no, const struct kp_rec *r);

/* Every record of one chunk, with the number of the thread that wrote it. All sizes must fit. */
static inline void walk_records(struct walk *w, const struct kp_chunk_head *c, walk_fn fn, void *arg)
{
    uint32_t used = kp_load_acquire(&((struct kp_chunk_head *)(uintptr_t)c)->used), thread_no = c->thread_no, at = sizeof *c;
    assert_in_range(used, sizeof *c, KP_CHUNK_BYTES);
    while (at < used) {
        const struct kp_rec *r = (const struct kp_rec *)((const uint8_t *)c + at);
        assert_true(r->size >= sizeof *r && r->size % 8 == 0 && at + r->size <= used);
        assert_in_range(r->kind, 1, 6);
        if (r->kind == KP_KIND_THREAD) thread_no = ((const struct kp_rec_thread *)r)->thread_no;
        w->records[r->kind]++;
        if (fn) fn(arg, c, thread_no, r);
        at += r->size;
    }
}

static inline void walk_strings(struct walk *w, const struct kp_chunk_head *c)
{
    for (uint32_t at = sizeof *c; at < KP_CHUNK_BYTES;) {
        const struct kp_str *s = (const struct kp_str *)((const uint8_t *)c + at);
        uint32_t size = KP_STR_CELL;
        if (s->magic == KP_STR_MAGIC) {
            assert_true(s->len <= KP_CHUNK_BYTES - at - offsetof(struct kp_str, bytes));
            if (kp_hash64(s->bytes, s->len) != s->hash) w->strings_torn++;
            w->strings++;
            size = (uint32_t)(offsetof(struct kp_str, bytes) + s->len + KP_STR_CELL - 1) & ~(KP_STR_CELL - 1);
        }
        at += size;
    }
}

static inline void walk_all(struct walk *w, walk_fn fn, void *arg)
{
    for (uint32_t i = 1; i < w->chunks; i++) {
        const struct kp_chunk_head *c = walk_chunk(w, i);
        assert_int_equal(c->magic, KP_CHUNK_MAGIC);
        uint32_t kind = kp_load_acquire(&((struct kp_chunk_head *)(uintptr_t)c)->kind);
        assert_in_range(kind, 0, 3);
        w->by_kind[kind]++;
        if (kind == KP_CHUNK_DATA || kind == KP_CHUNK_META) walk_records(w, c, fn, arg);
        if (kind == KP_CHUNK_STRINGS) walk_strings(w, c);
    }
}

/* Text of an id, or NULL; *count: how many cells carry that id. */
static inline const struct kp_str *walk_string(const struct walk *w, uint32_t id, uint32_t *count)
{
    const struct kp_str *found = NULL;
    *count = 0;
    for (uint32_t i = 1; i < w->chunks; i++) {
        const struct kp_chunk_head *c = walk_chunk(w, i);
        if (c->kind != KP_CHUNK_STRINGS) continue;
        for (uint32_t at = sizeof *c; at < KP_CHUNK_BYTES; at += KP_STR_CELL) {
            const struct kp_str *s = (const struct kp_str *)((const uint8_t *)c + at);
            if (s->magic != KP_STR_MAGIC || s->id != id || kp_hash64(s->bytes, s->len) != s->hash) continue;
            found = s;
            ++*count;
        }
    }
    return found;
}

/* ---- writing, as a hook does it ---- */

static inline void open_spool(uint64_t max_mb, void (*tick)(void))
{
    struct kp_record_options o = {.dir = kp_test_tmpdir(), .max_bytes = max_mb << 20, .text = "test=1\n", .tick = tick};
    kp_clock_init();
    assert_int_equal(kp_gate_init(), 0);
    assert_int_equal(kp_record_open(&o), 0);
}

/* The writer has done its first round: `chunks` lie ready. */
static inline void stock_wait(uint32_t chunks)
{
    for (int i = 0; i < 5000 && kp_chunk_ready() < chunks; i++) usleep(1000);
    assert_true(kp_chunk_ready() >= chunks);
}

/* One hook: enters, puts `count` records beginning with number `first`, leaves. How many were kept. */
static inline uint32_t hook_put(uint64_t first, uint32_t count)
{
    uint32_t kept = 0;
    struct kp_thread *t = kp_thread_get();
    if (t == NULL || kp_load_relaxed(&t->inside)) return 0;
    kp_store_relaxed(&t->inside, 1);
    kp_signal_fence();
    uint64_t gate = kp_gate_get();
    if (gate & (KP_GATE_RECORD | KP_GATE_WARM))
        for (uint32_t i = 0; i < count; i++) {
            struct test_rec *r = kp_put_reserve(t, gate, sizeof *r, KP_KIND_OP);
            if (r == NULL) continue;
            r->head = (struct kp_rec){.kind = KP_KIND_OP, .size = sizeof *r};
            r->number = first + i;
            r->thread_no = t->thread_no;
            r->check = TEST_CHECK(r->number, r->thread_no);
            kp_put_commit(t, sizeof *r);
            kept++;
        }
    kp_signal_fence();
    kp_store_release(&t->inside, 0);
    return kept;
}

static inline void gate_record(uint32_t cycle) { kp_gate_set(kp_gate_make(cycle, KP_GATE_ON | KP_GATE_RECORD)); }

#endif
