// SPDX-License-Identifier: Apache-2.0
/* trace_source.h - the traces behind the paths a user gives (input.c): a trace is itself, a folder its traces, a spool
 * what its cycles export to; and the text of one (trace_source.c) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "export/read/kineto/kineto.h"
#include "export/read/parse/kineto_parse.h"

struct kp_places;
struct kp_reader;
struct kp_input;

struct kp_trace_source {
    struct kp_input *input;
    char *path, *label; /* label: the path given, or the spool and its cycle */
    size_t cycle;       /* index of a spool's cycle */
    bool is_spool;
    bool is_verbatim; /* names keep their addresses, as torch's own texts have them */
};
struct kp_input {
    struct kp_trace_source *of;
    size_t count, capacity;
    const struct kp_places *places;
    struct kp_reader *reader; /* the spool that was read last, or NULL */
    const char *reader_path;
};

/* --- input.c --- */

/* 0, or -errno with a line on stderr. `places` names the frames of spools (kp_export.h), or is NULL. */
int kp_input_open(struct kp_input *input, const char *path, const struct kp_places *places);
void kp_input_close(struct kp_input *input);
/* One trace of a command's arguments; `several`: more than one will come. Returns an exit code. */
typedef int (*kp_input_fn)(void *context, const struct kp_trace_source *source, bool several);
/* Every trace behind n paths, in order; the worst exit code. One that cannot be read does not stop the others. Each has
 * a budget of its own. */
int kp_input_each(const char *command, char **paths, int n, const struct kp_places *places, kp_input_fn fn,
                  void *context);

static inline bool kp_input_has_end(const char *name, const char *end)
{
    const size_t bytes = strlen(name), wanted = strlen(end);
    return bytes >= wanted && strcmp(name + bytes - wanted, end) == 0;
}
/* Does a file of this name count as a trace, or as a spool, where a folder is given? */
bool kp_input_is_trace(const char *name);
bool kp_input_is_spool(const char *name);
/* Says how many spools of a folder are not read, where its traces are. */
void kp_input_mention_spools(const char *path);
/* Whether the file is a spool whose program runs on this machine. */
bool kp_input_is_running(const char *path);
/* The command has said of what it reads that its program still runs. */
void kp_input_running_told(void);

/* --- trace_source.c --- */

/* As kp_kineto_read, every event. `pieces`: NULL, or takes the trace in pieces. */
int kp_trace_source_read(const struct kp_trace_source *source, struct kp_kineto **out, struct kp_kineto_pieces *pieces,
                         char *why, size_t why_bytes);
/* The words behind it of a command that takes whole files alone. */
#define KP_TORN_CUT "; kprof slice --partial --from 0 cuts out what is whole"
/*
 * For a trace whose file ends early: ends it there (kp_kineto_end_torn), and adds to `why` its part: ": shown up to 4.2
 * ms, 4 whole steps (2 to 5), step 6 cut short". False: no event came before the end.
 */
bool kp_trace_source_take_torn(struct kp_kineto *trace, char *why, size_t bytes);
/* Reads a trace for a command, with `partial` also one whose file ends early, and says so. Calls of Python in which
 * nothing else lies may be left out unless `all_calls`. Returns an exit code. */
int kp_trace_source_show(const char *command, const struct kp_trace_source *source, bool partial, bool all_calls,
                         struct kp_kineto **out);
struct kp_texts
kp_trace_source_texts(const struct kp_trace_source *source); /* its text alone, from the beginning each time */
/* The text of its heap's profile: NAME.heap.zst of a trace, made from a spool. -ENOENT: there is none. */
struct kp_texts kp_trace_source_heap(const struct kp_trace_source *source);
