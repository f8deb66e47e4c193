// SPDX-License-Identifier: Apache-2.0
/*
 * childends.c - notes how child processes ended, as waitpid tells this process: what a launcher knows of its ranks
 *
 * Called by: host threads in waitpid and wait4 (taps, installed by single_thread.c); finish.c at exit
 * Owns:      nothing: endlist.c has the ends
 * Locks:     none
 * Memory:    never allocates
 * On fail:   kprof why does not know the signal
 * Safe in:   signal handlers yes; after fork: kp_endlist_forget comes first
 *
 * A rank that SIGKILL or a fault ends writes nothing, and its launcher is its only parent: torchrun, or a program that
 * imports torch, runs no op and starts ranks. Other programs run commands that fail and are no part of a job.
 */
#include "preload/finish/childends.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/procfacts/procfacts.h"
#include "preload/run.h"
#include "preload/finish/endlist.h"
#include "preload/window/sources.h"
#include "collector/base/kp_poison.h"

enum { PATH_BYTES = 4400 };

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

const struct kp_tap_row kp_childends_rows[KP_CHILDENDS_ROWS] = {
    {"waitpid", (void **)(void *)&real_waitpid, (void *)(uintptr_t)tap_waitpid},
    {"wait4", (void **)(void *)&real_wait4, (void *)(uintptr_t)tap_wait4},
};

void kp_childends_write(void)
{
    char text[KP_ENDLIST_MAX * KP_ENDLIST_LINE], path[PATH_BYTES];
    struct utsname host;
    if (!kp_endlist_has_any()) return; /* first: a program in a sandbox may open no file */
    const bool is_starter = kp_procfacts_is_launcher() || !kp_sources_had_activity();
    const size_t used = is_starter ? kp_endlist_text(text, sizeof text) : 0;
    if (!used || kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE) < 0) return;
    if (kp_io_host(&host) != 0) host.nodename[0] = '\0';
    kp_fmt(path, sizeof path, "%s/%s_%d.ends", kp_run_out_dir(), host.nodename, (int)getpid());
    const int fd = kp_io_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, KP_IO_FILE_MODE);
    if (fd < 0) return;
    (void)kp_io_write_all(fd, text, used);
    kp_io_close(fd);
}
