// SPDX-License-Identifier: Apache-2.0
/* test_ownline.c - which frame of a stack is the program's own line, and which a library's */
#include "export/read/frames/ownline.h"

#include "export/read/frames/workerframe.h"
#include "test/unit/tree/little_trace.h"

static bool own(struct little *t, const char *frame)
{
    const bool is_own = kp_ownline_function(t->trace, kp_strings_put(t->trace->strings, frame, strlen(frame)));
    return is_own;
}

static void function_is(struct little *t, const char *frame, const char *line)
{
    const uint32_t name = kp_strings_put(t->trace->strings, frame, strlen(frame));
    assert_string_equal(kp_kineto_text(t->trace, kp_ownline_function(t->trace, name)), line);
}

static void a_function_has_the_line_of_its_def(void **state)
{
    struct little *t = *state;
    op(t, "a", 0, 1);
    tree_make(t);
    function_is(t, "train.py(10): forward", "train.py:10 def forward");
    function_is(t, "train.py(12): <lambda>", "train.py:12 <lambda>");
    function_is(t, "train.py(1): <module>", "train.py <module>");
    function_is(t, "train.py(0): forward", "train.py forward");
}

static void frames_of_packages_and_of_python_are_not_own(void **state)
{
    struct little *t = *state;
    op(t, "a", 0, 1);
    tree_make(t);
    assert_true(own(t, "train.py(10): forward"));
    assert_true(own(t, "models/net.py(3): <module>"));
    assert_true(own(t, "/home/u/torchtools/train.py(10): forward"));
    assert_true(own(t, "torchtools/train.py(10): forward"));
    assert_false(own(t, "torch/nn/modules/conv.py(560): _conv_forward"));
    assert_false(own(t, "threading.py(12): run"));
    assert_false(own(t, "six.py(12): f"));
    assert_false(own(t, "/usr/lib/python3.11/threading.py(12): run"));
    assert_false(own(t, "/x/site-packages/new/a.py(1): f"));
    assert_false(own(t, "/usr/lib/python3/dist-packages/new/a.py(1): f"));
    assert_false(own(t, "<frozen importlib._bootstrap>(241): _call"));
    assert_false(own(t, "<built-in method conv2d of type object at 0x7f>"));
    assert_false(own(t, "nn.Module: Conv2d_0"));
    assert_false(own(t, "main (train.c:4)"));
    assert_false(own(t, ""));
}

/* The trace says what the interpreter has installed. */
static void installed_is(struct little *t, const char *list)
{
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"installed\":\"%s\"},", list);
    op(t, "a", 0, 1);
    tree_make(t);
}

static void what_the_recording_found_installed_is_not_own(void **state)
{
    struct little *t = *state;
    installed_is(t, "torch,zoo_layers,six");
    assert_false(own(t, "zoo_layers/flat.py(10): forward"));
    assert_false(own(t, "six.py(12): f"));
    assert_true(own(t, "timm/new.py(10): forward")); /* a copy of one's own */
    assert_true(own(t, "zoo.py(10): forward"));
    assert_true(own(t, "layers/zoo_layers.py(10): forward"));
    assert_false(own(t, "/x/site-packages/new/a.py(1): f"));
}

typedef uint32_t (*line_fn)(struct kp_kineto *trace, uint32_t stack);

static const char *found_in(struct little *t, const char *stack, line_fn find)
{
    const uint32_t line = find(t->trace, kp_strings_put(t->trace->strings, stack, strlen(stack)));
    return kp_kineto_text(t->trace, line);
}

static const char *line_in(struct little *t, const char *stack) { return found_in(t, stack, kp_ownline_of); }

static void of_an_installed_program_the_outermost_package_is_own(void **state)
{
    struct little *t = *state;
    installed_is(t, "torch,runpy,zoo_app,zoo_layers");
    assert_string_equal(line_in(t,
                                "torch/f.py(1): g;zoo_layers/a.py(2): h;zoo_app/b.py(3): inner;zoo_layers/a.py(9): i;"
                                "zoo_app/b.py(7): main;runpy.py(9): run;"),
                        "zoo_app/b.py:3 inner");
    assert_string_equal(line_in(t, "zoo_layers/a.py(2): h;train.py(3): inner;zoo_app/b.py(7): main;"),
                        "train.py:3 inner");
    assert_string_equal(line_in(t, "torch/f.py(1): g;runpy.py(9): run;"), "");
    assert_string_equal(line_in(t, "train.py(0): inner;"), "train.py inner"); /* its line is not known */
    assert_string_equal(line_in(t, "train.py(3): def inner;"), "train.py:3 def inner");
}

/* The same by frame and the stack around it, as our own traces have it. */
static const char *line_in_chain(struct little *t, const char *frame, const char *around)
{
    struct kp_strings *const strings = t->trace->strings;
    const uint32_t tail = kp_strings_chain(strings, kp_strings_put(strings, around, strlen(around)), 0);
    const uint32_t stack = kp_strings_chain(strings, kp_strings_put(strings, frame, strlen(frame)), tail);
    const uint32_t line = kp_ownline_of(t->trace, stack);
    return kp_kineto_text(t->trace, line);
}

/* As torch_geometric writes them. */
static void a_file_that_a_library_wrote_is_not_own_where_a_line_around_it_is(void **state)
{
    static const char of_package[] = "/tmp/zoo.nn.conv.gat_conv_GATConv_edge_updater_3jsmtdis.py(62): edge_updater";
    static const char of_program[] = "/tmp/nets.conv_MyConv_propagate_3jsmtdis.py(62): propagate";
    struct little *t = *state;
    char stack[256];
    installed_is(t, "torch,zoo");
    assert_false(own(t, of_package));
    assert_string_equal(line_in_chain(t, of_package, "train.py(7): main"), "train.py:7 main");
    assert_string_equal(line_in_chain(t, of_program, "train.py(7): main"), "train.py:7 main");
    snprintf(stack, sizeof stack, "torch/f.py(1): g;%s;zoo/conv.py(9): h;train.py(7): main;", of_program);
    assert_string_equal(line_in(t, stack), "train.py:7 main");
    assert_string_equal(line_in(t, "torch/f.py(1): g;train.v2.py(7): main;"), "train.v2.py:7 main"); /* a script */
    assert_string_equal(line_in_chain(t, "torch/f.py(1): g", "train.v2.py(7): main"), "train.v2.py:7 main");
}

static const char *library_in(struct little *t, const char *stack) { return found_in(t, stack, kp_ownline_library); }

#define AROUND_THE_FORK                                                                 \
    "multiprocessing/process.py(108): run;multiprocessing/process.py(314): _bootstrap;" \
    "torch/utils/data/dataloader.py(1178): __init__;train.py(30): main;"
#define IN_LOOP "torch/utils/data/_utils/worker.py(335): _worker_loop;" AROUND_THE_FORK

static void what_a_forked_worker_does_is_not_at_the_line_that_forked_it(void **state)
{
    static const char *const of_waits[] = {
        "selectors.py(4): select;multiprocessing/queues.py(113): get;" IN_LOOP,
        "multiprocessing/queues.py(9): def get;multiprocessing/pool.py(114): worker;" AROUND_THE_FORK,
        "/usr/lib/python3.12/multiprocessing/queues.py(9): get;concurrent/futures/process.py(2): _process_worker;"};
    struct little *t = *state;
    const line_fn finders[] = {kp_ownline_of, kp_ownline_library};
    installed_is(t, "torch,multiprocessing,selectors,concurrent");
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof of_waits / sizeof *of_waits; k++)
            assert_string_equal(found_in(t, of_waits[k], finders[i]), KP_WORKERFRAME_WAITS);
        assert_string_equal(found_in(t, "torch/utils/data/_utils/collate.py(9): collate;" IN_LOOP, finders[i]),
                            KP_WORKERFRAME_LOOP);
        assert_string_equal(found_in(t, "train.py(9): __getitem__;torch/f.py(5): fetch;" IN_LOOP, finders[i]),
                            "train.py:9 __getitem__");
        assert_string_equal(found_in(t, "multiprocessing/queues.py(113): get;train.py(9): ask;" IN_LOOP, finders[i]),
                            "train.py:9 ask");
        assert_string_equal(found_in(t, AROUND_THE_FORK, finders[i]), "");
    }
}

static void lines_of_libraries_leave_out_torch_and_python(void **state)
{
    struct little *t = *state;
    installed_is(t, "torch,transformers,contextlib,accelerate");
    assert_string_equal(library_in(t,
                                   "<built-in function linear>;torch/nn/f.py(1): g;nn.Module: Linear_0;"
                                   "transformers/bert.py(2): forward;contextlib.py(81): inner;train.py(15): <module>;"),
                        "transformers/bert.py:2 forward");
    assert_string_equal(library_in(t, "contextlib.py(81): inner;accelerate/a.py(9): step;train.py(15): main;"),
                        "accelerate/a.py:9 step");
    assert_string_equal(library_in(t, "/x/lib/python3.11/site-packages/new/a.py(1): f;train.py(15): main;"),
                        "/x/lib/python3.11/site-packages/new/a.py:1 f");
    assert_string_equal(library_in(t, "/x/lib/python3.11/site-packages/torch/a.py(1): f;train.py(15): main;"),
                        "train.py:15 main");
    assert_string_equal(library_in(t, "/x/lib/python3.11/odd.py(1): f;train.py(15): main;"), "train.py:15 main");
    assert_string_equal(library_in(t, "torch/f.py(1): g;runpy.py(9): run;"), "");
}

#define STACK                                                                                                \
    "<built-in function relu>;torch/nn/f.py(1): g;nn.Module: ReLU_0;train.py(10): forward;nn.Module: Net_0;" \
    "train.py(22): main;"

static void the_innermost_own_line_and_all_modules_are_found(void **state)
{
    struct little *t = *state;
    op(t, "a", 0, 1);
    tree_make(t);
    const uint32_t stack = kp_strings_put(t->trace->strings, STACK, strlen(STACK));
    for (int again = 0; again < 2; again++) {
        assert_string_equal(kp_kineto_text(t->trace, kp_ownline_of(t->trace, stack)), "train.py:10 forward");
        assert_string_equal(kp_kineto_text(t->trace, kp_ownline_modules(t->trace, stack)), "Net_0.ReLU_0");
    }
    assert_int_equal(kp_ownline_of(t->trace, 0), 0);
}

/* The stack of frames with semicolons behind each, as a chain. */
static uint32_t chain_of(struct little *t, const char *stack)
{
    const size_t bytes = strcspn(stack, ";");
    if (!*stack) return 0;
    const uint32_t around = chain_of(t, stack + bytes + 1);
    return kp_strings_chain(t->trace->strings, kp_strings_put(t->trace->strings, stack, bytes), around);
}

static void a_chain_has_the_line_and_the_modules_of_its_text(void **state)
{
    static const char *const frames[] = {"torch/f.py(1): g;",
                                         "zoo_layers/a.py(2): h;",
                                         "zoo_app/b.py(3): inner;",
                                         "runpy.py(9): run;",
                                         "nn.Module: Net_0;",
                                         "nn.Module: ReLU_1;",
                                         "<built-in function x>;",
                                         "multiprocessing/process.py(3): _bootstrap;",
                                         "multiprocessing/queues.py(1): get;",
                                         "multiprocessing/pool.py(9): worker;",
                                         "train.py(3): own;"};
    enum { FRAMES = sizeof frames / sizeof *frames, STACKS = 8000, DEPTH = 7 };
    struct little *t = *state;
    uint32_t seed = 1;
    installed_is(t, "torch,runpy,zoo_app,zoo_layers,multiprocessing");
    for (int i = 0; i < STACKS; i++) {
        char stack[DEPTH * 48] = "";
        for (int depth = i % DEPTH; depth >= 0; depth--) {
            seed = seed * 1103515245u + 12345u;
            strcat(stack, frames[(seed >> 16) % (i % 2 ? FRAMES : FRAMES - 1)]); /* every other has no own frame */
        }
        const uint32_t text = kp_strings_put(t->trace->strings, stack, strlen(stack)), chain = chain_of(t, stack);
        assert_int_equal(kp_ownline_of(t->trace, chain), kp_ownline_of(t->trace, text));
        assert_int_equal(kp_ownline_modules(t->trace, chain), kp_ownline_modules(t->trace, text));
        assert_int_equal(kp_ownline_library(t->trace, chain), kp_ownline_library(t->trace, text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_function_has_the_line_of_its_def),
        LITTLE(frames_of_packages_and_of_python_are_not_own),
        LITTLE(what_the_recording_found_installed_is_not_own),
        LITTLE(of_an_installed_program_the_outermost_package_is_own),
        LITTLE(a_file_that_a_library_wrote_is_not_own_where_a_line_around_it_is),
        LITTLE(what_a_forked_worker_does_is_not_at_the_line_that_forked_it),
        LITTLE(lines_of_libraries_leave_out_torch_and_python),
        LITTLE(the_innermost_own_line_and_all_modules_are_found),
        LITTLE(a_chain_has_the_line_and_the_modules_of_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
