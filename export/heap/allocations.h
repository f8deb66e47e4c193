// SPDX-License-Identifier: Apache-2.0
/*
 * allocations.h - the host's heap in a trace: allocations of each op and step, live bytes over time, peak, leaks, sites
 *
 * One walk before the trace is written joins the heap's events with the ops; then each op finds its sums by its place
 * in the walk.
 */
#ifndef KP_EXPORT_HEAP_H
#define KP_EXPORT_HEAP_H

#include "export/out/scratch.h"
#include "export/out/trace.h"

struct kp_heap;
/* NULL in *out when the spool holds nothing of the heap in this cycle. 0 or -errno. */
int kp_heap_open(struct kp_heap **out, struct kp_trace *t);
void kp_heap_close(struct kp_heap *heap);
uint64_t kp_heap_allocations(const struct kp_heap *heap);
/* The next OP or STEP of the timeline is being written; its sums, when it has any, as members behind a comma. */
void kp_heap_args_next(struct kp_heap *heap);
void kp_heap_args_write(const struct kp_heap *heap, struct kp_json *json);
void kp_heap_counters_write(const struct kp_heap *heap, struct kp_trace *t); /* events of phase C */
void kp_heap_key_write(struct kp_heap *heap, struct kp_trace *t); /* "kprof_heap": {...}, at the top of the trace */

/* --- heapsites.c: who allocates, what is live, the peak --- */

struct kp_site {
    uint32_t stack;
    uint64_t taken, bytes;            /* all it took */
    uint64_t live_blocks, live_bytes; /* at present; at the end: its leaks */
    uint64_t peak_blocks, peak_bytes; /* when all sites together had most */
    uint64_t epoch;                   /* peak_* are of this peak */
};
struct kp_sites {
    struct kp_site *of;
    uint32_t n, cap;
    uint32_t *by_stack, by_stack_slots; /* place in `of` + 1, by hash of the stack, at most half full */
    struct kp_list blocks;              /* by address, open addressing */
    uint32_t slots, used, looks;
    uint64_t epoch, live_bytes, live_blocks, peak_bytes, peak_ns,
        unknown;                  /* unknown: given back, but not taken in this window */
    uint64_t unkept, unkept_live; /* blocks that found no room in the table; those not given back since */
    bool is_full;                 /* the table cannot grow: no file to be had, and enough memory taken */
    struct kp_heap_restore {
        uint64_t address, bytes;
        uint32_t site, thread_no;
    } last[64]; /* given back by realloc, by thread_no */
};
int kp_sites_open(struct kp_sites *s, struct kp_scratch *scratch);
void kp_sites_close(struct kp_sites *s);
int kp_sites_take(
    struct kp_sites *s,
    const struct kp_heap_event *e);       /* one block of the heap, taken, given back or restored. 0 or -ENOMEM */
void kp_sites_settle(struct kp_sites *s); /* at the end: peak_* of all sites hold */

#endif
