// SPDX-License-Identifier: Apache-2.0
/*
 * execs.c - notes as which program this one goes on, or that it leaves without an exit
 *
 * Called by: host threads in exec, _exit and abort (taps, installed by single_thread.c)
 * Owns:      the one word that is being written
 * Locks:     none; a second call meanwhile has no word
 * Memory:    never allocates; the list of execl and its like lies on the stack, as in glibc
 * On fail:   kprof why says "without an exit"
 * Safe in:   signal handlers yes; after fork and vfork: passes the call on if this process is not the owner
 *
 * A program that becomes another one by exec has no exit, nor has one that calls _exit or abort. The program that it
 * runs so is noted before: in its recording, and in HOST_PID.ends if a trace is written already. A call that comes back
 * takes the note away. Calls of glibc itself (abort of malloc) are not seen, but for assert, which is a function.
 */
#include "preload/finish/execs.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_crash.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_signalname.h"
#include "collector/format/kp_ends.h"
#include "collector/record/kp_record.h"
#include "preload/finish/childends.h"
#include "preload/finish/thrown.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { EXEC_BYTES = 480, HOW_BYTES = 240, WAIT_MS = 100 };

static char word[EXEC_BYTES];
static int word_status;
static _Atomic bool is_taken, is_written;

static void word_write(void)
{
    kp_childends_way(word, word_status);
    kp_store_release(&is_written, true); /* pairs with: execs.c:word_keep */
}

/* On kprof-tick: a disk that stands holds the program for 100 ms. */
static void word_keep(const char *text, int status)
{
    if (kp_exchange_acq_rel(&is_taken, true)) return; /* by another thread, or by a disk that stands */
    kp_fmt(word, sizeof word, "%s", text);
    word_status = status;
    kp_store_relaxed(&is_written, false);
    if (!kp_ticker_do(word_write, WAIT_MS)) word_write();
    for (uint32_t i = 0; i < WAIT_MS * 10 && !kp_load_acquire(&is_written); i++) kp_io_nap(100000);
    if (kp_load_acquire(&is_written))
        kp_store_release(&is_taken, false); /* pairs with: execs.c:word_write, word_keep */
}

/* "": the call came back. `status` as wait(2) has it. A process that vfork made is not the owner. */
static void note(const char *text, int status)
{
    const int kept = errno;
    if (kp_run_is_active() && kp_run_is_owner()) {
        if (kp_record_is_open()) (void)kp_record_note_try("exec", text);
        if (kp_childends_awaits()) word_keep(text, status);
    }
    errno = kept;
}

static void exec_note(const char *path)
{
    char text[EXEC_BYTES];
    kp_fmt(text, sizeof text, KP_ENDS_EXEC "%s", path ? kp_path_base(path) : "a program");
    note(text, 0);
}

static int came_back(int rc)
{
    note("", KP_ENDS_PENDING);
    return rc;
}

/* "_exit with status 3 at train.py:41 main", and whether another thread than the main one calls it. */
static void leave_note(const char *how, int status)
{
    char text[EXEC_BYTES];
    char place[KP_ENDPLACE_BYTES];
    const char *const beside = kp_io_tid() == (uint32_t)getpid() ? "" : " (not the main thread)";
    kp_endplace_put(place, sizeof place);
    kp_fmt(text, sizeof text, "%s%s%s", how, place, beside);
    note(text, status);
}

/* It is the usual end of a child that a program forks to run a function (multiprocessing). */
static void (*real_leave)(int status);
static _Noreturn void tap_leave(int status)
{
    char how[sizeof "_exit with status 255"];
    kp_fmt(how, sizeof how, "_exit with status %d", status & 0xff);
    if (kp_run_is_active() && kp_run_is_owner()) {
        (void)kp_lastexception_leave(status & 0xff);
        leave_note(how, (status & 0xff) << 8);
    }
    real_leave(status);
    __builtin_unreachable();
}

/* Torch names the two threads that end a rank whose collective takes too long: pt_nccl_watchdg and pt_nccl_heartbt. */
static bool is_watchdog(void)
{
    char name[16];
    kp_io_thread_name(name);
    return strncmp(name, "pt_nccl_", 8) == 0;
}

static bool is_noting(void) { return kp_run_is_active() && kp_run_is_owner(); }

static void fail_note(const char *how)
{
    if (!is_noting()) return;
    if (is_watchdog()) note(KP_ENDS_WATCHDOG, SIGABRT);
    else leave_note(how, SIGABRT);
}

static void (*real_fail)(void);
static _Noreturn void tap_fail(void)
{
    char how[HOW_BYTES] = "SIGABRT", thrown[HOW_BYTES - sizeof "SIGABRT of "] = "";
    if (is_noting()) kp_thrown_put(thrown, sizeof thrown, __builtin_return_address(0));
    if (*thrown) kp_fmt(how, sizeof how, "SIGABRT of %s", thrown);
    fail_note(how);
    real_fail();
    __builtin_unreachable();
}

static void (*real_assertion)(const char *what, const char *file, unsigned line, const char *function);
static _Noreturn void tap_assertion(const char *what, const char *file, unsigned line, const char *function)
{
    char how[HOW_BYTES];
    kp_fmt(how, sizeof how, "SIGABRT of assert() in %s:%u", file ? kp_path_base(file) : "?", line);
    fail_note(how);
    real_assertion(what, file, line, function);
    __builtin_unreachable();
}

void kp_execs_signal(int number)
{
    char how[sizeof "signal 64"];
    if (kp_crash_is(number) && is_noting()) leave_note(kp_signalname_put(number, how, sizeof how), number);
}

/* Called by functions of the program that find what lies behind their frame overwritten. glibc aborts then. */
static void (*real_smashed)(void);
static _Noreturn void tap_smashed(void)
{
    fail_note("SIGABRT of stack smashing");
    real_smashed();
    __builtin_unreachable();
}

static const char *named(char *const argv[]) { return argv && argv[0] ? argv[0] : "a program"; }

#define EXEC(name, path, parameters, arguments)  \
    static int(*real_##name) parameters;         \
    static int tap_##name parameters             \
    {                                            \
        exec_note(path);                         \
        return came_back(real_##name arguments); \
    }
EXEC(plain, path, (const char *path, char *const argv[]), (path, argv))
EXEC(found, path, (const char *path, char *const argv[]), (path, argv))
EXEC(given, path, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
EXEC(found_given, path, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
EXEC(opened, named(argv), (int fd, char *const argv[], char *const envp[]), (fd, argv, envp))
EXEC(at, path &&*path ? path : named(argv),
     (int folder, const char *path, char *const argv[], char *const envp[], int flags),
     (folder, path, argv, envp, flags))

/* How many arguments a list has behind its first. The caller's list is left at its NULL. */
static size_t list_length(const char *first, va_list list)
{
    size_t n = 0;
    while (first && va_arg(list, const char *)) n++;
    return n;
}

/* Calls `tap` with the list as an array on this stack: none of any other size is there. */
#define LIST(name, tap, MORE)                                                              \
    static int (*real_##name)(const char *path, const char *first, ...);                   \
    static int tap_##name(const char *path, const char *first, ...)                        \
    {                                                                                      \
        va_list list;                                                                      \
        va_start(list, first);                                                             \
        const size_t n = list_length(first, list);                                         \
        va_end(list);                                                                      \
        const char **const argv = __builtin_alloca((n + 2) * sizeof *argv);                \
        va_start(list, first);                                                             \
        argv[0] = first;                                                                   \
        for (size_t i = 1; first && i <= n + 1; i++) argv[i] = va_arg(list, const char *); \
        const int rc = tap MORE;                                                           \
        va_end(list);                                                                      \
        return rc;                                                                         \
    }
#define ARGV (char *const *)(uintptr_t)argv
LIST(plain_list, tap_plain, (path, ARGV))
LIST(found_list, tap_found, (path, ARGV))
LIST(given_list, tap_given, (path, ARGV, va_arg(list, char *const *)))

const struct kp_tap_row kp_execs_rows[KP_EXECS_ROWS] = {
    KP_TAP_ROW("execv", plain),
    KP_TAP_ROW("execvp", found),
    KP_TAP_ROW("execve", given),
    KP_TAP_ROW("execvpe", found_given),
    KP_TAP_ROW("fexecve", opened),
    KP_TAP_ROW("execveat", at),
    KP_TAP_ROW("execl", plain_list),
    KP_TAP_ROW("execlp", found_list),
    KP_TAP_ROW("execle", given_list),
    KP_TAP_ROW("_exit", leave),
    KP_TAP_ROW("_Exit", leave),
    KP_TAP_ROW("abort", fail),
    KP_TAP_ROW("__assert_fail", assertion),
    KP_TAP_ROW("__stack_chk_fail", smashed),
};
