// SPDX-License-Identifier: Apache-2.0
/*
 * client.h - the program as a client of CUPTI: its callbacks, what it asked for, the buffers it gave us to fill
 */
#ifndef KP_CUPTI_CLIENT_H
#define KP_CUPTI_CLIENT_H

#include "preload/cupti/cupti.h"

/* --- what it asked for --- */

void kp_client_register(kp_cupti_request_fn request, kp_cupti_complete_fn complete);
bool kp_client_is_there(void); /* its callbacks are registered */
/* The timestamp callback of its own that it registered; NULL: none. */
typedef uint64_t (*kp_client_clock_fn)(void);
kp_client_clock_fn kp_client_clock(void);
void kp_client_set_clock(kp_client_clock_fn clock);
void kp_client_forget(void); /* cuptiFinalize: nothing is registered or enabled any more */

/* A session is the time in which the client has a kind enabled: from the first Enable to the last Disable. Only what
 * was called in a session is the client's. Times are CUPTI's own. */
void kp_client_begin(uint64_t now);
void kp_client_enable(uint32_t kind, uint64_t now);
bool kp_client_disable(uint32_t kind, uint64_t now); /* true: this ended the session */
bool kp_client_has(uint32_t kind);
bool kp_client_is_active(void); /* in a session */
bool kp_client_wants_any(void); /* anything: in a session, or calls one by one */
void kp_client_set_call(bool is_driver, uint32_t cbid, bool enabled);
bool kp_client_chose_call(bool is_driver,
                          uint32_t cbid); /* it set this one, and its kind has not overridden that since */
bool kp_client_has_call(bool is_driver, uint32_t cbid); /* singly, or by its kind */
bool kp_client_has_calls(void);                         /* any, singly */
void kp_client_clock_changed(void);                     /* times of a running session cannot be compared any more */

/* Calls of this thread are ours and not the client's: under both names that CUPTI may have for it. Once a thread. */
void kp_client_hide_this_thread(void);

/* --- what it gets --- */

/* A buffer of the client's for CUPTI to fill directly. false: it gave none. */
bool kp_client_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
/* A buffer of the client's that CUPTI filled: takes out (in place) what the client did not ask for when
 * `may_have_more`. */
void kp_client_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes,
                        bool may_have_more);
/* Copies what the client may see of a buffer that is not its own. `now`: CUPTI's time, 0: not known. */
void kp_client_copy(const uint8_t *buffer, size_t valid_bytes, uint64_t now);
/* While we fill its buffers: one is asked for as soon as a session begins. Kineto flushes only when it has given a
 * buffer. */
void kp_client_have_buffer(void);
/* Hands over what was copied so far. Waits (bounded) for threads that are copying. */
void kp_client_hand_over(void);
uint64_t kp_client_take_dropped(void); /* records it should have had since the last call, but gave no buffer for */

#endif
