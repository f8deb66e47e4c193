// SPDX-License-Identifier: Apache-2.0
/*
 * hangwatch.h - watches for a program that stands (KPROF_HANG), on the thread kprof-control
 *
 * A program goes on while a step, a collective or kprof_alive() comes, while files are read or written, while its child
 * processes compute, while it has no core, or while it computes and its Python code goes on. Else it stands; where it
 * computes nevertheless it is said to be busy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kp_config;

void kp_hangwatch_setup(const struct kp_config *config);
bool kp_hangwatch_is_wanted(void);
/* Looks, if that is due, and writes where all threads stand if the program does. Returns in how many ms the next look
 * is due. On kprof-control. */
uint32_t kp_hangwatch_look(void);
bool kp_hangwatch_has_step(void); /* a program that is watched has ended a step; on kprof-control */
void kp_hangwatch_alive(void);    /* kprof_alive(): any thread */
void kp_hangwatch_forget(void);

/* --- the decision, which reads no clock and no file --- */
struct kp_hangwatch_sample {
    uint64_t done;      /* steps, collectives and calls of kprof_alive() so far: any number that grows with them */
    uint64_t bytes;     /* read and written */
    uint64_t own_ms;    /* processor time */
    uint64_t waited_ms; /* the main thread wanted a core, and had none */
    uint64_t child_ms;  /* both, of all processes that this one has started and that those have */
    uint64_t place;     /* of the main thread's Python code: another number where it is elsewhere */
    bool has_step;
};
struct kp_hangwatch_state { /* all zero: no look yet */
    struct kp_hangwatch_sample last;
    uint64_t looked_ms, since_ms, said_ms, own_since_ms;
    unsigned said;
    bool is_said;
};
enum kp_hangwatch_finding { KP_HANGWATCH_GOES_ON, KP_HANGWATCH_STANDS, KP_HANGWATCH_BUSY };
/* limit_ms: how long nothing may end; before the first step three times as long. every_ms: between two looks. */
enum kp_hangwatch_finding kp_hangwatch_turn(struct kp_hangwatch_state *w, const struct kp_hangwatch_sample *now,
                                            uint64_t now_ms, uint64_t limit_ms, uint64_t every_ms);
