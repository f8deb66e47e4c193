// SPDX-License-Identifier: Apache-2.0
/* test_rankwaits.c - of several ranks, who came last to a collective, and how long the others waited */
#include "export/report/rankwaits.h"

#include "test/unit/report/little_trace.h"

/* A rank's steps have a collective each of these lengths; one more lies before the first step. */
static void rank_add(struct kp_rankwaits *w, int rank, const int *lengths, int count)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":2},", rank);
    event(t, "user_annotation", "gloo:all_reduce", 2, 0, 90, "");
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        event(t, "user_annotation", name, 1, 100 * (i + 1), 100, "");
        op(t, "aten::mm", 100 * (i + 1), 5);
        if (lengths[i]) event(t, "user_annotation", "gloo:all_reduce", 2, 100 * (i + 1) + 5, lengths[i], "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

static const char *printed(const struct kp_rankwaits *w)
{
    static char text[512];
    text[0] = 0;
    FILE *out = fmemopen(text, sizeof text, "w");
    kp_rankwaits_print(out, w);
    fclose(out);
    return text;
}

static void the_rank_with_the_shortest_time_came_last(void **state)
{
    struct kp_rankwaits w = {0};
    (void)state;
    rank_add(&w, 1, (const int[]){5, 6, 40}, 3);
    rank_add(&w, 0, (const int[]){50, 60, 10}, 3);
    kp_rankwaits_settle(&w);
    assert_int_equal(w.rank_count, 2);
    assert_int_equal(w.matched, 3);
    assert_int_equal(w.ranks[1].last, 2);
    assert_int_equal(w.ranks[0].waited_ns, 45000 + 54000);
    assert_int_equal(w.ranks[1].waited_ns, 30000);
    assert_string_equal(printed(&w),
                        "ranks    rank 1 came last to 2 of 3 collectives; waited for others: rank 0 0.1 ms, "
                        "rank 1 0.0 ms\n");
    assert_null(kp_rankwaits_last(&w, 0));
    assert_null(kp_rankwaits_last(&w, 1)); /* it waits for 30 of its 51 us */
    kp_rankwaits_fini(&w);
}

static void a_rank_that_others_wait_for_has_no_wait(void **state)
{
    struct kp_rankwaits w = {0};
    (void)state;
    rank_add(&w, 1, (const int[]){5, 6, 7}, 3);
    kp_rankwaits_settle(&w);
    assert_null(kp_rankwaits_last(&w, 1)); /* one rank alone */
    kp_rankwaits_fini(&w);
    rank_add(&w, 1, (const int[]){5, 6, 7}, 3);
    rank_add(&w, 0, (const int[]){50, 60, 5}, 3);
    kp_rankwaits_settle(&w);
    assert_null(kp_rankwaits_last(&w, 0)); /* it came last, too, and waits for most of its time */
    assert_int_equal(kp_rankwaits_last(&w, 1)->last, 2);
    assert_int_equal(kp_rankwaits_last(&w, 1)->spent_ns, 18000);
    assert_null(kp_rankwaits_last(&w, 2));
    kp_rankwaits_fini(&w);
}

static void what_one_rank_lacks_is_not_compared(void **state)
{
    struct kp_rankwaits w = {0};
    (void)state;
    rank_add(&w, 0, (const int[]){50, 60}, 2);
    kp_rankwaits_settle(&w);
    assert_string_equal(printed(&w), ""); /* one rank alone */
    kp_rankwaits_fini(&w);
    rank_add(&w, 0, (const int[]){50, 60}, 2);
    rank_add(&w, 1, (const int[]){0, 0}, 2);
    kp_rankwaits_settle(&w);
    assert_int_equal(w.matched, 0);
    assert_string_equal(printed(&w), "ranks    no collective is in the traces of all ranks\n");
    kp_rankwaits_fini(&w);
}

/* Each step's collective has the step's number, or none, in its group; rank 1 records one step later. */
static void gpu_add(struct kp_rankwaits *w, int rank, const int *lengths, bool has_numbers)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":2},", rank);
    for (int i = 0; i < 3; i++) {
        char name[32], args[200], number[32] = "";
        const int step = i + rank;
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, 100 * step, 100, "");
        if (has_numbers) snprintf(number, sizeof number, ",\"Seq\":%d", step);
        snprintf(args, sizeof args,
                 "\"stream\":9,\"Collective name\":\"allreduce\",\"dtype\":\"Float\",\"In msg nelems\":250000,"
                 "\"Group size\":2,\"Process Group Name\":\"0\"%s",
                 number);
        event(t, "kernel", "ncclDevKernel_AllReduce", 9, 100 * step + 5, lengths[i], args);
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

static void ranks_that_begin_at_different_steps_are_matched(void **state)
{
    (void)state;
    for (int has_numbers = 0; has_numbers < 2; has_numbers++) {
        struct kp_rankwaits w = {0};
        gpu_add(&w, 0, (const int[]){70, 60, 10}, has_numbers);
        gpu_add(&w, 1, (const int[]){10, 50, 80}, has_numbers);
        kp_rankwaits_settle(&w);
        assert_int_equal(w.matched, 2);
        assert_int_equal(w.ranks[0].waited_ns, 50000);
        assert_int_equal(w.ranks[1].waited_ns, 40000);
        assert_non_null(strstr(printed(&w), "; transfers at 100.0 GB/s of bus bandwidth\n")); /* 1 MB in 10 us */
        kp_rankwaits_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rank_with_the_shortest_time_came_last),
        cmocka_unit_test(a_rank_that_others_wait_for_has_no_wait),
        cmocka_unit_test(what_one_rank_lacks_is_not_compared),
        cmocka_unit_test(ranks_that_begin_at_different_steps_are_matched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
