// SPDX-License-Identifier: Apache-2.0
/*
 * spools.c - exports and trims the spools of other processes, which have ended
 *
 * Called by: children.c (for workers, on the export thread and at exit), finish.c (for programs that this process ran
 *            before an exec, at exit)
 * Owns:      nothing; memory for an export is mapped while it lasts
 * Locks:     none
 * On fail:   the spool stays, for kprof recover; that is logged
 * Safe in:   signal handlers no; after fork yes
 *
 * A launcher that records (KPROF_MALLOC, KPROF_SYMBOLS) and then calls exec has no exit of its own. Its spool lies in
 * the same folder under the same pid. A process on another machine or in a container may have that pid, too, and still
 * write. So each spool names its process: start time, pid namespace and boot id, which exec does not change. If the
 * kernel does not tell them (no /proc), no such spool is looked for.
 */
#include "preload/finish/spools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_filecheck.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_units.h"
#include "collector/read/kp_read.h"
#include "collector/record/kp_record.h"
#include "export/kp_export.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

static const struct kp_config *settings;

void kp_spools_setup(const struct kp_config *config) { settings = config; }

/* Too large for a host thread's stack. */
struct work {
    struct kp_export_result result;
    struct kp_reader *reader;
    char worker[512], why[256];
};

/* Skips windows that the spool's own process has exported already. */
static int windows_export(struct work *w, const char *out)
{
    const struct kp_export_options options = {
        .dir = out,
        .worker_name = settings->worker_name ? w->worker : NULL,
        .gzip = settings->gzip,
        .metadata = settings->metadata,
    };
    int traces = 0;
    for (size_t i = 0; i < kp_reader_cycles(w->reader); i++) {
        struct kp_cycle cycle;
        int err = kp_reader_cycle(w->reader, i, &cycle);
        if (!err && cycle.exported) continue;
        if (!err) err = kp_export_trace(w->reader, cycle.number, &options, &w->result);
        if (err && err != -ENODATA) return err;
        traces += !err;
    }
    return traces;
}

/*
 * Other users may be able to write to the folder. The owner of a file can truncate it while it is mapped here, and the
 * host would get SIGBUS. So the file is opened once, and its owner is checked by the descriptor. -ENOENT: nothing to
 * do, since its process removed it or kprof recover is working on it.
 */
static int spool_open(int dir, const char *name, struct work *w)
{
    const int fd = kp_filecheck_open_own(dir, name, O_RDONLY);
    int err = fd < 0 ? fd : 0;
    if (!err && kp_io_lock(fd) == -EWOULDBLOCK) err = -ENOENT;
    if (!err) err = kp_reader_open_fd(&w->reader, fd, name, w->why, sizeof w->why);
    if (err && fd >= 0) kp_io_close(fd);
    return err ? err : fd;
}

static uint64_t bytes_on_disk(int fd)
{
    struct stat st;
    if (kp_io_fstat(fd, &st) != 0) return 0;
    const uint64_t blocks = (uint64_t)st.st_blocks * 512;
    return blocks < (uint64_t)st.st_size ? blocks : (uint64_t)st.st_size;
}

/* The last chunks lay in the memory of their process, and ended with it. */
static bool lacks_chunks(const struct kp_file_head *head, int fd)
{
    const uint64_t bytes = (uint64_t)kp_load_relaxed(&head->chunks) * KP_CHUNK_BYTES;
    struct stat st;
    return kp_io_fstat(fd, &st) == 0 && (uint64_t)st.st_size < bytes;
}

static void opened_export(struct work *w, int fd, int dir, const char *name, const char *out,
                          struct kp_spools_made *made)
{
    const uint64_t bytes = bytes_on_disk(fd);
    if (settings->worker_name)
        kp_fmt(w->worker, sizeof w->worker, "%s_%u", settings->worker_name, (unsigned)kp_reader_head(w->reader)->pid);
    const int traces = windows_export(w, out);
    made->bare += traces == 0 && lacks_chunks(kp_reader_head(w->reader), fd);
    kp_reader_close(w->reader);
    if (traces < 0) made->failed++;
    else made->traces += (unsigned)traces;
    if (traces >= 0) kp_half_remove(fd);
    if (traces >= 0 && kp_io_unlink_at(dir, name) == 0) made->bytes += bytes;
}

void kp_spools_export(int dir, const char *name, const char *out, struct kp_spools_made *made)
{
    struct work *w = kp_map_alloc(sizeof *w);
    const int fd = w ? spool_open(dir, name, w) : -ENOMEM;
    made->failed += fd < 0 && fd != -ENOENT && fd != -ENODATA;
    made->bare += fd == -ENODATA;
    if (fd == -ENODATA) (void)kp_io_unlink_at(dir, name);
    if (fd == -EPERM || fd == -ELOOP) KP_LOG_ONCE(0, "%s is not a file of this user alone: it is not read", name);
    if (fd >= 0) {
        opened_export(w, fd, dir, name, out, made);
        kp_io_close(fd);
    }
    if (w) kp_map_free(w, sizeof *w);
}

/* Chunks in memory go to the disk, which takes their used bytes and no more. */
static uint64_t opened_trim(int fd)
{
    struct kp_file_head head;
    if (kp_io_pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || kp_join_half(fd) != 0) return 0;
    (void)kp_io_pread(fd, &head, sizeof head, 0); /* as it is in memory, which counts all chunks */
    const uint64_t counted = (uint64_t)kp_load_relaxed(&head.chunks) * KP_CHUNK_BYTES, now = bytes_on_disk(fd);
    return counted > now ? counted - now : 0;
}

uint64_t kp_spools_trim(int dir, const char *name)
{
    const int fd = kp_filecheck_open_own(dir, name, O_RDWR);
    if (fd < 0) return 0;
    const uint64_t bytes = opened_trim(fd);
    kp_io_close(fd);
    return bytes;
}

/* ---- programs that this process ran before ---- */

static const char process_key[] = "process_start";
static char process[128]; /* this process as its spool names it; "": not known */

static bool boot_id_read(char *id, size_t bytes)
{
    (void)kp_io_text("/proc/sys/kernel/random/boot_id", id, bytes);
    id[strcspn(id, "\n")] = '\0';
    return id[0] != '\0';
}

void kp_spools_note_process(void)
{
    char space[32], boot[48];
    const uint64_t start = kp_io_process_start(0);
    const ssize_t n = kp_io_readlink("/proc/self/ns/pid", space, sizeof space - 1);
    process[0] = '\0';
    if (!start || n <= 0 || !boot_id_read(boot, sizeof boot)) return;
    space[n] = '\0';
    kp_fmt(process, sizeof process, "%lu %s %s", (unsigned long)start, space, boot);
    kp_record_note(process_key, process);
}

struct spool_search {
    struct kp_spools_made made;
    char begin[96]; /* the begin of file names: HOST_PID. */
    const char *own;
    int dir;
};

static bool is_of_this_process(const struct kp_reader *reader)
{
    const char *start = kp_reader_text(reader, process_key);
    return start && strcmp(start, process) == 0 && kp_reader_head(reader)->pid == (uint32_t)getpid();
}

static void spool_consider(struct spool_search *s, const char *name, struct work *w)
{
    const int fd = spool_open(s->dir, name, w);
    if (fd < 0) return;
    if (is_of_this_process(w->reader)) opened_export(w, fd, s->dir, name, kp_run_out_dir(), &s->made);
    else kp_reader_close(w->reader);
    kp_io_close(fd);
}

static void consider(void *context, const char *name)
{
    struct spool_search *s = context;
    const size_t n = strlen(name);
    if (strcmp(name, s->own) == 0 || strncmp(name, s->begin, strlen(s->begin)) != 0) return;
    if (n < sizeof ".kprof" || strcmp(name + n - (sizeof ".kprof" - 1), ".kprof") != 0) return;
    struct work *w = kp_map_alloc(sizeof *w);
    if (!w) return;
    spool_consider(s, name, w);
    kp_map_free(w, sizeof *w);
}

/* Fills s->begin from the name of this process's spool, up to the point before its time. */
static bool names_begin(struct spool_search *s)
{
    s->own = kp_path_base(kp_record_path());
    const char *end = strrchr(s->own, '.');
    while (end && end > s->own && *--end != '.') continue;
    const size_t n = end ? (size_t)(end - s->own) + 1 : 0;
    if (n < 2 || n >= sizeof s->begin) return false;
    memcpy(s->begin, s->own, n);
    return true;
}

void kp_spools_replaced(void)
{
    if ((settings->exports & KP_EXPORTS_NONE) || !process[0]) return;
    struct spool_search *s = kp_map_alloc(sizeof *s);
    if (!s) return;
    s->dir = kp_io_open(kp_run_spool_dir(), O_RDONLY | O_DIRECTORY, 0);
    if (s->dir >= 0 && names_begin(s)) (void)kp_io_each_name(kp_run_spool_dir(), consider, s);
    if (s->dir >= 0) kp_io_close(s->dir);
    if (s->made.traces)
        kp_log(0, "wrote %u trace%s of programs that this process ran before (exec) to %s", s->made.traces,
               kp_units_s(s->made.traces), kp_path_display(kp_run_out_dir()));
    if (s->made.failed)
        kp_log(0, "%u spool%s of programs that this process ran before (exec) stay in %s, see: kprof recover",
               s->made.failed, kp_units_s(s->made.failed), kp_path_display(kp_run_spool_dir()));
    kp_map_free(s, sizeof *s);
}
