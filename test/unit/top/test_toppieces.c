// SPDX-License-Identifier: Apache-2.0
/* test_toppieces.c - a trace reported in pieces has the numbers of the whole, or says that it must be read whole */
#include "export/read/kineto/overlaps.h"
#include "export/answers/top/toprows.h"

#include <errno.h>
#include <string.h>

#include "test/support/story.h"

enum { TURNS = 60 };

/* ---- both ways ---- */

struct numbers {
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_top top;
    struct kp_summary summary;
    struct kp_stepparts parts;
    struct kp_chosen chosen;
};

static void numbers_fini(struct numbers *n)
{
    kp_top_fini(&n->top);
    kp_chosen_fini(&n->chosen);
    kp_stepparts_fini(&n->parts);
    kp_tree_fini(&n->tree);
    kp_kineto_close(n->trace);
}

static struct numbers whole_make(const struct story *s, enum kp_top_by by)
{
    const struct kp_choice all = {.first_step = -1, .last_step = -1};
    struct numbers n = {0};
    char why[256];
    assert_int_equal(story_read(s, &n.trace, NULL), 0);
    kp_kineto_works_settle(n.trace);
    assert_int_equal(kp_tree_build(&n.tree, n.trace), 0);
    kp_tree_fill_calls(&n.tree);
    kp_tree_set_forward_stacks(&n.tree);
    assert_int_equal(kp_chosen_make(&n.chosen, &n.tree, &all, why, sizeof why), 0);
    kp_summary_make(&n.summary, &n.tree, &n.chosen);
    kp_stepparts_add(&n.parts, &n.tree, &n.chosen);
    kp_top_build(&n.top, &n.tree, &n.chosen, by);
    kp_top_order(&n.top, KP_TOP_SELF);
    return n;
}

/* False: the whole is needed. */
static bool pieces_make(const struct story *s, enum kp_top_by by, struct numbers *out, bool *was_cut)
{
    struct kp_toppieces *pieces = kp_toppieces_open(by, NULL, NULL);
    *out = (struct numbers){0};
    const int rc = story_read(s, &out->trace, kp_toppieces_reading(pieces));
    *was_cut = kp_toppieces_reading(pieces)->has_given;
    assert_true(rc == 0 || rc == -ESTALE);
    const bool holds =
        rc == 0 && kp_toppieces_end(pieces, out->trace, &out->top, &out->summary, &out->parts, &out->chosen);
    kp_toppieces_close(pieces);
    if (holds) kp_top_order(&out->top, KP_TOP_SELF);
    return holds;
}

static void same_row(const struct numbers *a, const struct numbers *b, size_t i)
{
    const struct kp_top_row *x = &a->top.rows[i], *y = &b->top.rows[i];
    assert_string_equal(kp_kineto_text(a->trace, x->name), kp_kineto_text(b->trace, y->name));
    assert_string_equal(kp_kineto_text(a->trace, x->shapes), kp_kineto_text(b->trace, y->shapes));
    assert_string_equal(kp_kineto_text(a->trace, x->line), kp_kineto_text(b->trace, y->line));
    assert_int_equal(x->lines, y->lines);
    assert_int_equal(x->cost.count, y->cost.count);
    assert_int_equal(x->cost.self_bytes, y->cost.self_bytes);
    assert_true(x->is_backward == y->is_backward && x->is_line_backward == y->is_line_backward);
    assert_float_equal(x->cost.self_ns, y->cost.self_ns, 0.01);
    assert_float_equal(x->cost.total_ns, y->cost.total_ns, 0.01);
    assert_float_equal(x->cost.gpu_self_ns, y->cost.gpu_self_ns, 0.01);
    assert_float_equal(x->cost.gpu_total_ns, y->cost.gpu_total_ns, 0.01);
    assert_float_equal(x->cost.longest_ns, y->cost.longest_ns, 0.01);
    assert_float_equal(x->steps.longest_ns, y->steps.longest_ns, 0.01);
    assert_float_equal(x->steps.self_ns, y->steps.self_ns, 0.01);
    assert_float_equal(x->steps.total_ns, y->steps.total_ns, 0.01);
    assert_float_equal(x->steps.gpu_self_ns, y->steps.gpu_self_ns, 0.01);
    assert_int_equal(x->steps.count, y->steps.count);
}

/* Where a piece begins nothing ran before, so what lies between two parts of one kind may be of none. */
static void same_parts(const struct kp_stepparts *whole, const struct kp_stepparts *pieces)
{
    assert_int_equal(whole->all.steps_ns, pieces->all.steps_ns);
    for (int part = 0; part < KP_PARTS; part++) {
        const int64_t apart = whole->all.host_ns[part] - pieces->all.host_ns[part];
        assert_in_range(apart + whole->all.steps_ns / 100, 0, whole->all.steps_ns / 50);
        assert_int_equal(whole->all.gpu_ns[part], pieces->all.gpu_ns[part]);
    }
}

static void same_numbers(const struct story *s, enum kp_top_by by)
{
    struct numbers whole = whole_make(s, by), pieces;
    bool was_cut;
    assert_true(pieces_make(s, by, &pieces, &was_cut));
    assert_true(was_cut);
    assert_memory_equal(&whole.summary, &pieces.summary, sizeof whole.summary);
    same_parts(&whole.parts, &pieces.parts);
    assert_int_equal(whole.top.count, pieces.top.count);
    assert_int_equal(whole.top.steps, pieces.top.steps);
    assert_true(whole.top.has_gpu == pieces.top.has_gpu && whole.top.has_memory == pieces.top.has_memory);
    assert_int_equal(whole.chosen.ended_by, pieces.chosen.ended_by);
    for (size_t i = 0; i < whole.top.count; i++) same_row(&whole, &pieces, i);
    numbers_fini(&whole);
    numbers_fini(&pieces);
}

static void needs_the_whole(const struct story *s)
{
    struct numbers n;
    bool was_cut;
    assert_false(pieces_make(s, KP_TOP_BY_OP, &n, &was_cut));
    assert_true(was_cut); /* the trace was cut, and the pieces did not hold */
    numbers_fini(&n);
}

/* ---- traces ---- */

static void step(struct story *s, int turn, int at)
{
    char name[64], args[200];
    snprintf(name, sizeof name, "ProfilerStep#%d", turn);
    event(s, "user_annotation", name, 1, at, 90, "");
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Input Dims\":[[%d]],\"Call stack\":\"train.py(%d): f\"", turn,
             turn % 3, turn % 5 + 1);
    event(s, "cpu_op", "aten::mul", 1, at + 2, 20 + turn % 7, args);
    event(s, "cpu_op", "aten::add", 1, at + 4, 10, args);
    add(s,
        ",{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%d,"
        "\"args\":{\"Device Type\":0,\"Bytes\":64}}",
        at + 5);
    event(s, "user_annotation", "enumerate(DataLoader)#x.__next__", 1, at + 40, 10, "");
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", turn);
    event(s, "cpu_op", "autograd::engine::evaluate_function: MulBackward0", 2, at + 60, 12, args);
    event(s, "cpu_op", "MulBackward0", 2, at + 61, 10, args);
}

static void steps_in_pieces_add_up(void **state)
{
    struct story *s = *state;
    begin(s, "\"host_name\":\"node7\",\"kprof\":{\"lost\":5,\"cores\":2},");
    for (int turn = 0; turn < TURNS; turn++) step(s, turn, turn * 100);
    end(s);
    same_numbers(s, KP_TOP_BY_OP);
    same_numbers(s, KP_TOP_BY_LINE);
    same_numbers(s, KP_TOP_BY_SHAPE);
    struct numbers n = whole_make(s, KP_TOP_BY_OP);
    assert_int_equal(n.parts.all.host_ns[KP_PART_BACKWARD], TURNS * 12 * 1000); /* as same_numbers() compares */
    numbers_fini(&n);
}

static void optimizer_steps_go_through_pieces(void **state)
{
    struct story *s = *state;
    begin(s, "");
    for (int turn = 0; turn < TURNS; turn++) {
        event(s, "cpu_op", "aten::mul", 1, turn * 100, 30, "");
        event(s, "cpu_op", "aten::neg", 2, turn * 100 + 20, 20 + turn % 5, "");
        event(s, "user_annotation", "Optimizer.step#SGD.step", 1, turn * 100 + 50, 20, "");
        event(s, "cpu_op", "aten::add_", 1, turn * 100 + 55, 5, "");
        event(s, "cpu_op", "aten::zero_", 1, turn * 100 + 80, 5, "");
    }
    end(s);
    same_numbers(s, KP_TOP_BY_OP);
}

/* Of two optimizers of one class every other range ends a step. */
static void marked_ends_of_steps_go_through_pieces(void **state)
{
    struct story *s = *state;
    begin(s, "\"kprof\":{\"step_source\":\"optimizer\",\"step_ends\":true},");
    for (int turn = 0; turn < TURNS; turn++) {
        event(s, "user_annotation", "enumerate(DataLoader)#x.__next__", 1, turn * 100, 10, "\"step\":\"ended\"");
        event(s, "cpu_op", "aten::mul", 1, turn * 100 + 12, 20, "");
        event(s, "user_annotation", "Optimizer.step#Adam.step", 1, turn * 100 + 50, 20,
              turn % 2 ? "" : "\"step\":\"ended\"");
        event(s, "cpu_op", "aten::zero_", 1, turn * 100 + 80, 5, "");
    }
    end(s);
    same_numbers(s, KP_TOP_BY_OP);
    struct numbers n = whole_make(s, KP_TOP_BY_OP);
    assert_int_equal(n.chosen.optimizer_steps, (TURNS + 1) / 2);
    numbers_fini(&n);
}

static void kernels_in_their_pieces_add_up(void **state)
{
    struct story *s = *state;
    char args[100];
    begin(s, "");
    for (int turn = 0; turn < TURNS; turn++) {
        snprintf(args, sizeof args, "\"External id\":%d", turn + 1);
        event(s, "cpu_op", "aten::mul", 1, turn * 100, 30, args);
        event(s, "cuda_runtime", "cudaLaunchKernel", 1, turn * 100 + 5, 10, args);
        event(s, "kernel", "mul_kernel", 7, turn * 100 + 40, 15, args);
    }
    end(s);
    same_numbers(s, KP_TOP_BY_OP);
}

/* The kernels of all ops run at the end, so each piece has ops alone. */
static void kernels_of_earlier_pieces_need_the_whole(void **state)
{
    struct story *s = *state;
    char args[100];
    begin(s, "");
    for (int turn = 0; turn < TURNS; turn++) {
        snprintf(args, sizeof args, "\"External id\":%d", turn + 1);
        event(s, "cpu_op", "aten::mul", 1, turn * 100, 30, args);
        event(s, "kernel", "other", 7, turn * 100 + 40, 1, "");
    }
    for (int turn = 0; turn < TURNS; turn++) {
        snprintf(args, sizeof args, "\"External id\":%d", turn + 1);
        event(s, "kernel", "mul_kernel", 7, (TURNS + turn) * 100, 15, args);
    }
    end(s);
    needs_the_whole(s);
}

static void an_event_that_comes_late_needs_the_whole(void **state)
{
    struct story *s = *state;
    begin(s, "");
    for (int turn = 0; turn < TURNS * 4; turn++) event(s, "cpu_op", "aten::mul", 1, turn * 100, 30, "");
    event(s, "python_function", "main.py(1): main", 1, 0, TURNS * 400, "");
    end(s);
    needs_the_whole(s);
}

/* Frames that are open all the time, one that ends between two steps, and one in another thread. */
static void frames_put(struct story *s)
{
    event(s, "python_function", "main.py(30): <module>", 1, 0, TURNS * 100 + 51, ""); /* open at the start, and main */
    event(s, "python_function", "main.py(1): main", 1, 0, TURNS * 100 + 50, "");
    event(s, "python_function", "nn.Module: Net_0", 1, 1, TURNS * 100 + 40, "");
    event(s, "python_function", "main.py(7): some", 1, 2, TURNS * 50 - 4, "");
    event(s, "python_function", "loop.py(3): run", 2, 1, TURNS * 100, "");
}

static void a_trace_that_never_rests_is_split(void **state)
{
    struct story *s = *state;
    begin(s, "\"host_name\":\"node7\",\"kprof\":{\"lost\":5,\"cores\":2},");
    frames_put(s);
    for (int turn = 0; turn < TURNS; turn++) {
        event(s, "python_function", "main.py(9): step", 1, turn * 100 + 4, 93, "");
        step(s, turn, turn * 100 + 5);
    }
    end(s);
    same_numbers(s, KP_TOP_BY_OP);
    same_numbers(s, KP_TOP_BY_LINE);
    same_numbers(s, KP_TOP_BY_MODULE);
    same_numbers(s, KP_TOP_BY_SHAPE);
}

static const struct kp_top_row *row_of(const struct numbers *n, const char *name)
{
    for (size_t i = 0; i < n->top.count; i++)
        if (strcmp(kp_kineto_text(n->trace, n->top.rows[i].name), name) == 0) return &n->top.rows[i];
    return NULL;
}

/*
 * A file of whole microseconds: calls that were open begin one after the other, up to the one that starts the
 * recording, with the lines that they were at. Later ones begin in the microsecond of their callers.
 */
static void calls_that_begin_together_in_microseconds_keep_their_lines(void **state)
{
    struct story *s = *state;
    begin(s, "\"with_stack\":1,");
    event(s, "python_function", "feed.py(7): feed", 2, 0, TURNS * 100 + 50, "");
    event(s, "python_function", "train.py(114): main", 1, 0, TURNS * 100 + 50, "");
    event(s, "python_function", "train.py(99): fit", 1, 1, TURNS * 100 + 40, "");
    event(s, "python_function", "/usr/lib/torch/autograd/profiler.py(296): _start_trace", 1, 2, 2, "");
    for (int turn = 0; turn < TURNS; turn++) {
        event(s, "python_function", "net.py(36): forward", 1, turn * 100 + 10, 70, "");
        event(s, "python_function", "net.py(40): inner", 1, turn * 100 + 10, 60, "");
        event(s, "cpu_op", "aten::mul", 1, turn * 100 + 12, 30, "");
        event(s, "cpu_op", "aten::add", 1, turn * 100 + 72, 5, "");
    }
    end(s);
    same_numbers(s, KP_TOP_BY_LINE);
    struct numbers n = whole_make(s, KP_TOP_BY_LINE);
    assert_non_null(row_of(&n, "train.py fit"));
    assert_non_null(row_of(&n, "net.py:36 def forward"));
    assert_non_null(row_of(&n, "net.py:40 def inner"));
    assert_non_null(row_of(&n, "feed.py feed"));
    assert_null(row_of(&n, "net.py forward"));
    assert_null(row_of(&n, "train.py:99 def fit"));
    numbers_fini(&n);
}

static void a_trace_that_never_rests_is_split_at_optimizers_steps(void **state)
{
    struct story *s = *state;
    begin(s, "");
    frames_put(s);
    for (int turn = 0; turn < TURNS; turn++) {
        event(s, "cpu_op", "aten::mul", 1, turn * 100 + 3, 30, "");
        event(s, "python_function", "sgd.py(9): step", 1, turn * 100 + 49, 30, "");
        event(s, "user_annotation", "Optimizer.step#SGD.step", 1, turn * 100 + 50, 20, "");
        event(s, "cpu_op", "aten::add_", 1, turn * 100 + 55, 5, "");
        event(s, "cpu_op", "aten::zero_", 1, turn * 100 + 80, 5, "");
    }
    end(s);
    same_numbers(s, KP_TOP_BY_OP);
}

static void a_frame_that_calls_itself_needs_the_whole(void **state)
{
    struct story *s = *state;
    begin(s, "");
    event(s, "python_function", "main.py(1): main", 1, 0, TURNS * 400, "");
    event(s, "python_function", "main.py(1): main", 1, 1, TURNS * 400 - 2, "");
    for (int turn = 0; turn < TURNS * 4; turn++) event(s, "cpu_op", "aten::mul", 1, turn * 100 + 5, 30, "");
    end(s);
    needs_the_whole(s);
}

/* The GPU works all the time, and its work is not split. */
static void a_gpu_that_never_rests_stays_whole(void **state)
{
    struct story *s = *state;
    struct numbers n;
    bool was_cut;
    begin(s, "");
    for (int turn = 0; turn < TURNS * 4; turn++) {
        event(s, "kernel", "mul_kernel", 7, turn * 100, 101, "");
        event(s, "cpu_op", "aten::mul", 1, turn * 100 + 10, 30, "");
    }
    end(s);
    (void)pieces_make(s, KP_TOP_BY_OP, &n, &was_cut);
    assert_false(was_cut);
    assert_int_equal(n.trace->count, TURNS * 8);
    numbers_fini(&n);
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, story_setup, story_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(steps_in_pieces_add_up),
        STORY(optimizer_steps_go_through_pieces),
        STORY(marked_ends_of_steps_go_through_pieces),
        STORY(kernels_in_their_pieces_add_up),
        STORY(kernels_of_earlier_pieces_need_the_whole),
        STORY(an_event_that_comes_late_needs_the_whole),
        STORY(a_trace_that_never_rests_is_split),
        STORY(calls_that_begin_together_in_microseconds_keep_their_lines),
        STORY(a_trace_that_never_rests_is_split_at_optimizers_steps),
        STORY(a_frame_that_calls_itself_needs_the_whole),
        STORY(a_gpu_that_never_rests_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
