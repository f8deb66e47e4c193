// SPDX-License-Identifier: Apache-2.0
/*
 * corewaits.c - notes in the spool which steps of a window waited for a core, and how long
 *
 * Called by: procfacts.c, by the thread that steps
 * Owns:      its list (windowlist.c)
 * Locks:     none of its own: window_lock is held
 * Memory:    1 KB
 * On fail:   the notes are missing, and the report says the window's sum alone
 *
 * The list is noted as often as the window's sum (procfacts.c: core_note_early), so a killed process leaves both, of
 * the same steps.
 */
#include "preload/procfacts/procfacts.h"

#include "collector/base/kp_log.h"
#include "preload/procfacts/windowlist.h"
#include "collector/base/kp_poison.h"

enum { SHARE_LEAST = 50 };    /* a fiftieth of the time */
#define WAIT_LEAST_NS 100000u /* a thread that sleeps waits for some 0.03 ms each time it wakes */

static struct kp_windowlist out = {.key = "core_steps", .bytes_most = 1 << 20, .piece = 1024};

void kp_corewaits_begin(uint32_t window) { kp_windowlist_begin(&out, window); }

void kp_corewaits_note(void) { kp_windowlist_note(&out); }

void kp_corewaits_add(uint64_t first_step, uint64_t last_step, uint64_t waited_ns, uint64_t of_ns)
{
    char entry[KP_WINDOWLIST_ENTRY];
    if (waited_ns < WAIT_LEAST_NS || waited_ns < of_ns / SHARE_LEAST) return;
    const unsigned long first = first_step, last = last_step, us = waited_ns / 1000;
    if (first == last) kp_fmt(entry, sizeof entry, "%lu:%lu", last, us);
    else kp_fmt(entry, sizeof entry, "%lu-%lu:%lu", first, last, us);
    kp_windowlist_add(&out, entry);
}
