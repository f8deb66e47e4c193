// SPDX-License-Identifier: Apache-2.0
/*
 * lastwords.c - what a program did when a signal ended it: the op that was open, its line, since when, and its memory;
 *               when an exception did: its line
 *
 * An op that was open lasts to the trace's end, which is the last thing that the program's own clock saw: up to a
 * second before. `kprof run` noted when the process was gone, and the most memory that it had.
 */
#include "export/answers/ranks/lastwords.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/ranks/silence.h"
#include "export/read/kineto/ended.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/frames/ownline.h"
#include "export/show/plain.h"
#include "export/show/units.h"

#define SHORT_NS INT64_C(50000) /* 0.0 ms */
enum { LONG_STEPS = 4 };        /* no step, but what the program does behind the last one */

/* The innermost op that had no end, of the thread that opened one last; -1: none. */
static int64_t open_find(const struct kp_tree *tree)
{
    int64_t found = -1;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        const bool is_op = e->kind == KP_KINETO_OP && !tree->nodes[i].on_device;
        if (is_op && e->flags & KP_KINETO_UNFINISHED && !kp_kineto_is_step(kp_kineto_text(tree->trace, e->name)))
            found = (int64_t)i;
    }
    return found;
}

/* Steps without a mark are counted from the begin of what is left of them. */
static const char *of_what(const struct kp_kineto *trace, const struct kp_chosen *chosen)
{
    return chosen->ended_by && kp_ended_is_last_part(trace) ? " of what is recorded" : "";
}

static void name_put(FILE *out, const struct kp_tree *tree, size_t node)
{
    const char *const line = kp_deed_line(tree, node);
    const uint32_t caller = kp_ownline_caller_of_forward(tree->trace, kp_tree_stack(tree, &tree->nodes[node]));
    fprintf(out, "%s%s%s", kp_kineto_text(tree->trace, kp_tree_event(tree, node)->name), *line ? ", " : "", line);
    if (caller) fprintf(out, ", called from %s", kp_kineto_text(tree->trace, caller));
}

static void memory_put(FILE *out, const struct kp_kineto *trace)
{
    const long kb = kp_kineto_number(trace, "kprof.ended_peak_kb");
    const long may_have = kp_kineto_number(trace, "kprof.ended_may_have");
    char size[32];
    if (kb <= 0) return;
    fprintf(out, "; it used at most %s of memory", kp_units_bytes(size, sizeof size, 1024 * (int64_t)kb));
    if (may_have > 0) fprintf(out, ", and its job may have %s", kp_units_bytes(size, sizeof size, may_have));
}

/* The line of an exception, the step that it fell in, and whether memory was out in it. Nothing is open then. */
static void exception_put(FILE *out, const struct kp_kineto *trace, long last, const char *of)
{
    const char *const oom = kp_ended_oom(trace);
    char at[KP_ENDED_PLACE_BYTES];
    fputs(kp_ended_exception_place(at, sizeof at, trace), out);
    if (last >= 0) fprintf(out, "%s after step %ld%s", *at ? "," : "", last, of);
    if (oom) fprintf(out, "; %s", oom);
}

/* " in step 43", or, where its open op began much later than a step ends, as behind a training, " 4.9 s after step 42";
 * open: that op, or -1 */
static void when_put(FILE *out, const struct kp_tree *tree, const struct kp_chosen *chosen, int64_t open)
{
    const struct kp_step *const last = &chosen->steps[chosen->step_count - 1];
    const int64_t since_ns = open < 0 ? 0 : tree->nodes[open].start_ns - last->end_ns;
    const int64_t all_ns = last->end_ns - chosen->steps[0].start_ns;
    if (open < 0) fprintf(out, " after step %ld", last->number);
    else if (since_ns > LONG_STEPS * all_ns / (int64_t)chosen->step_count)
        fprintf(out, " %.1f s after step %ld", (double)since_ns / 1e9, last->number);
    else fprintf(out, " in step %ld", last->number + 1);
    fprintf(out, "%s%s", of_what(tree->trace, chosen), open >= 0 ? ", in " : "");
}

/* How long the open op had run. */
static void since_put(FILE *out, const struct kp_tree *tree, size_t open)
{
    const int64_t after_ns = 1000 * (int64_t)kp_kineto_number(tree->trace, "kprof.ended_after_us");
    const int64_t ns = tree->nodes[open].end_ns - tree->nodes[open].start_ns + after_ns;
    if (ns < SHORT_NS) fputs(", which had just begun", out);
    else fprintf(out, ", which had run for %s%.1f ms", after_ns > 0 ? "" : "at least ", (double)ns / 1e6);
}

static void words_put(FILE *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const long last = chosen->step_count ? chosen->steps[chosen->step_count - 1].number : -1;
    char silence[KP_SILENCE_BYTES];
    if (kp_ended_exception(tree->trace)) exception_put(out, tree->trace, last, of_what(tree->trace, chosen));
    if (kp_ended_exception(tree->trace) || !kp_ended_early(tree->trace) || last < 0) return;
    const int64_t open = open_find(tree);
    when_put(out, tree, chosen, open);
    if (open >= 0) {
        name_put(out, tree, (size_t)open);
        since_put(out, tree, (size_t)open);
    } else if (*kp_silence_say(silence, sizeof silence, tree, chosen, false)) fprintf(out, "; it %s", silence);
    memory_put(out, tree->trace);
}

const char *kp_lastwords(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    char *text = NULL;
    size_t length;
    FILE *const to = open_memstream(&text, &length);
    *out = '\0';
    if (!to) return out;
    words_put(to, tree, chosen);
    fclose(to);
    kp_plain_text(out, bytes, text, strlen(text));
    free(text);
    return out;
}

const char *kp_lastwords_ended(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const struct kp_kineto *const trace = tree->trace;
    char words[KP_LASTWORDS_BYTES], way[KP_ENDED_WAY_BYTES];
    const bool is_told = kp_ended_exception(trace) || (kp_ended_early(trace) && chosen->step_count);
    *out = 0;
    if (is_told)
        snprintf(out, bytes, "%s%s%s", kp_ended_way(way, sizeof way, trace),
                 kp_lastwords(words, sizeof words, tree, chosen), kp_ended_remark(trace));
    return out;
}
