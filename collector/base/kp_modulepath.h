// SPDX-License-Identifier: Apache-2.0
/* kp_modulepath.h - finds the file that is mapped at an address */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole path of the file that is mapped at this address. False: not known. Reads /proc/self/maps. */
bool kp_modulepath_find(uintptr_t at, char *out, size_t bytes);
