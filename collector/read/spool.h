// SPDX-License-Identifier: Apache-2.0
/* spool.h - inside of a reader, shared by the files of this room */
#ifndef KP_READ_SPOOL_H
#define KP_READ_SPOOL_H

#include "collector/read/clockmap.h"
#include "collector/read/kp_read.h"
#include "collector/read/names.h"

struct kp_reader {
    const uint8_t *file; /* mapped read-only; somebody may still be writing it */
    size_t file_bytes;
    uint32_t chunks; /* whole or cut, header included */
    char *text;      /* header lines, NUL-separated */
    uint32_t text_bytes;
    struct kp_names names;
    struct kp_clockmap clock;
    struct kp_rec_cycle *cycles; /* by number; `end` 0 was replaced by the last event's end */
    bool *complete;
    uint32_t cycles_n, cycles_cap;
    uint64_t skipped;
};

/* Head of chunk i when there is one, with how many bytes of records may be read (`used`, cut to the file). Else NULL. */
const struct kp_chunk_head *kp_spool_chunk(const struct kp_reader *r, uint32_t i, uint32_t *used);
const struct kp_rec_cycle *kp_spool_cycle(const struct kp_reader *r, uint32_t number);

/* Last end of an event of a cycle that began at or after `begin` (0: none). 0 or -ENOMEM. */
int kp_events_last(struct kp_reader *r, uint32_t cycle, uint64_t begin, uint64_t *last);

/* The record at `at`, or NULL when what lies there is no record that ends at or before `end`. */
static inline const struct kp_rec *kp_spool_record(const uint8_t *at, const uint8_t *end)
{
    const struct kp_rec *rec = (const void *)at;
    if ((size_t)(end - at) < sizeof *rec || rec->size < sizeof *rec || rec->size % 8) return NULL;
    return rec->size > end - at ? NULL : rec;
}

#endif
