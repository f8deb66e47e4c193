// SPDX-License-Identifier: Apache-2.0
/* trigger.h - when the next steps are recorded: behind a long step, of a late rank, behind an allocation that failed */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_TRIGGER_STEPS = 32, KP_TRIGGER_PERIODS = 3, KP_TRIGGER_LOOKS = 2 };

struct kp_trigger {
    uint64_t over_ns;                         /* "step>2s"; 0: by the median */
    uint32_t times_milli;                     /* "step>1.5x": 1500 */
    bool is_of_oom, is_of_behind;             /* "oom", "behind" */
    uint64_t ns[KP_TRIGGER_STEPS];            /* a ring of the last steps in which nothing was recorded */
    uint64_t count;                           /* ever */
    uint64_t fired_ns;                        /* when it last did; 0: never */
    uint64_t long_at[KP_TRIGGER_PERIODS + 1]; /* the last long steps, the newest first */
    uint32_t longs, behind_looks;             /* behind_looks: one after the other that found it so */
};

/*
 * Reads rules with "," between them: "step>1.5x" (of the median) or "step>2s", "step>250ms"; "behind"; "oom". 0, or
 * -EINVAL with a short phrase in why.
 */
int kp_trigger_parse(const char *text, struct kp_trigger *out, char *why, size_t why_bytes);

enum kp_trigger_verdict {
    KP_TRIGGER_NO,
    KP_TRIGGER_LONG,     /* record the next steps */
    KP_TRIGGER_PERIODIC, /* long, as each so many steps: said once, not recorded */
    KP_TRIGGER_AGAIN     /* long, and one was recorded less than ten minutes ago, or it is periodic and was said */
};
/*
 * A step ended at `now_ns`, after `dur_ns`. By the median it is long beyond the factor, and beyond the upper quartile
 * by 1.5 times the distance of the quartiles, when 32 steps are known. *median_ns: of the steps before; 0: not known.
 * *period: of KP_TRIGGER_PERIODIC.
 */
enum kp_trigger_verdict kp_trigger_step(struct kp_trigger *t, uint64_t step, uint64_t dur_ns, uint64_t now_ns,
                                        uint64_t *median_ns, uint64_t *period);
bool kp_trigger_is_of_steps(const struct kp_trigger *t);
/*
 * Do other ranks wait for this one? Their shares of a step in which a collective was open, in thousandths: own, and of
 * `count` others, which are sorted. *median: theirs, the lower of two; it must be larger by a fifth of a step, in
 * KP_TRIGGER_LOOKS calls one after the other. True: record the next steps.
 */
bool kp_trigger_behind(struct kp_trigger *t, uint64_t own, uint64_t *others, size_t count, uint64_t now_ns,
                       uint64_t *median);
/* An allocation failed at `now_ns`: are the next steps recorded? */
bool kp_trigger_oom(struct kp_trigger *t, uint64_t now_ns);
