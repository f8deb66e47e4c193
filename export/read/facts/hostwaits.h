// SPDX-License-Identifier: Apache-2.0
/* hostwaits.h - which calls of the host wait for a device: by their names, and copies of memory that is not pinned */
#pragma once

#include <stdlib.h>

#include "export/read/tree/tree.h"

struct kp_hostwaits {
    uint8_t *of; /* a byte for each node */
};
void kp_hostwaits_find(struct kp_hostwaits *out, const struct kp_tree *tree);
static inline bool kp_hostwaits_is(const struct kp_hostwaits *waits, size_t node) { return waits->of[node]; }
static inline void kp_hostwaits_fini(struct kp_hostwaits *waits) { free(waits->of); }
