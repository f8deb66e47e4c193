// SPDX-License-Identifier: Apache-2.0
/* stood.c - what a trace's process wrote beside it when it stood (KPROF_HANG) or was out of memory (KPROF_ON_OOM) */
#include "export/answers/jobs/stood.h"

#include <dirent.h>
#include <stdlib.h>
#include <time.h>

#include "collector/base/sys/kp_path.h"
#include "export/answers/hang/hangjudge.h"
#include "export/answers/hang/hangrests.h"
#include "export/answers/memory/oomfiles.h"
#include "export/show/say.h"
#include "export/answers/jobs/whereask.h"
#include "export/read/files/procrests.h"
#include "export/read/kineto/ended.h"
#include "export/read/kineto/kineto_facts.h"

enum { BETWEEN_MS = 200 };   /* two looks at a program */
enum { SOON_NS = 60000000 }; /* a file is written behind the moment that it is about */

static int64_t last_begin_ns(const struct kp_tree *tree)
{
    int64_t ns = tree->trace->start_ns;
    for (size_t i = 0; i < tree->count; i++)
        if (kp_tree_event(tree, i)->kind == KP_KINETO_OP && tree->nodes[i].start_ns > ns) ns = tree->nodes[i].start_ns;
    return ns;
}

/* False: no file of KPROF_HANG tells of the end of this trace. */
static bool hang_judge(struct kp_hang_verdict *out, const struct kp_tree *tree, const char *folder)
{
    struct kp_hang hang = {0};
    bool is_of = false;
    const size_t count = kp_where_files(&hang, folder);
    const int64_t last_ns = count ? last_begin_ns(tree) : 0;
    for (size_t i = 0; i < count; i++)
        is_of |= hang.of[i].pid == (long)kp_kineto_pid(tree->trace) && 1e6 * hang.of[i].time_ms >= (double)last_ns;
    if (is_of) kp_hang_judge(out, &hang, NULL);
    kp_hang_fini(&hang);
    return is_of;
}

static void oom_take(void *context, const struct kp_oom *oom)
{
    struct kp_kineto *const trace = context;
    const bool is_of = oom->pid == kp_kineto_pid(trace) && 1000000 * oom->time_ms + SOON_NS >= trace->start_ns;
    if (is_of && !kp_kineto_fact(trace, "kprof.out_of_memory")) kp_fact_put(trace, "kprof.out_of_memory", oom->text);
}

void kp_stood_look(struct kp_stuck *stuck, const struct kp_tree *tree, const struct kp_chosen *chosen, const char *path,
                   bool is_spool)
{
    char folder[4400];
    struct kp_hang_verdict verdict = {.accused = NULL};
    kp_path_folder(folder, sizeof folder, path);
    const bool has_stood = (kp_ended_badly(tree->trace) || is_spool) && hang_judge(&verdict, tree, folder);
    kp_stuck_add(stuck, tree, chosen, has_stood ? verdict.text : NULL);
    kp_stuck_lead(stuck, path, is_spool && kp_input_is_running(path));
    kp_hang_verdict_fini(&verdict);
}

/* Between two looks of a program at itself. */
static void pause_make(void)
{
    const struct timespec pause = {.tv_nsec = BETWEEN_MS * 1000000L};
    (void)nanosleep(&pause, NULL);
}

/* One that does not listen is seen from outside. */
static void rest_look(struct kp_stuck *stuck, long pid)
{
    struct kp_procrests before, now;
    kp_procrests_look(&before, pid);
    pause_make();
    kp_procrests_look(&now, pid);
    const char *const waits = kp_procrests_word(&now, &before);
    if (waits) kp_stuck_rest(stuck, pid, waits);
}

static void asked_look(struct kp_stuck *stuck, long pid)
{
    struct kp_hang before = {0}, now = {0};
    char where[KP_STUCK_NAME_BYTES];
    if (kp_where_ask_pid(&before, pid) < 0) rest_look(stuck, pid);
    else {
        pause_make();
        if (kp_where_ask_pid(&now, pid) == 0 && kp_hang_rests(&now.of[0], &before.of[0], where, sizeof where))
            kp_stuck_stand(stuck, pid, where);
    }
    kp_hang_fini(&before);
    kp_hang_fini(&now);
}

bool kp_stood_tell(struct kp_stuck_told *out, struct kp_stuck *stuck)
{
    const long pid = (long)kp_stuck_silent(stuck);
    if (pid) asked_look(stuck, pid);
    return kp_stuck_tell(out, stuck);
}

/* ---- of what runs ---- */

int kp_stood_open(struct kp_advised *a, const struct kp_trace_source *source, char *why, size_t why_bytes)
{
    const struct kp_texts texts = kp_trace_source_texts(source);
    *a = (struct kp_advised){0};
    const int rc = kp_advised_read_part(&a->trace, &a->tree, &texts, source->path, true, &a->is_part, why, why_bytes);
    return rc ? rc : kp_chosen_all(&a->chosen, &a->tree, why, why_bytes);
}

static int running_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct kp_advised a;
    char why[512];
    (void)several;
    if (kp_stood_open(&a, source, why, sizeof why) == 0)
        kp_stood_look(context, &a.tree, &a.chosen, source->path, source->is_spool);
    kp_advised_close(&a);
    return KP_EXIT_DONE;
}

bool kp_stood_running(struct kp_stuck_told *out, const char *folder)
{
    struct kp_stuck stuck = {0};
    DIR *const names = opendir(folder);
    *out = (struct kp_stuck_told){.what = ""};
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        char *const path = kp_kineto_print("%s/%s", folder, entry->d_name);
        if (kp_input_is_spool(entry->d_name) && kp_input_is_running(path))
            (void)kp_input_each("hang", (char *[]){path}, 1, NULL, running_take, &stuck);
        free(path);
    }
    if (names) closedir(names);
    if (stuck.count) (void)kp_stood_tell(out, &stuck);
    kp_stuck_fini(&stuck);
    return *out->what;
}

void kp_stood_alone_put(char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        struct kp_hang hang = {0};
        struct kp_hang_verdict verdict;
        struct kp_stuck_told told = {.what = ""};
        if (kp_where_files(&hang, paths[i])) {
            kp_hang_judge(&verdict, &hang, NULL);
            snprintf(told.what, sizeof told.what, "%.*s", (int)sizeof told.what - 1, verdict.text);
            snprintf(told.next, sizeof told.next, "`kprof hang %s` says at which line each thread was.", paths[i]);
            told.stands = true;
            kp_stuck_put(stdout, &told);
            kp_hang_verdict_fini(&verdict);
        }
        kp_hang_fini(&hang);
    }
}

void kp_stood_note_oom(struct kp_advised *a, const struct kp_trace_source *source)
{
    char folder[4400];
    kp_path_folder(folder, sizeof folder, source->path);
    (void)kp_oomfile_each(folder, oom_take, a->trace);
}
