// SPDX-License-Identifier: Apache-2.0
/* test_oomwords.c - one sentence of an allocation that failed */
#include "preload/blackbox/oomfile.h"

#include <string.h>

#include "preload/python_bridge.h"
#include "test/support/support.h"

static struct kp_callsite asked_at = {.line = 31, .file = "/w/train.py", .function = "main", .category = ""};
static struct kp_callsite most_at = {
    .line = 12, .file = "/w/model.py", .function = "forward", .category = "activations"};

static const char *said(const struct kp_oomwords *words)
{
    static char out[KP_OOMWORDS_BYTES];
    kp_oomwords_put(out, words);
    return out;
}

static void it_says_what_was_asked_for_and_what_holds_most(void **state)
{
    (void)state;
    assert_string_equal(
        said(&(struct kp_oomwords){.device = "cuda:0",
                                   .asked = 1 << 20,
                                   .live = 6291456,
                                   .most = 4194304,
                                   .limit = 9437184,
                                   .cached = 2097151,
                                   .at = &asked_at,
                                   .most_at = &most_at}),
        "cuda:0 ran out of 9.00 MiB: 1.00 MiB asked for at train.py:31 main, 6.00 MiB live, 4.00 MiB of "
        "it from model.py:12 forward (activations), 2.00 MiB cached in parts that do not fit");
}

#define UNKNOWN "asked for at a place that is not known"

static void what_is_not_known_is_left_out(void **state)
{
    (void)state;
    assert_string_equal(said(&(struct kp_oomwords){.device = "cpu", .asked = 1023, .live = 1531, .cached = 1}),
                        "the host ran out of memory: 1023 B " UNKNOWN ", 1.50 KiB live, 1 B cached");
}

static void the_cpus_memory_is_the_hosts(void **state)
{
    (void)state;
    assert_string_equal(said(&(struct kp_oomwords){.device = "cpu", .asked = 1024, .live = 2048, .limit = 4096}),
                        "the host ran out of 4.00 KiB of memory: 1.00 KiB " UNKNOWN ", "
                        "2.00 KiB live");
}

static void long_names_are_cut(void **state)
{
    struct kp_callsite site = {.line = 1, .category = "optimizer state"};
    (void)state;
    memset(site.file, 'f', sizeof site.file - 1);
    memset(site.function, 'g', sizeof site.function - 1);
    const char *const text = said(&(struct kp_oomwords){.device = "cpu",
                                                        .asked = UINT64_MAX,
                                                        .live = UINT64_MAX,
                                                        .most = 1,
                                                        .cached = 9,
                                                        .at = &site,
                                                        .most_at = &site});
    assert_non_null(strstr(text, "(optimizer state), 9 B cached"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_was_asked_for_and_what_holds_most),
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(the_cpus_memory_is_the_hosts),
        cmocka_unit_test(long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
