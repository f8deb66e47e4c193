// SPDX-License-Identifier: Apache-2.0
/* test_rankalike.c - what is said of all ranks at once, and of one that stands out */
#include "export/answers/ranks/rankwaits.h"

#include "test/unit/tree/little_trace.h"

enum { STEPS = 12, RANKS = 3 };

static const char *more = "", *loader = ""; /* facts of each trace; a range in each step */
static const char *host = "h";

struct alike { /* a rank */
    int had_us, waited_us;
    int lasts[3]; /* its all-reduce in each third step, us */
};

static void rank_add(struct kp_rankwaits *w, int rank, const struct alike *of)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head,
             "\"distributedInfo\":{\"rank\":%d,\"world_size\":%d},\"host_name\":\"%s\",\"kprof\":{\"core_had_us\":%d,"
             "\"core_waited_us\":%d%s},",
             rank, RANKS, *host ? host : (const char *[]){"a", "b", "c"}[rank], of->had_us, of->waited_us, more);
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        event(t, "user_annotation", name, 1, 1000 * (i + 1), 1000, "");
        if (*loader) event(t, "user_annotation", loader, 1, 1000 * (i + 1) + 5, 5, "");
        op(t, "aten::mm", 1000 * (i + 1), 5);
        event(t, "user_annotation", "gloo:all_reduce", 2, 1000 * (i + 1) + 700 - of->lasts[i % 3], of->lasts[i % 3],
              "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

static struct kp_rankwaits job_of(const struct alike of[RANKS])
{
    struct kp_rankwaits w = {0};
    for (int rank = 0; rank < RANKS; rank++) rank_add(&w, rank, &of[rank]);
    kp_rankwaits_settle(&w);
    return w;
}

static void check_core(const struct alike of[RANKS], const char *said)
{
    struct kp_rankwaits w = job_of(of);
    char text[KP_RANKTEXT_BYTES];
    assert_string_equal(kp_rankwaits_core_text(text, sizeof text, &w), said);
    kp_rankwaits_fini(&w);
}

static void ranks_that_lack_a_core_alike_are_told_together(void **state)
{
    (void)state;
    check_core((const struct alike[]){{250, 750, {50, 50, 50}}, {260, 740, {50, 50, 50}}, {252, 748, {50, 50, 50}}},
               "each rank had no CPU core for 74 to 75 % of the time that it wanted one");
    check_core((const struct alike[]){{250, 750, {50, 50, 50}}, {250, 750, {50, 50, 50}}, {250, 750, {50, 50, 50}}},
               "each rank had no CPU core for 75 % of the time that it wanted one");
}

static void a_rank_that_lacks_a_core_alone_is_named(void **state)
{
    (void)state;
    check_core((const struct alike[]){{900, 100, {50, 50, 50}}, {250, 750, {50, 50, 50}}, {800, 200, {50, 50, 50}}},
               "rank 1 had no CPU core for 75 % of the time that it wanted one");
    check_core((const struct alike[]){{0, 0, {50, 50, 50}}, {250, 750, {50, 50, 50}}, {250, 750, {50, 50, 50}}},
               "rank 1 had no CPU core for 75 % of the time that it wanted one");
}

static const char *printed(const struct alike of[RANKS])
{
    static char text[512];
    struct kp_rankwaits w = job_of(of);
    FILE *out = fmemopen(text, sizeof text, "w");
    kp_rankwaits_print(out, &w);
    fclose(out);
    kp_rankwaits_fini(&w);
    return text;
}

/* Each is last in a third of the steps, where the others wait for 300 us. */
static void none_is_named_where_each_arrives_last_as_often(void **state)
{
    (void)state;
    assert_string_equal(
        printed((const struct alike[]){{1, 0, {310, 310, 10}}, {1, 0, {310, 10, 310}}, {1, 0, {10, 310, 310}}}),
        "ranks    each arrived last about as often as the others (12 collectives); waited for others per step: rank 0 "
        "200 us, rank 1 200 us, rank 2 200 us\n");
}

static void one_that_arrives_last_more_often_is_named(void **state)
{
    const char *const said =
        printed((const struct alike[]){{1, 0, {310, 310, 10}}, {1, 0, {10, 10, 310}}, {1, 0, {310, 310, 310}}});
    (void)state;
    assert_non_null(strstr(said, "ranks    rank 1 arrived last at 8 of 12 collectives; waited for others per step: "));
}

static void check_cores(int had_us, const char *facts, enum kp_rankcores kind, const char *said)
{
    const struct alike one = {had_us, 1000, {50, 50, 50}}, of[RANKS] = {one, one, one};
    char text[512];
    more = facts;
    struct kp_rankwaits w = job_of(of);
    more = "";
    assert_int_equal(kp_rankwaits_cores_text(text, sizeof text, &w, 1), kind);
    assert_string_equal(text, said);
    kp_rankwaits_fini(&w);
}

#define TWO_CORES ",\"cores\":\"2\",\"busy_threads\":\"2\",\"core_others_us\":1000"
#define OF_RANKS "the job's 3 ranks on this machine "

/* Of 12 ms on two cores. */
static void ranks_that_take_the_cores_from_one_another_are_told(void **state)
{
    (void)state;
    check_cores(7000, TWO_CORES, KP_RANKCORES_RANKS,
                "The job's 3 ranks on this machine ran 6 threads on 2 cores and had 100 % of their time");
    check_cores(3000, TWO_CORES, KP_RANKCORES_RANKS,
                "The job's 3 ranks on this machine ran 6 threads on 2 cores and had 50 % of their time; other programs "
                "or a container limit may have had the rest");
    check_cores(7000, ",\"cores\":\"2\"", KP_RANKCORES_RANKS,
                "The job's 3 ranks on this machine had 88 % of the time of the 2 cores");
}

static void ranks_that_have_little_of_the_cores_lose_them_to_others(void **state)
{
    (void)state;
    check_cores(900, TWO_CORES, KP_RANKCORES_OTHERS,
                "Other programs or a container limit used the cores: " OF_RANKS
                "ran 6 threads on 2 cores and had 24 % of their time");
    check_cores(6000, ",\"cores\":\"4\",\"busy_threads\":\"1\"", KP_RANKCORES_OTHERS,
                "Other programs or a container limit used the cores: " OF_RANKS
                "ran 3 threads on 4 cores and had 38 % of their time");
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
    check_cores(900, TWO_CORES, KP_RANKCORES_OTHERS,
                "Other programs, DataLoader workers or a container limit used the cores: " OF_RANKS
                "ran 6 threads on 2 cores and had 24 % of their time");
    loader = "";
}

static void ranks_of_other_machines_and_traces_without_times_tell_nothing(void **state)
{
    (void)state;
    check_cores(0, TWO_CORES, KP_RANKCORES_UNTOLD, "");
    check_cores(7000, "", KP_RANKCORES_UNTOLD, "");
    host = "";
    check_cores(7000, TWO_CORES, KP_RANKCORES_UNTOLD, "");
    host = "h";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_lack_a_core_alike_are_told_together),
        cmocka_unit_test(a_rank_that_lacks_a_core_alone_is_named),
        cmocka_unit_test(none_is_named_where_each_arrives_last_as_often),
        cmocka_unit_test(one_that_arrives_last_more_often_is_named),
        cmocka_unit_test(ranks_that_take_the_cores_from_one_another_are_told),
        cmocka_unit_test(ranks_that_have_little_of_the_cores_lose_them_to_others),
        cmocka_unit_test(ranks_of_other_machines_and_traces_without_times_tell_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
