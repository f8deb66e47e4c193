// SPDX-License-Identifier: Apache-2.0
/* records.h - walks the records of a spool in the file, for tests of sources whose records no reader shows yet */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/halves.h"
#include "collector/format/kp_device.h"
#include "test/support/support.h"

struct records {
    uint8_t *base;
    size_t bytes;
};

static inline struct records records_open(void)
{
    struct records r;
    r.base = halves_read(&r.bytes);
    return r;
}

static inline void records_close(struct records *r) { munmap(r->base, r->bytes); }

/* The text of a name id, "" for 0; "?" when the spool has no such name. */
static inline const char *records_name(const struct records *r, uint32_t id)
{
    static char texts[8][2048];
    static unsigned turn;
    if (!id) return "";
    for (size_t c = KP_CHUNK_BYTES; c + KP_CHUNK_BYTES <= r->bytes; c += KP_CHUNK_BYTES) {
        const struct kp_chunk_head *head = (const struct kp_chunk_head *)(r->base + c);
        if (head->magic != KP_CHUNK_MAGIC || head->kind != KP_CHUNK_STRINGS) continue;
        for (size_t at = sizeof *head; at < KP_CHUNK_BYTES; at += KP_STR_CELL) {
            const struct kp_str *s = (const struct kp_str *)(r->base + c + at);
            if (s->magic != KP_STR_MAGIC || s->id != id) continue;
            char *text = texts[turn++ % 8];
            snprintf(text, sizeof texts[0], "%.*s", (int)s->len, s->bytes);
            return text;
        }
    }
    return "?";
}

/* Up to `room` records of `kind` in chunks of `cycle`, in the order of the chunks. */
static inline size_t records_find(const struct records *r, uint32_t cycle, enum kp_kind kind, const void **out,
                                  size_t room)
{
    size_t found = 0;
    for (size_t c = KP_CHUNK_BYTES; c + KP_CHUNK_BYTES <= r->bytes; c += KP_CHUNK_BYTES) {
        const struct kp_chunk_head *head = (const struct kp_chunk_head *)(r->base + c);
        if (head->magic != KP_CHUNK_MAGIC || (head->kind != KP_CHUNK_DATA && head->kind != KP_CHUNK_DEVICE)) continue;
        if (head->cycle != cycle) continue;
        for (size_t at = sizeof *head; at < head->used;) {
            const struct kp_rec *rec = (const struct kp_rec *)(r->base + c + at);
            assert_true(rec->size >= sizeof *rec && rec->size % 8 == 0);
            if (rec->kind == kind && found < room) out[found++] = rec;
            at += rec->size;
        }
    }
    return found;
}
