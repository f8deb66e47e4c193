// SPDX-License-Identifier: Apache-2.0
/*
 * single_thread.c - pauses helper threads while the host makes a call that needs a single-threaded process
 *
 * Called by: host threads in set*id, unshare, setns and fstatat (taps); begin.c (installs them, those of
 *            confine.c, selfsignal.c and childends.c when a run begins)
 * Owns:      the set of taps, which is never removed
 * Locks:     none (helper_threads.c has a flag)
 * On fail:   the call is made while helper threads run
 * Safe in:   after fork and vfork: passes the call on if this process is not the owner
 */
#include "preload/host/host.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_helper_threads.h"
#include "preload/run.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

enum { REST_MS = 300 };

static bool begin(void)
{
    if (!kp_run_is_active() || !kp_run_is_owner()) return false;
    int saved = errno;
    bool is_rest = kp_helpers_pause(REST_MS);
    errno = saved;
    return is_rest;
}

static int end(bool is_rest, int result)
{
    int saved = errno;
    if (is_rest) kp_helpers_resume();
    errno = saved;
    return result;
}

/* A row for each function: its name, its parameters, its arguments. */
#define ROWS(ROW)                                          \
    ROW(setuid, (uid_t a), (a))                            \
    ROW(seteuid, (uid_t a), (a))                           \
    ROW(setreuid, (uid_t a, uid_t b), (a, b))              \
    ROW(setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c)) \
    ROW(setgid, (gid_t a), (a))                            \
    ROW(setegid, (gid_t a), (a))                           \
    ROW(setregid, (gid_t a, gid_t b), (a, b))              \
    ROW(setresgid, (gid_t a, gid_t b, gid_t c), (a, b, c)) \
    ROW(setgroups, (size_t a, const gid_t *b), (a, b))     \
    ROW(initgroups, (const char *a, gid_t b), (a, b))      \
    ROW(unshare, (int a), (a))                             \
    ROW(setns, (int a, int b), (a, b))
#define TAP(name, parameters, arguments)            \
    static int(*real_##name) parameters;            \
    static int tap_##name parameters                \
    {                                               \
        bool is_rest = begin();                     \
        return end(is_rest, real_##name arguments); \
    }
ROWS(TAP)

/*
 * Is this the path of the process's task folder? A program checks by its link count (2 plus the threads) that it has
 * one thread, as Chromium's zygote before it forks. Helper threads are paused during that call.
 */
static bool is_own_tasks(const char *path)
{
    static const char tasks[] = "self/task";
    size_t n = strlen(path);
    if (n && path[n - 1] == '/') n--;
    return n >= sizeof tasks - 1 && memcmp(path + n - (sizeof tasks - 1), tasks, sizeof tasks - 1) == 0;
}

static int (*real_fstatat)(int folder, const char *path, void *answer, int flags);
static int tap_fstatat(int folder, const char *path, void *answer, int flags)
{
    const int result = real_fstatat(folder, path, answer, flags);
    if (result != 0 || !path || !is_own_tasks(path) || !begin()) return result;
    return end(true, real_fstatat(folder, path, answer, flags));
}

#define ENTRY(name, ...) KP_TAP_ROW(#name, name),
static const struct kp_tap_row own_rows[] = {ROWS(ENTRY) ENTRY(fstatat) KP_TAP_ROW("fstatat64", fstatat)};
enum { OWN_ROWS = sizeof own_rows / sizeof *own_rows };
/* Not in confine.c, because the assembly calls confine.c: that would be a circle. */
static const struct kp_tap_row syscall_row = {"syscall", &kp_confine_real_syscall,
                                              (void *)(uintptr_t)kp_confine_tap_syscall};
static struct kp_tap taps[OWN_ROWS + KP_CONFINE_ROWS + KP_SOLO_MORE + 1];
static uint32_t tap_count;

static void find(const struct kp_tap_row *rows, uint32_t count)
{
    tap_count += kp_hook_rows_find(NULL, rows, count, taps + tap_count);
}

/* Adds all taps as one set, since each set costs a scan of all modules. */
void kp_solo_install(const struct kp_tap_row *more, uint32_t count)
{
    if (tap_count) return; /* in a child the taps are installed already */
    find(own_rows, OWN_ROWS);
    find(kp_confine_rows, KP_CONFINE_ROWS);
    find(more, count <= KP_SOLO_MORE ? count : KP_SOLO_MORE);
    find(&syscall_row, 1);
    if (tap_count && kp_hook_add_taps(taps, tap_count) != 0)
        kp_log(1, "setuid and unshare could not be hooked: they may fail beside the profiler's threads");
}
