// SPDX-License-Identifier: Apache-2.0
/*
 * kp_read.h - door of the read side: a spool, whole or torn, as events in order
 *
 * Called by: the CLI, the export thread inside the host, tests. Not thread-safe per reader; many readers may live at
 * once. Bounded memory: the file is mapped, an index entry per chunk piece is kept. Recovery is the normal path.
 */
#ifndef KP_READ_H
#define KP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_format.h"

struct kp_reader;

struct kp_cycle {
    uint32_t number, steps;
    uint64_t begin_ns, end_ns, warm_begin_ns; /* ns since the Unix epoch */
    uint64_t first_step, last_step, lost;
    bool complete; /* closed by its writer; false: the process died in it, end_ns is the last event's end */
    bool exported, cut_short; /* its writer says: a trace was made of it; the program ended before its last step */
};

/* One event, valid during the callback only (the name and overload of an OP: as long as the reader). Times: ns since the Unix epoch, start <= end. */
struct kp_event {
    enum kp_kind kind;      /* OP or STEP */
    const char *name;       /* never NULL, NUL-terminated ("name lost" when it could not be kept) */
    const char *overload;   /* "" when none */
    uint64_t start_ns, end_ns;
    uint32_t tid, thread_no; /* kernel tid where it began */
    uint32_t rt_tid;        /* torch's logical id of the creating thread */
    uint8_t scope;          /* RecordScope: 0 function, 1 backward, 2 TorchScript, 7 user */
    uint8_t flags;          /* KP_OP_* of the record */
    int64_t seq;            /* -1: none */
    uint64_t fwd_tid;       /* torch's logical id, 0: none */
    uint64_t handle;
    uint64_t step;          /* STEP: number */
    const uint8_t *inputs;  /* kp_inputs.h; NULL: none recorded */
    uint32_t inputs_bytes, inputs_count;
};

/* Returning non-zero stops the walk and becomes its result. */
typedef int (*kp_event_fn)(void *context, const struct kp_event *event);
typedef int (*kp_thread_fn)(void *context, uint32_t tid, uint32_t thread_no, const char *name);

/* 0 or -errno: -EINVAL not a spool, -ENOTSUP a newer version, -ENODATA no chunk in it. `why` gets one clear line. */
int kp_reader_open(struct kp_reader **out, const char *path, char *why, size_t why_bytes);
void kp_reader_close(struct kp_reader *reader);
const struct kp_file_head *kp_reader_head(const struct kp_reader *reader);
const char *kp_reader_text(const struct kp_reader *reader, const char *key); /* value of a header line, or NULL */
/* The "key=value" lines of the header one by one: previous NULL gives the first; NULL when there is no more. */
const char *kp_reader_line(const struct kp_reader *reader, const char *previous);
size_t kp_reader_cycles(const struct kp_reader *reader);
int kp_reader_cycle(const struct kp_reader *reader, size_t index, struct kp_cycle *out);
/* Names of the threads with events in a cycle. */
int kp_reader_threads(struct kp_reader *reader, uint32_t cycle, kp_thread_fn fn, void *context);
/*
 * Every event of a cycle that started inside its window, threads merged by start time: so parents come before their
 * children, forward ops before the backward ops they caused. Torn records are skipped and counted.
 */
int kp_reader_events(struct kp_reader *reader, uint32_t cycle, kp_event_fn fn, void *context);
uint64_t kp_reader_skipped(const struct kp_reader *reader);

#endif
