// SPDX-License-Identifier: Apache-2.0
/* test_walltime.c - the main thread's time as call paths: parts of a step, lines that ran, nothing twice */
#include "export/answers/stacks/walltime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/frames/framename.h"
#include "test/support/support.h"
#include "test/support/kineto_text.h"

#define EVENT(cat, name, tid, ts, dur, more)                                                                          \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur \
    ",\"args\":{\"Ev Idx\":0" more "}},"
#define OP(name, tid, ts, dur, more) EVENT("cpu_op", name, tid, ts, dur, more)
#define RANGE(name, ts, dur) EVENT("user_annotation", name, 1, ts, dur, "")
#define CALL(name, ts, dur, from) EVENT("python_function", name, 1, ts, dur, ",\"CallFrom\":\"" from "\"")
#define STACK(text) ",\"Call stack\":\"" text "\""

static char lines[8192];
static int64_t sum;

static void line_keep(void *context, const char *path, int64_t value)
{
    (void)context;
    sum += value;
    snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s %lld\n", path, (long long)value);
}

static const char *laid_out(const char *events, const struct kp_wall_options *options, struct kp_wall_told *told)
{
    struct kp_kineto *trace;
    struct kp_tree tree;
    char why[256], text[8192];
    snprintf(text, sizeof text, "{\"traceEvents\":[%s{\"ph\":\"M\",\"name\":\"end\",\"pid\":1}]}", events);
    assert_int_equal(kineto_text_read(&trace, text, strlen(text), false, why, sizeof why), 0);
    assert_int_equal(kp_tree_build(&tree, trace), 0);
    kp_tree_set_forward_stacks(&tree);
    struct kp_calltree *paths = kp_calltree_open();
    kp_wall_add(paths, &tree, options, told);
    lines[0] = 0;
    sum = 0;
    kp_calltree_each(paths, options->metric == KP_WALL_MEMORY ? 1 : 1000, line_keep, NULL);
    kp_calltree_close(paths);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return lines;
}

static const char *told_by(const char *events)
{
    struct kp_wall_told told;
    const struct kp_wall_options options = {0};
    laid_out(events, &options, &told);
    assert_int_equal(sum, told.wall_ns / 1000);
    return lines;
}

static void ops_are_leaves_below_the_frames_that_called_them(void **state)
{
    (void)state;
    assert_string_equal(told_by(OP("aten::linear", 1, 0, 10, STACK("m.py(3): f g;m.py(9): <module>;"))
                                    OP("aten::addmm", 1, 2, 7, STACK("m.py(3): f g;m.py(9): <module>;"))),
                        "other;m.py(9): <module>;m.py(3): f g;aten::linear 3\n"
                        "other;m.py(9): <module>;m.py(3): f g;aten::linear;aten::addmm 7\n");
}

static void time_between_ops_stands_at_what_both_stacks_share(void **state)
{
    (void)state;
    assert_string_equal(told_by(OP("aten::a", 1, 0, 10, STACK("m.py(3): f;m.py(9): <module>;"))
                                    OP("aten::b", 1, 30, 10, STACK("m.py(5): f;m.py(9): <module>;"))),
                        "other;m.py(9): <module>;m.py(3): f;aten::a 10\n"
                        "other;m.py(9): <module>;m.py(3->5): f;(no op) 20\n"
                        "other;m.py(9): <module>;m.py(5): f;aten::b 10\n");
}

static void calls_carry_the_line_that_ran(void **state)
{
    (void)state;
    assert_string_equal(told_by(CALL("m.py(40): <module>", 0, 100, "m.py:40") CALL("m.py(1): f", 10, 50, "m.py:41")
                                    CALL("<built-in method relu of type object at 0x7f01>", 20, 30, "m.py:3")
                                        OP("aten::relu", 1, 25, 20, "") OP("aten::add", 1, 52, 5, "")),
                        "other;m.py: <module> 50\n"
                        "other;m.py(41): <module>;m.py(1): def f 15\n"
                        "other;m.py(41): <module>;m.py(1): def f;aten::add 5\n"
                        "other;m.py(41): <module>;m.py(3): f;<built-in method relu of type object> 10\n"
                        "other;m.py(41): <module>;m.py(3): f;<built-in method relu of type object>;aten::relu 20\n");
}

static void a_frame_with_the_line_of_its_def_is_of_its_part(void **state)
{
    (void)state;
    assert_string_equal(told_by(OP("aten::a", 1, 0, 10, STACK("torch/_tensor.py(3): def backward;m.py(9): main;"))),
                        "backward;m.py(9): main;torch/_tensor.py(3): def backward;aten::a 10\n");
}

static void a_steps_time_is_not_where_the_profiler_began_it(void **state)
{
    (void)state;
    assert_string_equal(told_by(CALL("m.py(40): <module>", 0, 100, "") CALL("prof.py(1): step", 5, 10, "m.py:41")
                                    RANGE("ProfilerStep#1", 10, 90)),
                        "other;m.py: <module> 90\nother;m.py(41): <module>;prof.py(1): def step 10\n");
}

#define NEXT "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
static const char step[] = RANGE(NEXT, 0, 10) OP("aten::randn", 1, 2, 4, STACK("d.py(1): get;m.py(1): main;"))
    OP("aten::mm", 1, 10, 10, STACK("m.py(2): main;") ",\"Sequence number\":3")
        OP("autograd::engine::evaluate_function: MmBackward0", 1, 20, 20,
           STACK("m.py(3): main;") ",\"Sequence number\":3,\"Fwd thread id\":1")
            OP("MmBackward0", 1, 22, 16, STACK("m.py(3): main;") ",\"Sequence number\":3,\"Fwd thread id\":1")
                RANGE("Optimizer.step#SGD.step", 40, 10) OP("aten::add_", 1, 42, 5, STACK("o.py(9): s;m.py(4): main;"));

static void a_step_falls_into_its_parts(void **state)
{
    (void)state;
    told_by(step);
    assert_non_null(strstr(lines, "data loading;m.py(1): main;d.py(1): get;aten::randn 4\n"));
    assert_non_null(strstr(lines, "forward;m.py(2): main;aten::mm 10\n"));
    assert_non_null(strstr(lines, "backward;m.py(3): main;autograd::engine::evaluate_function: MmBackward0 4\n"));
    assert_non_null(strstr(lines, ";MmBackward0 16\n"));
    assert_non_null(strstr(lines, "optimizer;m.py(4): main;o.py(9): s;aten::add_ 5\n"));
    assert_null(strstr(lines, "other"));
    assert_int_equal(sum, 50);
}

static void backward_stands_at_the_forward_line_on_request(void **state)
{
    struct kp_wall_told told;
    const struct kp_wall_options options = {.at_forward = true};
    (void)state;
    laid_out(step, &options, &told);
    assert_non_null(strstr(lines, "backward;m.py(2): main;autograd::engine::evaluate_function: MmBackward0 4\n"));
    assert_int_equal(sum, 50);
}

static const char threads[] = RANGE("ProfilerStep#1", 0, 100) OP("aten::mm", 1, 0, 10, STACK("m.py(2): main;"))
    OP("aten::add_", 1, 90, 10, STACK("m.py(4): main;"))
        OP("autograd::engine::evaluate_function: MmBackward0", 2, 20, 30, "")
            OP("autograd::engine::evaluate_function: X", 3, 40, 20, "") OP("aten::io", 4, 0, 70, "");

static void a_wait_belongs_to_autograds_threads_once(void **state)
{
    (void)state;
    assert_string_equal(
        told_by(threads),
        "backward;m.py(2->4): main;autograd::engine::evaluate_function: MmBackward0 30\n"
        "backward;m.py(2->4): main;autograd::engine::evaluate_function: X 10\n"
        "other;m.py(2): main;aten::mm 10\nother;m.py(2->4): main;(no op) 40\nother;m.py(4): main;aten::add_ 10\n");
}

/* Kineto called steps and ranges of before torch 1.10 operators. */
static void a_range_of_the_program_around_backward_is_a_wait(void **state)
{
    (void)state;
    assert_string_equal(
        told_by(RANGE("## backward ##", 10, 80) OP("aten::mm", 1, 0, 10, "")
                    OP("autograd::engine::evaluate_function: MmBackward0", 2, 20, 30, "")
                        OP("autograd::engine::evaluate_function: X", 2, 60, 20, "")),
        "backward;## backward ## 10\nbackward;## backward ##;autograd::engine::evaluate_function: MmBackward0 30\n"
        "backward;## backward ##;autograd::engine::evaluate_function: X 20\n"
        "other;aten::mm 10\nother;## backward ## 20\n");
    told_by(OP("ProfilerStep#1", 1, 0, 100, "")
                OP("MmBackward", 2, 20, 30, ",\"Sequence number\":3,\"Fwd thread id\":1"));
    assert_non_null(strstr(lines, "MmBackward 30\n"));
}

static void other_threads_are_left_out_or_have_a_root(void **state)
{
    struct kp_wall_told told;
    const struct kp_wall_options options = {.threads = true};
    (void)state;
    laid_out(threads, &options, &told);
    assert_non_null(strstr(lines, "threads;thread 4;aten::io 70\n"));
    assert_int_equal(sum, 170);
    assert_int_equal(told.threads, 1);
    assert_int_equal(told.threads_ns, 70000);
}

static void memory_stands_at_the_op_that_took_it(void **state)
{
    struct kp_wall_told told;
    const struct kp_wall_options options = {.metric = KP_WALL_MEMORY};
    (void)state;
    laid_out(OP("aten::empty", 1, 0, 10,
                STACK("m.py(2): main;")) "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,"
                                         "\"tid\":1,\"ts\":5,"
                                         "\"args\":{\"Bytes\":64,\"Addr\":1,\"Device Type\":0,\"Device Id\":-1}},"
                                         "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,"
                                         "\"tid\":1,\"ts\":6,"
                                         "\"args\":{\"Bytes\":-64,\"Addr\":1,\"Device Type\":0,\"Device Id\":-1}},",
             &options, &told);
    assert_string_equal(lines, "other;m.py(2): main;aten::empty 64\n");
}

static void kernels_stand_below_the_op_that_launched_them(void **state)
{
    struct kp_wall_told told;
    const struct kp_wall_options options = {.metric = KP_WALL_GPU};
    (void)state;
    laid_out(OP("aten::mm", 1, 0, 10, STACK("m.py(2): main;") ",\"External id\":4")
                 EVENT("kernel", "gemm", 9, 20, 5, ",\"External id\":4,\"correlation\":7")
                     EVENT("kernel", "lost", 9, 30, 5, ",\"correlation\":8"),
             &options, &told);
    assert_string_equal(lines, "other;m.py(2): main;aten::mm;gemm 5\nother;lost 5\n");
}

static void a_forked_worker_has_no_frames_around_its_fork_and_waits_apart(void **state)
{
    (void)state;
    static const char *const loop = "data loading;multiprocessing/process.py(3): _bootstrap;"
                                    "torch/utils/data/_utils/worker.py";
    char calls[512], stacks[512];
    snprintf(calls, sizeof calls,
             "%s(8): _worker_loop;torch/utils/data/_utils/fetch.py(5): def fetch 50\n"
             "other;(worker waits for work);multiprocessing/queues.py(7): get;<built-in function poll> 50\n",
             loop);
    assert_string_equal(
        told_by(CALL("m.py(1): <module>", 0, 100, "") CALL("torch/utils/data/dataloader.py(2): __init__", 0, 100, "")
                    CALL("multiprocessing/process.py(3): _bootstrap", 0, 100, "")
                        CALL("torch/utils/data/_utils/worker.py(4): _worker_loop", 0, 100,
                             "multiprocessing/process.py:3") CALL("multiprocessing/queues.py(6): get", 0, 50, "")
                            CALL("<built-in function poll>", 0, 50, "multiprocessing/queues.py:7")
                                CALL("torch/utils/data/_utils/fetch.py(5): fetch", 50, 50,
                                     "torch/utils/data/_utils/worker.py:8")),
        calls);
    snprintf(stacks, sizeof stacks, "%s(8): _worker_loop;aten::stack 50\n", loop);
    assert_string_equal(told_by(OP("aten::stack", 1, 0, 50,
                                   STACK("torch/utils/data/_utils/worker.py(8): _worker_loop;"
                                         "multiprocessing/process.py(3): _bootstrap;m.py(1): <module>;"))),
                        stacks);
}

static void an_op_that_an_operator_calls_stands_at_its_line(void **state)
{
    (void)state;
    assert_string_equal(told_by(CALL("m.py(3): f", 0, 20, "") OP("aten::item", 1, 4, 6, ",\"CallFrom\":\"m.py:7\"") OP(
                            "aten::conv2d", 1, 12, 6, ",\"Concrete Inputs\":[\"\",\"1\"],\"CallFrom\":\"m.py:9\"")),
                        "other;m.py(3): def f 8\nother;m.py(7): f;aten::item 6\nother;m.py(9): f;aten::conv2d 6\n");
}

static void imports_are_no_part_of_a_step(void **state)
{
    (void)state;
    const char *text = told_by(CALL("train.py(1): <module>", 0, 100, "")
                                   CALL("torch/utils/data/dataloader.py(5): <module>", 10, 40, "")
                                       CALL("torch/utils/data/dataloader.py(50): _DatasetKind", 20, 10, "")
                                           CALL("torch/optim/sgd.py(1): <module>", 60, 10, "")
                                               CALL("torch/utils/data/dataloader.py(700): __next__", 80, 15, ""));
    assert_null(strstr(text, "optimizer"));
    assert_non_null(strstr(text, "other;train.py"));
    const char *loading = strstr(text, "data loading;");
    assert_non_null(loading);
    assert_non_null(strstr(loading, "__next__ 15\n"));
    assert_null(strstr(loading + 1, "data loading;"));
}

static void small_paths_stand_at_their_callers_where_text_is_large(void **state)
{
    struct kp_calltree *paths = kp_calltree_open();
    struct kp_calltree_folded folded;
    (void)state;
    const uint32_t main = kp_calltree_child(paths, 0, "main"), large = kp_calltree_child(paths, main, "large");
    kp_calltree_add(paths, large, KP_PART_FORWARD, 1000000);
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "small_%d", i);
        const uint32_t small = kp_calltree_child(paths, main, name);
        kp_calltree_add(paths, small, KP_PART_FORWARD, 10);
        kp_calltree_add(paths, kp_calltree_child(paths, small, "deep"), KP_PART_FORWARD, 10);
    }
    kp_calltree_fold(paths, 1 << 20, &folded);
    assert_int_equal(folded.paths, 0);
    kp_calltree_fold(paths, 500, &folded);
    assert_int_equal(folded.paths, 199); /* of 201; main has a line of its own now */
    assert_true(folded.below > 20 && folded.below <= 64);
    lines[0] = 0;
    sum = 0;
    kp_calltree_each(paths, 1, line_keep, NULL);
    assert_string_equal(lines, "forward;main 2000\nforward;main;large 1000000\n");
    kp_calltree_close(paths);
}

static void names_last(struct kp_frametext *text)
{
    static const char *const pairs[][2] = {
        {"<built-in method get of dict object at 0x7f00a>", "<built-in method get of dict object>"},
        {"<method at 0x7f00aa of Tensor>", "<method of Tensor>"},
        {"m.py(3): f;<at 0x1> at 0xf;<g at 0xabc>;", "m.py(3): f;<at 0x1>;<g>;"},
        {"<x at 0x> at 0x", "<x at 0x> at 0x"},
        {"copy at 0x10", "copy at 0x10"},
        {"<built-in method wait of pybind11_builtins.pybind11_detail_function_record_v1_gxx object at 0x7fd8>",
         "<built-in method wait of pybind11_builtins object>"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t bytes = strlen(pairs[i][0]);
        assert_string_equal(kp_framename_lasting(text, pairs[i][0], &bytes), pairs[i][1]);
        assert_int_equal(bytes, strlen(pairs[i][1]));
    }
}

static void names_of_frames_come_apart(void **state)
{
    struct kp_frametext text = {0};
    (void)state;
    assert_string_equal(kp_framename_called(&text, "a(1)/m.py(3): f", "a(1)/m.py:7"), "a(1)/m.py(7): f");
    assert_string_equal(kp_framename_called(&text, "m.py(3): f", "other.py:7"), "m.py(3): def f");
    assert_string_equal(kp_framename_called(&text, "m.py(0): f", ""), "m.py: f");
    assert_string_equal(kp_framename_called(&text, "m.py(3): <lambda>", ""), "m.py(3): <lambda>");
    assert_string_equal(kp_framename_called(&text, "m.py(1): <module>", ""), "m.py: <module>");
    assert_string_equal(kp_framename_at_line(&text, "m.py(1): <module>", ""), "m.py(0): <module>");
    assert_string_equal(kp_framename_at_line(&text, "m.py(3): f", ""), "m.py(3): def f");
    assert_true(kp_framename_is_meant("f", "m.py(3): def f"));
    assert_false(kp_framename_is_meant("def", "m.py(3): def f"));
    assert_string_equal(kp_framename_called(&text, "nn.Module: Net_0", "m.py:7"), "nn.Module: Net_0");
    assert_string_equal(kp_framename_between(&text, "m.py(3): f", "m.py(9): f"), "m.py(3->9): f");
    assert_string_equal(kp_framename_between(&text, "m.py(13): f", "m.py(9): f"), "m.py(13->9): f");
    assert_null(kp_framename_between(&text, "m.py(3): f", "m.py(9): g"));
    assert_string_equal(kp_framename_shown(&text, "a;b\n"), "a,b\\x0a");
    names_last(&text);
    assert_true(kp_framename_is_interpreter("libpython3.11.so.1.0: _PyEval_Vector"));
    assert_true(kp_framename_is_interpreter("python3.11: _start"));
    assert_false(kp_framename_is_interpreter("python_tools.py(3): f"));
    kp_frametext_fini(&text);
}

/* Thread 1 has the process's own id, and builds what thread 2 trains. */
static void the_thread_of_the_steps_is_the_main_one_whichever_it_is(void **state)
{
#define BUILT OP("aten::empty", 1, 0, 30, "")
#define TRAINED OP("aten::mm", 2, 40, 10, "") OP("aten::add_", 2, 62, 5, "")
#define STEPPED(more) EVENT("user_annotation", "Optimizer.step#SGD.step", 2, 60, 10, more)
    struct kp_wall_told told;
    const struct kp_wall_options options = {0};
    (void)state;
    (void)laid_out(BUILT TRAINED STEPPED(""), &options, &told); /* no step is marked */
    assert_non_null(strstr(lines, "aten::mm 10\n"));
    assert_null(strstr(lines, "aten::empty"));
    assert_int_equal(told.wall_ns, 30000);
    /* the first step begins with the program's start, on the thread that imports */
    (void)laid_out(EVENT("user_annotation", "ProfilerStep#0", 1, 0, 35, ",\"partial\":\"start-up\"")
                       BUILT TRAINED EVENT("user_annotation", "ProfilerStep#1", 2, 38, 40, ""),
                   &options, &told);
    assert_non_null(strstr(lines, "aten::mm 10\n"));
    assert_null(strstr(lines, "aten::empty"));
    (void)laid_out(BUILT TRAINED, &options, &told); /* no steps at all */
    assert_non_null(strstr(lines, "aten::empty 30\n"));
#undef BUILT
#undef TRAINED
#undef STEPPED
}

/* A sort between two layers has no backward; what comes before the first and behind the last is no forward. */
static void without_frames_what_lies_between_two_ops_of_forward_is_forward(void **state)
{
#define LAYER(at, number) OP("aten::mm", 1, at, 10, ",\"Sequence number\":" #number)
#define BACK(at, number) OP("MmBackward0", 1, at, 5, ",\"Sequence number\":" #number ",\"Fwd thread id\":1")
#define OTHER(name, at, more) OP(name, 1, at, 10, more)
    (void)state;
    told_by(OTHER("aten::randn", 0, "") LAYER(20, 1) OTHER("aten::sort", 40, "") LAYER(60, 2) OTHER("aten::sum", 80, "")
                BACK(100, 2) BACK(105, 1) OTHER("aten::randn", 120, "") LAYER(140, 3) BACK(160, 3));
    assert_non_null(strstr(lines, "forward;aten::mm 30\n"));
    assert_non_null(strstr(lines, "forward;aten::sort 10\n"));
    assert_non_null(strstr(lines, "forward;(no op) 20\n"));
    assert_non_null(strstr(lines, "other;aten::randn 20\n"));
    assert_non_null(strstr(lines, "other;aten::sum 10\n"));
    /* frames say it themselves */
    told_by(LAYER(0, 1) OTHER("aten::sort", 20, STACK("data.py(3): get;")) LAYER(40, 2) BACK(60, 2) BACK(70, 1));
    assert_null(strstr(lines, "forward;data.py"));
#undef LAYER
#undef BACK
#undef OTHER
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_are_leaves_below_the_frames_that_called_them),
        cmocka_unit_test(time_between_ops_stands_at_what_both_stacks_share),
        cmocka_unit_test(calls_carry_the_line_that_ran),
        cmocka_unit_test(a_frame_with_the_line_of_its_def_is_of_its_part),
        cmocka_unit_test(a_steps_time_is_not_where_the_profiler_began_it),
        cmocka_unit_test(a_step_falls_into_its_parts),
        cmocka_unit_test(backward_stands_at_the_forward_line_on_request),
        cmocka_unit_test(a_wait_belongs_to_autograds_threads_once),
        cmocka_unit_test(a_range_of_the_program_around_backward_is_a_wait),
        cmocka_unit_test(other_threads_are_left_out_or_have_a_root),
        cmocka_unit_test(memory_stands_at_the_op_that_took_it),
        cmocka_unit_test(kernels_stand_below_the_op_that_launched_them),
        cmocka_unit_test(a_forked_worker_has_no_frames_around_its_fork_and_waits_apart),
        cmocka_unit_test(an_op_that_an_operator_calls_stands_at_its_line),
        cmocka_unit_test(imports_are_no_part_of_a_step),
        cmocka_unit_test(small_paths_stand_at_their_callers_where_text_is_large),
        cmocka_unit_test(the_thread_of_the_steps_is_the_main_one_whichever_it_is),
        cmocka_unit_test(without_frames_what_lies_between_two_ops_of_forward_is_forward),
        cmocka_unit_test(names_of_frames_come_apart),
    };
    return cmocka_run_group_tests_name("wall time as call paths", tests, NULL, NULL);
}
