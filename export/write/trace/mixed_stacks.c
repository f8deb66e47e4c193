// SPDX-License-Identifier: Apache-2.0
/*
 * mixed_stacks.c - writes call stacks of ops that mix machine code and Python
 *
 * Called by: event.c
 * Memory:    that of framenames.c, from the first mixed stack of a trace on
 * On fail:   -ENOMEM, which ends the export
 *
 * Python frames that call each other without C in between share a frame of machine code, the interpreter's loop. The
 * outermost of them says that C entered the interpreter for it (kp_python.h). The machine code frames alone are what a
 * debugger shows at the op's start, without torch's calls of recording callbacks. The Python frames alone are what
 * KPROF_WITH_STACK=ops writes.
 */
#include "export/write/trace/mixed_stacks.h"

#include <errno.h>
#include <string.h>

#include "export/write/names/framenames.h"
#include "collector/base/kp_poison.h"

static void frame_write(struct kp_trace *t, const char *text) { kp_json_fmt(&t->json, "%s;", text); }

/* Writes the Python frames of a run of the interpreter's loop, or all that are left. */
static void python_write(struct kp_trace *t, uint32_t *python, bool is_all)
{
    bool is_last = false;
    while (*python && !is_last && t->frames++ < KP_FRAMES_MAX) {
        is_last = !is_all && kp_reader_called_by_c(t->reader, *python);
        const char *frame = kp_reader_frame(t->reader, python);
        if (frame) frame_write(t, frame);
    }
}

int kp_native_stack_write(struct kp_trace *t, uint32_t native, uint32_t python)
{
    struct kp_symbol symbol;
    if (!t->symbols) t->symbols = kp_symbols_open(t->reader, t->options);
    if (!t->symbols) return -ENOMEM;
    bool is_begun = false;
    t->frames = 0;
    kp_round_begin(&t->round);
    while (kp_round_add(&t->round, native) && kp_symbols_next(t->symbols, &native, &symbol) && !t->json.error) {
        is_begun = is_begun || !symbol.is_recording;
        if (!is_begun) continue;
        if (symbol.is_python) python_write(t, &python, false);
        frame_write(t, symbol.text);
    }
    python_write(t, &python, true);
    return 0;
}
