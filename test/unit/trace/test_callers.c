// SPDX-License-Identifier: Apache-2.0
/* test_callers.c - who called whom, numbers of modules and call stacks, out of calls in order of start */
#include "export/write/trace/callers.h"

#include <stdio.h>
#include <string.h>

#include "collector/format/kp_python.h"
#include "test/support/support.h"

static char text[65536];
static size_t text_used;

static int keep(void *context, const void *data, size_t bytes)
{
    (void)context;
    assert_true(text_used + bytes < sizeof text);
    memcpy(text + text_used, data, bytes);
    text_used += bytes;
    return 0;
}

static struct kp_pycall call(struct kp_callers *p, uint32_t thread, const char *name, uint64_t start, uint64_t end)
{
    struct kp_event e = {
        .kind = KP_KIND_PYCALL, .name = name, .overload = "", .thread_no = thread, .start_ns = start, .end_ns = end};
    struct kp_pycall out;
    assert_int_equal(kp_callers_take(p, &e, &out), 0);
    return out;
}

static int64_t module(struct kp_callers *p, uint64_t self, uint64_t type, uint64_t at)
{
    struct kp_event e = {.kind = KP_KIND_PYCALL,
                         .name = "nn.Module: L",
                         .overload = "",
                         .thread_no = 1,
                         .flags = KP_PY_MODULE,
                         .start_ns = at,
                         .end_ns = at + 10,
                         .module_self = self,
                         .module_type = type};
    struct kp_pycall out;
    assert_int_equal(kp_callers_take(p, &e, &out), 0);
    return out.module;
}

/* A part of a call: the call itself lasts until `call_end`. */
static struct kp_pycall part(struct kp_callers *p, const char *name, uint64_t start, uint64_t end, uint64_t call_end,
                             uint8_t flags)
{
    struct kp_event e = {.kind = KP_KIND_PYCALL,
                         .name = name,
                         .overload = "",
                         .thread_no = 1,
                         .flags = flags,
                         .start_ns = start,
                         .end_ns = end,
                         .call_end_ns = call_end};
    struct kp_pycall out;
    assert_int_equal(kp_callers_take(p, &e, &out), 0);
    return out;
}

static const char *stack_at(struct kp_callers *p, uint32_t thread, uint64_t when)
{
    struct kp_event e = {.kind = KP_KIND_OP, .thread_no = thread, .start_ns = when, .end_ns = when + 1};
    struct kp_json json;
    text_used = 0;
    if (!kp_callers_has_stack(p, &e)) return NULL;
    assert_int_equal(kp_json_init(&json, keep, NULL), 0);
    kp_callers_stack_write(p, &e, &json);
    assert_int_equal(kp_json_flush(&json), 0);
    kp_json_fini(&json);
    text[text_used] = 0;
    return text;
}

static void a_call_in_parts_is_one_call_and_open_until_its_end(void **state)
{
    static const char *const name = "train_step";
    struct kp_callers *p = kp_callers_open();
    (void)state;
    const struct kp_pycall main_ = call(p, 1, "main", 100, 1000), first = part(p, name, 200, 300, 600, 0);
    assert_string_equal(stack_at(p, 1, 310), "train_step;main;"); /* an op in the step that ended it */
    assert_int_equal(call(p, 1, "log", 320, 330).parent, first.id);
    const struct kp_pycall further = part(p, name, 340, 600, 600, KP_PY_FURTHER);
    assert_int_equal(further.id, first.id);
    assert_int_equal(first.before_ns, 0);
    assert_int_equal(further.before_ns, 140);
    assert_int_equal(further.parent, main_.id);
    assert_string_equal(stack_at(p, 1, 350), "train_step;main;");
    assert_string_equal(stack_at(p, 1, 600), "main;");
    kp_callers_close(p);
}

static void the_caller_is_the_innermost_call_that_is_not_over(void **state)
{
    struct kp_callers *p = kp_callers_open();
    (void)state;
    const struct kp_pycall main_ = call(p, 1, "main", 100, 1000), a = call(p, 1, "a", 100, 200),
                           b = call(p, 1, "b", 150, 200);
    const struct kp_pycall other = call(p, 2, "other", 160, 300), c = call(p, 1, "c", 200, 300),
                           d = call(p, 1, "d", 1000, 1010);
    assert_int_equal(main_.id, 1);
    assert_int_equal(main_.parent, 0);
    assert_int_equal(a.parent, main_.id);
    assert_int_equal(b.parent, a.id);
    assert_int_equal(other.id, 4);
    assert_int_equal(other.parent, 0);
    assert_int_equal(c.parent, main_.id);
    assert_int_equal(d.parent, 0);
    kp_callers_close(p);
}

static void a_stack_is_told_innermost_first_for_the_thread_that_has_one(void **state)
{
    struct kp_callers *p = kp_callers_open();
    (void)state;
    assert_null(stack_at(p, 1, 5));
    call(p, 1, "main\"", 10, 1000);
    call(p, 1, "a", 20, 200);
    call(p, 1, "b", 30, 40);
    assert_string_equal(stack_at(p, 1, 35), "b;a;main\\\";");
    assert_string_equal(stack_at(p, 1, 40), "a;main\\\";");
    assert_null(stack_at(p, 2, 41));
    assert_int_equal(module(p, 77, 7, 50), 0);
    assert_string_equal(stack_at(p, 1, 55), "nn.Module: L_0;a;main\\\";");
    assert_null(stack_at(p, 1, 1000));
    kp_callers_close(p);
}

static void modules_are_numbered_within_their_class_as_they_come(void **state)
{
    struct kp_callers *p = kp_callers_open();
    uint64_t at = 0;
    (void)state;
    assert_int_equal(module(p, 500, 7, at += 20), 0);
    assert_int_equal(module(p, 400, 7, at += 20), 1);
    assert_int_equal(module(p, 500, 7, at += 20), 0);
    assert_int_equal(module(p, 500, 8, at += 20), 0); /* the same address later serves another class */
    for (uint64_t i = 0; i < 5000; i++) assert_int_equal(module(p, 10000 + i, 9, at += 20), i);
    for (uint64_t i = 0; i < 5000; i++) assert_int_equal(module(p, 10000 + i, 9, at += 20), i);
    assert_int_equal(module(p, 400, 7, at += 20), 1);
    assert_int_equal(module(p, 0, 0, at += 20), 0); /* a damaged file */
    kp_callers_close(p);
}

/* What the program calls an object that is called at a time. */
static const char *path_of(struct kp_callers *p, uint64_t self, const char *key, uint64_t start, uint64_t end)
{
    struct kp_event e = {.kind = KP_KIND_PYCALL,
                         .name = "nn.Module: L",
                         .overload = "",
                         .thread_no = 1,
                         .flags = KP_PY_MODULE,
                         .start_ns = start,
                         .end_ns = end,
                         .module_self = self,
                         .module_type = 7,
                         .module_key = key};
    struct kp_pycall out;
    struct kp_json json;
    assert_int_equal(kp_callers_take(p, &e, &out), 0);
    text_used = 0;
    assert_int_equal(kp_json_init(&json, keep, NULL), 0);
    kp_callers_path_write(p, &e, &json);
    assert_int_equal(kp_json_flush(&json), 0);
    kp_json_fini(&json);
    text[text_used] = 0;
    assert_int_equal(out.has_path, text_used > 0);
    return text;
}

static void a_modules_name_goes_from_the_outermost_module_on(void **state)
{
    struct kp_callers *p = kp_callers_open();
    (void)state;
    assert_string_equal(path_of(p, 100, NULL, 0, 1000), "");
    call(p, 1, "forward", 5, 900);
    assert_string_equal(path_of(p, 200, "blocks.1\tnet.py:7", 10, 500), "blocks.1");
    call(p, 1, "forward", 15, 490);
    assert_string_equal(path_of(p, 300, "f\"c\tblock.py:3", 20, 100), "blocks.1.f\\\"c");
    assert_string_equal(path_of(p, 400, NULL, 110, 120), "");                             /* made on the fly */
    assert_string_equal(path_of(p, 300, "again\tnet.py:8", 600, 700), "blocks.1.f\\\"c"); /* shared: its first name */
    assert_string_equal(path_of(p, 300, NULL, 2000, 2100), "blocks.1.f\\\"c");            /* called without its model */
    assert_string_equal(path_of(p, 500, "x\tx.py:1", 3000, 3100), "");                    /* no module is around it */
    for (uint64_t i = 0; i < 5000; i++) module(p, 10000 + i, 9, 4000 + 20 * i);           /* the table grows */
    assert_string_equal(path_of(p, 300, NULL, 200000, 200100), "blocks.1.f\\\"c");
    kp_callers_close(p);
}

/* An address may serve another object later. */
static void modules_around_each_other_have_names_that_end(void **state)
{
    struct kp_callers *p = kp_callers_open();
    (void)state;
    path_of(p, 100, NULL, 0, 100);
    assert_string_equal(path_of(p, 200, "b\t", 10, 50), "b");
    path_of(p, 200, NULL, 200, 300);
    assert_string_equal(path_of(p, 100, "a\t", 210, 250), "");
    assert_string_equal(path_of(p, 100, "a\t", 215, 220), ""); /* inside itself */
    for (uint64_t i = 0; i <= 32; i++) path_of(p, 1000 + i, "n\t", 1000 + i, 9000 - i);
    assert_int_equal(text_used, 63);                              /* 32 names */
    assert_string_equal(path_of(p, 2000, "n\t", 1100, 1200), ""); /* no more */
    kp_callers_close(p);
}

static void many_threads_and_deep_stacks_have_room(void **state)
{
    struct kp_callers *p = kp_callers_open();
    (void)state;
    for (uint32_t thread = 1; thread <= 1000; thread++) assert_int_equal(call(p, thread, "t", 10, 5000).parent, 0);
    uint64_t parent = call(p, 500, "f", 20, 4000).id;
    for (uint64_t i = 0; i < 3000; i++) {
        const struct kp_pycall c = call(p, 500, "f", 20 + i, 4000);
        assert_int_equal(c.parent, parent);
        parent = c.id;
    }
    assert_int_equal(strlen(stack_at(p, 500, 3999)), 2 * 3002);
    kp_callers_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_in_parts_is_one_call_and_open_until_its_end),
        cmocka_unit_test(the_caller_is_the_innermost_call_that_is_not_over),
        cmocka_unit_test(a_stack_is_told_innermost_first_for_the_thread_that_has_one),
        cmocka_unit_test(modules_are_numbered_within_their_class_as_they_come),
        cmocka_unit_test(a_modules_name_goes_from_the_outermost_module_on),
        cmocka_unit_test(modules_around_each_other_have_names_that_end),
        cmocka_unit_test(many_threads_and_deep_stacks_have_room),
    };
    return cmocka_run_group_tests_name("python calls in a trace", tests, NULL, NULL);
}
