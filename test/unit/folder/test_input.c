// SPDX-License-Identifier: Apache-2.0
/* test_input.c - what a path given to a command stands for */
#include "test/support/support.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/cli/cli.h"
#include "export/read/folder/trace_source.h"
#include "export/read/files/spoolfile.h"
#include "export/read/kineto/kineto.h"
#include "test/support/spool.h"

static char folder[256];

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/input-XXXXXX", kp_test_tmpdir());
    return mkdtemp(folder) ? 0 : -1;
}

static void a_trace_is_itself(void **state)
{
    struct kp_input input;
    (void)state;
    put("a.json", "{}");
    assert_int_equal(kp_input_open(&input, in_folder("a.json"), NULL), 0);
    assert_int_equal(input.count, 1);
    assert_string_equal(input.of[0].path, in_folder("a.json"));
    kp_input_close(&input);
    assert_int_equal(access(in_folder("a.json"), F_OK), 0);
}

static void a_profile_of_the_heap_leads_to_the_command_that_reads_it(void **state)
{
    struct kp_input input;
    struct kp_kineto *trace = NULL;
    char why[512];
    (void)state;
    put("a.heap.zst", "x");
    assert_int_equal(kp_input_open(&input, in_folder("a.heap.zst"), NULL), 0);
    assert_int_equal(kp_trace_source_read(&input.of[0], &trace, NULL, why, sizeof why), -ENOTSUP);
    assert_non_null(strstr(why, "a.heap.zst: a profile of the heap, not a trace; kprof memory shows it"));
    assert_non_null(strstr(why, "kprof memory --format folded prints its stacks"));
    kp_kineto_close(trace);
    kp_input_close(&input);
}

static void a_folder_is_its_traces_in_order_of_name(void **state)
{
    struct kp_input input;
    (void)state;
    put("b.pt.trace.json", "{}");
    put("a.pt.trace.json.gz", "");
    put("c.txt", "");
    assert_int_equal(kp_input_open(&input, folder, NULL), 0);
    assert_int_equal(input.count, 2);
    assert_string_equal(input.of[0].path, in_folder("a.pt.trace.json.gz"));
    assert_string_equal(input.of[1].label, in_folder("b.pt.trace.json"));
    kp_input_close(&input);
}

static int asked;

static int misuse(void *context, const struct kp_trace_source *source, bool several)
{
    (void)source, (void)several;
    asked++;
    return *(const int *)context;
}

static void a_misuse_ends_the_command_and_bad_input_does_not(void **state)
{
    int answer = KP_EXIT_USAGE;
    char *paths[] = {folder, folder};
    (void)state;
    put("a.pt.trace.json", "{}");
    put("b.pt.trace.json", "{}");
    asked = 0;
    assert_int_equal(kp_input_each("report", paths, 2, NULL, misuse, &answer), KP_EXIT_USAGE);
    assert_int_equal(asked, 1);
    answer = KP_EXIT_BAD_INPUT;
    assert_int_equal(kp_input_each("report", paths, 2, NULL, misuse, &answer), KP_EXIT_BAD_INPUT);
    assert_true(asked >= 5);
}

static void a_folder_without_traces_and_a_missing_file_are_errors(void **state)
{
    struct kp_input input;
    (void)state;
    assert_true(kp_input_open(&input, folder, NULL) < 0);
    kp_input_close(&input);
    assert_true(kp_input_open(&input, in_folder("none"), NULL) < 0);
    kp_input_close(&input);
}

static void spool_make(const char *name)
{
    struct test_spool spool;
    test_spool_training(&spool);
    test_spool_save(&spool, in_folder(name), 0);
    test_spool_free(&spool);
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n - 2;
}

static void a_spool_is_read_without_a_file(void **state)
{
    struct kp_input input;
    struct kp_kineto *trace;
    char why[256], temporary[512];
    (void)state;
    spool_make("s.kprof");
    snprintf(temporary, sizeof temporary, "%s/tmp", folder);
    assert_int_equal(mkdir(temporary, 0700), 0);
    setenv("TMPDIR", temporary, 1);
    assert_int_equal(kp_input_open(&input, in_folder("s.kprof"), NULL), 0);
    assert_int_equal(input.count, 1);
    assert_string_equal(input.of[0].label, in_folder("s.kprof"));
    for (int turn = 0; turn < 2; turn++) { /* it can be read again */
        assert_int_equal(kp_trace_source_read(&input.of[0], &trace, NULL, why, sizeof why), 0);
        assert_true(trace->count > 0);
        assert_true(trace->has_start);
        kp_kineto_close(trace);
        assert_int_equal(entries(temporary), 0);
    }
    kp_input_close(&input);
    unsetenv("TMPDIR");
}

static void cycles_are_sources_of_their_own_and_those_without_an_event_are_none(void **state)
{
    struct test_spool s;
    struct kp_input input;
    struct kp_kineto *trace;
    char why[256], label[600];
    (void)state;
    test_spool_init(&s);
    const uint32_t id = test_spool_name(&s, "aten::mm", 8), meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, 1000, 5000000, 1000);
    for (uint32_t cycle = 1; cycle <= 3; cycle++) {
        test_spool_cycle(&s, meta, cycle, cycle * 1000, cycle * 1000 + 900, 0);
        const uint32_t chunk = test_spool_chunk(&s, KP_CHUNK_DATA, cycle, 10, 1, "a");
        for (uint32_t op = 0; op < cycle && cycle != 2; op++)
            test_spool_op(&s, chunk,
                          &(struct test_op){.name = id, .start = cycle * 1000 + 10 + op, .ticks = 1, .seq = -1});
    }
    test_spool_save(&s, in_folder("c.kprof"), 0);
    test_spool_free(&s);
    assert_int_equal(kp_input_open(&input, in_folder("c.kprof"), NULL), 0);
    assert_int_equal(input.count, 2);
    for (size_t i = 0; i < 2; i++) {
        snprintf(label, sizeof label, "%s cycle %d", in_folder("c.kprof"), i ? 3 : 1);
        assert_string_equal(input.of[i].label, label);
        assert_int_equal(kp_trace_source_read(&input.of[i], &trace, NULL, why, sizeof why), 0);
        assert_int_equal(trace->count, (i ? 3 : 1) + 3); /* and the three of the profiler itself */
        kp_kineto_close(trace);
    }
    kp_input_close(&input);
}

static void a_folder_with_spools_only_exports_them(void **state)
{
    struct kp_input input;
    (void)state;
    spool_make("s.kprof");
    assert_int_equal(kp_input_open(&input, folder, NULL), 0);
    assert_true(input.count >= 1);
    kp_input_close(&input);
}

static int count(void *context, const struct kp_event *event)
{
    (void)event;
    ++*(int *)context;
    return 0;
}

/* What is mapped and cut off is a SIGBUS. A hole stays one: a file of a few kilobytes may say that it has 64 GB. */
static void a_spool_that_others_may_change_is_read_from_a_copy(void **state)
{
    struct kp_reader *reader;
    struct stat st;
    char why[256] = "";
    int whole = 0, copied = 0;
    (void)state;
    spool_make("s.kprof");
    assert_int_equal(kp_spoolfile_open(&reader, in_folder("s.kprof"), &st, why, sizeof why), 0);
    assert_int_equal(st.st_uid, geteuid());
    assert_int_equal(kp_reader_events(reader, 1, count, &whole), 0);
    kp_reader_close(reader);
    assert_int_equal(truncate(in_folder("s.kprof"), (off_t)1 << 36), 0);
    assert_int_equal(chmod(in_folder("s.kprof"), 0662), 0);
    assert_int_equal(kp_spoolfile_open(&reader, in_folder("s.kprof"), NULL, why, sizeof why), 0);
    assert_int_equal(truncate(in_folder("s.kprof"), 0), 0);
    assert_int_equal(kp_reader_events(reader, 1, count, &copied), 0);
    kp_reader_close(reader);
    assert_true(whole > 0);
    assert_int_equal(copied, whole);
}

static void without_room_for_a_copy_it_is_not_read(void **state)
{
    struct kp_reader *reader;
    char why[256] = "";
    const char *before = getenv("TMPDIR");
    (void)state;
    spool_make("s.kprof");
    assert_int_equal(chmod(in_folder("s.kprof"), 0666), 0);
    setenv("TMPDIR", "/proc", 1);
    assert_true(kp_spoolfile_open(&reader, in_folder("s.kprof"), NULL, why, sizeof why) < 0);
    if (before) setenv("TMPDIR", before, 1);
    else unsetenv("TMPDIR");
    assert_null(reader);
    assert_non_null(strstr(why, "TMPDIR"));
}

/* Nobody named them: a pipe would be waited for. */
static void traces_of_other_names_are_known_by_their_begin_where_none_has_the_usual(void **state)
{
    struct kp_input input;
    (void)state;
    put("rank-1.json", "{\"distributedInfo\": {\"rank\": 1}, \"traceEvents\": []}");
    put("rank-0.json", "{\"schemaVersion\": 1,\n  \"deviceProperties\": [");
    put("config.json", "{\"lr\": 0.1}");
    put("et.json", "{\"schema\": \"1.1.1-chakra.0.0.4\", \"nodes\": []}");
    put(".hidden.json", "{\"traceEvents\": []}");
    put("notes.txt", "{\"traceEvents\": []}");
    assert_int_equal(kp_input_open(&input, folder, NULL), 0);
    assert_int_equal(input.count, 2);
    assert_string_equal(input.of[0].path, in_folder("rank-0.json"));
    assert_string_equal(input.of[1].path, in_folder("rank-1.json"));
    kp_input_close(&input);
    put("a.pt.trace.json", "{}");
    assert_int_equal(kp_input_open(&input, folder, NULL), 0);
    assert_int_equal(input.count, 1);
    assert_string_equal(input.of[0].path, in_folder("a.pt.trace.json"));
    kp_input_close(&input);
}

static void what_is_no_file_in_a_folder_is_passed_over(void **state)
{
    struct kp_input input;
    char target[512];
    (void)state;
    assert_int_equal(mkfifo(in_folder("a.pt.trace.json"), 0600), 0);
    assert_int_equal(mkdir(in_folder("b.pt.trace.json.gz"), 0700), 0);
    assert_true(kp_input_open(&input, folder, NULL) < 0);
    kp_input_close(&input);
    assert_int_equal(mkfifo(in_folder("a.kprof"), 0600), 0);
    spool_make("s.kprof");
    assert_int_equal(kp_input_open(&input, folder, NULL), 0);
    assert_true(input.count >= 1);
    kp_input_close(&input);
    put("c.txt", "{}");
    snprintf(target, sizeof target, "%s", in_folder("c.txt"));
    assert_int_equal(symlink(target, in_folder("c.pt.trace.json")), 0); /* to a file: somebody keeps his traces so */
    assert_int_equal(kp_input_open(&input, folder, NULL), 0);
    assert_int_equal(input.count, 1);
    assert_string_equal(input.of[0].path, in_folder("c.pt.trace.json"));
    kp_input_close(&input);
}

static void a_spool_cut_to_its_head_is_an_error(void **state)
{
    struct kp_input input;
    (void)state;
    spool_make("s.kprof");
    assert_int_equal(truncate(in_folder("s.kprof"), 64), 0);
    assert_true(kp_input_open(&input, in_folder("s.kprof"), NULL) < 0);
    assert_int_equal(input.count, 0);
    kp_input_close(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_trace_is_itself, setup),
        cmocka_unit_test_setup(a_profile_of_the_heap_leads_to_the_command_that_reads_it, setup),
        cmocka_unit_test_setup(a_folder_is_its_traces_in_order_of_name, setup),
        cmocka_unit_test_setup(a_misuse_ends_the_command_and_bad_input_does_not, setup),
        cmocka_unit_test_setup(a_folder_without_traces_and_a_missing_file_are_errors, setup),
        cmocka_unit_test_setup(a_spool_is_read_without_a_file, setup),
        cmocka_unit_test_setup(cycles_are_sources_of_their_own_and_those_without_an_event_are_none, setup),
        cmocka_unit_test_setup(a_folder_with_spools_only_exports_them, setup),
        cmocka_unit_test_setup(a_spool_that_others_may_change_is_read_from_a_copy, setup),
        cmocka_unit_test_setup(without_room_for_a_copy_it_is_not_read, setup),
        cmocka_unit_test_setup(traces_of_other_names_are_known_by_their_begin_where_none_has_the_usual, setup),
        cmocka_unit_test_setup(what_is_no_file_in_a_folder_is_passed_over, setup),
        cmocka_unit_test_setup(a_spool_cut_to_its_head_is_an_error, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
