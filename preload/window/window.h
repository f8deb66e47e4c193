// SPDX-License-Identifier: Apache-2.0
/*
 * window.h - windows: opened and closed at steps
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collector/base/kp_config.h"
#include "preload/source.h"
#include "schedule/kp_schedule.h"

/* A window, from its opening to its export. */
struct kp_window {
    uint32_t number;                 /* cycle number in the spool, from 1 */
    uint64_t warm_begin, begin, end; /* ticks; begin is 0 during warm-up */
    uint64_t first_step, steps;
    uint64_t lost;              /* records lost in it; while it is open, kp_loss_total() at its begin */
    uint64_t wish;              /* the id of the wish that opened it, or 0 */
    enum kp_step_source source; /* of its steps */
    /* It makes no trace: its phase ended within its first step, and other steps came before, or it was dropped. */
    bool is_void;
    bool cut;      /* closed by exit, not by its schedule or kprof_stop */
    bool has_part; /* then: of a step that exit cut short, behind `steps` whole ones */
};

/* --- window.c --- */
/* Called once by the constructor. */
void kp_window_setup(const struct kp_config *config, const struct kp_schedule *schedule,
                     const struct kp_source *const *sources);
/* Called when a source has attached (or the API is used): enters the schedule's step 0, or sets the source's mode.
 * Thread-safe. may_wait: false inside dlopen, cuInit or NVTX initialisation, where other threads (perhaps with the GIL)
 * may wait for this one. */
void kp_window_begin_run(bool may_wait);
struct kp_thread;
/* Called at the end of a step, on a thread inside its hook (thread->inside is set). */
void kp_window_step(struct kp_thread *thread, uint64_t now_ticks);
/*
 * The program enters or leaves a phase of KPROF_PHASES. Set: by its name; KP_PHASE_NONE takes that back. Begin and end:
 * one that was found, inside the last one. Not hot. The thread is as in kp_window_step; the caller keeps errno.
 */
void kp_window_phase_set(struct kp_thread *thread, uint32_t phase);
void kp_window_phase_begin(struct kp_thread *thread, uint32_t phase, uint32_t *depth);
void kp_window_phase_end(struct kp_thread *thread, uint32_t depth);
/* kprof_start(): records from now on whatever the schedule says. 0 or -errno; -EACCES: see kp_run_is_left_out. */
int kp_window_start(void);
/* kprof_stop(): ends the window; the schedule goes on, but skips its remaining active steps. 0 or -EALREADY. */
int kp_window_stop(void);
struct kp_window_wish {
    enum { KP_WISH_NEXT, KP_WISH_AT, KP_WISH_NOW } when; /* with the next step, with step `at`, at once */
    uint64_t at, steps;                                  /* steps 0: until kp_window_stop */
    const char *phase;                                   /* in which the steps count; NULL: the present one */
    uint64_t id;                                         /* not 0: its window is closed only after kp_window_decide */
};
/*
 * Asks for a window. The step before it warms up, if it begins after this call. kp_window_stop takes the wish back.
 * *begins: its first step. 0, -EALREADY (one is open, or KPROF_SCHEDULE has one with that step), -EBUSY (one is asked
 * for already), -ERANGE (the step has begun), -EAGAIN (another phase), -EIO (no spool), -EACCES, -ESHUTDOWN.
 */
int kp_window_ask(const struct kp_window_wish *wish, uint64_t *begins);
/* Whether the window of a wish makes a trace. False also takes back a wish whose window has not begun. */
void kp_window_decide(uint64_t id, bool is_kept);
/* kprof_toggle(): 0, -EINVAL (not of KPROF_ACTIVITIES), -ESHUTDOWN. */
int kp_window_toggle(uint32_t activities, bool on);
struct kp_window_state {
    const char *state; /* "waiting", "asked for", "warming up", "recording", "over" */
    uint32_t number;   /* of the open window, or 0 */
    uint64_t asked_at; /* the step at which the window begins that was asked for, or 0 */
    uint64_t step, lost;
    const char *phase; /* "" for none */
};
void kp_window_look(struct kp_window_state *out);
/* At exit: closes the open window and records no more. False: the lock could not be taken; then change no window. */
bool kp_window_end_run(void);
/* Takes the lock, so that no thread is in a step (and in torch's callback list) while the process forks. */
bool kp_window_before_fork(void);
void kp_window_after_fork(void); /* only after true */
/* In a child that shall record: resets the windows. Inside fork, with no other thread. */
void kp_window_forget(const struct kp_schedule *schedule, const struct kp_source *const *sources);
/* Keeps the number of the recording window in *word from now on; 0: none. Any thread, not at a step. */
void kp_window_show(_Atomic uint32_t *word);
bool kp_window_marks_steps(void); /* steps have ranges of their own (ProfilerStep#) */
bool kp_window_ever_recorded(void);
/* Whether the schedule is over: no window is open or waits to be closed, and only kprof_start can open another. */
bool kp_window_schedule_is_over(void);
/*
 * Takes the oldest ended window, if its sources are drained; the caller then owns it. At exit it does not wait for
 * sources. false: there is none. One thread at a time.
 */
bool kp_window_take_drained(struct kp_window *out, bool at_exit);
uint64_t kp_window_skipped(void); /* windows not recorded because too many waited for the exporter */
