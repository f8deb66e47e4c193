// SPDX-License-Identifier: Apache-2.0
/* test_modulename.c - names that the program gives its modules, read from a trace, and shown beside torch.profiler's */
#include "export/read/frames/modulename.h"

#include "export/answers/top/toptable.h"
#include "export/read/frames/ownline.h"
#include "export/read/parse/kineto_parse.h"
#include "test/unit/top/little_rows.h"

static void called(struct little *t, const char *module, const char *name, int from, int dur)
{
    char args[128] = "";
    if (name) snprintf(args, sizeof args, "\"Python module name\":\"%s\"", name);
    event(t, "python_function", module, 1, from, dur, args);
}

/* Of a net, some of whose modules have names. */
static void net_make(struct little *t)
{
    called(t, "nn.Module: Net_0", NULL, 0, 1000);
    called(t, "nn.Module: Block_0", "blocks.0", 10, 100);
    called(t, "nn.Module: Linear_0", "blocks.0.fc1", 20, 10);
    called(t, "nn.Module: GELU_0", NULL, 40, 10);
    called(t, "nn.Module: ReLU_0", "blocks.0.act", 60, 10);
    called(t, "nn.Module: Block_1", "blocks.1", 200, 100);
    called(t, "nn.Module: ReLU_0", "blocks.0.act", 210, 10);
    called(t, "nn.Module: Twin_0", "one", 400, 10); /* two classes of one name */
    called(t, "nn.Module: Twin_0", "two", 420, 10);
    called(t, "nn.Module: Twin_0", "one", 440, 10);
    tree_make(t);
}

static const char *path(struct kp_kineto *trace, const char *of)
{
    static struct kp_frametext text;
    return kp_modulename_path(&text, trace, of);
}

static const char *frame(struct kp_kineto *trace, const char *of)
{
    static struct kp_frametext text;
    return kp_modulename_frame(&text, trace, of);
}

static void a_path_has_the_programs_names_and_ends_in_the_profilers(void **state)
{
    struct little *t = *state;
    net_make(t);
    struct kp_kineto *trace = t->trace;
    assert_string_equal(path(trace, "Net_0"), "Net_0");
    assert_string_equal(path(trace, "Net_0.Block_0"), "Net_0.blocks.0 (Block_0)");
    assert_string_equal(path(trace, "Net_0.Block_0.Linear_0"), "Net_0.blocks.0.fc1 (Linear_0)");
    assert_string_equal(path(trace, "Net_0.Block_0.GELU_0"), "Net_0.blocks.0.GELU_0");
    assert_string_equal(path(trace, "Linear_0"), "blocks.0.fc1 (Linear_0)"); /* called without its model */
    assert_string_equal(path(trace, "Block_0.Linear_0"), "blocks.0.fc1 (Linear_0)");
    assert_string_equal(path(trace, ""), "");
    assert_string_equal(path(trace, "TOP(Net).fc1(Linear)"), "TOP(Net).fc1(Linear)");
}

static void a_shared_module_is_named_where_its_name_is_from(void **state)
{
    struct little *t = *state;
    net_make(t);
    assert_string_equal(path(t->trace, "Net_0.Block_0.ReLU_0"), "Net_0.blocks.0.act (ReLU_0)");
    assert_string_equal(path(t->trace, "Net_0.Block_1.ReLU_0"), "Net_0.blocks.1.ReLU_0");
}

static void two_names_of_one_text_are_none(void **state)
{
    struct little *t = *state;
    net_make(t);
    assert_string_equal(path(t->trace, "Net_0.Twin_0"), "Net_0.Twin_0");
    assert_string_equal(frame(t->trace, "nn.Module: Twin_0"), "nn.Module: Twin_0");
}

static void a_frame_has_both_names(void **state)
{
    struct little *t = *state;
    net_make(t);
    assert_string_equal(frame(t->trace, "nn.Module: Linear_0"), "nn.Module: blocks.0.fc1 (Linear_0)");
    assert_string_equal(frame(t->trace, "nn.Module: GELU_0"), "nn.Module: GELU_0");
    assert_string_equal(frame(t->trace, "net.py(3): forward"), "net.py(3): forward");
    char longer[400] = "nn.Module: ";
    memset(longer + 11, 'x', sizeof longer - 12);
    assert_string_equal(frame(t->trace, longer), longer);
}

static void names_go_with_the_traces_that_are_joined(void **state)
{
    struct little *t = *state;
    struct kp_kineto *all = kp_kineto_new();
    net_make(t);
    kp_kineto_append(all, t->trace);
    assert_string_equal(path(all, "Net_0.Block_0.Linear_0"), "Net_0.blocks.0.fc1 (Linear_0)");
    assert_string_equal(path(all, "Net_0.Twin_0"), "Net_0.Twin_0");
    kp_kineto_append(all, t->trace); /* another window, of the same names */
    assert_string_equal(path(all, "Net_0.Block_0.Linear_0"), "Net_0.blocks.0.fc1 (Linear_0)");
    kp_kineto_close(all);
}

static void a_row_of_a_module_is_shown_by_its_name(void **state)
{
    struct little *t = *state;
    struct kp_top top;
    char why[256], name[256];
    called(t, "nn.Module: Net_0", NULL, 0, 100);
    called(t, "nn.Module: Linear_0", "head", 10, 50);
    event(t, "cpu_op", "aten::linear", 1, 20, 30, "");
    tree_make(t);
    kp_tree_fill_line_stacks(&t->tree, true);
    assert_int_equal(kp_chosen_make(&t->chosen, &t->tree, &everything, why, sizeof why), 0);
    kp_top_build(&top, &t->tree, &t->chosen, KP_TOP_BY_MODULE);
    struct kp_top sum;
    struct kp_kineto *texts = kp_kineto_new();
    kp_top_init(&sum, texts, KP_TOP_BY_MODULE); /* as pieces of a trace are added up */
    kp_top_add(&sum, &top);
    const struct kp_top_row *row = row_named(&sum, "Net_0.Linear_0");
    assert_string_equal(kp_top_row_name(&sum, row, name, sizeof name), "Net_0.head (Linear_0)");
    kp_top_fini(&sum);
    kp_top_fini(&top);
    kp_kineto_close(texts);
}

static void a_stack_has_the_path_of_its_modules_by_their_names(void **state)
{
    struct little *t = *state;
    static const char stack[] = "f.py(1): g;nn.Module: Linear_0;b.py(3): forward;nn.Module: Block_0;nn.Module: Net_0;";
    net_make(t);
    struct kp_strings *strings = t->trace->strings;
    const uint32_t flat = kp_strings_put(strings, stack, sizeof stack - 1),
                   outside = kp_strings_put(strings, "m.py(1): f", 10);
    const uint32_t block = kp_strings_chain(strings, kp_strings_put(strings, "nn.Module: Block_1", 18), outside);
    const uint32_t call = kp_strings_chain(strings, kp_strings_put(strings, "b.py(3): forward", 16), block);
    const char *name = kp_kineto_text(t->trace, kp_ownline_module_names(t->trace, flat));
    assert_string_equal(name, "Net_0.blocks.0.fc1 (Linear_0)");
    name = kp_kineto_text(t->trace, kp_ownline_module_names(t->trace, call));
    assert_string_equal(name, "blocks.1 (Block_1)");
    assert_int_equal(kp_ownline_module_names(t->trace, outside), 0);
}

static void a_pattern_may_mean_either_name(void **state)
{
    struct little *t = *state;
    net_make(t);
    const uint32_t name = kp_strings_put(t->trace->strings, "nn.Module: Linear_0", 19);
    const char *const meant[] = {"Linear_0", "nn.Module: L*", "blocks.0.fc1", "blocks.*"};
    for (unsigned i = 0; i < 4; i++) assert_true(kp_modulename_is_meant(t->trace, meant[i], name));
    assert_false(kp_modulename_is_meant(t->trace, "fc1", name));
    assert_false(kp_modulename_is_meant(t->trace, "blocks.*", kp_strings_put(t->trace->strings, "f.py(1): g", 10)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_path_has_the_programs_names_and_ends_in_the_profilers),
        LITTLE(a_shared_module_is_named_where_its_name_is_from),
        LITTLE(two_names_of_one_text_are_none),
        LITTLE(a_frame_has_both_names),
        LITTLE(names_go_with_the_traces_that_are_joined),
        LITTLE(a_row_of_a_module_is_shown_by_its_name),
        LITTLE(a_stack_has_the_path_of_its_modules_by_their_names),
        LITTLE(a_pattern_may_mean_either_name),
    };
    return cmocka_run_group_tests_name("names of modules", tests, NULL, NULL);
}
