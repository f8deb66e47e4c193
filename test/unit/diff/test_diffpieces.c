// SPDX-License-Identifier: Apache-2.0
/* test_diffpieces.c - a trace compared in pieces has the rows of the whole */
#include "export/answers/diff/diff.h"

#include <errno.h>
#include <string.h>

#include "test/support/story.h"

enum { TURNS = 60 };

static void whole_add(struct kp_diff *d, const struct story *s)
{
    const struct kp_choice all = {.first_step = -1, .last_step = -1};
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_chosen chosen;
    char why[256];
    assert_int_equal(story_read(s, &trace, NULL), 0);
    assert_int_equal(kp_tree_build(&tree, trace), 0);
    kp_tree_fill_calls(&tree);
    kp_tree_set_forward_stacks(&tree);
    assert_int_equal(kp_chosen_make(&chosen, &tree, &all, why, sizeof why), 0);
    kp_diff_add(d, KP_DIFF_A, &tree, &chosen, "t");
    kp_diff_add(d, KP_DIFF_B, &tree, &chosen, "t");
    kp_chosen_fini(&chosen);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
}

/* False: the whole is needed. */
static bool pieces_add(struct kp_diff *d, const struct story *s, int side)
{
    struct kp_kineto *trace;
    struct kp_diffpieces *pieces = kp_diffpieces_open(side);
    const int rc = story_read(s, &trace, kp_diffpieces_reading(pieces));
    assert_true(kp_diffpieces_reading(pieces)->has_given);
    assert_true(rc == 0 || rc == -ESTALE);
    const bool holds = rc == 0 && kp_diffpieces_end(pieces, trace, d, "t");
    kp_diffpieces_close(pieces);
    kp_kineto_close(trace);
    return holds;
}

static char *json_of(struct kp_diff *d)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    kp_diff_settle(d);
    kp_diff_json(out, d);
    fclose(out);
    kp_diff_close(d);
    return text;
}

/* Sides in pieces twice: samples of a second trace would come behind those of the first. */
static void same_rows(const struct story *s, const char *part)
{
    struct kp_diff whole, pieces;
    kp_diff_open(&whole);
    kp_diff_open(&pieces);
    whole_add(&whole, s);
    assert_true(pieces_add(&pieces, s, KP_DIFF_A) && pieces_add(&pieces, s, KP_DIFF_B));
    char *a = json_of(&whole), *b = json_of(&pieces);
    assert_non_null(strstr(a, part));
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void memory(struct story *s, int ts, int bytes, int total)
{
    add(s,
        ",{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%d,\"args\":"
        "{\"Device Type\":0,\"Device Id\":-1,\"Addr\":7,\"Bytes\":%d,\"Total Allocated\":%d}}",
        ts, bytes, total);
}

static void turn_put(struct story *s, int turn, int at)
{
    char args[200];
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Call stack\":\"train.py(%d): f\"", turn, turn % 5 + 1);
    event(s, "cpu_op", "aten::mul", 1, at + 2, 20 + turn % 7, args);
    event(s, "cpu_op", "aten::add", 1, at + 4, 10, args);
    memory(s, at + 5, 64 + turn, 1000 + turn);
    event(s, "user_annotation", "enumerate(DataLoader)#x.__next__", 1, at + 40, 10, "");
    if (turn % 3 == 0) event(s, "cpu_op", "aten::sometimes", 1, at + 60, 5, "");
}

static void step_put(struct story *s, int turn, int at)
{
    char name[64];
    snprintf(name, sizeof name, "ProfilerStep#%d", turn);
    event(s, "user_annotation", name, 1, at, 90, "");
    turn_put(s, turn, at);
}

static void steps_in_pieces_are_the_samples_of_the_whole(void **state)
{
    struct story *s = *state;
    begin(s, "\"host_name\":\"node7\",\"kprof\":{\"lost\":5},");
    for (int turn = 0; turn < TURNS; turn++) step_put(s, turn, turn * 100);
    end(s);
    same_rows(s, "\"peak, CPU\"");
}

static void frames_that_stay_open_are_split(void **state)
{
    struct story *s = *state;
    begin(s, "");
    event(s, "python_function", "main.py(1): main", 1, 0, TURNS * 100 + 50, "");
    event(s, "python_function", "nn.Module: Net_0", 1, 1, TURNS * 100 + 40, "");
    for (int turn = 0; turn < TURNS; turn++) step_put(s, turn, turn * 100 + 5);
    end(s);
    same_rows(s, "\"aten::mul\"");
}

static void frames_have_their_time_in_each_step(void **state)
{
    struct story *s = *state;
    begin(s, "");
    event(s, "python_function", "main.py(1): main", 1, 0, TURNS * 100 + 50, "");
    for (int turn = 0; turn < TURNS; turn++) {
        turn_put(s, turn, turn * 100 + 5);
        event(s, "user_annotation", "Optimizer.step#SGD.step", 1, turn * 100 + 75, 20, "");
    }
    end(s);
    same_rows(s, "\"main.py: main\"");
}

/* All of it is one sample, whatever pieces it has. */
static void a_trace_without_steps_is_one_sample(void **state)
{
    struct story *s = *state;
    begin(s, "");
    for (int turn = 0; turn < TURNS; turn++) turn_put(s, turn, turn * 100);
    end(s);
    same_rows(s, "\"aten::sometimes\"");
}

/* Whole pieces pass before the first step. */
static void what_is_before_the_first_step_is_in_no_sample(void **state)
{
    struct story *s = *state;
    begin(s, "");
    for (int turn = 0; turn < TURNS; turn++) turn_put(s, turn, turn * 100);
    for (int turn = 0; turn < TURNS; turn++) step_put(s, turn, (TURNS + turn) * 100);
    end(s);
    same_rows(s, "\"aten::sometimes\"");
}

static void optimizers_steps_are_samples(void **state)
{
    struct story *s = *state;
    begin(s, "");
    for (int turn = 0; turn < TURNS; turn++) {
        turn_put(s, turn, turn * 100);
        event(s, "user_annotation", "Optimizer.step#SGD.step", 1, turn * 100 + 70, 20, "");
    }
    end(s);
    same_rows(s, "\"aten::mul\"");
}

static void a_gpu_in_some_pieces_alone_needs_the_whole(void **state)
{
    struct story *s = *state;
    struct kp_diff d;
    begin(s, "");
    for (int turn = 0; turn < TURNS * 2; turn++) {
        step_put(s, turn, turn * 100);
        if (turn > TURNS) event(s, "kernel", "mul_kernel", 7, turn * 100 + 30, 15, "");
    }
    end(s);
    kp_diff_open(&d);
    assert_false(pieces_add(&d, s, KP_DIFF_A));
    assert_int_equal(d.count, 0); /* nothing was added */
    assert_int_equal(d.sides[KP_DIFF_A].samples, 0);
    kp_diff_close(&d);
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, story_setup, story_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(steps_in_pieces_are_the_samples_of_the_whole),  STORY(frames_that_stay_open_are_split),
        STORY(frames_have_their_time_in_each_step),           STORY(a_trace_without_steps_is_one_sample),
        STORY(what_is_before_the_first_step_is_in_no_sample), STORY(optimizers_steps_are_samples),
        STORY(a_gpu_in_some_pieces_alone_needs_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
