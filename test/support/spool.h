// SPDX-License-Identifier: Apache-2.0
/* spool.h - writes small spools byte by byte, as the format says, for tests of the reading side */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_format.h"

struct test_spool {
    uint8_t *bytes;
    uint32_t chunks, cap;
    uint32_t strings_chunk, next_id;
    uint64_t order;
};

void test_spool_init(struct test_spool *s);
void test_spool_free(struct test_spool *s);
void test_spool_text(struct test_spool *s, const char *lines);
struct kp_file_head *test_spool_head(struct test_spool *s);
/* A new chunk; returns its number. */
uint32_t test_spool_chunk(struct test_spool *s, uint32_t kind, uint32_t cycle, uint32_t tid, uint32_t thread_no,
                          const char *name);
struct kp_chunk_head *test_spool_at(struct test_spool *s, uint32_t chunk);
/* Appends a record; 0 when the chunk is full. */
int test_spool_put(struct test_spool *s, uint32_t chunk, const void *rec, uint32_t bytes);
uint32_t test_spool_name(struct test_spool *s, const char *bytes, uint32_t len); /* id */
void test_spool_clock(struct test_spool *s, uint32_t chunk, uint64_t ticks, uint64_t real_ns, uint64_t mono_ns);
void test_spool_cycle(struct test_spool *s, uint32_t chunk, uint32_t cycle, uint64_t begin, uint64_t end,
                      uint32_t steps);

struct test_op { /* what may be said about an op; zero is the common case but seq: -1 for none */
    uint32_t name;
    uint64_t start, ticks;
    uint8_t scope, flags; /* flags: ASYNC; the others follow from what is set. ticks 0: still open */
    bool ends_step;
    uint32_t rt_tid;
    int64_t seq;
    uint64_t fwd_tid, handle;
    const void *inputs; /* kp_inputs.h; NULL: none */
    uint32_t inputs_bytes, inputs_count;
};
int test_spool_op(struct test_spool *s, uint32_t chunk, const struct test_op *op);
int test_spool_step(struct test_spool *s, uint32_t chunk, uint64_t start, uint64_t end, uint64_t number);
/* Writes the first `bytes` bytes (0: all). */
void test_spool_save(const struct test_spool *s, const char *path, size_t bytes);

/* A small training run of two threads: the golden spool. Ticks are ns. */
void test_spool_training(struct test_spool *s);
