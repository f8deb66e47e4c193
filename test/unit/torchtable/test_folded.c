// SPDX-License-Identifier: Apache-2.0
/* test_folded.c - lines of export_stacks, stacks out of Python calls, flame graphs */
#include "export/answers/torchtable/keyavg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/stacks/flame.h"
#include "test/support/support.h"
#include "test/support/kineto_text.h"

#define OP(name, tid, ts, dur, more)                                                                                 \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur \
    ",\"args\":{\"Ev Idx\":0" more "}},"
#define PY(name, tid, ts, dur)                                                                               \
    "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts \
    ",\"dur\":" #dur ",\"args\":{\"Python id\":1}},"
#define STACK(text) ",\"Call stack\":\"" text "\""

static char lines[8192];

static void line_keep(void *context, const char *stack, int64_t us)
{
    (void)context;
    snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s %lld\n", stack, (long long)us);
}

static bool on_device; /* the metric */

static void trace_walk(const char *events, bool fill, kp_folded_fn fn, void *context)
{
    struct kp_kineto *trace;
    struct kp_tree tree;
    char why[256], text[8192];
    snprintf(text, sizeof text, "{\"traceEvents\":[%s{\"ph\":\"M\",\"name\":\"end\",\"pid\":1}]}", events);
    assert_int_equal(kineto_text_read(&trace, text, strlen(text), false, why, sizeof why), 0);
    assert_int_equal(kp_tree_build(&tree, trace), 0);
    if (fill) kp_tree_fill_stacks(&tree, true);
    kp_tree_set_stacks(&tree);
    lines[0] = 0;
    kp_folded_walk(&tree, on_device, fn, context);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
}

static const char *folded(const char *events, bool fill)
{
    trace_walk(events, fill, line_keep, NULL);
    return lines;
}

static void a_line_has_the_outermost_frame_first_and_no_blanks(void **state)
{
    (void)state;
    assert_string_equal(folded(OP("aten::add", 1, 10, 5, STACK("f.py(3): g h;f.py(9): <module>;")), false),
                        "f.py(9):_<module>;f.py(3):_g_h 5\n");
    assert_string_equal(folded(OP("aten::add", 1, 10, 5, STACK("a;\\tb\\nc;")), false), "_b_c;a 5\n");
}

static void what_costs_less_than_a_microsecond_or_has_no_stack_is_left_out(void **state)
{
    (void)state;
    assert_string_equal(folded(OP("aten::add", 1, 10, 0.999, STACK("a;")) OP("aten::mul", 1, 20, 5, "")
                                   OP("aten::neg", 1, 30, 1.9, STACK("b;")),
                               false),
                        "b 1\n");
}

static void time_of_children_is_not_the_parents(void **state)
{
    (void)state;
    assert_string_equal(
        folded(OP("aten::linear", 1, 10, 10, STACK("a;")) OP("aten::addmm", 1, 12, 7, STACK("a;")), false),
        "a 3\na 7\n");
}

static void frames_of_autograds_own_are_left_out(void **state)
{
    (void)state;
    assert_string_equal(
        folded(
            OP("aten::ones_like", 1, 10, 5,
               STACK(
                   "torch/autograd/__init__.py(60): _make_grads;torch/autograd/__init__.py(9): backward;m.py(1): f;")),
            false),
        "m.py(1):_f 5\n");
    assert_string_equal(
        folded(OP("aten::ones_like", 1, 10, 5, STACK("torch/autograd/__init__.py(60): _make_grads;")), false), "");
}

static void stacks_that_are_not_told_come_from_the_calls_around(void **state)
{
    static const char events[] =
        PY("m.py(1): <module>", 1, 0, 100) PY("m.py(5): f", 1, 10, 20) OP("aten::add", 1, 12, 5, "")
            OP("aten::mul", 1, 30, 5, "") OP("aten::neg", 2, 12, 5, "") PY("m.py(8): g", 1, 40, 10);
    (void)state;
    assert_string_equal(folded(events, false), "");
    assert_string_equal(
        folded(events, true),
        "m.py(1):_<module> 15\nm.py(1):_<module>;m.py(5):_f 5\nm.py(1):_<module> 5\nm.py(1):_<module> 10\n");
}

static const char *folded_on_device(const char *events, bool fill)
{
    on_device = true;
    folded(events, fill);
    on_device = false;
    return lines;
}

#define GPU(cat, name, tid, ts, dur, id)                                                                    \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" #tid ",\"tid\":" #tid ",\"ts\":" #ts \
    ",\"dur\":" #dur ",\"args\":{\"correlation\":7,\"External id\":" #id "}},"
#define ID(id) ",\"External id\":" #id

static void what_a_device_does_has_the_stack_of_its_op(void **state)
{
    (void)state;
    assert_string_equal(folded_on_device(OP("aten::add", 1, 10, 9, STACK("f;g;") ID(4))
                                             GPU("cuda_runtime", "cudaLaunchKernel", 1, 11, 2, 4)
                                                 GPU("kernel", "k", 9, 30, 5, 4) GPU("kernel", "of none", 9, 40, 5, 44),
                                         false),
                        "g;f 5\ng;f 5\n"); /* the op, too: it is its own device time */
    assert_string_equal(folded(OP("aten::add", 1, 10, 9, STACK("f;g;") ID(4))
                                   GPU("cuda_runtime", "cudaLaunchKernel", 1, 11, 2, 4),
                               false),
                        "g;f 7\ng;f 2\n");
}

static void work_of_the_backward_pass_keeps_the_stack_it_was_launched_with(void **state)
{
    (void)state;
    assert_string_equal(folded_on_device(OP("aten::mul", 1, 10, 5, STACK("forward;") ",\"Sequence number\":3" ID(1))
                                             OP("MulBackward0", 2, 20, 5,
                                                STACK("backward;") ",\"Sequence number\":3,\"Fwd thread id\":1" ID(2))
                                                 GPU("kernel", "k", 9, 30, 5, 2),
                                         false),
                        "forward 5\nbackward 5\n");
}

static void a_range_on_a_device_has_the_calls_open_on_its_thread(void **state)
{
    static const char events[] = PY("m", 1, 0, 100) PY("f", 1, 10, 20)
        PY("g", 2, 10, 90) "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"r\",\"pid\":1,\"tid\":1,\"ts\":5,"
                           "\"dur\":50,\"args\":{\"External id\":3}}," GPU("gpu_user_annotation", "r", 9, 20, 8, 3)
                               GPU("gpu_user_annotation", "r", 9, 40, 4, 3)
                                   GPU("gpu_user_annotation", "lost", 9, 40, 4, 33);
    (void)state;
    assert_string_equal(folded_on_device(events, true),
                        "m;f 7\nm 3\n"); /* such ranges are shown a nanosecond longer at each end */
}

static void a_call_of_no_op_has_the_calls_around_it(void **state)
{
    static const char events[] = PY("m", 1, 0, 100) OP(
        "aten::add", 1, 10, 9,
        STACK("f;")
            ID(4)) "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                   "\"cudaDeviceSynchronize\",\"pid\":1,\"tid\":1,\"ts\":50,\"dur\":5,\"args\":{\"correlation\":8}},";
    (void)state;
    assert_string_equal(folded(events, true), "f 9\nm 5\n");
}

static void metrics_are_torchs(void **state)
{
    (void)state;
    assert_true(kp_folded_metric("self_cpu_time_total", &on_device) && !on_device);
    assert_true(kp_folded_metric("self_cuda_time_total", &on_device) && on_device);
    assert_true(kp_folded_metric("self_xpu_time_total", &on_device) && on_device);
    assert_false(kp_folded_metric("cpu_time_total", &on_device));
    on_device = false;
}

static char *flame_of(const char *const *stacks, size_t count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    struct kp_flame *flame = kp_flame_open();
    for (size_t i = 0; i < count; i++) kp_flame_add(flame, stacks[i], 10);
    kp_flame_write(flame, out, &(struct kp_flame_show){.title = "a <title> & \"more\""});
    kp_flame_close(flame);
    fclose(out);
    return text;
}

static unsigned times_in(const char *text, const char *what)
{
    unsigned n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

static void a_flame_graph_merges_frames_and_stands_alone(void **state)
{
    static const char *const stacks[] = {"main;f", "main;f", "main;g;f", "<module>"};
    (void)state;
    char *svg = flame_of(stacks, 4);
    assert_int_equal(times_in(svg, "<g class=\"b\""), 6); /* all, main, main;f, main;g, main;g;f, <module> */
    assert_non_null(strstr(svg, "<title>f (20 us, 50.00%)</title>"));
    assert_non_null(strstr(svg, "<title>main (30 us, 75.00%)</title>"));
    assert_non_null(strstr(svg, "&lt;module&gt;"));
    assert_non_null(strstr(svg, "a &lt;title&gt; &amp; &quot;more&quot;"));
    assert_int_equal(times_in(svg, "http"), 1); /* the name of SVG itself, which nobody fetches */
    assert_int_equal(times_in(svg, "href") + times_in(svg, "url(") + times_in(svg, "@import"), 0);
    free(svg);
    svg = flame_of(NULL, 0);
    assert_int_equal(times_in(svg, "<g class=\"b\""), 0); /* nothing to see, but a picture */
    free(svg);
}

static void boxes_too_narrow_to_see_are_left_out(void **state)
{
    static char names[10000][16];
    static const char *stacks[10000];
    (void)state;
    for (int i = 0; i < 10000; i++) {
        snprintf(names[i], sizeof names[i], i < 9000 ? "main" : "f%d", i);
        stacks[i] = names[i];
    }
    char *svg = flame_of(stacks, 10000);
    assert_int_equal(times_in(svg, "<g class=\"b\""), 2);
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_outermost_frame_first_and_no_blanks),
        cmocka_unit_test(what_costs_less_than_a_microsecond_or_has_no_stack_is_left_out),
        cmocka_unit_test(time_of_children_is_not_the_parents),
        cmocka_unit_test(frames_of_autograds_own_are_left_out),
        cmocka_unit_test(stacks_that_are_not_told_come_from_the_calls_around),
        cmocka_unit_test(what_a_device_does_has_the_stack_of_its_op),
        cmocka_unit_test(work_of_the_backward_pass_keeps_the_stack_it_was_launched_with),
        cmocka_unit_test(a_range_on_a_device_has_the_calls_open_on_its_thread),
        cmocka_unit_test(a_call_of_no_op_has_the_calls_around_it),
        cmocka_unit_test(metrics_are_torchs),
        cmocka_unit_test(a_flame_graph_merges_frames_and_stands_alone),
        cmocka_unit_test(boxes_too_narrow_to_see_are_left_out),
    };
    return cmocka_run_group_tests_name("call stacks with their cost", tests, NULL, NULL);
}
