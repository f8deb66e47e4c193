// SPDX-License-Identifier: Apache-2.0
/* reader.h - the inside of a reader, which the files of this room share */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_idtable.h"
#include "collector/format/kp_device.h"
#include "collector/format/kp_format.h"
#include "collector/read/clockmap.h"
#include "collector/read/devclock.h"
#include "collector/read/kp_read.h"

/* ---- names.c: the string table of a spool: from an id to its text in the mapping ---- */

struct kp_name {
    const char *name, *overload; /* NULL: not found */
};
struct kp_names {
    struct kp_name *of; /* by id */
    uint32_t cap;       /* ids below this may be looked up */
    struct kp_names_copy *copies;
};

/*
 * Adds every good string of a STRINGS chunk, of which the file has `bytes`. Ids from `limit` on are refused. 0 or
 * -ENOMEM.
 */
int kp_names_add_chunk(struct kp_names *n, const uint8_t *chunk, uint32_t bytes, uint32_t limit);
void kp_names_fini(struct kp_names *n);
static inline const struct kp_name *kp_names_get(const struct kp_names *n, uint32_t id)
{
    return id < n->cap && n->of[id].name ? &n->of[id] : NULL;
}

/* ---- text.c: the "key=value" lines of a spool: the header's lines, and the notes after them ---- */

struct kp_text_line {
    uint64_t at; /* in the text */
    uint32_t key_bytes, pad;
};
struct kp_text {
    char *bytes; /* lines, each with a NUL behind it, and another NUL behind the last */
    size_t used, cap;
    size_t header;              /* bytes that came from the header */
    size_t settled;             /* `used` at the last kp_text_settle */
    struct kp_text_line *lines; /* as of the last kp_text_settle: by key, then by age */
    uint32_t n, lines_cap;
};

/* All lines of the header at once, then notes. 0 or -ENOMEM. */
int kp_text_header(struct kp_text *t, const uint8_t *lines, uint32_t n);
int kp_text_note(struct kp_text *t, const uint8_t *lines, uint32_t n);
/* Sorts the lines and drops the replaced ones. kp_text_get sees no line before this call. 0 or -ENOMEM. */
int kp_text_settle(struct kp_text *t);
const char *kp_text_get(const struct kp_text *t, const char *key); /* the key's last value, or NULL */
const char *kp_text_next(const struct kp_text *t,
                         const char *previous); /* the next line; NULL gives the first, and ends */
void kp_text_fini(struct kp_text *t);

/* ---- gpus.c: the META records about GPUs: devices, contexts, the device clock, CUPTI's thread ids ---- */

enum { KP_GPUS_MAX = 256 };
struct kp_gpu_thread {
    uint64_t thread_id;
    uint32_t tid;
};
struct kp_gpus {
    struct kp_devclock clock;
    const struct kp_rec_device *device[KP_GPUS_MAX]; /* by id, in the mapping; the last record of an id counts */
    uint32_t devices;                                /* the highest id + 1 */
    struct kp_rec_context *contexts;
    uint32_t contexts_n, contexts_cap;
    struct kp_idtable threads; /* of kp_gpu_thread */
};

int kp_gpus_take(struct kp_gpus *g, const struct kp_rec *rec,
                 uint32_t bytes); /* a META record of any kind; 0 or -ENOMEM */
int kp_gpus_thread(struct kp_gpus *g, uint32_t thread_id,
                   uint32_t tid); /* replaces an earlier tid of thread_id; 0 or -ENOMEM */
uint32_t kp_gpus_tid(const struct kp_gpus *g, uint32_t thread_id); /* an unknown thread_id is returned as it is */
void kp_gpus_fini(struct kp_gpus *g);

/* ---- a reader ---- */

enum { KP_CYCLE_LAST_PART = 1u << 7 }; /* a flag of cycles in a reader alone: what came before went (KPROF_RING) */

struct kp_drop {
    size_t from, to; /* file offsets of adjacent chunks that a pass has read and not yet dropped */
};

struct kp_reader {
    const uint8_t *file; /* mapped read-only; a process may still be writing it */
    size_t file_bytes;
    uint8_t *copied; /* a bit for each chunk that is a copy of memory, or NULL: none is */
    size_t copied_bytes;
    struct kp_drop *drop, drop_is; /* a pass has a const reader, and writes through the pointer */
    uint32_t chunks;               /* readable chunks, header included; the last may be cut */
    struct kp_text text;           /* lines of the header, and notes */
    struct kp_names names;
    struct kp_clockmap clock;
    struct kp_gpus gpus;
    struct kp_rec_cycle *cycles; /* by number; an `end` of 0 was replaced by the last event's or clock sample's time */
    bool *complete;
    bool is_ring; /* a cycle begins inside events that were recorded before (KPROF_RING) */
    uint32_t cycles_n, cycles_cap;
    uint64_t skipped;
};

/* The head of chunk i, and how many of its bytes may be read (`used`, cut to the file). NULL: there is none. */
const struct kp_chunk_head *kp_file_chunk(const struct kp_reader *r, uint32_t i, uint32_t *used);
/* Moves *i on to the next chunk of an open file that is no hole. False: only holes follow. */
bool kp_file_next_data(int fd, uint32_t *i, uint32_t chunks);
/*
 * A pass has read the chunk that `at` lies in. Drops its pages soon, together with those of adjacent chunks. The file
 * stays cached.
 */
void kp_file_drop_pages(const struct kp_reader *r, const void *at);
struct kp_rec_cycle *kp_file_cycle(const struct kp_reader *r, uint32_t number);

/* An id of a frame or stack as a damaged file may have it: 0 if it lies outside the file. So what keeps a number for
 * each id needs no more memory than the file has bytes. */
static inline uint32_t kp_stack_id(const struct kp_reader *r, uint32_t id)
{
    return id < r->chunks * (uint64_t)(KP_CHUNK_BYTES / KP_STR_CELL) ? id : 0;
}

/* A cycle's `end` of 0 becomes the end of its last event, if it has events. */
void kp_events_close(struct kp_reader *r);
/* When the first event began of those that began within the cycle, in ticks; its end: none did. */
uint64_t kp_events_first(const struct kp_reader *r, const struct kp_rec_cycle *cycle);
/* The begin of a ring of `ticks`, fewer than the cycle has: time in which no event began is not counted. */
uint64_t kp_events_ring_begin(const struct kp_reader *r, const struct kp_rec_cycle *cycle, uint64_t ticks);
uint64_t kp_heap_end(const uint8_t *at,
                     const uint8_t *end); /* heap.c: ticks right after the last of these heap records, or 0 */

/*
 * The record at *at, which then moves to the next one. NULL: no record there ends at or before `end`. Use *bytes and
 * never the record's own size: the file of a running process may change at any time.
 */
static inline const struct kp_rec *kp_file_record(const uint8_t **at, const uint8_t *end, uint32_t *bytes)
{
    const struct kp_rec *rec = (const void *)*at;
    if ((size_t)(end - *at) < sizeof *rec) return NULL;
    *bytes = kp_load_relaxed((_Atomic uint16_t *)(uintptr_t)&rec->size);
    if (*bytes < sizeof *rec || *bytes % 8 || *bytes > (size_t)(end - *at)) return NULL;
    *at += *bytes;
    return rec;
}

/* comms.c: copies and checks a COMMS record. False: another record, or too short for its counts. */
bool kp_comms_read(struct kp_comms *out, const struct kp_rec *rec, uint32_t bytes);
