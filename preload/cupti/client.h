// SPDX-License-Identifier: Apache-2.0
/*
 * client.h - the program as a client of CUPTI: its callbacks, its kinds, and the buffers that we fill for it
 */
#pragma once

#include "preload/cupti/library/cupti.h"

/* --- what the client asked for --- */

void kp_client_register(kp_cupti_request_fn request, kp_cupti_complete_fn complete);
bool kp_client_is_there(void); /* are its callbacks registered? */
/* The timestamp callback that the client registered; NULL: none. */
typedef uint64_t (*kp_client_clock_fn)(void);
kp_client_clock_fn kp_client_clock(void);
void kp_client_set_clock(kp_client_clock_fn clock);
void kp_client_forget(void); /* after cuptiFinalize nothing is registered or enabled */

/* A session lasts while the client has a kind enabled, from the first Enable to the last Disable. The client gets only
 * records of calls in a session. Times are CUPTI's own. */
void kp_client_begin(uint64_t now);
void kp_client_enable(uint32_t kind, uint64_t now);
bool kp_client_disable(uint32_t kind, uint64_t now); /* true: the session ended */
bool kp_client_has(uint32_t kind);
bool kp_client_is_active(void); /* is it in a session? */
bool kp_client_wants_any(void); /* is it in a session, or has it enabled single calls? */
void kp_client_set_call(bool is_driver, uint32_t cbid, bool enabled);
/* Did the client enable or disable this single call, and has no Enable or Disable of its kind overridden that? */
bool kp_client_chose_call(bool is_driver, uint32_t cbid);
bool kp_client_has_call(bool is_driver, uint32_t cbid); /* does it want this call, singly or by its kind? */
void kp_client_clock_changed(void);                     /* times of the running session cannot be compared any more */

/* The client does not get records of this thread's calls. Notes both ids that CUPTI may use for it; once a thread. */
void kp_client_hide_this_thread(void);

/* --- what the client gets --- */

/* Requests a buffer from the client. false: it gave none. */
bool kp_client_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
/* Passes the client a buffer of its own that CUPTI filled. may_have_more: first takes out, in place, the records that
 * the client did not ask for. */
void kp_client_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes,
                        bool may_have_more);
/* Copies the client's records from a buffer that is not its own. `now`: CUPTI's time; 0: not known. */
void kp_client_copy(const uint8_t *buffer, size_t valid_bytes, uint64_t now);
/* Requests a buffer unless there is one. Call it as a session begins, since Kineto flushes only if it gave a buffer. */
void kp_client_have_buffer(void);
/* Passes the client all buffers with copied records. Waits (bounded) for threads that are copying. */
void kp_client_hand_over(void);
uint64_t kp_client_take_dropped(void); /* records since the last call that found no buffer of the client */
