// SPDX-License-Identifier: Apache-2.0
/* growthjumps.h - whether what grows does so in jumps that are equally far apart, as what a program keeps by plan */
#pragma once

#include <stddef.h>

/* Steps from one jump to the next; 0: it does not grow in such jumps. `steps` and `amounts`: of `count` looks, in
 * order. */
long kp_growthjumps_distance(const double *steps, const double *amounts, size_t count);
