// SPDX-License-Identifier: Apache-2.0
/*
 * dlfollow.c - follows the host's dlopen calls without becoming their caller
 *
 * Called by: the taps (tap_ARCH.S) on any host thread, before a dl function; dltaps.c (start); the writer's tick
 * Owns:      the taps of the dl functions, the flag `scanning`
 * Locks:     `scanning`, waited for at most WAIT_MAX_US, and then gone without
 * Memory:    none of its own; about 3 KB of stack
 * On fail:   a scan that cannot be made now is made at the next dl call or tick
 * Safe in:   signal handlers no (nor is dlsym); after fork: the child's gate is shut, it passes through
 *
 * When is it too early, when too late? A module is complete when its dlopen returns, but at that point nobody calls
 * us. Importers call dlsym for the module's init function next, on the same thread: that is the moment to look. The
 * tap on dlopen only says that something may come (and uses the chance to look for what came before).
 *
 * Deadlocks. The loader has two locks, both recursive: the load lock (held by dlopen for all it does, constructors
 * included, and by dlsym) and the list lock (held for moments, and by dl_iterate_phdr while it calls back).
 *   - dlsym in a constructor: this thread holds the load lock. Our dlopen(RTLD_NOLOAD) takes it again: fine.
 *   - dlsym elsewhere while another thread is inside dlopen: our dlopen(RTLD_NOLOAD) waits for it, as the host's own
 *     dlsym would a moment later. So that nobody waits for us in turn, `scanning` is not a lock: a thread in a
 *     constructor that finds it taken sleeps a bounded while (the other may be waiting for this very thread) and
 *     goes on; what it came for is then found at its next dl call, or by the one who waited.
 *   - the list lock is never held across a call that takes the load lock.
 *
 * The error that dlerror() reports: each dl function clears it on entry, and a tap is always followed by one, so what
 * our own dl calls leave is not seen. kp_hook_scan runs on our own thread.
 */
#include "preload/hook/taps.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_gate.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"
#include "preload/hook/modules.h"
#include "preload/hook/words.h"
#include "preload/run.h"
#include "collector/base/kp_otherlibc.h"
#include "collector/base/kp_poison.h"

enum { WAIT_MAX_US = 50000, WAIT_STEP_US = 50 };

/* Read and set by the taps. */
_Atomic int kp_hook_credit;
void *kp_hook_real_dlopen, *kp_hook_real_dlmopen, *kp_hook_real_dlsym, *kp_hook_real_dlvsym;

static struct kp_tap taps[KP_HOOK_DL_TAPS];
static bool is_started;
static atomic_flag scanning = ATOMIC_FLAG_INIT;
static _Atomic bool is_telling; /* the list of modules is up to date, what they bring is not attached yet */
static _Thread_local bool is_inside __attribute__((tls_model("initial-exec")));

/* What the loader allocates for us meanwhile is not the host's. */
static void set_inside(bool is)
{
    static _Thread_local bool was_ours __attribute__((tls_model("initial-exec")));
    if (is) was_ours = kp_in_profiler;
    kp_in_profiler = is || was_ours;
    is_inside = is;
}

/* false: this thread is inside a hook or a scan, or this process is not ours (a forked child). */
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

/* `scanning` is ours and stays so while boot.c attaches: another thread's dlsym waits until that is done. */
static void scan_and_tell(void)
{
    kp_store_relaxed(&is_telling, true); /* kp_modules_apply makes it known */
    if (is_started) {
        int err = kp_modules_apply(taps, KP_HOOK_DL_TAPS, false);
        if (err) KP_LOG_ONCE(0, "the list of modules is not complete (error %d): a late torch may go unnoticed", -err);
    }
    kp_run_modules_changed();
    kp_store_release(&is_telling, false); /* pairs with: scan_if_changed */
}

/*
 * Host threads come here at places where they cannot be cancelled without us, so they cannot be with us either. One
 * that looks for a function of a library which another thread is attaching just now waits, too: it is about to call it.
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

/* The turn is taken before the loader is asked anything, so that kp_hook_before_fork keeps this thread out of its
 * locks. */
void kp_hook_scan(void)
{
    if (!may_scan() || atomic_flag_test_and_set_explicit(&scanning, memory_order_acquire)) return;
    set_inside(true);
    if (kp_modules_changed()) scan_and_tell();
    set_inside(false);
    atomic_flag_clear_explicit(&scanning, memory_order_release);
}

bool kp_hook_before_fork(void) { return !is_inside && take_turn(); }

void kp_hook_after_fork(void) { atomic_flag_clear_explicit(&scanning, memory_order_release); }

void kp_hook_begin_in_child(void)
{
    if (is_inside) return;
    kp_store_relaxed(&is_telling, false);
    atomic_flag_clear_explicit(&scanning, memory_order_release);
}

void kp_hook_note(void)
{
    if (!may_scan()) return;
    int credit = kp_load_relaxed(&kp_hook_credit);
    if (credit > 0) kp_store_relaxed(&kp_hook_credit, credit - 1); /* an update lost to another thread is no harm */
    scan_if_changed();
}

/* A source's attach() runs in a scan: then the turn is this thread's already. */
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

int kp_hook_remove_taps(const struct kp_tap *set, uint32_t tap_count)
{
    bool took;
    if (!tap_count) return 0;
    if (!may_change_taps(&took)) return -EBUSY;
    kp_modules_undo(set, tap_count);
    changed_taps(took);
    return 0;
}

int kp_hook_follow(const struct kp_tap *dl_taps)
{
    memcpy(taps, dl_taps, sizeof taps);
    is_started = true;
    return kp_modules_apply(taps, KP_HOOK_DL_TAPS, false);
}
