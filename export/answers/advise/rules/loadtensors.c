// SPDX-License-Identifier: Apache-2.0
/*
 * loadtensors.c - does a batch come from a worker as many tensors, whose receipt takes much of the wait?
 *
 * A worker sends each tensor in shared memory of its own. The thread that takes the batch gets a file descriptor for
 * each, maps it, and makes a tensor of it with aten::set_. From one to the next it receives, and waits for no item.
 */
#include "export/answers/advise/rules/loadwaits.h"

#include "export/answers/advise/rules/loadsavings.h"

#define RECEIPT_SHARE (1.0 / 3) /* of the calls for a batch */
enum { TENSORS_LEAST = 20 };    /* of a batch */

struct receipt {
    size_t batches, tensors;
    double calls_ns, ns; /* ns: from a tensor to the next of its batch */
};

static void tensor_count(struct receipt *r, const struct kp_node *tensor, const struct kp_node *before)
{
    const int64_t ns = before ? tensor->start_ns - before->start_ns : 0;
    r->tensors++;
    if (ns > 0 && (double)ns < KP_HAND_OVER_NS) r->ns += (double)ns; /* else it waits: for a core, or the next batch */
}

static struct receipt receipt_of(const struct kp_costrules *x)
{
    const struct kp_node *const nodes = x->tree->nodes;
    struct receipt r = {0};
    int32_t loader = -1;
    const struct kp_node *before = NULL;
    for (size_t i = 0; i < x->tree->count; i++) {
        const int32_t of = x->loaders[i];
        if (of < 0 || nodes[of].removed || !kp_loader_has_workers(kp_costrules_name(x, of))) continue;
        if (of == (int32_t)i) {
            r.batches++;
            r.calls_ns += (double)(nodes[i].end_ns - nodes[i].start_ns);
        }
        if (strcmp(kp_costrules_name(x, (int32_t)i), "aten::set_") != 0) continue;
        tensor_count(&r, &nodes[i], of == loader ? before : NULL);
        loader = of;
        before = &nodes[i];
    }
    return r;
}

bool kp_loadtensors_tell(const struct kp_costrules *x, struct kp_finding *f)
{
    const struct receipt r = receipt_of(x);
    if (r.tensors < TENSORS_LEAST * r.batches || !r.batches || r.ns < RECEIPT_SHARE * r.calls_ns) return false;
    const size_t each = (r.tensors + r.batches / 2) / r.batches;
    f->what = kp_costrules_text(x, "%s, from which a batch comes as %zu tensors", f->what, each);
    f->first = kp_costrules_text(
        x,
        "A batch comes as %zu tensors: each is sent on its own (shared memory and a file descriptor each), and to "
        "receive them takes %.1f ms a batch. Stack them in collate_fn: one tensor a field; where sizes differ, "
        "torch.cat and a tensor of lengths.",
        each, r.ns / 1e6 / (double)r.batches);
    f->change = kp_costrules_text(x, "%s If the step still waits: %s", f->first, f->change);
    return true;
}
