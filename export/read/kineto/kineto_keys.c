// SPDX-License-Identifier: Apache-2.0
/* kineto_keys.c - finds which key of a trace a text is */
#include "export/read/kineto/kineto_keys.h"

#include <stdbool.h>
#include <string.h>

/* The keys of a place by their length: few are as long as another, so most texts are compared with one or none. */
enum { LONGEST_KEY = 19, KEYS_OF_A_LENGTH = 5 };
struct key_row {
    const char *text;
    enum kp_kineto_key key;
};
typedef const struct key_row key_table[LONGEST_KEY + 1][KEYS_OF_A_LENGTH];

static key_table top_keys = {
    [5] = {{"kprof", KEY_OURS}},
    [9] = {{"host_name", KEY_FACT}},
    [10] = {{"with_flops", KEY_FLOPS}, {"with_stack", KEY_STACKS}},
    [11] = {{"traceEvents", KEY_EVENTS}},
    [13] = {{"record_shapes", KEY_SHAPES}},
    [14] = {{"profile_memory", KEY_MEMORY}},
    [15] = {{"distributedInfo", KEY_FACT}},
    [16] = {{"deviceProperties", KEY_DEVICES}},
    [18] = {{"kprof_memory_freed", KEY_FREED}},
    [19] = {{"baseTimeNanoseconds", KEY_BASE},
            {"kprof_memory_before", KEY_BEFORE},
            {"kprof_memory_unkept", KEY_UNKEPT}},
};
static key_table event_keys = {
    [2] = {{"ph", KEY_PH}, {"ts", KEY_TS}},
    [3] = {{"cat", KEY_CAT}, {"pid", KEY_PID}, {"tid", KEY_TID}, {"dur", KEY_DUR}},
    [4] = {{"name", KEY_NAME}, {"args", KEY_ARGS}},
};
static key_table args_keys = {
    [4] = {{"Addr", KEY_ADDRESS}, {"name", KEY_LABEL}, {"step", KEY_PARTIAL}},
    [5] = {{"Bytes", KEY_BYTES}, {"bytes", KEY_MOVED}},
    [6] = {{"Ev Idx", KEY_INDEX}},
    [7] = {{"partial", KEY_PARTIAL}},
    [8] = {{"CallFrom", KEY_CALLER}, {"finished", KEY_FINISHED}},
    [9] = {{"Device Id", KEY_DEVICE_ID}, {"ns before", KEY_NS_BEFORE}},
    [10] = {{"Input Dims", KEY_DIMS}, {"Input type", KEY_TYPES}, {"Call stack", KEY_STACK}, {"Input dims", KEY_DIMS}},
    [11] = {{"External id", KEY_EXTERNAL},
            {"Device Type", KEY_DEVICE},
            {"correlation", KEY_FWD},
            {"external id", KEY_EXTERNAL}},
    [12] = {{"further part", KEY_FURTHER}},
    [13] = {{"Fwd thread id", KEY_FWD}},
    [14] = {{"Total Reserved", KEY_RESERVED}},
    [15] = {{"Sequence number", KEY_SEQ}, {"Concrete Inputs", KEY_CONCRETE}, {"Total Allocated", KEY_ALLOCATED}},
    [16] = {{"Module Hierarchy", KEY_HIERARCHY}},
    [18] = {{"Python module name", KEY_MODULE}},
};
static key_table *const tables[DONE + 1] = {[TOP] = &top_keys, [EVENT] = &event_keys, [ARGS] = &args_keys};

/* memcmp() would take half of the time of a search. Two words of a text may have bytes in common. */
static inline bool is_same(const char *a, const char *b, size_t bytes)
{
    if (bytes >= 8)
        return !memcmp(a, b, 8) && !memcmp(a + bytes - 8, b + bytes - 8, 8) &&
               (bytes <= 16 || !memcmp(a + 8, b + 8, 8));
    if (bytes >= 4) return !memcmp(a, b, 4) && !memcmp(a + bytes - 4, b + bytes - 4, 4);
    return bytes < 2 || (!memcmp(a, b, 2) && a[bytes - 1] == b[bytes - 1]);
}

enum kp_kineto_key kp_kineto_key_find(enum kp_kineto_place place, const char *text, size_t bytes)
{
    if (!tables[place] || bytes > LONGEST_KEY) return KEY_OTHER;
    for (const struct key_row *row = (*tables[place])[bytes]; row->text; row++)
        if (row->text[0] == text[0] && is_same(row->text, text, bytes)) return row->key;
    return KEY_OTHER;
}
