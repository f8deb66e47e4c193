// SPDX-License-Identifier: Apache-2.0
/* progress.h - what a command shows during long work */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A line on a terminal's stderr during long work. Silent elsewhere, and in the first second. */
struct kp_progress {
    const char *what;
    uint64_t shown_ns;
    bool terminal, shown;
};
void kp_progress_begin(struct kp_progress *progress, const char *what);
int kp_progress_events(void *progress, uint64_t events);              /* fits kp_export_options.progress; always 0 */
void kp_progress_bytes(struct kp_progress *progress, uint64_t bytes); /* so much of its text was read */
void kp_progress_end(struct kp_progress *progress);
