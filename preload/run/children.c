// SPDX-License-Identifier: Apache-2.0
/*
 * children.c - the mapped file that a process shares with its workers: the recording window, the workers' spools
 *
 * Called by: boot.c (constructor), begin.c (first op), fork.c, finish.c (exit); the thread kprof-follow of a worker
 * Owns:      KPROF_SPOOL_DIR/children/.HOST_PID-START.family, mapped: made at the first op of a process with
 *            KPROF_CHILDREN=1, removed at its exit
 * Locks:     none; the mapping has only atomic variables
 * On fail:   without the file children record independently; a spool that the table has no room for is left to kprof
 *            recover
 * Safe in:   after fork yes
 *
 * A worker is a process whose parent ran ops: forked from it, or started by its multiprocessing (spawn, forkserver).
 * Others (ranks that a launcher forks or spawns) record independently.
 *
 * A DataLoader worker sees no step. So a worker records while a window of the process that has the steps is open, until
 * the worker sees a step of its own. It checks 50 times a second. Without a schedule it records from its first op on.
 * Workers end by os._exit or are killed, so the process that has the steps exports their spools at its exit.
 */
#include "preload/run/children.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_filecheck.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "preload/run/window.h"
#include "preload/run/spools.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { SPOOLS_MAX = 4096, NAME_BYTES = 120, LOOK_NS = 20000000 };

struct family {
    int32_t pid;             /* the process that has the steps */
    _Atomic uint32_t window; /* number of the window that records, 0: none */
    _Atomic uint32_t spools; /* rows requested; may exceed SPOOLS_MAX */
    struct {
        _Atomic int32_t pid; /* 0: the name is not complete */
        char name[NAME_BYTES];
    } spool[SPOOLS_MAX];
};

static struct family *_Atomic family;
static const struct kp_config *settings;
static _Atomic bool is_refused; /* the folder for children cannot be used; that was logged */

static void family_name(char *name, size_t bytes, int32_t pid)
{
    struct utsname here; /* several hosts may share the folder */
    if (kp_io_host(&here) != 0) here.nodename[0] = '\0';
    kp_fmt(name, bytes, ".%s_%d-%lu.family", here.nodename, (int)pid, (unsigned long)kp_io_process_start(pid));
}

/*
 * Opens the folder `children` in `above`. It is refused if another user owns it or everybody may write to it: files in
 * it could then be replaced. -ENOENT: there is none.
 */
static int folder_open(const char *above)
{
    char path[4200];
    kp_fmt(path, sizeof path, "%s/children", above);
    const int fd = kp_filecheck_open_folder(path);
    if (fd == -EPERM || fd == -ENOTDIR || fd == -ELOOP) {
        kp_store_relaxed(&is_refused, true);
        KP_LOG_ONCE(0,
                    "%s belongs to another user, is not a folder, or is writable by all: forked children are not "
                    "recorded there",
                    path);
    } else if (fd < 0 && fd != -ENOENT) {
        KP_LOG_ONCE(0, "%s cannot be opened (%s): what forked children record stays without traces, see: kprof recover",
                    kp_path_display(path), kp_log_error_text(fd));
    }
    return fd;
}

/* A shorter file is not complete yet or from another release, and reading its mapping would fault. */
static struct family *family_map(int fd)
{
    struct stat st;
    const bool is_whole =
        kp_io_fstat(fd, &st) == 0 && kp_filecheck_is_own(&st) && st.st_size >= (off_t)sizeof(struct family);
    void *at = NULL;
    if (is_whole && kp_io_mmap(&at, sizeof(struct family), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != 0) at = NULL;
    kp_io_close(fd);
    return at;
}

bool kp_children_is_multiprocessing(void)
{
    char line[4096];
    int fd = kp_io_open("/proc/self/cmdline", O_RDONLY, 0);
    if (fd < 0) return false;
    ssize_t n = kp_io_read(fd, line, sizeof line);
    kp_io_close(fd);
    return n > 0 && (memmem(line, (size_t)n, "--multiprocessing-fork", 22) ||
                     memmem(line, (size_t)n, "multiprocessing.forkserver", 26));
}

void kp_children_setup(const struct kp_config *config)
{
    char name[256];
    settings = config;
    if (!config->children || !kp_children_is_multiprocessing()) return;
    const int folder = folder_open(kp_run_spool_dir());
    if (folder < 0) return;
    family_name(name, sizeof name, getppid());
    const int fd = kp_filecheck_open_own(folder, name, O_RDWR);
    kp_io_close(folder);
    if (fd == -EPERM || fd == -ELOOP)
        kp_log(0, "%s belongs to another user or has a second name: this process is not recorded as a worker", name);
    struct family *theirs = fd < 0 ? NULL : family_map(fd);
    if (!theirs) return;
    kp_store_release(&family, theirs); /* pairs with: children.c:follow */
    kp_run_set_parent_pid(theirs->pid);
}

static int family_make(const char *name)
{
    char path[4200];
    kp_fmt(path, sizeof path, "%s/children", kp_run_spool_dir());
    int rc = kp_io_mkdirs(path, KP_IO_FOLDER_MODE);
    const int folder = rc < 0 ? rc : folder_open(kp_run_spool_dir());
    if (folder < 0) return folder;
    (void)kp_io_unlink_at(folder, name); /* a file of this name is from the program before an exec of this process */
    int fd = kp_io_open_at(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd >= 0 &&
        kp_io_fallocate(fd, 0, sizeof(struct family)) != 0) { /* on a full disk a page without a block is a SIGBUS */
        kp_io_close(fd);
        (void)kp_io_unlink_at(folder, name);
        fd = -EIO;
    }
    kp_io_close(folder);
    return fd;
}

void kp_children_worked(void)
{
    char name[256];
    if (!settings->children || kp_load_relaxed(&family)) return;
    family_name(name, sizeof name, getpid());
    const int fd = family_make(name);
    struct family *ours = fd < 0 ? NULL : family_map(fd);
    if (!ours) {
        if (kp_exchange_acq_rel(&is_refused, true)) return; /* already logged */
        KP_LOG_ONCE(0, "%s/children/%s cannot be made: forked children are not recorded", kp_run_spool_dir(),
                    name); /* once for all of them */
        return;
    }
    ours->pid = getpid();
    kp_store_release(&family, ours); /* pairs with: children.c:follow */
    kp_window_show(&ours->window);
}

bool kp_children_are_wanted(void) { return settings && settings->children && !kp_load_relaxed(&is_refused); }

void kp_children_forked(void)
{
    const struct family *f = kp_load_relaxed(&family);
    if (f) kp_run_set_parent_pid(f->pid);
}

/* Closes an open window together with that of the other process, even one that the worker's own schedule opened. */
static void *follow(void *unused)
{
    const struct family *f = kp_load_acquire(&family); /* pairs with: children.c:kp_children_worked */
    uint32_t followed = 0;
    (void)unused;
    while (kp_run_is_active() && !kp_io_helpers_alone() && kp_steps_seen() == 0) {
        const uint32_t now = kp_load_acquire(&f->window); /* pairs with: window.c:show_window */
        if (now != followed && kp_run_turn_begin()) {
            if (followed && kp_window_stop() == 0) kp_ticker_wake();
            if (now) kp_window_start();
            followed = now;
            kp_run_turn_end();
        }
        kp_io_nap(LOOK_NS);
    }
    return NULL;
}

void kp_children_follow(void)
{
    if (kp_io_thread(follow, NULL, "kprof-follow") != 0)
        kp_log(0, "no thread to follow the windows of process %d: this worker is not recorded",
               (int)kp_run_parent_pid());
}

void kp_children_register(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct family *f = kp_load_relaxed(&family);
    if (!f || !kp_run_is_worker() || strlen(name) >= NAME_BYTES) return;
    const uint32_t row = kp_add_relaxed(&f->spools, 1);
    if (row >= SPOOLS_MAX) return;
    kp_fmt(f->spool[row].name, NAME_BYTES, "%s", name);
    kp_store_release(&f->spool[row].pid, (int32_t)getpid()); /* pairs with: children.c:next_left */
}

/* Finds the name of the next spool of a dead worker; the worker may have removed it. */
static bool next_left(struct family *f, uint32_t *at, char name[NAME_BYTES])
{
    uint32_t rows = kp_load_relaxed(&f->spools);
    if (rows > SPOOLS_MAX) rows = SPOOLS_MAX;
    while (*at < rows) {
        const uint32_t row = (*at)++;
        const int32_t pid = kp_load_acquire(&f->spool[row].pid); /* pairs with: children.c:kp_children_register */
        if (!pid || kp_io_process_start(pid)) continue;          /* it runs */
        memcpy(name, f->spool[row].name, NAME_BYTES);
        name[NAME_BYTES - 1] = '\0';
        return true;
    }
    return false;
}

/* Can traces be written to `children` of the output folder? Another user may have put a folder there. */
static bool can_write_traces(void)
{
    const int fd = folder_open(kp_run_out_dir());
    if (fd >= 0) kp_io_close(fd);
    return fd >= 0 || fd == -ENOENT;
}

/* Too large for a host thread's stack. */
struct paths {
    char out[4200], name[NAME_BYTES];
};

static void spools_collect(struct family *f, int folder, struct paths *p, struct kp_spools_made *made)
{
    uint32_t at = 0;
    family_name(p->out, sizeof p->out, getpid());
    (void)kp_io_unlink_at(folder, p->out);
    if ((settings->exports & KP_EXPORTS_NONE) || !can_write_traces()) return;
    kp_fmt(p->out, sizeof p->out, "%s/children", kp_run_out_dir());
    while (next_left(f, &at, p->name)) kp_spools_export(folder, p->name, p->out, made);
    if (made->traces)
        kp_log(0, "wrote %u trace%s of forked children to %s", made->traces, made->traces == 1 ? "" : "s",
               kp_path_display(p->out));
}

void kp_children_collect(void)
{
    struct family *f = kp_load_relaxed(&family);
    if (!f || kp_run_is_worker()) return;
    const int folder = folder_open(kp_run_spool_dir());
    struct paths *p = folder < 0 ? NULL : kp_map_alloc(sizeof *p);
    struct kp_spools_made made = {0};
    const char *above = kp_path_display(kp_run_spool_dir());
    if (p) spools_collect(f, folder, p, &made);
    else if (folder >= 0)
        kp_log(
            0,
            "no memory for the traces of forked children: what they recorded stays in %s/children, see: kprof recover",
            above);
    if (made.failed)
        kp_log(0, "%u spool%s of forked children stay in %s/children, see: kprof recover", made.failed,
               made.failed == 1 ? "" : "s", above);
    if (p) kp_map_free(p, sizeof *p);
    if (folder >= 0) kp_io_close(folder);
}
