// SPDX-License-Identifier: Apache-2.0
/*
 * latest.c - finds the latest run in a folder by the names of its files
 *
 * A file is WORKER.NANOSECONDS.pt.trace.json[.gz], or WORKER.NANOSECONDS.kprof of a run without a trace yet. A worker
 * is a process: HOST_PID, or HOST_rRANK_PID in a job of several ranks. The newest file names the run. Its other files
 * are those of the same worker, and those of the worker that wrote last for each other rank.
 */
#include "export/cli/latest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/cli/cli.h"
#include "export/cli/trace_source.h"
#include "export/cli/spool_export.h"
#include "export/report/kineto.h"

/* Ranks of one job end within this time of each other. */
#define RANKS_APART_NS (60 * INT64_C(1000000000))

struct found {
    char *path;
    char worker[256];           /* HOST_PID */
    int64_t since_ns, until_ns; /* a trace's time of writing; a spool's first and last write */
    long rank;                  /* -1: none in the name */
    char program[64];           /* the script, or the process's name; read by head_note */
    long parent_pid;            /* 0: not known; read by head_note */
    enum program_kind { PROGRAM_ANY, PROGRAM_PYTHON, PROGRAM_TORCH } kind; /* the same */
    bool is_spool, is_of_run;
};
struct folder {
    const char *path;
    struct found *of;
    size_t count, capacity;
};

static bool end_cut(char *name, const char *end)
{
    if (!kp_input_has_end(name, end)) return false;
    name[strlen(name) - strlen(end)] = 0;
    return true;
}

/* HOST_PID_PHASE: a process has a trace for each phase. Takes the phase, which follows the last number, out of the
 * name. */
static void phase_cut(char *worker)
{
    char *end = NULL;
    for (char *at = worker; *at; at += *at == '_') {
        const size_t part = strcspn(at, "_");
        if (part && strspn(at, "0123456789") == part) end = at + part;
        at += part;
    }
    if (end) *end = 0;
}

/* HOST_rRANK_PID: the rank, or -1. Takes it out of the name, since a spool's name has none. */
static long rank_cut(char *worker)
{
    char *const pid = strrchr(worker, '_'), *at = pid, *end;
    while (at && at > worker && at[-1] != '_') at--;
    if (!at || at == worker || *at != 'r') return -1;
    const long rank = strtol(at + 1, &end, 10);
    if (end != pid || end == at + 1) return -1;
    memmove(at, pid + 1, strlen(pid + 1) + 1);
    return rank;
}

/* False: no trace and no spool. A name without a time has the time of its last change. */
static bool name_read(const char *name, const struct stat *st, struct found *out)
{
    const int64_t changed_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
    snprintf(out->worker, sizeof out->worker, "%s", name);
    out->is_spool = end_cut(out->worker, ".kprof");
    (void)end_cut(out->worker, ".gz");
    if (!out->is_spool && !end_cut(out->worker, ".pt.trace.json")) return false;
    out->since_ns = out->until_ns = changed_ns;
    char *const dot = strrchr(out->worker, '.'), *end = dot;
    const int64_t named_ns = dot ? strtoll(dot + 1, &end, 10) : 0;
    if (dot && end > dot + 1 && !*end) {
        *dot = 0;
        out->since_ns = named_ns;
        out->until_ns = out->is_spool ? changed_ns : named_ns;
    }
    phase_cut(out->worker);
    out->rank = rank_cut(out->worker);
    return true;
}

static void file_consider(struct folder *folder, const char *name)
{
    struct found found = {0};
    struct stat st;
    if (asprintf(&found.path, "%s/%s", folder->path, name) < 0) return;
    /* The user did not name the file: only a plain one is opened. */
    if (stat(found.path, &st) != 0 || !S_ISREG(st.st_mode) || !name_read(name, &st, &found)) {
        free(found.path);
        return;
    }
    folder->of = kp_kineto_grow(folder->of, &folder->capacity, folder->count + 1, sizeof *folder->of);
    folder->of[folder->count++] = found;
}

static bool is_same_worker(const struct found *a, const struct found *b) { return strcmp(a->worker, b->worker) == 0; }

static bool has_trace(const struct folder *folder, const struct found *f)
{
    for (size_t i = 0; i < folder->count; i++)
        if (!folder->of[i].is_spool && is_same_worker(&folder->of[i], f)) return true;
    return false;
}

static int found_compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return x->since_ns != y->since_ns ? (x->since_ns < y->since_ns ? -1 : 1) : strcmp(x->path, y->path);
}

/* Reads the folder, by rank and time. 0 or -errno. */
static int folder_list(struct folder *folder)
{
    DIR *const names = opendir(folder->path);
    const struct dirent *entry;
    if (!names) return -errno;
    while ((entry = readdir(names)) != NULL) file_consider(folder, entry->d_name);
    closedir(names);
    if (folder->count) qsort(folder->of, folder->count, sizeof *folder->of, found_compare);
    return 0;
}

/* Leaves out a spool beside a trace of its own process. */
static void folder_thin(struct folder *folder)
{
    size_t kept = 0;
    for (size_t i = 0; i < folder->count; i++) {
        if (folder->of[i].is_spool && has_trace(folder, &folder->of[i])) free(folder->of[i].path);
        else folder->of[kept++] = folder->of[i];
    }
    folder->count = kept;
}

static void folder_forget(struct folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) free(folder->of[i].path);
    free(folder->of);
    *folder = (struct folder){.path = folder->path};
}

/* The newest file, of all or of one rank. */
static const struct found *newest_of(const struct folder *folder, bool any_rank, long rank)
{
    const struct found *newest = NULL;
    for (size_t i = 0; i < folder->count; i++)
        if ((any_rank || folder->of[i].rank == rank) && (!newest || folder->of[i].since_ns > newest->since_ns))
            newest = &folder->of[i];
    return newest;
}

static int64_t worker_begin(const struct folder *folder, const struct found *of)
{
    int64_t since_ns = of->since_ns;
    for (size_t i = 0; i < folder->count; i++)
        if (is_same_worker(&folder->of[i], of) && folder->of[i].since_ns < since_ns) since_ns = folder->of[i].since_ns;
    return since_ns;
}

static size_t run_mark(const struct folder *folder)
{
    const struct found *const newest = newest_of(folder, true, 0);
    const int64_t since_ns = newest ? worker_begin(folder, newest) : 0;
    size_t marked = 0;
    for (size_t i = 0; i < folder->count; i++) {
        struct found *const f = &folder->of[i];
        const struct found *const last = newest_of(folder, false, f->rank);
        f->is_of_run =
            is_same_worker(f, newest) || (newest->rank >= 0 && f->rank >= 0 && f->rank != newest->rank &&
                                          is_same_worker(f, last) && last->until_ns >= since_ns - RANKS_APART_NS);
        marked += f->is_of_run;
    }
    return marked;
}

/* Recovers what killed programs left, in the latest run or in all of the folder. True: the folder changed. */
static bool killed_recover(const char *command, const struct folder *folder, bool all)
{
    const char **const names = calloc(folder->count + 1, sizeof *names);
    size_t count = 0;
    if (!names) return false;
    for (size_t i = 0; i < folder->count; i++)
        if (folder->of[i].is_spool && (all || folder->of[i].is_of_run))
            names[count++] = strrchr(folder->of[i].path, '/') + 1;
    const unsigned gone = count ? kp_latest_recover(command, folder->path, names, count) : 0;
    free(names);
    return gone != 0;
}

/* The folder's files as a command may read them. 0 or -errno. */
static int folder_read(const char *command, struct folder *folder, unsigned wish, bool all)
{
    folder_forget(folder);
    int rc = folder_list(folder);
    if (rc) return rc;
    run_mark(folder);
    if (!(wish & KP_LATEST_SPOOL) && killed_recover(command, folder, all)) {
        folder_forget(folder);
        rc = folder_list(folder);
    }
    folder_thin(folder);
    return rc;
}

/* What to know of a run that has no trace yet. */
static const char *spool_note(const struct folder *folder, const struct found *f)
{
    static char note[4400];
    struct kp_file_head head;
    FILE *const file = f->is_spool ? fopen(f->path, "rbe") : NULL;
    const bool is_read = file && fread(&head, sizeof head, 1, file) == 1;
    if (file) fclose(file);
    if (!f->is_spool) return "";
    if (is_read && kp_spool_state(&head, f->path) == KP_SPOOL_RUNNING)
        return " (its program still runs: what it has recorded so far)";
    snprintf(note, sizeof note, " (its program was ended before it wrote a trace: kprof recover %s writes one)",
             folder->path);
    return note;
}

/* ---- when the last run began ---- */

#define RUN_MARK ".last-run"

void kp_latest_begin(const char *folder)
{
    char path[4400];
    struct stat st;
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)) return;
    snprintf(path, sizeof path, "%s/" RUN_MARK, folder);
    const int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0) return;
    (void)futimens(fd, NULL);
    close(fd);
}

/* Says that a later run than that of `newest` has left nothing. */
static void nothing_since_say(const char *command, const struct folder *folder, const struct found *newest)
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
static void several_say(const char *command, struct folder *folder)
{
    const size_t of_run = folder->count ? run_mark(folder) : 0;
    if (of_run && of_run < folder->count)
        kp_cli_say(stderr, "kprof %s: %s has more than one run; the latest alone: kprof %s %s/latest", command,
                   folder->path, command, folder->path);
}

/* Gives the run's files to *paths. */
static int run_give(const char *command, const struct folder *folder, char ***paths)
{
    const size_t wanted = run_mark(folder);
    static char **given; /* for the time of the command */
    const struct found *first = NULL;
    int count = 0;
    free(given);
    given = calloc(wanted + 1, sizeof *given);
    if (!given) return kp_cli_fail(command, "out of memory"), 0;
    for (size_t i = 0; i < folder->count; i++) {
        if (!folder->of[i].is_of_run) continue;
        if (!first) first = &folder->of[i];
        given[count++] = folder->of[i].path;
    }
    if (count == 1) kp_cli_say(stderr, "kprof %s: latest run: %s%s", command, first->path, spool_note(folder, first));
    else
        kp_cli_say(stderr, "kprof %s: latest run: %d files in %s, from %s on", command, count, folder->path,
                   first->path);
    *paths = given;
    return count;
}

static int newest_give(const char *command, const struct folder *folder, char ***paths)
{
    static char *given[2];
    const struct found *const newest = newest_of(folder, true, 0);
    given[0] = newest->path;
    if (folder->count > 1)
        kp_cli_say(stderr, "kprof %s: %s has %zu traces; this is of the newest, %s%s", command, folder->path,
                   folder->count, newest->path, spool_note(folder, newest));
    *paths = given;
    return 1;
}

/* ---- who ran whom ---- */

struct head_text {
    char bytes[8192];
    size_t used;
};

static int head_take(void *context, const char *text, size_t bytes)
{
    struct head_text *head = context;
    const size_t room = sizeof head->bytes - 1 - head->used, n = bytes < room ? bytes : room;
    memcpy(head->bytes + head->used, text, n);
    head->used += n;
    head->bytes[head->used] = 0;
    return head->used == sizeof head->bytes - 1; /* enough */
}

/* Copies what stands behind `key` in a head, up to the quote. */
static void quoted_copy(char *out, size_t room, const char *head, const char *key)
{
    const char *const at = strstr(head, key);
    if (at) snprintf(out, room, "%.*s", (int)strcspn(at + strlen(key), "\""), at + strlen(key));
}

/* Notes which process started this trace's process, and what program it is. */
static void head_note(struct found *f)
{
    struct head_text head = {.used = 0};
    char why[256];
    if (f->is_spool) return;
    (void)kp_text_file_each(f->path, head_take, &head, why, sizeof why);
    const char *const at = strstr(head.bytes, "\"ppid\": ");
    f->parent_pid = at ? strtol(at + sizeof "\"ppid\": " - 1, NULL, 10) : 0;
    quoted_copy(f->program, sizeof f->program, head.bytes, "\"args\":{\"name\":\"");
    quoted_copy(f->program, sizeof f->program, head.bytes, "\"script\": \"");
    if (strstr(head.bytes, "\"torch_version\": ")) f->kind = PROGRAM_TORCH;
    else if (strstr(head.bytes, "\"script\": ")) f->kind = PROGRAM_PYTHON;
}

static long worker_pid(const struct found *f)
{
    const char *const at = strrchr(f->worker, '_');
    return at ? strtol(at + 1, NULL, 10) : 0;
}

static const struct found *newest_of_pid(const struct folder *folder, long pid)
{
    const struct found *newest = NULL;
    for (size_t i = 0; i < folder->count; i++)
        if (worker_pid(&folder->of[i]) == pid && (!newest || folder->of[i].since_ns > newest->since_ns))
            newest = &folder->of[i];
    return newest;
}

/* The trace of the process that started this one's, or NULL. */
static const struct found *above_of(const struct folder *folder, const struct found *f)
{
    return f->parent_pid ? newest_of_pid(folder, f->parent_pid) : NULL;
}

static bool is_below(const struct folder *folder, const struct found *f, const struct found *top)
{
    for (size_t up = 0; f && up < folder->count; up++, f = above_of(folder, f))
        if (is_same_worker(f, top)) return true;
    return false;
}

/* How much the heap's profile beside a trace holds: the more allocations, the larger. */
static int64_t heap_bytes(const struct found *f)
{
    struct stat st;
    char path[4400];
    const char *const end = strstr(f->path, ".pt.trace.json");
    if (!end) return 0;
    snprintf(path, sizeof path, "%.*s.heap.zst", (int)(end - f->path), f->path);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* A program with torch goes before one without. What is no Python is a wrapper, if what it ran allocated more. Else the
 * program goes before what it ran, and its newest trace before others. */
static bool is_rather(const struct folder *folder, const struct found *f, const struct found *best)
{
    if (f->kind != best->kind) return f->kind > best->kind;
    if (f->kind == PROGRAM_ANY) return heap_bytes(f) > heap_bytes(best);
    return is_same_worker(f, best) ? f->since_ns > best->since_ns : is_below(folder, best, f);
}

/* `top` may be a wrapper (timeout, a shell): the program that it ran is meant. */
static const struct found *program_below(const struct folder *folder, const struct found *top)
{
    const struct found *best = top;
    for (size_t i = 0; i < folder->count; i++) {
        const struct found *const f = &folder->of[i];
        if (!f->is_spool && is_below(folder, f, top) && is_rather(folder, f, best)) best = f;
    }
    return best;
}

/* The newest trace of the process that ran the one with the newest trace, or that ran it through others. */
static int parent_give(const char *command, const struct folder *folder, char ***paths)
{
    static char *given[2];
    for (size_t i = 0; i < folder->count; i++) head_note(&folder->of[i]);
    const struct found *const newest = newest_of(folder, true, 0), *at = newest, *above;
    for (size_t up = 0; up < folder->count && (above = above_of(folder, at)); up++) at = above;
    const struct found *const program = program_below(folder, at);
    if (program == newest || (program == at && is_same_worker(at, newest))) return newest_give(command, folder, paths);
    given[0] = program->path;
    if (program == at)
        kp_cli_say(stderr, "kprof %s: this is of the program itself, %s; a program that it ran left another, %s",
                   command, at->path, newest->path);
    else
        kp_cli_say(stderr, "kprof %s: this is of %s, %s; %s ran it and left another, %s", command,
                   *program->program ? program->program : "the program", program->path,
                   *at->program ? at->program : "what", at->path);
    *paths = given;
    return 1;
}

/* Of a job of several ranks the newest trace of each; the files are sorted by rank and time. */
static int ranks_give(const char *command, struct folder *folder, char ***paths)
{
    static char **given; /* for the time of the command */
    int count = 0;
    long last = -1;
    run_mark(folder);
    free(given);
    given = calloc(folder->count + 1, sizeof *given);
    if (!given) return kp_cli_fail(command, "out of memory"), 0;
    for (size_t i = 0; i < folder->count; i++) {
        const struct found *const f = &folder->of[i];
        if (!f->is_of_run || f->rank < 0) continue;
        if (count && f->rank == last) count--;
        given[count++] = f->path;
        last = f->rank;
    }
    if (count < 2) return newest_give(command, folder, paths);
    kp_cli_say(stderr, "kprof %s: latest run: %d ranks in %s, from %s on", command, count, folder->path, given[0]);
    *paths = given;
    return count;
}

/* Cuts /latest off a path, where no file has that name. False: another path. */
static bool is_latest_name(const char *path, char *folder, size_t room)
{
    struct stat st;
    const char *const slash = strrchr(path, '/');
    if (lstat(path, &st) == 0 || strcmp(slash ? slash + 1 : path, "latest") != 0) return false;
    if (!slash) snprintf(folder, room, ".");
    else snprintf(folder, room, "%.*s", slash == path ? 1 : (int)(slash - path), path);
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
    kp_cli_misuse(command, "no traces here: %s '%s'; record some: kprof run -- python train.py", why, path);
}

int kp_latest_take(const char *command, char ***paths, int count, unsigned wish)
{
    static struct folder folder;
    static char above[4400];
    struct stat st;
    if (count > 1) return count;
    if (count && is_latest_name((*paths)[0], above, sizeof above)) folder.path = above;
    else if (count && (stat((*paths)[0], &st) != 0 || !S_ISDIR(st.st_mode))) return count;
    else folder.path = count ? (*paths)[0] : folder_usual();
    const bool is_named = count && folder.path != above, is_part = wish & (KP_LATEST_ONE | KP_LATEST_RANKS);
    const int rc = folder_read(command, &folder, wish, is_named && !is_part);
    if (!rc) nothing_since_say(command, &folder, newest_of(&folder, true, 0));
    if (is_named && !is_part) {
        if (!rc) several_say(command, &folder);
        return count;
    }
    if (count && (rc || !folder.count)) return count; /* the command says what is wrong with it */
    if (rc || !folder.count) return none_say(command, folder.path, rc), 0;
    if (wish & KP_LATEST_RANKS) return ranks_give(command, &folder, paths);
    if (wish & KP_LATEST_PARENT) return parent_give(command, &folder, paths);
    return wish & KP_LATEST_ONE ? newest_give(command, &folder, paths) : run_give(command, &folder, paths);
}
