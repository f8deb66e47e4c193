// SPDX-License-Identifier: Apache-2.0
/* workers.c - leads from a training that waits for its DataLoader to the lines that its workers spend their time in */
#include "export/cli/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/cli/run_folder.h"
#include "export/cli/trace_source.h"
#include "export/report/plain.h"
#include "export/report/toprows.h"

enum { LINES = 2 };
#define SHARE_LEAST 0.05    /* of a worker's time, before a line is worth a word */
#define SHARE_BUSY 0.70     /* of the cores: the training itself and the kernel take of them, too */
enum { MEASURED_MS = 200 }; /* a shorter time tells little */

/* Returns the newest trace of FOLDER/children beside a trace, or NULL. The caller frees it. */
static char *children_find(char *folder, size_t bytes, const char *trace_path)
{
    const char *slash = strrchr(trace_path, '/');
    snprintf(folder, bytes, "%.*schildren", slash ? (int)(slash + 1 - trace_path) : 0, trace_path);
    return kp_advised_newest(folder);
}

/* A finding about data that workers load. */
static bool is_of_workers(const struct kp_finding *f)
{
    return strcmp(f->id, "data-loading") == 0 && f->where && strstr(f->where, "_MultiProcessing");
}

static void lead_put(FILE *out, const char *before, const char *folder)
{
    fprintf(out, "%skprof report --by line ", before);
    kp_plain_put(out, folder);
    fputs("\n", out);
}

void kp_workers_lead(const char *trace_path)
{
    char folder[4200];
    char *path = children_find(folder, sizeof folder, trace_path);
    if (path) lead_put(stdout, "what its workers did: ", folder);
    free(path);
}

/* Prints the lines that took most of one worker's time. The threads that feed its queue wait meanwhile: a share is of
 * the time that passed, not of the sum over threads. */
static void lines_print(FILE *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_top top;
    size_t shown = 0;
    const double wall = (double)kp_spans_length(&chosen->spans, NULL);
    kp_top_build(&top, tree, chosen, KP_TOP_BY_LINE);
    kp_top_order(&top, KP_TOP_SELF);
    for (size_t i = 0; i < top.count && shown < LINES; i++) {
        const struct kp_top_row *row = &top.rows[i];
        const double share = wall > 0 ? (double)row->cost.self_ns / wall : 0;
        if (!row->name || share < SHARE_LEAST) continue;
        fputs("    worker  ", out);
        kp_plain_put(out, kp_kineto_text(tree->trace, row->name));
        fprintf(out, ": %.1f %% of its time\n", 100 * share);
        shown++;
    }
    kp_top_fini(&top);
}

static void change_set(struct kp_advised *a, const char *text)
{
    struct kp_strings *const strings = a->trace->strings;
    for (size_t i = 0; i < a->advice.count; i++) {
        struct kp_finding *f = &a->advice.findings[i];
        if (is_of_workers(f)) f->change = kp_strings_get(strings, kp_strings_put(strings, text, strlen(text)));
    }
}

/* Workers that wait leave the cores to more of them. Those that compute take the cores from one another. */
static void cores_tell(FILE *out, struct kp_advised *a, const struct kp_kineto *trace, const char *folder_path)
{
    struct kp_run_folder folder = {.path = folder_path};
    const long cores = kp_kineto_number(trace, "kprof.cores"), of_ms = kp_kineto_number(trace, "kprof.busy_of_ms");
    const double computes = of_ms ? (double)kp_kineto_number(trace, "kprof.busy_ms") / (double)of_ms : 0;
    const size_t workers = kp_run_folder_read(&folder) == 0 ? kp_found_siblings(&folder) : 0;
    const double used = computes * (double)workers;
    kp_run_folder_forget(&folder);
    if (of_ms < MEASURED_MS || cores <= 0 || !workers) return;
    fprintf(out, "    worker  %zu of them ", workers);
    if (used >= SHARE_BUSY * (double)cores) {
        fprintf(out, "compute on %ld core%s, %.0f %% of their time: more workers do not help, cheaper lines do\n",
                cores, cores == 1 ? "" : "s", 100 * computes);
        change_set(a, "Make an item cheaper: cache it, or decode it once. More workers do not help: those that it has "
                      "fill the cores.");
    } else {
        fprintf(out, "wait %.0f %% of their time, and use %.1f of %ld core%s: more workers help\n",
                computes < 1 ? 100 * (1 - computes) : 0, used, cores, cores == 1 ? "" : "s");
        change_set(a, "Give the DataLoader more workers (num_workers=N, persistent_workers=True): cores are free.");
    }
}

static void worker_tell(FILE *out, struct kp_advised *a, const char *path, const char *folder)
{
    const struct kp_choice all = {.first_step = -1, .last_step = -1};
    const struct kp_texts texts = {kp_text_file_each, path};
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_chosen chosen;
    char why[512];
    if (kp_advised_read(&trace, &tree, &texts, path, why, sizeof why) == 0 && tree.count) {
        if (kp_chosen_make(&chosen, &tree, &all, why, sizeof why) == 0) lines_print(out, &tree, &chosen);
        cores_tell(out, a, trace, folder);
        kp_chosen_fini(&chosen);
    }
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
}

void kp_workers_tell(struct kp_advised *a, const char *trace_path)
{
    bool waits = false;
    char folder[4200];
    size_t bytes;
    for (size_t i = 0; i < a->advice.count; i++) waits |= is_of_workers(&a->advice.findings[i]);
    FILE *out = waits ? open_memstream(&a->workers, &bytes) : NULL;
    if (!out) return;
    char *path = children_find(folder, sizeof folder, trace_path);
    if (path) {
        worker_tell(out, a, path, folder);
        lead_put(out, "workers  ", folder);
    } else {
        fputs("workers  whether they wait or compute is not recorded, nor their lines: kprof run --with-stack 1 "
              "--children, then kprof advise\n",
              out);
    }
    fclose(out);
    free(path);
}
