// SPDX-License-Identifier: Apache-2.0
/* commkinds.c - tells by the names of collectives what they are for, and what makes them fewer */
#include "export/read/facts/comm/commkinds.h"

#include <string.h>

#include "export/read/facts/namefacts.h"

static bool has_part(const char *name, const char *const *parts)
{
    for (; *parts; parts++)
        if (strcasestr(name, *parts)) return true;
    return false;
}

static bool is_exchange(const char *name)
{
    static const char *const parts[] = {"all_to_all", "alltoall", "all2all", "deep_ep", "pplx", NULL};
    return has_part(name, parts);
}

/* False: the name does not say, or what it waits for stands elsewhere. */
static bool kind_find(const char *name, enum kp_commkind *out)
{
    static const char *const gathers[] = {"all_gather", "allgather", "reduce_scatter", "reducescatter", NULL};
    static const char *const reduces[] = {"all_reduce", "allreduce", "cross_device_reduce", "quickreduce", NULL};
    static const char *const stages[] = {":send", ":recv", "SendRecv", NULL};
    const bool is_functional = strstr(name, "c10d_functional");
    if (is_exchange(name)) *out = KP_COMM_EXCHANGE;
    else if (has_part(name, gathers)) *out = is_functional ? KP_COMM_TENSOR : KP_COMM_GATHER;
    else if (has_part(name, reduces)) *out = is_functional ? KP_COMM_TENSOR : KP_COMM_REDUCE;
    else if (has_part(name, stages)) *out = KP_COMM_STAGES;
    else return false;
    return true;
}

bool kp_commkinds_is_stage(const char *name)
{
    enum kp_commkind kind;
    return kind_find(name, &kind) && kind == KP_COMM_STAGES;
}

void kp_commkinds_add(struct kp_commkinds *kinds, const struct kp_tree *tree, const struct kp_spans *within)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        const char *const name = kp_kineto_text(tree->trace, e->name);
        const bool is_host = e->kind == KP_KINETO_ANNOTATION || e->kind == KP_KINETO_OP;
        enum kp_commkind kind;
        if (tree->nodes[i].removed) continue;
        if (is_host && strstr(name, "DistributedDataParallel")) kinds->has_data_parallel = true;
        const bool is_comm = e->kind == KP_KINETO_GPU
                                 ? kp_node_is(tree, i, KP_NAME_COMM)
                                 : is_host && kp_node_is(tree, i, KP_NAME_COLLECTIVE | KP_NAME_COMM_OP);
        if (!is_comm || !kind_find(name, &kind)) continue;
        kinds->has_exchange |= kind == KP_COMM_EXCHANGE;
        kinds->ns[kind] += kp_spans_between(within, tree->nodes[i].start_ns, tree->nodes[i].end_ns);
    }
}

enum kp_commkind kp_commkinds_most(const struct kp_commkinds *k)
{
    int most = KP_COMM_REDUCE;
    for (int i = 0; i < KP_COMM_KINDS; i++)
        if (k->ns[i] > k->ns[most]) most = i;
    if (most == KP_COMM_STAGES && k->has_exchange) return KP_COMM_EXCHANGE;
    return most == KP_COMM_TENSOR && k->has_data_parallel ? KP_COMM_REDUCE : (enum kp_commkind)most;
}

const char *kp_commkinds_less(const struct kp_commkinds *k)
{
    const enum kp_commkind kind = kp_commkinds_most(k);
    static const char *const texts[KP_COMM_KINDS] = {
        [KP_COMM_REDUCE] =
            "Send less, or less often: gradients of several steps together (no_sync()), fewer and larger "
            "buckets (DDP(..., bucket_cap_mb=N)).",
        [KP_COMM_TENSOR] =
            "Send less: layers shared by fewer ranks (a smaller tensor-parallel group), or larger batches "
            "for each collective.",
        [KP_COMM_GATHER] = "Send less, or less often: keep parameters gathered between forward and backward "
                           "(reshard_after_forward=False, where memory allows it), gradients of several steps together "
                           "(set_requires_gradient_sync(False)), larger units.",
        [KP_COMM_EXCHANGE] =
            "Send less: a lower capacity or fewer experts for each token, experts of one machine first, "
            "tokens in half precision.",
        [KP_COMM_STAGES] =
            "Send less often: fewer, larger micro batches only where stages do not wait for one another."};
    if (kind == KP_COMM_REDUCE && !k->has_data_parallel)
        return "Send less, or less often: gradients of several steps together, in fewer and larger pieces.";
    return texts[kind];
}

const char *kp_commkinds_overlap(const struct kp_commkinds *k)
{
    const enum kp_commkind kind = kp_commkinds_most(k);
    static const char *const texts[KP_COMM_KINDS] = {
        [KP_COMM_REDUCE] = "let communication overlap with backward: DDP(..., bucket_cap_mb=N)",
        [KP_COMM_TENSOR] =
            "let collectives of the layers overlap with their products (asynchronous tensor parallel), or "
            "share layers among fewer ranks",
        [KP_COMM_GATHER] = "let the next parameters be gathered meanwhile: FSDP's prefetch "
                           "(set_modules_to_forward_prefetch, set_modules_to_backward_prefetch)",
        [KP_COMM_EXCHANGE] = "let experts compute one part of the tokens while the next is sent, and even out how many "
                             "tokens each has",
        [KP_COMM_STAGES] =
            "more micro batches, or an interleaved schedule, leave stages less to wait; even out what the "
            "stages take"};
    if (kind == KP_COMM_REDUCE && !k->has_data_parallel)
        return "let communication overlap with computing: all_reduce(..., async_op=True), and wait() where the "
               "result is used";
    return texts[kind];
}
