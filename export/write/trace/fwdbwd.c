// SPDX-License-Identifier: Apache-2.0
/*
 * fwdbwd.c - pairs forward ops with the backward ops they caused, as Kineto does
 *
 * Ops come by start time. The last to start of the forward ops with a (torch thread, sequence number) waits. The first
 * backward op with that pair takes it. A program that never goes backward would let entries pile up, so the table is
 * fixed. A bucket has 8 places, and a new entry replaces the oldest. Sequence numbers rise by 1 and pick the bucket,
 * which spreads the last 262144 of a thread evenly.
 */
#include "export/write/trace/fwdbwd.h"

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

#define BUCKETS 32768u
#define PLACES 8u

struct forward_place {
    uint64_t seq, start_ns; /* start_ns 0: free */
    uint64_t thread;        /* torch's id */
    uint32_t tid, pad;
};
struct kp_flows {
    struct forward_place of[BUCKETS][PLACES];
};

struct kp_flows *kp_flows_open(void)
{
    return kp_map_alloc(sizeof(struct kp_flows)); /* pages cost nothing until used */
}

void kp_flows_close(struct kp_flows *f)
{
    if (f) kp_map_free(f, sizeof *f);
}

static struct forward_place *find(struct forward_place *bucket, uint64_t thread, uint64_t seq)
{
    for (uint32_t i = 0; i < PLACES; i++)
        if (bucket[i].start_ns && bucket[i].seq == seq && bucket[i].thread == thread) return &bucket[i];
    return NULL;
}

static struct forward_place *oldest(struct forward_place *bucket)
{
    struct forward_place *best = bucket;
    for (uint32_t i = 1; i < PLACES; i++)
        if (bucket[i].start_ns < best->start_ns) best = &bucket[i];
    return best;
}

bool kp_flows_take(struct kp_flows *f, const struct kp_event *op, struct kp_flow_from *from)
{
    uint64_t seq = (uint64_t)op->seq, thread = op->fwd_tid ? op->fwd_tid : op->rt_tid;
    struct forward_place *bucket, *p;
    if (op->seq < 0 || op->flags & KP_OP_SEQ_OF_CHILD) return false;
    bucket = f->of[(seq ^ thread * 0x9e3779b1u) & (BUCKETS - 1)];
    p = find(bucket, thread, seq);
    if (op->fwd_tid) {
        if (!p) return false;
        *from = (struct kp_flow_from){.start_ns = p->start_ns, .tid = p->tid};
        p->start_ns = 0;
        return true;
    }
    if (p && p->start_ns > op->start_ns) return false;
    if (!p) p = oldest(bucket);
    *p = (struct forward_place){.seq = seq, .start_ns = op->start_ns, .thread = thread, .tid = op->tid};
    return false;
}
