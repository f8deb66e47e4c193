// SPDX-License-Identifier: Apache-2.0
/*
 * kp_otherlibc.h - lets a program with another C library than glibc start while this library is in LD_PRELOAD
 *
 * musl's loader honours LD_PRELOAD, and ends the program when the library needs a name that musl lacks. So each file
 * that uses a name of glibc alone declares it weak. A single strong reference would end the host. The library does
 * nothing if there is no glibc. scripts/check-abi.sh has the same list of names.
 */
#pragma once

#include <stdbool.h>

#define KP_WEAK __attribute__((weak))

const char *gnu_get_libc_version(void) KP_WEAK;
void *dlmopen(long name_space, const char *path, int mode) KP_WEAK;
void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version) KP_WEAK;
extern char __libc_single_threaded KP_WEAK; /* glibc 2.32 and later */
/* pthread_atfork calls this. glibc links pthread_atfork statically, and strongly. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object) KP_WEAK;
extern void *__dso_handle __attribute__((visibility("hidden")));

static inline bool kp_libc_is_glibc(void) { return gnu_get_libc_version != 0; }
/* True: no other thread of the program runs. False: one may. */
static inline bool kp_libc_is_alone(void) { return &__libc_single_threaded != 0 && __libc_single_threaded; }
