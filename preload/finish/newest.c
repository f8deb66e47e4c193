// SPDX-License-Identifier: Apache-2.0
/*
 * newest.c - keeps the newest traces of this process
 *
 * Called by: finish.c, by the thread that writes traces
 * Owns:      the names of the traces that are there
 * Locks:     none: one thread writes traces at a time
 * Memory:    a name a trace, at most KPROF_KEEP
 * On fail:   without memory, or where a file cannot be removed, traces stay
 *
 * Only files that this process wrote are removed, and what `kprof run` made of them.
 */
#include "preload/finish/finish.h"

#include <stddef.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/kp_poison.h"

typedef char name_text[4096];
static name_text *names; /* a ring */
static uint64_t places, written;

void kp_newest_forget(void)
{
    names = NULL;
    places = written = 0;
}

/* NAME.pt.trace.json.gz and what lies beside it. */
static void files_remove(const char *path)
{
    static const char *const ends[] = {".table.txt", ".stacks.txt", ".memory.html", ".heap.zst"};
    char beside[4200];
    const char *const end = strstr(kp_path_base(path), ".pt.trace.json");
    (void)kp_io_unlink(path);
    for (size_t i = 0; end && i < sizeof ends / sizeof *ends; i++) {
        kp_fmt(beside, sizeof beside, "%s", path);
        kp_fmt(beside + (end - path), sizeof beside - (size_t)(end - path), "%s", ends[i]);
        (void)kp_io_unlink(beside);
    }
}

void kp_newest_note(const char *path, uint64_t most)
{
    if (!most) return;
    if (!names) {
        names = kp_map_alloc(most * sizeof *names);
        places = most;
    }
    if (!names) {
        KP_LOG_ONCE(0, "no memory for the names of KPROF_KEEP: all traces stay");
        return;
    }
    char *const place = names[written++ % places];
    if (*place) files_remove(place);
    kp_fmt(place, sizeof *names, "%s", path);
}
