// SPDX-License-Identifier: Apache-2.0
/* nameguess.h - of the names in a trace, the one that a name which is not there may mean */
#pragma once

#include "export/read/kineto/kineto.h"

enum { KP_NAMEGUESS_MOST = 128 };

struct kp_nameguess {
    const char *word;
    bool is_whole;                /* of a Python call its whole name is given, as "train.py(12): train" */
    char best[KP_NAMEGUESS_MOST]; /* "": none yet */
    unsigned rank;                /* of the best: lower is nearer */
    uint8_t *seen;                /* by id of a name */
    size_t capacity;
};

/* A pattern (with a `*`, `?` or `[`) gets no guess. */
void kp_nameguess_begin(struct kp_nameguess *guess, const char *word);
/* Considers a name of the trace: each once. For a Python call that is its function, or its module. */
void kp_nameguess_see(struct kp_nameguess *guess, const struct kp_kineto *trace, uint32_t name);
/* Writes " (did you mean NAME?)", or "". Returns `out`. */
const char *kp_nameguess_text(const struct kp_nameguess *guess, char *out, size_t bytes);
void kp_nameguess_fini(struct kp_nameguess *guess);
