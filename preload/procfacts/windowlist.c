// SPDX-License-Identifier: Apache-2.0
/*
 * windowlist.c - a list about a window's steps, noted in the spool a piece at a time
 *
 * Called by: corewaits.c, residents.c, by the thread that steps
 * Locks:     none of its own: window_lock is held
 * On fail:   the notes are missing
 */
#include "preload/procfacts/windowlist.h"

#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "collector/base/kp_poison.h"

void kp_windowlist_begin(struct kp_windowlist *list, uint32_t window)
{
    if (list->window != window) list->bytes = list->notes = 0;
    list->window = window;
    list->used = 0;
}

void kp_windowlist_note(struct kp_windowlist *list)
{
    char key[40];
    const size_t used = list->used;
    list->used = 0;
    if (!used || list->bytes + used > list->bytes_most) {
        if (used) list->bytes = list->bytes_most; /* a list with a hole would hide that something is missing */
        return;
    }
    list->bytes += used;
    kp_fmt(key, sizeof key, "%s.%u.%u", list->key, list->window, list->notes++);
    (void)kp_record_note(key, list->text);
}

void kp_windowlist_add(struct kp_windowlist *list, const char *entry)
{
    list->used += kp_fmt(list->text + list->used, KP_WINDOWLIST_ENTRY, "%s%s", list->used ? "," : "", entry);
    if (list->used + KP_WINDOWLIST_ENTRY > list->piece) kp_windowlist_note(list);
}
