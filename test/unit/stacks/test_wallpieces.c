// SPDX-License-Identifier: Apache-2.0
/* test_wallpieces.c - call paths of a trace in pieces are those of the whole, or it says that it must be read whole */
#include "export/answers/stacks/walltime.h"

#include <errno.h>
#include <string.h>

#include "export/read/kineto/overlaps.h"
#include "test/support/story.h"

enum { TURNS = 120, SECOND_THREAD = 7, ENGINE = 9, STREAM = 30 };
#define AT(line) "\"Call stack\":\"net.py(" #line "): run;train.py(3): main\""
#define AT_SEQ(line, seq) AT(line) ",\"Sequence number\":" seq

/* ---- both ways ---- */

struct lines {
    char *text;
    size_t used;
    struct kp_wall_told told;
    bool is_of_steps;
};

static void line_keep(void *context, const char *path, int64_t value)
{
    struct lines *const l = context;
    l->used += (size_t)snprintf(l->text + l->used, TEXT_BYTES - l->used, "%s %lld\n", path, (long long)value);
    assert_true(l->used < TEXT_BYTES);
}

static void lines_fill(struct lines *l, struct kp_calltree *paths)
{
    l->text = calloc(1, TEXT_BYTES);
    kp_calltree_each(paths, 1, line_keep, l);
    kp_calltree_close(paths);
}

static struct lines whole_make(const struct story *s, struct kp_wall_options options, bool all)
{
    const struct kp_choice any = {.first_step = -1, .last_step = -1};
    struct kp_calltree *const paths = kp_calltree_open();
    struct lines l = {0};
    struct kp_kineto *trace;
    struct kp_chosen chosen;
    struct kp_tree tree;
    char why[256];
    assert_int_equal(story_read(s, &trace, NULL), 0);
    kp_kineto_works_settle(trace);
    assert_int_equal(kp_tree_build(&tree, trace), 0);
    kp_tree_set_forward_stacks(&tree);
    assert_int_equal(kp_chosen_make(&chosen, &tree, &any, why, sizeof why), 0);
    l.is_of_steps = !all && chosen.step_count && kp_chosen_is_of_steps(&chosen);
    options.within = l.is_of_steps ? &chosen.in_steps : NULL;
    kp_wall_add(paths, &tree, &options, &l.told);
    lines_fill(&l, paths);
    kp_chosen_fini(&chosen);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return l;
}

/* False: the whole is needed. */
static bool pieces_make(const struct story *s, const struct kp_wall_options *options, bool all, struct lines *out)
{
    struct kp_wallpieces *const pieces = kp_wallpieces_open(options, all);
    struct kp_kineto *trace;
    struct kp_chosen chosen;
    *out = (struct lines){0};
    const int rc = story_read(s, &trace, kp_wallpieces_reading(pieces));
    assert_true(rc == 0 || rc == -ESTALE);
    assert_true(kp_wallpieces_reading(pieces)->has_given);
    struct kp_calltree *const paths = rc == 0 ? kp_wallpieces_end(pieces, trace, &out->told, &chosen) : NULL;
    if (paths) {
        out->is_of_steps = !all && chosen.step_count && kp_chosen_is_of_steps(&chosen);
        lines_fill(out, paths);
        kp_chosen_fini(&chosen);
    }
    kp_wallpieces_close(pieces);
    kp_kineto_close(trace);
    return paths;
}

static int order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Pieces meet paths in another order. */
static void lines_sort(struct lines *l)
{
    char *rows[1024], *const sorted = calloc(1, TEXT_BYTES), *left = NULL;
    size_t count = 0, used = 0;
    for (char *row = strtok_r(l->text, "\n", &left); row; row = strtok_r(NULL, "\n", &left)) {
        assert_true(count < 1024);
        rows[count++] = row;
    }
    if (count) qsort(rows, count, sizeof *rows, order);
    for (size_t i = 0; i < count; i++) used += (size_t)sprintf(sorted + used, "%s\n", rows[i]);
    free(l->text);
    l->text = sorted;
}

static void same_paths(const struct story *s, enum kp_wall_metric metric, bool threads, bool all, bool is_of_steps)
{
    const struct kp_wall_options options = {.metric = metric, .threads = threads};
    struct lines whole = whole_make(s, options, all), pieces;
    assert_true(pieces_make(s, &options, all, &pieces));
    lines_sort(&whole);
    lines_sort(&pieces);
    assert_true(whole.used > 0);
    assert_string_equal(pieces.text, whole.text);
    assert_true(whole.is_of_steps == is_of_steps && pieces.is_of_steps == is_of_steps);
    assert_int_equal(pieces.told.wall_ns, whole.told.wall_ns);
    assert_int_equal(pieces.told.threads, whole.told.threads);
    assert_int_equal(pieces.told.threads_ns, whole.told.threads_ns);
    assert_true(pieces.told.has_frames == whole.told.has_frames);
    free(whole.text);
    free(pieces.text);
}

static bool is_whole_needed(const struct story *s)
{
    const struct kp_wall_options options = {0};
    struct lines pieces;
    const bool fits = pieces_make(s, &options, false, &pieces);
    if (fits) free(pieces.text);
    return !fits;
}

/* ---- stories ---- */

/* A step of 400 us: two ops with a gap of one line between them, a backward op of another thread, an optimizer's op. */
static void turn_add(struct story *s, int turn, int at, bool is_marked)
{
    char name[40], seq[80];
    snprintf(name, sizeof name, "ProfilerStep#%d", turn);
    snprintf(seq, sizeof seq, AT_SEQ(12, "%d"), turn);
    if (is_marked) event(s, "user_annotation", name, 1, at, 398, "");
    event(s, "cpu_op", "aten::mm", 1, at + 10, 50, seq);
    event(s, "cpu_op", "aten::empty", 1, at + 20, 5, AT(12));
    event(s, "cpu_op", "aten::relu", 1, at + 90, 20, AT(13));
    event(s, "cpu_op", "aten::relu", SECOND_THREAD, at + 95, 30, AT(40));
    snprintf(seq, sizeof seq, "\"Sequence number\":%d,\"Fwd thread id\":1", turn);
    event(s, "cpu_op", "autograd::engine::evaluate_function: MmBackward0", ENGINE, at + 130, 60, seq);
    event(s, "user_annotation", "Optimizer.step#SGD.step", 1, at + 300, 60, "");
    event(s, "cpu_op", "aten::add_", 1, at + 310, 30, AT(17));
}

/* What comes before the steps takes `startup` us. */
static void training_tell(struct story *s, int startup, bool is_marked)
{
    begin(s, "");
    event(s, "cpu_op", "aten::rand", 1, 10, 40, AT(1));
    for (int i = 0; i < TURNS; i++) turn_add(s, i, 100 + startup + 400 * i, is_marked);
    end(s);
}

/* ---- tests ---- */

static void steps_and_the_gaps_between_them_are_those_of_the_whole(void **state)
{
    training_tell(*state, 0, true);
    same_paths(*state, KP_WALL_CPU, false, false, false);
    same_paths(*state, KP_WALL_CPU, true, true, false);
}

static void a_long_start_up_is_left_out_at_the_end(void **state)
{
    training_tell(*state, 9000, true);
    same_paths(*state, KP_WALL_CPU, false, false, true);
    same_paths(*state, KP_WALL_CPU, true, false, true);
    same_paths(*state, KP_WALL_CPU, true, true, false);
}

static void steps_of_an_optimizer_are_cut_at_their_ends(void **state)
{
    training_tell(*state, 9000, false);
    same_paths(*state, KP_WALL_CPU, true, false, true);
    same_paths(*state, KP_WALL_CPU, false, true, false);
}

static void calls_of_python_go_on_behind_a_cut(void **state)
{
    begin(*state, "");
    event(*state, "python_function", "train.py(3): main", 1, 0, 20 * 3 * TURNS + 30, "\"Python id\":1");
    for (int i = 0; i < 3 * TURNS; i++) {
        event(*state, "python_function", "net.py(8): run", 1, 10 + 20 * i, 15, "\"CallFrom\":\"train.py:5\"");
        event(*state, "cpu_op", "aten::mm", 1, 13 + 20 * i, 7, "\"CallFrom\":\"net.py:9\"");
    }
    end(*state);
    same_paths(*state, KP_WALL_CPU, false, false, false);
}

static void work_of_a_gpu_stands_below_its_op(void **state)
{
    begin(*state, "");
    for (int i = 0; i < TURNS; i++) {
        char op[160], id[80], step[40];
        snprintf(step, sizeof step, "ProfilerStep#%d", i);
        snprintf(id, sizeof id, "\"External id\":%d,\"correlation\":%d", i + 1, i + 1);
        snprintf(op, sizeof op, "\"External id\":%d," AT(12), i + 1);
        event(*state, "user_annotation", step, 1, 5000 + 100 * i, 95, "");
        event(*state, "cpu_op", "aten::mm", 1, 5010 + 100 * i, 30, op);
        event(*state, "cuda_runtime", "cudaLaunchKernel", 1, 5015 + 100 * i, 5, id);
        event(*state, "kernel", "gemm", STREAM, 5050 + 100 * i, 20, id);
    }
    end(*state);
    same_paths(*state, KP_WALL_GPU, false, false, true);
}

/* In each piece the main thread is that of its steps. */
static void another_main_thread_needs_the_whole(void **state)
{
    begin(*state, "");
    for (int i = 0; i < 2 * TURNS; i++) {
        char step[40];
        snprintf(step, sizeof step, "ProfilerStep#%d", i);
        event(*state, "user_annotation", step, i < TURNS ? 5 : 6, 100 * i, 95, "");
        event(*state, "cpu_op", "aten::mm", i < TURNS ? 5 : 6, 10 + 100 * i, 30, AT(12));
    }
    end(*state);
    assert_true(is_whole_needed(*state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_and_the_gaps_between_them_are_those_of_the_whole, story_setup,
                                        story_teardown),
        cmocka_unit_test_setup_teardown(a_long_start_up_is_left_out_at_the_end, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(steps_of_an_optimizer_are_cut_at_their_ends, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(calls_of_python_go_on_behind_a_cut, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(work_of_a_gpu_stands_below_its_op, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(another_main_thread_needs_the_whole, story_setup, story_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
