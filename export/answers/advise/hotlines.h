// SPDX-License-Identifier: Apache-2.0
/* hotlines.h - which lines of the program the steps, or a trace without any, spend most time in, beside any finding */
#pragma once

struct kp_costrules;

/* Sets in the advice `most`, the own time of ops by line, or by op where no lines were recorded: "most of a step, lines
 * with their backward: train.py:25 update 18 %, train.py:10 forward 12 %". A trace that has no steps has "most of the
 * recorded time in operators: ..". NULL: a GPU works, or nothing has a tenth of that. Once `elsewhere` is known: the
 * line that has most of that. The texts live as long as the trace. */
void kp_hotlines_tell(const struct kp_costrules *rules);
