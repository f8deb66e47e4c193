// SPDX-License-Identifier: Apache-2.0
/*
 * children.c - the mapped file that a process shares with its workers: the recording window, the workers' spools
 *
 * Called by: boot.c (constructor), begin.c (first op), fork.c, finish.c (kprof-tick, the export thread, exit); the
 *            thread kprof-follow of a worker
 * Owns:      HOST_PID-START.family in this user's folder of /dev/shm, mapped: made at the first op of a process with
 *            KPROF_CHILDREN=1, removed at its exit; a page that is shared with forked children. If there is no
 *            /dev/shm it lies in KPROF_SPOOL_DIR/children
 * Locks:     none; the mapping has only atomic variables
 * On fail:   without the file children record independently; a spool that the table has no room for is left to kprof
 *            recover
 * Safe in:   after fork yes
 *
 * A worker is a process whose parent ran ops: forked from it, or started by its multiprocessing (spawn, forkserver).
 * Others (ranks that a launcher forks or spawns) record independently.
 *
 * A DataLoader worker sees no step. So a worker records while a window of the process that has the steps is open, until
 * the worker sees a step of its own. It checks 50 times a second. It records from its first op on if there is no
 * schedule. Workers end by os._exit or are killed, so the process that has the steps exports their spools: while it
 * runs, once a second, and at its exit. A program may fork thousands of them. So the spools of all children of a
 * process take KPROF_MAX_MB together, and what an ended one did not use is freed at once (decisions/086).
 */
#include "preload/finish/children.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_filecheck.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_units.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "preload/window/window.h"
#include "preload/finish/spools.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { SPOOLS_MAX = 4096, NAME_BYTES = 120, LOOK_NS = 20000000 };

struct kp_spool_row {
    _Atomic int32_t pid; /* 0: free. Negative: of this process, the name is not complete */
    uint32_t is_trimmed;
    uint64_t start; /* of the process, since a pid is used again */
    char name[NAME_BYTES];
};

struct family {
    int32_t pid;             /* the process that has the steps */
    _Atomic uint32_t window; /* number of the window that records, 0: none */
    struct kp_record_share share;
    _Atomic uint32_t rows; /* so many were ever used */
    struct kp_spool_row spool[SPOOLS_MAX];
};

static struct family *_Atomic family;
static struct kp_record_share *forked;    /* for forked children of a process without a family, in shared memory */
static struct kp_record_share *of_parent; /* in a forked child or a worker: that of the process above it */
static struct kp_spools_made made;
static const struct kp_config *settings;
static _Atomic bool is_refused; /* the folder for children cannot be used; that was logged */

static void family_name(char *name, size_t bytes, int32_t pid)
{
    char host[KP_IO_HOST_BYTES]; /* several hosts may share the folder */
    kp_io_host_name(host);
    kp_fmt(name, bytes, "%s_%d-%lu.family", host, (int)pid, (unsigned long)kp_io_process_start(pid));
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

/* The folder of the file that a process shares with its workers. */
static int family_folder_open(void)
{
    const int fd = kp_record_folder_open();
    return fd >= 0 ? fd : folder_open(kp_run_spool_dir());
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
    const uint32_t own = (uint32_t)getpid();
    return kp_io_command_has(own, "--multiprocessing-fork") || kp_io_command_has(own, "multiprocessing.forkserver");
}

static void share_make(void)
{
    void *at;
    if (kp_io_mmap(&at, sizeof *forked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == 0) forked = at;
}

void kp_children_setup(const struct kp_config *config)
{
    char name[256];
    settings = config;
    if (!config->children) return;
    share_make();
    if (!kp_children_is_multiprocessing()) return;
    const int folder = family_folder_open();
    if (folder < 0) return;
    family_name(name, sizeof name, getppid());
    const int fd = kp_filecheck_open_own(folder, name, O_RDWR);
    kp_io_close(folder);
    if (fd == -EPERM || fd == -ELOOP)
        kp_log(0, "%s belongs to another user or has a second name: this process is not recorded as a worker", name);
    struct family *theirs = fd < 0 ? NULL : family_map(fd);
    if (!theirs) return;
    of_parent = &theirs->share;
    kp_store_release(&family, theirs); /* pairs with: children.c:follow */
    kp_run_set_parent_pid(theirs->pid);
}

static int family_make(const char *name)
{
    char path[4200];
    int folder = kp_record_folder_open();
    kp_fmt(path, sizeof path, "%s/children", kp_run_spool_dir());
    if (folder < 0 && kp_io_mkdirs(path, KP_IO_FOLDER_MODE) == 0) folder = folder_open(kp_run_spool_dir());
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

void kp_children_first_op(void)
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
    kp_store_release(&family, ours); /* pairs with: children.c:follow, own_family */
    kp_window_show(&ours->window);
}

bool kp_children_are_wanted(void) { return settings && settings->children && !kp_load_relaxed(&is_refused); }

void kp_children_join(void)
{
    struct family *f = kp_load_relaxed(&family);
    if (f) kp_run_set_parent_pid(f->pid);
    of_parent = f ? &f->share : forked;
    made = (struct kp_spools_made){0};
}

struct kp_record_share *kp_children_share(void) { return of_parent; }

/* Closes an open window together with that of the other process, even one that the worker's own schedule opened. */
static void *follow(void *unused)
{
    const struct family *f = kp_load_acquire(&family); /* pairs with: children.c:kp_children_first_op */
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

/* A free row, marked as this process's, or NULL: kprof recover finds the spool. */
static struct kp_spool_row *row_claim(struct family *f)
{
    for (uint32_t i = 0; i < SPOOLS_MAX; i++) {
        int32_t unused = 0;
        if (kp_load_relaxed(&f->spool[i].pid)) continue;
        if (!kp_cas_acq_rel(&f->spool[i].pid, &unused, -(int32_t)getpid())) continue;
        uint32_t rows = kp_load_relaxed(&f->rows);
        while (rows <= i && !kp_cas_acq_rel(&f->rows, &rows, i + 1)) continue; /* pairs with: children.c:ended_find */
        return &f->spool[i];
    }
    return NULL;
}

void kp_children_register(const char *path)
{
    const char *const name = kp_path_base(path);
    struct family *f = kp_load_relaxed(&family);
    if (!f || !kp_run_is_worker() || strlen(name) >= NAME_BYTES) return;
    struct kp_spool_row *row = row_claim(f);
    if (!row) return;
    row->is_trimmed = 0;
    row->start = kp_io_process_start(0);
    kp_fmt(row->name, NAME_BYTES, "%s", name);
    kp_store_release(&row->pid, (int32_t)getpid()); /* pairs with: children.c:ended_find */
}

/*
 * How closely to look whether a worker runs: FAST opens no file, which a program might notice in its own descriptors,
 * but a zombie runs for it. EXACT asks /proc.
 */
enum look { FAST, EXACT };
static bool has_ended(int32_t pid, uint64_t start, enum look look)
{
    if (look == FAST) return kp_io_is_process_gone(pid);
    const uint64_t now = kp_io_process_start(pid);
    return !now || (start && now != start);
}

/* The next row from *at on of a worker that has ended; the worker may have removed its spool. NULL: there is none. */
static struct kp_spool_row *ended_find(struct family *f, uint32_t *at, enum look look)
{
    uint32_t rows = kp_load_acquire(&f->rows); /* pairs with: children.c:row_claim */
    if (rows > SPOOLS_MAX) rows = SPOOLS_MAX;
    while (*at < rows) {
        struct kp_spool_row *row = &f->spool[(*at)++];
        const int32_t pid = kp_load_acquire(&row->pid); /* pairs with: children.c:kp_children_register */
        if (!pid) continue;
        if (!has_ended(pid < 0 ? -pid : pid, pid < 0 ? 0 : row->start, look)) continue;
        if (pid > 0) return row;
        kp_store_relaxed(&row->pid, 0); /* it ended while it registered: kprof recover finds the spool */
    }
    return NULL;
}

static struct family *own_family(void)
{
    return kp_run_is_worker() ? NULL : kp_load_acquire(&family); /* pairs with: children.c:kp_children_first_op */
}

bool kp_children_have_ended(void)
{
    struct family *f = own_family();
    uint32_t at = 0;
    return f && ended_find(f, &at, FAST);
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

/* Frees what ended workers did not use: their spools may wait for long. */
static void ended_trim(struct family *f, int folder, struct paths *p, enum look look)
{
    struct kp_spool_row *row;
    for (uint32_t at = 0; (row = ended_find(f, &at, look));) {
        if (row->is_trimmed) continue;
        row->is_trimmed = 1;
        kp_fmt(p->name, sizeof p->name, "%s", row->name);
        kp_record_share_give(&f->share, kp_spools_trim(folder, p->name));
    }
}

static void row_export(struct family *f, struct kp_spool_row *row, int folder, struct paths *p)
{
    const uint64_t bytes = made.bytes;
    kp_fmt(p->name, sizeof p->name, "%s", row->name);
    kp_fmt(p->out, sizeof p->out, "%s/children", kp_run_out_dir());
    const bool is_wanted = !(settings->exports & KP_EXPORTS_NONE) && can_write_traces();
    if (is_wanted) kp_spools_export(folder, p->name, p->out, &made);
    kp_record_share_give(&f->share, made.bytes - bytes);
    kp_store_release(&row->pid, 0); /* pairs with: children.c:row_claim */
}

static void no_memory(void)
{
    KP_LOG_ONCE(
        0, "no memory for the traces of forked children: what they recorded stays in %s/children, see: kprof recover",
        kp_path_display(kp_run_spool_dir()));
}

/* Exports the spool of one worker that has ended. Returns whether more of them wait. */
static bool collect_one(struct family *f, enum look look)
{
    uint32_t at = 0;
    const int folder = folder_open(kp_run_spool_dir());
    struct paths *p = folder < 0 ? NULL : kp_map_alloc(sizeof *p);
    if (folder >= 0 && !p) no_memory();
    if (p) ended_trim(f, folder, p, look);
    struct kp_spool_row *row = p ? ended_find(f, &at, look) : NULL;
    if (row) row_export(f, row, folder, p);
    const bool more = row && ended_find(f, &at, look);
    if (p) kp_map_free(p, sizeof *p);
    if (folder >= 0) kp_io_close(folder);
    return more;
}

bool kp_children_collect_one(void)
{
    struct family *f = own_family();
    return f && collect_one(f, FAST);
}

/* No worker that is started from here on finds the file. */
static void family_unlink(void)
{
    char name[256];
    const int folder = family_folder_open();
    family_name(name, sizeof name, getpid());
    if (folder < 0) return;
    (void)kp_io_unlink_at(folder, name);
    kp_io_close(folder);
}

/* Exports what waits, until that took too long. A program without such children may have forbidden itself the clock. */
static void rest_collect(struct family *f, unsigned least, uint64_t ms)
{
    uint64_t began_ms = 0;
    uint32_t first = 0;
    bool more = ended_find(f, &first, EXACT);
    for (unsigned n = 0; more && (n < least || kp_clock_ms() - began_ms < ms); n++) {
        if (!n) began_ms = kp_clock_ms();
        more = collect_one(f, EXACT);
    }
    for (uint32_t at = 0; more && ended_find(f, &at, EXACT);) made.failed++;
}

void kp_children_collect(unsigned least, uint64_t ms)
{
    struct family *f = own_family();
    char out[4200];
    if (!f) return;
    family_unlink();
    rest_collect(f, least, ms);
    kp_fmt(out, sizeof out, "%s/children", kp_run_out_dir());
    if (made.traces)
        kp_log(0, "wrote %u trace%s of forked children to %s", made.traces, kp_units_s(made.traces),
               kp_path_display(out));
    if (made.failed)
        kp_log(0, "%u spool%s of forked children stay in %s/children, see: kprof recover", made.failed,
               kp_units_s(made.failed), kp_path_display(kp_run_spool_dir()));
    if (made.bare) /* a spool is opened with its first window */
        kp_log(0, "%u forked child%s ended before what %s recorded was on the disk: /dev/shm has no room", made.bare,
               made.bare == 1 ? "" : "ren", made.bare == 1 ? "it" : "they");
    const uint32_t refused = kp_load_relaxed(&f->share.refused);
    if (refused)
        kp_log(0, "%u forked child%s recorded nothing: KPROF_MAX_MB was reached by the spools of others", refused,
               refused == 1 ? "" : "ren");
}
