// SPDX-License-Identifier: Apache-2.0
/*
 * windowlist.h - a list about a window's steps, noted in the spool a piece at a time: KEY.WINDOW.0, KEY.WINDOW.1, ..
 *
 * All calls come under the window's lock. A killed process leaves all that kp_windowlist_note wrote before.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { KP_WINDOWLIST_ENTRY = 64 }; /* bytes of an entry at most */

struct kp_windowlist {
    const char *key;
    size_t bytes_most;      /* of a window's notes; more are dropped */
    uint32_t piece;         /* bytes of a note at most, up to those of text */
    uint32_t window, notes; /* notes: how many the window has */
    size_t used, bytes;     /* bytes: of the window's notes */
    char text[1024];
};

void kp_windowlist_begin(struct kp_windowlist *list, uint32_t window); /* the window's steps begin, or begin again */
void kp_windowlist_add(struct kp_windowlist *list, const char *entry);
void kp_windowlist_note(struct kp_windowlist *list); /* writes what is not yet in the spool, as one more note */
