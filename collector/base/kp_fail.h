// SPDX-License-Identifier: Apache-2.0
/*
 * kp_fail.h - failures on demand: what makes any call of ours fail in a test
 *
 * KPROF_TEST_FAIL=NAME:N[+][:ERRNO],...: the N-th call of that name fails with that errno (ENOSPC by default, 0 for the error that such
 * a call has in life), N+ all calls from the N-th on: mmap:3,fallocate:1+:28,open:2:1. Names are those of the table in fail.c. The
 * name `any` stands for all of them: any:K fails the K-th call of all, with the error of life.
 * in:FILE counts the calls in that file (mapped, of 4096 bytes at least; test/hosts/faults.py reads it), so all processes of a program
 * count together, also those that are killed.
 */
#ifndef KP_FAIL_H
#define KP_FAIL_H

/* Read KPROF_TEST_FAIL once; called by the constructor with the variable's value (NULL: nothing fails). */
void kp_fail_set(const char *spec);
int kp_fail_point(const char *name); /* 0, or -errno this call shall return. Async-signal-safe. */

#endif
