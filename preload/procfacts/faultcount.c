// SPDX-License-Identifier: Apache-2.0
/*
 * faultcount.c - notes in the spool how many page faults the thread of the steps takes, and what one costs here
 *
 * Called by: procfacts.c (a window opens and closes, a trace is written), baresteps.c (a step ends), by the thread
 *            that steps
 * Owns:      the counts of the window that records, and of the steps before it
 * Locks:     none of its own; window_lock guards the counts
 * Memory:    256 KB for some 0.1 ms, once, where a window had many faults
 * On fail:   the note is missing, and nothing is advised
 *
 * Only this thread's faults make a step longer: those of other threads are beside it, and those of the helper threads
 * are ours.
 */
#include "preload/procfacts/faultcount.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "collector/base/kp_poison.h"

enum { BARE = 32, MANY = 256, PAGE = 4096, PAGES = 64, ROUNDS = 4 }; /* many: 1 MB a step */

static struct {
    pthread_t thread;
    struct kp_io_faults last, all; /* at the last step's end; of the steps since the window's begin */
    uint32_t steps, many;
    bool is_counting, has_last;
    uint64_t bare[BARE]; /* a ring */
    uint64_t bare_count; /* since the last window */
} now;
static _Atomic bool is_cost_wanted, is_cost_noted;

void kp_faultcount_forget(void) { memset(&now, 0, sizeof now); }

static bool look(void)
{
    now.has_last = kp_io_faults(&now.last) == 0;
    return now.has_last;
}

void kp_faultcount_begin(bool is_step)
{
    now.thread = pthread_self();
    now.all = (struct kp_io_faults){0};
    now.steps = now.many = 0;
    now.has_last = false;
    now.is_counting = !is_step || look();
}

/* Nothing was recorded in it. */
static void bare_count(void)
{
    const uint64_t before = now.last.minor;
    const bool had_last = now.has_last && pthread_equal(now.thread, pthread_self());
    now.thread = pthread_self();
    if (look() && had_last) now.bare[now.bare_count++ % BARE] = now.last.minor - before;
}

/* False: another thread steps now, or the kernel tells nothing. */
static bool recorded_count(void)
{
    const struct kp_io_faults before = now.last;
    const bool had_last = now.has_last;
    now.has_last = false;
    if (!now.is_counting || !pthread_equal(now.thread, pthread_self()) || !look()) return false;
    if (!had_last) return true;
    now.all.minor += now.last.minor - before.minor;
    now.all.major += now.last.major - before.major;
    now.steps++;
    now.many += now.last.minor - before.minor >= MANY;
    return true;
}

void kp_faultcount_step(bool is_bare)
{
    if (is_bare) bare_count();
    else now.is_counting = recorded_count();
}

/* Few numbers, so each is compared with all. */
uint64_t kp_faultcount_median(const uint64_t *of, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t less = 0, equal = 0;
        for (size_t k = 0; k < count; k++) less += of[k] < of[i], equal += of[k] == of[i];
        if (less <= count / 2 && less + equal > count / 2) return of[i];
    }
    return 0;
}

void kp_faultcount_note(uint32_t window)
{
    char key[24], value[96];
    const bool is_known = now.is_counting && now.steps && pthread_equal(now.thread, pthread_self());
    now.is_counting = false;
    if (!is_known) return;
    kp_fmt(key, sizeof key, "faults.%u", window);
    const size_t bare = now.bare_count < BARE ? (size_t)now.bare_count : BARE;
    const uint64_t bare_minor = kp_faultcount_median(now.bare, bare);
    now.bare_count = 0;
    kp_fmt(value, sizeof value, "%u,%u,%lu,%lu,%lu,%lu", now.steps, now.many, (unsigned long)now.all.minor,
           (unsigned long)now.all.major, (unsigned long)bare, (unsigned long)bare_minor);
    (void)kp_record_note(key, value); /* on failure the trace says nothing of it */
    if (now.many || bare_minor >= MANY) kp_store_relaxed(&is_cost_wanted, true);
}

/* Least of a few rounds: another program may have had the core in one. 0: not known. */
static uint64_t cost_measure(void)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        void *pages;
        if (kp_io_mmap(&pages, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != 0) break;
        const uint64_t begin = kp_clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < PAGES; i++) ((volatile char *)pages)[i * PAGE] = 1; /* volatile: the store is the fault */
        const uint64_t ns = (kp_clock_ns(CLOCK_MONOTONIC) - begin) / PAGES;
        if (ns < least) least = ns;
        (void)kp_io_munmap(pages, PAGES * PAGE);
    }
    return least == UINT64_MAX ? 0 : least;
}

void kp_faultcount_note_cost(void)
{
    char value[24];
    if (!kp_load_relaxed(&is_cost_wanted) || kp_exchange_acq_rel(&is_cost_noted, true)) return;
    kp_fmt(value, sizeof value, "%lu", (unsigned long)cost_measure());
    (void)kp_record_note("fault_ns", value);
}
