// SPDX-License-Identifier: Apache-2.0
/*
 * dlfollow.c - notices the host's dlopen and dlsym calls without becoming their caller
 *
 * Called by: the taps (tap_ARCH.S) on any host thread, before a dl function; dltaps.c (start); the tick
 * Owns:      the taps of the dl functions, the flag `scanning`
 * Locks:     `scanning`, the turn: a thread waits for it at most WAIT_MAX_US, then goes on without a scan
 * Memory:    none; about 3 KB of stack
 * On fail:   a scan that cannot be made now is made at the next dl call or tick
 * Safe in:   signal handlers no (nor is dlsym); after fork: the child's gate is shut, calls pass through
 *
 * When to scan: a module is complete when its dlopen returns, but no tap runs then. Importers call dlsym for the
 * module's init function next, on the same thread, so the tap on dlsym scans. The tap on dlopen only notes that a
 * module may come, and scans for modules that came before.
 *
 * Deadlocks. The loader has two locks, both recursive: the load lock (held by dlopen for all it does, constructors
 * included, and by dlsym) and the list lock (held for moments, and by dl_iterate_phdr while it calls back).
 *   - dlsym in a constructor: this thread holds the load lock. Our dlopen(RTLD_NOLOAD) takes it again: fine.
 *   - dlsym elsewhere while another thread is inside dlopen: our dlopen(RTLD_NOLOAD) waits for that thread, as the
 *     host's own dlsym would a moment later. That thread may be in a constructor and come here too. So its wait for
 *     `scanning` has a bound: it then goes on without a scan. Its next dl call, or the thread that has the turn, finds
 *     the new module.
 *   - the list lock is never held across a call that takes the load lock.
 *   - a look before constructors (early.c): this thread holds the load lock. The thread that has the turn may be
 *     waiting for it, and lends the list of modules then (tap_modules.c).
 *
 * dlerror(): each dl function clears the thread's error on entry. A tap always jumps to a dl function, so the host
 * never sees the error of our own dl calls. kp_hook_scan runs on a helper thread.
 */
#include "preload/hook/taps.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"
#include "preload/hook/tap_modules.h"
#include "preload/hook/slot_rules.h"
#include "preload/run.h"
#include "collector/base/elf/kp_otherlibc.h"
#include "collector/base/kp_poison.h"

enum { WAIT_MAX_US = 50000, WAIT_STEP_US = 50 };

/* Read and set by the taps. */
_Atomic int kp_hook_credit;
void *kp_hook_real_dlopen, *kp_hook_real_dlmopen, *kp_hook_real_dlsym, *kp_hook_real_dlvsym;

static struct kp_tap taps[KP_HOOK_DL_TAPS];
static bool is_started;
static atomic_flag scanning = ATOMIC_FLAG_INIT;
static _Atomic bool is_telling; /* a scan is going on: sources may not be attached to the new modules yet */
static _Thread_local bool is_inside __attribute__((tls_model("initial-exec")));

/* kp_in_profiler keeps the loader's allocations for us out of the host's malloc records. */
static void set_inside(bool is)
{
    static _Thread_local bool was_ours __attribute__((tls_model("initial-exec")));
    if (is) was_ours = kp_in_profiler;
    kp_in_profiler = is || was_ours;
    is_inside = is;
}

/* false: this thread is inside a hook or a scan, or the gate is shut (a forked child, after exit). */
static bool may_scan(void)
{
    struct kp_thread *t = kp_thread_self;
    return (kp_gate_get() & KP_GATE_ON) && !is_inside && !(t && kp_load_relaxed(&t->inside));
}

static bool take_turn(void)
{
    for (unsigned waited = 0; waited < WAIT_MAX_US; waited += WAIT_STEP_US) {
        if (!atomic_flag_test_and_set_explicit(&scanning, memory_order_acquire)) return true;
        kp_io_nap(WAIT_STEP_US * 1000);
    }
    return false;
}

/* The caller holds `scanning`, also while begin.c attaches sources: another thread's dlsym waits for that. */
static void scan_and_tell(void)
{
    kp_store_relaxed(&is_telling, true); /* published by kp_modules_apply's release of last_adds */
    if (is_started) {
        int err = kp_modules_apply(taps, KP_HOOK_DL_TAPS, false);
        if (err)
            KP_LOG_ONCE(
                0,
                "the list of loaded libraries is not complete (%s): a torch that is loaded later may not be recorded",
                kp_log_error_text(err));
    }
    kp_run_modules_changed();
    kp_store_release(&is_telling, false); /* pairs with: scan_if_changed */
}

/*
 * dlsym is no cancellation point, so a host thread must not be cancelled here: cancellation is disabled. While another
 * thread attaches sources (is_telling), this thread waits too: it may be about to call a function of the new library.
 */
static void scan_if_changed(void)
{
    int cancel, saved = errno;
    set_inside(true);
    if (kp_modules_changed() || kp_load_acquire(&is_telling)) { /* pairs with: scan_and_tell */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        if (take_turn()) {
            if (kp_modules_changed()) scan_and_tell();
            atomic_flag_clear_explicit(&scanning, memory_order_release);
        }
        pthread_setcancelstate(cancel, NULL);
    }
    set_inside(false);
    errno = saved;
}

/* Takes the turn before it calls the loader: so kp_hook_before_fork keeps this thread out of the loader's locks. */
void kp_hook_scan(void)
{
    if (!may_scan() || atomic_flag_test_and_set_explicit(&scanning, memory_order_acquire)) return;
    set_inside(true);
    const bool is_asked = kp_run_take_look_again();
    if (is_asked || kp_modules_changed()) scan_and_tell();
    set_inside(false);
    atomic_flag_clear_explicit(&scanning, memory_order_release);
}

/* The turn, or what the thread that has it lends while it waits for the load lock, which this thread holds. */
static bool take_turn_or_borrow(bool *borrowed)
{
    for (unsigned waited = 0; waited < WAIT_MAX_US; waited += WAIT_STEP_US) {
        *borrowed = kp_modules_borrow();
        if (*borrowed || !atomic_flag_test_and_set_explicit(&scanning, memory_order_acquire)) return true;
        kp_io_nap(WAIT_STEP_US * 1000);
    }
    return false;
}

static void look_early(const void *inside)
{
    kp_modules_early(taps, KP_HOOK_DL_TAPS, true);
    kp_run_module_starts(inside);
    kp_modules_early(taps, KP_HOOK_DL_TAPS, false);
}

void kp_hook_before_init(const void *inside)
{
    int cancel, saved = errno;
    bool borrowed;
    if (!may_scan()) return;
    set_inside(true);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (kp_modules_arrived() && take_turn_or_borrow(&borrowed)) {
        look_early(inside);
        if (borrowed) kp_modules_return();
        else atomic_flag_clear_explicit(&scanning, memory_order_release);
    }
    pthread_setcancelstate(cancel, NULL);
    set_inside(false);
    errno = saved;
}

bool kp_hook_before_fork(void) { return !is_inside && take_turn(); }

void kp_hook_after_fork(void) { atomic_flag_clear_explicit(&scanning, memory_order_release); }

void kp_hook_forget(void)
{
    if (is_inside) return;
    kp_store_relaxed(&is_telling, false);
    kp_modules_forget();
    atomic_flag_clear_explicit(&scanning, memory_order_release);
}

void kp_hook_note(void)
{
    if (!may_scan()) return;
    int credit = kp_load_relaxed(&kp_hook_credit);
    if (credit > 0) kp_store_relaxed(&kp_hook_credit, credit - 1); /* losing an update to another thread is harmless */
    scan_if_changed();
}

/* In a source's attach(), which runs in a scan, this thread has the turn already. */
static bool may_change_taps(bool *took)
{
    *took = false;
    if (is_inside) return true;
    if (!(kp_gate_get() & KP_GATE_ON) || !take_turn()) return false;
    *took = true;
    set_inside(true);
    return true;
}

static void changed_taps(bool took)
{
    if (!took) return;
    set_inside(false);
    atomic_flag_clear_explicit(&scanning, memory_order_release);
}

typedef int (*take_fn)(const struct kp_tap *set, uint32_t tap_count);

static int add_taps(const struct kp_tap *set, uint32_t tap_count, take_fn take)
{
    bool took;
    if (!tap_count) return 0;
    if (!may_change_taps(&took)) return -EBUSY;
    int err = take ? take(set, tap_count) : 0;
    if (!err) err = kp_modules_add(set, tap_count, false);
    changed_taps(took);
    return err;
}

int kp_hook_add_taps(const struct kp_tap *set, uint32_t tap_count) { return add_taps(set, tap_count, NULL); }

int kp_hook_add_taps_own(const struct kp_tap *set, uint32_t tap_count)
{
    return add_taps(set, tap_count, kp_wanted_take_own);
}

int kp_hook_add_taps_common(const struct kp_tap *set, uint32_t tap_count)
{
    return add_taps(set, tap_count, kp_wanted_take_common);
}

int kp_hook_take_words(const struct kp_word_taker *taker)
{
    bool took;
    if (!may_change_taps(&took)) return -EBUSY;
    int err = kp_words_set_taker(taker);
    if (!err) err = kp_modules_take(false);
    changed_taps(took);
    return err;
}

int kp_hook_follow(const struct kp_tap *dl_taps)
{
    memcpy(taps, dl_taps, sizeof taps);
    is_started = true;
    return kp_modules_apply(taps, KP_HOOK_DL_TAPS, false);
}
