// SPDX-License-Identifier: Apache-2.0
/*
 * kp_atomic.h - the only way this project touches shared words
 *
 * Each wrapper names its memory order. A release has a comment "pairs with: file.c:function".
 * The matching acquire names the release.
 */
#pragma once

#include <stdatomic.h>

#define kp_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define kp_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define kp_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define kp_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define kp_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define kp_add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define kp_exchange_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define kp_exchange_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
/* true: *p was *expected and is now v. False: *expected now has the value of *p */
#define kp_cas_acq_rel(p, expected, v) \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel, memory_order_acquire)
/* orders the guard's set against the hook body for a signal handler on the same thread */
#define kp_signal_fence() atomic_signal_fence(memory_order_seq_cst)
