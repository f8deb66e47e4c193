// SPDX-License-Identifier: Apache-2.0
/* test_oomtext.c - what was live out of memory is read, and printed by line */
#include "export/answers/memory/oomtext.h"

#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

static const char whole[] =
    "{\"oom\":1,\"text\":\"cuda:0 ran out of "
    "memory\",\"pid\":7,\"rank\":1,\"step\":3,\"time_ms\":5,\"device\":\"cuda:0\",\"asked\":1048576,"
    "\"asked_at\":{\"file\":\"/w/train.py\",\"line\":31,\"function\":\"main\",\"category\":\"\"},\"live\":6291456,"
    "\"blocks\":3,\"unkept\":0,\"allocated\":6291456,\"reserved\":8388608,\"limit\":9437184,\"sites\":["
    "{\"file\":\"/w/"
    "model.py\",\"line\":12,\"function\":\"forward\",\"category\":\"activations\",\"module\":\"Net.Linear\",\"bytes\":"
    "4194304,"
    "\"blocks\":2,\"largest\":3145728,\"first_step\":1,\"last_step\":3,\"grows\":1024},"
    "{\"file\":null,\"line\":null,\"function\":null,\"category\":null,\"bytes\":2097152,\"blocks\":1}]}";

static struct kp_oom read_it(const char *text)
{
    struct kp_oom oom;
    const char *why = "";
    assert_true(kp_oom_read(&oom, text, strlen(text), &why));
    return oom;
}

static char *printed(const struct kp_oom *oom, bool is_json, long rows)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (is_json) kp_oom_json(out, oom);
    else kp_oom_print(out, oom, rows);
    fclose(out);
    return text;
}

static void lines_are_printed_by_what_they_hold(void **state)
{
    struct kp_oom oom = read_it(whole);
    char *text = printed(&oom, false, 1);
    (void)state;
    assert_non_null(strstr(text, "rank 1: cuda:0 ran out of memory\n"));
    assert_non_null(strstr(text, "each of the last steps left at least 1.00 KiB from model.py:12 forward\n"));
    assert_non_null(strstr(text, "1 more lines"));
    assert_non_null(strstr(text, "  model.py:12 forward (activations of Net.Linear)\n"));
    free(text);
    text = printed(&oom, false, 0);
    assert_non_null(strstr(text, "that is not known\n"));
    free(text);
    text = printed(&oom, true, 0);
    assert_non_null(strstr(text, "\"live\":6291456"));
    free(text);
    kp_oom_fini(&oom);
}

static void what_is_no_such_file_is_refused(void **state)
{
    struct kp_oom oom;
    const char *why = "";
    (void)state;
    assert_false(kp_oom_read(&oom, "{}", 2, &why));
    assert_string_equal(why, "it does not say what was live out of memory");
    assert_false(kp_oom_read(&oom, whole, 40, &why));
    oom = read_it("{\"oom\":1,\"asked_at\":3,\"live\":99999999999999999999,\"sites\":[1,{},\"x\"],\"device\":7}");
    assert_int_equal(oom.live, -1);
    assert_int_equal(oom.count, 3);
    free(printed(&oom, false, 0));
    kp_oom_fini(&oom);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_printed_by_what_they_hold),
        cmocka_unit_test(what_is_no_such_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
