// SPDX-License-Identifier: Apache-2.0
/* hotlines.h - which lines of the program the steps spend most time in, beside any finding */
#pragma once

struct kp_costrules;

/* "most of a step: train.py:25 update 28.100 ms (18.3 %), backward of train.py:10 forward ..": the own time of ops, by
 * line. NULL: a GPU works, no lines were recorded, or no line has a tenth of a step. The text lives as long as the
 * trace. */
const char *kp_hotlines_text(const struct kp_costrules *rules);
