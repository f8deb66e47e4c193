// SPDX-License-Identifier: Apache-2.0
/*
 * blockstack.c - the call stack of a block: machine code, and Python's frames where the interpreter runs them
 *
 * Called by: heaptrack_write.c, allocations.c
 * Memory:    that of framenames.c, from the first stack with Python's frames on
 * On fail:   without memory for names all Python frames lie outermost; a stack ends at KP_FRAMES_MAX frames
 *
 * The rule is that of event.c: Python's frames come right inside the frame of the interpreter's loop that runs
 * them. The outermost of them says that C entered the interpreter for it.
 */
#include "export/write/heap/blockstack.h"

#include "collector/base/kp_hash.h"
#include "export/write/names/framenames.h"
#include "collector/base/kp_poison.h"

#define MIXED (UINT64_C(1) << 63)

void kp_blockstack_begin(struct kp_blockstack *s, struct kp_trace *trace, uint32_t stack)
{
    *s = (struct kp_blockstack){.trace = trace, .native = stack};
    s->python = kp_reader_python_beside(trace->reader, &s->native);
    if (s->python && !trace->symbols) trace->symbols = kp_symbols_open(trace->reader, trace->options);
}

uint64_t kp_blockstack_rest(const struct kp_blockstack *s)
{
    const struct {
        uint64_t native, python;
    } key = {s->native, (uint64_t)s->python << 1 | s->is_run_over};
    if (!s->native && !s->python) return 0;
    return s->python ? kp_hash64(&key, sizeof key) | MIXED : s->native;
}

/* Does the next frame of machine code run Python's next frame? If there is no machine code, nothing else can run it. */
static bool is_python_next(const struct kp_blockstack *s)
{
    struct kp_symbol symbol;
    uint32_t native = s->native;
    if (!s->python || s->is_run_over) return false;
    if (!native || !s->trace->symbols) return !native;
    return kp_symbols_next(s->trace->symbols, &native, &symbol) && symbol.is_python;
}

static bool python_next(struct kp_blockstack *s, struct kp_blockframe *out)
{
    out->id = s->python;
    s->is_run_over = s->native && kp_reader_called_by_c(s->trace->reader, s->python);
    out->python = kp_reader_frame(s->trace->reader, &s->python);
    if (!s->python) s->is_run_over = false;
    return out->python != NULL;
}

bool kp_blockstack_next(struct kp_blockstack *s, struct kp_blockframe *out)
{
    out->python = NULL;
    if (s->n++ == KP_FRAMES_MAX) return false;
    if (is_python_next(s) && python_next(s, out)) return true;
    out->id = s->native;
    s->is_run_over = false;
    if (s->native && kp_reader_native_at(s->trace->reader, &s->native, &out->native)) return true;
    s->native = 0; /* a lost frame, or the end */
    return s->python && python_next(s, out);
}
