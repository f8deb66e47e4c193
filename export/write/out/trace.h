// SPDX-License-Identifier: Apache-2.0
/* trace.h - a trace being written: the state that the writers of its parts share */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "collector/read/kp_read.h"
#include "export/kp_export.h"
#include "export/write/out/json.h"
#include "export/write/out/sink.h"

/* ---- finds circles in call stacks: in a damaged file, a frame's callers may lead back to it ---- */

enum { KP_ROUND_SLOTS = 2 * KP_FRAMES_MAX };
struct kp_round { /* the frames of a stack, in a hash table; a higher count empties it */
    uint32_t id[KP_ROUND_SLOTS], walk[KP_ROUND_SLOTS], now, n;
};

static inline void kp_round_begin(struct kp_round *r)
{
    r->n = 0;
    if (++r->now) return;
    memset(r->walk, 0, sizeof r->walk);
    r->now = 1;
}

/* False: the stack has this frame already, or KP_FRAMES_MAX frames. The stack ends before it. */
static inline bool kp_round_add(struct kp_round *r, uint32_t id)
{
    uint32_t at = id * 0x9e3779b1u >> 16 & (KP_ROUND_SLOTS - 1);
    for (; r->walk[at] == r->now; at = (at + 1) & (KP_ROUND_SLOTS - 1))
        if (r->id[at] == id) return false;
    r->walk[at] = r->now;
    r->id[at] = id;
    return r->n++ < KP_FRAMES_MAX;
}

/* ---- the trace ---- */

struct kp_trace {
    struct kp_json json;
    struct kp_sink sink;
    struct kp_gz *gz;
    struct kp_reader *reader;
    const struct kp_export_options *options;
    struct kp_export_result *result;
    struct kp_cycle cycle;
    uint64_t base_ns, now_ns;
    uint64_t index, flow;  /* next Ev Idx; last flow id */
    struct kp_round round; /* frames of the stack that is written */
    uint32_t frames;       /* Python frames in it */
    uint64_t text_bytes;   /* written so far, before gzip */
    uint32_t pid;
    bool begun;     /* the file exists, the head is written */
    bool has_steps; /* a marked step has come */
    struct kp_flows *flows;
    struct kp_blocks *blocks; /* torch_memory.h: from the first event of memory on */
    struct kp_before *before; /* memory_before.h: likewise */
    struct kp_gpu *gpu;       /* NULL: the spool has no GPU records */
    struct kp_callers *python;
    struct kp_named *named;     /* NULL: no calls of functions by name */
    struct kp_heap *heap;       /* NULL: the host's heap was not recorded */
    struct kp_symbols *symbols; /* NULL: no stack of machine code so far */
};
