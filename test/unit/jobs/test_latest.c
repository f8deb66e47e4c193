// SPDX-License-Identifier: Apache-2.0
/* test_latest.c - which files are the latest run */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "export/cli/cli.h"
#include "export/answers/jobs/latest.h"
#include "export/read/folder/run_folder.h"
#include "test/support/spool.h"

#define NEW "1790857026000000000" /* nanoseconds */
#define NEAR "1790857027500000000"
#define LATE "1790857036000000000"
#define LATER "1790857037000000000"
#define OLD "1790850000000000000"

static char folder[256];

static void put_text(const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put(const char *name) { put_text(name, ""); }

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/latest-XXXXXX", kp_test_tmpdir());
    return mkdtemp(folder) && setenv("KPROF_DIR", folder, 1) == 0 ? 0 : -1;
}

static const char *name_of(const char *path) { return strrchr(path, '/') + 1; }

static void are_two(char **paths, const char *first, const char *second)
{
    assert_string_equal(name_of(paths[0]), first);
    assert_string_equal(name_of(paths[1]), second);
}

static void the_newest_worker_is_the_run_with_all_its_windows(void **state)
{
    char **paths = NULL;
    (void)state;
    put("h_9." OLD ".pt.trace.json.gz");
    put("h_7." LATE ".pt.trace.json.gz");
    put("h_7." NEW ".pt.trace.json");
    put("notes.txt");
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 2);
    are_two(paths, "h_7." NEW ".pt.trace.json", "h_7." LATE ".pt.trace.json.gz");
    assert_int_equal(kp_latest_take("stacks", &paths, 0, true), 1);
    assert_string_equal(name_of(paths[0]), "h_7." LATE ".pt.trace.json.gz");
}

static void ranks_that_end_together_are_one_run_in_their_order(void **state)
{
    char **paths = NULL;
    (void)state;
    put("b_r10_5." NEW ".pt.trace.json.gz");
    put("a_r2_7." NEAR ".pt.trace.json.gz");
    put("a_r2_6." OLD ".pt.trace.json.gz"); /* the same rank of an earlier run */
    put("a_r3_8." OLD ".pt.trace.json.gz"); /* a rank that only the earlier run had */
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 2);
    are_two(paths, "a_r2_7." NEAR ".pt.trace.json.gz", "b_r10_5." NEW ".pt.trace.json.gz");
    put("a_r2_7." LATE ".pt.trace.json.gz"); /* a second window */
    char *named[] = {folder};
    paths = named;
    assert_int_equal(kp_latest_take("html", &paths, 1, KP_LATEST_RANKS), 2);
    are_two(paths, "a_r2_7." LATE ".pt.trace.json.gz", "b_r10_5." NEW ".pt.trace.json.gz");
}

/* A file of torch.profiler.tensorboard_trace_handler. */
static void put_rank(const char *name, long rank, long size)
{
    char text[160];
    snprintf(text, sizeof text,
             "{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %ld, \"world_size\": %ld}, "
             "\"traceEvents\": []}",
             rank, size);
    put_text(name, text);
}

static void ranks_of_torchs_own_files_are_in_their_heads(void **state)
{
    char **paths = NULL, *named[] = {folder};
    (void)state;
    put_rank("node_71." NEW ".pt.trace.json", 1, 2);
    put_rank("node_70." NEAR ".pt.trace.json", 0, 2);
    put_rank("node_60." OLD ".pt.trace.json", 0, 2); /* of an earlier run */
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 2);
    are_two(paths, "node_70." NEAR ".pt.trace.json", "node_71." NEW ".pt.trace.json");
    paths = named;
    assert_int_equal(kp_latest_take("view", &paths, 1, KP_LATEST_RANKS), 2);
    are_two(paths, "node_70." NEAR ".pt.trace.json", "node_71." NEW ".pt.trace.json");
}

static void ranks_in_files_of_other_names_are_one_run(void **state)
{
    char **paths = NULL;
    (void)state;
    put_rank("rank-1.json", 1, 2);
    put_rank("rank-0.json", 0, 2);
    put_text("config.json", "{\"rank\": 2}");
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 2);
    are_two(paths, "rank-0.json", "rank-1.json");
    put_rank("h_5." OLD ".pt.trace.json", 0, 1);
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 1);
    assert_string_equal(name_of(paths[0]), "h_5." OLD ".pt.trace.json");
}

static void one_process_of_torchs_own_files_is_no_rank(void **state)
{
    char **paths = NULL;
    (void)state;
    put_rank("node_71." NEW ".pt.trace.json", 0, 1);
    put_rank("node_70." NEAR ".pt.trace.json", 0, 1);
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 1);
    assert_string_equal(name_of(paths[0]), "node_70." NEAR ".pt.trace.json");
}

static void a_time_in_milliseconds_is_as_late_as_one_in_nanoseconds(void **state)
{
    char **paths = NULL;
    (void)state;
    put_rank("worker1.1790857037000.pt.trace.json", 1, 2); /* LATER */
    put_rank("worker0.1790857037001.pt.trace.json", 0, 2);
    put_rank("h_5." OLD ".pt.trace.json", 0, 2);
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 2);
    are_two(paths, "worker0.1790857037001.pt.trace.json", "worker1.1790857037000.pt.trace.json");
}

static void where_all_can_be_looked_at_the_newest_is_first(void **state)
{
    char **paths = NULL, *named[] = {folder};
    (void)state;
    put("h_6." OLD ".pt.trace.json.gz");
    put("h_7." LATE ".pt.trace.json.gz");
    put("h_7." NEW ".pt.trace.json.gz");
    paths = named;
    assert_int_equal(kp_latest_take("view", &paths, 1, KP_LATEST_RANKS | KP_LATEST_REST), 3);
    assert_string_equal(name_of(paths[0]), "h_7." LATE ".pt.trace.json.gz");
    assert_string_equal(name_of(paths[1]), "h_7." NEW ".pt.trace.json.gz");
    assert_string_equal(name_of(paths[2]), "h_6." OLD ".pt.trace.json.gz");
    paths = named;
    assert_int_equal(kp_latest_take("view", &paths, 1, KP_LATEST_RANKS), 1);
}

static void the_phases_of_a_process_are_one_run(void **state)
{
    char **paths = NULL;
    (void)state;
    put("h_6_train." OLD ".pt.trace.json.gz");
    put("h_7_train." NEW ".pt.trace.json.gz");
    put("h_7_sanity_check." NEAR ".pt.trace.json.gz");
    put("_." OLD ".pt.trace.json.gz"); /* no part at all */
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 2);
    are_two(paths, "h_7_train." NEW ".pt.trace.json.gz", "h_7_sanity_check." NEAR ".pt.trace.json.gz");
}

static void a_name_that_only_looks_like_a_rank_is_none(void **state)
{
    char **paths = NULL;
    (void)state;
    put("node_rx_7." NEW ".pt.trace.json.gz");
    put("r2_8." NEAR ".pt.trace.json.gz");
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 1);
    assert_string_equal(name_of(paths[0]), "r2_8." NEAR ".pt.trace.json.gz");
}

static void a_spool_without_a_trace_is_a_run_and_one_with_a_trace_is_not(void **state)
{
    char **paths = NULL;
    (void)state;
    put("h_7." NEW ".pt.trace.json.gz");
    put("h_7." LATE ".kprof");
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 1);
    assert_string_equal(name_of(paths[0]), "h_7." NEW ".pt.trace.json.gz");
    put("h_8." NEAR ".kprof");
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 1);
    assert_string_equal(name_of(paths[0]), "h_8." NEAR ".kprof");
    put("h_r0_8." NEAR ".pt.trace.json.gz");
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 1);
    assert_string_equal(name_of(paths[0]), "h_r0_8." NEAR ".pt.trace.json.gz");
}

static void what_the_user_names_stays_unless_one_trace_is_wanted_of_a_folder(void **state)
{
    char *named[] = {folder, folder}, **paths = named;
    (void)state;
    put("h_7." NEW ".pt.trace.json.gz");
    put("h_8." NEAR ".pt.trace.json.gz");
    assert_int_equal(kp_latest_take("report", &paths, 1, false), 1);
    assert_ptr_equal(paths, named);
    assert_int_equal(kp_latest_take("stacks", &paths, 2, true), 2);
    assert_ptr_equal(paths, named);
    assert_int_equal(kp_latest_take("stacks", &paths, 1, true), 1);
    assert_string_equal(name_of(paths[0]), "h_8." NEAR ".pt.trace.json.gz");
}

static void the_name_latest_is_the_latest_run_of_its_folder(void **state)
{
    char name[300], *named[] = {name}, **paths = named;
    (void)state;
    snprintf(name, sizeof name, "%s/latest", folder);
    put("h_9." OLD ".pt.trace.json.gz");
    put("h_7." LATE ".pt.trace.json.gz");
    put("h_7." NEW ".pt.trace.json");
    assert_int_equal(setenv("KPROF_DIR", "/nowhere/at/all", 1), 0);
    assert_int_equal(kp_latest_take("report", &paths, 1, 0), 2);
    assert_string_equal(name_of(paths[0]), "h_7." NEW ".pt.trace.json");
    put("latest"); /* a file of the user's */
    paths = named;
    assert_int_equal(kp_latest_take("report", &paths, 1, 0), 1);
    assert_ptr_equal(paths, named);
}

/* timeout, 5, ends last; it ran 6, which ran 7. Whose heap is meant depends on what they are. */
static void a_wrapper_gives_way_to_the_program_that_it_ran(void **state)
{
#define HEAD(facts) "{\"kprof\": {\"version\": \"0.1.0\", " facts "\"cores\": \"2\"},\"traceEvents\": []}"
    static const struct {
        const char *wrapper, *program, *below, *wanted, *wrapper_heap;
    } cases[] = {
        {"", "\"torch_version\": \"2.15\", ", "", "h_6." NEAR ".pt.trace.json", "many allocations"},
        {"", "\"script\": \"a.py\", ", "\"script\": \"b.py\", ", "h_6." NEAR ".pt.trace.json", "many allocations"},
        {"", "\"script\": \"a.py\", ", "\"torch_version\": \"2\", ", "h_7." NEW ".pt.trace.json", "many allocations"},
        {"", "", "", "h_6." NEAR ".pt.trace.json", "few"},
        {"", "", "", "h_5." LATE ".pt.trace.json", "many allocations"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char **paths = NULL, text[400];
        snprintf(text, sizeof text, HEAD("%s\"ppid\": 1, "), cases[i].wrapper);
        put_text("h_5." LATE ".pt.trace.json", text);
        put_text("h_5." LATE ".heap.zst", cases[i].wrapper_heap);
        snprintf(text, sizeof text, HEAD("%s\"ppid\": 5, "), cases[i].program);
        put_text("h_6." NEAR ".pt.trace.json", text);
        put_text("h_6." NEAR ".heap.zst", "some more");
        snprintf(text, sizeof text, HEAD("%s\"ppid\": 6, "), cases[i].below);
        put_text("h_7." NEW ".pt.trace.json", text);
        assert_int_equal(kp_latest_take("memory", &paths, 0, KP_LATEST_ONE | KP_LATEST_PARENT), 1);
        assert_string_equal(name_of(paths[0]), cases[i].wanted);
    }
#undef HEAD
}

/* torchrun, 5, ends last, and started the ranks 6 and 7, the latter through a shell, 4. */
static void the_ranks_are_the_run_and_not_what_started_them(void **state)
{
#define HEAD(facts, event) \
    "{\"kprof\": {\"torch_version\": \"2\", " facts "\"cores\": \"2\"},\"traceEvents\": [" event "]}"
#define CALL "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"sleep\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}"
#define OP "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}"
    char **paths = NULL, *named[] = {folder};
    (void)state;
    put_text("h_5." LATE ".pt.trace.json", HEAD("\"script\": \"torch.distributed.run\", ", CALL));
    put_text("h_4." NEAR ".pt.trace.json", HEAD("\"ppid\": 5, ", CALL));
    put_text("h_r0_6." NEW ".pt.trace.json", HEAD("\"ppid\": 5, ", OP));
    put_text("h_r1_7." NEAR ".pt.trace.json", HEAD("\"ppid\": 4, ", OP));
    assert_int_equal(kp_latest_take("report", &paths, 0, 0), 2);
    are_two(paths, "h_r0_6." NEW ".pt.trace.json", "h_r1_7." NEAR ".pt.trace.json");
    paths = named; /* the same where the folder is named */
    assert_int_equal(kp_latest_take("report", &paths, 1, 0), 2);
    are_two(paths, "h_r0_6." NEW ".pt.trace.json", "h_r1_7." NEAR ".pt.trace.json");
    paths = named;
    assert_int_equal(kp_latest_take("html", &paths, 1, KP_LATEST_RANKS), 2);
    are_two(paths, "h_r0_6." NEW ".pt.trace.json", "h_r1_7." NEAR ".pt.trace.json");
    put_text("h_5." LATE ".pt.trace.json", HEAD("", CALL "," OP)); /* as the parent of mp.spawn may */
    paths = named;
    assert_int_equal(kp_latest_take("view", &paths, 1, KP_LATEST_ONE), 1);
    assert_string_equal(name_of(paths[0]), "h_r0_6." NEW ".pt.trace.json");
    assert_int_equal(kp_latest_take("report", &paths, 0, 0), 2);
    are_two(paths, "h_r0_6." NEW ".pt.trace.json", "h_r1_7." NEAR ".pt.trace.json");
    put_text("x_5." LATE ".pt.trace.json", HEAD("", CALL)); /* the same number on another machine */
    put_text("h_5." LATE ".pt.trace.json", HEAD("", CALL));
    paths = named;
    assert_int_equal(kp_latest_take("view", &paths, 1, KP_LATEST_ONE), 1);
    assert_string_equal(name_of(paths[0]), "x_5." LATE ".pt.trace.json");
#undef HEAD
}

/* A spool of a rank on another machine, which nothing here recovers. Rank -1: of the program that started them. */
static void put_spool(const char *name, unsigned pid, unsigned ppid, int rank)
{
    struct test_spool s;
    char path[600], text[120];
    test_spool_training(&s);
    if (rank < 0) {
        test_spool_free(&s);
        test_spool_init(&s); /* no event */
        const uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 0, 0, "");
        test_spool_clock(&s, meta, 1000, 1000, 1000);
        test_spool_cycle(&s, meta, 1, 1000, 1000000000, 0);
    }
    snprintf(text, sizeof text, "env.RANK=%d\nenv.WORLD_SIZE=3\nenv.RANKS=9\n", rank);
    test_spool_head(&s)->text_bytes = 0;
    if (rank >= 0) test_spool_text(&s, text);
    struct kp_file_head *const head = test_spool_head(&s);
    head->pid = pid, head->ppid = ppid;
    snprintf(head->host, sizeof head->host, "elsewhere");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_spool_save(&s, path, 0);
    test_spool_free(&s);
}

static void spools_of_ranks_are_one_run_without_what_started_them(void **state)
{
    char **paths = NULL, *named[] = {folder};
    (void)state;
    put_spool("h_5." OLD ".kprof", 5, 1, -1);
    put_spool("h_7." NEW ".kprof", 7, 5, 0);
    put_spool("h_6." NEAR ".kprof", 6, 5, 1);
    assert_int_equal(kp_latest_take("report", &paths, 0, 0), 2);
    are_two(paths, "h_7." NEW ".kprof", "h_6." NEAR ".kprof");
    paths = named;
    assert_int_equal(kp_latest_take("report", &paths, 1, 0), 2);
    are_two(paths, "h_7." NEW ".kprof", "h_6." NEAR ".kprof");
    paths = named;
    assert_int_equal(kp_latest_take("html", &paths, 1, KP_LATEST_RANKS), 2);
    are_two(paths, "h_7." NEW ".kprof", "h_6." NEAR ".kprof");
}

/* Two jobs of one sweep end at a time. A name in the user's own metadata is no job's id. */
static void two_jobs_in_a_folder_are_not_one_run(void **state)
{
#define OF_JOB(id) "{\"job\": \"mine\", \"kprof\": {\"version\": \"1\", \"job\": \"" id "\"}, \"traceEvents\": []}"
    char **paths = NULL, *named[] = {folder};
    (void)state;
    put_text("a_r0_1." NEW ".pt.trace.json", OF_JOB("one"));
    put_text("a_r1_2." NEW ".pt.trace.json", OF_JOB("one"));
    put_text("a_r0_3." NEAR ".pt.trace.json", OF_JOB("two"));
    put_text("a_r1_4." NEAR ".pt.trace.json", OF_JOB("two"));
    put_text("a_r1_5." LATE ".pt.trace.json", OF_JOB("one")); /* rank 1 of the first job in a second life */
    assert_int_equal(kp_latest_take("report", &paths, 0, 0), 2);
    are_two(paths, "a_r0_1." NEW ".pt.trace.json", "a_r1_5." LATE ".pt.trace.json");
    paths = named;
    assert_int_equal(kp_latest_take("html", &paths, 1, KP_LATEST_RANKS), 2);
    are_two(paths, "a_r0_1." NEW ".pt.trace.json", "a_r1_5." LATE ".pt.trace.json");
    put_text("b_r0_6." LATER ".pt.trace.json", "{\"traceEvents\": []}"); /* of no known job: told apart by time alone */
    assert_int_equal(kp_latest_take("report", &paths, 0, 0), 2);
    are_two(paths, "b_r0_6." LATER ".pt.trace.json", "a_r1_5." LATE ".pt.trace.json");
#undef OF_JOB
}

/* Rank 1 ended hours before rank 0, which was recorded from before that on; rank 2 is of an earlier run. */
static void a_rank_that_ended_while_the_newest_was_recorded_is_of_its_run(void **state)
{
#define BEGUN(us) "{\"baseTimeNanoseconds\": 1790000000000000000, \"traceEvents\": [{\"ph\":\"M\",\"ts\":" us ".547}]}"
    char **paths = NULL;
    (void)state;
    put_text("h_r0_5." LATE ".pt.trace.json", BEGUN("840000000000"));
    put("h_r1_6.1790850000000000000.pt.trace.json");
    put("h_r2_7.1790839000000000000.pt.trace.json");
    assert_int_equal(kp_latest_take("report", &paths, 0, 0), 2);
    are_two(paths, "h_r0_5." LATE ".pt.trace.json", "h_r1_6.1790850000000000000.pt.trace.json");
    put_text("h_r0_5." LATE ".pt.trace.json", BEGUN("851000000000"));
    assert_int_equal(kp_latest_take("report", &paths, 0, 0), 1);
#undef BEGUN
}

static size_t family(void)
{
    struct kp_run_folder all = {.path = folder};
    assert_int_equal(kp_run_folder_read(&all), 0);
    const size_t count = kp_found_family(&all);
    kp_run_folder_free(&all);
    return count;
}

/* Times are in seconds after the base: from 837000 on what is recorded, to 857026 (NEW) and later what is written. */
static void what_a_program_started_is_its_run_and_the_next_of_a_shell_is_another(void **state)
{
#define FROM(us, facts)                                                                           \
    "{\"kprof\": {\"version\": \"1\", " facts "}, \"baseTimeNanoseconds\": 1790000000000000000, " \
    "\"traceEvents\": [{\"ph\":\"M\",\"ts\":" us ".547}]}"
    (void)state;
    put_text("h_6." NEW ".pt.trace.json", FROM("857020000000", "\"ppid\": 5"));
    put_text("h_7." NEAR ".pt.trace.json", FROM("857021000000", "\"ppid\": 5")); /* beside it, of one parent */
    assert_int_equal(family(), 2);
    put_text("h_5." LATE ".pt.trace.json", FROM("857010000000", "\"ppid\": 1")); /* the parent, which ran an op */
    assert_int_equal(family(), 3);
    put_text("h_8." LATER ".pt.trace.json", FROM("857036500000", "\"ppid\": 1")); /* what the shell ran then */
    assert_int_equal(family(), 1);
    put_text("h_9.1790857038000000000.pt.trace.json", FROM("857036500000", "\"ppid\": 8, \"parent_pid\": \"5\""));
    assert_int_equal(family(), 4); /* the newest: a worker of 5, by whatever process forked it */
    put_text("h_8." LATER ".pt.trace.json", "{\"traceEvents\": []}"); /* not known whose */
    assert_int_equal(family(), 4);
#undef FROM
}

static void without_a_run_nothing_is_taken(void **state)
{
    char **paths = NULL;
    (void)state;
    put("notes.txt");
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 0);
    assert_int_equal(setenv("KPROF_DIR", "/nowhere/at/all", 1), 0);
    assert_int_equal(kp_latest_take("report", &paths, 0, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_newest_worker_is_the_run_with_all_its_windows, setup),
        cmocka_unit_test_setup(ranks_that_end_together_are_one_run_in_their_order, setup),
        cmocka_unit_test_setup(ranks_of_torchs_own_files_are_in_their_heads, setup),
        cmocka_unit_test_setup(ranks_in_files_of_other_names_are_one_run, setup),
        cmocka_unit_test_setup(one_process_of_torchs_own_files_is_no_rank, setup),
        cmocka_unit_test_setup(a_time_in_milliseconds_is_as_late_as_one_in_nanoseconds, setup),
        cmocka_unit_test_setup(where_all_can_be_looked_at_the_newest_is_first, setup),
        cmocka_unit_test_setup(the_phases_of_a_process_are_one_run, setup),
        cmocka_unit_test_setup(a_name_that_only_looks_like_a_rank_is_none, setup),
        cmocka_unit_test_setup(a_spool_without_a_trace_is_a_run_and_one_with_a_trace_is_not, setup),
        cmocka_unit_test_setup(what_the_user_names_stays_unless_one_trace_is_wanted_of_a_folder, setup),
        cmocka_unit_test_setup(the_name_latest_is_the_latest_run_of_its_folder, setup),
        cmocka_unit_test_setup(a_wrapper_gives_way_to_the_program_that_it_ran, setup),
        cmocka_unit_test_setup(the_ranks_are_the_run_and_not_what_started_them, setup),
        cmocka_unit_test_setup(spools_of_ranks_are_one_run_without_what_started_them, setup),
        cmocka_unit_test_setup(two_jobs_in_a_folder_are_not_one_run, setup),
        cmocka_unit_test_setup(a_rank_that_ended_while_the_newest_was_recorded_is_of_its_run, setup),
        cmocka_unit_test_setup(what_a_program_started_is_its_run_and_the_next_of_a_shell_is_another, setup),
        cmocka_unit_test_setup(without_a_run_nothing_is_taken, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
