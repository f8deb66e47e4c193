// SPDX-License-Identifier: Apache-2.0
/* ownspool.h - opens this process's own spool to read it */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/read/kp_read.h"

/* A reader of one window. The caller closes it. 0 or -errno; `why` then gets a text. May wait for the disk. */
int kp_ownspool_open(struct kp_reader **reader, uint32_t cycle, char *why, size_t why_bytes);
