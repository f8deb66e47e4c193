// SPDX-License-Identifier: Apache-2.0
/* kp_modulepath.h - finds the file that is mapped at an address, and where another process has it */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole path of the file that is mapped at this address. False: not known. Reads /proc/self/maps. */
bool kp_modulepath_find(uintptr_t at, char *out, size_t bytes);
/* The address at which another process has the byte of a file that is mapped at `at` here. 0: it has it not. */
uintptr_t kp_modulepath_there(uint32_t pid, uintptr_t at);
