// SPDX-License-Identifier: Apache-2.0
/*
 * loadtensors.c - does a batch come from a worker as many tensors, whose receipt takes much of the wait?
 *
 * A worker sends each tensor in shared memory of its own. The thread that takes the batch gets a file descriptor for
 * each, maps it, and makes a tensor of it with aten::set_. From one to the next it receives, and waits for no item.
 */
#include "export/answers/advise/rules/load/loadwaits.h"

#include <stdlib.h>

#define RECEIPT_SHARE (1.0 / 3) /* of the calls for a batch */
enum { TENSORS_LEAST = 20 };    /* of a batch */

struct receipt {
    size_t batches, tensors;
    double calls_ns, ns, usual; /* usual: tensors of most batches; the last one may be cut */
};
struct received {
    size_t tensors;
    int64_t first_ns, last_ns;
};

static bool is_of_workers(const struct kp_costrules *x, int32_t loader)
{
    return loader >= 0 && !x->tree->nodes[loader].removed && kp_kineto_is_of_workers(kp_costrules_name(x, loader));
}

static void tensor_take(struct received *c, const struct kp_node *tensor)
{
    if (!c->tensors++) c->first_ns = tensor->start_ns;
    c->last_ns = tensor->end_ns;
}

/* Looks at the tensors of each call for a batch. One that takes two batches, out of order, waits between them. */
static struct receipt receipt_of(const struct kp_costrules *x)
{
    const struct kp_node *const nodes = x->tree->nodes;
    struct received *const calls = kp_kineto_zeros(x->tree->count + 1, sizeof *calls); /* by node of the call */
    struct receipt r = {0};
    struct kp_sample usual = {0};
    for (size_t i = 0; i < x->tree->count; i++) {
        const int32_t of = x->loaders[i];
        if (!is_of_workers(x, of)) continue;
        if (of == (int32_t)i) r.batches++, r.calls_ns += (double)kp_costrules_ns(x, i);
        if (strcmp(kp_costrules_name(x, (int32_t)i), "aten::set_") != 0) continue;
        tensor_take(&calls[of], &nodes[i]);
        r.tensors++;
    }
    for (size_t i = 0; i < x->tree->count; i++)
        if (x->loaders[i] == (int32_t)i && is_of_workers(x, (int32_t)i))
            kp_sample_add(&usual, (double)calls[i].tensors);
    r.usual = kp_sample_end(&usual, 0.5);
    for (size_t i = 0; i < x->tree->count && r.tensors; i++)
        if (2 * calls[i].tensors * r.batches <= 3 * r.tensors) r.ns += (double)(calls[i].last_ns - calls[i].first_ns);
    free(calls);
    return r;
}

bool kp_loadtensors_tell(const struct kp_costrules *x, struct kp_finding *f)
{
    const struct receipt r = receipt_of(x);
    if (!r.batches || r.usual < TENSORS_LEAST || r.ns < RECEIPT_SHARE * r.calls_ns) return false;
    const size_t each = (size_t)r.usual;
    f->what = KP_TEXT("%s, from which a batch comes as %zu tensors", f->what, each);
    f->first = KP_TEXT(
        "A batch comes as %zu tensors: each is sent on its own (shared memory and a file descriptor each), and to "
        "receive them takes %.1f ms a batch. Stack them in collate_fn: one tensor a field; where sizes differ, "
        "torch.cat and a tensor of lengths.",
        each, r.ns / 1e6 / (double)r.batches);
    f->change = KP_TEXT("%s If the step still waits: %s", f->first, f->change);
    return true;
}
