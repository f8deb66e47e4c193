// SPDX-License-Identifier: Apache-2.0
/* test_diffranks.c - a rank of one job beside the same rank of another */
#include "test/unit/diff/rows.h"

/* A rank that works at line 18 for own_us, and waits for the others at line 20 until its steps of step_us are over. */
static void rank_add(struct kp_diff *d, int side, int rank, int own_us, int step_us)
{
    struct little *t = calloc(1, sizeof *t);
    void *state = t;
    snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":3},", rank);
    for (int step = 0; step < 5; step++) {
        const int at = 2000 * step;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
        event(t, "user_annotation", name, 1, at, step_us, "");
        event(t, "cpu_op", "aten::mul", 1, at, own_us, "\"Call stack\":\"train.py(18): load;\"");
        event(t, "cpu_op", "c10d::allreduce_", 1, at + own_us, step_us - own_us,
              "\"Call stack\":\"train.py(20): load;\"");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_diff_add(d, side, &t->tree, &t->chosen, side ? "b.json" : "a.json");
    little_teardown(&state);
}

/* In the steps of all three together it vanishes: line 20 changed most. */
static void a_rank_that_the_others_wait_for_is_told_with_its_line(void **state)
{
    struct kp_diff d;
    double others;
    char text[8192];
    (void)state;
    kp_diff_open(&d);
    for (int rank = 0; rank < 3; rank++) rank_add(&d, KP_DIFF_A, rank, 50 + rank, 100);
    for (int rank = 2; rank >= 0; rank--) rank_add(&d, KP_DIFF_B, rank, rank == 1 ? 950 : 50 + rank, 1000);
    rank_add(&d, KP_DIFF_B, 7, 2, 1000); /* A lacks it */
    kp_diff_settle(&d);
    assert_string_equal(kp_strings_get(d.strings, kp_diff_line_most(&d, &d.step)->name), "train.py:20 load");
    assert_float_equal(row_find(&d, KP_DIFF_PARTS, "exposed communication")->middle[KP_DIFF_B], 949000, 1000);
    assert_int_equal(d.rank_count, 3);
    const struct kp_diff_rank *const most = kp_diff_rank_most(&d, &others);
    assert_non_null(most);
    assert_int_equal(most->rank, 1);
    assert_float_equal(most->of->own.change, 899000, 1);
    assert_float_equal(others, 0, 1);
    FILE *const f = fmemopen(text, sizeof text, "w");
    kp_diff_print(f, &d, &(struct kp_diff_show){0});
    fclose(f);
    assert_non_null(strstr(text, "\nrank         1 changed most: 51.0 us -> 950 us per step outside collectives"));
    assert_non_null(strstr(text, "\nline         train.py:18 load of rank 1 changed most: 51.0 us -> 950 us per"));
    kp_diff_close(&d);
}

static void of_ranks_that_change_alike_none_is_told(void **state)
{
    struct kp_diff d;
    double others;
    (void)state;
    kp_diff_open(&d);
    for (int rank = 0; rank < 3; rank++) {
        rank_add(&d, KP_DIFF_A, rank, 50 + rank, 100);
        rank_add(&d, KP_DIFF_B, rank, 950 + 10 * rank, 1000);
    }
    kp_diff_settle(&d);
    assert_int_equal(d.rank_count, 3);
    assert_null(kp_diff_rank_most(&d, &others));
    kp_diff_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_the_others_wait_for_is_told_with_its_line),
        cmocka_unit_test(of_ranks_that_change_alike_none_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
