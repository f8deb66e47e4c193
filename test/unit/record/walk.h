// SPDX-License-Identifier: Apache-2.0
/* walk.h - a small reader of a spool for the tests of the write side (not collector/read: it must not share its
 * faults) */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_hash.h"
#include "collector/base/sys/kp_io.h"
#include "collector/record/record_internal.h"
#include "test/support/support.h"

/* The records of the tests: `number` counts up per thread, `check` tells a torn one. */
struct test_rec {
    struct kp_rec head;
    uint64_t number, check;
    uint32_t thread_no, filler;
};
#define TEST_NAMES 3000u /* texts "name 0" ..., by number */
#define TEST_CHECK(n, thread) (((uint64_t)(n)*0x9e3779b97f4a7c15u) ^ (thread))

/* What one thread wrote without a break: a chunk, or the part of it behind a THREAD record. */
struct piece {
    uint32_t thread_no, cycle;
    uint64_t order, first, last, count;
    bool is_whole; /* numbers go up by one, every check is right */
};

struct walk {
    struct piece *pieces;
    size_t piece_count, piece_room;
    const struct kp_str **texts; /* by id */
    uint32_t text_room;
    uint8_t *base;
    size_t bytes;
    struct kp_file_head *head;
    uint32_t chunks, by_kind[5]; /* by_kind: chunks of each enum kp_chunk_kind */
    uint64_t records[KP_KIND_N];
    uint32_t strings, strings_torn, ids_doubled;
};

/* The half in memory that the header names, or that of this process where it has no path. -1: there is none. */
static inline int walk_memory_open(const struct kp_file_head *head)
{
    char line[600];
    const char *at = memmem(head->text, head->text_bytes, "memory=", 7);
    if (at == NULL || sscanf(at, "memory=%599[^\n]", line) != 1) return -1;
    if (strcmp(line, "-") == 0 && head->pid == (uint32_t)getpid()) return dup(kp_load_relaxed(&kp_spool.fd));
    return open(line, O_RDONLY);
}

static inline size_t walk_file_bytes(int fd)
{
    struct stat st;
    if (fd < 0) return 0;
    assert_int_equal(fstat(fd, &st), 0);
    return (size_t)st.st_size;
}

/* A chunk that lies in memory counts before that on the disk. It leaves memory once the disk has it. */
static inline void walk_halves_read(struct walk *w, int memory, int disk)
{
    for (size_t at = 0; at + KP_CHUNK_BYTES <= w->bytes; at += KP_CHUNK_BYTES) {
        const struct kp_chunk_head *head = (const void *)(w->base + at);
        struct kp_chunk_head after = {0};
        const bool was_there = memory >= 0 && pread(memory, w->base + at, KP_CHUNK_BYTES, (off_t)at) > 0;
        if (was_there) assert_true(pread(memory, &after, sizeof after, (off_t)at) > 0);
        if (was_there && (at == 0 || (head->magic == KP_CHUNK_MAGIC && after.magic == KP_CHUNK_MAGIC))) continue;
        memset(w->base + at, 0, KP_CHUNK_BYTES);
        assert_true(pread(disk, w->base + at, KP_CHUNK_BYTES, (off_t)at) >= 0);
    }
}

static inline void walk_open(struct walk *w, const char *path)
{
    static uint8_t first[KP_CHUNK_BYTES];
    memset(w, 0, sizeof *w);
    const int disk = open(path, O_RDONLY);
    assert_true(disk >= 0);
    assert_true(pread(disk, first, sizeof first, 0) > 0);
    const int memory = walk_memory_open((const struct kp_file_head *)(const void *)first);
    if (memory >= 0) assert_int_equal(pread(memory, first, sizeof first, 0), sizeof first);
    /* the count before the size: the file of a living process may grow between */
    w->chunks = ((const struct kp_file_head *)(const void *)first)->chunks;
    const size_t in_memory = walk_file_bytes(memory), on_disk = walk_file_bytes(disk);
    w->bytes = in_memory > on_disk ? in_memory : (on_disk + KP_CHUNK_BYTES - 1) & ~(size_t)(KP_CHUNK_BYTES - 1);
    assert_true(w->bytes >= KP_CHUNK_BYTES);
    w->base = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(w->base != MAP_FAILED);
    walk_halves_read(w, memory, disk);
    close(disk);
    if (memory >= 0) close(memory);
    w->head = (struct kp_file_head *)w->base;
    assert_memory_equal(w->head->magic, KP_FORMAT_MAGIC, 8);
    const uint32_t most = (uint32_t)(w->bytes / KP_CHUNK_BYTES); /* those beyond were never used */
    if (w->chunks > most) w->chunks = most;
}

static inline void walk_close(struct walk *w)
{
    munmap(w->base, w->bytes);
    free(w->pieces);
    free((void *)w->texts);
}

static inline const struct kp_chunk_head *walk_chunk(const struct walk *w, uint32_t i)
{
    return (const struct kp_chunk_head *)(w->base + (size_t)i * KP_CHUNK_BYTES);
}

static inline struct piece *piece_add(struct walk *w, uint32_t thread_no, uint32_t cycle, uint64_t order)
{
    if (w->piece_count == w->piece_room) {
        w->piece_room = w->piece_room * 2 + 64;
        w->pieces = realloc(w->pieces, w->piece_room * sizeof *w->pieces);
        assert_non_null(w->pieces);
    }
    struct piece *p = &w->pieces[w->piece_count++];
    *p = (struct piece){.thread_no = thread_no, .cycle = cycle, .order = order, .is_whole = true};
    return p;
}

static inline void piece_note(const struct walk *w, struct piece *p, const struct test_rec *r)
{
    if (p->count++ == 0) p->first = r->number;
    else if (r->number != p->last + 1) p->is_whole = false;
    p->last = r->number;
    if (r->thread_no != p->thread_no || r->check != TEST_CHECK(r->number, r->thread_no)) p->is_whole = false;
    if (r->head.name == 0 || w->texts == NULL) return;
    char want[32];
    const struct kp_str *s = r->head.name < w->text_room ? w->texts[r->head.name] : NULL;
    int n = snprintf(want, sizeof want, "name %u", (unsigned)(r->number % TEST_NAMES));
    if (s == NULL || s->len != (uint32_t)n || memcmp(s->bytes, want, s->len) != 0) p->is_whole = false;
}

/* Every record of one chunk. All sizes must fit; OP records are test_recs. */
static inline void walk_records(struct walk *w, const struct kp_chunk_head *c)
{
    uint32_t used = kp_load_acquire(&((struct kp_chunk_head *)(uintptr_t)c)->used), at = sizeof *c;
    struct piece *p = piece_add(w, c->thread_no, c->cycle, c->order);
    assert_in_range(used, sizeof *c, KP_CHUNK_BYTES);
    while (at < used) {
        const struct kp_rec *r = (const struct kp_rec *)((const uint8_t *)c + at);
        const struct kp_rec_thread *t = (const struct kp_rec_thread *)r;
        assert_true(r->size >= sizeof *r && r->size % 8 == 0 && at + r->size <= used);
        assert_in_range(r->kind, 1, 7);
        if (r->kind == KP_KIND_THREAD) p = piece_add(w, t->thread_no, c->cycle, t->order);
        if (r->kind == KP_KIND_OP) piece_note(w, p, (const struct test_rec *)r);
        w->records[r->kind]++;
        at += r->size;
    }
}

static inline void walk_strings(struct walk *w, const struct kp_chunk_head *c)
{
    for (uint32_t at = sizeof *c; at < KP_CHUNK_BYTES;) {
        const struct kp_str *s = (const struct kp_str *)((const uint8_t *)c + at);
        uint32_t size = KP_STR_CELL;
        if (kp_load_acquire(&((struct kp_str *)(uintptr_t)s)->magic) == KP_STR_MAGIC) {
            assert_true(s->len <= KP_CHUNK_BYTES - at - offsetof(struct kp_str, bytes));
            if (kp_hash64(s->bytes, s->len) != s->hash) w->strings_torn++;
            w->strings++;
            if (s->id >= w->text_room) {
                uint32_t room = s->id * 2 + 1024;
                w->texts = realloc((void *)w->texts, room * sizeof *w->texts);
                assert_non_null(w->texts);
                memset((void *)(w->texts + w->text_room), 0, (room - w->text_room) * sizeof *w->texts);
                w->text_room = room;
            }
            if (w->texts[s->id]) w->ids_doubled++;
            w->texts[s->id] = s;
            size = (uint32_t)(offsetof(struct kp_str, bytes) + s->len + KP_STR_CELL - 1) & ~(KP_STR_CELL - 1);
        }
        at += size;
    }
}

/* Strings first, so that the names of records can be looked up. */
static inline void walk_all(struct walk *w)
{
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 1; i < w->chunks; i++) {
            const struct kp_chunk_head *c = walk_chunk(w, i);
            if (c->magic == 0) continue; /* free, and neither in memory nor on the disk */
            assert_int_equal(c->magic, KP_CHUNK_MAGIC);
            uint32_t kind = kp_load_acquire(&((struct kp_chunk_head *)(uintptr_t)c)->kind);
            assert_in_range(kind, 0, 4);
            w->by_kind[kind] += (uint32_t)pass;
            if (pass == 0 && kind == KP_CHUNK_STRINGS) walk_strings(w, c);
            if (pass == 1 && (kind == KP_CHUNK_DATA || kind == KP_CHUNK_META)) walk_records(w, c);
        }
}

static inline int piece_order(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->thread_no != y->thread_no) return x->thread_no < y->thread_no ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Test records of a cycle (0: all). Each thread's must be whole, and follow one another unless some were lost. */
static inline uint64_t walk_check(struct walk *w, uint32_t cycle)
{
    uint64_t sum = 0, next = 0;
    uint32_t thread_no = 0;
    if (w->piece_count) qsort(w->pieces, w->piece_count, sizeof *w->pieces, piece_order);
    for (size_t i = 0; i < w->piece_count; i++) {
        const struct piece *p = &w->pieces[i];
        if (p->count == 0 || (cycle && p->cycle != cycle)) continue;
        assert_true(p->is_whole);
        if (p->thread_no == thread_no) assert_int_equal(p->first, next);
        thread_no = p->thread_no;
        next = p->last + 1;
        sum += p->count;
    }
    return sum;
}

static inline uint64_t spool_check(const char *path, uint32_t cycle)
{
    struct walk w;
    walk_open(&w, path);
    walk_all(&w);
    uint64_t sum = walk_check(&w, cycle);
    assert_int_equal(w.strings_torn, 0);
    assert_int_equal(w.ids_doubled, 0);
    walk_close(&w);
    return sum;
}

/* ---- writing, as a hook does it ---- */

static inline void open_spool_in(const char *dir, uint64_t max_mb, uint64_t memory_mb, void (*tick)(void))
{
    struct kp_record_options o = {
        .dir = dir, .max_bytes = max_mb << 20, .memory_bytes = memory_mb << 20, .text = "test=1\n", .tick = tick};
    kp_clock_init();
    assert_int_equal(kp_gate_init(), 0);
    assert_int_equal(kp_record_open(&o), 0);
}

static inline void open_spool(uint64_t max_mb, void (*tick)(void)) { open_spool_in(kp_test_tmpdir(), max_mb, 0, tick); }

/* The writer has done its first round: `chunks` lie ready. */
static inline void stock_wait(uint32_t chunks)
{
    for (unsigned i = 0; i < KP_CHUNK_DEMAND_MAX; i++) kp_chunk_ask();
    kp_writer_wake();
    for (int i = 0; i < 60000 && kp_chunk_ready() < chunks; i++) usleep(1000);
    assert_true(kp_chunk_ready() >= chunks);
}

/* The writer has found out why the file grows no further. */
static inline void grow_error_wait(enum kp_loss reason)
{
    for (int i = 0; i < 60000 && kp_load_relaxed(&kp_spool.grow_error) != reason; i++) {
        kp_chunk_ask();
        kp_writer_wake();
        usleep(1000);
    }
    assert_int_equal(kp_load_relaxed(&kp_spool.grow_error), reason);
}

/* Ends the spool of this process and forgets it, as a forked child does; the next open_spool makes a new one. */
static inline void spool_forget(bool unlink_file)
{
    kp_gate_set(0);
    (void)kp_record_close(unlink_file, 10000);
    kp_record_forget();
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
    if (gate & KP_GATE_RECORD)
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
