// SPDX-License-Identifier: Apache-2.0
/* usualsteps.h - which steps say what a step is made of, where few have most of all time (decisions/191) */
#pragma once

#include <stddef.h>

struct kp_usual_steps {
    double most_ns;        /* no usual step is longer */
    size_t left_out;       /* steps that are; 0: all are usual */
    double left_out_share; /* of all time, what those have */
};
/* `lengths`: of each step, ns; sorted by this. */
struct kp_usual_steps kp_usual_steps_of(double *lengths, size_t count);
