// SPDX-License-Identifier: Apache-2.0
/* test_threadcount.c - the number of threads in /proc/self/stat is lowered by ours, and by nothing else */
#include "preload/host/host.h"

#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

/* As the kernel writes it: the name may have anything in it. */
#define STAT(name, threads) \
    "4242 (" name ") S 1 4242 1 34816 4242 4194304 5 0 1 0 2 3 0 0 20 0 " threads " 0 1234 5678 90\n"

static void must_become(const char *before, uint32_t by, const char *after)
{
    char text[512];
    memset(text, '#', sizeof text);
    memcpy(text, before, strlen(before));
    const size_t bytes = kp_threadcount_lower(text, strlen(before), by);
    assert_int_equal(bytes, strlen(after));
    assert_memory_equal(text, after, bytes);
    assert_int_equal(text[strlen(before)], '#');
}

static void ours_are_left_out(void **state)
{
    (void)state;
    must_become(STAT("python", "2"), 1, STAT("python", "1"));
    must_become(STAT("a) S 1 2 3 (b", "12"), 3, STAT("a) S 1 2 3 (b", "9"));
    must_become(STAT(") ) )", "1000"), 1, STAT(") ) )", "999"));
}

static void what_cannot_be_is_left_as_it_is(void **state)
{
    (void)state;
    must_become(STAT("python", "2"), 2, STAT("python", "2"));
    must_become(STAT("python", "1"), 3, STAT("python", "1"));
    must_become(STAT("python", "-1"), 1, STAT("python", "-1"));
    must_become(STAT("python", "99999999999"), 1, STAT("python", "99999999999"));
    must_become("", 1, "");
    must_become("4242 (python", 1, "4242 (python");
    must_become("4242 (python) S 1 2 3", 1, "4242 (python) S 1 2 3");
    must_become("1 (p) S 1 4242 1 34816 4242 4194304 5 0 1 0 2 3 0 0 20 0 7", 1,
                "1 (p) S 1 4242 1 34816 4242 4194304 5 0 1 0 2 3 0 0 20 0 7"); /* cut off: more digits may follow */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ours_are_left_out),
        cmocka_unit_test(what_cannot_be_is_left_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
