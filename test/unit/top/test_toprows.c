// SPDX-License-Identifier: Apache-2.0
/* test_toprows.c - rows of the report */
#include "test/unit/top/little_rows.h"

static struct kp_top top_make(struct little *t, enum kp_top_by by)
{
    struct kp_top top;
    assert_int_equal(choose(t, &everything), 0);
    kp_top_build(&top, &t->tree, &t->chosen, by);
    kp_top_order(&top, KP_TOP_SELF);
    return top;
}

static void rows_come_by_self_time_and_add_up(void **state)
{
    struct little *t = *state;
    trace_of(t, "op outer 0 100; op inner 10 60; op inner 80 10");
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_int_equal(top.count, 2);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].name), "inner");
    assert_int_equal((int64_t)top.rows[0].cost.self_ns, 70000);
    assert_int_equal(top.rows[0].cost.count, 2);
    assert_int_equal((int64_t)top.rows[0].cost.longest_ns, 60000);
    assert_int_equal((int64_t)top.rows[1].cost.longest_ns, 100000);
    assert_int_equal((int64_t)top.rows[1].cost.total_ns, 100000);
    assert_int_equal((int64_t)top.sum.cost.self_ns, 100000);
    kp_top_order(&top, KP_TOP_TOTAL);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].name), "outer");
    kp_top_order(&top, KP_TOP_COUNT);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].name), "inner");
    kp_top_fini(&top);
}

static void the_longest_of_calls_that_were_cut_in_parts_is_of_all_its_parts(void **state)
{
    struct little *t = *state;
    trace_of(t, "step 1 0 100; call get 10 90; step 2 100 100; call get 100 60 'further part'='yes' 'ns before'=90000;"
                "call get 170 20");
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_int_equal(row_named(&top, "get")->cost.count, 2);
    assert_int_equal((int64_t)row_named(&top, "get")->cost.longest_ns, 150000);
    kp_top_fini(&top);
}

static void a_total_counts_no_time_twice(void **state)
{
    struct little *t = *state;
    trace_of(t, "op to 0 100; op copy 10 70; op to 20 50");
    event(t, "cpu_op", "to", 2, 30, 40, ""); /* another thread's */
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_int_equal((int64_t)row_named(&top, "to")->cost.total_ns, 140000);
    assert_int_equal(row_named(&top, "to")->cost.count, 3);
    kp_top_fini(&top);
}

static void ops_are_put_to_lines_and_backward_ops_to_their_forward_line(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::norm 0 5 seq=4 stack='train.py(3): clip;'; "
                "op aten::conv 10 20 seq=4 stack='train.py(8): forward;'; "
                "op 'autograd::engine::evaluate_function: ConvBackward' 40 50 seq=4; "
                "op ConvBackward 45 40 seq=4 fwd=1 stack='train.py(9): main;'");
    struct kp_top top = top_make(t, KP_TOP_BY_LINE);
    const struct kp_top_row *row = row_named(&top, "train.py:8 forward");
    assert_true(row == &top.rows[0] && row->is_backward); /* not clip's, which has the same number */
    assert_int_equal((int64_t)row->cost.self_ns, 50000);
    assert_int_equal(row->cost.count, 1);
    assert_int_equal((int64_t)row_named(&top, "train.py:3 clip")->cost.self_ns, 5000);
    assert_int_equal(top.count, 3);
    kp_top_fini(&top);
}

/* helper() in line 3 is called by main() in line 9 and, through itself and torch, in line 12. */
static void a_line_names_the_line_that_calls_it_most(void **state)
{
    struct little *t = *state;
    event(t, "cpu_op", "aten::mm", 1, 0, 20, "\"Call stack\":\"train.py(3): helper;train.py(9): main;\"");
    event(t, "cpu_op", "aten::mm", 1, 30, 60,
          "\"Call stack\":\"train.py(3): helper;torch/a.py(2): f;train.py(3): helper;torch/a.py(1): g;"
          "train.py(12): main;\"");
    event(t, "cpu_op", "aten::add", 1, 100, 5, "\"Call stack\":\"train.py(9): main;\"");
    struct kp_top top = top_make(t, KP_TOP_BY_LINE);
    const struct kp_top_row *row = row_named(&top, "train.py:3 helper");
    assert_int_equal(row->lines, 2);
    assert_string_equal(kp_kineto_text(top.trace, row->line), "train.py:12 main");
    assert_int_equal((int64_t)row->line_ns, 60000);
    assert_true(top.has_lines);
    assert_int_equal(row_named(&top, "train.py:9 main")->lines, 0);
    kp_top_fini(&top);
}

#define AT_BACKWARD "\"Call stack\":\"train.py(9): main;\""

/* The engine sums a bias's gradient beside the backward op. A hook and AccumulateGrad keep the lines they ran at. */
static void what_the_engine_runs_beside_a_backward_op_is_of_its_forward_line(void **state)
{
    struct little *t = *state;
    event(t, "cpu_op", "aten::add", 1, 0, 20, "\"Sequence number\":4,\"Call stack\":\"train.py(8): forward;\"");
    event(t, "cpu_op", KP_ENGINE_RANGE "AddBackward0", 1, 40, 100, AT_BACKWARD);
    event(t, "cpu_op", "aten::clamp", 1, 42, 3, "\"Call stack\":\"train.py(5): hook;train.py(9): main;\"");
    event(t, "cpu_op", "AddBackward0", 1, 45, 1, "\"Sequence number\":4,\"Fwd thread id\":1," AT_BACKWARD);
    event(t, "cpu_op", "aten::sum", 1, 50, 70, AT_BACKWARD);
    event(t, "cpu_op", "aten::fill_", 1, 60, 10, AT_BACKWARD);
    event(t, "cpu_op", KP_ENGINE_RANGE KP_ACCUMULATE_GRAD, 1, 150, 9, AT_BACKWARD);
    event(t, "cpu_op", KP_ACCUMULATE_GRAD, 1, 151, 7, AT_BACKWARD);
    struct kp_top top = top_make(t, KP_TOP_BY_LINE);
    assert_int_equal(top.count, 4);
    assert_true(top.rows[0].is_backward);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].name), "train.py:8 forward");
    assert_int_equal((int64_t)top.rows[0].cost.self_ns, 97000);
    assert_int_equal((int64_t)row_named(&top, "train.py:5 hook")->cost.self_ns, 3000);
    assert_false(row_named(&top, "train.py:9 main")->is_backward);
    assert_int_equal((int64_t)row_named(&top, "train.py:9 main")->cost.self_ns, 9000);
    kp_top_fini(&top);
}

/* torch's own tables have the sum where it ran. */
static void torch_leaves_what_the_engine_runs_where_it_ran(void **state)
{
    struct little *t = *state;
    event(t, "cpu_op", "aten::add", 1, 0, 20, "\"Sequence number\":4,\"Call stack\":\"train.py(8): forward;\"");
    event(t, "cpu_op", KP_ENGINE_RANGE "AddBackward0", 1, 40, 100, AT_BACKWARD);
    event(t, "cpu_op", "AddBackward0", 1, 45, 1, "\"Sequence number\":4,\"Fwd thread id\":1," AT_BACKWARD);
    event(t, "cpu_op", "aten::sum", 1, 50, 70, AT_BACKWARD);
    assert_int_equal(choose(t, &everything), 0);
    assert_int_equal(t->tree.nodes[3].forward, 0);
    assert_true(kp_node_is_backward(&t->tree, 3) && kp_node_is_backward(&t->tree, 1));
    kp_tree_set_stacks(&t->tree);
    assert_int_equal(t->tree.nodes[3].forward, -1);
    assert_false(kp_node_is_backward(&t->tree, 3) || kp_node_is_backward(&t->tree, 1));
    assert_true(kp_node_is_backward(&t->tree, 2));
}

static void call(struct little *t, const char *name, const char *from, int ts, int dur)
{
    char args[80];
    snprintf(args, sizeof args, "\"CallFrom\":\"%s\"", from);
    event(t, "python_function", name, 1, ts, dur, args);
}

static void a_frame_of_calls_has_the_line_that_called(void **state)
{
    struct little *t = *state;
    call(t, "train.py(2): main", "", 0, 100);
    call(t, "torch/f.py(1): g", "train.py:9", 10, 40);
    event(t, "cpu_op", "in g", 1, 20, 10, "\"Call stack\":\"torch/f.py(1): g;train.py(2): main\""); /* lines of def */
    op(t, "in main", 60, 30);
    tree_make(t);
    kp_tree_fill_line_stacks(&t->tree, true);
    kp_tree_set_forward_stacks(&t->tree);
    struct kp_top top = {0};
    char why[80];
    assert_int_equal(kp_chosen_make(&t->chosen, &t->tree, &everything, why, sizeof why), 0);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_LINE);
    assert_int_equal(top.count, 2);
    assert_float_equal(row_named(&top, "train.py:9 main")->cost.self_ns, 40e3, 0);
    assert_float_equal(row_named(&top, "train.py:2 def main")->cost.self_ns, 60e3, 0);
    kp_top_fini(&top);
}

/* An op that a recorded function calls is no part of its own time, and no row. */
static void by_symbol_are_the_calls_of_symbols_alone(void **state)
{
    struct little *t = *state;
    event(t, "symbol", "compress", 1, 0, 50, "");
    event(t, "cpu_op", "aten::mm", 1, 10, 20, "");
    event(t, "symbol", "compress", 1, 60, 30, "");
    event(t, "symbol", "crc32", 1, 70, 5, "");
    struct kp_top top = top_make(t, KP_TOP_BY_SYMBOL);
    assert_int_equal(top.count, 2);
    assert_float_equal(row_named(&top, "compress")->cost.self_ns, 55e3, 0);
    assert_float_equal(row_named(&top, "compress")->cost.total_ns, 80e3, 0);
    assert_int_equal(row_named(&top, "compress")->cost.count, 2);
    assert_float_equal(row_named(&top, "crc32")->cost.self_ns, 5e3, 0);
    kp_top_fini(&top);
}

/* The file has the line at which such a call was then: train.py(7), where g was called. */
static void a_call_that_the_recording_found_open_has_no_line_of_its_def(void **state)
{
    struct little *t = *state;
    struct kp_top top = {0};
    char why[80];
    call(t, "train.py(7): main", "", 0, 100);
    call(t, "torch/f.py(5): g", "train.py:7", 0, 10);
    op(t, "in main", 60, 30);
    tree_make(t);
    kp_tree_fill_line_stacks(&t->tree, true);
    kp_tree_set_forward_stacks(&t->tree);
    assert_int_equal(kp_chosen_make(&t->chosen, &t->tree, &everything, why, sizeof why), 0);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_LINE);
    assert_int_equal(top.count, 2);
    assert_float_equal(row_named(&top, "train.py:7 main")->cost.self_ns, 10e3, 0);
    assert_float_equal(row_named(&top, "train.py main")->cost.self_ns, 90e3, 0);
    kp_top_fini(&top);
}

/* A loop of main calls epoch(), which runs slow code of its own behind the optimizer, in which the next step begins. */
static void step_in_calls(struct little *t, enum kp_top_by by, struct kp_top *top)
{
    char why[80];
    call(t, "train.py(2): main", "", 0, 300);
    call(t, "train.py(12): epoch", "train.py:4", 10, 90);
    call(t, "torch/optim.py(5): step", "train.py:19", 50, 10);
    event(t, "user_annotation", "ProfilerStep#1", 1, 55, 205, "\"Call stack\":\"torch/optim.py(5): step\"");
    call(t, "train.py(12): epoch", "train.py:4", 200, 90);
    call(t, "torch/optim.py(5): step", "train.py:19", 250, 20);
    tree_make(t);
    kp_tree_fill_line_stacks(&t->tree, true);
    kp_tree_set_forward_stacks(&t->tree);
    assert_int_equal(kp_chosen_make(&t->chosen, &t->tree, &everything, why, sizeof why), 0);
    kp_top_build(top, &t->tree, &t->chosen, by);
}

static void what_a_step_does_in_no_op_stands_at_the_function_that_runs(void **state)
{
    struct little *t = *state;
    struct kp_top top = {0};
    step_in_calls(t, KP_TOP_BY_LINE, &top);
    /* the call that began inside a step's end has 50 to 60 and 250 to 270 */
    assert_float_equal(row_named(&top, "train.py:19 epoch")->cost.self_ns, 30e3, 0);
    assert_float_equal(row_named(&top, "train.py:12 def epoch")->cost.self_ns, (40 + 40 + 50 + 20) * 1e3, 0);
    assert_float_equal(row_named(&top, "train.py:2 def main")->cost.self_ns, (10 + 100 + 10) * 1e3, 0);
    assert_int_equal(top.count, 3); /* none for the marker */
    assert_float_equal(top.sum.cost.self_ns, 300e3, 0);
    kp_top_fini(&top);
}

static void a_step_has_the_lines_of_the_functions_that_run_in_it(void **state)
{
    struct little *t = *state;
    struct kp_top top = {0};
    step_in_calls(t, KP_TOP_BY_OP, &top);
    const struct kp_top_row *row = row_named(&top, "ProfilerStep*");
    assert_float_equal(row->cost.self_ns, (5 + 40 + 100) * 1e3, 0);
    assert_int_equal(row->lines, 3);
    assert_string_equal(kp_kineto_text(top.trace, row->line), "train.py:2 def main");
    kp_top_fini(&top);
}

/* With stacks of ops alone nothing tells where its time went. */
static void a_step_without_calls_has_no_line(void **state)
{
    struct little *t = *state;
    event(t, "user_annotation", "ProfilerStep#1", 1, 0, 100, "\"Call stack\":\"train.py(19): main;\"");
    event(t, "cpu_op", "aten::mm", 1, 10, 20, "\"Call stack\":\"train.py(3): main;\"");
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_int_equal(row_named(&top, "ProfilerStep*")->lines, 0);
    kp_top_fini(&top);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_LINE);
    assert_float_equal(row_named(&top, "")->cost.self_ns, 80e3, 0);
    assert_int_equal(top.count, 2);
    kp_top_fini(&top);
}

static void a_row_has_the_line_with_the_most_self_time(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mm 0 5 stack='train.py(3): a;'; op aten::mm 10 20 stack='train.py(8): b;'; "
                "op aten::mm 40 6 stack='train.py(3): a;'");
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_int_equal(top.count, 1);
    assert_int_equal(top.rows[0].lines, 2);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].line), "train.py:8 b");
    kp_top_fini(&top);
}

static void an_op_has_the_time_of_its_kernels(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mm 0 5 id=7; op aten::slow 10 50 id=8; kernel gemm@70 6 100 id=7; kernel alone@70 200 30");
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_true(top.has_gpu);
    assert_int_equal(top.count, 3); /* gemm is no row */
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].name), "aten::mm");
    assert_int_equal((int64_t)top.rows[0].cost.gpu_self_ns, 100000);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[1].name), "alone");
    assert_int_equal((int64_t)top.sum.cost.gpu_self_ns, 130000);
    kp_top_fini(&top);
}

static void shapes_are_rows_of_their_own(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mm 0 5 dims=[[2,3]]; op aten::mm 10 9 dims=[[4,3]]");
    struct kp_top top = top_make(t, KP_TOP_BY_SHAPE);
    assert_int_equal(top.count, 2);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].shapes), "[[4, 3]]");
    kp_top_fini(&top);
}

static void types_other_than_float32_stand_behind_shapes(void **state)
{
    struct little *t = *state;
    event(t, "cpu_op", "aten::mm", 1, 0, 5, "\"Input Dims\":[[2,3]],\"Input type\":[\"float\"]");
    event(t, "cpu_op", "aten::mm", 1, 10, 9, "\"Input Dims\":[[2,3]],\"Input type\":[\"double\"]");
    struct kp_top top = top_make(t, KP_TOP_BY_SHAPE);
    assert_int_equal(top.count, 2);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].shapes), "[[2, 3]] double");
    assert_string_equal(kp_kineto_text(top.trace, top.rows[1].shapes), "[[2, 3]]");
    kp_top_fini(&top);
}

/* Both steps ask a GPU for work that runs behind their ends, an op reaches over the edge, another thread waits. */
static void steps_make(struct little *t)
{
    for (int i = 0; i < 2; i++) {
        const int at = 1000 * i;
        char id[48];
        numbered_step(t, i, at, 1000);
        snprintf(id, sizeof id, "\"External id\":%d,\"Call stack\":\"train.py(%d): f;\"", i + 1, 7 + i);
        event(t, "cpu_op", "aten::mm", 1, at + 100, 50, id);
        event(t, "cpu_op", "aten::add", 1, at + 900, 60 + 70 * !i, "");
        snprintf(id, sizeof id, "\"External id\":%d", i + 1);
        event(t, "kernel", "gemm", 70, at + 1010, 40, id);
        event(t, "python_function", "<built-in method acquire of _thread.lock object>", 2, at + 10, 900, "");
    }
    event(t, "cuda_sync", "Stream Sync", 70, 1100, 500, "\"External id\":2");
}

static void same_row(const struct kp_top *a, const struct kp_top *b, size_t i)
{
    const struct kp_top_row *const x = &a->rows[i], *const y = &b->rows[i];
    assert_int_equal(x->name, y->name);
    assert_int_equal(x->line, y->line);
    assert_memory_equal(&x->cost, &y->cost, sizeof x->cost);
}

struct compared {
    struct little *t;
    enum kp_top_by by;
    size_t steps;
};

static void step_compare(void *context, size_t step, const struct kp_top *top)
{
    struct compared *const c = context;
    const struct kp_choice one = {.first_step = (long)step, .last_step = (long)step};
    struct kp_chosen chosen;
    struct kp_top alone;
    char why[128];
    assert_int_equal(kp_chosen_make(&chosen, &c->t->tree, &one, why, sizeof why), 0);
    kp_top_build(&alone, &c->t->tree, &chosen, c->by);
    kp_top_order(&alone, KP_TOP_SELF);
    assert_int_equal(top->count, alone.count);
    for (size_t i = 0; i < top->count; i++) same_row(top, &alone, i);
    kp_top_fini(&alone);
    kp_chosen_fini(&chosen);
    c->steps++;
}

static void each_step_has_the_rows_of_a_choice_of_it_alone(void **state)
{
    struct little *t = *state;
    steps_make(t);
    assert_int_equal(choose(t, &everything), 0);
    for (enum kp_top_by by = KP_TOP_BY_OP; by <= KP_TOP_BY_KERNEL; by++) {
        struct compared c = {t, by, 0};
        kp_top_each_step(&t->tree, &t->chosen, by, step_compare, &c);
        assert_int_equal(c.steps, 2);
    }
}

/* It would have the time of each thread once more. */
static void what_runs_in_no_module_has_no_total_of_its_own(void **state)
{
    struct little *t = *state;
    trace_of(t, "call 'train.py(3): main' 0 1000; call 'nn.Module: Net_0' 100 700; op aten::mm 150 600; "
                "op aten::cat@2 0 1000");
    struct kp_top top = top_make(t, KP_TOP_BY_MODULE);
    for (size_t i = 0; i < top.count; i++)
        if (!top.rows[i].name) assert_true(top.rows[i].cost.total_ns <= top.rows[i].cost.self_ns);
    kp_top_fini(&top);
}

/* A call that began before the steps, and goes on in what it calls, has the part of its time that lies in them. */
static void a_total_has_the_part_of_what_began_before(void **state)
{
    struct little *t = *state;
    trace_of(t, "step 0 100 100; call 'train.py(3): f' 90 20; op aten::mm 90 20; call 'train.py(3): f' 150 5; "
                "call 'train.py(4): outer'@2 0 300; op aten::add@2 0 300");
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 0, .last_step = 0}), 0);
    struct kp_top top;
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_OP);
    kp_top_order(&top, KP_TOP_SELF);
    assert_int_equal((int64_t)row_named(&top, "train.py(3): f")->cost.total_ns, 15000);
    assert_int_equal(row_named(&top, "train.py(3): f")->cost.count, 1);
    for (size_t i = 0; i < top.count; i++) /* nothing of it is its own */
        assert_string_not_equal(kp_kineto_text(top.trace, top.rows[i].name), "train.py(4): outer");
    kp_top_fini(&top);
}

static void what_lies_outside_of_the_steps_leaves_the_rows(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::empty 0 300 stack='train.py(3): build;'; op aten::mm 300 90 stack='train.py(4): warm;'; "
                "step 0 500 100; op aten::mm 500 60 stack='train.py(8): step;'");
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_int_equal(row_named(&top, "aten::mm")->cost.count, 2);
    assert_string_equal(kp_kineto_text(top.trace, row_named(&top, "aten::mm")->line), "train.py:4 warm");
    kp_top_fini(&top);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_OP);
    kp_top_keep_steps(&top);
    kp_top_order(&top, KP_TOP_SELF);
    assert_int_equal(top.count, 2); /* mm, and the step in no op */
    const struct kp_top_row *row = row_named(&top, "aten::mm");
    assert_int_equal((int64_t)row->cost.self_ns, 60000);
    assert_int_equal((int64_t)row->cost.total_ns, 60000);
    assert_int_equal(row->cost.count, 1);
    assert_int_equal(row->lines, 1);
    assert_string_equal(kp_kineto_text(top.trace, row->line), "train.py:8 step");
    assert_int_equal((int64_t)top.sum.cost.self_ns, 100000);
    kp_top_fini(&top);
}

#define GAP "outside any op or range"

static void time_that_no_node_has_is_a_row_where_it_is_asked_for(void **state)
{
    struct little *t = *state;
    trace_of(t, "step 0 100 100; op aten::mm 150 20; op aten::mul@2 220 10");
    op(t, "aten::mm", 290, 10); /* from 100 to 300: 200 to 220 and 230 to 290 are of nobody */
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_int_equal(top.gap_ns, 80000);
    assert_int_equal(top.step_gap_ns, 0);
    kp_top_fini(&top);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_OP);
    kp_top_add_gap(&top, true);
    kp_top_order(&top, KP_TOP_SELF);
    assert_int_equal((int64_t)row_named(&top, GAP ", outside the steps")->cost.self_ns, 80000);
    assert_int_equal((int64_t)top.sum.cost.self_ns, 200000); /* all of the time */
    kp_top_fini(&top);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_OP);
    kp_top_add_gap(&top, true);
    kp_top_keep_steps(&top);
    assert_int_equal((int64_t)top.sum.cost.self_ns, 100000);
    kp_top_fini(&top);
}

/* It is then the row that the array grows for, which moves it: something lies behind it. */
static void time_that_no_node_has_is_a_row_behind_a_full_array(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mm 0 20; op aten::mul 90 10");
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    kp_top_fini(&top);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_OP);
    struct kp_top_row *const full = malloc(top.count * sizeof *full);
    void *const behind = malloc(top.count * sizeof *full);
    memcpy(full, top.rows, top.count * sizeof *full);
    free(top.rows);
    top.rows = full;
    top.capacity = top.count;
    kp_top_add_gap(&top, false);
    assert_int_equal((int64_t)row_named(&top, GAP)->cost.self_ns, 70000);
    assert_int_equal((int64_t)top.sum.cost.self_ns, 100000);
    kp_top_fini(&top);
    free(behind);
}

static void the_time_of_nobody_has_no_line(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mm 0 30 stack='train.py(3): build;'; op aten::mul 30 20; op aten::mul 90 10");
    struct kp_top top = top_make(t, KP_TOP_BY_LINE);
    kp_top_fini(&top);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_LINE);
    kp_top_add_gap(&top, false);
    kp_top_order(&top, KP_TOP_SELF);
    assert_int_equal(top.count, 2);
    assert_int_equal((int64_t)row_named(&top, "")->cost.self_ns, 70000);
    kp_top_fini(&top);
}

static void memory_of(struct little *t, int ts, int bytes)
{
    char args[120];
    snprintf(args, sizeof args, "\"Total Allocated\":9,\"Bytes\":%d,\"Addr\":%d,\"Device Id\":-1,\"Device Type\":0",
             bytes, ts);
    event(t, "cpu_instant_event", "[memory]", 1, ts, 0, args);
}

static void bytes_stand_at_the_op_that_asked(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::zeros_like 0 100; op aten::empty_like 10 80; op aten::empty_strided 20 60");
    memory_of(t, 30, 4096);
    op(t, "aten::empty", 200, 50); /* nobody called it */
    memory_of(t, 210, 512);
    op(t, "aten::mm", 300, 50);
    memory_of(t, 310, 64);
    struct kp_top top = top_make(t, KP_TOP_BY_OP);
    assert_int_equal(row_named(&top, "aten::zeros_like")->cost.self_bytes, 4096);
    assert_int_equal(row_named(&top, "aten::empty_like")->cost.self_bytes, 0);
    assert_int_equal(row_named(&top, "aten::empty_strided")->cost.self_bytes, 0);
    assert_int_equal(row_named(&top, "aten::empty")->cost.self_bytes, 512);
    assert_int_equal(top.sum.cost.self_bytes, 4096 + 512 + 64);
    kp_top_order(&top, KP_TOP_MEM);
    assert_string_equal(kp_kineto_text(top.trace, top.rows[0].name), "aten::zeros_like");
    kp_top_fini(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(rows_come_by_self_time_and_add_up),
        LITTLE(the_longest_of_calls_that_were_cut_in_parts_is_of_all_its_parts),
        LITTLE(a_total_counts_no_time_twice),
        LITTLE(ops_are_put_to_lines_and_backward_ops_to_their_forward_line),
        LITTLE(a_line_names_the_line_that_calls_it_most),
        LITTLE(what_the_engine_runs_beside_a_backward_op_is_of_its_forward_line),
        LITTLE(torch_leaves_what_the_engine_runs_where_it_ran),
        LITTLE(a_frame_of_calls_has_the_line_that_called),
        LITTLE(by_symbol_are_the_calls_of_symbols_alone),
        LITTLE(a_call_that_the_recording_found_open_has_no_line_of_its_def),
        LITTLE(what_a_step_does_in_no_op_stands_at_the_function_that_runs),
        LITTLE(a_step_has_the_lines_of_the_functions_that_run_in_it),
        LITTLE(a_step_without_calls_has_no_line),
        LITTLE(a_row_has_the_line_with_the_most_self_time),
        LITTLE(an_op_has_the_time_of_its_kernels),
        LITTLE(shapes_are_rows_of_their_own),
        LITTLE(types_other_than_float32_stand_behind_shapes),
        LITTLE(each_step_has_the_rows_of_a_choice_of_it_alone),
        LITTLE(a_total_has_the_part_of_what_began_before),
        LITTLE(what_runs_in_no_module_has_no_total_of_its_own),
        LITTLE(what_lies_outside_of_the_steps_leaves_the_rows),
        LITTLE(time_that_no_node_has_is_a_row_where_it_is_asked_for),
        LITTLE(time_that_no_node_has_is_a_row_behind_a_full_array),
        LITTLE(the_time_of_nobody_has_no_line),
        LITTLE(bytes_stand_at_the_op_that_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
