// SPDX-License-Identifier: Apache-2.0
/*
 * mixed_stacks.c - call stacks of ops with machine code and Python in one
 *
 * Called by: event.c
 * Memory:    that of framenames.c, from the first such stack of a trace on
 * On fail:   -ENOMEM, which ends the export
 *
 * The interpreter's loop is one frame of machine code for all the Python frames that call each other without C between
 * them; the outermost of these says that C entered the interpreter for it (kp_python.h). Without the frames of Python
 * what is left is what a debugger shows where the op starts, less torch's own call of those who record; without those
 * of machine code it is what KPROF_WITH_STACK=ops writes.
 */
#include "export/trace/mixed_stacks.h"

#include <errno.h>
#include <string.h>

#include "export/names/framenames.h"
#include "collector/base/kp_poison.h"

static void frame_write(struct kp_trace *t, const char *text)
{
    kp_json_text(&t->json, text, strlen(text));
    kp_json_char(&t->json, ';');
}

/* The Python frames of one run of the interpreter's loop, or all that are left. */
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
