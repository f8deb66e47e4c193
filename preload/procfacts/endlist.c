// SPDX-License-Identifier: Apache-2.0
/*
 * endlist.c - a list of child processes that ended badly, as waitpid told
 *
 * Called by: childends.c, fork.c, wherechildren.c
 * Owns:      the first KP_ENDLIST_MAX bad ends, in static memory
 * Locks:     none; a slot is taken by one addition
 * Memory:    never allocates
 * Safe in:   signal handlers yes; after fork: kp_endlist_forget comes first
 *
 * It stands in a file of its own, as hangturn.c: its test links no part of the library that a program may not have.
 */
#include "preload/procfacts/endlist.h"

#include <sys/wait.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_crash.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

static struct {
    uint64_t at_ns;
    int pid, status;
    _Atomic bool is_set;
} ends[KP_ENDLIST_MAX];
static _Atomic uint32_t ends_taken;

bool kp_endlist_is_bad(int pid, const int *status)
{
    if (pid <= 0 || !status) return false;
    return WIFSIGNALED(*status) || (WIFEXITED(*status) && WEXITSTATUS(*status));
}

void kp_endlist_add(int pid, int status, uint64_t at_ns)
{
    if (kp_load_relaxed(&ends_taken) >= KP_ENDLIST_MAX) return;
    const uint32_t at = kp_add_relaxed(&ends_taken, 1);
    if (at >= KP_ENDLIST_MAX) return;
    ends[at].pid = pid;
    ends[at].status = status;
    ends[at].at_ns = at_ns;
    kp_store_release(&ends[at].is_set, true); /* pairs with: endlist.c:kp_endlist_text */
}

bool kp_endlist_has_any(void) { return kp_load_relaxed(&ends_taken) > 0; }

static bool is_crash(int status) { return WIFSIGNALED(status) && kp_crash_is(WTERMSIG(status)); }

static size_t lines_put(char *text, size_t bytes, uint64_t since_ns, bool only_crashes)
{
    size_t used = 0;
    for (uint32_t i = 0; i < KP_ENDLIST_MAX; i++) {
        if (!kp_load_acquire(&ends[i].is_set)) continue; /* pairs with: endlist.c:kp_endlist_add */
        if (ends[i].at_ns < since_ns || (only_crashes && !is_crash(ends[i].status))) continue;
        used +=
            kp_fmt(text + used, bytes - used, "%d %d %lu\n", ends[i].pid, ends[i].status, (unsigned long)ends[i].at_ns);
    }
    return used;
}

size_t kp_endlist_text(char *text, size_t bytes) { return lines_put(text, bytes, 0, false); }

size_t kp_endlist_crashes(char *text, size_t bytes, uint64_t since_ns)
{
    return lines_put(text, bytes, since_ns, true);
}

void kp_endlist_forget(void)
{
    for (uint32_t i = 0; i < KP_ENDLIST_MAX; i++) kp_store_relaxed(&ends[i].is_set, false);
    kp_store_relaxed(&ends_taken, 0);
}
