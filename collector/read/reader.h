// SPDX-License-Identifier: Apache-2.0
/* reader.h - the inside of a reader, which the files of this room share */
#pragma once

#include "collector/base/kp_atomic.h"
#include "collector/format/kp_format.h"
#include "collector/read/clockmap.h"
#include "collector/read/gpus.h"
#include "collector/read/kp_read.h"
#include "collector/read/names.h"
#include "collector/read/text.h"

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
