// SPDX-License-Identifier: Apache-2.0
/*
 * kp_gate.h - the one word that every hook reads first
 *
 * Called by: every hook (hot, a relaxed load), boot.c and cycle code (store)
 * Owns:      a private page with MADV_WIPEONFORK, so a child process reads 0 (off) after fork and clone
 * Safe in:   signal handlers yes; after fork yes (reads 0)
 */
#pragma once

#include <stdint.h>

#include "collector/base/kp_atomic.h"

/* Low 32 bits: what hooks do. High 32 bits: the number of the cycle that is being recorded, from 1. */
enum {
    KP_GATE_ON = 1u << 0,      /* this process is profiled; 0 in a forked child */
    KP_GATE_WARM = 1u << 1,    /* warming up: do the work, keep nothing */
    KP_GATE_RECORD = 1u << 2,  /* active: keep records */
    KP_GATE_SHAPES = 1u << 3,  /* copy the inputs of ops */
    KP_GATE_STEPS = 1u << 4,   /* step marks are wanted: from start to exit */
    KP_GATE_STACKS = 1u << 5,  /* ops carry their Python call stack */
    KP_GATE_MODULES = 1u << 9, /* ops carry the TorchScript module they run in */
    KP_GATE_NATIVE = 1u << 7,  /* and their machine code stack */
    KP_GATE_LINES = 1u << 8,   /* ops that no recorded call of C surrounds carry the line that runs */
    KP_GATE_MEMORY = 1u << 6,  /* keep what torch's allocators do */
    KP_GATE_CHILD_PENDING =
        1u << 17,             /* a forked child: its first allocation or call begins its run (kp_run_saw_activity) */
    KP_GATE_CHILD = 1u << 16, /* a forked child that records: no GPU of its own */
};

extern _Atomic uint64_t *kp_gate_word; /* points to a zero word until kp_gate_init */

static inline uint64_t kp_gate_get(void) { return kp_load_acquire(kp_gate_word); }
static inline uint32_t kp_gate_cycle(uint64_t gate) { return (uint32_t)(gate >> 32); }
static inline uint64_t kp_gate_make(uint32_t cycle, uint32_t bits) { return (uint64_t)cycle << 32 | bits; }

/* Maps the wipe-on-fork page. 0 or -errno, and then the gate stays closed. Call it once, from the constructor. */
int kp_gate_init(void);
/* Publishes a new gate word. Hooks see it at their next call. */
void kp_gate_set(uint64_t gate);
