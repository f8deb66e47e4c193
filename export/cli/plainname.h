// SPDX-License-Identifier: Apache-2.0
/* plainname.h - names of functions as their language writes them */
#ifndef KP_PLAINNAME_H
#define KP_PLAINNAME_H

#include <stdbool.h>

bool kp_plainname_can(void); /* false: built without libiberty */
/* Of C++ and of Rust (both kinds), from malloc; NULL: it is of neither, or damaged. */
char *kp_plainname(const char *mangled);

#endif
