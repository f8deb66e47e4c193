// SPDX-License-Identifier: Apache-2.0
/*
 * corewaits.c - notes in the spool which steps of a window waited for a core, and how long
 *
 * Called by: procfacts.c, by the thread that steps
 * Owns:      the text of the next note
 * Locks:     none of its own: window_lock is held
 * Memory:    1 KB
 * On fail:   the notes are missing, and the report says the window's sum alone
 *
 * A note holds some 80 waits, so that a killed process leaves all but the last of them.
 */
#include "preload/run/corewaits.h"

#include <stdbool.h>
#include <stddef.h>

#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "collector/base/kp_poison.h"

enum { TEXT_BYTES = 1024, ENTRY_BYTES = 64, NOTES_MOST = 64, SHARE_LEAST = 50 }; /* a fiftieth of the time */
#define WAIT_LEAST_NS 100000u /* a thread that sleeps waits for some 0.03 ms each time it wakes */

static struct {
    uint32_t window, notes; /* notes: how many the window has */
    size_t used;
    char text[TEXT_BYTES];
} out;

void kp_corewaits_begin(uint32_t window)
{
    out.notes = out.window == window ? out.notes : 0;
    out.window = window;
    out.used = 0;
}

void kp_corewaits_note(void)
{
    char key[40];
    const bool has_any = out.used != 0;
    out.used = 0;
    if (!has_any || out.notes == NOTES_MOST) return;
    kp_fmt(key, sizeof key, "core_steps.%u.%u", out.window, out.notes++);
    (void)kp_record_note(key, out.text); /* without it the report says the sum */
}

void kp_corewaits_add(uint64_t first_step, uint64_t last_step, uint64_t waited_ns, uint64_t of_ns)
{
    char *const at = out.text + out.used;
    const char *const between = out.used ? "," : "";
    if (waited_ns < WAIT_LEAST_NS || waited_ns < of_ns / SHARE_LEAST) return;
    const unsigned long first = first_step, last = last_step, us = waited_ns / 1000;
    if (first == last) out.used += kp_fmt(at, ENTRY_BYTES, "%s%lu:%lu", between, last, us);
    else out.used += kp_fmt(at, ENTRY_BYTES, "%s%lu-%lu:%lu", between, first, last, us);
    if (out.used + ENTRY_BYTES > TEXT_BYTES) kp_corewaits_note();
}
