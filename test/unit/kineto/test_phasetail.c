// SPDX-License-Identifier: Apache-2.0
/* test_phasetail.c - a phase that was open when the program ended lasts until its last op */
#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/phasetimes.h"

#include "export/read/kineto/kineto_windows.h"
#include "test/unit/tree/little_trace.h"

/* An op, a frame around it and one behind it, and the step that the program's end cut short. */
static struct kp_kineto *phase_make(struct little *t, const char *open)
{
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"phase\":\"validate\",\"phase_run\":4,\"phase_gapless\":1%s},",
             open);
    trace_of(t, "call 'a.py(1): <module>' 1000 500; op aten::mm 1000 20; "
                "step 7 1010 990 partial='cut short'; call 'threading.py(1): _shutdown' 1600 100; "
                "Trace 'PyTorch Profiler (0)'@9 990 1010");
    tree_make(t);
    return t->trace;
}

static int64_t end_of(const struct kp_kineto_event *e) { return e->start_ns + e->dur_ns; }

static void a_phase_that_the_programs_end_left_open_lasts_until_its_last_op(void **state)
{
    const struct kp_kineto *const trace = phase_make(*state, ",\"phase_open\":1");
    assert_int_equal(trace->windows->of[0].start_ns, 990000);
    assert_int_equal(trace->windows->of[0].end_ns, 1020000);
    assert_int_equal(trace->end_ns, 1020000);
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].kind != KP_KINETO_OTHER) assert_int_equal(end_of(&trace->events[i]), 1020000);
    assert_string_equal(kp_kineto_fact(trace, "kprof.phase_tail"), "validate:1:980");
}

static void a_phase_that_ended_by_itself_keeps_its_time(void **state)
{
    const struct kp_kineto *const trace = phase_make(*state, "");
    assert_int_equal(trace->windows->of[0].end_ns, 2000000);
    assert_null(kp_kineto_fact(trace, "kprof.phase_tail"));
}

static void a_phase_without_an_op_keeps_its_time(void **state)
{
    struct little *const t = *state;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"phase\":\"validate\",\"phase_open\":1},");
    event(t, "user_annotation", "ProfilerStep#7", 1, 1010, 990, "\"partial\":\"cut short\"");
    tree_make(t);
    assert_int_equal(t->trace->windows->of[0].end_ns, 2000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_phase_that_the_programs_end_left_open_lasts_until_its_last_op),
        LITTLE(a_phase_that_ended_by_itself_keeps_its_time),
        LITTLE(a_phase_without_an_op_keeps_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
