// SPDX-License-Identifier: Apache-2.0
/* flamescript.h - the script inside a flame graph */
#ifndef KP_FLAMESCRIPT_H
#define KP_FLAMESCRIPT_H

#include <stdio.h>

void kp_flamescript_put(FILE *out);

#endif
