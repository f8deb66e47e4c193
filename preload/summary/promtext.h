// SPDX-License-Identifier: Apache-2.0
/* promtext.h - the counts of a run in Prometheus' text format (KPROF_PROM) */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_stepline.h"

enum { KP_PROMTEXT_STEPS = 256 };

struct kp_promtext {
    uint64_t steps, dur_ns, had_us, waited_us, looked_us; /* since the begin */
    uint64_t faults_minor, faults_major, recorded;
    uint64_t last_step, last_end_ns, resident_kb;
    uint64_t ns[KP_PROMTEXT_STEPS], count; /* a ring of the last steps; ever */
    uint64_t traces, lost;                 /* written; records that were dropped */
};

void kp_promtext_add(struct kp_promtext *p, const struct kp_stepline *line);
/* Writes the metrics with labels of the host, rank and pid. Returns the length needed, as kp_fmt does. */
size_t kp_promtext_write(const struct kp_promtext *p, const struct kp_stephead *head, char *out, size_t bytes);
/*
 * Writes the file's name: `given` itself, or with ".rRANK" before its ending in a job of several ranks; in a folder
 * ("/" at the end) kprof_HOST_PID.prom.
 */
void kp_promtext_path(const char *given, const struct kp_stephead *head, char *out, size_t bytes);
