// SPDX-License-Identifier: Apache-2.0
/* kineto_keys.c - finds which key of a trace a text is */
#include "export/report/kineto_keys.h"

#include <stdint.h>
#include <string.h>

#define KEY_ROW(text, key)         \
    {                              \
        text, sizeof text - 1, key \
    }
struct key_row {
    const char *text;
    uint8_t bytes, key;
};
static const struct key_row top_keys[] = {
    KEY_ROW("traceEvents", KEY_EVENTS),
    KEY_ROW("baseTimeNanoseconds", KEY_BASE),
    KEY_ROW("with_flops", KEY_FLOPS),
    KEY_ROW("profile_memory", KEY_MEMORY),
    KEY_ROW("record_shapes", KEY_SHAPES),
    KEY_ROW("with_stack", KEY_STACKS),
    KEY_ROW("kprof", KEY_OURS),
    KEY_ROW("host_name", KEY_FACT),
    KEY_ROW("distributedInfo", KEY_FACT),
    KEY_ROW("deviceProperties", KEY_DEVICES),
    KEY_ROW("kprof_memory_before", KEY_BEFORE),
    KEY_ROW("kprof_memory_freed", KEY_FREED),
    KEY_ROW("kprof_memory_unkept", KEY_UNKEPT),
};
static const struct key_row event_keys[] = {
    KEY_ROW("ph", KEY_PH),   KEY_ROW("cat", KEY_CAT), KEY_ROW("name", KEY_NAME), KEY_ROW("pid", KEY_PID),
    KEY_ROW("tid", KEY_TID), KEY_ROW("ts", KEY_TS),   KEY_ROW("dur", KEY_DUR),   KEY_ROW("args", KEY_ARGS),
};
static const struct key_row args_keys[] = {
    KEY_ROW("External id", KEY_EXTERNAL),
    KEY_ROW("external id", KEY_EXTERNAL),
    KEY_ROW("Ev Idx", KEY_INDEX),
    KEY_ROW("Sequence number", KEY_SEQ),
    KEY_ROW("Fwd thread id", KEY_FWD),
    KEY_ROW("correlation", KEY_FWD),
    KEY_ROW("Input Dims", KEY_DIMS),
    KEY_ROW("Input dims", KEY_DIMS),
    KEY_ROW("Concrete Inputs", KEY_CONCRETE),
    KEY_ROW("Input type", KEY_TYPES),
    KEY_ROW("Call stack", KEY_STACK),
    KEY_ROW("CallFrom", KEY_CALLER),
    KEY_ROW("Bytes", KEY_BYTES),
    KEY_ROW("Device Type", KEY_DEVICE),
    KEY_ROW("finished", KEY_FINISHED),
    KEY_ROW("partial", KEY_PARTIAL),
    KEY_ROW("Addr", KEY_ADDRESS),
    KEY_ROW("Device Id", KEY_DEVICE_ID),
    KEY_ROW("Total Allocated", KEY_ALLOCATED),
    KEY_ROW("Total Reserved", KEY_RESERVED),
    KEY_ROW("name", KEY_LABEL),
};
#define KEY_LIST(rows)                          \
    {                                           \
        rows, rows + sizeof rows / sizeof *rows \
    }
static const struct key_row *const key_lists[DONE + 1][2] = {
    [TOP] = KEY_LIST(top_keys), [EVENT] = KEY_LIST(event_keys), [ARGS] = KEY_LIST(args_keys)};

enum kp_kineto_key kp_kineto_key_find(enum kp_kineto_place place, const char *text, size_t bytes)
{
    for (const struct key_row *row = key_lists[place][0]; row < key_lists[place][1]; row++)
        if (row->bytes == bytes && row->text[0] == text[0] && memcmp(row->text, text, bytes) == 0)
            return (enum kp_kineto_key)row->key;
    return KEY_OTHER;
}
