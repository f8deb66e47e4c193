// SPDX-License-Identifier: Apache-2.0
/*
 * kp_hot.h - keeps what each hook runs and reads close together, and the rest away from it
 *
 * Between two ops a program uses the caches for itself. So a hook's cost is the cache lines and pages it touches, its
 * own and those that it pushes out (decisions/074).
 */
#pragma once

#define KP_LINE 64                              /* cache line: words that different threads write do not share one */
#define KP_HOT __attribute__((hot))             /* a function: beside the other hot ones */
#define KP_COLD __attribute__((cold, noinline)) /* a function: its calls are laid aside, too */
#define KP_HOT_DATA __attribute__((section("kp_hot"), aligned(8))) /* a word: in the cache line of such words */
#define KP_HOT_TABLE __attribute__((section("kp_hot_table")))      /* a table: in the same page, behind such words */

/* The path that most ops take runs straight on: the processor forgets taken branches as it forgets lines. */
#define KP_LIKELY(x) __builtin_expect(!!(x), 1)
#define KP_UNLIKELY(x) __builtin_expect(!!(x), 0)
