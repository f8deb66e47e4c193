// SPDX-License-Identifier: Apache-2.0
/* test_loadwaits.c - steps that wait for a loader with workers: each a little, or a few for all */
#include "test/unit/advise/advised.h"

/* Steps that compute 4 ms; of sixty each `every`th waits `late_ms` for its batch, and the others 1 ms. */
static struct kp_advice late_batches_advise(struct little *t, int every, int late_ms)
{
    for (int step = 0, at = 0; step < 60; step++) {
        const int loading = step % every == every - 1 ? 1000 * late_ms : 1000;
        char text[32];
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, at, loading + 4000, "");
        event(t, "user_annotation", WORKERS, 1, at, loading, "");
        op(t, "aten::mm", at + loading, 4000);
        at += loading + 4000;
    }
    return advise(t);
}

/* Steps of 4 ms; every fourth begins an epoch, which takes 60 ms to start workers and 20 ms more to the first batch. */
static void workers_that_are_started_each_epoch_are_the_cause(void **state)
{
    struct little *const t = *state;
    for (int step = 0, at = 0; step < 24; step++) {
        const int start = step % 4 ? 0 : 60000, loading = step % 4 ? 200 : 20000;
        char text[32];
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, at, start + loading + 4000, "");
        if (start) event(t, "python_function", "torch/utils/data/dataloader.py(492): __iter__", 1, at, start, "");
        event(t, "user_annotation", WORKERS, 1, at + start, loading, "");
        op(t, "aten::mm", at + start + loading, 4000);
        at += start + loading + 4000;
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].what,
                        "the DataLoader starts its workers again each epoch (5 times, 60.0 ms each), "
                        "and the step waits for data");
    assert_string_equal(a.findings[0].change, "Keep the workers: DataLoader(..., persistent_workers=True).");
    assert_true(a.findings[0].step_ns > 17.5e6 &&
                a.findings[0].step_ns < 17.6e6); /* (5 * 80 + 18 * 0.2) / 23: the first step is apart */
}

static void a_few_steps_that_wait_for_late_batches_are_told_beside_the_others(void **state)
{
    const struct kp_advice a = late_batches_advise(*state, 4, 290);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_string_equal(a.findings[0].what, "15 steps (about each 4th) wait up to 290.0 ms for the DataLoader");
    assert_int_equal(a.findings[0].steps, 15);
    assert_true(a.findings[0].is_bursty && a.findings[0].is_critical);
    assert_non_null(strstr(a.findings[0].change, "in_order=False"));
}

static void late_batches_that_have_a_fifth_of_the_time_are_the_loaders_though_few_steps_wait(void **state)
{
    const struct kp_advice a = late_batches_advise(*state, 20, 100);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_int_equal(a.findings[0].steps, 3);
    assert_true(a.findings[0].is_critical);
}

static void a_wait_as_short_as_a_hand_over_asks_for_no_more_workers(void **state)
{
    const struct kp_advice a = late_batches_advise(*state, 2, 2);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_false(a.findings[0].is_bursty);
    assert_int_equal(strncmp(a.findings[0].change, "Taking a batch from a worker costs about as much", 48), 0);
    assert_non_null(
        strstr(a.findings[0].change, "(num_workers=0) a step is shorter only if a batch loads in less than 1.5 ms."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(workers_that_are_started_each_epoch_are_the_cause),
        LITTLE(a_few_steps_that_wait_for_late_batches_are_told_beside_the_others),
        LITTLE(late_batches_that_have_a_fifth_of_the_time_are_the_loaders_though_few_steps_wait),
        LITTLE(a_wait_as_short_as_a_hand_over_asks_for_no_more_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
