// SPDX-License-Identifier: Apache-2.0
/* closingline.h - the line at exit that says what was written, or why nothing was */
#pragma once

#include "collector/base/kp_config.h"
#include "preload/finish/finish.h"
#include "schedule/kp_schedule.h"

/* had_activity: did the host run any op? By the constructor. */
void kp_closingline_setup(const struct kp_config *config, const struct kp_schedule *schedule,
                          bool (*had_activity)(void));
/* Logs what was written. last: the path of the newest trace. */
void kp_closingline_say(const struct kp_finish_totals *total, const char *last);
/* Logs why there is no trace, if a trace was to be expected. */
void kp_closingline_say_missing(const struct kp_finish_totals *total);
/* The program sends itself a signal that ends it: logs what is kept. Async-signal-safe. */
void kp_closingline_say_signal(int number);
