// SPDX-License-Identifier: Apache-2.0
/*
 * event.c - writes an event of a spool as the event Kineto would have written, and the arrows between events
 *
 * Called by: export.c, for every event in order of start time (hot: no search, no allocation)
 */
#include <errno.h>

#include "collector/format/kp_python.h"
#include "export/write/gpu/collectives.h"
#include "export/write/heap/allocations.h"
#include "export/write/names/framenames.h"
#include "export/write/out/slice.h"
#include "export/write/out/trace.h"
#include "export/write/trace/callers.h"
#include "export/write/trace/fwdbwd.h"
#include "export/write/trace/parts.h"
#include "collector/base/kp_poison.h"

/* ---- writes call stacks of ops that mix machine code and Python ---- */
/*
 * Python frames that call each other without C in between share a frame of machine code, the interpreter's loop. The
 * outermost of them says that C entered the interpreter for it (kp_python.h). The machine code frames alone are what a
 * debugger shows at the op's start, without torch's calls of recording callbacks. The Python frames alone are what
 * KPROF_WITH_STACK=ops writes.
 */

/* Writes the Python frames of a run of the interpreter's loop, or all that are left. */
static void python_write(struct kp_trace *t, uint32_t *python, bool is_all)
{
    bool is_last = false;
    while (*python && !is_last && t->frames++ < KP_FRAMES_MAX) {
        is_last = !is_all && kp_reader_called_by_c(t->reader, *python);
        const char *frame = kp_reader_frame(t->reader, python);
        if (frame) kp_json_fmt(&t->json, "%s;", frame);
    }
}

/*
 * Writes the frames of an op, innermost first, each with ';' behind. The Python frames that a frame of the interpreter
 * runs come before that frame. 0 or -ENOMEM.
 */
static int native_stack_write(struct kp_trace *t, uint32_t native, uint32_t python)
{
    struct kp_symbol symbol;
    if (!t->symbols) t->symbols = kp_symbols_open(t->reader, t->options);
    if (!t->symbols) return -ENOMEM;
    bool is_begun = false;
    kp_round_begin(&t->round);
    while (kp_round_add(&t->round, native) && kp_symbols_next(t->symbols, &native, &symbol) && !t->json.error) {
        is_begun = is_begun || !symbol.is_recording;
        if (!is_begun) continue;
        if (symbol.is_python) python_write(t, &python, false);
        kp_json_fmt(&t->json, "%s;", symbol.text);
    }
    python_write(t, &python, true);
    return 0;
}

#define USER_SCOPE 7

/* Writes the stack recorded with the op. If it has none, it writes the Python calls around the op. */
static void stack_write(struct kp_trace *t, const struct kp_event *e)
{
    uint32_t stack = e->stack, first = stack;
    const char *const line = e->native ? NULL : kp_reader_call_line(t->reader, stack);
    const bool is_recorded = stack && !line;
    int rc = 0;
    if (line) kp_json_fmt(&t->json, ",\"CallFrom\":\"%s\"", line); /* that called the op, as calls have theirs */
    if (!e->native && !(is_recorded ? kp_reader_frame(t->reader, &first) != NULL : kp_callers_has_stack(t->python, e)))
        return;
    kp_json_lit(&t->json, ",\"Call stack\":\"");
    t->frames = 0;
    if (e->native) rc = native_stack_write(t, e->native, stack);
    else if (is_recorded) python_write(t, &stack, true);
    else kp_callers_stack_write(t->python, e, &t->json);
    if (rc) t->json.error = rc;
    kp_json_char(&t->json, '"');
}

/* A collection of garbage is no call: it has no number, and is no op's caller. */
static void garbage_write(struct kp_trace *t, const struct kp_event *e)
{
    kp_json_fmt(&t->json, "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"%s", e->name);
    kp_slice_place_write(t, t->pid, e->tid, e->start_ns, e->end_ns);
    kp_json_fmt(&t->json, ",\"args\":{\"Ev Idx\":%lu}},\n", t->index++);
}

/* torch.profiler has no parts. A call that was open before the window has another line in its name (kp_python.h). */
static void further_write(struct kp_trace *t, const struct kp_event *e, uint64_t before_ns)
{
    kp_json_fmt(&t->json, ",\"further part\":\"%s\",\"ns before\":%lu", e->flags & KP_PY_OPEN ? "open at start" : "yes",
                before_ns);
}

static void pycall_write(struct kp_trace *t, const struct kp_event *e)
{
    struct kp_pycall call;
    const int rc = kp_callers_take(t->python, e, &call);
    if (rc) {
        t->json.error = rc;
        return;
    }
    kp_json_fmt(&t->json, "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"%s", e->name);
    if (call.module >= 0) kp_json_fmt(&t->json, "_%lu", (uint64_t)call.module);
    kp_slice_place_write(t, t->pid, e->tid, e->start_ns, e->end_ns);
    kp_json_fmt(&t->json, ",\"args\":{\"CallFrom\":\"%s\"", e->overload);
    if (call.parent) kp_json_fmt(&t->json, ",\"Python parent id\":%lu,\"Python id\":%lu", call.parent, call.id);
    else kp_json_fmt(&t->json, ",\"Python id\":%lu", call.id);
    if (call.module >= 0) {
        kp_json_fmt(&t->json, ",\"Python module id\":%lu", (uint64_t)call.module);
        if (call.has_path) { /* torch.profiler has none */
            kp_json_lit(&t->json, ",\"Python module name\":\"");
            kp_callers_path_write(t->python, e, &t->json);
            kp_json_char(&t->json, '"');
        }
    }
    if (e->flags & KP_PY_FURTHER) further_write(t, e, call.before_ns);
    kp_json_fmt(&t->json, ",\"Ev Idx\":%lu}},\n", t->index++);
}

static void op_write(struct kp_trace *t, const struct kp_event *e)
{
    struct kp_flow_from from;
    if (e->seq >= 0) kp_json_fmt(&t->json, ",\"Sequence number\":%ld,\"Fwd thread id\":%lu", e->seq, e->fwd_tid);
    kp_inputs_write(&t->json, e);
    if (e->comms) kp_comms_op_write(t, e->comms);
    if (e->comms && t->gpu) kp_comms_keep(t->gpu, e->comms, t->index + 1);
    stack_write(t, e);
    if (e->modules) kp_json_fmt(&t->json, ",\"Module Hierarchy\":\"%s\"", e->modules);
    if (t->heap) kp_heap_args_write(t->heap, &t->json);
    if (e->flags & KP_OP_UNFINISHED) kp_json_lit(&t->json, ",\"finished\":false");
    else if (e->ends_step && !t->has_steps) kp_json_lit(&t->json, ",\"step\":\"ended\"");
    kp_json_fmt(&t->json, ",\"Ev Idx\":%lu}},\n", t->index);
    if (e->scope == USER_SCOPE || !kp_flows_take(t->flows, e, &from)) return;
    t->flow++;
    kp_slice_arrow_write(t, 's', "fwdbwd", t->flow, t->pid, from.tid, from.start_ns);
    kp_slice_arrow_write(t, 'f', "fwdbwd", t->flow, t->pid, e->tid, e->start_ns);
}

/* Says what makes it no whole step: the program's start in it, or its exit. */
static void step_part_write(struct kp_trace *t, const struct kp_event *e)
{
    if (e->flags & KP_STEP_STARTUP) kp_json_lit(&t->json, ",\"partial\":\"start-up\"");
    else if (e->flags & (KP_STEP_CUT | KP_OP_UNFINISHED)) kp_json_lit(&t->json, ",\"partial\":\"cut short\"");
}

void kp_event_write(struct kp_trace *t, const struct kp_event *e)
{
    bool is_op = e->kind == KP_KIND_OP;
    if (e->kind == KP_KIND_PYCALL) {
        if (e->flags & KP_PY_GARBAGE) garbage_write(t, e);
        else pycall_write(t, e);
        return;
    }
    kp_json_fmt(&t->json, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s",
                e->scope == USER_SCOPE ? "user_annotation" : "cpu_op", e->name);
    kp_slice_place_write(t, t->pid, e->tid, e->start_ns, e->end_ns);
    kp_json_fmt(&t->json, ",\"args\":{\"External id\":%lu,\"Record function id\":%lu", t->index + 1, e->handle);
    if (is_op) {
        op_write(t, e);
    } else {
        stack_write(t, e);
        if (t->heap && e->kind == KP_KIND_STEP) kp_heap_args_write(t->heap, &t->json);
        if (e->flags & KP_OP_UNFINISHED) kp_json_lit(&t->json, ",\"finished\":false");
        if (e->kind == KP_KIND_STEP) step_part_write(t, e);
        kp_json_fmt(&t->json, ",\"Ev Idx\":%lu}},\n", t->index);
    }
    t->index++;
}
