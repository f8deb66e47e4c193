// SPDX-License-Identifier: Apache-2.0
/* framenames.h - names for the frames of machine code stacks */
#pragma once

#include <stdbool.h>

#include "export/kp_export.h"

struct kp_symbols;
/* Finds the names of all frames in the spool so far. NULL: no memory. */
struct kp_symbols *kp_symbols_open(const struct kp_reader *reader, const struct kp_export_options *options);
void kp_symbols_close(struct kp_symbols *s);

struct kp_symbol {
    /*
     * "libtorch_cpu.so: at::_ops::add_Tensor::call", or "libtorch_cpu.so+0x1234"; never NULL. With lines it is "app: f
     * f.cpp:12", with functions inlined there before it: "app: g g.h:3 (inlined);app: f f.cpp:12".
     */
    const char *text;
    bool is_python; /* the interpreter's loop: what Python runs lies in it */
    /* torch calls it only while a profiler records: at::RecordFunction, or the Dispatcher calling it */
    bool is_recording;
};
/* The innermost frame of a stack. *stack becomes its caller's. False: there is none. Valid until _close. */
bool kp_symbols_next(struct kp_symbols *s, uint32_t *stack, struct kp_symbol *out);
