// SPDX-License-Identifier: Apache-2.0
/* sample.c - numbers that are gathered one by one, for a quantile of them */
#include "export/read/store/sample.h"

#include <stdlib.h>

#include "export/read/store/qsort.h"
#include "export/read/store/stringtable.h"

void kp_sample_add(struct kp_sample *s, double value) { *KP_KINETO_NEXT(s->of, s->count, s->capacity) = value; }

double kp_sample_end(struct kp_sample *s, double share)
{
    const double value = kp_quantile(s->of, s->count, share);
    free(s->of);
    *s = (struct kp_sample){0};
    return value;
}
