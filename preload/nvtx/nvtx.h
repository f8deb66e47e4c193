// SPDX-License-Identifier: Apache-2.0
/*
 * nvtx.h - the binary interface of NVTX 3, and what this room's files share
 *
 * NVTX 3 is compiled into each library that uses it. At a library's first NVTX call its copy loads the tool that
 * NVTX_INJECTION64_PATH names. It calls the tool's InitializeInjectionNvtx2 with a function that returns tables, and
 * the tool stores its handlers there. Functions without a handler become empty. The layouts below are NVTX's;
 * test/e2e/test_nvtx.py compares them with the real header where there is one.
 */
#pragma once

#include <stdint.h>
#include <stddef.h>
#include <wchar.h>

#include "collector/record/kp_record.h"

/* --- NVTX's types --- */

typedef void (*kp_nvtx_fn)(void);
enum { KP_NVTX_EXPORT_CALLBACKS = 1 }; /* number of the export table with table_get */
enum { KP_NVTX_MODULE_CORE = 1, KP_NVTX_MODULE_CORE2 = 5 };
struct kp_nvtx_callbacks {
    size_t bytes;
    /* *table: pointers to the variables that hold handlers, indexed by the numbers below. Returns 1 if it exists. */
    int (*table_get)(int module, kp_nvtx_fn ***table, unsigned *count);
};
typedef const void *(*kp_nvtx_export_fn)(uint32_t table);

enum { /* KP_NVTX_MODULE_CORE */
       KP_NVTX_MARK_EX = 1,
       KP_NVTX_MARK_A,
       KP_NVTX_MARK_W,
       KP_NVTX_START_EX,
       KP_NVTX_START_A,
       KP_NVTX_START_W,
       KP_NVTX_RANGE_END,
       KP_NVTX_PUSH_EX,
       KP_NVTX_PUSH_A,
       KP_NVTX_PUSH_W,
       KP_NVTX_POP
};
enum { /* KP_NVTX_MODULE_CORE2: with a domain */
       KP_NVTX_DOMAIN_MARK_EX = 1,
       KP_NVTX_DOMAIN_START_EX,
       KP_NVTX_DOMAIN_RANGE_END,
       KP_NVTX_DOMAIN_PUSH_EX,
       KP_NVTX_DOMAIN_POP,
       KP_NVTX_DOMAIN_STRING_A = 10,
       KP_NVTX_DOMAIN_STRING_W,
       KP_NVTX_DOMAIN_CREATE_A,
       KP_NVTX_DOMAIN_CREATE_W
};

enum { KP_NVTX_TEXT_NONE = 0, KP_NVTX_TEXT_ASCII = 1, KP_NVTX_TEXT_WIDE = 2, KP_NVTX_TEXT_REGISTERED = 3 };
struct kp_nvtx_event { /* nvtxEventAttributes_t, version 2 and up */
    uint16_t version, bytes;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};
enum { KP_NVTX_NO_TRACKING = -2 }; /* push and pop return it if there is no tool */

/* --- nvtx_text.c: the texts of NVTX calls, as name ids --- */

/* A registered string or a domain; its address is the host's handle. Never freed; one for each text. */
struct kp_nvtx_text {
    uint64_t hash;
    _Atomic uint32_t id; /* name id in the spool; 0: none yet */
    uint32_t bytes;
    char text[];
};
struct kp_nvtx_message {
    int32_t type; /* KP_NVTX_TEXT_* */
    const void *at;
};
struct kp_nvtx_message kp_nvtx_event_message(const struct kp_nvtx_event *event);
/* Name ids, from inside a hook. 0: no text, or no room for it (counted). */
uint32_t kp_nvtx_message_name(struct kp_thread *t, struct kp_nvtx_message message);
uint32_t kp_nvtx_text_name(struct kp_thread *t, struct kp_nvtx_text *text);
void kp_nvtx_texts_forget(void); /* clears the ids, for a new spool */
/* Registers a text, on any thread, not inside a hook. NULL: no room; to NVTX, NULL is "no text" or "default domain". */
struct kp_nvtx_text *kp_nvtx_text_keep(struct kp_nvtx_message message);

/* --- ranges.c: the handlers --- */

struct kp_nvtx_handler {
    uint32_t module, number;
    kp_nvtx_fn fn;
};
extern const struct kp_nvtx_handler kp_nvtx_handlers[];
extern const size_t kp_nvtx_handler_count;
