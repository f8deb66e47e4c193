// SPDX-License-Identifier: Apache-2.0
/* who_ran_whom.c - which process of a folder started which other one, by the heads of their traces */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "export/read/folder/run_folder.h"
#include "export/read/files/spoolfile.h"
#include "export/read/parse/kineto_parse.h"

void kp_run_folder_jobs(struct kp_run_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) {
        struct kp_found *const f = &folder->of[i];
        if (f->rank < 0 || f->is_noted) continue;
        if (i && kp_found_is_same_worker(f, f - 1)) memcpy(f->job, f[-1].job, sizeof f->job);
        else kp_found_note(f);
    }
}

static long worker_pid(const struct kp_found *f)
{
    const char *const at = strrchr(f->worker, '_');
    return at ? strtol(at + 1, NULL, 10) : 0;
}

static const struct kp_found *newest_of_pid(const struct kp_run_folder *folder, long pid)
{
    const struct kp_found *newest = NULL;
    for (size_t i = 0; i < folder->count; i++)
        if (worker_pid(&folder->of[i]) == pid && (!newest || folder->of[i].since_ns > newest->since_ns))
            newest = &folder->of[i];
    return newest;
}

const struct kp_found *kp_found_above(const struct kp_run_folder *folder, const struct kp_found *f)
{
    return f->parent_pid ? newest_of_pid(folder, f->parent_pid) : NULL;
}

/* ---- one run ---- */

static const struct kp_found *top_of(const struct kp_run_folder *folder, const struct kp_found *f)
{
    const struct kp_found *above;
    for (size_t up = 0; up < folder->count && (above = kp_found_above(folder, f)); up++) f = above;
    return f;
}

/* Whether one process that left no trace started both. A shell starts one run after another: they do not overlap. */
static bool have_one_parent(const struct kp_found *a, const struct kp_found *b)
{
    const bool are_ranks = a->rank >= 0 && b->rank >= 0;
    const bool overlap = a->begin_ns <= b->until_ns && b->begin_ns <= a->until_ns;
    return a->parent_pid && a->parent_pid == b->parent_pid && (are_ranks || overlap);
}

size_t kp_found_family(struct kp_run_folder *folder)
{
    const struct kp_found *const newest = kp_run_folder_newest(folder, true, 0);
    size_t count = 0;
    for (size_t i = 0; i < folder->count; i++) kp_found_note(&folder->of[i]);
    const struct kp_found *const top = newest ? top_of(folder, newest) : NULL;
    for (size_t i = 0; newest && i < folder->count; i++) {
        const struct kp_found *const of = top_of(folder, &folder->of[i]);
        count += kp_found_is_same_worker(of, top) || have_one_parent(of, top);
    }
    return count;
}

static bool is_below(const struct kp_run_folder *folder, const struct kp_found *f, const struct kp_found *top)
{
    for (size_t up = 0; f && up < folder->count; up++, f = kp_found_above(folder, f))
        if (kp_found_is_same_worker(f, top)) return true;
    return false;
}

/* How much the heap's profile beside a trace holds: the more allocations, the larger. */
static int64_t heap_bytes(const struct kp_found *f)
{
    struct stat st;
    char path[4400];
    const char *const end = strstr(f->path, ".pt.trace.json");
    if (!end) return 0;
    snprintf(path, sizeof path, "%.*s.heap.zst", (int)(end - f->path), f->path);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* A program with torch goes before one without. A program that is no Python is a wrapper, if the one that it ran
 * allocated more. Else the program goes before what it ran, and its newest trace before others. */
static bool is_rather(const struct kp_run_folder *folder, const struct kp_found *f, const struct kp_found *best)
{
    if (f->kind != best->kind) return f->kind > best->kind;
    if (f->kind == KP_FOUND_ANY) return heap_bytes(f) > heap_bytes(best);
    return kp_found_is_same_worker(f, best) ? f->since_ns > best->since_ns : is_below(folder, best, f);
}

const struct kp_found *kp_found_program(const struct kp_run_folder *folder, const struct kp_found *top)
{
    const struct kp_found *best = top;
    for (size_t i = 0; i < folder->count; i++) {
        const struct kp_found *const f = &folder->of[i];
        if (!f->is_spool && is_below(folder, f, top) && is_rather(folder, f, best)) best = f;
    }
    return best;
}

/* ---- launchers ---- */

#define OP "\"cat\":\"cpu_op\""

struct op_search {
    char end[sizeof OP - 1]; /* of the text so far: the word may go on in the next piece */
    size_t end_bytes;
    bool is_found;
};

static int op_take(void *context, const char *text, size_t bytes)
{
    struct op_search *const s = context;
    char seam[2 * (sizeof OP - 2)];
    const size_t word = sizeof OP - 1, first = bytes < word - 1 ? bytes : word - 1;
    memcpy(seam, s->end, s->end_bytes);
    memcpy(seam + s->end_bytes, text, first);
    s->is_found = memmem(seam, s->end_bytes + first, OP, word) || memmem(text, bytes, OP, word);
    const bool is_long = bytes >= word - 1;
    const char *const from = is_long ? text : seam;
    const size_t all = is_long ? bytes : s->end_bytes + first, kept = all < word - 1 ? all : word - 1;
    memmove(s->end, from + all - kept, kept);
    s->end_bytes = kept;
    return s->is_found;
}

/* One that cannot be read counts as having one: then it is shown, and the command says what is wrong. */
static bool has_op(const struct kp_found *f)
{
    struct op_search search = {.end_bytes = 0};
    char why[256];
    const int rc = kp_text_file_each(f->path, op_take, &search, why, sizeof why);
    return rc < 0 || search.is_found;
}

static int any_op(void *context, const struct kp_event *e)
{
    (void)context;
    return e->kind == KP_KIND_OP;
}

static bool spool_has_op(const struct kp_found *f)
{
    struct kp_reader *reader;
    struct kp_cycle cycle;
    char why[512];
    int rc = kp_spoolfile_open(&reader, f->path, NULL, why, sizeof why);
    if (rc) return true;
    for (size_t i = 0; i < kp_reader_cycles(reader) && rc == 0; i++) {
        rc = kp_reader_cycle(reader, i, &cycle);
        if (rc == 0) rc = kp_reader_timeline(reader, cycle.number, any_op, NULL, NULL);
    }
    kp_reader_close(reader);
    return rc != 0;
}

/* Whether `f` is the process that started a rank, or started it through others. Workers are named HOST_PID. */
static bool is_above(const struct kp_run_folder *folder, const struct kp_found *f, const struct kp_found *rank)
{
    for (size_t up = 0; rank && up < folder->count; up++) {
        char name[sizeof rank->worker + 24];
        const char *const pid = strrchr(rank->worker, '_');
        if (!pid || !rank->parent_pid) return false;
        snprintf(name, sizeof name, "%.*s_%ld", (int)(pid - rank->worker), rank->worker, rank->parent_pid);
        if (strcmp(name, f->worker) == 0) return true;
        rank = kp_found_above(folder, rank);
    }
    return false;
}

const struct kp_found *kp_found_rank_below(struct kp_run_folder *folder, const struct kp_found *f)
{
    const struct kp_found *newest = NULL;
    for (size_t i = 0; i < folder->count; i++) kp_found_note(&folder->of[i]);
    for (size_t i = 0; f->rank < 0 && i < folder->count; i++) {
        const struct kp_found *const rank = &folder->of[i];
        if (rank->rank >= 0 && is_above(folder, f, rank) && (!newest || rank->since_ns > newest->since_ns))
            newest = rank;
    }
    return newest;
}

static bool is_launcher(const struct kp_run_folder *folder, const struct kp_found *f)
{
    if (f->rank >= 0) return false;
    for (size_t i = 0; i < folder->count; i++)
        if (folder->of[i].rank >= 0 && is_above(folder, f, &folder->of[i]))
            return !(f->is_spool ? spool_has_op(f) : has_op(f));
    return false;
}

const struct kp_found *kp_run_folder_drop_launchers(struct kp_run_folder *folder, size_t *count)
{
    static struct kp_found last; /* for the time of the command */
    size_t kept = 0, ranks = 0;
    *count = 0;
    for (size_t i = 0; i < folder->count; i++) ranks += folder->of[i].rank >= 0;
    if (!ranks || ranks == folder->count) return NULL;
    for (size_t i = 0; i < folder->count; i++) kp_found_note(&folder->of[i]);
    for (size_t i = 0; i < folder->count; i++) folder->of[i].is_launcher = is_launcher(folder, &folder->of[i]);
    for (size_t i = 0; i < folder->count; i++) {
        if (!folder->of[i].is_launcher) {
            folder->of[kept++] = folder->of[i];
            continue;
        }
        if (folder->of[i].is_spool) { /* of a job that runs: no trace of it may ever come */
            free(folder->of[i].path);
            continue;
        }
        free(last.path);
        last = folder->of[i];
        ++*count;
    }
    folder->count = kept;
    return *count ? &last : NULL;
}
