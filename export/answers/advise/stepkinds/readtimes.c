// SPDX-License-Identifier: Apache-2.0
/*
 * readtimes.c - the time of the function that reads values one by one, where it does little else
 *
 * To read all at once takes the function's own loop away, too: its indexing, its list of values, its Python. With
 * Python's calls the function's calls tell how long it lasts, else its ops and what lies between them.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

enum { BETWEEN_NS = 200000 }; /* two ops of the function on end: it may have been left and called again */

static bool is_op_of(const struct kp_costrules *x, size_t i, const char *function, bool was)
{
    const uint32_t own = kp_costplace_line(x->tree, (int32_t)i);
    const char *const line = own ? kp_kineto_text(x->tree->trace, own) : NULL;
    return line && (kp_gapplace_is_function(line, function) || (was && kp_gapplace_is_inner(line, function)));
}

static void by_ops(struct kp_spans *out, const struct kp_costrules *x, const char *function)
{
    int64_t until = INT64_MIN, tid = 0;
    bool was = false;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        if (!kp_costrules_is_op(x, i) || node->end_ns <= until) continue;
        const bool is = is_op_of(x, i, function, was);
        const bool is_next = is && was && tid == kp_tree_event(x->tree, i)->tid && node->start_ns - until < BETWEEN_NS;
        if (is) kp_spans_add(out, is_next ? until : node->start_ns, node->end_ns);
        was = is;
        tid = kp_tree_event(x->tree, i)->tid;
        until = node->end_ns;
    }
}

static void by_calls(struct kp_spans *out, const struct kp_costrules *x, const char *function)
{
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        if (!node->is_python) continue;
        const uint32_t own = kp_ownline_function(x->tree->trace, kp_tree_call_name(x->tree, node));
        if (own && kp_gapplace_is_function(kp_kineto_text(x->tree->trace, own), function))
            kp_spans_add(out, node->start_ns, node->end_ns);
    }
}

void kp_readtimes_find(struct kp_spans *out, const struct kp_costrules *x, const char *line)
{
    const char *const name = strchr(line, ' ');
    if (!name || name[1] == '<') return;
    by_calls(out, x, line);
    if (!out->count) by_ops(out, x, line);
    kp_spans_settle(out);
}

/* Adds what of one span none of the others (settled) covers. */
static void uncovered_add(struct kp_spans *out, const struct kp_time_span *span, const struct kp_spans *others)
{
    int64_t from = span->start_ns;
    size_t k = kp_rows_from(others->of, others->count, sizeof *others->of, from + 1);
    if (k && others->of[k - 1].end_ns > from) from = others->of[k - 1].end_ns;
    for (; from < span->end_ns; k++) {
        const bool is_last = k >= others->count || others->of[k].start_ns >= span->end_ns;
        const int64_t to = is_last ? span->end_ns : others->of[k].start_ns;
        if (to > from) kp_spans_add(out, from, to);
        if (is_last) break;
        from = others->of[k].end_ns;
    }
}

void kp_readtimes_idle(struct kp_spans *out, const struct kp_costrules *x, const struct kp_spans *times)
{
    struct kp_spans worked = {0};
    for (size_t i = 0; i < x->tree->count; i++)
        if (kp_costrules_is_op(x, i)) kp_spans_add(&worked, x->tree->nodes[i].start_ns, x->tree->nodes[i].end_ns);
    kp_spans_settle(&worked);
    for (size_t i = 0; i < times->count; i++) uncovered_add(out, &times->of[i], &worked);
    kp_spans_settle(out);
    kp_spans_fini(&worked);
}
