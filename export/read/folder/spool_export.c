// SPDX-License-Identifier: Apache-2.0
/* spool_export.c - traces out of one spool, and what was lost on the way */
#include "export/read/folder/spool_export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_path.h"
#include "export/read/folder/beside.h"
#include "export/read/files/budget.h"
#include "export/read/files/progress.h"
#include "export/read/files/procstate.h"
#include "export/show/say.h"
#include "export/show/units.h"
#include "export/show/plainname.h"
#include "export/read/folder/written.h"
#include "export/kp_export.h"

/* The files written beside the traces of a spool, and whether the traces stay. */
struct written_beside {
    unsigned which, made; /* bits of KP_EXPORTS_BESIDE; made: beside the last trace */
    bool no_trace;
};

/* Reads the run's KPROF_EXPORT. `none` means the trace here, since the user asks for it now. */
static void beside_read(const char *list, struct written_beside *b)
{
    const unsigned bits = list ? kp_beside_parse(list) : 0;
    *b = (struct written_beside){.which = bits & KP_EXPORTS_BESIDE};
    b->no_trace = b->which && !(bits & KP_EXPORTS_TRACE);
}

static void beside_write(struct written_beside *b, const char *trace, const struct kp_export_owner *owner,
                         const char *command, const char *dir)
{
    b->made = 0;
    const int rc = b->which ? kp_beside_write(trace, b->which, owner, &b->made) : 0;
    if (rc) kp_cli_fail(command, "%s: not all that KPROF_EXPORT asked for is beside the trace: %s", dir, strerror(-rc));
    const bool is_alone = b->no_trace && b->made;
    if (is_alone) (void)unlink(trace);
    else b->no_trace = false; /* the trace is all there is */
}

/* A recording without a schedule marks no steps, which is no count of the program's steps. */
static void written_say(const struct kp_reader *reader, const struct kp_export_result *result,
                        const struct written_beside *b, bool is_complete, const char *dir)
{
    const bool is_least = kp_reader_text(reader, "gpu_lost_at_least");
    const char *name = strrchr(result->path, '/'), *json = strstr(name, ".pt.trace.json");
    char ends[64], steps[40] = "", after[40] = "";
    if (result->steps)
        snprintf(steps, sizeof steps, "%llu step%s, ", (unsigned long long)result->steps, kp_units_s(result->steps));
    if (result->steps) snprintf(after, sizeof after, " after step %llu", (unsigned long long)result->last_step);
    kp_cli_say(stdout, "kprof: wrote %s%.*s%s (%s%llu op%s, %s%llu dropped%s%s%s)", dir,
               b->no_trace && json ? (int)(json - name) : (int)strlen(name), name,
               kp_beside_ends(b->made, b->no_trace, ends, sizeof ends), steps, (unsigned long long)result->events,
               kp_units_s(result->events), is_least ? "at least " : "", (unsigned long long)result->lost,
               is_complete ? "" : "; cut off", is_complete ? "" : after,
               is_complete ? "" : ", where the process ended");
}

/* If there is no trace the path is that of the files beside it, up to their ends. */
static void written_json(const struct kp_export_result *result, const struct written_beside *b, bool is_complete,
                         const char *dir)
{
    const char *name = strrchr(result->path, '/'), *json = strstr(name, ".pt.trace.json");
    char path[sizeof result->path + 4096];
    snprintf(path, sizeof path, "%s%.*s", dir, b->no_trace && json ? (int)(json - name) : (int)strlen(name), name);
    kp_written_say(&(struct kp_written){.by = KP_WRITER_SPOOL,
                                        .name = path,
                                        .path = result->path,
                                        .steps = result->steps,
                                        .events = result->events,
                                        .lost = result->lost,
                                        .is_complete = is_complete,
                                        .beside = b->made});
}

static int cycle_write(struct kp_reader *reader, const struct kp_cycle *cycle, const char *path,
                       const struct kp_spool_export_options *wish, struct kp_export_options *options,
                       struct written_beside b)
{
    static struct kp_export_result own;
    struct kp_export_result *const result = wish->result ? wish->result : &own;
    const char *const dir = wish->dir_shown ? wish->dir_shown : options->dir;
    struct kp_progress progress;
    int rc;
    options->loads_cpp = true;
    options->cpp = kp_plainname_can() ? kp_plainname_cpp : NULL;
    kp_progress_begin(&progress, path);
    options->progress = kp_progress_events;
    options->context = &progress;
    rc = kp_export_trace(reader, cycle->number, options, result);
    kp_progress_end(&progress);
    if (kp_budget_text(result->text_bytes) < 0 && rc >= 0) rc = -EFBIG;
    options->text_most = options->text_most ? kp_budget_left() : 0;
    if (rc == -ENODATA) return 0;
    if (rc < 0) return kp_cli_fail(wish->command, "%s: no trace into %s: %s", path, dir, kp_budget_explain(rc)), rc;
    beside_write(&b, result->path, options->owner, wish->command, dir);
    if (wish->json && !wish->quiet) written_json(result, &b, cycle->complete, dir);
    else if (!wish->quiet) written_say(reader, result, &b, cycle->complete, dir);
    return 1;
}

int kp_spool_export_write(struct kp_reader *reader, const char *path, const struct kp_spool_export_options *wish)
{
    char folder[4096];
    const char *const gzip = kp_reader_text(reader, "KPROF_GZIP");
    struct kp_export_options options = {.dir = wish->dir,
                                        .worker_name = wish->worker_name,
                                        .gzip = wish->gzip < 0 ? !gzip || strcmp(gzip, "0") != 0 : wish->gzip,
                                        .places = wish->places,
                                        .owner = wish->owner,
                                        .written_ns = wish->written_ns,
                                        .metadata = kp_reader_text(reader, "KPROF_METADATA")};
    struct written_beside beside;
    int written = 0, rc = 0;
    beside_read(wish->exports ? wish->exports : kp_reader_text(reader, "KPROF_EXPORT"), &beside);
    kp_path_folder(folder, sizeof folder, path);
    if (!options.dir) options.dir = folder;
    if (!options.worker_name) options.worker_name = kp_reader_text(reader, "KPROF_WORKER_NAME");
    kp_budget_begin(wish->command, path);
    if (wish->gzip < 0 && !options.gzip)
        kp_budget_unpacked(); /* text without gzip, as the spool asks, is limited like a temporary file */
    options.text_most = kp_budget_left();
    options.scratch_dir = options.dir;
    options.scratch_most = kp_budget_now()->disk;
    options.part = kp_budget_part();
    options.heap_part = kp_budget_heap_part();
    for (size_t i = 0; i < kp_reader_cycles(reader) && rc >= 0; i++) {
        struct kp_cycle cycle;
        rc = kp_reader_cycle(reader, i, &cycle);
        if (rc == 0 && wish->skips_exported && cycle.exported) continue;
        if (rc == 0) rc = cycle_write(reader, &cycle, path, wish, &options, beside);
        if (rc > 0) written++;
    }
    kp_budget_end();
    return rc < 0 ? rc : written;
}

void kp_spool_export_losses(const struct kp_reader *reader, FILE *to)
{
    static const char *const reasons[KP_LOSS_N] = {"no free chunk",
                                                   "KPROF_MAX_MB reached",
                                                   "disk full",
                                                   "no slot for the thread",
                                                   "too big",
                                                   "name lost",
                                                   "inside our own code",
                                                   "disk quota reached",
                                                   "file size limit (RLIMIT_FSIZE)",
                                                   "the disk did not answer",
                                                   "left free for the program"};
    static const char *const kinds[KP_KIND_N] = {
#define KP_KIND(name, number, counts, ends, text) [number] = text,
#include "collector/format/kinds.def"
#undef KP_KIND
    };
    const struct kp_file_head *const head = kp_reader_head(reader);
    for (int kind = 0; kind < KP_KIND_N; kind++)
        for (int why = 0; why < KP_LOSS_N; why++) {
            const uint64_t n = kp_file_loss(head, kind, why);
            if (n)
                fprintf(to, "kprof: dropped: %llu %s (%s)\n", (unsigned long long)n,
                        kinds[kind] ? kinds[kind] : "records", reasons[why]);
        }
    if (kp_reader_skipped(reader))
        fprintf(to, "kprof: torn: %llu records skipped\n", (unsigned long long)kp_reader_skipped(reader));
}

/* Start of a process in ns since the epoch, or 0 when it does not run. */
static uint64_t process_start_ns(uint32_t pid)
{
    struct timespec now;
    const uint64_t ticks = kp_procstate_start(pid);
    if (!ticks) return 0;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return kp_clock_ns(CLOCK_REALTIME) - ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) +
           ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

bool kp_spool_process_runs(uint32_t pid) { return process_start_ns(pid) != 0; }

/*
 * 1, 0, or -errno when the maps cannot be read. The half in memory is mapped, which has the same name or, without a
 * path, shows as "/memfd:NAME (deleted)". The name has pid and time.
 */
static int has_mapped(uint32_t pid, const char *path)
{
    char maps[64], *line = NULL, *real = realpath(path, NULL);
    size_t size = 0;
    int found = 0;
    snprintf(maps, sizeof maps, "/proc/%u/maps", pid);
    FILE *const file = real ? fopen(maps, "re") : NULL;
    if (!file) found = -errno;
    while (file && found == 0 && getline(&line, &size, file) > 0) found = strstr(line, kp_path_base(real)) != NULL;
    if (file && ferror(file)) found = -EIO;
    if (file) fclose(file);
    free(line);
    free(real);
    return found;
}

enum kp_spool_state kp_spool_state(const struct kp_file_head *head, const char *path)
{
    char host[sizeof head->host + 1] = "";
    uint64_t start;
    int mapped;
    if (head->closed) return KP_SPOOL_GONE;
    gethostname(host, sizeof host - 1);
    if (strncmp(host, head->host, sizeof head->host - 1) != 0) return KP_SPOOL_FOREIGN_HOST;
    start = process_start_ns(head->pid);
    if (!start) return KP_SPOOL_GONE;
    mapped = has_mapped(head->pid, path);
    if (mapped >= 0) return mapped ? KP_SPOOL_RUNNING : KP_SPOOL_GONE;
    /* A process that began after the spool was opened only has the same pid. Allow 2 s, since clocks are stepped. */
    return start < head->start_real_ns + UINT64_C(2000000000) ? KP_SPOOL_RUNNING : KP_SPOOL_GONE;
}
