// SPDX-License-Identifier: Apache-2.0
/*
 * blockstack.h - the call stack of a block, machine code and Python in one
 */
#pragma once

#include "export/write/out/trace.h"

struct kp_blockstack {
    struct kp_trace *trace;
    uint32_t native, python, n;
    bool is_run_over; /* the Python frames of this frame of machine code were given */
};
struct kp_blockframe {
    const char *python;        /* "file.py(12): f"; NULL: a frame of machine code */
    struct kp_frame_at native; /* that one */
    uint32_t id;               /* of either: kp_reader_native(.., id, ..) tells all of that one */
};
/* The stack of a block (struct kp_heap_event). Frames come innermost first. */
void kp_blockstack_begin(struct kp_blockstack *s, struct kp_trace *trace, uint32_t stack);
bool kp_blockstack_next(struct kp_blockstack *s, struct kp_blockframe *out); /* false: no more */
/* A number for what _next will give from here on: equal numbers, equal frames. 0: nothing. If there are no frames of
 * Python it is the id of the next frame, else above UINT32_MAX. */
uint64_t kp_blockstack_rest(const struct kp_blockstack *s);
