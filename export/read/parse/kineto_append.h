// SPDX-License-Identifier: Apache-2.0
/* kineto_append.h - puts a trace behind another of the same process */
#pragma once

#include "export/read/kineto/kineto.h"

/* Adds what another trace of the process has, without args. The head's facts stay those of `to`. */
void kp_kineto_append(struct kp_kineto *to, const struct kp_kineto *from);
