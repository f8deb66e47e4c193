// SPDX-License-Identifier: Apache-2.0
/* test_errorfile.c - what torch.distributed.elastic wrote of an exception */
#include "export/answers/ranks/lastwords.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/support/support.h"

#define TORCH "  File \\\"/usr/lib/python3.11/site-packages/torch/x.py\\\", line 362, in wrapper\\n    return f()\\n"
#define OWN "  File \\\"/home/a/train.py\\\", line 18, in main\\n    fails()\\n"
#define FILE_OF(message, stack)                                                               \
    "{\"message\": {\"message\": \"" message "\", \"extraInfo\": {\"py_callstack\": \"" stack \
    "\", \"timestamp\": \"17\"}}}"

static struct kp_errorfile told;

static bool reads(const char *text) { return kp_errorfile_read(&told, text, strlen(text)); }

static void the_innermost_line_of_the_program_is_told_with_the_class(void **state)
{
    (void)state;
    assert_true(reads(FILE_OF("ValueError: a: b", "Traceback:\\n" TORCH OWN TORCH "ValueError: a: b")));
    assert_string_equal(told.type, "ValueError");
    assert_string_equal(told.place, "train.py:18 main");
    assert_int_equal(told.at_ns, INT64_C(17000000000));
}

static void without_a_line_of_the_program_the_innermost_is_told(void **state)
{
    (void)state;
    assert_true(reads(FILE_OF("KeyError", TORCH)));
    assert_string_equal(told.type, "KeyError");
    assert_string_equal(told.place, "x.py:362 wrapper");
    assert_true(reads(FILE_OF("OSError: no", "")));
    assert_string_equal(told.place, "");
}

static void what_is_no_exception_of_torch_is_refused(void **state)
{
    (void)state;
    assert_false(reads("{\"message\": \"<NONE>\"}"));
    assert_false(reads("[1]"));
    assert_false(reads("{\"message\": {\"message\": 3}}"));
    assert_false(reads(FILE_OF("two words: text", OWN)));
    assert_false(reads(FILE_OF(": text", OWN)));
    assert_false(reads("{\"message\": {\"message\""));
}

static void an_exception_of_torch_says_that_another_rank_was_gone(void **state)
{
    static const struct {
        const char *message;
        bool is_lost;
    } rows[] = {{"RuntimeError: [/x/gloo/transport/tcp/pair.cc:561] Connection closed by peer [::1]:7", true},
                {"RuntimeError: [/x/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 9ms for recv", true},
                {"DistBackendError: NCCL error in x: remote process exited or there was a network error", true},
                {"DistNetworkError: failed to recv, got 0 bytes", true},
                {"DistBackendError: NCCL error in x: invalid usage", false},
                {"RuntimeError: [enforce fail at x/gloo/allreduce.cc:9] sizes differ", false},
                {"RuntimeError: DataLoader timed out after 5 seconds", false},
                {"ConnectionResetError: Connection reset by peer", false},
                {"ValueError: gloo/x Connection closed by peer", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text, FILE_OF("%s", OWN), rows[i].message);
        assert_true(reads(text));
        assert_int_equal(told.has_lost_peer, rows[i].is_lost);
    }
}

static void only_a_plain_file_is_opened(void **state)
{
    char path[] = "/tmp/errorXXXXXX";
    const char text[] = FILE_OF("ValueError: x", OWN);
    const int fd = mkstemp(path);
    (void)state;
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_true(kp_errorfile_open(&told, path));
    assert_string_equal(told.place, "train.py:18 main");
    unlink(path);
    assert_false(kp_errorfile_open(&told, path));
    assert_false(kp_errorfile_open(&told, "/dev/null"));
    assert_false(kp_errorfile_open(&told, "/tmp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_innermost_line_of_the_program_is_told_with_the_class),
        cmocka_unit_test(without_a_line_of_the_program_the_innermost_is_told),
        cmocka_unit_test(what_is_no_exception_of_torch_is_refused),
        cmocka_unit_test(an_exception_of_torch_says_that_another_rank_was_gone),
        cmocka_unit_test(only_a_plain_file_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
