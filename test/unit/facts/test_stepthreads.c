// SPDX-License-Identifier: Apache-2.0
/* test_stepthreads.c - the threads that run steps, and those beside them that wait */
#include "export/read/facts/steps/stepthreads.h"

#include "test/unit/tree/little_trace.h"

#define ACQUIRE "'<built-in method acquire of _thread.lock object>'"

/* The calls that are idle, by their threads, in order of their begins. */
static void idle_are(struct little *t, size_t threads, bool are_others, const char *expected)
{
    char idle[32] = "";
    struct kp_stepthreads of;
    assert_int_equal(choose(t, &everything), 0);
    kp_stepthreads_find(&of, &t->tree);
    assert_int_equal(of.count, threads);
    assert_int_equal(of.are_others, are_others);
    for (size_t i = 0; i < t->tree.count; i++)
        if (kp_stepthreads_is_idle(&of, &t->tree, &t->tree.nodes[i]))
            snprintf(idle + strlen(idle), sizeof idle - strlen(idle), "%d ", (int)kp_tree_event(&t->tree, i)->tid);
    assert_string_equal(idle, expected);
    kp_stepthreads_fini(&of);
}

static void beside_the_first_thread_those_that_wait_are_idle(void **state)
{
    struct little *t = *state;
    trace_of(t, "step 1 0 100; call " ACQUIRE " 10 20; call " ACQUIRE "@2 20 20; call 'a.py(3): work'@2 50 20");
    idle_are(t, 1, false, "2 ");
}

static void handlers_that_run_steps_are_not_idle_while_they_wait_but_the_first_thread_is(void **state)
{
    struct little *t = *state;
    trace_of(t, "range ProfilerStep#1@2 0 100; range ProfilerStep#2@3 100 100; call " ACQUIRE "@2 110 50;"
                "call " ACQUIRE "@3 120 50; call 'threading.py(1132): _wait_for_tstate_lock'@1 130 50;"
                "call " ACQUIRE "@4 140 50");
    idle_are(t, 2, true, "1 4 ");
}

/* It made the model, whose first step began before the thread that runs the others. */
static void a_thread_with_the_first_step_alone_runs_none(void **state)
{
    struct little *t = *state;
    struct kp_thread_of_steps of;
    char text[4096] = "step 0 0 10; call " ACQUIRE "@1 10 999";
    for (int i = 1; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; range ProfilerStep#%d@2 %d 20", i, 20 * i);
    trace_of(t, text);
    idle_are(t, 1, true, "1 ");
    assert_true(kp_chosen_thread(&of, &t->tree));
    assert_int_equal(of.tid, 2);
}

static void without_steps_the_first_thread_is_not_idle(void **state)
{
    struct little *t = *state;
    trace_of(t, "call " ACQUIRE " 10 20; call " ACQUIRE "@2 20 20");
    idle_are(t, 0, false, "2 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(beside_the_first_thread_those_that_wait_are_idle),
        LITTLE(handlers_that_run_steps_are_not_idle_while_they_wait_but_the_first_thread_is),
        LITTLE(a_thread_with_the_first_step_alone_runs_none),
        LITTLE(without_steps_the_first_thread_is_not_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
