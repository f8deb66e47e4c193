// SPDX-License-Identifier: Apache-2.0
/* advised.c - reads a trace and judges it; says the largest findings of the newest one (kprof run) */
#include "export/answers/runadvice/advised.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "export/answers/advise/advice.h"
#include "export/show/say.h"
#include "export/read/kineto/ended.h"
#include "export/read/folder/heapprofile.h"
#include "export/read/folder/jobends.h"
#include "export/read/folder/trace_source.h"
#include "export/read/kineto/overlaps.h"
#include "export/show/fields.h"
#include "export/show/units.h"

enum { SAID_MOST = 3 };
#define SAID_SHARE 0.2 /* of a step: what evaluations take, before they are said unasked */

static int tree_make(struct kp_tree *tree, struct kp_kineto *trace, const char *label, char *why, size_t why_bytes)
{
    char heap[4096];
    trace->has_heap = kp_profile_find(heap, sizeof heap, label);
    kp_kineto_works_settle(trace);
    if (kp_tree_build(tree, trace) < 0) {
        snprintf(why, why_bytes, "%s: too many events", label);
        return -E2BIG;
    }
    kp_tree_fill_calls(tree);
    kp_tree_set_forward_stacks(tree);
    return 0;
}

int kp_advised_read(struct kp_kineto **trace, struct kp_tree *tree, const struct kp_texts *texts, const char *label,
                    char *why, size_t why_bytes)
{
    const struct kp_kineto_wish wish = {.texts = *texts, .label = label, .keep_works = true, .lasting_names = true};
    *trace = NULL;
    *tree = (struct kp_tree){0};
    const int rc = kp_kineto_read(trace, &wish, why, why_bytes);
    return rc ? rc : tree_make(tree, *trace, label, why, why_bytes);
}

int kp_advised_read_part(struct kp_kineto **trace, struct kp_tree *tree, const struct kp_texts *texts,
                         const char *label, bool takes_part, bool *is_part, char *why, size_t why_bytes)
{
    const int rc = kp_advised_read(trace, tree, texts, label, why, why_bytes);
    *is_part = rc && takes_part && kp_trace_source_take_torn(*trace, why, why_bytes);
    return *is_part ? tree_make(tree, *trace, label, why, why_bytes) : rc;
}

int kp_advised_read_all(struct kp_kineto **trace, struct kp_tree *tree, struct kp_chosen *chosen, const char *path)
{
    char why[512];
    *chosen = (struct kp_chosen){0};
    const int rc = kp_advised_read(trace, tree, &(struct kp_texts){kp_text_file_each, path}, path, why, sizeof why);
    return rc ? rc : kp_chosen_all(chosen, tree, why, sizeof why);
}

static int judge(struct kp_advised *a, char *why, size_t why_bytes)
{
    const int rc = kp_chosen_all(&a->chosen, &a->tree, why, why_bytes);
    if (rc == 0) kp_advice_make(&a->advice, &a->tree, &a->chosen);
    return rc;
}

int kp_advised_open(struct kp_advised *a, const struct kp_texts *texts, const char *label, bool takes_part, char *why,
                    size_t why_bytes)
{
    *a = (struct kp_advised){0};
    const int rc = kp_advised_read_part(&a->trace, &a->tree, texts, label, takes_part, &a->is_part, why, why_bytes);
    if (rc == 0) kp_jobends_settle(a->trace, label);
    return rc ? rc : judge(a, why, why_bytes);
}

int kp_advised_of(struct kp_advised *a, struct kp_kineto *trace, const char *label, char *why, size_t why_bytes)
{
    *a = (struct kp_advised){.trace = trace};
    const int rc = tree_make(&a->tree, trace, label, why, why_bytes);
    return rc ? rc : judge(a, why, why_bytes);
}

void kp_advised_close(struct kp_advised *a)
{
    kp_chosen_fini(&a->chosen);
    kp_tree_fini(&a->tree);
    kp_kineto_close(a->trace);
    free(a->workers);
}

/* ---- the end of a run ---- */

static bool is_newer(const char *path, const struct timespec *than, struct stat *st)
{
    return stat(path, st) == 0 && S_ISREG(st->st_mode) &&
           (st->st_mtim.tv_sec > than->tv_sec ||
            (st->st_mtim.tv_sec == than->tv_sec && st->st_mtim.tv_nsec >= than->tv_nsec));
}

/* Returns the path of the newest file of this kind, or NULL. The caller frees it. Not one that begins with the `bytes`
 * of `but`. */
static char *newest_but(const char *folder, bool (*is_wanted)(const char *name), const struct timespec *since,
                        const char *but, size_t bytes)
{
    char *newest = NULL;
    struct timespec last = *since;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char *path;
        struct stat st;
        if (!is_wanted(entry->d_name) || asprintf(&path, "%s/%s", folder, entry->d_name) < 0) continue;
        if (is_newer(path, &last, &st) && !(bytes && strncmp(path, but, bytes) == 0)) {
            free(newest);
            newest = path;
            last = st.st_mtim;
        } else {
            free(path);
        }
    }
    if (dir) closedir(dir);
    return newest;
}

static char *newest_find(const char *folder, bool (*is_wanted)(const char *name), const struct timespec *since)
{
    return newest_but(folder, is_wanted, since, NULL, 0);
}

char *kp_advised_newest(const char *folder) { return newest_find(folder, kp_input_is_trace, &(struct timespec){0, 0}); }

static void killed_say(const char *folder, int signal, bool lacked_memory)
{
    kp_cli_say(stderr, "kprof: killed by signal %d (%s%s). %s until then is kept. Next: kprof report %s", signal,
               signal == SIGINT ? "Interrupt: Ctrl-C" : strsignal(signal),
               lacked_memory ? "; the kernel killed a process because memory ran out" : "",
               getenv("KPROF_RING") ? "The ring of the last seconds" : "The recording", folder);
}

/* A process that a program left behind may write its trace yet. */
void kp_advised_left_say(const char *folder, const struct timespec *since, int signal, bool lacked_memory)
{
    char *const path = newest_find(folder, kp_input_is_spool, since);
    char *const trace = path && !signal ? newest_find(folder, kp_input_is_trace, since) : NULL;
    if (path && signal) killed_say(folder, signal, lacked_memory);
    else if (path && !trace && !kp_input_is_running(path))
        kp_cli_say(stderr,
                   "kprof: ended " KP_ENDED_WITHOUT_EXIT ", so no trace was written. The recording until then is kept. "
                   "Next: kprof report %s",
                   folder);
    free(trace);
    free(path);
}

static int trace_filter(const struct dirent *entry) { return kp_input_is_trace(entry->d_name); }
static int spool_filter(const struct dirent *entry) { return kp_input_is_spool(entry->d_name); }

struct ran {
    int status;
    const char *folder;
    const struct timespec *since;
};
struct ran_trace {
    const char *path;
    int64_t bytes;
};
#define TRACE(F, IF) F(TEXT, file, r->path) F(WHOLE, bytes, r->bytes)
KP_FIELDS(trace, struct ran_trace, TRACE)

static void file_put(void *json, const char *path, int64_t bytes)
{
    kp_fields_put(json, NULL, &trace_fields, &(struct ran_trace){path, bytes});
}

static void traces_put(struct kp_jsonout *j, const char *key, const struct ran *r)
{
    kp_jsonout_open(j, key, '[');
    kp_advised_each(r->folder, r->since, file_put, j);
    kp_jsonout_close(j, ']');
}

#define RAN(F, IF)                                                   \
    IF(WIFSIGNALED(r->status), WHOLE, signal, WTERMSIG(r->status))   \
    IF(!WIFSIGNALED(r->status), WHOLE, exit, WEXITSTATUS(r->status)) \
    F(EACH_OF, traces, (trace, traces_put, r))
KP_FIELDS(ran, struct ran, RAN)

const struct kp_fields *const kp_advised_schema = &ran_fields;

void kp_advised_json(FILE *out, int status, const char *folder, const struct timespec *since)
{
    kp_fields_put(KP_JSONOUT(out), NULL, &ran_fields, &(struct ran){status, folder, since});
    fputc('\n', out);
}

static void finding_say(const struct kp_finding *f)
{
    char cost[192] = "", size[32];
    char room[512];
    const char *const known = kp_finding_line(f, room, sizeof room), *const line = known ? known : f->where;
    if (f->once_ns > 0) snprintf(cost, sizeof cost, ": %.1f ms once, in step %ld", f->once_ns / 1e6, f->once_step);
    else if (f->step_ns > 0)
        snprintf(cost, sizeof cost, ": %s%.3g ms per step, %.0f %%%s%s", f->is_at_most ? "at most " : "",
                 f->step_ns / 1e6, 100 * f->share, f->share_of ? " " : "", f->share_of ? f->share_of : "");
    else if (f->step_bytes > 0)
        snprintf(cost, sizeof cost, ": %s", kp_units_bytes(size, sizeof size, (int64_t)f->step_bytes));
    const char *const at = kp_finding_is_beside(f) ? ", " : f->is_gap && !known ? ", before " : ", at ";
    kp_cli_say(stderr, "kprof: %s%s%s%s. %s", f->what, cost, line ? at : "", line ? line : "", f->change);
}

static void advice_say(const struct kp_advice *a, const char *path, bool only_findings)
{
    if (a->guessed && a->count) kp_cli_say(stderr, "kprof: %s", a->guessed);
    for (size_t i = 0; i < a->count && i < SAID_MOST; i++) finding_say(&a->findings[i]);
    if (a->count > SAID_MOST) kp_cli_say(stderr, "kprof: %zu more. Next: kprof advise %s", a->count - SAID_MOST, path);
    if (a->evaluated_ns > 0 && a->evaluated_ns >= SAID_SHARE * a->step_ns)
        kp_cli_say(stderr, "kprof: %s", a->evaluated);
    if (a->crowded) kp_cli_say(stderr, "kprof: %s", a->crowded);
    if (only_findings) return;
    if (!a->count && a->most) kp_cli_say(stderr, "kprof: %s", a->most);
    if (a->missing)
        kp_cli_say(stderr, "kprof: %s%s",
                   a->count           ? "incomplete: "
                   : a->is_unrecorded ? ""
                                      : "no advice: ",
                   a->missing);
    else if (!a->count) kp_cli_say(stderr, "kprof: nothing found%s", a->is_healthy ? ": the steps are healthy" : "");
    if (a->outside) kp_cli_say(stderr, "kprof: %s", a->outside);
}

static size_t each_of(const char *folder, int (*filter)(const struct dirent *entry), const struct timespec *since,
                      kp_advised_each_fn fn, void *context)
{
    size_t count = 0;
    struct dirent **entries;
    const int all = scandir(folder, &entries, filter, alphasort);
    for (int i = 0; i < all; i++) {
        char *path;
        struct stat st;
        if (asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0) path = NULL;
        const bool is_of_run = path && is_newer(path, since, &st);
        count += is_of_run;
        if (is_of_run && fn) fn(context, path, st.st_size);
        free(path);
        free(entries[i]);
    }
    if (all >= 0) free(entries);
    return count;
}

size_t kp_advised_each(const char *folder, const struct timespec *since, kp_advised_each_fn fn, void *context)
{
    return each_of(folder, trace_filter, since, fn, context);
}

size_t kp_advised_each_left(const char *folder, const struct timespec *since, kp_advised_each_fn fn, void *context)
{
    return each_of(folder, spool_filter, since, fn, context);
}

/* One trace was read: other windows, ranks and programs have theirs beside it, and workers in the folder children. */
static void others_say(const char *folder, const struct timespec *since, const struct kp_advised *a)
{
    char children[4400];
    snprintf(children, sizeof children, "%s/children", folder);
    const size_t all = a->has_read_ranks ? 0 : kp_advised_each(folder, since, NULL, NULL);
    const size_t of_children = a->has_read_workers ? 0 : kp_advised_each(children, since, NULL, NULL);
    const size_t more = (all ? all - 1 : 0) + of_children;
    if (!more) return;
    kp_cli_say(stderr, "kprof: %zu more trace%s %s not read for this%s. Next: kprof advise %s", more, kp_units_s(more),
               more == 1 ? "is" : "are",
               of_children == 0      ? ""
               : of_children == more ? ", of workers or children"
                                     : ", some of workers or children",
               folder);
}

struct run_end {
    const char *folder;
    const struct timespec *since;
    bool only_findings;
    kp_advised_fn add;
    kp_advised_ranks_fn compare;
};

static void advised_say(const struct run_end *r, struct kp_advised *a, const char *path, const char *why)
{
    if (!why) {
        r->add(a, path);
        r->compare(a, path, r->folder, r->since, !r->only_findings);
        advice_say(&a->advice, path, r->only_findings);
    } else if (!r->only_findings) kp_cli_say(stderr, "kprof: no advice: %s", why);
    others_say(r->folder, r->since, a);
}

static bool trace_say(const struct run_end *r, const char *path, bool needs_steps);

/* "DIR/HOST_PID." of DIR/HOST_PID.TIME.pt.trace.json. */
static size_t process_length(const char *path)
{
    const char *const name = strrchr(path, '/') + 1, *end = strstr(name, ".pt.trace.json");
    while (end && end > name && end[-1] != '.') end--;
    return end && end > name ? (size_t)(end - path) : strlen(path);
}

/* The program that started the ranks ends last, and has no steps: the newest trace of another process has them. */
static bool other_say(const struct run_end *r, const char *path)
{
    char *const other = newest_but(r->folder, kp_input_is_trace, r->since, path, process_length(path));
    const bool is_said = other && trace_say(r, other, true);
    free(other);
    return is_said;
}

static bool trace_say(const struct run_end *r, const char *path, bool needs_steps)
{
    const struct kp_texts texts = {kp_text_file_each, path};
    struct kp_advised a;
    char why[512];
    const int rc = kp_advised_open(&a, &texts, path, false, why, sizeof why);
    const bool has_steps = rc == 0 && a.chosen.step_count;
    const bool is_said = has_steps || !needs_steps;
    if (is_said && (has_steps || !other_say(r, path))) advised_say(r, &a, path, rc ? why : NULL);
    kp_advised_close(&a);
    return is_said;
}

void kp_advised_say(const char *folder, const struct timespec *since, bool only_findings, kp_advised_fn add,
                    kp_advised_ranks_fn compare)
{
    char *const path = newest_find(folder, kp_input_is_trace, since);
    if (path) trace_say(&(struct run_end){folder, since, only_findings, add, compare}, path, false);
    free(path);
}
