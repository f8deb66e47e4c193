// SPDX-License-Identifier: Apache-2.0
/* test_optimizer_find.c - frames laid out as each Python does: the wrapper's self is found, and nothing else is */
#include "preload/python/python.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_io.h"
#include "preload/python_bridge.h"
#include "schedule/kp_schedule.h"
#include "test/support/support.h"

static const struct kp_python_layout layouts[] = {
#define KP_PYTHON_LAYOUT(version, ...) {version, __VA_ARGS__},
#include "preload/python/api/layouts.def"
#undef KP_PYTHON_LAYOUT
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts, DEPTH = 24 };
static int tuple_type, list_type, dict_type[64];

struct object {
    uint64_t count;
    const void *type;
};
static struct {
    _Alignas(16) uint8_t thread[128], cframe[16], frames[DEPTH][512], codes[DEPTH][256], files[DEPTH][256],
        names[DEPTH][256];
    struct object adam, other;
    const void *args[6];
    struct kp_python python;
    struct kp_optimizer_seen seen;
    int depth;
} world;

static void put(uint8_t *base, size_t offset, const void *value) { memcpy(base + offset, &value, sizeof value); }

static void put_text(uint8_t *at, const char *text, unsigned width, bool ascii)
{
    const struct kp_python_layout *l = &world.python.layout;
    const uint64_t length = strlen(text);
    const uint32_t state = width << 2 | 1u << 5 | (ascii ? 1u << 6 : 0);
    memcpy(at + 16, &length, sizeof length);
    memcpy(at + 32, &state, sizeof state);
    at += ascii ? l->text_ascii : l->text_wide;
    for (size_t i = 0; i < length; i++) at[i * width] = (uint8_t)text[i];
}

/* A frame further out than those there. */
static void push(const char *file, const char *name)
{
    const struct kp_python_layout *l = &world.python.layout;
    const int i = world.depth++;
    assert_true(i < DEPTH);
    put_text(world.files[i], file, 1, true);
    put_text(world.names[i], name, 1, true);
    put(world.codes[i], l->code_file, world.files[i]);
    put(world.codes[i], l->code_name, world.names[i]);
    const unsigned tag = l->version >= 314; /* a reference that somebody else counts */
    put(world.frames[i], l->frame_code, world.codes[i] + tag);
    put(world.frames[i], l->frame_locals, (const uint8_t *)world.args + tag);
    if (i > 0) put(world.frames[i - 1], l->frame_back, world.frames[i]);
}

static void begin(const struct kp_python_layout *layout)
{
    memset(&world, 0, sizeof world);
    world.python = (struct kp_python){.layout = *layout, .tuple_type = &tuple_type};
    world.adam = world.other = (struct object){1, &list_type};
    world.args[0] = (const void *)1;
    world.args[1] = &tuple_type;
    world.args[2] = (const void *)1;
    world.args[layout->tuple_items / 8] = &world.adam;
    put(world.thread, layout->thread_cframe ? layout->thread_cframe : layout->thread_frame,
        layout->thread_cframe ? (const void *)world.cframe : world.frames[0]);
    if (layout->thread_cframe) put(world.cframe, layout->thread_frame, world.frames[0]);
}

static void push_all(void)
{
    push("/usr/lib/torch/_ops.py", "__call__");
    push("/usr/lib/torch/autograd/profiler.py", "__exit__");
    push("/usr/lib/torch/optim/optimizer.py", "wrapper");
    push("/home/me/train.py", "main");
}

static uint64_t ask(void) { return kp_python_optimizer_find(&world.python, &world.seen, world.thread); }

static void the_optimizer_of_the_wrapper_is_found_in_every_layout(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        begin(&layouts[i]);
        push_all();
        const uint64_t adam = ask();
        assert_true(adam & KP_STEP_IDENTITY);
        assert_true(adam == ask());
        world.args[world.python.layout.tuple_items / 8] = &world.other;
        const uint64_t other = ask();
        assert_true(other != 0 && other != adam);
    }
}

static void a_path_with_wide_characters_is_read_too(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS; i++)
        for (unsigned width = 1; width <= 4; width *= 2) {
            begin(&layouts[i]);
            push_all();
            memset(world.files[2], 0, sizeof world.files[2]);
            put_text(world.files[2], "/hjem/torch/optim/optimizer.py", width, false);
            assert_true(ask() != 0);
        }
}

static void other_functions_and_other_files_are_passed_by(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        begin(&layouts[i]);
        push("/usr/lib/torch/optim/lr_scheduler.py", "wrapper");
        push("/usr/lib/torch/optim/optimizer.py", "wrapped");
        push("/usr/lib/torch/optim/optimizer.py", "rapper");
        push("optimizer.py", "wrapper");
        assert_true(ask() == 0);
        push("optim/optimizer.py", "wrapper");
        assert_true(ask() != 0);
    }
}

static void frames_far_out_are_not_looked_at(void **state)
{
    (void)state;
    begin(&layouts[LAYOUTS - 1]);
    for (int i = 0; i < 20; i++) push("/home/me/train.py", "deeper");
    push_all();
    assert_true(ask() == 0);
}

static void ranges_of_a_programs_own_are_not_looked_at_for_ever(void **state)
{
    (void)state;
    begin(&layouts[0]);
    push("/home/me/train.py", "main");
    for (int i = 0; i < 16; i++) assert_true(ask() == 0);
    push("/usr/lib/torch/optim/optimizer.py", "wrapper");
    assert_true(ask() == 0);
}

static void a_wrapper_loaded_anew_is_found_again(void **state)
{
    (void)state;
    begin(&layouts[0]);
    push_all();
    const uint64_t adam = ask();
    put(world.frames[2], world.python.layout.frame_code, world.codes[1]);
    for (int i = 0; i < 5; i++) assert_true(ask() == 0);
    push("/usr/lib/torch/optim/optimizer.py", "wrapper");
    assert_true(ask() == adam);
    for (int i = 0; i < 40; i++) assert_true(ask() == adam);
}

static void frames_of_c_are_passed_by(void **state)
{
    const struct kp_python_layout *l = &layouts[LAYOUTS - 1];
    (void)state;
    begin(l);
    push_all();
    world.frames[2][l->frame_owner] = KP_PYTHON_OWNED_BY_C;
    assert_true(ask() == 0);
}

static void what_is_no_tuple_or_not_there_gives_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        const struct kp_python_layout *l = &layouts[i];
        begin(l);
        push_all();
        world.args[1] = &list_type;
        assert_true(ask() == 0);
        world.args[1] = &tuple_type;
        world.args[2] = NULL; /* empty */
        assert_true(ask() == 0);
        world.args[2] = (const void *)1;
        world.args[world.python.layout.tuple_items / 8] = (const void *)8; /* no object there */
        assert_true(ask() == 0);
        world.args[world.python.layout.tuple_items / 8] = &world.adam;
        assert_true(ask() != 0);
        put(world.frames[2], l->frame_locals, (const void *)16);
        assert_true(ask() == 0);
        put(world.codes[0], l->code_name, (const void *)24); /* innermost: read failures are passed by */
        put(world.frames[0], l->frame_back, (const void *)0x7fffdead0000);
        assert_true(ask() == 0);
        assert_true(kp_python_optimizer_find(&world.python, &world.seen, NULL) == 0);
    }
}

static void an_error_of_every_read_ends_in_nothing(void **state)
{
    char order[32];
    unsigned reads = 0;
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        begin(&layouts[i]);
        push_all();
        for (reads = 1; reads < 100; reads++) {
            memset(&world.seen, 0, sizeof world.seen);
            snprintf(order, sizeof order, "peek:%u+:1", reads);
            kp_fail_set(order);
            const bool survived = ask() != 0;
            kp_fail_set(NULL);
            if (survived) break;
        }
        assert_in_range(reads, 10, 24);
        kp_fail_set("peek:9+:1"); /* known by now: as many system calls a step as the head of optimizer_find.c says */
        assert_true(ask() != 0);
        kp_fail_set(NULL);
    }
}

static void an_object_is_gone_when_its_count_is_zero_or_its_type_another(void **state)
{
    (void)state;
    begin(&layouts[0]);
    push_all();
    const uint64_t adam = ask();
    errno = 7;
    assert_false(kp_caller_is_gone(adam));
    world.adam.count = 0;
    assert_true(kp_caller_is_gone(adam));
    world.adam = (struct object){3, &dict_type[32]};
    assert_true(kp_caller_is_gone(adam));
    assert_true(kp_caller_is_gone(KP_STEP_IDENTITY | 4096)); /* its memory went back */
    assert_int_equal(errno, 7);
}

enum { FREE = 320 / 8, FINALIZE = 392 / 8 }; /* tp_free and tp_finalize among the words of a class */
static const int gc_del, other_free;         /* what tp_free holds */
static void own_finalizer(void *object) { (void)object; }

static void step_end(uint64_t optimizer)
{
    (void)kp_steps_range_end(kp_steps_classify("Optimizer.step#Adam.step", true), optimizer);
}

static void class_begin(const void **class, const void *tp_free)
{
    class[FREE] = tp_free;
    begin(&layouts[0]);
    world.python.object_free = &gc_del;
    world.adam.type = class;
    push_all();
}

/* Its memory looks as if it lived: a new object of its class is there. */
static void an_object_is_gone_when_its_class_finalizes_it(void **state)
{
    const void *class[FINALIZE + 1] = {0};
    void (*ours)(void *);
    (void)state;
    assert_int_equal(kp_steps_init(&(struct kp_schedule){0}, &(struct kp_step_rule){.kind = KP_RULE_OPTIMIZER}), 0);
    class_begin(class, &gc_del);
    const uint64_t adam = ask();
    step_end(adam);
    assert_true(kp_steps_optimizer() == adam);
    assert_ptr_equal(class[FREE], &gc_del); /* CPython compares it when a program assigns __class__ */
    assert_non_null(class[FINALIZE]);
    memcpy(&ours, &class[FINALIZE], sizeof ours);
    ours(&world.adam);
    assert_true(kp_steps_optimizer() == 0);
    assert_false(kp_caller_is_gone(adam));
}

static void a_class_that_frees_or_finalizes_by_itself_is_left_alone(void **state)
{
    const void *class[FINALIZE + 1] = {0};
    void (*const own)(void *) = own_finalizer;
    (void)state;
    class_begin(class, &other_free);
    assert_true(ask() != 0);
    assert_null(class[FINALIZE]);
    memset(&world.seen, 0, sizeof world.seen);
    memcpy(&class[FINALIZE], &own, sizeof own);
    class_begin(class, &gc_del);
    assert_true(ask() != 0);
    assert_memory_equal(&class[FINALIZE], &own, sizeof own);
}

static void without_python_nothing_is_known(void **state)
{
    (void)state;
    kp_caller_find();
    assert_null(kp_python_get());
    assert_true(kp_caller_optimizer() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_optimizer_of_the_wrapper_is_found_in_every_layout),
        cmocka_unit_test(a_path_with_wide_characters_is_read_too),
        cmocka_unit_test(other_functions_and_other_files_are_passed_by),
        cmocka_unit_test(frames_far_out_are_not_looked_at),
        cmocka_unit_test(ranges_of_a_programs_own_are_not_looked_at_for_ever),
        cmocka_unit_test(a_wrapper_loaded_anew_is_found_again),
        cmocka_unit_test(frames_of_c_are_passed_by),
        cmocka_unit_test(what_is_no_tuple_or_not_there_gives_nothing),
        cmocka_unit_test(an_error_of_every_read_ends_in_nothing),
        cmocka_unit_test(an_object_is_gone_when_its_count_is_zero_or_its_type_another),
        cmocka_unit_test(an_object_is_gone_when_its_class_finalizes_it),
        cmocka_unit_test(a_class_that_frees_or_finalizes_by_itself_is_left_alone),
        cmocka_unit_test(without_python_nothing_is_known),
    };
    return cmocka_run_group_tests_name("python frames", tests, NULL, NULL);
}
