// SPDX-License-Identifier: Apache-2.0
/* enclosing.c - keeps the slices of each thread that are open at the time of the last event */
#include "export/answers/convert/convert.h"

#include <stdlib.h>

#include "export/read/kineto/kineto.h"

static struct kp_enclosing_thread *thread_get(struct kp_enclosing *n, size_t thread)
{
    n->threads = kp_kineto_grow_zeros(n->threads, &n->capacity, thread + 1, sizeof *n->threads);
    if (thread >= n->count) n->count = thread + 1;
    return &n->threads[thread];
}

static bool is_open(const struct kp_open_slice *s, int64_t now_ns)
{
    return s->end_ns > now_ns || s->start_ns == now_ns;
}

/* Slices need not nest, so one that ended may lie below one that did not. All that ended go. */
int64_t kp_enclosing_slice(struct kp_enclosing *n, size_t thread, int64_t start_ns, int64_t end_ns)
{
    struct kp_enclosing_thread *t = thread_get(n, thread);
    size_t kept = 0;
    int64_t id = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (!is_open(&t->open[i], start_ns)) continue;
        if (t->open[i].end_ns >= end_ns) id = t->open[i].id;
        t->open[kept++] = t->open[i];
    }
    t->count = kept;
    return id;
}

void kp_enclosing_open(struct kp_enclosing *n, size_t thread, int64_t start_ns, int64_t end_ns, int64_t id)
{
    struct kp_enclosing_thread *t = thread_get(n, thread);
    *KP_KINETO_NEXT(t->open, t->count, t->capacity) = (struct kp_open_slice){start_ns, end_ns, id};
}

void kp_enclosing_free(struct kp_enclosing *n)
{
    for (size_t i = 0; i < n->count; i++) free(n->threads[i].open);
    free(n->threads);
    *n = (struct kp_enclosing){0};
}
