// SPDX-License-Identifier: Apache-2.0
/*
 * kp_otherlibc.h - lets a program with another C library than glibc start while this library is in LD_PRELOAD
 *
 * musl's loader honours LD_PRELOAD, and ends the program when the library needs a name that musl lacks. So each file
 * that uses a name of glibc alone declares it weak. A single strong reference would end the host. Without
 * glibc the library does nothing. scripts/check-abi.sh has the same list of names.
 */
#ifndef KP_OTHERLIBC_H
#define KP_OTHERLIBC_H

#include <stdbool.h>

#pragma weak gnu_get_libc_version
#pragma weak dlmopen
#pragma weak dlvsym
#pragma weak renameat2
#pragma weak __libc_single_threaded
#pragma weak __register_atfork

const char *gnu_get_libc_version(void);
/* pthread_atfork calls this. glibc links pthread_atfork statically, and strongly. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

static inline bool kp_libc_is_glibc(void) { return gnu_get_libc_version != 0; }

#endif
