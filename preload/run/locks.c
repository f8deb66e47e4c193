// SPDX-License-Identifier: Apache-2.0
/*
 * locks.c - a host that locks its memory finds ours neither counted nor locked
 *
 * Called by: host threads in mlockall (a tap, put in with those of getenv.c)
 * Owns:      nothing
 * Locks:     none of its own
 * Memory:    2 KB of stack
 * On fail:   the host has the kernel's answer, as it is with us there
 * Safe in:   after fork and vfork: passes on where the process is not ours
 *
 * mlockall compares all that is mapped with what an ordinary user may lock (RLIMIT_MEMLOCK, often 8 MB), and what it
 * locks counts for all that comes. So where it is refused, and would not be without us, the same is done map by map,
 * ours left out; where it is granted, ours is unlocked again, and so is what we map from then on (io.c). Stacks of our
 * threads are counted with the host's.
 */
#include "preload/run/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_helper_pause.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

/* This library, from its first byte to the end of its zeroed data. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));
enum { PAGE = 4096, REST_MS = 300 };

struct range {
    uintptr_t from, to;
};

/* The ranges that are ours, one after the other, in no order. */
static bool ours_next(uint32_t *at, struct range *out)
{
    const uint32_t i = (*at)++;
    if (i == 0) {
        *out = (struct range){(uintptr_t)__ehdr_start & ~(uintptr_t)(PAGE - 1),
                              ((uintptr_t)_end + PAGE - 1) & ~(uintptr_t)(PAGE - 1)};
        return true;
    }
    if (i <= KP_MAP_LARGE_MAX) return kp_map_large(i - 1, &out->from, &out->to) || ours_next(at, out);
    return kp_record_piece(i - 1 - KP_MAP_LARGE_MAX, &out->from, &out->to);
}

static uint64_t ours_sum(void)
{
    struct range r;
    uint64_t sum = 0;
    for (uint32_t at = 0; ours_next(&at, &r);) sum += r.to - r.from;
    return sum;
}

static void ours_unlock(void)
{
    struct range r;
    for (uint32_t at = 0; ours_next(&at, &r);) kp_io_unlock_pages((void *)r.from, r.to - r.from);
}

/* The part of [from, to) that comes first and is not ours; empty: none. */
static struct range hosts_first(uintptr_t from, uintptr_t to)
{
    struct range r, part = {from, to};
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t at = 0; ours_next(&at, &r);)
            if (part.from >= r.from && part.from < r.to) part.from = r.to, moved = true;
    }
    for (uint32_t at = 0; ours_next(&at, &r);)
        if (r.from > part.from && r.from < part.to) part.to = r.from;
    return part;
}

/* First what is refused beyond the limit; then the pages, of which some cannot be had (guards, files that were cut): as
 * mlockall does. */
static int part_lock(struct range part, bool is_on_fault)
{
    const int rc = kp_io_lock_pages((void *)part.from, part.to - part.from, true);
    if (rc == 0 && !is_on_fault) (void)kp_io_lock_pages((void *)part.from, part.to - part.from, false);
    return rc;
}

static int hosts_lock(uintptr_t from, uintptr_t to, bool is_on_fault)
{
    int rc = 0;
    for (struct range part = hosts_first(from, to); rc == 0 && part.from < part.to; part = hosts_first(part.to, to))
        rc = part_lock(part, is_on_fault);
    return rc;
}

static const char *hex_read(const char *p, uintptr_t *out)
{
    uintptr_t v = 0;
    for (; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++)
        v = v << 4 | (uintptr_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    *out = v;
    return p;
}

/* Calls for each line of /proc/self/maps: what begins a line is all that is asked. */
static int hosts_lock_all(bool is_on_fault)
{
    char text[1024];
    size_t kept = 0;
    int rc = 0, fd = kp_io_open("/proc/self/maps", O_RDONLY, 0);
    for (ssize_t n = fd < 0 ? -1 : 1; n > 0 && rc == 0;) {
        n = kp_io_read(fd, text + kept, sizeof text - 1 - kept);
        kept += n > 0 ? (size_t)n : 0;
        text[kept] = '\0';
        char *line = text, *end;
        for (; rc == 0 && (end = strchr(line, '\n')); line = end + 1) {
            uintptr_t from, to;
            const char *p = hex_read(line, &from);
            if (*p != '-' || from >> 63) continue; /* vsyscall: no memory of a process */
            hex_read(p + 1, &to);
            rc = hosts_lock(from, to, is_on_fault);
        }
        kept -= (size_t)(line - text);
        memmove(text, line, kept);
        if (kept == sizeof text - 1) kept = 0; /* a long path: the rest of it begins no line */
    }
    if (fd >= 0) kp_io_close(fd);
    return fd < 0 ? fd : rc;
}

static int (*real_mlockall)(int flags);

/* Refused for more than the limit: is it more without us? */
static bool fits_alone(void)
{
    const uint64_t all = kp_io_addresses(), ours = ours_sum();
    return all > ours && all - ours <= kp_io_lock_limit();
}

/* While our threads are away: they map, and what they map is not listed at once. */
static bool lock_alone(bool is_on_fault)
{
    const bool is_rest = kp_run_is_owner() && kp_helpers_pause(REST_MS);
    const bool is_done = fits_alone() && hosts_lock_all(is_on_fault) == 0;
    if (is_rest) kp_helpers_resume();
    return is_done;
}

static int tap_mlockall(int flags)
{
    const int result = real_mlockall(flags);
    int saved = errno;
    if (!kp_run_is_active()) return result;
    if (result == 0) {
        kp_io_keep_unlocked(flags & MCL_FUTURE);
        ours_unlock();
    } else if (saved == ENOMEM && flags & MCL_CURRENT && lock_alone(flags & MCL_ONFAULT)) {
        kp_io_keep_unlocked(flags & MCL_FUTURE);
        if (!(flags & MCL_FUTURE)) return 0;
        return real_mlockall(flags & ~MCL_CURRENT);
    }
    errno = saved;
    return result;
}

const struct kp_tap_row kp_locks_rows[KP_LOCKS_ROWS] = {
    {"mlockall", (void **)(void *)&real_mlockall, (void *)(uintptr_t)tap_mlockall}};
