// SPDX-License-Identifier: Apache-2.0
/*
 * allocations.h - the host's heap in a trace: allocations of each op and step, live bytes over time, peak, leaks, sites
 *
 * A walk before the trace is written joins the heap's events with the ops. Then each op finds its sums by its place in
 * the walk.
 */
#pragma once

#include "export/write/heap/idpages.h"
#include "export/write/out/scratch.h"
#include "export/write/out/trace.h"

struct kp_heap;
/*
 * *out becomes NULL when the cycle has no heap records. has_file: blocks are written to NAME.heap.zst, too, with
 * t->result->path as the trace's path. 0 or -errno.
 */
int kp_heap_open(struct kp_heap **out, struct kp_trace *t, bool has_file);
void kp_heap_close(struct kp_heap *heap);
uint64_t kp_heap_allocations(const struct kp_heap *heap);
int kp_heap_file_commit(struct kp_heap *heap, const char *trace_path); /* gives NAME.heap.zst its name. 0 or -errno */
/* NAME.heap.zst of the trace NAME.pt.trace.json[.gz]. False: too long. */
bool kp_heap_file_path(char *out, size_t bytes, const char *trace_path);
/* Called for each OP or STEP of the timeline, in order. Writes its sums, if any, as members behind a comma. */
void kp_heap_args_next(struct kp_heap *heap);
void kp_heap_args_write(const struct kp_heap *heap, struct kp_json *json);
void kp_heap_counters_write(const struct kp_heap *heap, struct kp_trace *t); /* events of phase C */
void kp_heap_key_write(struct kp_heap *heap, struct kp_trace *t); /* "kprof_heap": {...}, at the top of the trace */

/* --- heapsites.c: allocations by call stack, live blocks, the peak --- */

struct kp_site {
    uint32_t stack;
    uint64_t taken, bytes;            /* all its allocations */
    uint64_t live_blocks, live_bytes; /* now; at the end its leaks */
    uint64_t peak_blocks, peak_bytes; /* at the peak of all sites together */
    uint64_t epoch;                   /* peak_* are of this peak */
    bool is_shown;                    /* kp_sites_largest has given it */
};
struct kp_sites {
    struct kp_site *of;
    uint32_t n, cap;
    struct kp_idpages by_stack; /* place in `of` + 1 */
    struct kp_list blocks;      /* by address, open addressing */
    uint32_t slots, used, looks;
    uint64_t epoch, live_bytes, live_blocks, peak_bytes, peak_ns,
        unknown;                  /* unknown: freed, but not allocated in this window */
    uint64_t unkept, unkept_live; /* blocks without room in the table; those not freed since */
    bool is_full;                 /* the table cannot grow: no file, and enough memory in use */
    uint32_t gone, came;          /* marks of the blocks that the last call took out and put in; 0: none */
    struct kp_heap_restore {
        uint64_t address, bytes;
        uint32_t site, thread_no, mark;
    } last[64]; /* blocks freed by realloc, by thread_no */
};
int kp_sites_open(struct kp_sites *s, struct kp_scratch *scratch);
void kp_sites_close(struct kp_sites *s);
/* Asks for the memory that kp_sites_take looks at, some events before it is called. */
void kp_sites_prefetch(const struct kp_sites *s, const struct kp_heap_event *e);
/* Takes a block allocated, freed or restored. An allocated one keeps the mark. 0 or -ENOMEM. */
int kp_sites_take(struct kp_sites *s, const struct kp_heap_event *e, uint32_t mark);
void kp_sites_settle(struct kp_sites *s); /* at the end: sets peak_* of all sites */
/* The next of the largest sites: by live bytes, by bytes at the peak and by allocations in turn. NULL: no more. */
struct kp_site *kp_sites_largest(struct kp_sites *s, uint32_t turn);

/* --- heaptrack_write.c: NAME.heap.zst beside a trace: every block with its call stack, as heaptrack has it --- */

#define KP_HEAPFILE_PYTHON "Python" /* the module of Python's frames */

struct kp_heapfile;
struct kp_heap_event;
/* Opens it under a temporary name. t->result->path is where the trace will be. 0 or -errno. */
int kp_heapfile_open(struct kp_heapfile **out, struct kp_trace *t);
/* Blocks taken from here on belong to this step. */
void kp_heapfile_step(struct kp_heapfile *f, uint64_t number);
void kp_heapfile_no_step(struct kp_heapfile *f);
/* From here on Python frees what the program kept, since it ends. */
void kp_heapfile_python_ends(struct kp_heapfile *f);
/* Asks for the memory that kp_heapfile_block looks at, some blocks before it is called. */
void kp_heapfile_prefetch(const struct kp_heapfile *f, uint32_t stack, uint64_t bytes);
/* The number for blocks of so many bytes from this stack, from 1 on. 0: an error, which _commit reports. */
uint32_t kp_heapfile_block(struct kp_heapfile *f, uint32_t stack, uint64_t bytes);
void kp_heapfile_taken(struct kp_heapfile *f, uint32_t block, uint64_t now_ns);
void kp_heapfile_given(struct kp_heapfile *f, uint32_t block, uint64_t now_ns);
/* Memory that Python's allocator of small objects maps (an arena) or unmaps. Other mapped memory is left out. */
void kp_heapfile_mapped(struct kp_heapfile *f, const struct kp_heap_event *e);
int kp_heapfile_flush(struct kp_heapfile *f); /* options->heap_text gets all there is. 0 or -errno */
int kp_heapfile_commit(struct kp_heapfile *f, const char *trace_path); /* 0 or -errno */
void kp_heapfile_close(struct kp_heapfile *f);
