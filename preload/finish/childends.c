// SPDX-License-Identifier: Apache-2.0
/*
 * childends.c - notes how child processes ended, as waitpid tells this process, and how this process ends itself
 *
 * Called by: host threads in waitpid and its like (taps, installed by single_thread.c); execs.c; finish.c at exit
 * Owns:      nothing: endlist.c has the ends
 * Locks:     none
 * Memory:    never allocates
 * On fail:   kprof why does not know how they ended
 * Safe in:   signal handlers yes; after fork: kp_endlist_forget comes first
 *
 * A rank that SIGKILL or a fault ends writes nothing, and its launcher is its only parent: torchrun, or a program that
 * imports torch, runs no op and starts ranks. Other programs run commands that fail and are no part of a job. But a
 * worker that crashed shortly before a program failed may be why it did.
 * A trace of a window that was over before the program's end cannot tell that end: its own line does. A program
 * without a trace writes none: it may be in a sandbox by now.
 */
#include "preload/finish/childends.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/format/kp_ends.h"
#include "collector/record/kp_record.h"
#include "preload/procfacts/procfacts.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "preload/procfacts/endlist.h"
#include "preload/window/sources.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { PATH_BYTES = 4400, OWN_BYTES = KP_ENDS_LINE_BYTES, EARLIER_BYTES = 4096 };
#define SHORTLY_NS UINT64_C(30000000000)

static void look(pid_t pid, const int *status)
{
    if (kp_endlist_is_bad((int)pid, status) && kp_run_is_owner())
        kp_endlist_add((int)pid, *status, kp_clock_ns(CLOCK_REALTIME));
}

static pid_t (*real_waitpid)(pid_t pid, int *status, int options);
static pid_t tap_waitpid(pid_t pid, int *status, int options)
{
    const pid_t gone = real_waitpid(pid, status, options);
    look(gone, status);
    return gone;
}

static pid_t (*real_wait4)(pid_t pid, int *status, int options, struct rusage *used);
static pid_t tap_wait4(pid_t pid, int *status, int options, struct rusage *used)
{
    const pid_t gone = real_wait4(pid, status, options, used);
    look(gone, status);
    return gone;
}

static pid_t (*real_wait)(int *status);
static pid_t tap_wait(int *status)
{
    const pid_t gone = real_wait(status);
    look(gone, status);
    return gone;
}

static pid_t (*real_wait3)(int *status, int options, struct rusage *used);
static pid_t tap_wait3(int *status, int options, struct rusage *used)
{
    const pid_t gone = real_wait3(status, options, used);
    look(gone, status);
    return gone;
}

/* A child that it only looks at (WNOWAIT) is told by the call that takes it. */
static int (*real_waitid)(idtype_t which, id_t id, siginfo_t *told, int options);
static int tap_waitid(idtype_t which, id_t id, siginfo_t *told, int options)
{
    const int rc = real_waitid(which, id, told, options);
    if (rc != 0 || !told || (options & WNOWAIT)) return rc;
    const bool has_exited = told->si_code == CLD_EXITED, has_dumped = told->si_code == CLD_DUMPED;
    const int status = has_exited ? (told->si_status & 0xff) << 8 : told->si_status;
    if (has_exited || has_dumped || told->si_code == CLD_KILLED) look(told->si_pid, &status);
    return rc;
}

const struct kp_tap_row kp_childends_rows[KP_CHILDENDS_ROWS] = {
    KP_TAP_ROW("waitpid", waitpid), KP_TAP_ROW("wait4", wait4),   KP_TAP_ROW("wait", wait),
    KP_TAP_ROW("wait3", wait3),     KP_TAP_ROW("waitid", waitid),
};

/* `way`: "exec of sh", "_exit with status 3"; "": by its exit. */
static size_t own_text(char *text, size_t bytes, int status, const char *way)
{
    static const struct kp_run_exception none;
    const struct kp_rank place = kp_run_rank();
    const struct kp_run_exception *const e = kp_run_exception() ? kp_run_exception() : &none;
    const int rank = place.is_launched || place.size > 1 ? (int)place.rank : -1;
    return kp_fmt(text, bytes, "%d %d %lu %d %ld\t%s%s%s\t%s\t%s\t%s%s%s\n", (int)getpid(), status,
                  (unsigned long)kp_clock_ns(CLOCK_REALTIME), rank,
                  status == KP_ENDS_PENDING ? -1L : (long)kp_steps_seen() - 1, e->name, *e->text ? ": " : "", e->text,
                  e->place, e->has_lost_peer ? "lost_peer" : "", way, *e->root ? "\t" : "", e->root);
}

/* The line of a program that became this one, by exec: "42 0 ... <tab> exec of python3". */
static bool is_of_exec(const char *line, const char *end)
{
    const size_t bytes = sizeof KP_ENDS_EXEC - 1;
    const char *last = end;
    while (last > line && last[-1] != '\t') last--;
    return last > line && (size_t)(end - last) > bytes && memcmp(last, KP_ENDS_EXEC, bytes) == 0;
}

/* How much of the file such lines take, which this program leaves there. */
static size_t earlier_find(int fd)
{
    static _Atomic uint64_t found; /* the process, and that number */
    const uint64_t self = (uint64_t)(uint32_t)getpid() << 32, word = kp_load_relaxed(&found);
    char text[EARLIER_BYTES];
    if ((word & ~UINT64_C(0xffffffff)) == self) return (size_t)(word - self);
    const ssize_t n = kp_io_pread(fd, text, sizeof text, 0);
    const char *at = text, *const until = text + (n > 0 ? n : 0), *end;
    while ((end = memchr(at, '\n', (size_t)(until - at))) && is_of_exec(at, end)) at = end + 1;
    const size_t bytes =
        at - text < EARLIER_BYTES - OWN_BYTES ? (size_t)(at - text) : 0; /* one that goes on so for ever */
    kp_store_relaxed(&found, self | bytes);
    return bytes;
}

static void text_keep(const char *text, size_t bytes)
{
    char path[PATH_BYTES];
    char host[KP_IO_HOST_BYTES];
    if (kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE) < 0) return;
    kp_io_host_name(host);
    kp_fmt(path, sizeof path, "%s/%s_%d.ends", kp_run_out_dir(), host, (int)getpid());
    const int fd = kp_io_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, KP_IO_FILE_MODE);
    if (fd < 0) return;
    const off_t at = (off_t)earlier_find(fd);
    if (kp_io_truncate(fd, at) == 0) (void)kp_io_pwrite_all(fd, text, bytes, at);
    kp_io_close(fd);
}

static _Atomic int awaiting; /* the process whose file says that it goes on */

void kp_childends_await(void)
{
    char text[OWN_BYTES];
    const int self = (int)getpid();
    if (kp_run_is_worker() || kp_exchange_acq_rel(&awaiting, self) == self) return;
    text_keep(text, own_text(text, sizeof text, KP_ENDS_PENDING, ""));
}

bool kp_childends_awaits(void)
{
    const int waits = kp_load_relaxed(&awaiting); /* first: a sandbox may forbid getpid */
    return waits && waits == (int)getpid();
}

void kp_childends_way(const char *way, int status)
{
    char text[OWN_BYTES];
    text_keep(text, own_text(text, sizeof text, status, way));
}

/* "exit status 1 at train.py:41 main", where sys.exit() was called. */
static size_t exit_text(char text[OWN_BYTES])
{
    char way[512] = "";
    const int status = kp_run_exit_status();
    const char *const place = kp_lastexception_leave(status);
    if (*place) kp_fmt(way, sizeof way, "exit status %d%s", status, place);
    return own_text(text, OWN_BYTES, status << 8, way);
}

void kp_childends_write(bool is_told, bool has_trace)
{
    char text[KP_ENDLIST_MAX * KP_ENDLIST_LINE + OWN_BYTES];
    const bool is_untold = !is_told && !kp_run_is_worker() && has_trace;
    const bool has_own = is_untold || kp_childends_awaits();
    size_t used = 0;
    if (!has_own && !kp_endlist_has_any()) return; /* first: a program in a sandbox may open no file */
    if (kp_procfacts_is_launcher() || !kp_sources_had_activity()) used = kp_endlist_text(text, sizeof text - OWN_BYTES);
    else if (kp_run_exit_status())
        used = kp_endlist_crashes(text, sizeof text - OWN_BYTES, kp_clock_ns(CLOCK_REALTIME) - SHORTLY_NS);
    if (has_own) used += exit_text(text + used);
    if (used) text_keep(text, used);
}
