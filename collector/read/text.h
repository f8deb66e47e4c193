// SPDX-License-Identifier: Apache-2.0
/* text.h - the "key=value" lines of a spool: the header's lines, and the notes after them */
#ifndef KP_READ_TEXT_H
#define KP_READ_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct kp_text_line {
    uint64_t at; /* in the text */
    uint32_t key_bytes, pad;
};
struct kp_text {
    char *bytes; /* lines, NUL-separated, with a NUL of their own behind the last */
    size_t used, cap;
    size_t header;              /* so much of it is the header's own */
    size_t settled;             /* bytes when it was last settled */
    struct kp_text_line *lines; /* by key, those of one key in their order; since it was last settled */
    uint32_t n, lines_cap;
};

/* All lines of the header at once, then notes. 0 or -ENOMEM. */
int kp_text_header(struct kp_text *t, const uint8_t *lines, uint32_t n);
int kp_text_note(struct kp_text *t, const uint8_t *lines, uint32_t n);
/* A note takes the place of every earlier line of its key. Before this kp_text_get knows nothing. 0 or -ENOMEM. */
int kp_text_settle(struct kp_text *t);
const char *kp_text_get(const struct kp_text *t, const char *key); /* the value said last, or NULL */
const char *kp_text_next(const struct kp_text *t,
                         const char *previous); /* line by line; NULL gives the first, and is the last */
void kp_text_fini(struct kp_text *t);

#endif
