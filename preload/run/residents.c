// SPDX-License-Identifier: Apache-2.0
/*
 * residents.c - notes in the spool how much memory the program has at the ends of a window's steps
 *
 * Called by: procfacts.c, by the thread that steps
 * Owns:      the text of the next note
 * Locks:     none of its own: window_lock is held
 * Memory:    1 KB
 * On fail:   the notes are missing, and no growth is told
 *
 * It is memory without a file, so what maps libraries, and the spool, are not in it. A look takes some 8 us. Two are
 * 5 ms apart at least, and a thousandth of the window's time so far: then a day has some 15,000 looks, and what a kill
 * takes is little.
 */
#include "preload/run/residents.h"

#include <stdbool.h>
#include <stddef.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "collector/base/kp_poison.h"

enum { TEXT_BYTES = 512, ENTRY_BYTES = 48, NOTES_MOST = 1024, LOOKS_PART = 1000 };
#define LOOK_NS UINT64_C(5000000)

static struct {
    uint32_t window, notes; /* notes: how many the window has */
    uint64_t begin_ns, look_ns;
    size_t used;
    char text[TEXT_BYTES];
} out;

void kp_residents_begin(uint32_t window, uint64_t now_ns)
{
    out.notes = out.window == window ? out.notes : 0;
    out.window = window;
    out.begin_ns = now_ns;
    out.look_ns = 0;
    out.used = 0;
}

void kp_residents_note(void)
{
    char key[40];
    const bool has_any = out.used != 0;
    out.used = 0;
    if (!has_any || out.notes == NOTES_MOST) return;
    kp_fmt(key, sizeof key, "resident_steps.%u.%u", out.window, out.notes++);
    (void)kp_record_note(key, out.text); /* without it no growth is told */
}

void kp_residents_step(uint64_t step, uint64_t now_ns)
{
    const uint64_t part_ns = (now_ns - out.begin_ns) / LOOKS_PART;
    if (out.look_ns && now_ns - out.look_ns < (part_ns > LOOK_NS ? part_ns : LOOK_NS)) return;
    const uint64_t kb = kp_io_resident() / 1024;
    out.look_ns = now_ns;
    if (!kb) return;
    out.used += kp_fmt(out.text + out.used, ENTRY_BYTES, "%s%lu:%lu", out.used ? "," : "", (unsigned long)step,
                       (unsigned long)kb);
    if (out.used + ENTRY_BYTES > TEXT_BYTES) kp_residents_note();
}
