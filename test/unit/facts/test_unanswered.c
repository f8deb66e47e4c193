// SPDX-License-Identifier: Apache-2.0
/* test_unanswered.c - launches of kernels and graphs of which the trace has no work */
#include "export/read/facts/unanswered.h"

#include "test/unit/tree/little_trace.h"

static void launch(struct little *t, const char *call, int at, int correlation, const char *kernel)
{
    char args[64];
    snprintf(args, sizeof args, "\"correlation\":%d", correlation);
    event(t, "cuda_runtime", call, 1, at, 5, args);
    if (kernel) event(t, "kernel", kernel, 7, at + 10, 5, args);
}

static struct kp_unanswered counted(struct little *t)
{
    struct kp_unanswered of = {0};
    assert_int_equal(choose(t, &everything), 0);
    kp_unanswered_add(&of, &t->tree);
    return of;
}

static void graphs_without_work_are_most_of_it(void **state)
{
    struct little *t = *state;
    char text[160];
    for (int i = 0; i < 4; i++) {
        launch(t, i % 2 ? "cudaGraphLaunch" : "cuGraphLaunch", 100 * i, 10 + i, NULL);
        launch(t, "cudaLaunchKernel", 100 * i + 50, 20 + i, "argmax");
    }
    const struct kp_unanswered of = counted(t);
    assert_int_equal(of.graphs_lost, 4);
    assert_int_equal(of.kernels_lost, 0);
    assert_true(kp_unanswered_much(&of) && kp_unanswered_most(&of));
    kp_unanswered_text(text, sizeof text, &of);
    assert_string_equal(text, "the work of 4 of 4 graphs that were launched is not in the trace");
}

static void what_has_its_work_or_is_captured_lacks_nothing(void **state)
{
    struct little *t = *state;
    launch(t, "hipGraphLaunch", 0, 1, "a");
    event(t, "cuda_runtime", "cudaStreamBeginCapture", 1, 100, 1, "\"correlation\":2");
    launch(t, "cudaLaunchKernel", 110, 3, NULL);
    event(t, "cuda_runtime", "cudaStreamEndCapture", 1, 120, 1, "\"correlation\":4");
    launch(t, "cudaLaunchKernelExC", 200, 5, "b");
    const struct kp_unanswered of = counted(t);
    assert_int_equal(of.graphs, 1);
    assert_int_equal(of.kernels, 1);
    assert_false(kp_unanswered_much(&of));
}

static void a_few_lost_kernels_are_much_and_not_most(void **state)
{
    struct little *t = *state;
    char text[160];
    for (int i = 0; i < 40; i++) launch(t, "cuLaunchKernel", 100 * i, 10 + i, i % 20 ? "k" : NULL);
    const struct kp_unanswered of = counted(t);
    assert_true(kp_unanswered_much(&of) && !kp_unanswered_most(&of));
    kp_unanswered_text(text, sizeof text, &of);
    assert_string_equal(text, "2 of the 40 kernels that were launched are not in the trace");
}

static void a_launch_is_one_on_each_vendors_device(void **state)
{
    static const char *const calls[] = {"hipLaunchKernel",    "hipExtLaunchKernel",       "hipModuleLaunchKernel",
                                        "musaLaunchKernel",   "hipExtModuleLaunchKernel", "urEnqueueKernelLaunch",
                                        "hipLaunchKernelExC", "cuLaunchCooperativeKernel"};
    struct little *t = *state;
    for (int i = 0; i < 8; i++) launch(t, calls[i], 100 * i, 10 + i, NULL);
    const struct kp_unanswered of = counted(t);
    assert_int_equal(of.kernels_lost, 8);
    assert_true(kp_unanswered_most(&of));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(graphs_without_work_are_most_of_it),
        LITTLE(what_has_its_work_or_is_captured_lacks_nothing),
        LITTLE(a_few_lost_kernels_are_much_and_not_most),
        LITTLE(a_launch_is_one_on_each_vendors_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
