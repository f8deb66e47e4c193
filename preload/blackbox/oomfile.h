// SPDX-License-Identifier: Apache-2.0
/* oomfile.h - what is live when an allocation of torch fails, as a file (KPROF_ON_OOM) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kp_config;
struct kp_run_oom;

void kp_oomfile_setup(const struct kp_config *config);
/* Makes the text on the thread that failed. False: there is no file to write; else kp_oomfile_turn writes it. */
bool kp_oomfile_make(const struct kp_run_oom *oom);
void kp_oomfile_wait(void);   /* until it is written, 100 ms at most */
bool kp_oomfile_turn(void);   /* writes a file that waits for it; was there one? A helper thread */
void kp_oomfile_forget(void); /* in a forked child */

/* ---- oomwords.c: an allocation that failed in one sentence: what was asked for, what is live, whose most is ---- */

struct kp_callsite;

enum { KP_OOMWORDS_BYTES = 768 };
struct kp_oomwords {
    const char *device; /* "cuda:0" */
    uint64_t asked, live, most;
    uint64_t limit, cached;                 /* 0: not known */
    const struct kp_callsite *at, *most_at; /* NULL: not known */
};
/* "cuda:0 ran out of 4.00 GiB: 1.00 GiB asked for at k.py:6 huge, 3.40 GiB live, 2.50 GiB of it from k.py:4 work" */
void kp_oomwords_put(char out[KP_OOMWORDS_BYTES], const struct kp_oomwords *words);
