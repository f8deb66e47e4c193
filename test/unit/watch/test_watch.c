// SPDX-License-Identifier: Apache-2.0
/* test_watch.c - a run as its .steps files have it: who runs, stands, is gone, is behind */
#include "export/answers/watch/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "test/support/support.h"

#define SECOND UINT64_C(1000000000)
#define NOW (1000000 * SECOND)

static char folder[64], say[256];
static struct kp_watch w;

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kprof-watch-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    kp_watch_free(&w);
    return system(command);
}

struct made {
    unsigned rank, ranks, state;
    int32_t pid; /* 0: this process */
    const char *host;
    uint64_t begin_ns, beat_ns, last_ns, step, steps;
    size_t torn; /* bytes of a line that was not written whole */
};

static void file_make(const char *name, const struct made *m)
{
    char path[128];
    struct kp_stephead head = {.magic = KP_STEPLINE_MAGIC,
                               .head_bytes = sizeof head,
                               .line_bytes = sizeof(struct kp_stepline),
                               .pid = m->pid ? m->pid : (int32_t)getpid(),
                               .rank = m->rank,
                               .ranks = m->ranks,
                               .state = m->state,
                               .begin_ns = m->begin_ns ? m->begin_ns : NOW - 100 * SECOND,
                               .beat_ns = m->beat_ns ? m->beat_ns : NOW};
    if (m->host) memcpy(head.host, m->host, strlen(m->host));
    else gethostname(head.host, sizeof head.host - 1);
    if (!m->pid) head.process_start = kp_io_process_start(0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    fwrite(&head, sizeof head, 1, out);
    for (uint64_t i = 0; i < m->steps; i++) {
        const uint64_t dur_ns = (i + 1) * SECOND / 100;
        const struct kp_stepline line = {.step = m->step + 1 - m->steps + i,
                                         .end_ns = m->last_ns,
                                         .dur_ns = dur_ns,
                                         .median_ns = dur_ns,
                                         .count = 1,
                                         .had_us = 3,
                                         .waited_us = 1,
                                         .looked_us = 10,
                                         .resident_kb = 2048};
        fwrite(&line, sizeof line, 1, out);
    }
    for (size_t i = 0; i < m->torn; i++) fputc(7, out);
    fclose(out);
}

static void a_rank_that_runs(void **state)
{
    (void)state;
    file_make("a.steps", &(struct made){.ranks = 1, .last_ns = NOW - SECOND, .step = 41, .steps = 9, .torn = 50});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.ranks[0].state, KP_WATCH_RUNS);
    assert_int_equal(w.ranks[0].last.step, 41);
    assert_true(fabs(w.ranks[0].median_ns - 0.05e9) < 1);
    assert_true(fabs(w.ranks[0].last_ns - 0.09e9) < 1);
    assert_true(fabs(w.ranks[0].had - 0.3) < 1e-9 && fabs(w.ranks[0].waited - 0.1) < 1e-9);
    assert_string_equal(kp_watch_say(&w, say, sizeof say), "step 41, 50.0 ms a step, 1 rank");
    assert_true(kp_watch_goes_on(&w));
}

static void a_rank_that_stands_is_named(void **state)
{
    (void)state;
    file_make("a.steps", &(struct made){.ranks = 2, .last_ns = NOW - SECOND, .step = 41, .steps = 9});
    file_make("b.steps", &(struct made){.rank = 1, .ranks = 2, .last_ns = NOW - 31 * SECOND, .step = 40, .steps = 9});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.ranks[1].state, KP_WATCH_SILENT);
    assert_string_equal(kp_watch_say(&w, say, sizeof say),
                        "rank 1 has ended no step for 31.0 s (the median step takes 50.0 ms): it is stuck at step 40");
}

/* Three steps of ten minutes: six minutes without an end are no silence. */
static void long_steps_are_no_silence(void **state)
{
    (void)state;
    file_make("a.steps", &(struct made){.ranks = 1, .last_ns = NOW - 360 * SECOND, .step = 6000, .steps = 1});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.ranks[0].state, KP_WATCH_SILENT);
    kp_watch_free(&w);
    struct made m = {.ranks = 1, .last_ns = NOW - 360 * SECOND, .step = 6000, .steps = 6000};
    file_make("a.steps", &m); /* the last lines have steps of a minute */
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.ranks[0].state, KP_WATCH_RUNS);
}

#define GONE "was killed or left without an exit"

static void a_rank_without_its_process_is_gone(void **state)
{
    (void)state;
    file_make("a.steps", &(struct made){.ranks = 2, .last_ns = NOW - SECOND, .step = 41, .steps = 9});
    file_make(
        "b.steps",
        &(struct made){.rank = 1, .ranks = 2, .pid = 0x3ffffff, .last_ns = NOW - 19 * SECOND, .step = 33, .steps = 9});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.ranks[1].state, KP_WATCH_GONE);
    assert_string_equal(kp_watch_say(&w, say, sizeof say), "rank 1 " GONE " after step 33, 19.0 s ago");
}

/* Of another machine its signs of life tell: they come each 10 s. */
static void a_rank_of_another_machine(void **state)
{
    (void)state;
    file_make(
        "a.steps",
        &(struct made){
            .ranks = 2, .host = "far", .beat_ns = NOW - 50 * SECOND, .last_ns = NOW - SECOND, .step = 1, .steps = 1});
    file_make("b.steps", &(struct made){.rank = 1,
                                        .ranks = 2,
                                        .host = "far",
                                        .beat_ns = NOW - 70 * SECOND,
                                        .last_ns = NOW - SECOND,
                                        .step = 1,
                                        .steps = 1});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.ranks[0].state, KP_WATCH_RUNS);
    assert_int_equal(w.ranks[1].state, KP_WATCH_GONE);
}

/* Two machines write into one folder, each rank of which has the same number of process there. */
static void ranks_of_two_machines_are_one_run(void **state)
{
    char name[16];
    (void)state;
    for (unsigned rank = 0; rank < 4; rank++) {
        snprintf(name, sizeof name, "%c.steps", (char)('d' - rank));
        file_make(name, &(struct made){.rank = rank,
                                       .ranks = 4,
                                       .pid = 7 + (int)rank % 2,
                                       .host = rank < 2 ? "near" : "far",
                                       .beat_ns = rank == 2 ? NOW - 90 * SECOND : NOW,
                                       .last_ns = NOW - SECOND,
                                       .step = 40 + rank,
                                       .steps = 3});
    }
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.count, 4);
    for (unsigned rank = 0; rank < 4; rank++) {
        assert_int_equal(w.ranks[rank].head.rank, rank);
        assert_int_equal(w.ranks[rank].state, rank == 2 ? KP_WATCH_GONE : KP_WATCH_RUNS);
    }
    assert_string_equal(kp_watch_say(&w, say, sizeof say), "rank 2 " GONE " after step 42, 1.00 s ago");
}

static void times_that_no_clock_has_are_not_read(void **state)
{
    (void)state;
    file_make("a.steps", &(struct made){.ranks = 1, .last_ns = UINT64_MAX, .step = 3, .steps = 2});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.ranks[0].last.count, 0);
}

static void a_rank_that_is_behind(void **state)
{
    (void)state;
    file_make("a.steps", &(struct made){.ranks = 2, .last_ns = NOW, .step = 41, .steps = 9});
    file_make("b.steps", &(struct made){.rank = 1, .ranks = 2, .last_ns = NOW, .step = 30, .steps = 9});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_string_equal(kp_watch_say(&w, say, sizeof say), "rank 1 is 11 steps behind: step 30 of 41");
}

/* The front's last line is newer: it ended those steps since the other file was written. */
static void steps_between_two_looks_are_no_delay(void **state)
{
    (void)state;
    file_make("a.steps", &(struct made){.ranks = 2, .last_ns = NOW, .step = 48, .steps = 9});
    file_make("b.steps", &(struct made){.rank = 1, .ranks = 2, .last_ns = NOW - SECOND / 10, .step = 46, .steps = 9});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_string_equal(kp_watch_say(&w, say, sizeof say), "step 48, 50.0 ms a step, 2 ranks");
    kp_watch_free(&w);
    file_make("b.steps", &(struct made){.rank = 1, .ranks = 2, .last_ns = NOW - SECOND / 10, .step = 44, .steps = 9});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_string_equal(kp_watch_say(&w, say, sizeof say), "rank 1 is 4 steps behind: step 44 of 48");
}

static void earlier_runs_are_left_out(void **state)
{
    (void)state;
    const uint64_t early = NOW - 5000 * SECOND;
    file_make(
        "a.steps",
        &(struct made){
            .ranks = 1, .state = KP_STEPLINE_ENDED, .begin_ns = early, .last_ns = early + 1, .step = 1, .steps = 1});
    file_make("b.steps", &(struct made){.ranks = 1, .last_ns = NOW, .step = 9, .steps = 2});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.ranks[0].last.step, 9);
    kp_watch_free(&w);
    file_make("b.steps", &(struct made){.ranks = 1, .state = KP_STEPLINE_ENDED, .last_ns = NOW, .step = 9, .steps = 2});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.count, 1);
    assert_false(kp_watch_goes_on(&w));
    assert_string_equal(kp_watch_say(&w, say, sizeof say), "the program ended after step 9");
}

static void a_rank_that_ran_out_of_memory_says_so(void **state)
{
    char *text = NULL;
    size_t bytes = 0;
    (void)state;
    file_make("a.steps", &(struct made){.ranks = 1, .last_ns = NOW - SECOND, .step = 41, .steps = 9});
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    kp_watch_oom(&w, w.ranks[0].head.pid + 1, INT64_MAX, "another ran out");
    kp_watch_oom(&w, w.ranks[0].head.pid, -1, "an earlier process of this number ran out");
    FILE *const out = open_memstream(&text, &bytes);
    kp_watch_print(out, &w);
    fflush(out);
    assert_null(strstr(text, "ran out"));
    kp_watch_oom(&w, w.ranks[0].head.pid, INT64_MAX, "cpu ran out of memory");
    kp_watch_print(out, &w);
    fclose(out);
    assert_non_null(strstr(text, "\nrank 0: cpu ran out of memory\n"));
    free(text);
}

static void files_that_are_none_are_left_out(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/x.steps", folder);
    FILE *const out = fopen(path, "w");
    for (int i = 0; i < 700; i++) fputc('x', out);
    fclose(out);
    assert_int_equal(kp_watch_read(&w, folder, NOW), 0);
    assert_int_equal(w.count, 0);
    kp_watch_free(&w);
    assert_int_equal(kp_watch_read(&w, "/nowhere/at/all", NOW), -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_rank_that_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_that_stands_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(long_steps_are_no_silence, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_without_its_process_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_of_another_machine, setup, teardown),
        cmocka_unit_test_setup_teardown(ranks_of_two_machines_are_one_run, setup, teardown),
        cmocka_unit_test_setup_teardown(times_that_no_clock_has_are_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_that_is_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(steps_between_two_looks_are_no_delay, setup, teardown),
        cmocka_unit_test_setup_teardown(earlier_runs_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_that_ran_out_of_memory_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_are_none_are_left_out, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
