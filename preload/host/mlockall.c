// SPDX-License-Identifier: Apache-2.0
/*
 * mlockall.c - keeps our memory out of the host's mlockall
 *
 * Called by: host threads in mlockall (a tap, installed with those of getenv.c)
 * Owns:      nothing
 * Locks:     none
 * Memory:    2 KB of stack
 * On fail:   the host gets the kernel's result, with our memory counted
 * Safe in:   after fork and vfork: passes the call on if this process is not the owner
 *
 * mlockall fails if all mapped memory is more than the user may lock (RLIMIT_MEMLOCK, often 8 MB). Locked memory also
 * counts for later locks. If the call is refused because of our memory, the tap locks the host's maps one by one. If it
 * is granted, the tap unlocks our memory, and io_memory.c unlocks what is mapped later. Stacks of helper threads count
 * as the host's.
 */
#include "preload/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_helper_threads.h"
#include "collector/base/elf/kp_modulepath.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

/* Begin and end of this library in memory: its ELF header and the end of .bss. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));
enum { REST_MS = 300 };

struct own_range {
    uintptr_t from, to;
};

/* Iterates over our ranges of memory, in no order. */
static bool ours_next(uint32_t *at, struct own_range *out)
{
    const uint32_t i = (*at)++;
    if (i == 0) {
        const uintptr_t rest = (uintptr_t)sysconf(_SC_PAGESIZE) - 1; /* 64 KB on some AArch64 */
        *out = (struct own_range){(uintptr_t)__ehdr_start & ~rest, ((uintptr_t)_end + rest) & ~rest};
        return true;
    }
    if (i <= KP_MAP_LARGE_MAX) return kp_map_large(i - 1, &out->from, &out->to) || ours_next(at, out);
    return kp_record_piece(i - 1 - KP_MAP_LARGE_MAX, &out->from, &out->to);
}

static uint64_t ours_sum(void)
{
    struct own_range r;
    uint64_t sum = 0;
    for (uint32_t at = 0; ours_next(&at, &r);) sum += r.to - r.from;
    return sum;
}

static void ours_unlock(void)
{
    struct own_range r;
    for (uint32_t at = 0; ours_next(&at, &r);) kp_io_unlock_pages((void *)r.from, r.to - r.from);
}

/* The first part of [from, to) that is not ours; empty: none. */
static struct own_range hosts_first(uintptr_t from, uintptr_t to)
{
    struct own_range r, part = {from, to};
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t at = 0; ours_next(&at, &r);)
            if (part.from >= r.from && part.from < r.to) part.from = r.to, moved = true;
    }
    for (uint32_t at = 0; ours_next(&at, &r);)
        if (r.from > part.from && r.from < part.to) part.to = r.from;
    return part;
}

/* As mlockall does: locks on fault, which checks the limit, then populates. Some pages cannot be populated (guard
 * pages, truncated files), which is no error. */
static int part_lock(struct own_range part, bool is_on_fault)
{
    const int rc = kp_io_lock_pages((void *)part.from, part.to - part.from, true);
    if (rc == 0 && !is_on_fault) (void)kp_io_lock_pages((void *)part.from, part.to - part.from, false);
    return rc;
}

static int hosts_lock(uintptr_t from, uintptr_t to, bool is_on_fault)
{
    int rc = 0;
    for (struct own_range part = hosts_first(from, to); rc == 0 && part.from < part.to; part = hosts_first(part.to, to))
        rc = part_lock(part, is_on_fault);
    return rc;
}

struct hosts_locking {
    bool is_on_fault;
    int rc;
};

static bool mapping_lock(const struct kp_mapping *m, void *of)
{
    struct hosts_locking *const l = of;
    if (!(m->low >> 63)) l->rc = hosts_lock(m->low, m->high, l->is_on_fault); /* the vsyscall page is the kernel's */
    return l->rc != 0;
}

/* Locks the host's part of each mapping. */
static int hosts_lock_all(bool is_on_fault)
{
    struct hosts_locking locking = {is_on_fault, 0};
    const int rc = kp_mappings_look("/proc/self/maps", mapping_lock, &locking);
    return rc < 0 ? rc : locking.rc;
}

static int (*real_mlockall)(int flags);

/* Is the host's memory without ours within the limit? */
static bool fits_alone(void)
{
    const uint64_t all = kp_io_addresses(), ours = ours_sum();
    return all > ours && all - ours <= kp_io_lock_limit();
}

/* Pauses helper threads: memory that they map is not listed at once. */
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

const struct kp_tap_row kp_locks_rows[KP_LOCKS_ROWS] = {KP_TAP_ROW("mlockall", mlockall)};
