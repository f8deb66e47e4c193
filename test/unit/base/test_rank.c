// SPDX-License-Identifier: Apache-2.0
/* test_rank.c - the launcher's variables, and which ranks KPROF_RANKS names */
#include "collector/base/kp_rank.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

/* NAME, value, NAME, value, ..., NULL. */
static const char *text_of(const void *from, const char *variable)
{
    for (const char *const *at = from; *at; at += 2)
        if (strcmp(*at, variable) == 0) return at[1];
    return NULL;
}

static struct kp_rank found(const char *const *variables) { return kp_rank_find(text_of, variables); }

#define FOUND(...) found((const char *const[]){__VA_ARGS__, NULL})

static void the_first_launcher_with_a_rank_counts(void **state)
{
    (void)state;
    struct kp_rank r =
        FOUND("SLURM_PROCID", "9", "SLURM_NTASKS", "16", "RANK", "3", "WORLD_SIZE", "8", "LOCAL_RANK", "1");
    assert_true(r.is_launched && r.rank == 3 && r.size == 8 && r.on_node == 1);
    r = FOUND("RANK", "x", "OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_RANK", "0");
    assert_true(r.is_launched && r.rank == 2 && r.size == 4 && r.on_node == 0);
    r = FOUND("PMI_RANK", "5");
    assert_true(r.is_launched && r.rank == 5 && r.size == 6 && r.on_node == -1);
    r = FOUND("RANK", "5", "WORLD_SIZE", "2", "SLURM_LOCALID", "1");
    assert_true(r.rank == 5 && r.size == 6 && r.on_node == 1);
    r = FOUND("PATH", "/bin");
    assert_true(!r.is_launched && r.rank == 0 && r.size == 1 && r.on_node == 0);
    r = FOUND("RANK", "123456789");
    assert_true(!r.is_launched && r.rank == 0);
}

/* Lightning's own launcher sets no RANK, and in its first process nothing at all. */
static void a_rank_is_counted_from_its_node_where_each_has_as_many(void **state)
{
    (void)state;
    struct kp_rank r = FOUND("LOCAL_RANK", "1", "NODE_RANK", "0", "WORLD_SIZE", "2");
    assert_true(!r.is_launched && r.rank == 1 && r.size == 2 && r.on_node == 1);
    r = FOUND("LOCAL_RANK", "3");
    assert_true(!r.is_launched && r.rank == 3 && r.size == 4 && r.on_node == 3);
    r = FOUND("LOCAL_RANK", "1", "NODE_RANK", "2", "LOCAL_WORLD_SIZE", "4", "WORLD_SIZE", "16");
    assert_true(r.rank == 9 && r.size == 16);
    r = FOUND("LOCAL_RANK", "1", "GROUP_RANK", "2", "WORLD_SIZE", "16"); /* how many a node has is not known */
    assert_true(r.rank == 0 && r.size == 1);
    r = FOUND("SLURM_PROCID", "5", "SLURM_NTASKS", "8", "LOCAL_RANK", "1");
    assert_true(r.is_launched && r.rank == 5 && r.size == 8);
}

static void the_process_group_counts_before_every_launcher(void **state)
{
    (void)state;
    const struct kp_rank r =
        FOUND("RANK", "0", "WORLD_SIZE", "1", "group.rank", "3", "group.size", "4", "LOCAL_RANK", "1");
    assert_true(r.is_launched && r.rank == 3 && r.size == 4 && r.on_node == 1);
}

static void every_variable_that_is_asked_for_is_listed(void **state)
{
    unsigned count = 0;
    (void)state;
    for (; kp_rank_variable(count); count++) {
        const char *const name = kp_rank_variable(count);
        const bool is_part = strstr(name, "LOCAL") || strcmp(name, "NODE_RANK") == 0 || strcmp(name, "GROUP_RANK") == 0;
        if (!(strstr(name, "RANK") || strstr(name, ".rank")) || is_part) continue;
        assert_true(FOUND(name, "7").rank == 7);
    }
    assert_int_equal(count, 27);
}

static const char *job_of(const char *const *variables)
{
    static char id[KP_JOB_ID_BYTES];
    kp_job_id_find(text_of, variables, id);
    return id;
}

#define JOB_OF(...) job_of((const char *const[]){"RANK", "0", "WORLD_SIZE", "2", __VA_ARGS__, NULL})

static void a_job_has_the_id_that_its_launcher_gives_it(void **state)
{
    char one[KP_JOB_ID_BYTES];
    (void)state;
    assert_string_equal(JOB_OF("TORCHELASTIC_RUN_ID", "sweep 7/b", "MASTER_PORT", "29500"), "sweep_7_b");
    assert_string_equal(JOB_OF("TORCHELASTIC_RUN_ID", "none", "MASTER_ADDR", "10.0.0.1", "MASTER_PORT", "29500"),
                        "10.0.0.1-29500");
    assert_string_equal(JOB_OF("SLURM_JOB_ID", "4711", "SLURM_STEP_ID", "2"), "4711-2");
    /* two jobs in one allocation, each started by hand */
    assert_string_equal(JOB_OF("SLURM_JOB_ID", "4711", "MASTER_ADDR", "n1", "MASTER_PORT", "1"), "4711-n1-1");
    assert_string_equal(JOB_OF("PMIX_NAMESPACE", "prterun-n1-99@1"), "prterun-n1-99_1");
    assert_string_equal(JOB_OF("PATH", "/bin"), "");
    assert_string_equal(job_of((const char *const[]){"MASTER_ADDR", "n1", NULL}), ""); /* no rank */
    /* two that differ behind the room */
    snprintf(one, sizeof one, "%s", JOB_OF("TORCHELASTIC_RUN_ID", "a-very-long-id-of-a-sweep-of-many-trainings-00001"));
    assert_int_equal(strlen(one), KP_JOB_ID_BYTES - 1);
    assert_string_not_equal(one, JOB_OF("TORCHELASTIC_RUN_ID", "a-very-long-id-of-a-sweep-of-many-trainings-00002"));
    assert_memory_equal(one, "a-very-long-id-of-a-sweep-of-", 29);
}

static void named(const char *text, uint32_t size, const char *want)
{
    char got[64] = "", why[128];
    assert_int_equal(kp_ranks_check(text, why, sizeof why), 0);
    for (uint32_t i = 0; i < size; i++) {
        const struct kp_rank place = {.rank = i, .size = size, .is_launched = true, .on_node = i % 4};
        if (kp_ranks_name(text, &place)) snprintf(got + strlen(got), sizeof got - strlen(got), "%u ", i);
    }
    assert_string_equal(got, want);
}

static void lists_spans_parts_and_nodes_name_ranks(void **state)
{
    (void)state;
    named("0", 8, "0 ");
    named("0,2-4,7", 8, "0 2 3 4 7 ");
    named("5-100", 8, "5 6 7 ");
    named("first-of-node", 8, "0 4 ");
    named("first-of-node,5", 8, "0 4 5 ");
    named("1/4", 9, "0 4 8 ");
    named("3/4", 8, "0 2 3 4 6 7 ");
    named("4/4", 3, "0 1 2 ");
    named("1/16", 8, "0 ");
    named("8", 8, "");
}

static void a_list_that_names_no_rank_of_the_job_is_noticed(void **state)
{
    (void)state;
    assert_false(kp_ranks_name_any("8,9-12", 8));
    assert_true(kp_ranks_name_any("8,7-12", 8));
    assert_true(kp_ranks_name_any("1/100", 1));
    assert_true(kp_ranks_name_any("first-of-node", 1));
    assert_true(kp_ranks_need_node("3,first-of-node"));
    assert_false(kp_ranks_need_node("3"));
}

static void what_is_no_list_is_refused(void **state)
{
    static const char *const bad[] = {
        "",   ",",  "0,",    ",0",    "1,,2",           "-1",  "3-1",       "3-",  "1-2-3", "a", "0 1", "0/4", "5/4",
        "1/", "/4", "1/4/2", "first", "first-of-nodes", "all", "123456789", "0x1", "1.5"};
    char why[128];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why[0] = '\0';
        if (kp_ranks_check(bad[i], why, sizeof why) != -EINVAL) fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(why, "0,8-15"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_launcher_with_a_rank_counts),
        cmocka_unit_test(a_rank_is_counted_from_its_node_where_each_has_as_many),
        cmocka_unit_test(the_process_group_counts_before_every_launcher),
        cmocka_unit_test(a_job_has_the_id_that_its_launcher_gives_it),
        cmocka_unit_test(every_variable_that_is_asked_for_is_listed),
        cmocka_unit_test(lists_spans_parts_and_nodes_name_ranks),
        cmocka_unit_test(a_list_that_names_no_rank_of_the_job_is_noticed),
        cmocka_unit_test(what_is_no_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
