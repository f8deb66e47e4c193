// SPDX-License-Identifier: Apache-2.0
/* text.h - the "key=value" lines of a spool: the header's lines, and the notes after them */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
