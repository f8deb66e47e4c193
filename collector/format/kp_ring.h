// SPDX-License-Identifier: Apache-2.0
/*
 * kp_ring.h - how writer and reader of a ring (KPROF_RING) agree on its begin
 *
 * A ring is the last seconds in which something was recorded. Its time is looked at in parts: one in which no thread
 * recorded is not counted.
 */
#pragma once

#define KP_RING_PARTS 16u
