// SPDX-License-Identifier: Apache-2.0
/* rules.h - the rules over parts of a step, the host, its threads and its memory */
#pragma once

#include "export/answers/advise/parts/costrules.h"
#include "export/answers/advise/stepkinds/longsteps.h"

/* hostrules.c: what to do against long collections of garbage. */
#define KP_COLLECTING_CHANGE                                                                                         \
    "Call gc.freeze() after start-up, which leaves out what lives then. Where the program calls gc.collect(): less " \
    "often; where it does not: gc.disable(), and gc.collect() every N steps."
void kp_rules_collecting_explicit(struct kp_finding *finding); /* the program itself collects: another change */
/* Adds where Python collected garbage in the steps that `of` has more than 0 of. */
void kp_rules_collecting_places(const struct kp_costrules *rules, const double *of, struct kp_costplaces *places);
void kp_rules_collecting(struct kp_costrules *rules); /* before kp_rules_steps(), which leaves them to it where told */
void kp_rules_pycalls(struct kp_costrules *rules);    /* pycallrules.c: before kp_rules_steps(), for the same reason */
void kp_rules_steps(struct kp_costrules *rules);      /* steprules.c */
void kp_rules_memory(struct kp_costrules *rules);     /* memoryrules.c */
void kp_rules_resident(struct kp_costrules *rules);   /* residentrule.c */
void kp_rules_open_files(struct kp_costrules *rules); /* residentrule.c */
void kp_rules_host(struct kp_costrules *rules);       /* hostrules.c */
void kp_rules_threads(struct kp_costrules *rules);    /* threadrules.c */
void kp_rules_each_step(struct kp_costrules *rules);  /* hostrules.c: what the host does in every step */
void kp_rules_no_sync(struct kp_costrules *rules);    /* nosyncrule.c: first of kp_rules_parts() */
void kp_rules_sampler(struct kp_costrules *rules);    /* loadsampler.c: before the rule of data-loading */
void kp_rules_parts(struct kp_costrules *rules);      /* partrules.c */
long kp_rules_threads_wanted(const struct kp_costrules *rules); /* of a host that has more; 0: it has not */
/* Is it an op that prepares input, or a function that does, outside of a DataLoader? */
bool kp_rules_is_input(const struct kp_costrules *rules, size_t node); /* hostrules.c */
/* launchplace.c: what to change where a GPU waits for launches, where more is known than the rule says. */
void kp_launchplace_tell(const struct kp_costrules *rules, struct kp_finding *out);

/* ---- longcauses.c: long steps for which nothing of the program is found ---- */

/* More than others on the machine may cause, in one step. The first may still warm up. */
bool kp_longcauses_is_notable(const struct kp_costrules *rules, const struct kp_longsteps *longer, size_t step);
/* Takes the steps that a busy machine may have made longer out of their groups, and tells them in a note. */
void kp_longcauses_note(struct kp_costrules *rules, struct kp_longsteps *longer);
/* For steps that get slower and slower, what to change, by the part of them that grows. `is_carried`: backward
 * alone. */
void kp_longcauses_drift(struct kp_cost_rule *out, enum kp_split_part part, bool is_gap, bool is_carried);

/* smallcomm.c: Of the finding of collectives, tells how many small ones a step has, and where. False: they are few, or
 * less than the bound, or their bytes are not known. */
bool kp_rules_small_comm(const struct kp_costrules *rules, double bound, struct kp_finding *finding);

/* faultrules.c: Without a GPU, and after kp_rules_host(): nothing where steps compile. */
void kp_rules_faults(struct kp_costrules *rules);
