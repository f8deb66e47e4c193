// SPDX-License-Identifier: Apache-2.0
/*
 * residents.c - notes in the spool how much memory and how many open files the program has where a window's steps end
 *
 * Called by: procfacts.c, by the thread that steps
 * Owns:      its lists (windowlist.c)
 * Locks:     none of its own: window_lock is held
 * Memory:    3 KB
 * On fail:   the notes are missing, and no growth is told
 *
 * It is memory without a file, so what maps libraries, and the spool, are not in it. Beside it stands the size of the
 * address space: a buffer that was reserved before, and fills, does not add to that. A look takes some 10 us. Two are
 * 5 ms apart at least, and a thousandth of the window's time so far: then a day has some 15,000 looks, and what a kill
 * takes is little.
 */
#include "preload/procfacts/procfacts.h"

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/procfacts/windowlist.h"
#include "collector/base/kp_poison.h"

enum { LOOKS_PART = 1000 };
#define LOOK_NS UINT64_C(5000000)

static struct kp_windowlist out = {.key = "resident_steps", .bytes_most = 524288, .piece = 528};
static struct kp_windowlist addresses = {.key = "address_steps", .bytes_most = 524288, .piece = 528};
static struct kp_windowlist files = {.key = "file_steps", .bytes_most = 524288, .piece = 528};
static struct {
    uint64_t begin_ns, last_ns;
} look;

void kp_residents_begin(uint32_t window, uint64_t now_ns)
{
    kp_windowlist_begin(&out, window);
    kp_windowlist_begin(&addresses, window);
    kp_windowlist_begin(&files, window);
    look.begin_ns = now_ns;
    look.last_ns = 0;
}

void kp_residents_note(void)
{
    kp_windowlist_note(&out);
    kp_windowlist_note(&addresses);
    kp_windowlist_note(&files);
}

/* A value that is not known is left out. */
static void entry_add(struct kp_windowlist *list, uint64_t step, uint64_t value)
{
    char entry[KP_WINDOWLIST_ENTRY];
    if (!value) return;
    kp_fmt(entry, sizeof entry, "%lu:%lu", (unsigned long)step, (unsigned long)value);
    kp_windowlist_add(list, entry);
}

void kp_residents_step(uint64_t step, uint64_t now_ns)
{
    const uint64_t part_ns = (now_ns - look.begin_ns) / LOOKS_PART;
    if (look.last_ns && now_ns - look.last_ns < (part_ns > LOOK_NS ? part_ns : LOOK_NS)) return;
    look.last_ns = now_ns;
    uint64_t reserved, resident = kp_io_resident(&reserved);
    entry_add(&out, step, resident / 1024);
    entry_add(&addresses, step, reserved / 1024);
    entry_add(&files, step, kp_io_open_files());
}
