// SPDX-License-Identifier: Apache-2.0
/* test_runadvice.c - advice that outlives its trace, and what the other traces of a run change in it */
#include "test/unit/tree/little_trace.h"

#include "export/answers/runadvice/runadvice.h"

/* Reads two steps of an op of a GPU's collective, and keeps what is advised. The trace is closed. */
static void trace_keep(struct kp_runadvice *all, int rank)
{
    static struct little t;
    char why[256];
    struct kp_advised advised;
    t = (struct little){0};
    snprintf(t.head, sizeof t.head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":2},", rank);
    for (int i = 0; i < 2; i++) {
        numbered_step(&t, i, 1000 * i, 1000);
        op(&t, "aten::mm", 1000 * i, 900);
    }
    tree_make(&t);
    kp_tree_fini(&t.tree);
    assert_int_equal(kp_advised_of(&advised, t.trace, "a trace", why, sizeof why), 0);
    kp_runadvice_add(all, &advised, "rank.json", NULL);
    kp_advised_close(&advised);
}

/* What is printed; the caller frees it. */
static char *printed(const struct kp_runadvice *all)
{
    FILE *const real = stdout;
    char *text = NULL;
    size_t bytes;
    FILE *const out = open_memstream(&text, &bytes);
    assert_non_null(out);
    stdout = out;
    kp_runadvice_print(all, true);
    stdout = real;
    fclose(out);
    return text;
}

static void a_job_that_stands_is_the_first_finding_in_json_and_its_names_are_escaped(void **state)
{
    (void)state;
    struct kp_runadvice all = {.is_json = true};
    struct kp_rankwaits ranks = {0};
    trace_keep(&all, 0);
    kp_runadvice_settle(&all, &ranks, &(struct kp_stuck_told){"rank 1 has been in \"fetch\\all\"", "ask", true, 1});
    char *const text = printed(&all);
    assert_non_null(strstr(text, "\"verdict\":\"found\""));
    assert_non_null(strstr(text, "\"findings\":[{\"id\":\"stuck\",\"severity\":\"critical\""));
    assert_non_null(strstr(text, "rank 1 has been in \\\"fetch\\\\all\\\""));
    free(text);
    kp_runadvice_fini(&all);
}

static void a_job_that_goes_on_has_no_such_finding(void **state)
{
    (void)state;
    struct kp_runadvice all = {.is_json = true};
    struct kp_rankwaits ranks = {0};
    trace_keep(&all, 0);
    trace_keep(&all, 1);
    kp_runadvice_settle(&all, &ranks, NULL);
    char *const text = printed(&all);
    assert_null(strstr(text, "stuck"));
    assert_non_null(strstr(strstr(text, "\"file\":\"rank.json\"") + 1, "\"file\":\"rank.json\""));
    free(text);
    kp_runadvice_fini(&all);
}

/* No step of it is judged: neither a verdict nor a finding stands below. */
static void in_text_the_job_that_stands_is_all_that_is_said(void **state)
{
    (void)state;
    struct kp_runadvice all = {0};
    struct kp_rankwaits ranks = {0};
    trace_keep(&all, 0);
    kp_runadvice_settle(&all, &ranks,
                        &(struct kp_stuck_told){"rank 1 has been in fetch", "`kprof hang .` tells.", true, 1});
    char *const text = printed(&all);
    assert_string_equal(text, "STUCK    rank 1 has been in fetch\n         `kprof hang .` tells.\n"
                              "Its steps are not judged while it is stuck; kprof report shows them.\n");
    free(text);
    kp_runadvice_fini(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_stands_is_the_first_finding_in_json_and_its_names_are_escaped),
        cmocka_unit_test(a_job_that_goes_on_has_no_such_finding),
        cmocka_unit_test(in_text_the_job_that_stands_is_all_that_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
