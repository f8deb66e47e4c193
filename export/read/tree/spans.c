// SPDX-License-Identifier: Apache-2.0
/* spans.c - adds, joins and intersects spans of time */
#include "export/read/tree/spans.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/read/tree/tree.h"
#include "export/read/store/qsort.h"

void kp_spans_add(struct kp_spans *spans, int64_t start_ns, int64_t end_ns)
{
    if (end_ns <= start_ns) return;
    struct kp_time_span *last = spans->count ? &spans->of[spans->count - 1] : NULL;
    if (last && start_ns >= last->start_ns && start_ns <= last->end_ns) { /* mostly they come in order */
        if (end_ns > last->end_ns) last->end_ns = end_ns;
        return;
    }
    *KP_KINETO_NEXT(spans->of, spans->count, spans->capacity) = (struct kp_time_span){start_ns, end_ns, 0};
}

void kp_spans_add_all(struct kp_spans *spans, const struct kp_spans *others)
{
    for (size_t i = 0; i < others->count; i++) kp_spans_add(spans, others->of[i].start_ns, others->of[i].end_ns);
}

KP_ORDER2(span_order, struct kp_time_span, start_ns, end_ns)

void kp_spans_settle(struct kp_spans *spans)
{
    size_t kept = 0;
    if (spans->count) kp_qsort(spans->of, spans->count, sizeof *spans->of, span_order);
    for (size_t i = 0; i < spans->count; i++) {
        struct kp_time_span *last = kept ? &spans->of[kept - 1] : NULL;
        if (!last || spans->of[i].start_ns > last->end_ns) spans->of[kept++] = spans->of[i];
        else if (spans->of[i].end_ns > last->end_ns) last->end_ns = spans->of[i].end_ns;
    }
    spans->count = kept;
    for (size_t i = 1; i < kept; i++) {
        const struct kp_time_span *last = &spans->of[i - 1];
        spans->of[i].before_ns = last->before_ns + (last->end_ns - last->start_ns);
    }
}

bool kp_spans_has(const struct kp_spans *spans, int64_t at_ns)
{
    const size_t after = kp_rows_from(spans->of, spans->count, sizeof *spans->of, at_ns + 1);
    return after && at_ns < spans->of[after - 1].end_ns;
}

/* How long the set lasts before a time. `after`: the first span that begins then or later. */
static int64_t length_before(const struct kp_spans *spans, size_t after, int64_t at_ns)
{
    if (!after) return 0;
    const struct kp_time_span *last = &spans->of[after - 1];
    return last->before_ns + (at_ns < last->end_ns ? at_ns : last->end_ns) - last->start_ns;
}

int64_t kp_spans_between(const struct kp_spans *spans, int64_t start_ns, int64_t end_ns)
{
    if (end_ns <= start_ns) return 0;
    const size_t from = kp_rows_from(spans->of, spans->count, sizeof *spans->of, start_ns);
    size_t to = from; /* mostly no span begins in between */
    if (from < spans->count && spans->of[from].start_ns < end_ns)
        to = kp_rows_from(spans->of, spans->count, sizeof *spans->of, end_ns);
    return length_before(spans, to, end_ns) - length_before(spans, from, start_ns);
}

/* Finds the next common part of two sets, from *i and *j on. False: no more. */
static bool common_next(const struct kp_spans *a, const struct kp_spans *b, size_t *i, size_t *j,
                        struct kp_time_span *out)
{
    while (*i < a->count && *j < b->count) {
        const struct kp_time_span x = a->of[*i], y = b->of[*j];
        *out = (struct kp_time_span){x.start_ns > y.start_ns ? x.start_ns : y.start_ns,
                                     x.end_ns < y.end_ns ? x.end_ns : y.end_ns, 0};
        if (x.end_ns < y.end_ns) ++*i;
        else ++*j;
        if (out->start_ns < out->end_ns) return true;
    }
    return false;
}

int64_t kp_spans_length(const struct kp_spans *spans, const struct kp_spans *inside)
{
    struct kp_time_span part;
    int64_t length = 0;
    size_t i = 0, j = 0;
    while (common_next(spans, inside ? inside : spans, &i, &j, &part)) length += part.end_ns - part.start_ns;
    return length;
}

void kp_spans_cut(struct kp_spans *spans, const struct kp_spans *inside)
{
    struct kp_spans kept = {0};
    struct kp_time_span part;
    size_t i = 0, j = 0;
    while (common_next(spans, inside, &i, &j, &part)) kp_spans_add(&kept, part.start_ns, part.end_ns);
    kp_spans_fini(spans);
    *spans = kept;
    kp_spans_settle(spans);
}

void kp_spans_fini(struct kp_spans *spans)
{
    free(spans->of);
    *spans = (struct kp_spans){0};
}
