// SPDX-License-Identifier: Apache-2.0
/* lostwork.c - what was launched and is not in the trace: then what the GPU does is not judged */
#include "export/answers/advise/parts/adviseparts.h"

#include "export/answers/advise/rules/rules.h"
#include "export/read/facts/unanswered.h"

const char *kp_lost_work(struct kp_costrules *x)
{
    struct kp_unanswered of = {0};
    char text[160];
    kp_unanswered_add(&of, x->tree);
    if (!kp_unanswered_much(&of)) return NULL;
    if (of.kernels && of.kernels_lost == of.kernels && of.graphs_lost == of.graphs)
        return kp_costrules_text(x,
                                 "none of the %zu launched kernels is in the trace, so the GPU's work is unknown. "
                                 "`kprof report` and `kprof doctor` say why",
                                 of.kernels);
    kp_unanswered_text(text, sizeof text, &of);
    return kp_costrules_text(x, "%s, so the GPU is busier than shown", text);
}
