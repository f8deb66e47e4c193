// SPDX-License-Identifier: Apache-2.0
/* test_traceback.c - the text of a traceback: its frame, its exception, and the blocks of a chain */
#include "collector/base/text/kp_traceback.h"

#include <string.h>

#include "test/support/support.h"

#define OUTER "  File \"/home/a/train.py\", line 18, in main\n    step(batch)\n"
#define LIBRARY                                                                                       \
    "  File \"/usr/lib/python3.11/site-packages/torch/x.py\", line 362, in wrapper\n    return f()\n" \
    "    ^^^^\n"

static struct kp_traceback found;
static const char *at;

static bool is_own(const char *file) { return !strstr(file, "-packages/"); }

static bool reads(const char *text)
{
    at = text;
    return kp_traceback_next(&at, &found, is_own);
}

static void the_innermost_line_of_the_program_counts(void **state)
{
    (void)state;
    assert_true(reads("Caught ValueError in DataLoader worker process 1.\nOriginal Traceback (most recent call "
                      "last):\n" OUTER LIBRARY "ValueError: corrupt: 90\nmore\n"));
    assert_string_equal(found.file, "/home/a/train.py");
    assert_string_equal(found.function, "main");
    assert_int_equal(found.line, 18);
    assert_string_equal(found.type, "ValueError");
    assert_memory_equal(found.text, "corrupt: 90\n", 12);
    assert_false(kp_traceback_next(&at, &found, is_own));
    assert_string_equal(found.file, "");
}

static void without_one_the_innermost_counts(void **state)
{
    (void)state;
    assert_true(reads(LIBRARY "torch.cuda.OutOfMemoryError"));
    assert_int_equal(found.line, 362);
    assert_string_equal(found.type, "OutOfMemoryError");
    assert_string_equal(found.text, "");
    assert_true(reads("  File \"a.py\", line 3\nSyntaxError: bad\n")); /* no function */
    assert_string_equal(found.function, "");
}

static void a_chain_has_a_block_for_each(void **state)
{
    (void)state;
    assert_true(reads(OUTER "KeyError: 'lr'\n\nThe above exception was the direct cause of the following exception:\n\n"
                            "Traceback (most recent call last):\n" LIBRARY "RuntimeError: bad\n"));
    assert_string_equal(found.type, "KeyError");
    assert_true(kp_traceback_next(&at, &found, is_own));
    assert_string_equal(found.type, "RuntimeError");
    assert_int_equal(found.line, 362);
    assert_false(kp_traceback_next(&at, &found, is_own));
}

static void what_is_none_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "ValueError: x",
                                        "Traceback (most recent call last):\n",
                                        "  File \"a.py",
                                        "  File \"a.py\", line x",
                                        OUTER,
                                        OUTER "two words: text",
                                        OUTER ": text",
                                        OUTER "3Error: text"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_false(reads(texts[i]));
}

static void a_long_name_is_cut(void **state)
{
    char text[2048] = "  File \"";
    (void)state;
    memset(text + strlen(text), 'f', 600);
    strcat(text, "\", line 7, in ");
    memset(text + strlen(text), 'g', 600);
    strcat(text, "\nKeyError\n");
    assert_true(reads(text));
    assert_true(reads(text));
    assert_int_equal(strlen(found.file), sizeof found.file - 1);
    assert_int_equal(strlen(found.function), sizeof found.function - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_innermost_line_of_the_program_counts),
        cmocka_unit_test(without_one_the_innermost_counts),
        cmocka_unit_test(a_chain_has_a_block_for_each),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(a_long_name_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
