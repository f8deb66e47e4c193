// SPDX-License-Identifier: Apache-2.0
/* test_ranklonger.c - why steps of one rank are long by communication */
#include "export/answers/ranks/rankwaits.h"

#include "test/unit/tree/little_trace.h"

enum { STEPS = 9, OWN_US = 30, COMM_US = 20, LONG = 5 };
static const struct kp_longer_step longer_step = {LONG, 80e3};

/* Steps of an op and a collective. Step LONG has so much more of each. kprof: members of the file's head. */
static void rank_add(struct kp_rankwaits *w, int rank, int more_own, int more_comm, const char *kprof)
{
    void *state = NULL;
    int at = 100;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":2},\"kprof\":{%s},", rank,
             kprof);
    for (int i = 0; i < STEPS; i++) {
        const int own = OWN_US + (i == LONG ? more_own : 0), comm = COMM_US + (i == LONG ? more_comm : 0);
        numbered_step(t, i, at, own + comm);
        op(t, "aten::mm", at, own);
        event(t, "user_annotation", "gloo:all_reduce", 2, at + own, comm, "");
        at += own + comm;
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

static void the_other_rank_had_no_core_or_more_to_do_or_neither(void **state)
{
    static const char none[] = "\"core_had_us\":1000,\"core_waited_us\":9",
                      always[] = "\"core_had_us\":100,\"core_waited_us\":200",
                      then[] = "\"core_had_us\":1000,\"core_waited_us\":70,\"core_steps\":\"5:70\"",
                      as_ever[] =
                          "\"core_had_us\":1000,\"core_waited_us\":70,\"core_steps\":\"1:25,2:25,3:25,4:25,5:30,"
                          "6:25,7:25,8:25\"";
    static const struct {
        int more_own, more_comm; /* of rank 1 in the long step; that of rank 0 lasts 80 us longer */
        const char *kprof;       /* of rank 1 */
        bool is_each_nth;
        enum kp_ranklonger_kind kind;
        long step;
    } rows[] = {
        {80, 0, then, false, KP_RANKLONGER_CORE, 5},    /* in that step */
        {80, 0, then, true, KP_RANKLONGER_CORE, 5},     /* what is known of the step is no guess */
        {80, 0, as_ever, false, KP_RANKLONGER_OWN, -1}, /* no more than in the others */
        {80, 0, none, false, KP_RANKLONGER_OWN, -1},    {0, 80, none, false, KP_RANKLONGER_UNTOLD, 0}, /* the network */
        {0, 80, always, false, KP_RANKLONGER_CORE, -1}, /* by chance in this step */
        {0, 80, always, true, KP_RANKLONGER_UNTOLD, 0}, /* by no chance */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_rankwaits w = {0};
        rank_add(&w, 0, 0, 80, none);
        rank_add(&w, 1, rows[i].more_own, rows[i].more_comm, rows[i].kprof);
        kp_rankwaits_settle(&w);
        const struct kp_longer_steps steps = {&longer_step, 1, rows[i].is_each_nth};
        const struct kp_ranklonger longer = kp_rankwaits_longer(&w, 0, &steps);
        if (longer.kind != rows[i].kind) fail_msg("row %zu: %d", i, (int)longer.kind);
        if (longer.kind != KP_RANKLONGER_UNTOLD) assert_int_equal(longer.of->rank, 1);
        if (longer.kind != KP_RANKLONGER_UNTOLD) assert_int_equal(longer.step, rows[i].step);
        kp_rankwaits_fini(&w);
    }
}

static void one_rank_alone_tells_nothing(void **state)
{
    struct kp_rankwaits w = {0};
    (void)state;
    rank_add(&w, 0, 0, 80, "\"core_had_us\":1000");
    kp_rankwaits_ask(&w, &(struct kp_longer_steps){&longer_step, 1, true});
    kp_rankwaits_ask(&w, &(struct kp_longer_steps){.is_each_nth = true}); /* a finding of something else */
    kp_rankwaits_settle(&w);
    assert_int_equal(w.asked_count, 1);
    assert_int_equal(w.asked[0].rank, 0);
    assert_int_equal(w.asked[0].longer.count, 1);
    assert_ptr_not_equal(w.asked[0].longer.of, &longer_step); /* a copy */
    assert_memory_equal(w.asked[0].longer.of, &longer_step, sizeof longer_step);
    assert_true(w.asked[0].longer.is_each_nth);
    assert_int_equal(kp_rankwaits_longer(&w, 0, &w.asked[0].longer).kind, KP_RANKLONGER_UNTOLD);
    kp_rankwaits_fini(&w);
}

/* Most of the wait lies in one step of nine: that is no rank that is late in each. */
static void a_late_rank_says_in_how_many_steps_it_is(void **state)
{
    static const char core[] = "\"core_had_us\":1000,\"core_waited_us\":9";
    struct kp_rankwaits w = {0};
    (void)state;
    rank_add(&w, 0, 0, 500, core);
    rank_add(&w, 1, 500, 0, core);
    kp_rankwaits_settle(&w);
    const struct kp_rankkept kept = kp_rankwaits_kept_steps(&w, 1);
    assert_int_equal(kept.steps, 1);
    assert_int_equal(kept.of, STEPS);
    assert_int_equal(kept.longest, LONG);
    assert_int_equal(kp_rankwaits_kept_steps(&w, 0).of, 0);
    kp_rankwaits_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_rank_says_in_how_many_steps_it_is),
        cmocka_unit_test(the_other_rank_had_no_core_or_more_to_do_or_neither),
        cmocka_unit_test(one_rank_alone_tells_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
