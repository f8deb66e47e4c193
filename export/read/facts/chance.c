// SPDX-License-Identifier: Apache-2.0
/* chance.c - how likely it is that so many of some hit */
#include "export/read/facts/chance.h"

#include <math.h>

double kp_chance_of(size_t hits, size_t count, double share)
{
    if (!hits || share >= 1) return 1;
    if (share <= 0) return 0;
    double chance = 0, log_of_k = (double)count * log1p(-share); /* that k of them do */
    for (size_t k = 0; k <= count; k++) {
        if (k >= hits) chance += exp(log_of_k);
        log_of_k += log((double)(count - k) / (double)(k + 1) * share / (1 - share));
    }
    return chance;
}
