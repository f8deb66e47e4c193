// SPDX-License-Identifier: Apache-2.0
/* plainname.h - names of functions as their language writes them */
#ifndef KP_PLAINNAME_H
#define KP_PLAINNAME_H

#include <stdbool.h>

bool kp_plainname_can(void); /* false: built without libiberty */
/* Of C++ and of Rust (both kinds), until the next is asked for; NULL: it is of neither, damaged, or longer than 64 KB
 * when written out. */
const char *kp_plainname(const char *mangled);
const char *kp_plainname_cpp(const char *mangled); /* of C++ alone */

#endif
