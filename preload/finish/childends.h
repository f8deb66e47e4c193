// SPDX-License-Identifier: Apache-2.0
/* childends.h - notes how child processes ended, as waitpid tells this process: what a launcher knows of its ranks */
#pragma once

#include "preload/hook/hook.h"

enum { KP_CHILDENDS_ROWS = 2 };
extern const struct kp_tap_row kp_childends_rows[KP_CHILDENDS_ROWS];
/* Writes HOST_PID.ends, where a child ended badly. It waits for the disk. */
void kp_childends_write(void);
