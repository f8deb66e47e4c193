// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_view.c - `kprof view`: traces on a terminal
 *
 * Several, as those of a job's ranks, are shown one at a time. Keys lead to the others, which are read then.
 */
#include "export/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/files/budget.h"
#include "export/answers/runadvice/judged.h"
#include "export/answers/jobs/stood.h"
#include "export/answers/jobs/latest.h"
#include "export/read/folder/trace_source.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/parse/kineto_parse.h"
#include "export/answers/view/view.h"

static const struct kp_opt flags[] = {
    {"json", 0, KP_OPT_FLAG, NULL, "print all that it shows as JSON, a line a trace", KP_OPT_ALONE}, {0}};

/* If it is stuck, its steps are not judged. */
static void stuck_note(struct kp_advised *a, const struct kp_trace_source *source)
{
    struct kp_stuck stuck = {0};
    struct kp_stuck_told told;
    kp_stood_look(&stuck, &a->tree, &a->chosen, source->path, source->is_spool);
    if (kp_stood_tell(&told, &stuck)) kp_fact_put(a->trace, "kprof.stood", told.what);
    kp_stuck_fini(&stuck);
}

/* among NULL: as JSON. */
static int trace_show(const struct kp_trace_source *source, struct kp_view_among *among)
{
    struct kp_advised a;
    char why[512];
    const struct kp_texts texts = kp_trace_source_texts(source);
    int rc = kp_advised_open(&a, &texts, source->path, false, why, sizeof why);
    if (rc) {
        const bool is_torn = a.trace && a.trace->torn;
        kp_advised_close(&a);
        return kp_cli_fail("view", "%s%s", why, is_torn ? KP_TORN_CUT : "");
    }
    kp_judged_add(&a, source);
    kp_stood_note_oom(&a, source);
    stuck_note(&a, source);
    if (among) kp_budget_end(); /* the user may look at it as long as it takes */
    rc = among ? kp_view_run(&a.tree, &a.advice, source->label, among, why, sizeof why)
               : kp_view_json(stdout, &a.tree, &a.advice, source->label, why, sizeof why);
    kp_advised_close(&a);
    return rc ? kp_cli_fail("view", "%s: %s", source->label, why) : KP_EXIT_DONE;
}

static int trace_print(void *context, const struct kp_trace_source *source, bool several)
{
    (void)context;
    (void)several;
    return trace_show(source, NULL);
}

/* ---- one of several on the terminal ---- */

struct view_list {
    const struct kp_trace_source **of;
    size_t count, capacity;
};

/* Shows one after the other, as the user goes on. One that cannot be read leaves the list. */
static int list_show(struct view_list *list)
{
    struct kp_view_among among = {0};
    int worst = KP_EXIT_DONE;
    while (list->count) {
        const struct kp_trace_source *source = list->of[among.at];
        among.count = list->count;
        kp_budget_begin("view", source->path);
        if (trace_show(source, &among) == KP_EXIT_DONE) {
            if (!among.move) break;
            among.at = (among.at + list->count + (size_t)among.move) % list->count;
            continue;
        }
        worst = KP_EXIT_BAD_INPUT;
        list->count--;
        memmove(list->of + among.at, list->of + among.at + 1, (list->count - among.at) * sizeof *list->of);
        if (among.at == list->count) among.at = 0;
    }
    return worst;
}

static int traces_show(char **paths, int count)
{
    struct kp_input *inputs = kp_kineto_zeros((size_t)count, sizeof *inputs);
    struct view_list list = {0};
    int worst = KP_EXIT_DONE;
    for (int i = 0; i < count; i++) {
        kp_budget_begin("view", paths[i]);
        if (kp_input_open(&inputs[i], paths[i], NULL) < 0) worst = KP_EXIT_BAD_INPUT;
        for (size_t k = 0; k < inputs[i].count; k++) {
            *KP_KINETO_NEXT(list.of, list.count, list.capacity) = &inputs[i].of[k];
        }
    }
    if (list_show(&list) != KP_EXIT_DONE) worst = KP_EXIT_BAD_INPUT;
    for (int i = 0; i < count; i++) kp_input_close(&inputs[i]);
    free(inputs);
    free(list.of);
    return worst;
}

/* A file that is not there is told first, also where there is no terminal. DIR/latest is no file. */
static bool are_there(char **paths, int count)
{
    struct stat st;
    for (int i = 0; i < count; i++) {
        if (stat(paths[i], &st) == 0 || strcmp(kp_path_base(paths[i]), "latest") == 0) continue;
        kp_cli_fail("view", "%s: %s", paths[i], kp_cli_read_why(errno));
        return false;
    }
    return true;
}

int kp_cmd_view(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "view", .table = flags, .argc = argc, .argv = argv, .at = 1};
    bool is_json = false;
    const int i = kp_opt_flags(&scan, &is_json, NULL);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (!is_json && !are_there(argv, scan.count)) return KP_EXIT_BAD_INPUT;
    if (!is_json && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        return kp_cli_fail("view", "this is not a terminal; kprof report prints, kprof html writes a page");
    const int count = kp_latest_take("view", &argv, scan.count, KP_LATEST_RANKS | (is_json ? 0 : KP_LATEST_REST));
    if (!count) return KP_EXIT_USAGE;
    return is_json ? kp_input_each("view", argv, count, NULL, trace_print, NULL) : traces_show(argv, count);
}
