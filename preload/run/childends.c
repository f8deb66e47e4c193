// SPDX-License-Identifier: Apache-2.0
/*
 * childends.c - notes how child processes ended, as waitpid tells this process: what a launcher knows of its ranks
 *
 * Called by: host threads in waitpid and wait4 (taps, installed by single_thread.c); finish.c at exit
 * Owns:      the first ENDS_MAX bad ends, in static memory
 * Locks:     none; a slot is taken by one addition
 * Memory:    never allocates
 * On fail:   kprof why does not know the signal
 * Safe in:   signal handlers yes; after fork: kp_childends_forget comes first
 *
 * A rank that SIGKILL or a fault ends writes nothing, and its launcher is its only parent: torchrun, or a program that
 * imports torch, runs no op and starts ranks. Other programs run commands that fail and are no part of a job.
 */
#include "preload/run/childends.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_clock.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/procfacts/procfacts.h"
#include "preload/run.h"
#include "preload/run/sources.h"
#include "collector/base/kp_poison.h"

enum { ENDS_MAX = 64, LINE_BYTES = 64, PATH_BYTES = 4400 };

static struct {
    uint64_t at_ns;
    int pid, status;
    _Atomic bool is_set;
} ends[ENDS_MAX];
static _Atomic uint32_t ends_taken;

static void look(pid_t pid, const int *status)
{
    if (pid <= 0 || !status || !(WIFSIGNALED(*status) || (WIFEXITED(*status) && WEXITSTATUS(*status)))) return;
    if (!kp_run_is_owner() || kp_load_relaxed(&ends_taken) >= ENDS_MAX) return;
    const uint32_t at = kp_add_relaxed(&ends_taken, 1);
    if (at >= ENDS_MAX) return;
    ends[at].pid = (int)pid;
    ends[at].status = *status;
    ends[at].at_ns = kp_clock_ns(CLOCK_REALTIME);
    kp_store_release(&ends[at].is_set, true); /* pairs with: childends.c:text_make */
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

const struct kp_tap_row kp_childends_rows[KP_CHILDENDS_ROWS] = {
    {"waitpid", (void **)(void *)&real_waitpid, (void *)(uintptr_t)tap_waitpid},
    {"wait4", (void **)(void *)&real_wait4, (void *)(uintptr_t)tap_wait4},
};

void kp_childends_forget(void)
{
    for (uint32_t i = 0; i < ENDS_MAX; i++) kp_store_relaxed(&ends[i].is_set, false);
    kp_store_relaxed(&ends_taken, 0);
}

/* A line for each: "PID STATUS NANOSECONDS", the status as wait(2) has it. */
static size_t text_make(char *text, size_t bytes)
{
    size_t used = 0;
    for (uint32_t i = 0; i < ENDS_MAX; i++) {
        if (!kp_load_acquire(&ends[i].is_set)) continue; /* pairs with: childends.c:look */
        used +=
            kp_fmt(text + used, bytes - used, "%d %d %lu\n", ends[i].pid, ends[i].status, (unsigned long)ends[i].at_ns);
    }
    return used;
}

void kp_childends_write(void)
{
    char text[ENDS_MAX * LINE_BYTES], path[PATH_BYTES];
    struct utsname host;
    const bool is_starter = kp_procfacts_is_launcher() || !kp_sources_had_activity();
    const bool is_wanted = kp_load_relaxed(&ends_taken) && is_starter;
    const size_t used = is_wanted ? text_make(text, sizeof text) : 0;
    if (!used || kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE) < 0) return;
    if (kp_io_host(&host) != 0) host.nodename[0] = '\0';
    kp_fmt(path, sizeof path, "%s/%s_%d.ends", kp_run_out_dir(), host.nodename, (int)getpid());
    const int fd = kp_io_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, KP_IO_FILE_MODE);
    if (fd < 0) return;
    (void)kp_io_write_all(fd, text, used);
    kp_io_close(fd);
}
