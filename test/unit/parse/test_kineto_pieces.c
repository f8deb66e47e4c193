// SPDX-License-Identifier: Apache-2.0
/* test_kineto_pieces.c - a trace that stays one loses calls of Python in which nothing else begins, and those alone */
#include "export/read/parse/kineto_pieces.h"

#include <errno.h>
#include <string.h>

#include "test/support/story.h"

enum { TURNS = 200, TURN_US = 100 };

/* A turn's calls: one with an op and a record of memory, one around a range, two in which nothing lies. */
static void turn(struct story *s, int at)
{
    event(s, "python_function", "net.py(3): forward", 1, at, 40, "");
    event(s, "cpu_op", "aten::empty", 1, at + 10, 20, "");
    add(s, ",{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%d,",
        at + 15);
    add(s, "\"args\":{\"Bytes\":%d,\"Addr\":%d,\"Device Type\":0,\"Device Id\":-1}}", at + 1, at + 1);
    event(s, "python_function", "net.py(9): around", 1, at + 45, 30, "");
    event(s, "python_function", "<built-in function len>", 1, at + 50, 5, "");
    event(s, "user_annotation", "range", 1, at + 60, 10, "");
    event(s, "python_function", "net.py(5): nothing", 1, at + 80, 10, "");
}

static void turns(struct story *s)
{
    begin(s, "");
    event(s, "python_function", "train.py(1): main", 1, 0, (TURNS + 1) * TURN_US, "");
    event(s, "python_function", "train.py(2): loop", 1, 0, (TURNS + 1) * TURN_US, "");
    for (int i = 1; i <= TURNS; i++) turn(s, i * TURN_US);
}

static size_t count_of(const struct kp_kineto *t, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++) n += strcmp(kp_kineto_text(t, t->events[i].name), name) == 0;
    return n;
}

static void calls_in_which_nothing_begins_are_left_out(void **state)
{
    struct kp_kineto_pieces pieces = {.has_memory = true};
    struct kp_kineto *t;
    turns(*state);
    end(*state);
    assert_int_equal(story_read(*state, &t, &pieces), 0);
    assert_true(kp_kineto_pieces_hold(&pieces, t));
    assert_true(count_of(t, "net.py(5): nothing") < TURNS / 4); /* the last ones, which no look has reached */
    assert_true(count_of(t, "<built-in function len>") < TURNS / 4);
    static const char *const all[] = {"net.py(3): forward", "net.py(9): around", "aten::empty", "[memory]", "range"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) assert_int_equal(count_of(t, all[i]), TURNS);
    assert_int_equal(count_of(t, "train.py(1): main"), 1);
    assert_int_equal(count_of(t, "train.py(2): loop"), 1);
    assert_int_equal(t->memory_count, TURNS);
    for (size_t i = 0; i < t->memory_count; i++) {
        const struct kp_kineto_event *const e = &t->events[t->memory[i].event];
        assert_int_equal(e->kind, KP_KINETO_MEMORY);
        assert_int_equal(e->number, t->memory[i].bytes);
    }
    kp_kineto_close(t);
}

/* A call that was open when the recording began, as its caller was, tells that of the caller. */
static void a_call_that_begins_with_its_caller_stays(void **state)
{
    struct kp_kineto_pieces pieces = {.has_memory = true};
    struct kp_kineto *t;
    turns(*state);
    for (int i = 0; i < TURNS; i++) {
        event(*state, "python_function", "other.py(1): run", 2, (i + 1) * TURN_US, 50, "");
        event(*state, "python_function", "other.py(2): wait", 2, (i + 1) * TURN_US, 40, "");
    }
    end(*state);
    const int rc = story_read(*state, &t, &pieces);
    assert_true(rc == -ESTALE || !kp_kineto_pieces_hold(&pieces, t)); /* they come late in the file */
    kp_kineto_close(t);
    struct story *const s = *state;
    s->used = 0, s->between = "";
    begin(s, "");
    for (int i = 1; i <= TURNS; i++) {
        event(s, "python_function", "other.py(1): run", 2, i * TURN_US, 50, "");
        event(s, "python_function", "other.py(2): wait", 2, i * TURN_US, 40, "");
        event(s, "python_function", "other.py(3): nap", 2, i * TURN_US + 5, 40, "");
    }
    end(s);
    pieces = (struct kp_kineto_pieces){.has_memory = true};
    assert_int_equal(story_read(s, &t, &pieces), 0);
    assert_int_equal(count_of(t, "other.py(1): run"), TURNS);
    assert_int_equal(count_of(t, "other.py(2): wait"), TURNS);
    assert_true(count_of(t, "other.py(3): nap") < TURNS / 2);
    kp_kineto_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_in_which_nothing_begins_are_left_out, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(a_call_that_begins_with_its_caller_stays, story_setup, story_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
