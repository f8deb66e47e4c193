// SPDX-License-Identifier: Apache-2.0
/* test_compilerule.c - steps in which torch.compile compiles again: all that they have more, each Nth, which size */
#include "test/unit/advise/advised.h"

enum { STEPS = 13, USUAL_US = 10000, FORWARD_US = 30000, BACKWARD_US = 20000 };

/* What the steps before `first` run, and those from it on: code that was compiled once, or again. */
static const char *code[2] = {"Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/0"};

/* Steps of 10 ms; those of `every` compile: 30 ms before forward, 20 more in backward. `rows`: of their inputs. */
static struct kp_advice advice_of(struct little *t, int first, int every, bool has_shapes)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"},");
    for (int i = 0, at = 0; i < STEPS; i++) {
        const bool compiles = i >= first && (i - first) % every == 0;
        const int wait = compiles ? FORWARD_US : 0, more = compiles ? BACKWARD_US : 0;
        char dims[80] = "";
        if (has_shapes) snprintf(dims, sizeof dims, "\"Input Dims\":[[64, 64], [8, %d, 64], []]", 24 + 4 * (i / every));
        numbered_step(t, i, at, USUAL_US + wait + more);
        event(t, "cpu_op", "TorchDynamo Cache Lookup", 1, at, 10, "");
        event(t, "cpu_op", code[i >= first], 1, at + 20 + wait, 4000, "");
        event(t, "cpu_op", "CompiledFunction", 1, at + 30 + wait, 3000, dims);
        event(t, "cpu_op", "CompiledFunctionBackward", 1, at + 4020 + wait, 5970 + more, "");
        at += USUAL_US + wait + more;
    }
    return advise(t);
}

static void steps_that_compile_are_charged_with_all_that_they_have_more(void **state)
{
    const struct kp_advice a = advice_of(*state, 3, 3, false);
    const struct kp_finding *const f = &a.findings[0];
    assert_int_equal(a.count, 1); /* and they are no slow steps */
    assert_string_equal(f->id, "recompilation");
    assert_float_equal(f->step_ns, 4 * (FORWARD_US + BACKWARD_US) * 1e3 / STEPS, 1);
    assert_string_equal(f->what,
                        "torch.compile compiles again in steps 3, 6, 9, 12, each 3rd step: 50.0 ms each, 30.0 of "
                        "them before forward runs");
    assert_true(f->is_critical); /* by what it costs, and not by the number of steps */
    assert_non_null(strstr(f->change, "--record-shapes"));
}

static void the_size_that_changes_is_named(void **state)
{
    const struct kp_advice a = advice_of(*state, 3, 3, true);
    assert_non_null(strstr(a.findings[0].what, ", each 3rd step (input 1 is (8, 24..40, 64)): "));
    assert_non_null(strstr(a.findings[0].change, "mark_dynamic(tensor, 1)"));
}

static void one_recompilation_is_told_and_is_not_critical(void **state)
{
    const struct kp_advice a = advice_of(*state, 7, 99, false);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "recompilation");
    assert_non_null(strstr(a.findings[0].what, "compiles again in step 7: 50.0 ms, 30.0 of"));
    assert_false(a.findings[0].is_critical);
}

static void the_first_compilation_is_none(void **state)
{
    const struct kp_advice a = advice_of(*state, 0, 99, false);
    for (size_t i = 0; i < a.count; i++) assert_string_not_equal(a.findings[i].id, "recompilation");
}

/* In the second step a size is another one for the first time. */
static void a_second_compilation_is_told_in_the_first_steps(void **state)
{
    static const struct {
        const char *before, *from;
        bool is_again;
    } rows[] = {{"Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/1", true},
                {"Torch-Compiled Region: 1/0", "Torch-Compiled Region: 0/0", false}, /* code of its own */
                {"Torch-Compiled Region: 0/1", "Torch-Compiled Region: 0/1", false}, /* that was compiled before */
                {"Torch-Compiled Region", "Torch-Compiled Region", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        code[0] = rows[i].before, code[1] = rows[i].from;
        assert_int_equal(little_setup(state), 0);
        const struct kp_advice a = advice_of(*state, 1, 99, false);
        const struct kp_finding *const f = &a.findings[0];
        const bool is_told = a.count && strcmp(f->id, "recompilation") == 0;
        if (is_told != rows[i].is_again) fail_msg("row %zu: %zu findings", i, a.count);
        if (is_told) {
            assert_non_null(strstr(f->what, "compiles again in step 1: 50.0 ms, 30.0 of them"));
            assert_float_equal(f->once_ns, (FORWARD_US + BACKWARD_US) * 1e3, 1);
            assert_int_equal(f->once_step, 1);
            assert_false(f->is_critical);
        }
        assert_int_equal(little_teardown(state), 0);
    }
    code[0] = code[1] = "Torch-Compiled Region: 0/0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(steps_that_compile_are_charged_with_all_that_they_have_more),
        LITTLE(the_size_that_changes_is_named),
        LITTLE(one_recompilation_is_told_and_is_not_critical),
        LITTLE(the_first_compilation_is_none),
        cmocka_unit_test(a_second_compilation_is_told_in_the_first_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
