// SPDX-License-Identifier: Apache-2.0
/* kineto_keys.h - the places of a trace that the parser reads, and the keys that it knows there */
#pragma once

#include <stddef.h>

enum kp_kineto_place { OUTSIDE, TOP, FACTS, EVENTS, EVENT, ARGS, DIMS, CONCRETE, TYPES, DEVICES, DONE };

enum kp_kineto_key {
    KEY_OTHER,
    KEY_EVENTS,
    KEY_BASE,
    KEY_FLOPS,
    KEY_MEMORY,
    KEY_SHAPES,
    KEY_STACKS,
    KEY_OURS,
    KEY_FACT,
    KEY_DEVICES,
    KEY_LABEL,
    KEY_BEFORE,
    KEY_FREED,
    KEY_UNKEPT,
    KEY_PH,
    KEY_CAT,
    KEY_NAME,
    KEY_PID,
    KEY_TID,
    KEY_TS,
    KEY_DUR,
    KEY_ARGS,
    KEY_EXTERNAL,
    KEY_INDEX,
    KEY_SEQ,
    KEY_FWD,
    KEY_DIMS,
    KEY_CONCRETE,
    KEY_TYPES,
    KEY_STACK,
    KEY_HIERARCHY,
    KEY_MODULE,
    KEY_CALLER,
    KEY_BYTES,
    KEY_MOVED,
    KEY_DEVICE,
    KEY_FINISHED,
    KEY_PARTIAL,
    KEY_FURTHER,
    KEY_NS_BEFORE,
    KEY_ADDRESS,
    KEY_DEVICE_ID,
    KEY_ALLOCATED,
    KEY_RESERVED,
};

enum kp_kineto_key kp_kineto_key_find(enum kp_kineto_place place, const char *text, size_t bytes);
