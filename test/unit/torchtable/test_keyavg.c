// SPDX-License-Identifier: Apache-2.0
/* test_keyavg.c - the tree of host events and the rows made of it */
#include "test/support/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/torchtable/keyavg.h"
#include "test/support/kineto_text.h"
#include "test/support/trace_of.h"

struct world {
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_keyavg averages;
    char json[8192];
    size_t used;
    bool is_ours;
};

/* One event: category, name, thread, start and duration in microseconds, further args. */
static void add(struct world *w, const char *cat, const char *name, int tid, int ts, int dur, const char *args)
{
    w->used += (size_t)snprintf(
        w->json + w->used, sizeof w->json - w->used,
        "%s{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":%d,"
        "\"args\":{%s}}",
        w->used ? "," : "", strcmp(cat, "cpu_instant_event") ? "X" : "i", cat, name, tid, ts, dur, args);
}

#define trace_of(w, text) TRACE_OF(add, w, text)

static void build(struct world *w, const struct kp_keyavg_options *options)
{
    char text[9000], why[256];
    snprintf(text, sizeof text, "{%s\"profile_memory\":1,\"with_flops\":1,\"traceEvents\":[%s]}",
             w->is_ours ? "\"kprof\":{\"a\":1}," : "", w->json);
    assert_int_equal(kineto_text_read(&w->trace, text, strlen(text), false, why, sizeof why), 0);
    assert_int_equal(kp_tree_build(&w->tree, w->trace), 0);
    kp_tree_set_stacks(&w->tree);
    assert_int_equal(kp_keyavg_build(&w->averages, &w->tree, options), 0);
}

static const char *name_at(const struct world *w, size_t row)
{
    return kp_kineto_text(w->trace, w->averages.rows[row].name);
}

static struct kp_row *row_named(struct world *w, const char *name)
{
    for (size_t i = 0; i < w->averages.count; i++)
        if (strcmp(name_at(w, i), name) == 0) return &w->averages.rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct world));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;
    kp_keyavg_fini(&w->averages);
    kp_tree_fini(&w->tree);
    kp_kineto_close(w->trace);
    free(w);
    return 0;
}

static const struct kp_keyavg_options plain;

static void self_time_is_the_total_without_direct_children(void **state)
{
    struct world *w = *state;
    trace_of(w, "op c 12 2; op b 11 5; op a 10 20; op other@2 12 3");
    build(w, &plain);
    assert_string_equal(name_at(w, 0), "a");
    assert_true(row_named(w, "a")->self_cpu == 15);
    assert_true(row_named(w, "b")->self_cpu == 3);
    assert_true(row_named(w, "c")->self_cpu == 2);
    assert_true(row_named(w, "c")->has_parent);
    assert_false(row_named(w, "other")->has_parent);
}

static void an_event_that_sticks_out_is_no_child(void **state)
{
    struct world *w = *state;
    trace_of(w, "op a 10 10; op b 15 10; op c 16 2; op touching 25 1");
    build(w, &plain);
    assert_false(row_named(w, "b")->has_parent);
    assert_true(row_named(w, "a")->self_cpu == 10);
    assert_true(row_named(w, "b")->self_cpu == 8);
    assert_false(row_named(w, "touching")->has_parent);
}

static void an_only_child_of_the_same_name_is_folded(void **state)
{
    struct world *w = *state;
    trace_of(w, "op a 10 20; op a 11 10; op a 12 8; op b 13 1; op b 15 1");
    build(w, &plain);
    assert_int_equal(row_named(w, "a")->count, 1);
    assert_true(row_named(w, "a")->self_cpu == 18);
    assert_int_equal(row_named(w, "b")->count, 2);
}

static void children_of_the_same_name_stay_when_they_are_two(void **state)
{
    struct world *w = *state;
    trace_of(w, "op a 10 20; op a 11 5; op a 17 5");
    build(w, &plain);
    assert_int_equal(row_named(w, "a")->count, 3);
}

static void equal_times_nest_in_the_order_of_recording(void **state)
{
    struct world *w = *state;
    trace_of(w, "op inner 10 20 'Ev Idx'=5; op outer 10 20 'Ev Idx'=4");
    build(w, &plain);
    assert_string_equal(name_at(w, 0), "outer");
    assert_true(row_named(w, "outer")->self_cpu == 0);
}

static void some_names_are_left_out_and_steps_are_one_row(void **state)
{
    struct world *w = *state;
    trace_of(w, "step 7 10 10; step 8 20 10; op aten::_version 11 2; "
                "op profiler::_record_function_exit 14 2; call 'f.py(1): f' 21 5");
    build(w, &plain);
    assert_int_equal(w->averages.count, 1);
    assert_int_equal(row_named(w, "ProfilerStep*")->count, 2);
    assert_true(row_named(w, "ProfilerStep*")->self_cpu == 15);
}

static void an_annotation_and_an_op_of_one_name_are_two_rows(void **state)
{
    struct world *w = *state;
    trace_of(w, "range x 10 10; op x 30 10");
    build(w, &plain);
    assert_int_equal(w->averages.count, 2);
}

static void shapes_and_overloads_split_rows_only_when_asked(void **state)
{
    struct world *w = *state;
    struct kp_keyavg_options both = {.by_shape = true, .by_overload = true};
    trace_of(w, "op aten::add.Tensor 10 1 dims=[[2,3],[]]; op aten::add.Tensor 20 1 dims=[[2,4],[]]; "
                "op aten::add.Scalar 30 1; op torch.distributed::f 40 1");
    build(w, &plain);
    assert_int_equal(w->averages.count, 2);
    assert_int_equal(row_named(w, "aten::add")->count, 3);
    assert_int_equal(row_named(w, "torch.distributed::f")->count, 1);
    kp_keyavg_fini(&w->averages);
    kp_keyavg_build(&w->averages, &w->tree, &both);
    assert_int_equal(w->averages.count, 4);
    assert_string_equal(kp_kineto_text(w->trace, w->averages.rows[0].shapes), "[[2, 3], []]");
    assert_string_equal(kp_kineto_text(w->trace, w->averages.rows[2].shapes), "[]");
    assert_string_equal(kp_kineto_text(w->trace, w->averages.rows[2].overload), "Scalar");
}

static void memory_goes_to_every_op_open_at_the_time(void **state)
{
    struct world *w = *state;
    trace_of(w, "op a 10 20; op b 12 5; cpu_instant_event [memory] 13 0 Bytes=100 'Device Type'=0; "
                "cpu_instant_event [memory] 30 0 Bytes=-40 'Device Type'=0; "
                "cpu_instant_event [memory] 40 0 Bytes=7 'Device Type'=0");
    build(w, &plain);
    assert_int_equal(row_named(w, "a")->cpu_bytes, 60);
    assert_int_equal(row_named(w, "a")->self_cpu_bytes, -40);
    assert_int_equal(row_named(w, "b")->cpu_bytes, 100);
    assert_int_equal(row_named(w, "[memory]")->cpu_bytes, 7);
}

static void kernels_count_for_the_op_that_launched_them(void **state)
{
    struct world *w = *state;
    trace_of(w, "op outer 10 20 id=1; op op 12 5 id=2; cuda cudaLaunchKernel 13 2 id=2; kernel k@7 50 9 id=2");
    build(w, &plain);
    assert_true(row_named(w, "op")->self_device == 9);
    assert_true(row_named(w, "outer")->device_total == 9);
    assert_true(row_named(w, "outer")->self_device == 0);
    assert_true(row_named(w, "op")->self_cpu == 3);
    assert_true(row_named(w, "k")->cpu_total == 0);
    assert_true(row_named(w, "k")->self_device == 9);
}

/* Both record them on request only. */
static void waits_are_rows_in_both_files(void **state)
{
    struct world *w = *state;
    for (int is_ours = 0; is_ours < 2; is_ours++) {
        *w = (struct world){.is_ours = is_ours};
        add(w, "cpu_op", "a", 1, 0, 100, "\"External id\":1");
        add(w, "kernel", "k", 7, 20, 30, "\"External id\":1,\"correlation\":5");
        add(w, "cuda_sync", "Stream Sync", 7, 20, 60, "\"External id\":6,\"correlation\":6");
        build(w, &(struct kp_keyavg_options){0});
        assert_int_equal(w->averages.count, 3);
        assert_non_null(row_named(w, "k"));
        if (is_ours) continue;
        kp_keyavg_fini(&w->averages);
        kp_tree_fini(&w->tree);
        kp_kineto_close(w->trace);
    }
}

static void old_kernels_are_credited_through_their_runtime_call(void **state)
{
    struct world *w = *state;
    trace_of(w, "op outer 10 20 id=1; op op 12 5 id=2; cuda cudaLaunchKernel 13 2 id=1 corr=1; "
                "kernel k@7 50 9 id=1 corr=1");
    build(w, &plain);
    assert_true(row_named(w, "op")->self_device == 9);
    assert_true(row_named(w, "outer")->self_device == 0);
}

static void an_op_left_open_is_async_and_outside_the_tree(void **state)
{
    struct world *w = *state;
    trace_of(w, "range open 10 99 finished=false; op inner 12 5; Trace 'PyTorch Profiler (0)' 5 30");
    build(w, &plain);
    assert_true(row_named(w, "open")->is_async);
    assert_true(row_named(w, "open")->cpu_total == 25);
    assert_true(row_named(w, "open")->self_cpu == 0);
    assert_false(row_named(w, "inner")->has_parent);
}

static void a_call_in_parts_is_counted_once_with_all_its_time(void **state)
{
    struct world *w = *state;
    struct kp_keyavg_options calls = {.python_functions = true};
    trace_of(w, "call train_step 10 20 'Python id'=1; call train_step 40 30 'Python id'=1 'further part'='yes'");
    build(w, &calls);
    assert_int_equal(row_named(w, "train_step")->count, 1);
    assert_true(row_named(w, "train_step")->cpu_total == 50);
}

static void backward_ops_take_the_stack_of_their_forward_op(void **state)
{
    struct world *w = *state;
    struct kp_keyavg_options stacks = {.by_stack = 1};
    trace_of(w, "op aten::mm 10 5 seq=3 fwd=0 stack='fwd;main;'; op MmBackward0@2 30 5 seq=3 fwd=1 stack='bwd;'; "
                "op aten::t@2 31 1 stack='bwd;'");
    build(w, &stacks);
    assert_int_equal(row_named(w, "MmBackward0")->stack_count, 1);
    assert_string_equal(row_named(w, "MmBackward0")->stack[0], "fwd");
    assert_string_equal(row_named(w, "aten::t")->stack[0], "fwd");
}

static void sorting_is_descending_and_keeps_equal_rows_in_order(void **state)
{
    struct world *w = *state;
    trace_of(w, "op b 10 5; op a 20 5; op c 30 9");
    build(w, &plain);
    assert_int_equal(kp_keyavg_sort(&w->averages, "cpu_time_total"), 0);
    assert_string_equal(name_at(w, 0), "c");
    assert_string_equal(name_at(w, 1), "b");
    assert_string_equal(name_at(w, 2), "a");
    assert_int_equal(kp_keyavg_sort(&w->averages, "self_cuda_time_total"), 0);
    assert_string_equal(name_at(w, 0), "c");
    assert_int_equal(kp_keyavg_sort(&w->averages, "nonsense"), -EINVAL);
    assert_int_equal(kp_keyavg_sort(&w->averages, ""), -EINVAL);
}

/* As Python gives lists an order: number by number, and the shorter first. */
static void shapes_and_stacks_sort_as_pythons_lists(void **state)
{
    static const char *const expected[] = {"f", "e", "d", "c", "b", "a"};
    struct world *w = *state;
    struct kp_keyavg_options by_shape = {.by_shape = true};
    trace_of(w, "op d 10 1 dims=[[9,4]] stack='m;f'; op b 20 1 dims=[[],[0]] stack='f'; "
                "op f 30 1 dims=[[10]] stack='n'; op a 40 1 dims=[]; op c 50 1 dims=[[9]] stack='m'; "
                "op e 60 1 dims=[[9,4],[]] stack='m;g'");
    build(w, &by_shape);
    assert_int_equal(kp_keyavg_sort(&w->averages, "input_shapes"), 0);
    for (size_t i = 0; i < 6; i++) assert_string_equal(name_at(w, i), expected[i]);
    kp_keyavg_fini(&w->averages);
    kp_keyavg_build(&w->averages, &w->tree, &(struct kp_keyavg_options){.by_stack = 2});
    assert_int_equal(kp_keyavg_sort(&w->averages, "stack"), 0);
    for (size_t i = 0; i < 6; i++) assert_string_equal(name_at(w, i), expected[i]);
}

static void times_sort_by_their_text_when_asked(void **state)
{
    struct world *w = *state;
    trace_of(w, "op short 10 900; op long 2000 8000");
    build(w, &plain);
    assert_int_equal(kp_keyavg_sort(&w->averages, "cpu_time_total"), 0);
    assert_string_equal(name_at(w, 0), "long");
    assert_int_equal(kp_keyavg_sort(&w->averages, "cpu_time_total_str"), 0);
    assert_string_equal(name_at(w, 0), "short"); /* "900.000us", "8.000ms" */
}

static void every_sort_key_that_is_told_is_known(void **state)
{
    char keys[1024], *rest, *word;
    (void)state;
    snprintf(keys, sizeof keys, "%s", kp_keyavg_keys());
    *strchr(keys, '(') = 0;
    for (word = strtok_r(keys, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        assert_true(kp_keyavg_has_key(word));
}

static void flops_follow_the_formulas(void **state)
{
    const char *scalars = "\n\n\n[2, 2]\n[0, 0]\n[1, 1]\n2\n";
    (void)state;
    assert_true(kp_flops("aten::mm", "[[8, 16], [16, 4]]", "", true) == 2 * 8 * 16 * 4);
    assert_true(kp_flops("aten::addmm", "[[4], [8, 16], [16, 4], [], []]", "", true) == 2 * 8 * 16 * 4);
    assert_true(kp_flops("aten::bmm", "[[3, 8, 16], [3, 16, 4]]", "", true) == 2 * 3 * 8 * 16 * 4);
    assert_true(kp_flops("aten::mul", "[[3, 5], []]", "", true) == 15);
    assert_true(kp_flops("aten::add", "[[], [6, 7], []]", "", true) == 1);
    assert_true(kp_flops("aten::add", "[[], [6, 7], []]", "", false) == 0); /* a nested tensor is shown so */
    assert_true(kp_flops("aten::mul_", "[[3, 5], []]", "", true) == 0);
    assert_true(kp_flops("aten::conv2d", "[[8, 8, 16, 16], [8, 4, 3, 3], [8], [], [], [], []]", scalars, true) ==
                2.0 * 8 * 7 * 7 * 9 * 8 * 8 / 2);
    assert_true(kp_flops("aten::conv2d", "[[8, 8, 16], [8]]", "", true) == 0);
    assert_true(kp_flops("aten::mm", "[", "", true) == 0);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(self_time_is_the_total_without_direct_children),
        WORLD_TEST(an_event_that_sticks_out_is_no_child),
        WORLD_TEST(an_only_child_of_the_same_name_is_folded),
        WORLD_TEST(children_of_the_same_name_stay_when_they_are_two),
        WORLD_TEST(equal_times_nest_in_the_order_of_recording),
        WORLD_TEST(some_names_are_left_out_and_steps_are_one_row),
        WORLD_TEST(a_call_in_parts_is_counted_once_with_all_its_time),
        WORLD_TEST(an_annotation_and_an_op_of_one_name_are_two_rows),
        WORLD_TEST(shapes_and_overloads_split_rows_only_when_asked),
        WORLD_TEST(memory_goes_to_every_op_open_at_the_time),
        WORLD_TEST(kernels_count_for_the_op_that_launched_them),
        WORLD_TEST(waits_are_rows_in_both_files),
        WORLD_TEST(old_kernels_are_credited_through_their_runtime_call),
        WORLD_TEST(an_op_left_open_is_async_and_outside_the_tree),
        WORLD_TEST(backward_ops_take_the_stack_of_their_forward_op),
        WORLD_TEST(sorting_is_descending_and_keeps_equal_rows_in_order),
        WORLD_TEST(shapes_and_stacks_sort_as_pythons_lists),
        WORLD_TEST(times_sort_by_their_text_when_asked),
        cmocka_unit_test(every_sort_key_that_is_told_is_known),
        cmocka_unit_test(flops_follow_the_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
