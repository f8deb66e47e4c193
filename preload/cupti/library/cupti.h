// SPDX-License-Identifier: Apache-2.0
/*
 * cupti.h - what the files of preload/cupti share: CUPTI as a source of events
 *
 *   cupti_find.c    finds libcuda and the right libcupti, fills kp_cupti (the table of its functions)
 *   cuda_inject.c   InitializeInjection, which the driver calls inside cuInit
 *   probe.c         measures the record sizes of the loaded libcupti, fills kp_sizes
 *   decode.c        turns bytes of a buffer into records of kp_device.h (pure)
 *   lane.c          writes a decoded buffer into the spool; losses, threads, names
 *   buffer.c        the pool of buffers, and the two callbacks that CUPTI calls
 *   bufferqueue.c   completed buffers that kprof-cuda has not decoded yet
 *   control.c       arms and disarms: our CUPTI calls that change something
 *   enabled.c       the kinds that we have enabled
 *   filter.c        calls that CUPTI records one by one, ours and the program's
 *   limit.c         decides when CUPTI is disabled before its window ends
 *   rules.c         what this CUPTI may be used for, by its version
 *   graphs.c        whether the program uses CUDA graphs
 *   cuda_thread.c   what the thread kprof-cuda does
 *   helper.c        starts that thread, passes it requests, notices a call that takes too long
 *   watchdog.c      encloses each call into CUPTI
 *   cupti_state.c   the state, and notes
 *   cupti_source.c  the functions that preload/run calls
 *   tee.c           taps on the program's own CUPTI calls (torch.profiler)
 *   forward.c       passes buffers between CUPTI and the program
 *   aside.c         yield: until when the program has CUPTI to itself
 *   client.c        the program's session: which records it gets, in buffers of its own
 *   cupti_clock.c   CUPTI's clock beside ours
 *   devices.c       records of devices and contexts
 *   callnames.c     CUPTI's names of CUDA calls
 *   other_tool.c    finds the name of another tool that holds CUPTI
 *
 *   ABSENT -> DRIVER_LOADED -> CUINIT_OK -> FOUND <-> ARMED     SHARED: the program has CUPTI to itself (yield)
 *                  |               |         ^ |        |       DEAD: the host is in exit()
 *                  |               |         | +--------+-> STALLED (a call into CUPTI takes too long) --+
 *                  |               |         |                                                           |
 *                  |               |         +---- when the call has returned, and all is disabled ------+
 *                  +---------------+--------------> REFUSED(reason)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_config.h"

enum kp_cupti_state {
    KP_CUPTI_STATE_ABSENT,        /* no libcuda.so.1, or a stub */
    KP_CUPTI_STATE_DRIVER_LOADED, /* cuInit has not succeeded yet */
    KP_CUPTI_STATE_CUINIT_OK,
    KP_CUPTI_STATE_FOUND, /* kp_cupti is filled; we have no kind enabled */
    KP_CUPTI_STATE_ARMED,
    KP_CUPTI_STATE_REFUSED, /* final: CUPTI cannot be used; preload/cuda_hooks records what it can */
    KP_CUPTI_STATE_SHARED,  /* KPROF_CUPTI=yield, and the program profiles itself */
    KP_CUPTI_STATE_STALLED, /* a CUPTI call of this library has not returned for long; it makes no other */
    KP_CUPTI_STATE_DEAD,    /* final: no CUPTI call any more */
};
enum kp_cupti_state kp_cupti_state(void); /* any thread */

/* --- cupti_find.c: the table --- */

/* CUPTI's numbers of attributes: buffers are zeroed when CUPTI gets them; each thread has a buffer of its own. */
enum { KP_CUPTI_ATTR_ZEROED = 5, KP_CUPTI_ATTR_PER_THREAD = 9 };

typedef void (*kp_cupti_request_fn)(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void (*kp_cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);

struct kp_cupti {
#define KP_CUPTI(member, name, needed, result, arguments) result(*member) arguments;
#include "preload/cupti/library/cupti.def"
#undef KP_CUPTI
    _Atomic bool is_filled; /* the pointers above are set */
    uint32_t version;       /* of cuptiGetVersion, read at the first arming; 0: not yet */
    void *handle;
    char path[1024];
};
extern struct kp_cupti kp_cupti;
/*
 * Fills kp_cupti from the process's libcupti, without a CUPTI call. `may_open`: else loads the libcupti that belongs to
 * the program's CUDA. Any thread; nothing to do once it is filled. 0 or:
 *   -ENOENT  there is none
 *   -ENOSYS  it lacks a function that we need
 *   -EAGAIN  another thread is filling it
 */
int kp_cupti_find(bool may_open);

/* --- buffer.c: the two callbacks that CUPTI has while ARMED, with and without a client --- */

void kp_buffer_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
void kp_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);
bool kp_buffer_is_ours(const uint8_t *buffer); /* is it one of our pool? */
void kp_buffer_finalized(void); /* CUPTI gives back none that it has: no drain waits for it. Any thread */
void kp_buffer_quiet_anew(
    void); /* the program disabled its last kind; each call under way may request one more buffer */

/* --- lane.c --- */

/* Decodes a completed buffer, ours or the program's, into the spool, if a window wants GPU records. Any thread, several
 * at once. Never allocates, never calls CUPTI, does not change the buffer. may_wait: for the writer, where there is no
 * room, and for the mutex of META records. Else drops and counts, and leaves out devices and contexts. */
void kp_lane_decode(const uint8_t *buffer, size_t valid_bytes, bool may_wait);
/* Bytes of a record of this kind, 0 if the loaded libcupti does not know it. Only after an arming. */
uint32_t kp_record_bytes(uint32_t kind);

/* --- enabled.c: which kinds and calls we have enabled --- */

/* Do we have this kind enabled? Then the program's Disable must not reach CUPTI. false while we cannot call CUPTI,
 * since we could not disable it later. */
bool kp_cupti_wants(uint32_t kind);
bool kp_cupti_has_calls(void); /* have we enabled runtime calls? Says so even while we cannot disable them */
bool kp_cupti_wants_call(bool is_driver, uint32_t cbid); /* do we have it recorded now, by its kind or singly? */
/* Sets CUPTI's records of queries back to the default, for a program that registers callbacks. Any thread. */
void kp_cupti_queries_again(void);
/* Records that CUPTI has reported as dropped in this process. CUPTI's own counter falls to 0 when read. */
uint64_t kp_cupti_dropped(void);
void kp_cupti_dropped_more(uint64_t records); /* the program read this number from CUPTI's counter */

/* --- called by tee.c, on any host thread, inside the program's CUPTI call --- */

void kp_cupti_clock_changing(void); /* the program is about to register another timestamp callback */
void kp_cupti_clock_changed(void);  /* it has: a new domain of CUPTI's clock begins */
void kp_cupti_finalized(void);      /* after cuptiFinalize nothing is enabled or registered; we arm again later */
/* yield: the program is about to use CUPTI, or enables a kind (is_session). Waits (bounded) until we have flushed and
 * disabled. `code`: an address in the library that uses CUPTI; NULL: the same as last time. */
void kp_cupti_stand_aside(bool is_session, const void *code);
/* yield: the program disabled all its kinds, or flushed after that (is_flushed). If a window wants it, we arm again a
 * while later. */
void kp_cupti_come_back(bool is_flushed);
/* Does CUPTI use this clock already? That is so if we registered ours before the first Enable, and the two agree. */
bool kp_domain_is_counter(uint64_t (*clock)(void));
uint64_t kp_domain_time(void); /* the time by CUPTI's clock. Any thread, also in a callback of CUPTI */

/* --- forward.c: buffers between CUPTI and the program --- */

/* Requests a buffer from the client for CUPTI to fill, while we are not armed. false: use one of the pool. */
bool kp_forward_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
/* Call after decoding a completed buffer. Passes the client its own buffer (!is_ours), without records that it did not
 * ask for. From a buffer of the pool it copies the client's records into buffers that the client gave. */
void kp_forward_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes,
                         bool is_ours);
void kp_forward_arming(void);           /* CUPTI gets only our buffers from here on */
void kp_forward_disarmed(void);         /* CUPTI may get the client's buffers from here on */
bool kp_forward_was_armed(void);        /* were we ever? A buffer may hold more than the client asked for then */
void kp_forward_hide_this_thread(void); /* keeps this thread's CUDA calls out of what the client gets */
uint64_t kp_forward_timestamp(void);    /* CUPTI's time; 0: not available */

/* --- tee.c: the program as a client of CUPTI --- */

/* Installs the taps; kp_cupti must be filled. 0 or -errno; -EBUSY: call again later. */
int kp_tee_start(uint32_t config_cupti /* KP_CUPTI_TEE, ... */);
int kp_tee_start_once(uint32_t config_cupti); /* installs them if that was not done. 0 or -EBUSY; any thread */
/* On the thread kprof-cuda, around the CUPTI calls of an arming and a disarming. Callbacks stay registered. The buffer
 * attributes must have their old values before kp_tee_disarmed, since CUPTI may get the client's buffers after it. */
void kp_tee_arming(void);
void kp_tee_disarmed(void);
