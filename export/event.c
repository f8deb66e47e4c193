// SPDX-License-Identifier: Apache-2.0
/*
 * event.c - one event of a spool as the event Kineto would have written, and the arrows between them
 *
 * Called by: chrome.c, for every event in order of start time (hot: no search, no allocation)
 */
#include <string.h>

#include "export/inputs.h"
#include "export/trace.h"
#include "collector/base/kp_poison.h"

#define USER_SCOPE 7

static void place_write(struct kp_trace *t, uint32_t tid, uint64_t start_ns)
{
    kp_json_raw(&t->json, t->to_tid, t->to_tid_bytes);
    kp_json_u64(&t->json, tid);
    kp_json_lit(&t->json, ",\"ts\":");
    kp_ts_write(t, start_ns);
}

static void sequence_write(struct kp_trace *t, int64_t seq, uint64_t fwd_tid)
{
    kp_json_lit(&t->json, ",\"Sequence number\":");
    kp_json_i64(&t->json, seq);
    kp_json_lit(&t->json, ",\"Fwd thread id\":");
    kp_json_u64(&t->json, fwd_tid);
}

static void arrow_write(struct kp_trace *t, char phase, uint32_t tid, uint64_t start_ns)
{
    kp_json_lit(&t->json, "{\"ph\":\"");
    kp_json_char(&t->json, phase);
    kp_json_lit(&t->json, "\",\"id\":");
    kp_json_u64(&t->json, t->flow);
    kp_json_raw(&t->json, t->to_tid + 1, t->to_tid_bytes - 1);
    kp_json_u64(&t->json, tid);
    kp_json_lit(&t->json, ",\"ts\":");
    kp_ts_write(t, start_ns);
    if (phase == 'f') kp_json_lit(&t->json, ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"bp\":\"e\"},\n");
    else kp_json_lit(&t->json, ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"},\n");
}

static void op_write(struct kp_trace *t, const struct kp_event *e)
{
    struct kp_flow_from from;
    if (e->seq >= 0) sequence_write(t, e->seq, e->fwd_tid);
    kp_inputs_write(&t->json, e);
    if (e->flags & KP_OP_UNFINISHED) kp_json_lit(&t->json, ",\"finished\":false");
    kp_json_lit(&t->json, ",\"Ev Idx\":");
    kp_json_u64(&t->json, t->index);
    kp_json_lit(&t->json, "}},\n");
    if (e->scope == USER_SCOPE || !kp_flows_take(t->flows, e, &from)) return;
    t->flow++;
    arrow_write(t, 's', from.tid, from.start_ns);
    arrow_write(t, 'f', e->tid, e->start_ns);
}

void kp_event_write(struct kp_trace *t, const struct kp_event *e)
{
    bool is_op = e->kind == KP_KIND_OP;
    if (e->scope == USER_SCOPE) kp_json_lit(&t->json, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"");
    else kp_json_lit(&t->json, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"");
    kp_json_text(&t->json, e->name, strlen(e->name));
    place_write(t, e->tid, e->start_ns);
    kp_json_lit(&t->json, ",\"dur\":");
    kp_json_us(&t->json, e->end_ns - e->start_ns);
    kp_json_lit(&t->json, ",\"args\":{\"External id\":");
    kp_json_u64(&t->json, t->index + 1);
    kp_json_lit(&t->json, ",\"Record function id\":");
    kp_json_u64(&t->json, e->handle);
    if (is_op) {
        op_write(t, e);
    } else {
        if (e->flags & KP_OP_UNFINISHED) kp_json_lit(&t->json, ",\"finished\":false");
        kp_json_lit(&t->json, ",\"Ev Idx\":");
        kp_json_u64(&t->json, t->index);
        kp_json_lit(&t->json, "}},\n");
    }
    t->index++;
}
