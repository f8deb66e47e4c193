// SPDX-License-Identifier: Apache-2.0
/* tests of kineto_keys.c: each key of the tables stands at its length */
#include "export/read/kineto/kineto_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const top[] = {"traceEvents",
                                  "baseTimeNanoseconds",
                                  "with_flops",
                                  "profile_memory",
                                  "record_shapes",
                                  "with_stack",
                                  "kprof",
                                  "host_name",
                                  "distributedInfo",
                                  "deviceProperties",
                                  "kprof_memory_before",
                                  "kprof_memory_freed",
                                  "kprof_memory_unkept"};
static const char *const event[] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"};
static const char *const args[] = {"External id",    "external id",  "Ev Idx",     "Sequence number", "Fwd thread id",
                                   "correlation",    "Input Dims",   "Input dims", "Concrete Inputs", "Input type",
                                   "Call stack",     "CallFrom",     "Bytes",      "Device Type",     "finished",
                                   "partial",        "further part", "Addr",       "Device Id",       "Total Allocated",
                                   "Total Reserved", "name",         "bytes",      "ns before"};

static void found(enum kp_kineto_place place, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = strlen(keys[i]);
        assert_int_not_equal(kp_kineto_key_find(place, keys[i], bytes), KEY_OTHER);
        assert_int_equal(kp_kineto_key_find(place, keys[i], bytes - 1), KEY_OTHER);
        assert_int_equal(kp_kineto_key_find(place, keys[i], bytes + 1), KEY_OTHER);
        assert_int_equal(kp_kineto_key_find(EVENTS, keys[i], bytes), KEY_OTHER);
    }
}

static void each_key_is_found_in_its_place(void **state)
{
    (void)state;
    found(TOP, top, sizeof top / sizeof *top);
    found(EVENT, event, sizeof event / sizeof *event);
    found(ARGS, args, sizeof args / sizeof *args);
    assert_int_equal(kp_kineto_key_find(EVENT, "ts", 2), KEY_TS);
    assert_int_equal(kp_kineto_key_find(TOP, "ts", 2), KEY_OTHER);
    assert_int_equal(kp_kineto_key_find(ARGS, "", 0), KEY_OTHER);
    assert_int_equal(kp_kineto_key_find(TOP, "a key that is longer than any", 29), KEY_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_key_is_found_in_its_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
