// SPDX-License-Identifier: Apache-2.0
/* test_loadtensors.c - batches that workers send as many tensors, and what is said of them first */
#include "test/unit/advise/advised.h"

enum { STEPS = 3, WAIT_US = 100000 };

/* Steps that wait 100 ms for a batch and compute 100 ms. Its last `tensors` come one each `every_us`. */
static struct kp_advice batches_advise(struct little *t, int tensors, int every_us, const char *loader)
{
    for (int step = 0; step < STEPS; step++) {
        const int at = step * 2 * WAIT_US;
        numbered_step(t, step, at, 2 * WAIT_US);
        event(t, "user_annotation", loader, 1, at, WAIT_US, "");
        for (int i = 0; i < tensors; i++) op(t, "aten::set_", at + WAIT_US - 1000 - (tensors - 1 - i) * every_us, 3);
        op(t, "aten::mm", at + WAIT_US, WAIT_US);
    }
    return advise(t);
}

static void many_tensors_are_stacked_before_more_workers_come(void **state)
{
    const struct kp_advice a = batches_advise(*state, 160, 250, WORKERS);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_string_equal(a.findings[0].what,
                        "the step waits for the DataLoader, from which a batch comes as 160 tensors");
    const char *const change = a.findings[0].change;
    assert_int_equal(strncmp(change, "A batch comes as 160 tensors: each is sent on its own", 53), 0);
    assert_non_null(strstr(change, "to receive them takes 39.8 ms a batch. Stack them in collate_fn"));
    assert_true(strstr(change, "Stack them") < strstr(change, "more workers"));
}

/* On busy cores each tensor takes long: 22 in 74 of 100 ms. */
static void a_slow_receipt_counts(void **state)
{
    const struct kp_advice a = batches_advise(*state, 22, 3500, WORKERS);
    assert_non_null(strstr(a.findings[0].what, "a batch comes as 22 tensors"));
}

static void two_tensors_are_not_the_cause(void **state)
{
    const struct kp_advice a = batches_advise(*state, 2, 250, WORKERS);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].what, "the step waits for the DataLoader, or computes in its next()");
    assert_null(a.findings[0].first);
}

/* 160 in 4.8 of 100 ms: the wait is for the items. */
static void many_tensors_that_come_soon_are_not_the_cause(void **state)
{
    const struct kp_advice a = batches_advise(*state, 160, 30, WORKERS);
    assert_int_equal(a.count, 1);
    assert_null(strstr(a.findings[0].change, "collate_fn"));
}

/* Twelve in 44 of 100 ms: stacked they save little. */
static void few_tensors_are_not_the_cause(void **state)
{
    const struct kp_advice a = batches_advise(*state, 12, 4000, WORKERS);
    assert_null(strstr(a.findings[0].change, "collate_fn"));
}

static void a_loader_without_workers_receives_none(void **state)
{
    const struct kp_advice a =
        batches_advise(*state, 160, 250, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    assert_int_equal(a.count, 1);
    assert_null(strstr(a.findings[0].change, "collate_fn"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(many_tensors_are_stacked_before_more_workers_come),
        LITTLE(two_tensors_are_not_the_cause),
        LITTLE(a_slow_receipt_counts),
        LITTLE(many_tensors_that_come_soon_are_not_the_cause),
        LITTLE(few_tensors_are_not_the_cause),
        LITTLE(a_loader_without_workers_receives_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
