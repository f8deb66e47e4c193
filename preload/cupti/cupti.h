// SPDX-License-Identifier: Apache-2.0
/*
 * cupti.h - what the files of preload/cupti share: CUPTI as a source of events
 *
 *   cupti_find.c    libcuda in the link map, cuInit, the right libcupti        -> kp_cupti, the table of its functions
 *   cuda_inject.c   InitializeInjection: the driver's own word that cuInit is through
 *   probe.c         record sizes of the libcupti that is there                 -> kp_sizes
 *   decode.c        bytes of a buffer -> records of kp_device.h (pure)
 *   lane.c          a decoded buffer into the spool; losses, threads, names
 *   buffer.c        pool of buffers; the two callbacks that CUPTI has of us
 *   control.c       arm and disarm: every CUPTI call that changes something
 *   kinds.c         which kinds are enabled on our behalf
 *   filter.c        calls that CUPTI records one by one: ours and the program's
 *   limit.c         when CUPTI is off again before its window ends
 *   rules.c         what this CUPTI may be used for, by its version
 *   graphs.c        whether the program uses CUDA graphs
 *   turns.c         what the thread kprof-cuda does: it makes them
 *   helper.c        what is asked of that thread, and when a call takes too long
 *   watchdog.c      the brackets of each call into CUPTI
 *   cupti_state.c   the state, and notes
 *   cupti_source.c  what boot.c drives
 *   tee.c           the program's own use of CUPTI (torch.profiler) beside ours
 *   forward.c       buffers between CUPTI and the program
 *   aside.c         yield: until when CUPTI is the program's alone
 *   client.c        what of our buffers is the program's, and its own buffers that are filled with it
 *
 *   ABSENT -> DRIVER_LOADED -> CUINIT_OK -> CUPTI_FOUND <-> ARMED        SHARED: the program has CUPTI to itself
 *   (yield)
 *                  |               |          ^   |     |     |           DEAD: fork, exit
 *                  |               |          |   |     +-----+-> STALLED (a call into CUPTI takes too long) -+
 *                  |               |          |   |                                                           |
 *                  |               |          +---|-----------when it has returned, and all is disabled-------+
 *                  +---------------+--------------+--> REFUSED(reason)
 */
#ifndef KP_CUPTI_H
#define KP_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_config.h"

enum kp_cupti_state {
    KP_CUPTI_STATE_ABSENT,        /* no libcuda.so.1, or a stub */
    KP_CUPTI_STATE_DRIVER_LOADED, /* cuInit was not yet seen to succeed */
    KP_CUPTI_STATE_CUINIT_OK,
    KP_CUPTI_STATE_FOUND, /* the table of its functions is filled; we have no kind enabled */
    KP_CUPTI_STATE_ARMED,
    KP_CUPTI_STATE_REFUSED, /* final: CUPTI cannot be used; preload/cuda_hooks records what it can */
    KP_CUPTI_STATE_SHARED,  /* KPROF_CUPTI=yield, and the program profiles itself */
    /* a call of ours into CUPTI has not returned for long: it is not waited for, no other is made */
    KP_CUPTI_STATE_STALLED, /* one of our CUPTI calls has not returned for long: no other is made */
    KP_CUPTI_STATE_DEAD,    /* final: no CUPTI call any more */
};
enum kp_cupti_state kp_cupti_state(void); /* any thread */

/* --- cupti_find.c: the table --- */

typedef void (*kp_cupti_request_fn)(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void (*kp_cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);

struct kp_cupti {
#define KP_CUPTI(member, name, needed, result, arguments) result(*member) arguments;
#include "preload/cupti/cupti.def"
#undef KP_CUPTI
    _Atomic bool is_filled; /* the pointers above are set; while version is 0 no CUPTI call was made */
    uint32_t version;       /* cuptiGetVersion; read when arming for the first time */
    void *handle;
    char path[1024];
};
extern struct kp_cupti kp_cupti;
/*
 * Fills the table from the libcupti that is in the process, without a CUPTI call; with `may_open` also from one that
 * belongs to the program's CUDA but is not loaded yet. 0, -ENOENT (none), -ENOSYS (a needed function is missing). Any
 * thread, once.
 */
int kp_cupti_find(bool may_open);

/* --- buffer.c: the callbacks. While ARMED CUPTI has these two registered, with and without a client. --- */

void kp_buffer_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
void kp_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);
bool kp_buffer_is_ours(const uint8_t *buffer); /* cut from our pool */
void kp_buffer_quiet_anew(void); /* the program disabled its last kind: calls under way may ask once more */

/* --- lane.c --- */

/* Decodes a completed buffer, ours or the program's, into the spool. Any thread, also two at once; never allocates,
 * never calls CUPTI, leaves the buffer as it is. Does nothing when no window wants GPU records. */
void kp_lane_decode(const uint8_t *buffer, size_t valid_bytes);
/* Bytes of one record of this kind in the libcupti that is there; 0: the library does not know the kind. After
 * arming. */
uint32_t kp_record_bytes(uint32_t kind);

/* --- kinds.c: which kinds and calls we have enabled --- */

/* We have it enabled now: the program's Disable of it must not reach CUPTI. Never where we could not disable it later
 * ourselves. */
bool kp_cupti_wants(uint32_t kind);
bool kp_cupti_has_calls(
    void); /* we enabled the runtime's calls and they are not disabled, whether we can do that or not */
bool kp_cupti_wants_call(bool is_driver, uint32_t cbid); /* we have it recorded now, by its kind or singly */
/* The program registers callbacks: it gets records of queries as without us. Any thread. */
void kp_cupti_queries_again(void);
/* Records that CUPTI reported as dropped since the start of the process (its counter falls to 0 when read). */
uint64_t kp_cupti_dropped(void);
void kp_cupti_dropped_more(uint64_t records); /* the program read the counter: so many of ours may be among them */

/* --- called by tee.c, on any thread of the program, inside its CUPTI call --- */

void kp_cupti_clock_changing(void); /* another timestamp callback is about to be registered */
void kp_cupti_clock_changed(void); /* another timestamp callback was registered: a new domain of CUPTI's clock begins */
void kp_cupti_finalized(
    void); /* cuptiFinalize was called: nothing is enabled or registered any more; we arm again later */
/* yield: the program is about to use CUPTI, or does (is_session). Waits (bounded) until we have flushed, disabled and
 * left. `code`: of the library that does; NULL: as last time. */
void kp_cupti_stand_aside(bool is_session, const void *code);
/* yield: the program has disabled all its kinds, or after that has flushed: we arm again a while later, if a window
 * wants it. */
void kp_cupti_come_back(bool is_flushed);
/* This clock is what CUPTI has already: registered by us before anything was enabled, and the two read the same. */
bool kp_domain_is_counter(uint64_t (*clock)(void));

/* --- forward.c: buffers between CUPTI and the program --- */

/* kp_buffer_request and kp_buffer_complete are what CUPTI has registered from the first arming or the first client on,
 * also while nothing of ours is enabled. A buffer of the client's own for CUPTI, when we are not armed. false: one of
 * ours is used. */
bool kp_forward_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
/* A buffer came back and was decoded by us. The client's own (!is_ours) goes to it, without what it did not ask for. Of
 * ours what the client may see is copied into buffers that it gave: ours go back to the pool right after. */
void kp_forward_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes,
                         bool is_ours);
void kp_forward_arming(void);           /* from here on CUPTI gets only our buffers */
void kp_forward_disarmed(void);         /* from here on CUPTI may get the client's buffers */
bool kp_forward_was_armed(void);        /* ever: what CUPTI brings may be more than the client asked for */
void kp_forward_hide_this_thread(void); /* called by a helper thread: the program does not see its CUDA calls */
uint64_t kp_forward_timestamp(void);    /* CUPTI's own; 0: not to be had */

/* --- tee.c: the program as a client of CUPTI --- */

/* Called when the table is filled (also in windows of no recording): from here on its taps may forward to kp_cupti. */
int kp_tee_start(uint32_t config_cupti /* KP_CUPTI_TEE, ... */); /* 0 or -errno; -EBUSY: to be asked again */
int kp_tee_start_once(uint32_t config_cupti);                    /* that, unless it was done. 0 or -EBUSY; any thread */
/* On the thread that arms or disarms, before the first and after the last CUPTI call of it. Callbacks stay registered.
 * Attributes about buffers (zeroed, per thread) must be as they were found when disarmed: CUPTI may get the client's
 * buffers from then on. */
void kp_tee_arming(void);
void kp_tee_disarmed(void);

#endif
