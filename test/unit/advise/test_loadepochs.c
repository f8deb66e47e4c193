// SPDX-License-Identifier: Apache-2.0
/* test_loadepochs.c - steps that wait long for a loader with workers, because an epoch begins in them */
#include "test/unit/advise/advised.h"

enum { STEPS = 60, USUAL_US = 1000, STOP_US = 60000, FIRST_US = 90000 };

/* Steps that compute 20 ms. Each `every`th ends an epoch, where `ends`, and waits for the next one's first batch. */
static struct kp_advice epochs_advise(struct little *t, int steps, int every, bool ends, int start_us)
{
    for (int step = 0, at = 0; step < steps; step++) {
        const bool is_first = step % every == every - 1;
        const int stop = is_first && ends ? STOP_US : 0, start = is_first ? start_us : 0;
        const int load = is_first ? FIRST_US : USUAL_US;
        char text[32];
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, at, stop + start + load + 20000, "");
        if (stop) event(t, "user_annotation", WORKERS, 1, at, stop, "");
        if (start)
            event(t, "python_function", "torch/utils/data/dataloader.py(492): __iter__", 1, at + stop, start, "");
        event(t, "user_annotation", WORKERS, 1, at + stop + start, load, "");
        op(t, "aten::mm", at + stop + start + load, 20000);
        at += stop + start + load + 20000;
    }
    return advise(t);
}

static void steps_that_ask_once_more_begin_an_epoch(void **state)
{
    const struct kp_advice a = epochs_advise(*state, STEPS, 4, true, 0);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].what,
                        "15 steps (about each 4th) wait up to 150.0 ms for the DataLoader; one epoch ends and the next "
                        "begins there. The "
                        "cost is at least this: a start of workers (--with-stack 1) is not in it");
    assert_int_equal(strncmp(a.findings[0].change, "Keep the workers from epoch to epoch", 36), 0);
}

static void late_batches_of_one_epoch_are_none(void **state)
{
    const struct kp_advice a = epochs_advise(*state, STEPS, 4, false, 0);
    assert_int_equal(a.count, 1);
    assert_null(strstr(a.findings[0].what, "epoch"));
    assert_non_null(strstr(a.findings[0].change, "in_order=False"));
}

/* Two of 21, as in a short recording of calls: too few for the loading of all. */
static void few_slow_steps_that_start_workers_say_so(void **state)
{
    const struct kp_advice a = epochs_advise(*state, 21, 9, true, 30000);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
    assert_non_null(
        strstr(a.findings[0].what, "data loading; one epoch ends and the next begins there, and starts workers again"));
    assert_string_equal(a.findings[0].change, "Keep the workers: DataLoader(..., persistent_workers=True).");
}

/* Steps that wait 10 of 30 ms; each `every`th draws a seed before, as a new iterator does. */
static struct kp_advice iterators_advise(struct little *t, int every)
{
    for (int step = 0; step < 12; step++) {
        const int at = step * 30000;
        numbered_step(t, step, at, 30000);
        if (step % every == 0) {
            op(t, "aten::random_", at + 10, 20);
            op(t, "aten::item", at + 40, 20);
            op(t, "aten::_local_scalar_dense", at + 45, 10);
        }
        event(t, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, at + 100, 9900,
              "");
        op(t, "aten::mm", at + 10000, 20000);
    }
    return advise(t);
}

static void an_iterator_for_each_batch_is_the_cause(void **state)
{
    const struct kp_advice a = iterators_advise(*state, 1);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_non_null(strstr(a.findings[0].what, "each step makes a new iterator of the DataLoader"));
    assert_non_null(strstr(a.findings[0].change, "Make the iterator once, before the loop"));
    assert_null(strstr(a.findings[0].change, "workers load"));
}

static void an_iterator_for_four_batches_is_none(void **state)
{
    const struct kp_advice a = iterators_advise(*state, 4);
    assert_int_equal(a.count, 1);
    assert_non_null(strstr(a.findings[0].what, "has no workers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(steps_that_ask_once_more_begin_an_epoch),  LITTLE(late_batches_of_one_epoch_are_none),
        LITTLE(few_slow_steps_that_start_workers_say_so), LITTLE(an_iterator_for_each_batch_is_the_cause),
        LITTLE(an_iterator_for_four_batches_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
