// SPDX-License-Identifier: Apache-2.0
/*
 * silence.c - what a process did last, and whether it has run no operator for far longer than any of its steps
 *
 * A trace of a process that runs, or that was killed, ends when it was read, or when the process was seen last. An op
 * that is open then has no end in the file. A silence is no stand by itself: the program may compute without torch, or
 * rest.
 */
#include "export/answers/ranks/silence.h"

#include <stdio.h>
#include <string.h>

#include "export/answers/ranks/rankwaits.h"
#include "export/read/facts/namefacts.h"
#include "export/read/frames/ownline.h"
#include "export/read/kineto/ended.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/plain.h"

#define NOTHING_OPEN 6 /* so many times as long has a process to do nothing, where nothing is open */
enum { STEPS_LEAST = 10 };

int64_t kp_silence_bound(const struct kp_chosen *chosen)
{
    int64_t sum = 0, most = 0;
    for (size_t i = 0; i < chosen->step_count; i++) {
        const int64_t ns = chosen->steps[i].end_ns - chosen->steps[i].start_ns;
        sum += ns;
        if (ns > most) most = ns;
    }
    const int64_t steps_ns = chosen->step_count ? STEPS_LEAST * (sum / (int64_t)chosen->step_count) : 0;
    const int64_t wanted = steps_ns > most + most / 2 ? steps_ns : most + most / 2;
    return wanted > KP_SILENCE_LEAST_NS ? wanted : KP_SILENCE_LEAST_NS;
}

static bool is_open(const struct kp_tree *tree, size_t i)
{
    return (kp_tree_event(tree, i)->flags & KP_KINETO_UNFINISHED) && !tree->nodes[i].on_device;
}

/* Is it what a process does? Not a step, and not a range that the program gave a name: these may last. */
static bool is_deed(const struct kp_tree *tree, size_t i)
{
    const struct kp_kineto_event *const e = kp_tree_event(tree, i);
    return e->kind == KP_KINETO_OP || e->kind == KP_KINETO_RUNTIME || kp_collective_is(tree, i, false) ||
           kp_node_is(tree, i, KP_NAME_LOADER);
}

/* A call of Python that lasts to the end; built-in ones say less than their callers. */
static bool is_last_call(const struct kp_tree *tree, size_t i)
{
    const struct kp_node *const n = &tree->nodes[i];
    const struct kp_kineto_event *const e = kp_tree_event(tree, i);
    return n->is_python && kp_kineto_is_main_thread(e) && *kp_kineto_text(tree->trace, e->name) != '<' &&
           (is_open(tree, i) || n->end_ns >= tree->trace->end_ns);
}

static void end_look(struct kp_lastdeeds *end, const struct kp_tree *tree, size_t i)
{
    const struct kp_node *const n = &tree->nodes[i];
    const bool open = is_open(tree, i);
    if (is_last_call(tree, i)) end->call = (int64_t)i;
    if (!n->on_device && !is_deed(tree, i)) return;
    if (open && kp_collective_is(tree, i, false)) end->collective = end->collective < 0 ? (int64_t)i : end->collective;
    else if (open) end->op = (int64_t)i;
    const int64_t ns = open ? n->start_ns : n->end_ns;
    if (ns < end->last_ns) return;
    end->last_ns = ns;
    if (!open) end->last = (int64_t)i;
}

void kp_lastdeeds_find(struct kp_lastdeeds *out, const struct kp_tree *tree)
{
    *out = (struct kp_lastdeeds){-1, -1, -1, -1, INT64_MIN};
    for (size_t i = 0; i < tree->count; i++) end_look(out, tree, i);
}

/* A server rests between calls, and seconds as steps do not tell what a program is. */
bool kp_silence_has_steps(const struct kp_kineto *t, const struct kp_chosen *chosen)
{
    const char *const source = kp_kineto_fact(t, "kprof.step_source");
    return chosen->step_count && !kp_kineto_steps_are_calls(t) && !(source && strcmp(source, "time") == 0);
}

int64_t kp_silence_ns(const struct kp_tree *tree, const struct kp_chosen *chosen, const struct kp_lastdeeds *deeds)
{
    const struct kp_kineto *const t = tree->trace;
    if (deeds->last < 0 || deeds->collective >= 0 || deeds->op >= 0 || !kp_ended_early(t)) return 0;
    const int64_t ns = t->end_ns - deeds->last_ns + 1000 * (int64_t)kp_kineto_number(t, "kprof.ended_after_us");
    return ns / NOTHING_OPEN >= kp_silence_bound(chosen) ? ns : 0;
}

const char *kp_deed_line(const struct kp_tree *tree, size_t node)
{
    const uint32_t line = kp_ownline_of(tree->trace, kp_tree_stack(tree, &tree->nodes[node]));
    return line ? kp_kineto_text(tree->trace, line) : "";
}

const char *kp_silence_after(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen,
                             int64_t node)
{
    const struct kp_step *const last = chosen->step_count ? &chosen->steps[chosen->step_count - 1] : NULL;
    const char *const line = kp_deed_line(tree, (size_t)node);
    char step[40] = "", text[KP_SILENCE_BYTES];
    if (last &&
        !kp_ended_is_last_part(tree->trace)) /* it began behind that step, or in it as the first of what follows */
        snprintf(step, sizeof step, ", in step %ld", last->number + (tree->nodes[node].start_ns >= last->end_ns));
    snprintf(text, sizeof text, "after %s%s%s%s", kp_kineto_text(tree->trace, kp_tree_event(tree, (size_t)node)->name),
             *line ? ", " : "", line, step);
    kp_plain_text(out, bytes, text, strlen(text));
    return out;
}

const char *kp_silence_say(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen,
                           bool is_running)
{
    struct kp_lastdeeds deeds;
    kp_lastdeeds_find(&deeds, tree);
    const struct kp_kineto *const t = tree->trace;
    const int64_t ns =
        kp_rankwaits_rank(t) < 0 && kp_silence_has_steps(t, chosen) ? kp_silence_ns(tree, chosen, &deeds) : 0;
    char after[KP_SILENCE_BYTES];
    *out = '\0';
    if (ns)
        snprintf(out, bytes,
                 is_running ? "has run no operator for %.1f s (%s)" : "ran no operator for its last %.1f s (%s)",
                 (double)ns / 1e9, kp_silence_after(after, sizeof after, tree, chosen, deeds.last));
    return out;
}
