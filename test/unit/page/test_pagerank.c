// SPDX-License-Identifier: Apache-2.0
/* test_pagerank.c - what a page compares between ranks: parts of a step, collectives */
#include "test/unit/page/little_page.h"

/* What the browser reads of the block: the JSON behind the directory's beginning. The caller frees it. */
static char *rank_of(struct little *t, struct kp_page *page)
{
    static const char begin[] = "<script type=\"text/plain\" class=\"rank\">", end[] = "</script>\n";
    char *text = NULL;
    size_t letters = 0, bytes;
    FILE *f = open_memstream(&text, &letters);
    page->chosen = t->chosen;
    assert_int_equal(kp_page_rank_put(page, "a <b>.json", &(struct kp_rankwaits){.trace_count = 3}, f), 0);
    fclose(f);
    assert_memory_equal(text, begin, sizeof begin - 1);
    assert_string_equal(text + letters - (sizeof end - 1), end);
    unsigned char *plain = inflated(text + sizeof begin - 1, letters - (sizeof begin - 1) - (sizeof end - 1), &bytes);
    memmove(plain, plain + 8, bytes - 7);
    free(text);
    return (char *)plain;
}

static void a_rank_has_its_head_and_steps(void **state)
{
    struct little *t = *state;
    snprintf(t->head, sizeof t->head, "\"host_name\":\"node7\",\"distributedInfo\":{\"rank\":3,\"world_size\":4},");
    trace_of(t, "step 2 0 100; op aten::mul 10 20; range gloo:all_reduce 40 30; range gloosy 80 5");
    event(t, "user_annotation", "gloo:broadcast", 1, 120, 30, ""); /* in no step */
    struct kp_page page = page_make(t);
    char *rank = rank_of(t, &page);
    assert_non_null(strstr(rank, "\"label\":\"a <b>.json\",\"rank\":\"3\",\"host\":\"node7\""));
    assert_non_null(strstr(rank, "\"gpu\":false,\"steps\":1,\"step\":100000,\"parts\":["));
    assert_non_null(strstr(rank, "],\"trace\":2}"));
    free(rank);
    page_fini(&page);
}

/* A trace that tells no rank of several waits for none. */
static void a_trace_of_no_job_is_not_compared(void **state)
{
    struct little *t = *state;
    event(t, "kernel", "ncclDevKernel_AllReduce", 7, 40, 25, "");
    struct kp_page page = page_make(t);
    char *rank = rank_of(t, &page);
    assert_non_null(strstr(rank, "\"gpu\":true,\"steps\":0,\"step\":0"));
    assert_non_null(strstr(rank, ",\"trace\":null}"));
    free(rank);
    page_fini(&page);
}

/* Three steps of 1 ms of a rank, each with a collective of so many us. */
static const char *host = ""; /* a member of the traces' heads */
static int long_steps = 3;    /* of the others each rank's collective lasts 10 us */

static void rank_add(struct kp_rankwaits *ranks, int rank, int wait)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "%s\"distributedInfo\":{\"rank\":%d,\"world_size\":2},", host, rank);
    for (int i = 0; i < 3; i++) {
        const int us = i < long_steps ? wait : 10;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        event(t, "user_annotation", name, 1, 1000 * i, 1000, "");
        op(t, "aten::mm", 1000 * i, 900 - us);
        event(t, "user_annotation", "gloo:all_reduce", 2, 1000 * i + 900 - us, us, "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(ranks, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

static const struct kp_stuck_told *stands; /* how the job stands */
static char *verdict_of(int first_wait, int second_wait)
{
    static const char begin[] = "<script type=\"text/plain\" class=\"verdict\">", end[] = "</script>\n";
    struct kp_rankwaits ranks = {0};
    char *text = NULL;
    size_t letters = 0, bytes;
    rank_add(&ranks, 0, first_wait);
    rank_add(&ranks, 1, second_wait);
    kp_rankwaits_settle(&ranks);
    FILE *f = open_memstream(&text, &letters);
    assert_int_equal(kp_page_verdict_put(&ranks, stands, f), 0);
    fclose(f);
    assert_memory_equal(text, begin, sizeof begin - 1);
    unsigned char *plain = inflated(text + sizeof begin - 1, letters - (sizeof begin - 1) - (sizeof end - 1), &bytes);
    memmove(plain, plain + 8, bytes - 7);
    for (size_t at = strlen((char *)plain); at && plain[at - 1] == ' ';) plain[--at] = 0; /* blanks fill it up */
    free(text);
    kp_rankwaits_fini(&ranks);
    return (char *)plain;
}

#define LATE                                                                                                         \
    "rank 1 spends 0.8 ms of each step on ops, the other rank 0.4 ms; aten::mm takes 0.8 ms per step there, 0.4 ms " \
    "on the "                                                                                                        \
    "other. Larger inputs are not ruled out: kprof run --record-shapes compares them"

/* Takes what the docs say of a finding out of the verdict. */
static void about_take(char *verdict)
{
    char *const about = strstr(verdict, ",\"about\":\"");
    assert_non_null(about);
    const char *const end = strstr(about + 10, "\",\"");
    assert_true(end && strstr(about, "One rank arrives late") < end);
    memmove(about, end + 1, strlen(end + 1) + 1);
}

static void a_rank_that_is_late_in_one_step_of_three_is_not_critical(void **state)
{
    (void)state;
    long_steps = 1;
    char *verdict = verdict_of(800, 10);
    long_steps = 3;
    assert_non_null(
        strstr(verdict, "the step waits for rank 1, which arrived last at 1 of 3 collectives; the wait is"));
    assert_non_null(strstr(verdict, "; most of that wait lies in 1 of 3 steps\",\"change\":\"See what rank 1 does in "
                                    "those steps and not in others: kprof report --step 0 of its trace.\""));
    assert_non_null(strstr(verdict, "\"late\":{\"rank\":\"1\",\"critical\":false,"));
    assert_non_null(strstr(verdict, "\"steps\":1,\"id\":\"late-rank\""));
    free(verdict);
}

static void the_rank_that_waits_and_the_late_one_are_told_apart(void **state)
{
    (void)state;
    char *verdict = verdict_of(500, 70);
    about_take(verdict);
    assert_string_equal(
        verdict,
        "{\"columns\":{},\"head\":{\"id\":\"exposed-communication\",\"stuck\":null,\"stuck_next\":null,\"cause\":"
        "\"" LATE
        "\",\"waits\":[[1290000,0],[0,3]],\"matched\":3,\"left\":0,\"untold\":0,\"bandwidth\":0.000000,\"missing\":"
        "null,"
        "\"most\":[\"1\",3,3],\"ranks\":[{\"rank\":\"0\",\"what\":\"the step waits for rank 1, which arrived last at 3 "
        "of 3 "
        "collectives; the wait is 86 % of the collective time\",\"change\":\"Even out the work of the ranks: " LATE
        ".\",\"gpu\":true,\"note\":false,\"part\":0.860000,\"small\":0.000000},"
        "{\"rank\":\"1\",\"what\":\"the step waits for the network (this rank arrived last at 3 of 3 "
        "collectives)\",\"change\":\"Send less, or less often: gradients of several steps together, in fewer "
        "and "
        "larger pieces.\",\"gpu\":false,\"note\":false,\"part\":1.000000,\"small\":1.000000}],"
        "\"cores\":[],"
        "\"late\":{\"rank\":\"1\",\"critical\":true,\"cost\":430000,\"share\":0.430000,\"steps\":3,"
        "\"id\":\"late-rank\",\"what\":"
        "\"the other rank waits for this one, which arrived last at 3 of 3 collectives\",\"change\":\"Even "
        "out the "
        "work of the ranks: " LATE
        ".\",\"where\":\"aten::mm\",\"line\":null,\"gap\":false,\"small\":false,\"bytes\":0,\"once\":0,"
        "\"once_step\":0}}}");
    free(verdict);
}

static void what_others_wait_for_a_late_rank_without_cores_says_so(void **state)
{
    (void)state;
    host = "\"kprof\":{\"core_had_us\":\"1500\",\"core_waited_us\":\"400\"},";
    char *crowded = verdict_of(500, 70);
    host = "";
    char *calm = verdict_of(500, 70);
    assert_non_null(strstr(strstr(crowded, "\"late\":{"), "\"share_of\":\"of a step with waits for"));
    assert_null(strstr(calm, "for a CPU core"));
    free(crowded);
    free(calm);
}

static void who_has_the_cores_of_a_rank_is_told_by_all_ranks(void **state)
{
    (void)state;
    host = "\"host_name\":\"node7\",\"kprof\":{\"cores\":\"1\",\"busy_threads\":\"1\",\"core_had_us\":1500,"
           "\"core_waited_us\":400},";
    char *verdict = verdict_of(550, 500);
    host = "";
    assert_non_null(strstr(verdict, "\"cores\":[{\"rank\":\"0\",\"ranks\":true,\"text\":\"The job's 2 ranks on this "
                                    "machine ran 2 threads on 1 core and had 100 % of its time\"},{\"rank\":\"1\","));
    free(verdict);
}

static void no_rank_of_a_job_that_stands_is_late(void **state)
{
    (void)state;
    const struct kp_stuck_told told = {"rank 1 did nothing for 9.0 s", "`kprof hang .` says more.", true, 1};
    stands = &told;
    char *verdict = verdict_of(500, 70);
    stands = NULL;
    assert_non_null(strstr(verdict, "\"stuck\":\"rank 1 did nothing for 9.0 s\",\"stuck_next\":\"`kprof hang .` says "
                                    "more.\",\"stuck_rank\":\"1\","));
    assert_non_null(strstr(verdict, "\"ranks\":[],\"cores\":[],\"late\":null"));
    free(verdict);
}

/* The one is not late for whom the other waits a tenth of the transfer. */
static void a_rank_that_hardly_waits_waits_for_the_network(void **state)
{
    (void)state;
    char *verdict = verdict_of(550, 500);
    assert_null(strstr(verdict, "waits for rank 1"));
    assert_non_null(strstr(verdict, "\"late\":null"));
    free(verdict);
}

static void ranks_of_one_machine_wait_for_no_network(void **state)
{
    (void)state;
    host = "\"host_name\":\"node7\",";
    char *verdict = verdict_of(500, 70);
    host = "";
    assert_null(strstr(verdict, "network"));
    assert_non_null(strstr(
        verdict,
        "the step waits for the collectives' own work, on one machine (this rank arrived last at 3 of 3 collectives)"));
    free(verdict);
}

static void collectives_of_a_few_bytes_are_not_made_smaller(void **state)
{
    static const int64_t sizes[] = {3 * 16383, 3 * 16384, 0};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct kp_rankwaits ranks = {0};
        struct kp_rankwords words;
        rank_add(&ranks, 0, 500);
        rank_add(&ranks, 1, 70);
        kp_rankwaits_settle(&ranks);
        assert_int_equal(ranks.matched, 3);
        ranks.bus_bytes = sizes[i];
        assert_true(kp_finding_of_rank(&words, &ranks, 1));
        assert_int_equal(strncmp(words.change, "Start fewer collectives", 23) == 0, i == 0);
        assert_int_equal(strncmp(words.change, "Send less", 9) == 0, i != 0);
        kp_rankwaits_fini(&ranks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_is_late_in_one_step_of_three_is_not_critical),
        cmocka_unit_test_setup_teardown(a_rank_has_its_head_and_steps, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_trace_of_no_job_is_not_compared, little_setup, little_teardown),
        cmocka_unit_test(collectives_of_a_few_bytes_are_not_made_smaller),
        cmocka_unit_test(the_rank_that_waits_and_the_late_one_are_told_apart),
        cmocka_unit_test(what_others_wait_for_a_late_rank_without_cores_says_so),
        cmocka_unit_test(who_has_the_cores_of_a_rank_is_told_by_all_ranks),
        cmocka_unit_test(no_rank_of_a_job_that_stands_is_late),
        cmocka_unit_test(a_rank_that_hardly_waits_waits_for_the_network),
        cmocka_unit_test(ranks_of_one_machine_wait_for_no_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
