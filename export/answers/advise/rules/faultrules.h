// SPDX-License-Identifier: Apache-2.0
/* faultrules.h - page faults: the C library gives memory back and takes it again, or memory is read from a disk */
#pragma once

#include "export/answers/advise/parts/adviseparts.h"

/* Without a GPU, and after kp_rules_host(): nothing where steps compile. */
void kp_rules_faults(struct kp_costrules *rules);
