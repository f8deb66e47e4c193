// SPDX-License-Identifier: Apache-2.0
/* test_rankwaits.c - of several ranks, who came last to a collective, and how long the others waited */
#include "export/answers/ranks/rankwaits.h"

#include "test/unit/tree/little_trace.h"

static const char *job_of = "";

/* A rank's steps have a collective each of these lengths; one more lies before the first step. */
static void rank_add(struct kp_rankwaits *w, int rank, const int *lengths, int count)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":2}%s,", rank, job_of);
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
    assert_string_equal(printed(&w), "ranks    each arrived last about as often as the others (3 collectives); waited "
                                     "for others per step: rank 0 33.0 "
                                     "us, rank 1 10.0 us\n");
    assert_int_equal(kp_rankwaits_kind(&w, 0), KP_RANKWAIT_TURNS);
    assert_int_equal(kp_rankwaits_kind(&w, 1), KP_RANKWAIT_TURNS); /* it waits for 30 of its 51 us */
    kp_rankwaits_fini(&w);
}

static void a_rank_that_others_wait_for_has_no_wait(void **state)
{
    struct kp_rankwaits w = {0};
    (void)state;
    rank_add(&w, 1, (const int[]){5, 6, 7}, 3);
    kp_rankwaits_settle(&w);
    assert_int_equal(kp_rankwaits_kind(&w, 1), KP_RANKWAIT_UNTOLD); /* one rank alone */
    kp_rankwaits_fini(&w);
    rank_add(&w, 1, (const int[]){5, 6, 7}, 3);
    rank_add(&w, 0, (const int[]){50, 60, 5}, 3);
    kp_rankwaits_settle(&w);
    assert_int_equal(kp_rankwaits_kind(&w, 0), KP_RANKWAIT_LATE); /* it came last, too, and waits most of the time */
    assert_int_equal(kp_rankwaits_kind(&w, 1), KP_RANKWAIT_OWN);
    assert_int_equal(kp_rankwaits_row(&w, 1)->last, 2);
    assert_int_equal(kp_rankwaits_row(&w, 1)->spent_ns, 18000);
    assert_int_equal(kp_rankwaits_kind(&w, 2), KP_RANKWAIT_UNTOLD);
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

/* ---- jobs of any size: each rank's steps of 1000 us have the collectives that are given ---- */

struct one { /* of a step: group NULL: none is in the file, as over gloo */
    int from, last;
    const char *group, *members;
    int size;
};

static const char *host_of = "\"host_name\":\"node7\",";

static void ones_put(struct little *t, int step, const struct one *ones, int count, bool has_numbers)
{
    for (int i = 0; i < count; i++) {
        char args[256] = "", number[32] = "";
        const struct one *const one = &ones[i];
        if (has_numbers) snprintf(number, sizeof number, ",\"Seq\":%d", step);
        if (one->group)
            snprintf(args, sizeof args,
                     "\"stream\":9,\"Collective name\":\"allreduce\",\"dtype\":\"Float\",\"In msg nelems\":1000,"
                     "\"Group size\":%d,\"Process Group Name\":\"%s\",\"Process Group Ranks\":\"%s\"%s",
                     one->size, one->group, one->members, number);
        event(t, one->group ? "kernel" : "user_annotation", one->group ? "ncclDevKernel_AllReduce" : "gloo:all_reduce",
              9 + i, 1000 * step + one->from, one->last, args);
    }
}

/* Steps first to last of a rank. */
static void steps_add(struct kp_rankwaits *w, int rank, int world, int first, int last, const struct one *ones,
                      int count, bool has_numbers)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "%s\"distributedInfo\":{\"rank\":%d,\"world_size\":%d},", host_of, rank, world);
    for (int i = first; i <= last; i++) {
        numbered_step(t, i, 1000 * i, 1000);
        op(t, "aten::mm", 1000 * i, 5);
        ones_put(t, i, ones, count, has_numbers);
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

/* Four ranks in pairs of two kinds. Rank 3 is late by 600 us in its first pair, and rank 2 since it waited there. */
static void a_group_smaller_than_the_job_is_matched_by_name_and_members(void **state)
{
    (void)state;
    for (int has_numbers = 0; has_numbers < 2; has_numbers++) {
        struct kp_rankwaits w = {0};
        const struct one ranks[4][2] = {{{10, 20, "tp", "[0, 1]", 2}, {100, 620, "dp", "[0, 2]", 2}},
                                        {{10, 20, "tp", "[0, 1]", 2}, {100, 620, "dp", "[1, 3]", 2}},
                                        {{10, 620, "tp", "[2, 3]", 2}, {700, 20, "dp", "[0, 2]", 2}},
                                        {{610, 20, "tp", "[2, 3]", 2}, {700, 20, "dp", "[1, 3]", 2}}};
        for (int rank = 3; rank >= 0; rank--) steps_add(&w, rank, 4, 0, 4, ranks[rank], 2, has_numbers);
        kp_rankwaits_settle(&w);
        assert_int_equal(w.matched, 20);
        assert_int_equal(kp_rankwaits_late(&w)->rank, 3);
        assert_int_equal(w.ranks[3].held_ns, 5 * 1800000); /* rank 2 was late since it waited for rank 3 */
        assert_int_equal(w.ranks[2].held_ns, 0);
        assert_int_equal(w.ranks[0].waited_ns, 5 * 600000);
        assert_non_null(strstr(printed(&w), "rank 3 arrived last at 10 of 10 collectives"));
        kp_rankwaits_fini(&w);
    }
}

/* The pairs have no group in the file. Ranks 0 and 1 are done before rank 2 begins. */
static void pairs_without_a_group_are_told_apart_by_time(void **state)
{
    struct kp_rankwaits w = {0};
    const struct one ranks[4] = {
        {10, 20, NULL, NULL, 0}, {12, 18, NULL, NULL, 0}, {700, 10, NULL, NULL, 0}, {10, 700, NULL, NULL, 0}};
    (void)state;
    for (int rank = 0; rank < 4; rank++) steps_add(&w, rank, 4, 0, 3, &ranks[rank], 1, false);
    kp_rankwaits_settle(&w);
    assert_int_equal(w.matched, 8);
    assert_int_equal(w.ranks[0].waited_ns, 4 * 2000);
    assert_int_equal(w.ranks[3].waited_ns, 4 * 690000);
    assert_int_equal(kp_rankwaits_late(&w)->rank, 2);
    kp_rankwaits_fini(&w);
}

/* Rank 0 meets ranks 1 and 2, which do not meet: any of them may be with rank 3, or with none. */
/* Two trainings of a sweep have the same folder: each has a rank 0 and a rank 1. */
static void ranks_of_two_jobs_are_not_compared(void **state)
{
    struct kp_rankwaits w = {0};
    (void)state;
    for (int i = 0; i < 4; i++) {
        job_of = i < 2 ? ",\"kprof\":{\"job\":\"sweep-1\"}" : ",\"kprof\":{\"job\":\"sweep-2\"}";
        rank_add(&w, i % 2, (const int[]){i % 2 ? 5 : 50}, 1);
        if (i == 1) assert_false(w.has_jobs);
    }
    job_of = "";
    kp_rankwaits_settle(&w);
    assert_string_equal(printed(&w),
                        "ranks    of several jobs, so they are not compared. DIR/latest is the latest job alone\n");
    assert_null(kp_rankwaits_late(&w));
    assert_int_equal(kp_rankwaits_kind(&w, 1), KP_RANKWAIT_UNTOLD);
    assert_null(kp_rankwaits_awaited(&w, 0));
    kp_rankwaits_fini(&w);
}

static void groups_that_nothing_tells_apart_have_no_verdict(void **state)
{
    struct kp_rankwaits w = {0};
    const struct one ranks[3] = {{10, 900, NULL, NULL, 0}, {10, 20, NULL, NULL, 0}, {700, 10, NULL, NULL, 0}};
    (void)state;
    for (int rank = 0; rank < 3; rank++) steps_add(&w, rank, 3, 0, 3, &ranks[rank], 1, false);
    kp_rankwaits_settle(&w);
    assert_int_equal(w.matched, 0);
    assert_int_equal(w.untold, 4);
    assert_null(kp_rankwaits_late(&w));
    assert_non_null(strstr(printed(&w), "4 collectives are of groups that the traces do not tell apart"));
    kp_rankwaits_fini(&w);
}

/* Clocks of two machines tell nothing. */
static void ranks_of_other_machines_need_not_meet(void **state)
{
    struct kp_rankwaits w = {0};
    const struct one early = {10, 300, NULL, NULL, 0}, late = {700, 20, NULL, NULL, 0};
    (void)state;
    steps_add(&w, 0, 2, 0, 3, &early, 1, false);
    host_of = "\"host_name\":\"node8\",";
    steps_add(&w, 1, 2, 0, 3, &late, 1, false);
    host_of = "\"host_name\":\"node7\",";
    kp_rankwaits_settle(&w);
    assert_int_equal(w.matched, 4);
    kp_rankwaits_fini(&w);
}

static void without_some_ranks_there_is_no_verdict(void **state)
{
    struct kp_rankwaits w = {0};
    const struct one early = {10, 300, NULL, NULL, 0}, late = {290, 20, NULL, NULL, 0};
    (void)state;
    steps_add(&w, 0, 5, 0, 3, &early, 1, false);
    steps_add(&w, 3, 5, 0, 3, &late, 1, false);
    kp_rankwaits_settle(&w);
    assert_true(kp_rankwaits_lack(&w));
    assert_null(kp_rankwaits_late(&w));
    assert_int_equal(kp_rankwaits_kind(&w, 3), KP_RANKWAIT_UNTOLD);
    assert_string_equal(printed(&w), "ranks    INCOMPLETE: 2 of 5 ranks are here. Without ranks 1-2 and 4 the last "
                                     "rank is unknown: record all ranks\n");
    kp_rankwaits_fini(&w);
}

/* Two of four ranks, which are a whole group: what they have is known. A group with one of the others is not. */
static void a_whole_group_needs_no_other_rank(void **state)
{
    const struct one early[2] = {{10, 300, "tp", "[0, 1]", 2}, {400, 20, "dp", "[0, 2]", 2}};
    const struct one late[2] = {{290, 20, "tp", "[0, 1]", 2}, {400, 20, "dp", "[1, 3]", 2}};
    (void)state;
    for (int count = 1; count <= 2; count++) {
        struct kp_rankwaits w = {0};
        steps_add(&w, 0, 4, 0, 3, early, count, true);
        steps_add(&w, 1, 4, 0, 3, late, count, true);
        kp_rankwaits_settle(&w);
        assert_int_equal(w.matched, 4);
        assert_int_equal(kp_rankwaits_lack(&w), count == 2);
        assert_int_equal(kp_rankwaits_late(&w) != NULL, count == 1);
        kp_rankwaits_fini(&w);
    }
}

/* Windows of steps 0 to 2 and 5 to 7. Rank 1 lacks the first. */
static void a_window_that_one_rank_lacks_costs_its_steps_alone(void **state)
{
    (void)state;
    for (int by = 0; by < 3; by++) { /* by name, by group, by number in it */
        struct kp_rankwaits w = {0};
        const char *const group = by ? "0" : NULL;
        const struct one early = {10, 300, group, "[0, 1]", 2}, late = {290, 20, group, "[0, 1]", 2};
        steps_add(&w, 0, 2, 0, 2, &early, 1, by == 2);
        steps_add(&w, 0, 2, 5, 7, &early, 1, by == 2);
        steps_add(&w, 1, 2, 5, 7, &late, 1, by == 2);
        kp_rankwaits_settle(&w);
        assert_int_equal(w.matched, 3);
        assert_int_equal(w.partial, 3);
        assert_int_equal(kp_rankwaits_late(&w)->rank, 1);
        assert_int_equal(w.ranks[0].waited_ns, 3 * 280000);
        assert_non_null(strstr(printed(&w), "3 collectives are missing in the trace of some rank, and not counted\n"));
        kp_rankwaits_fini(&w);
    }
}

/* Two buckets on two threads: the step waits for both at once. */
static void waits_that_overlap_are_no_sum(void **state)
{
    struct kp_rankwaits w = {0};
    const struct one early[2] = {{10, 800, NULL, NULL, 0}, {20, 800, NULL, NULL, 0}};
    const struct one late[2] = {{800, 10, NULL, NULL, 0}, {810, 10, NULL, NULL, 0}};
    (void)state;
    steps_add(&w, 0, 2, 0, 3, early, 2, false);
    steps_add(&w, 1, 2, 0, 3, late, 2, false);
    kp_rankwaits_settle(&w);
    assert_int_equal(w.matched, 8);
    assert_int_equal(w.ranks[0].waited_ns, 4 * 800000); /* from 10 to 810 */
    assert_true(kp_rankwaits_kept_ns(&w, 1) == 800000);
    kp_rankwaits_fini(&w);
}

/* Of each three collectives rank 0 comes last to two by 1 us, and rank 1 to one by 300 us. */
static void late_is_who_costs_time_not_who_comes_last_often(void **state)
{
    struct kp_rankwaits w = {0};
    const struct one first[3] = {{10, 320, NULL, NULL, 0}, {400, 20, NULL, NULL, 0}, {500, 20, NULL, NULL, 0}};
    const struct one second[3] = {{310, 20, NULL, NULL, 0}, {400, 21, NULL, NULL, 0}, {500, 21, NULL, NULL, 0}};
    (void)state;
    steps_add(&w, 0, 2, 0, 3, first, 3, false);
    steps_add(&w, 1, 2, 0, 3, second, 3, false);
    kp_rankwaits_settle(&w);
    assert_int_equal(w.ranks[0].last, 8);
    assert_int_equal(kp_rankwaits_late(&w)->rank, 1);
    assert_non_null(strstr(printed(&w), "rank 1 arrived last at 4 of 12 collectives"));
    kp_rankwaits_fini(&w);
}

static void all_collectives_of_a_large_job_count(void **state)
{
    enum { RANKS = 900, STEPS = 60, EACH = 4 };
    struct kp_rankwaits w = {0};
    struct one early[EACH], late[EACH];
    (void)state;
    for (int i = 0; i < EACH; i++) {
        early[i] = (struct one){200 * i, 150, NULL, NULL, 0};
        late[i] = (struct one){200 * i + 140, 10, NULL, NULL, 0};
    }
    for (int rank = 0; rank < RANKS; rank++)
        steps_add(&w, rank, RANKS, 0, STEPS - 1, rank == 399 ? late : early, EACH, false);
    assert_true(w.count > 200000);
    kp_rankwaits_settle(&w);
    assert_int_equal(w.matched, STEPS * EACH);
    assert_int_equal(kp_rankwaits_late(&w)->rank, 399);
    kp_rankwaits_fini(&w);
}

/* Two ranks that wait for each other by turns; the first had no core for so many of its 50 us. */
static void a_wait_of_ranks_without_a_core_is_one_for_a_core(void **state)
{
    static const struct {
        int lengths[2][3];
        const char *job;
        enum kp_rankwait_kind kinds[2];
    } rows[] = {
        {{{50, 6, 50}, {5, 60, 5}}, "", {KP_RANKWAIT_TURNS, KP_RANKWAIT_TURNS}},
        {{{50, 6, 50}, {5, 60, 5}},
         ",\"kprof\":{\"core_had_us\":900,\"core_waited_us\":20}",
         {KP_RANKWAIT_TURNS, KP_RANKWAIT_TURNS}},
        {{{50, 6, 50}, {5, 60, 5}},
         ",\"kprof\":{\"core_had_us\":50,\"core_waited_us\":50}",
         {KP_RANKWAIT_CORE, KP_RANKWAIT_CORE}},
        {{{50, 56, 40}, {45, 60, 41}}, "", {KP_RANKWAIT_OWN, KP_RANKWAIT_OWN}},
        {{{50, 56, 40}, {45, 60, 41}},
         ",\"kprof\":{\"core_had_us\":50,\"core_waited_us\":50}",
         {KP_RANKWAIT_CORE, KP_RANKWAIT_CORE}},
        /* one that is late alone is late, where a core does not explain it */
        {{{50, 60, 40}, {5, 6, 5}},
         ",\"kprof\":{\"core_had_us\":50,\"core_waited_us\":50}",
         {KP_RANKWAIT_LATE, KP_RANKWAIT_CORE}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_rankwaits w = {0};
        char cause[KP_RANKCAUSE_BYTES];
        job_of = rows[i].job;
        for (int rank = 0; rank < 2; rank++) rank_add(&w, rank, rows[i].lengths[rank], 3);
        job_of = "";
        kp_rankwaits_settle(&w);
        for (int rank = 0; rank < 2; rank++)
            if (kp_rankwaits_kind(&w, rank) != rows[i].kinds[rank])
                fail_msg("row %zu, rank %d: %d", i, rank, (int)kp_rankwaits_kind(&w, rank));
        assert_int_equal(kp_rankwaits_crowded(&w) != NULL, strstr(rows[i].job, ":50") != NULL);
        if (!kp_rankwaits_late(&w)) assert_false(kp_rankwaits_cause(cause, sizeof cause, &w, kp_rankwaits_most(&w)));
        kp_rankwaits_fini(&w);
    }
}

/* Rank 1 sleeps in each step and has no core besides: it is late by its own. */
static void a_rank_that_sleeps_is_late_on_a_busy_machine(void **state)
{
    struct kp_rankwaits w = {0};
    (void)state;
    job_of = ",\"kprof\":{\"core_had_us\":30,\"core_waited_us\":180}";
    rank_add(&w, 0, (int[]){90, 80, 85}, 3);
    job_of = ",\"kprof\":{\"core_had_us\":30,\"core_waited_us\":121}";
    rank_add(&w, 1, (int[]){5, 6, 5}, 3);
    job_of = "";
    kp_rankwaits_settle(&w);
    assert_non_null(kp_rankwaits_late(&w));
    assert_int_equal(kp_rankwaits_late(&w)->rank, 1);
    kp_rankwaits_fini(&w);
}

/* Rank 0 waits for rank 1, which had no core for nearly as long: that is late only where it computes more. */
static void a_rank_that_has_as_much_to_do_and_no_core_is_not_late(void **state)
{
    static const char *const jobs[][2] = {{",\"kprof\":{\"core_had_us\":50,\"core_waited_us\":5}",
                                           ",\"kprof\":{\"core_had_us\":51,\"core_waited_us\":120}"},
                                          {",\"kprof\":{\"core_had_us\":50,\"core_waited_us\":5}",
                                           ",\"kprof\":{\"core_had_us\":999,\"core_waited_us\":920}"},
                                          {",\"kprof\":{\"core_had_us\":50,\"core_waited_us\":5}",
                                           ",\"kprof\":{\"core_had_us\":51,\"core_waited_us\":20}"},
                                          {"", ",\"kprof\":{\"core_had_us\":51,\"core_waited_us\":120}"}};
    static const int lengths[2][3] = {{50, 60, 40}, {5, 6, 5}};
    static const enum kp_rankwait_kind kinds[] = {KP_RANKWAIT_CORE, KP_RANKWAIT_LATE, KP_RANKWAIT_LATE,
                                                  KP_RANKWAIT_LATE};
    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct kp_rankwaits w = {0};
        for (int rank = 0; rank < 2; rank++) {
            job_of = jobs[i][rank];
            rank_add(&w, rank, lengths[rank], 3);
        }
        job_of = "";
        kp_rankwaits_settle(&w);
        if (kp_rankwaits_kind(&w, 0) != kinds[i]) fail_msg("row %zu: %d", i, (int)kp_rankwaits_kind(&w, 0));
        assert_int_equal(kp_rankwaits_late(&w) != NULL, kinds[i] == KP_RANKWAIT_LATE);
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
        cmocka_unit_test(a_group_smaller_than_the_job_is_matched_by_name_and_members),
        cmocka_unit_test(pairs_without_a_group_are_told_apart_by_time),
        cmocka_unit_test(ranks_of_two_jobs_are_not_compared),
        cmocka_unit_test(groups_that_nothing_tells_apart_have_no_verdict),
        cmocka_unit_test(ranks_of_other_machines_need_not_meet),
        cmocka_unit_test(without_some_ranks_there_is_no_verdict),
        cmocka_unit_test(a_whole_group_needs_no_other_rank),
        cmocka_unit_test(a_window_that_one_rank_lacks_costs_its_steps_alone),
        cmocka_unit_test(waits_that_overlap_are_no_sum),
        cmocka_unit_test(late_is_who_costs_time_not_who_comes_last_often),
        cmocka_unit_test(a_wait_of_ranks_without_a_core_is_one_for_a_core),
        cmocka_unit_test(a_rank_that_has_as_much_to_do_and_no_core_is_not_late),
        cmocka_unit_test(a_rank_that_sleeps_is_late_on_a_busy_machine),
        cmocka_unit_test(all_collectives_of_a_large_job_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
