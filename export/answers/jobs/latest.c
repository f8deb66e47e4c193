// SPDX-License-Identifier: Apache-2.0
/*
 * latest.c - finds the files of the latest run in a folder: DIR/latest, the newest of each rank, their parent
 *
 * The newest file names the run. Its other files are those of the same worker, and those of the worker that wrote last
 * for each other rank of the same job.
 */
#include "export/answers/jobs/latest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_path.h"
#include "export/show/say.h"
#include "export/answers/jobs/ctlsocket.h"
#include "export/answers/jobs/jobstart.h"
#include "export/read/folder/run_folder.h"
#include "export/read/files/spoolfile.h"
#include "export/read/folder/trace_source.h"

/* Ranks of one job end within this time of each other. */
#define RANKS_APART_NS (60 * INT64_C(1000000000))

/* When the worker of a file wrote first, and since when it is recorded. */
static void worker_begin(struct kp_run_folder *folder, const struct kp_found *of, int64_t *since_ns, int64_t *begin_ns)
{
    *since_ns = *begin_ns = of->since_ns;
    for (size_t i = 0; i < folder->count; i++) {
        struct kp_found *const f = &folder->of[i];
        if (!kp_found_is_same_worker(f, of)) continue;
        kp_found_note(f);
        if (f->since_ns < *since_ns) *since_ns = f->since_ns;
        if (f->begin_ns < *begin_ns) *begin_ns = f->begin_ns;
    }
}

/* The newest file of a rank in the job of `of`. */
static const struct kp_found *newest_of_rank(const struct kp_run_folder *folder, long rank, const struct kp_found *of)
{
    const struct kp_found *newest = NULL;
    for (const struct kp_found *f = folder->of; f < folder->of + folder->count; f++)
        if (f->rank == rank && kp_found_is_same_job(f, of) && (!newest || f->since_ns > newest->since_ns)) newest = f;
    return newest;
}

/* The newest file names the run. A program that started ranks and ran an op itself, as the parent of mp.spawn may, ends
 * last: its ranks are meant. */
static const struct kp_found *newest_of_run(struct kp_run_folder *folder)
{
    const struct kp_found *const newest = kp_run_folder_newest(folder, true, 0);
    bool has_ranks = false;
    for (size_t i = 0; i < folder->count; i++) has_ranks |= folder->of[i].rank >= 0;
    const struct kp_found *const rank = newest && has_ranks ? kp_found_rank_below(folder, newest) : NULL;
    return rank ? rank : newest;
}

/* A rank may be killed long before the others end, so a rank that wrote while the newest was recorded is of its job. */
static size_t run_mark(struct kp_run_folder *folder)
{
    const struct kp_found *const newest = newest_of_run(folder);
    int64_t since_ns = 0, begin_ns = 0;
    size_t marked = 0;
    if (newest && newest->rank >= 0) {
        kp_run_folder_jobs(folder);
        worker_begin(folder, newest, &since_ns, &begin_ns);
    }
    const int64_t least_ns = begin_ns < since_ns - RANKS_APART_NS ? begin_ns : since_ns - RANKS_APART_NS;
    for (size_t i = 0; i < folder->count; i++) {
        struct kp_found *const f = &folder->of[i];
        const bool is_rank = newest->rank >= 0 && f->rank >= 0 && f->rank != newest->rank;
        const struct kp_found *const last = is_rank ? newest_of_rank(folder, f->rank, newest) : NULL;
        f->is_of_run = kp_found_is_same_worker(f, newest) ||
                       (last && kp_found_is_same_worker(f, last) && last->until_ns >= least_ns);
        marked += f->is_of_run;
    }
    return marked;
}

/* Recovers what killed programs left, in the latest run or in all of the folder. True: the folder changed. */
static bool killed_recover(const char *command, const struct kp_run_folder *folder, bool all)
{
    const char **const names = kp_kineto_zeros(folder->count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < folder->count; i++)
        if (folder->of[i].is_spool && (all || folder->of[i].is_of_run))
            names[count++] = strrchr(folder->of[i].path, '/') + 1;
    const unsigned gone = count ? kp_latest_recover(command, folder->path, names, count) : 0;
    free(names);
    return gone != 0;
}

/* The files that killed programs of this machine left of their control (KPROF_CONTROL). */
static void leftovers_remove(const char *folder)
{
    kp_ctlsocket_sweep(folder);
    kp_jobstart_sweep(folder);
}

/* The folder's files as a command may read them. 0 or -errno. */
static int folder_read(const char *command, struct kp_run_folder *folder, unsigned wish, bool all)
{
    kp_run_folder_free(folder);
    if (!(wish & KP_LATEST_SPOOL)) kp_cli_join_dead(folder->path); /* may make a file: a disk refused it before */
    int rc = kp_run_folder_read(folder);
    if (rc) return rc;
    run_mark(folder);
    if (!(wish & KP_LATEST_SPOOL)) leftovers_remove(folder->path);
    if (!(wish & KP_LATEST_SPOOL) && killed_recover(command, folder, all)) {
        kp_run_folder_free(folder);
        rc = kp_run_folder_read(folder);
    }
    kp_run_folder_thin(folder);
    return rc;
}

/* The facts about a run that has no trace yet. */
static const char *spool_note(const struct kp_run_folder *folder, const struct kp_found *f, bool several)
{
    static char note[4400];
    if (!f->is_spool) return "";
    if (kp_input_is_running(f->path)) {
        kp_input_running_told();
        return several ? " (programs of it still run: what they have recorded so far)"
                       : " (its program still runs: what it has recorded so far)";
    }
    snprintf(note, sizeof note, " (%s program was ended before it wrote a trace: kprof recover %s writes one)",
             several ? "a" : "its", folder->path);
    return note;
}

/* ---- when the last run began ---- */

#define RUN_MARK ".last-run"

void kp_latest_begin(const char *folder)
{
    char path[4400];
    struct stat st;
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)) return;
    leftovers_remove(folder);
    snprintf(path, sizeof path, "%s/" RUN_MARK, folder);
    const int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0) return;
    (void)futimens(fd, NULL);
    close(fd);
}

/* Says that a later run than that of `newest` has left nothing. */
static void nothing_since_say(const char *command, const struct kp_run_folder *folder, const struct kp_found *newest)
{
    char path[4400], when[40] = "";
    struct stat st;
    struct tm parts;
    snprintf(path, sizeof path, "%s/" RUN_MARK, folder->path);
    if (!newest || lstat(path, &st) != 0 || !S_ISREG(st.st_mode)) return;
    const int64_t began_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    if (newest->until_ns >= began_ns) return;
    if (localtime_r(&st.st_mtim.tv_sec, &parts)) strftime(when, sizeof when, " (%H:%M:%S)", &parts);
    kp_cli_say(stderr, "kprof %s: the last run into %s%s has written nothing; this is of an older one", command,
               folder->path, when);
}

/* A folder that is named is read as a whole. */
static void several_say(const char *command, struct kp_run_folder *folder)
{
    const size_t of_run = folder->count ? run_mark(folder) : 0;
    if (of_run && of_run < folder->count && kp_found_family(folder) < folder->count)
        kp_cli_say(stderr, "kprof %s: %s has more than one run; the latest alone: kprof %s %s/latest", command,
                   folder->path, command, folder->path);
}

/* Says which traces are left out: those of programs that only started the ranks. */
static bool launchers_drop(const char *command, struct kp_run_folder *folder)
{
    const size_t before = folder->count;
    size_t count;
    const struct kp_found *const one = kp_run_folder_drop_launchers(folder, &count);
    if (!one) return folder->count < before;
    if (count == 1)
        kp_cli_say(stderr, "kprof %s: left out %s of %s, which started the ranks and ran no op", command, one->path,
                   *one->program ? one->program : "the program");
    else
        kp_cli_say(stderr, "kprof %s: left out %zu traces of programs that started ranks and ran no op", command,
                   count);
    return true;
}

/* Makes room for as many paths as the folder has files, for the time of the command. */
static char **room_make(const struct kp_run_folder *folder)
{
    static char **given;
    free(given);
    return given = kp_kineto_zeros(folder->count + 1, sizeof *given);
}

/* Gives the traces of a named folder to *paths, or its spools where it has none. Launchers' are left out. */
static int rest_give(const struct kp_run_folder *folder, char ***paths)
{
    int count = 0;
    bool has_traces = false;
    *paths = room_make(folder);
    for (size_t i = 0; i < folder->count; i++) has_traces |= !folder->of[i].is_spool;
    for (size_t i = 0; i < folder->count; i++)
        if (folder->of[i].is_spool != has_traces) (*paths)[count++] = folder->of[i].path;
    if (has_traces) kp_input_mention_spools(folder->path);
    return count;
}

/* Gives the run's files to *paths. */
static int run_give(const char *command, struct kp_run_folder *folder, char ***paths)
{
    const struct kp_found *first = folder->of, *spool = NULL;
    int count = 0;
    run_mark(folder);
    *paths = room_make(folder);
    while (!first->is_of_run) first++; /* the newest is, at least */
    for (const struct kp_found *f = first; f < folder->of + folder->count; f++) {
        if (!f->is_of_run) continue;
        (*paths)[count++] = f->path;
        if (f->is_spool) spool = f;
    }
    if (count == 1)
        kp_cli_say(stderr, "kprof %s: latest run: %s%s", command, first->path, spool_note(folder, first, false));
    else
        kp_cli_say(stderr, "kprof %s: latest run: %d files in %s, from %s on%s", command, count, folder->path,
                   first->path, spool ? spool_note(folder, spool, true) : "");
    return count;
}

static int one_give(const struct kp_found *one, char ***paths)
{
    static char *given[2];
    given[0] = one->path;
    *paths = given;
    return 1;
}

static int newest_give(const char *command, struct kp_run_folder *folder, char ***paths)
{
    const struct kp_found *const newest = newest_of_run(folder);
    if (folder->count > 1)
        kp_cli_say(stderr, "kprof %s: %s has %zu traces; this is of the newest, %s%s", command, folder->path,
                   folder->count, newest->path, spool_note(folder, newest, false));
    return one_give(newest, paths);
}

static int newer_first(const void *a, const void *b)
{
    const struct kp_found *x = *(const struct kp_found *const *)a, *y = *(const struct kp_found *const *)b;
    if (x->since_ns != y->since_ns) return x->since_ns < y->since_ns ? 1 : -1;
    return strcmp(x->path, y->path);
}

/* Gives all, of which the first is shown first. */
static int all_give(struct kp_run_folder *folder, char ***paths)
{
    const struct kp_found **of = kp_kineto_zeros(folder->count + 1, sizeof *of);
    *paths = room_make(folder);
    for (size_t i = 0; i < folder->count; i++) of[i] = &folder->of[i];
    qsort(of, folder->count, sizeof *of, newer_first);
    for (size_t i = 0; i < folder->count; i++) (*paths)[i] = of[i]->path;
    free(of);
    return (int)folder->count;
}

/* The newest trace of the process that ran the one with the newest trace, or that ran it through others. */
static int parent_give(const char *command, struct kp_run_folder *folder, char ***paths)
{
    for (size_t i = 0; i < folder->count; i++) kp_found_note(&folder->of[i]);
    const struct kp_found *const newest = kp_run_folder_newest(folder, true, 0), *at = newest, *above;
    for (size_t up = 0; up < folder->count && (above = kp_found_above(folder, at)); up++) at = above;
    const struct kp_found *const program = kp_found_program(folder, at);
    if (program == newest || (program == at && kp_found_is_same_worker(at, newest)))
        return newest_give(command, folder, paths);
    if (program == at)
        kp_cli_say(stderr, "kprof %s: this is of the program itself, %s; a program that it ran left another, %s",
                   command, at->path, newest->path);
    else
        kp_cli_say(stderr, "kprof %s: this is of %s, %s; %s ran it and left another, %s", command,
                   *program->program ? program->program : "the program", program->path,
                   *at->program ? at->program : "what", at->path);
    return one_give(program, paths);
}

/* The newest trace of each rank of a job; the files are sorted by rank and time. */
static int ranks_give(const char *command, struct kp_run_folder *folder, char ***paths, bool with_rest)
{
    int count = 0;
    long last = -1;
    run_mark(folder);
    *paths = room_make(folder);
    for (size_t i = 0; i < folder->count; i++) {
        const struct kp_found *const f = &folder->of[i];
        if (!f->is_of_run || f->rank < 0) continue;
        if (count && f->rank == last) count--;
        (*paths)[count++] = f->path;
        last = f->rank;
    }
    if (count < 2) return with_rest ? all_give(folder, paths) : newest_give(command, folder, paths);
    kp_cli_say(stderr, "kprof %s: latest run: %d ranks in %s, from %s on", command, count, folder->path, **paths);
    return count;
}

/* Cuts /latest off a path, where no file has that name. False: another path. */
static bool is_latest_name(const char *path, char *folder, size_t room)
{
    struct stat st;
    if (lstat(path, &st) == 0 || strcmp(kp_path_base(path), "latest") != 0) return false;
    kp_path_folder(folder, room, path);
    return true;
}

/* The folder without arguments. */
static const char *folder_usual(void)
{
    const char *const set = getenv("KPROF_DIR");
    return set && *set ? set : "kprof";
}

static void none_say(const char *command, const char *path, int rc)
{
    char why[160];
    if (rc == -ENOENT) snprintf(why, sizeof why, "there is no folder");
    else if (rc) snprintf(why, sizeof why, "%s:", strerror(-rc));
    else snprintf(why, sizeof why, "none lies in the folder");
    kp_cli_misuse(command, "no traces here: %s '%s'; record one: kprof run -- python train.py", why, path);
}

int kp_latest_take(const char *command, char ***paths, int count, unsigned wish)
{
    static struct kp_run_folder folder;
    static char above[4400];
    struct stat st;
    if (count > 1) return count;
    if (count && is_latest_name((*paths)[0], above, sizeof above)) folder.path = above;
    else if (count && (stat((*paths)[0], &st) != 0 || !S_ISDIR(st.st_mode))) return count;
    else folder.path = count ? (*paths)[0] : folder_usual();
    const bool is_named = count && folder.path != above, is_part = wish & (KP_LATEST_ONE | KP_LATEST_RANKS);
    const int rc = folder_read(command, &folder, wish, is_named && !is_part);
    if (!rc) nothing_since_say(command, &folder, kp_run_folder_newest(&folder, true, 0));
    const bool is_less = !rc && !(wish & KP_LATEST_SPOOL) && launchers_drop(command, &folder);
    if (is_named && !is_part) {
        if (!rc) several_say(command, &folder);
        return is_less ? rest_give(&folder, paths) : count;
    }
    if (count && (rc || !folder.count)) { /* the command says what is wrong with the folder */
        (*paths)[0] = (char *)(uintptr_t)folder.path;
        return count;
    }
    if (rc || !folder.count) return none_say(command, folder.path, rc), 0;
    if (wish & KP_LATEST_RANKS) return ranks_give(command, &folder, paths, wish & KP_LATEST_REST);
    if (wish & KP_LATEST_PARENT) return parent_give(command, &folder, paths);
    return wish & KP_LATEST_ONE ? newest_give(command, &folder, paths) : run_give(command, &folder, paths);
}
