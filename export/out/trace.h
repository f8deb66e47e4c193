// SPDX-License-Identifier: Apache-2.0
/* trace.h - a trace being written, shared by the files that write its parts */
#ifndef KP_EXPORT_TRACE_H
#define KP_EXPORT_TRACE_H

#include "export/kp_export.h"
#include "export/out/gz.h"
#include "export/out/json.h"
#include "export/out/round.h"
#include "export/out/sink.h"
#include "export/trace/fwdbwd.h"
#include "export/trace/pycalls.h"

struct kp_trace {
    struct kp_json json;
    struct kp_sink sink;
    struct kp_gz *gz;
    struct kp_extras *extras; /* NULL: none wanted */
    struct kp_reader *reader;
    const struct kp_export_options *options;
    struct kp_export_result *result;
    struct kp_cycle cycle;
    uint64_t base_ns, now_ns;
    uint64_t index, flow; /* next Ev Idx; last flow id */
    struct kp_round round; /* frames of the stack that is written */
    uint32_t frames;      /* of Python in it */
    uint64_t text_bytes;  /* made so far, before they are packed */
    uint32_t pid;
    bool begun;           /* the file exists, the head is written */
    char to_tid[64];      /* `","pid":N,"tid":` */
    size_t to_tid_bytes;
    struct kp_flows *flows;
    struct kp_blocks *blocks; /* torch_memory.h: from the first event of memory on */
    struct kp_gpu *gpu; /* NULL: the spool says nothing of GPUs */
    struct kp_pycalls *python;
    struct kp_named *named; /* NULL: no calls of functions by name */
    struct kp_heap *heap; /* NULL: the host's heap was not recorded */
    struct kp_symbols *symbols; /* NULL: no stack of machine code so far */
};

/* One M event on a row of any process. The argument is a string or, when text is NULL, a number. */
void kp_row_write(struct kp_trace *t, const char *name, uint64_t pid, uint64_t tid, const char *arg, const char *text, uint64_t number);
void kp_thread_row_write(struct kp_trace *t, uint32_t tid, const char *name);
void kp_head_write(struct kp_trace *t); /* all up to and with the metadata events */
void kp_tail_write(struct kp_trace *t); /* span, instants, traceName */
/* Members of KPROF_METADATA and of kprof_metadata(), each as `  "key": value,\n`. */
void kp_metadata_write(struct kp_trace *t);
void kp_event_write(struct kp_trace *t, const struct kp_event *e);

/* ts of a time: relative to the base, never negative. */
static inline void kp_ts_write(struct kp_trace *t, uint64_t ns)
{
    kp_json_us(&t->json, ns > t->base_ns ? ns - t->base_ns : 0);
}

#endif
