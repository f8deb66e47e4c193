// SPDX-License-Identifier: Apache-2.0
/* test_inhost.c - heap, files and JSON of the code that reads traces inside the host; what it writes beside a trace */
#include "export/report/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/kp_io.h"
#include "export/extras/extras.h"
#include "export/kp_export.h"
#include "export/report/json_push.h"
#include "test/support/support.h"

static char folder[256], path[512];

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/inhost-XXXXXX", kp_test_tmpdir());
    return mkdtemp(folder) ? kp_rt_begin(folder) : -1;
}

static int teardown(void **state)
{
    (void)state;
    kp_rt_end();
    kp_fail_set(NULL);
    return 0;
}

static void memory_grows_and_keeps_what_it_holds(void **state)
{
    (void)state;
    uint32_t *numbers = NULL;
    for (uint32_t n = 1; n <= 3000000; n++) {
        if ((n & (n - 1)) == 0) numbers = kp_rt_realloc(numbers, 2 * (size_t)n * sizeof *numbers);
        assert_non_null(numbers);
        numbers[n] = n;
    }
    for (uint32_t n = 1; n <= 3000000; n++) assert_int_equal(numbers[n], n);
    kp_rt_free(numbers);
    char *zeroes = kp_rt_calloc(100, 10);
    for (int i = 0; i < 1000; i++) assert_int_equal(zeroes[i], 0);
    assert_int_equal((uintptr_t)zeroes % 16, 0);
}

static int eat(void *context)
{
    for (;;) {
        void *p = kp_rt_malloc((size_t)1 << 20);
        if (!p) kp_rt_exit(1);
        ++*(int *)context;
    }
}

static void where_memory_ends_exit_leaves_the_run_only(void **state)
{
    int pieces = 0;
    (void)state;
    kp_fail_set("fallocate:1+");
    assert_int_equal(kp_rt_run(eat, &pieces), -ENOMEM);
    assert_in_range(pieces, 32, 64); /* 64 MB without a file */
}

static int print(void *context)
{
    struct kp_rt_file *file = kp_rt_fopen(context, NULL);
    kp_rt_fprintf(file, "%.3f %s", 1234.5, "a");
    for (int i = 0; i < 100000; i++) kp_rt_fputc('x', file);
    return kp_rt_fclose(file);
}

static void files_are_written_whole_and_numbers_as_in_c(void **state)
{
    struct stat st;
    char begin[16] = "";
    (void)state;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is not there, it proves less */
    snprintf(path, sizeof path, "%s/a.txt", folder);
    assert_int_equal(kp_rt_run(print, path), 0);
    setlocale(LC_ALL, "C");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 100010);
    FILE *file = fopen(path, "r");
    assert_int_equal(fread(begin, 1, 10, file), 10);
    fclose(file);
    assert_string_equal(begin, "1234.500 a");
    assert_null(kp_rt_fopen(path, NULL)); /* there already */
}

static int tens(const void *a, const void *b) { return *(const int *)a / 10 - *(const int *)b / 10; }

static void sorting_is_stable(void **state)
{
    int items[997];
    (void)state;
    for (int i = 0; i < 997; i++) items[i] = (i * 7919 % 50) * 10 + i % 10;
    int copy[997];
    memcpy(copy, items, sizeof items);
    kp_rt_qsort(items, 997, sizeof *items, tens);
    for (int i = 1; i < 997; i++) assert_true(items[i - 1] / 10 <= items[i] / 10);
    for (int ten = 0, at = 0; ten < 50; ten++)
        for (int i = 0; i < 997; i++)
            if (copy[i] / 10 == ten) assert_int_equal(items[at++], copy[i]);
}

static int print_without_end(void *context)
{
    struct kp_rt_file *file = kp_rt_fopen(context, NULL);
    if (file) kp_rt_exit(1);
    return 0;
}

static void a_file_that_memory_ended_in_is_closed(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/cut.txt", folder);
    const int next = kp_io_open("/", O_RDONLY, 0); /* the number that the file gets */
    kp_io_close(next);
    assert_int_equal(kp_rt_run(print_without_end, path), -ENOMEM);
    assert_int_not_equal(fcntl(next, F_GETFD), -1);
    kp_rt_end();
    assert_int_equal(fcntl(next, F_GETFD), -1);
}

/* ---- JSON ---- */

static char seen[1024];
static void note(const char *what, const void *text, size_t bytes)
{
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%.*s ", what, (int)bytes,
             text ? (const char *)text : "");
}
static int on_null(void *c)
{
    (void)c;
    note("null", NULL, 0);
    return 1;
}
static int on_bool(void *c, int v)
{
    (void)c;
    note(v ? "true" : "false", NULL, 0);
    return 1;
}
static int on_number(void *c, const char *t, size_t n)
{
    (void)c;
    note("#", t, n);
    return 1;
}
static int on_string(void *c, const unsigned char *t, size_t n)
{
    (void)c;
    note("'", t, n);
    return 1;
}
static int on_key(void *c, const unsigned char *t, size_t n)
{
    (void)c;
    note("k", t, n);
    return 1;
}
static int on_map(void *c)
{
    (void)c;
    note("{", NULL, 0);
    return 1;
}
static int on_map_end(void *c)
{
    (void)c;
    note("}", NULL, 0);
    return 1;
}
static int on_array(void *c)
{
    (void)c;
    note("[", NULL, 0);
    return 1;
}
static int on_array_end(void *c)
{
    (void)c;
    note("]", NULL, 0);
    return 1;
}
static const struct kp_json_calls calls = {on_null, on_bool,    on_number, on_string,   on_map,
                                           on_key,  on_map_end, on_array,  on_array_end};

static void *grow(void *memory, size_t bytes) { return kp_rt_realloc(memory, bytes); }

static bool parse(const char *text, size_t cut)
{
    struct kp_json_push *p = kp_json_push_open(&calls, NULL, grow);
    size_t bytes = strlen(text);
    seen[0] = 0;
    const bool good =
        kp_json_push_feed(p, text, cut) && kp_json_push_feed(p, text + cut, bytes - cut) && kp_json_push_end(p);
    kp_json_push_close(p);
    return good;
}

static void json_is_the_same_wherever_it_is_cut(void **state)
{
    static const char text[] = "{\"a\": [1, -2.5e3, true, false, null, \"\"], \"b\\\"\\\\\\n\": "
                               "{\"\\u00e9\\ud83d\\ude00\": \"x\\/y\"}, \"c\":{}}";
    (void)state;
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        assert_true(parse(text, cut));
        assert_string_equal(
            seen, "{ ka [ #1 #-2.5e3 true false null ' ] kb\"\\\n { k\xc3\xa9\xf0\x9f\x98\x80 'x/y } kc { } } ");
    }
}

static void json_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"", "{", "[1}", "]", "{\"a", "[nul]", "[\"\\ux\"]"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(parse(bad[i], 0));
}

/* ---- beside a trace ---- */

static const char trace[] = "{\"profile_memory\":1,\"traceEvents\":["
                            "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":1,\"tid\":1,\"ts\":10,"
                            "\"dur\":5,\"args\":{\"Ev Idx\":0,\"Call stack\":\"f.py(1): g;\"}},"
                            "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,"
                            "\"tid\":1,\"ts\":12,\"args\":{\"Total Reserved\":0,"
                            "\"Total Allocated\":64,\"Bytes\":64,\"Device Id\":-1,\"Device Type\":0,\"Addr\":4096}}]}";

static bool is_there(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static int extras_write(unsigned which, const char *text, unsigned *written)
{
    char name[400];
    kp_rt_end();
    struct kp_extras *x = kp_extras_open(which, folder, NULL, 0);
    assert_non_null(x);
    snprintf(name, sizeof name, "%s/h_1.5.pt.trace.json.gz", folder);
    kp_extras_text(x, text, strlen(text));
    int rc = kp_extras_write(x, name, written);
    kp_extras_close(x);
    return rc;
}

static void what_is_asked_for_is_written_beside_the_trace(void **state)
{
    unsigned written;
    (void)state;
    assert_int_equal(extras_write(KP_EXTRAS, trace, &written), 0);
    assert_int_equal(written, KP_EXTRAS);
    assert_true(is_there("h_1.5.table.txt"));
    assert_true(is_there("h_1.5.memory.html"));
    assert_true(is_there("h_1.5.stacks.txt"));
    char line[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_string_equal(line, "f.py(1):_g 5\n");
}

static void what_there_is_nothing_of_is_no_file(void **state)
{
    unsigned written;
    (void)state;
    assert_int_equal(extras_write(KP_EXTRAS, "{\"traceEvents\":[]}", &written), 0);
    assert_int_equal(written, 0);
    assert_false(is_there("h_1.5.table.txt") || is_there(".h_1.5.table.txt.part"));
    assert_int_equal(extras_write(KP_EXTRA_TABLE, "{\"traceEvents\":[", &written), -EINVAL); /* cut short */
    assert_int_equal(written, 0);
}

static void put(const char *name)
{
    assert_false(is_there(name));
    FILE *file = fopen(path, "w");
    fputs("somebody's", file);
    fclose(file);
}

static void a_file_that_is_there_is_not_replaced(void **state)
{
    char name[400], line[64] = "";
    unsigned written;
    (void)state;
    snprintf(name, sizeof name, "%s/h_1.5.pt.trace.json.gz", folder);
    put("h_1.5.table.txt");
    put(".h_1.5.stacks.txt.part");
    assert_int_equal(extras_write(KP_EXTRAS, trace, &written), -EEXIST);
    assert_int_equal(written, KP_EXTRA_MEMORY);
    assert_true(is_there(".h_1.5.stacks.txt.part"));
    assert_false(is_there(".h_1.5.table.txt.part"));
    assert_true(is_there("h_1.5.table.txt"));
    FILE *file = fopen(path, "r");
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_string_equal(line, "somebody's");
    assert_true(kp_extras_exist(KP_EXTRAS, name));
    assert_false(kp_extras_exist(KP_EXTRA_STACKS, name));
}

static void no_file_is_everybodys_to_write(void **state)
{
    unsigned written;
    struct stat st;
    (void)state;
    const mode_t before = umask(0);
    assert_int_equal(extras_write(KP_EXTRA_TABLE, trace, &written), 0);
    umask(before);
    assert_true(is_there("h_1.5.table.txt"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0664);
}

static void a_file_that_cannot_be_finished_is_not_there(void **state)
{
    unsigned written;
    (void)state;
    kp_fail_set("write:1+");
    assert_int_equal(extras_write(KP_EXTRAS, trace, &written), -EIO);
    kp_fail_set(NULL);
    assert_int_equal(written, 0);
    assert_false(is_there("h_1.5.table.txt") || is_there(".h_1.5.table.txt.part") ||
                 is_there(".h_1.5.memory.html.part"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_grows_and_keeps_what_it_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(where_memory_ends_exit_leaves_the_run_only, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_written_whole_and_numbers_as_in_c, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_memory_ended_in_is_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(sorting_is_stable, setup, teardown),
        cmocka_unit_test_setup_teardown(json_is_the_same_wherever_it_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(json_that_is_none_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_asked_for_is_written_beside_the_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(what_there_is_nothing_of_is_no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_there_is_not_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(no_file_is_everybodys_to_write, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_finished_is_not_there, setup, teardown),
    };
    return cmocka_run_group_tests_name("inside the host", tests, NULL, NULL);
}
