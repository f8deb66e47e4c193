// SPDX-License-Identifier: Apache-2.0
/*
 * chosen.c - chooses steps, ranges by name, or a span of time of a trace
 *
 * The choice is one of time: an event counts by its time inside, on every thread. So the self times of all rows add up
 * to what the threads did in that time.
 */
#include "export/read/tree/chosen.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "collector/base/kp_search.h"
#include "export/read/frames/framename.h"
#include "export/read/kineto/kineto_windows.h"
#include "export/read/frames/modulename.h"
#include "export/read/frames/nameguess.h"
#include "export/read/frames/ownline.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/qsort.h"
#include "export/show/units.h"

/* Steps that are less of the wall time than this are shown alone. Calls are cut by more than a CUT_PARTth. */
enum { STEPS_PERCENT = 99, CUT_PART = 100 };
#define WORKED_LEAST 0.01 /* of a time that a GPU has to be busy in, where nothing asks it for work there */

static const char *event_name(const struct kp_tree *tree, const struct kp_node *node)
{
    return kp_kineto_text(tree->trace, tree->trace->events[node->event].name);
}

/* The reason that a step is no whole one: "start-up", "cut short", or "". */
static const char *part_of(const struct kp_tree *tree, const struct kp_node *node)
{
    const struct kp_kineto_event *e = &tree->trace->events[node->event];
    if (e->flags & KP_KINETO_UNFINISHED) return "cut short";
    return e->kind == KP_KINETO_ANNOTATION ? kp_kineto_text(tree->trace, e->concrete) : "";
}

/* In files of 2021 a step has the category Operator, as ops have. */
bool kp_node_is_step(const struct kp_tree *tree, const struct kp_node *node)
{
    const bool is_range =
        node->is_annotation || kp_tree_event(tree, (size_t)(node - tree->nodes))->kind == KP_KINETO_OP;
    return is_range && !node->on_device && kp_kineto_is_step(event_name(tree, node));
}

/* ---- names ---- */

static bool is_in_stack(const char *pattern, const char *stack)
{
    char frame[512];
    while (*stack) {
        const size_t bytes = strcspn(stack, ";");
        snprintf(frame, sizeof frame, "%.*s", (int)(bytes < sizeof frame ? bytes : sizeof frame - 1), stack);
        if (kp_framename_is_meant(pattern, frame)) return true;
        stack += bytes + (stack[bytes] == ';');
    }
    return false;
}

/* With stacks of ops alone, a Python function has no event: its ops are the time. Each stack is searched once. */
static void ops_under_add(struct kp_spans *spans, const struct kp_tree *tree, const char *pattern)
{
    enum { UNKNOWN, OUTSIDE, UNDER };
    uint32_t most = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const uint32_t stack = tree->trace->events[tree->nodes[i].event].stack;
        if (stack > most) most = stack;
    }
    uint8_t *known = kp_kineto_room((size_t)most + 1, 1);
    memset(known, UNKNOWN, (size_t)most + 1);
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        const uint32_t stack = tree->trace->events[node->event].stack;
        if (!stack || node->on_device) continue;
        if (!known[stack]) known[stack] = is_in_stack(pattern, kp_kineto_text(tree->trace, stack)) ? UNDER : OUTSIDE;
        if (known[stack] == UNDER) kp_spans_add(spans, node->start_ns, node->end_ns);
    }
    free(known);
}

/* The match of a name with the pattern. OTHER: a function of an installed package, whose file the pattern does not
 * name. */
enum name_kind { NAME_UNKNOWN, NAME_ELSE, NAME_WANTED, NAME_OTHER };

struct named {
    const struct kp_tree *tree;
    const char *pattern;
    uint8_t *kinds;             /* by name: each is compared once */
    bool has_own;               /* a range or function of the program has the name: then others are left out */
    struct kp_keyindex threads; /* rows: index + 1 of its last call */
};

static enum name_kind name_judge(struct named *n, const struct kp_node *node)
{
    const char *const name = event_name(n->tree, node);
    if (!kp_modulename_is_meant(n->tree->trace, n->pattern, n->tree->trace->events[node->event].name)) return NAME_ELSE;
    const bool is_whole = fnmatch(n->pattern, name, 0) == 0;
    if (!is_whole && kp_ownline_is_installed(n->tree->trace, name)) return NAME_OTHER;
    n->has_own |= node->is_annotation || !is_whole;
    return NAME_WANTED;
}

static enum name_kind name_kind(struct named *n, const struct kp_node *node)
{
    uint8_t *kind = &n->kinds[n->tree->trace->events[node->event].name];
    if (*kind == NAME_UNKNOWN) *kind = (uint8_t)name_judge(n, node);
    return *kind == NAME_OTHER && !n->has_own ? NAME_WANTED : *kind;
}

static bool is_inside_named(struct named *n, const struct kp_node *node)
{
    for (int32_t at = node->parent; at >= 0; at = n->tree->nodes[at].parent)
        if (name_kind(n, &n->tree->nodes[at]) == NAME_WANTED) return true;
    return false;
}

static bool is_on_host(const struct kp_node *node) { return !node->on_device && !node->is_async; }

static struct named named_open(const struct kp_tree *tree, const char *pattern)
{
    struct named n = {.tree = tree, .pattern = pattern};
    size_t most = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const uint32_t name = tree->trace->events[tree->nodes[i].event].name;
        if (name > most) most = name;
    }
    n.kinds = kp_kineto_room(most + 1, 1);
    memset(n.kinds, NAME_UNKNOWN, most + 1);
    for (size_t i = 0; i < tree->count; i++)
        if (is_on_host(&tree->nodes[i])) (void)name_kind(&n, &tree->nodes[i]);
    return n;
}

/* Counts a call. A further part of one makes it longer, though it be outside of what is chosen. */
static void call_add(struct kp_chosen *out, struct named *n, const struct kp_node *node)
{
    const struct kp_kineto_event *const e = &n->tree->trace->events[node->event];
    const uint64_t thread = kp_tree_thread(e);
    size_t *const last = kp_keyindex_row(&n->threads, thread, &(size_t){0}, sizeof *last);
    if (!(e->flags & KP_KINETO_CONTINUED)) {
        *last = 0;
        if (!kp_spans_has(&out->spans, node->start_ns)) return;
        *KP_KINETO_NEXT(out->calls, out->within_calls, out->call_capacity) =
            (struct kp_call_span){node->start_ns, node->end_ns, thread, e->name};
        *last = out->within_calls;
    } else if (*last && out->calls[*last - 1].name == e->name) out->calls[*last - 1].end_ns = node->end_ns;
}

static void named_add(struct kp_chosen *out, struct kp_spans *spans, struct named *n, const struct kp_node *node)
{
    const enum name_kind kind = is_on_host(node) ? name_kind(n, node) : NAME_ELSE;
    if (kind == NAME_ELSE) return;
    const bool is_outermost = !is_inside_named(n, node);
    const struct kp_kineto_event *const e = &n->tree->trace->events[node->event];
    if (kind == NAME_OTHER) {
        const bool is_begun = !(e->flags & KP_KINETO_CONTINUED) && kp_spans_has(&out->spans, node->start_ns);
        if (!is_begun || !is_outermost) return;
        out->within_left++;
        out->within_other = e->name;
        return;
    }
    if (is_outermost) call_add(out, n, node);
    out->is_of_calls |= e->kind == KP_KINETO_RUNTIME;
    kp_spans_add(spans, node->start_ns, node->end_ns);
}

static bool has_python(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].is_python) return true;
    return false;
}

/* Says that nothing has the name, and which one may be meant. */
static void within_missed(const struct kp_tree *tree, const char *pattern, char *why, size_t bytes)
{
    struct kp_nameguess guess;
    char meant[KP_NAMEGUESS_MOST + 24];
    kp_nameguess_begin(&guess, pattern);
    for (size_t i = 0; i < tree->count; i++)
        if (is_on_host(&tree->nodes[i]))
            kp_nameguess_see(&guess, tree->trace, tree->trace->events[tree->nodes[i].event].name);
    snprintf(why, bytes, "no range, op or Python function is named %s%s%s", pattern,
             kp_nameguess_text(&guess, meant, sizeof meant), has_python(tree) ? "" : KP_CHOSEN_NO_CALLS);
    kp_nameguess_fini(&guess);
}

static int within_cut(struct kp_chosen *out, const struct kp_tree *tree, const char *pattern, char *why, size_t bytes)
{
    struct kp_spans spans = {0};
    struct named named = named_open(tree, pattern);
    for (size_t i = 0; i < tree->count; i++) named_add(out, &spans, &named, &tree->nodes[i]);
    free(named.kinds);
    kp_keyindex_fini(&named.threads);
    out->is_by_stacks = !spans.count;
    if (!spans.count) ops_under_add(&spans, tree, pattern);
    const bool any = spans.count != 0;
    if (!any) within_missed(tree, pattern, why, bytes);
    kp_spans_settle(&spans);
    kp_spans_cut(&out->spans, &spans);
    kp_spans_fini(&spans);
    return any ? 0 : -ENOENT;
}

/* ---- steps ---- */

KP_ORDER2(step_order, struct kp_step, start_ns, number)

static void step_add(struct kp_chosen *out, int64_t start_ns, int64_t end_ns, long number)
{
    *KP_KINETO_NEXT(out->steps, out->step_count, out->step_capacity) = (struct kp_step){start_ns, end_ns, 0, number};
}

/* Does it mark a step on its thread, as one, or as what may end one? */
static bool marks_step(const struct kp_tree *tree, size_t i)
{
    const struct kp_node *const node = &tree->nodes[i];
    return !node->on_device && !node->is_async &&
           (kp_node_is_step(tree, node) || kp_stepends_may(tree->trace, kp_tree_event(tree, i)) ||
            kp_name_begins(event_name(tree, node), "Optimizer."));
}

/* A main thread may have the first step alone, which began before the thread that runs the others. */
bool kp_chosen_thread(struct kp_thread_of_steps *out, const struct kp_tree *tree)
{
    enum { THREADS = 8, ENOUGH = 4 };
    const struct kp_kineto *const t = tree->trace;
    struct kp_thread_of_steps of[THREADS];
    unsigned marks[THREADS] = {0}, count = 0, most = 0;
    *out = (struct kp_thread_of_steps){t->pass_pid, t->pass_tid};
    for (size_t i = 0; i < tree->count && !t->has_pass_ends && marks[most] < ENOUGH; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        if (!marks_step(tree, i)) continue;
        unsigned at = 0;
        while (at < count && (of[at].pid != e->pid || of[at].tid != e->tid)) at++;
        if (at == THREADS) continue;
        if (at == count) of[count++] = (struct kp_thread_of_steps){e->pid, e->tid};
        if (++marks[at] > marks[most]) most = at;
    }
    if (count) *out = of[most];
    return count || t->has_pass_ends;
}

/* A trace marks no steps if it has no schedule. Then a step lasts from what ended the last one to the next of these. */
static void optimizer_steps_gather(struct kp_chosen *out, const struct kp_tree *tree, struct kp_seam *seam)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        if (node->on_device || node->is_async || !kp_stepends_may(tree->trace, e)) continue;
        if (!kp_stepends_counts(&seam->ends, tree->trace, e) || node->end_ns <= seam->optimizer_ns) continue;
        if (seam->optimizer_number++) step_add(out, seam->optimizer_ns, node->end_ns, seam->optimizer_number - 1);
        seam->optimizer_ns = node->end_ns;
    }
    if (out->step_count) out->ended_by = seam->ends.kind;
    out->optimizer_steps = (size_t)seam->optimizer_number;
}

static void part_keep(struct kp_partsteps *parts, bool is_startup, long number)
{
    if (is_startup) *parts = (struct kp_partsteps){true, parts->has_cut, number, parts->cut};
    else *parts = (struct kp_partsteps){parts->has_startup, true, parts->startup, number};
}

/* torch.profiler opens a step behind the last step(), and ends it with the recording: the last one has no op then, and
 * is less than half as long as the shortest of the others, which have some. */
static void opened_last_drop(struct kp_chosen *out, const struct kp_tree *tree)
{
    const size_t count = out->step_count;
    int64_t shortest_ns = INT64_MAX;
    bool has_ops = false;
    if (count < 2) return;
    const struct kp_step *const last = &out->steps[count - 1];
    for (size_t i = 0; i + 1 < count; i++)
        if (out->steps[i].end_ns - out->steps[i].start_ns < shortest_ns)
            shortest_ns = out->steps[i].end_ns - out->steps[i].start_ns;
    if (2 * (last->end_ns - last->start_ns) >= shortest_ns) return;
    for (size_t i = 0; i < tree->count; i++) {
        const uint8_t kind = kp_tree_event(tree, i)->kind;
        const bool is_deed = (kind == KP_KINETO_OP || kind == KP_KINETO_RUNTIME || kind == KP_KINETO_GPU) &&
                             !kp_node_is_step(tree, &tree->nodes[i]);
        if (is_deed && tree->nodes[i].start_ns >= last->start_ns && tree->nodes[i].start_ns < last->end_ns) return;
        has_ops |= is_deed;
    }
    out->step_count -= has_ops;
}

/* `all`: a step that was asked for by its number need not be whole. */
static void steps_gather(struct kp_chosen *out, const struct kp_tree *tree, struct kp_seam *seam, bool all)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        if (!kp_node_is_step(tree, node)) continue;
        const long number = strtol(event_name(tree, node) + 13, NULL, 10);
        const char *part = part_of(tree, node);
        if (*part) part_keep(&out->parts, strcmp(part, KP_STEPENDS_STARTUP) == 0, number);
        if (!*part || all) step_add(out, node->start_ns, node->end_ns, number);
        seam->has_steps = true;
    }
    if (!seam->has_steps) optimizer_steps_gather(out, tree, seam);
    if (out->step_count) kp_qsort(out->steps, out->step_count, sizeof *out->steps, step_order);
    if (seam->has_steps && !all) opened_last_drop(out, tree);
}

static int steps_cut(struct kp_chosen *out, const struct kp_choice *choice, char *why, size_t bytes)
{
    struct kp_spans wanted = {0};
    char steps[80], asked[80];
    long least = -1, most = -1;
    for (size_t i = 0; i < out->step_count; i++) {
        const struct kp_step *s = &out->steps[i];
        if (least < 0 || s->number < least) least = s->number;
        if (s->number > most) most = s->number;
        if (s->number >= choice->first_step && s->number <= choice->last_step)
            kp_spans_add(&wanted, s->start_ns, s->end_ns);
    }
    const bool any = wanted.count != 0;
    if (!any && least < 0) snprintf(why, bytes, "the trace has no steps");
    else if (!any)
        snprintf(why, bytes, "no %s in it: the trace has %s",
                 kp_units_steps(asked, sizeof asked, choice->first_step, choice->last_step),
                 kp_units_steps(steps, sizeof steps, least, most));
    kp_spans_settle(&wanted);
    kp_spans_cut(&out->spans, &wanted);
    kp_spans_fini(&wanted);
    return any ? 0 : -ENOENT;
}

static void whole_count(struct kp_chosen *out)
{
    for (size_t i = 0; i < out->step_count; i++) {
        const struct kp_step *s = &out->steps[i];
        if (kp_spans_between(&out->spans, s->start_ns, s->end_ns) < s->end_ns - s->start_ns) continue;
        if (!out->step_total++) out->first_total = s->number;
        out->last_total = s->number;
        out->step_total_ns += s->end_ns - s->start_ns;
    }
}

/* Keeps the steps that lie in what was chosen. `parts`: also those of which a part does. */
static void steps_keep(struct kp_chosen *out, bool parts)
{
    size_t kept = 0;
    for (size_t i = 0; i < out->step_count; i++) {
        struct kp_step s = out->steps[i];
        s.inside_ns = kp_spans_between(&out->spans, s.start_ns, s.end_ns);
        if (s.inside_ns == 0 || (!parts && s.inside_ns < s.end_ns - s.start_ns)) continue;
        out->steps[kept++] = s;
        kp_spans_add(&out->in_steps, s.start_ns, s.end_ns);
    }
    out->step_count = kept;
    kp_spans_settle(&out->in_steps);
    kp_spans_cut(&out->in_steps, &out->spans);
}

/* ---- all of it ---- */

/* A window of a phase is all of it, from the phase's begin to its end. */
static void windows_add(struct kp_chosen *out, const struct kp_kineto_windows *windows)
{
    out->since_ns = INT64_MAX;
    out->is_phase = true;
    for (size_t i = 0; i < windows->count; i++) {
        kp_spans_add(&out->spans, windows->of[i].start_ns, windows->of[i].end_ns);
        if (windows->of[i].start_ns < out->since_ns) out->since_ns = windows->of[i].start_ns;
    }
    kp_spans_settle(&out->spans);
}

static void whole_add(struct kp_chosen *out, const struct kp_tree *tree)
{
    int64_t first = INT64_MAX, end = INT64_MIN;
    if (tree->trace->windows) {
        windows_add(out, tree->trace->windows);
        return;
    }
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        if (node->is_async) continue;
        if (node->start_ns < first) first = node->start_ns;
        if (node->end_ns > end) end = node->end_ns;
    }
    if (first >= end) return;
    kp_spans_add(&out->spans, first, end);
    out->since_ns = first;
}

/* A time of which nothing was recorded is no part of the trace. */
static int time_check(const struct kp_chosen *out, const struct kp_spans *time, int64_t since, char *why, size_t bytes)
{
    const struct kp_spans *const all = &out->spans;
    for (size_t i = 0; i < time->count; i++)
        if (kp_spans_between(all, time->of[i].start_ns, time->of[i].end_ns)) return 0;
    if (!all->count) return 0;
    snprintf(why, bytes, "nothing in that time; there is --from %.0f --to %.0f",
             (double)(all->of[0].start_ns - since) / 1e3, (double)(all->of[all->count - 1].end_ns - since) / 1e3);
    return -ENOENT;
}

int kp_chosen_make(struct kp_chosen *out, const struct kp_tree *tree, const struct kp_choice *choice, char *why,
                   size_t why_bytes)
{
    int rc = 0;
    *out = (struct kp_chosen){0};
    whole_add(out, tree);
    steps_gather(out, tree, &(struct kp_seam){0}, choice->first_step >= 0);
    if (choice->first_step >= 0) rc = steps_cut(out, choice, why, why_bytes);
    if (choice->has_from || choice->has_to) {
        struct kp_spans time = {0};
        const int64_t since = tree->trace->start_ns;
        kp_spans_add(&time, choice->has_from ? since + choice->from_ns : INT64_MIN / 2,
                     choice->has_to ? since + choice->to_ns : INT64_MAX / 2);
        if (rc == 0) rc = time_check(out, &time, since, why, why_bytes);
        kp_spans_cut(&out->spans, &time);
        kp_spans_fini(&time);
    }
    whole_count(out);
    if (rc == 0 && choice->within) rc = within_cut(out, tree, choice->within, why, why_bytes);
    steps_keep(out, choice->within != NULL);
    return rc;
}

/* ---- a piece of a trace ---- */

bool kp_chosen_piece(struct kp_chosen *out, const struct kp_tree *tree, struct kp_seam *seam, int64_t until_ns)
{
    *out = (struct kp_chosen){.goes_on = until_ns != INT64_MAX};
    whole_add(out, tree);
    if (!out->spans.count) return false;
    if (seam->is_later) out->spans.of[0].start_ns = seam->since_ns;
    if (until_ns != INT64_MAX) out->spans.of[0].end_ns = until_ns;
    steps_gather(out, tree, seam, false);
    steps_keep(out, false);
    seam->is_later = true;
    seam->since_ns = until_ns;
    return !seam->has_steps || !seam->ends.is_known;
}

void kp_chosen_add_steps(struct kp_chosen *into, const struct kp_chosen *piece)
{
    for (size_t i = 0; i < piece->step_count; i++) {
        const struct kp_step *s = &piece->steps[i];
        step_add(into, s->start_ns, s->end_ns, s->number);
        into->steps[into->step_count - 1].inside_ns = s->inside_ns;
    }
    if (piece->parts.has_startup) part_keep(&into->parts, true, piece->parts.startup);
    if (piece->parts.has_cut) part_keep(&into->parts, false, piece->parts.cut);
    if (piece->ended_by) into->ended_by = piece->ended_by;
    into->optimizer_steps = piece->optimizer_steps ? piece->optimizer_steps : into->optimizer_steps;
}

bool kp_chosen_are_steps_a_part(int64_t steps_ns, int64_t all_ns)
{
    return steps_ns && steps_ns < all_ns / 100 * STEPS_PERCENT;
}

bool kp_chosen_is_of_steps(const struct kp_chosen *chosen)
{
    if (chosen->is_phase) return false;
    return kp_chosen_are_steps_a_part(kp_spans_length(&chosen->in_steps, NULL), kp_spans_length(&chosen->spans, NULL));
}

void kp_chosen_keep_steps(struct kp_chosen *chosen)
{
    size_t kept = 0;
    if (!chosen->in_steps.count) return;
    chosen->outside_ns = kp_spans_length(&chosen->spans, NULL) - kp_spans_length(&chosen->in_steps, NULL);
    for (size_t i = 0; i < chosen->within_calls; i++) {
        const struct kp_call_span call = chosen->calls[i];
        if (kp_spans_between(&chosen->in_steps, call.start_ns, call.end_ns)) chosen->calls[kept++] = call;
    }
    chosen->outside_calls = chosen->within_calls - kept;
    chosen->within_calls = kept;
    kp_spans_cut(&chosen->spans, &chosen->in_steps);
}

double kp_chosen_steps_share(const struct kp_chosen *chosen, bool with_outside)
{
    const int64_t inside_ns = kp_spans_length(&chosen->in_steps, NULL);
    const int64_t left_ns = kp_spans_length(&chosen->spans, NULL) - inside_ns; /* kept, as --step all wants */
    const int64_t outside_ns = with_outside ? chosen->outside_ns + left_ns : 0;
    if (!chosen->step_total_ns || !inside_ns) return 0;
    return (double)(inside_ns + outside_ns) / (double)(chosen->step_total_ns + outside_ns);
}

/* ---- calls of what was asked for by its name ---- */

int64_t kp_chosen_call_ns(const struct kp_chosen *chosen)
{
    int64_t all = 0;
    for (size_t i = 0; i < chosen->within_calls; i++) all += chosen->calls[i].end_ns - chosen->calls[i].start_ns;
    return chosen->within_calls ? all / (int64_t)chosen->within_calls : 0;
}

bool kp_chosen_are_calls_cut(const struct kp_chosen *chosen)
{
    struct kp_spans calls = {0};
    int64_t whole_ns = 0, inside_ns = 0;
    for (size_t i = 0; i < chosen->within_calls; i++) {
        const struct kp_call_span call = chosen->calls[i];
        kp_spans_add(&calls, call.start_ns, call.end_ns);
        whole_ns += call.end_ns - call.start_ns;
        inside_ns += kp_spans_between(&chosen->spans, call.start_ns, call.end_ns);
    }
    kp_spans_settle(&calls);
    const int64_t all_ns = kp_spans_length(&chosen->spans, NULL);
    const int64_t others_ns = all_ns - kp_spans_length(&chosen->spans, &calls);
    kp_spans_fini(&calls);
    return whole_ns - inside_ns > whole_ns / CUT_PART || others_ns > all_ns / CUT_PART;
}

/* ---- forward passes ---- */

static bool is_module(const struct kp_tree *tree, int32_t node)
{
    const struct kp_node *const n = &tree->nodes[node];
    return n->is_python && kp_framename_module(kp_kineto_text(tree->trace, n->name));
}

/* If calls overlap, on several threads, an earlier one may have it. */
static bool is_in_call(const struct kp_chosen *chosen, const struct kp_node *node, int64_t longest_ns)
{
    size_t next = kp_rows_from(chosen->calls, chosen->within_calls, sizeof *chosen->calls, node->start_ns + 1);
    for (; next && chosen->calls[next - 1].start_ns + longest_ns >= node->end_ns; next--)
        if (node->end_ns <= chosen->calls[next - 1].end_ns) return true;
    return false;
}

static int64_t longest_call_ns(const struct kp_chosen *chosen)
{
    int64_t longest = 0;
    for (size_t i = 0; i < chosen->within_calls; i++)
        if (chosen->calls[i].end_ns - chosen->calls[i].start_ns > longest)
            longest = chosen->calls[i].end_ns - chosen->calls[i].start_ns;
    return longest;
}

static bool is_pass(const struct kp_chosen *chosen, const struct kp_tree *tree, int32_t node, int64_t longest_ns)
{
    const bool is_counted = !(kp_tree_event(tree, (size_t)node)->flags & KP_KINETO_CONTINUED);
    if (!is_counted || !is_module(tree, node) || !is_in_call(chosen, &tree->nodes[node], longest_ns)) return false;
    for (int32_t at = tree->nodes[node].parent; at >= 0; at = tree->nodes[at].parent)
        if (is_module(tree, at)) return false;
    return true;
}

void kp_chosen_count_passes(struct kp_chosen *chosen, const struct kp_tree *tree)
{
    const int64_t longest_ns = longest_call_ns(chosen);
    int64_t most_ns = -1;
    uint32_t model = 0;
    chosen->passes = 0;
    for (size_t i = 0; i < tree->count && chosen->within_calls; i++) {
        const struct kp_node *const node = &tree->nodes[i];
        if (!node->is_python || !is_pass(chosen, tree, (int32_t)i, longest_ns)) continue;
        if (node->end_ns - node->start_ns > most_ns) most_ns = node->end_ns - node->start_ns, model = node->name;
    }
    for (size_t i = 0; i < tree->count && model; i++)
        chosen->passes += tree->nodes[i].name == model && is_pass(chosen, tree, (int32_t)i, longest_ns);
}

static bool has_ended(const void *step, const void *ns)
{
    return ((const struct kp_step *)step)->end_ns <= *(const int64_t *)ns;
}

size_t kp_step_after(const struct kp_step *steps, size_t count, int64_t ns)
{
    return kp_search(steps, sizeof *steps, count, has_ended, &ns);
}

size_t kp_step_at(const struct kp_step *steps, size_t count, int64_t ns)
{
    const size_t at = kp_step_after(steps, count, ns);
    return at < count && steps[at].start_ns <= ns ? at : count;
}

int64_t kp_chosen_asked_ns(const struct kp_chosen *chosen, const struct kp_tree *tree, size_t node)
{
    const int32_t call = chosen->is_of_calls ? tree->nodes[node].call : -1;
    return call < 0 ? kp_tree_asked_ns(tree, node) : tree->nodes[call].start_ns;
}

bool kp_chosen_has_gpu(const struct kp_chosen *chosen, const struct kp_tree *tree)
{
    const struct kp_spans *within = chosen->step_count ? &chosen->in_steps : &chosen->spans;
    int64_t worked_ns = 0;
    for (size_t i = 0; i < tree->count; i++) {
        if (kp_tree_event(tree, i)->kind != KP_KINETO_GPU) continue;
        if (kp_spans_has(within, kp_chosen_asked_ns(chosen, tree, i))) return true;
        worked_ns += kp_spans_between(within, tree->nodes[i].start_ns, tree->nodes[i].end_ns);
    }
    return worked_ns > 0 && (double)worked_ns >= WORKED_LEAST * (double)kp_spans_length(within, NULL);
}

void kp_chosen_outside(const struct kp_chosen *chosen, int64_t *before_ns, int64_t *after_ns)
{
    const struct kp_spans *steps = &chosen->in_steps;
    *before_ns = *after_ns = 0;
    if (!steps->count) return;
    *before_ns = kp_spans_between(&chosen->spans, INT64_MIN / 2, steps->of[0].start_ns);
    *after_ns = kp_spans_between(&chosen->spans, steps->of[steps->count - 1].end_ns, INT64_MAX / 2);
}

int kp_chosen_all(struct kp_chosen *out, const struct kp_tree *tree, char *why, size_t why_bytes)
{
    return kp_chosen_make(out, tree, &(struct kp_choice){.first_step = -1, .last_step = -1}, why, why_bytes);
}

double kp_chosen_steps_ns(const struct kp_chosen *c)
{
    double ns = 0;
    for (size_t i = 0; i < c->step_count; i++) ns += (double)(c->steps[i].end_ns - c->steps[i].start_ns);
    return ns;
}

void kp_chosen_fini(struct kp_chosen *chosen)
{
    kp_spans_fini(&chosen->spans);
    kp_spans_fini(&chosen->in_steps);
    free(chosen->steps);
    free(chosen->calls);
    chosen->steps = NULL;
    chosen->calls = NULL;
}
