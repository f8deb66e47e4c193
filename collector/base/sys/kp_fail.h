// SPDX-License-Identifier: Apache-2.0
/*
 * kp_fail.h - makes a chosen call fail, for tests
 *
 * KPROF_TEST_FAIL=NAME:N[+][:ERRNO],...  The N-th call of that name fails with that errno; N+ means all calls from
 * the N-th on. Examples: mmap:3,fallocate:1+:28,open:2:1. The errno is ENOSPC unless given, and 0 picks the call's
 * usual error. The table in fail.c has the names. The name `any` stands for all of them: any:K fails the K-th call
 * with its usual error. in:FILE keeps the counts in that file, which must have 4096 bytes. All processes of a program
 * then count together, killed ones included. test/hosts/faults.py reads the file.
 */
#pragma once

#include <errno.h>

/* Takes the value of KPROF_TEST_FAIL (NULL: no call fails). The constructor calls it once. */
void kp_fail_set(const char *spec);
int kp_fail_point(const char *name); /* 0, or the -errno that the call must return. Async-signal-safe. */

/* The value of a call, or the -errno that a test chose in its place. */
#define KP_FAIL_VALUE(name, call)               \
    __extension__({                             \
        const long kp_rc = kp_fail_point(name); \
        kp_rc == 0 ? (long)(call) : kp_rc;      \
    })
/* The same of a call that returns -1 and sets errno. */
#define KP_FAIL_ERRNO(name, call) KP_FAIL_VALUE(name, kp_fail_errno((long)(call)))
static inline long kp_fail_errno(long rc) { return rc < 0 ? -errno : rc; }
