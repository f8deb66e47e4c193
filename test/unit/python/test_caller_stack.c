// SPDX-License-Identifier: Apache-2.0
/* test_caller_stack.c - frames laid out as each Python does become call stacks that a reader tells; Python is played
 * by this file */
#include "preload/python/pycalls.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/read/kp_read.h"
#include "preload/python_bridge.h"
#include "test/support/reader_open.h"
#include "test/support/support.h"

static const struct kp_python_layout layouts[] = {
#define KP_PYTHON_LAYOUT(version, ...) {version, __VA_ARGS__},
#include "preload/python/api/layouts.def"
#undef KP_PYTHON_LAYOUT
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts, DEPTH = 400 };

static struct kp_python python;
struct kp_python_api kp_python_api;
static struct {
    uint8_t thread[128], cframe[16];
    struct {
        uint8_t bytes[512];
    } frames[DEPTH];
    struct {
        _Alignas(16) uint8_t bytes[512];
        uint8_t file[256], name[256];
    } codes[8];
    unsigned depth;
} world;

const struct kp_python *kp_python_get(void) { return &python; }
static bool is_in_python = true;
bool kp_pycalls_is_in_python(const struct kp_thread *t, uint64_t gate) { return t && !gate && is_in_python; }
const char *kp_pysite_file(const char *file) { return strncmp(file, "/lib/", 5) ? file : file + 5; }
static void *thread_of_test(void) { return world.thread; }
static void *no_thread(void) { return NULL; }
/* Two bytes of code a line; below zero: no line. */
static int line_at(const void *code, int offset)
{
    (void)code;
    return offset < 0 ? -1 : 100 + offset / 2;
}

static void put(uint8_t *at, const void *value) { memcpy(at, &value, sizeof value); }

static void text_put(uint8_t *at, const uint32_t *chars, unsigned width)
{
    uint64_t length = 0;
    bool is_ascii = width == 1;
    while (chars[length]) is_ascii &= chars[length++] < 128;
    const uint32_t state = width << 2 | 1u << 5 | (is_ascii ? 1u << 6 : 0);
    memcpy(at + 16, &length, sizeof length);
    memcpy(at + 32, &state, sizeof state);
    at += is_ascii ? python.layout.text_ascii : python.layout.text_wide;
    for (uint64_t i = 0; i < length; i++) memcpy(at + i * width, &chars[i], width);
}

static void ascii_put(uint8_t *at, const char *text)
{
    uint32_t chars[64] = {0};
    for (unsigned i = 0; text[i]; i++) chars[i] = (uint32_t)text[i];
    text_put(at, chars, 1);
}

static void code_make(unsigned i, const char *file, const char *name)
{
    memset(&world.codes[i], 0, sizeof world.codes[i]);
    ascii_put(world.codes[i].file, file);
    ascii_put(world.codes[i].name, name);
    put(world.codes[i].bytes + python.layout.code_file, world.codes[i].file);
    put(world.codes[i].bytes + python.layout.code_name, world.codes[i].name);
}

/* The place where the `line`-th two bytes of its code are. */
static void place_set(unsigned frame, unsigned code, int line)
{
    const struct kp_python_layout *l = &python.layout;
    uint8_t *at = world.frames[frame].bytes + l->frame_place;
    if (l->code_bytes) {
        put(at, world.codes[code].bytes + l->code_bytes + line * 2);
    } else {
        const int32_t lasti = l->version == 310 ? line : line * 2;
        memcpy(at, &lasti, sizeof lasti);
    }
}

/* A frame further out than those there. */
static void push(unsigned code, int line)
{
    const struct kp_python_layout *l = &python.layout;
    const unsigned i = world.depth++;
    memset(&world.frames[i], 0, sizeof world.frames[i]);
    put(world.frames[i].bytes + l->frame_code,
        world.codes[code].bytes + (l->version >= 314 ? 1 : 0)); /* a reference that somebody else counts */
    place_set(i, code, line);
    if (i) put(world.frames[i - 1].bytes + l->frame_back, world.frames[i].bytes);
}

static void begin(const struct kp_python_layout *layout)
{
    memset(&world, 0, sizeof world);
    python = (struct kp_python){.layout = *layout, .thread_state = thread_of_test};
    put(world.thread + (layout->thread_cframe ? layout->thread_cframe : layout->thread_frame),
        layout->thread_cframe ? (void *)world.cframe : (void *)world.frames[0].bytes);
    if (layout->thread_cframe) put(world.cframe + layout->thread_frame, world.frames[0].bytes);
    code_make(0, "/lib/torch/nn.py", "forward");
    code_make(1, "/home/train.py", "main");
    code_make(2, "/home/train.py", "<module>");
}

static char told[65536];

static const char *stack_told(uint32_t stack)
{
    struct kp_reader *r;
    char why[256];
    size_t used = 0;
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    told[0] = 0;
    for (const char *frame; (frame = kp_reader_frame(r, &stack));)
        used += (size_t)snprintf(told + used, sizeof told - used, "%s;", frame);
    kp_reader_close(r);
    return told;
}

static const char *line_told(void)
{
    struct kp_reader *r;
    char why[256];
    const uint32_t id = kp_caller_line(kp_thread_get(), 0);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    const char *const line = kp_reader_call_line(r, id);
    snprintf(told, sizeof told, "%s", line ? line : "");
    kp_reader_close(r);
    return told;
}

static uint32_t ask(void) { return kp_caller_stack(kp_thread_get()); }

static int setup(void **state)
{
    (void)state;
    kp_clock_init();
    kp_python_api.code_line = line_at;
    if (kp_gate_init() != 0) return -1;
    return kp_record_open(&(struct kp_record_options){.dir = kp_test_tmpdir(), .max_bytes = 256 << 20, .text = ""});
}

static void nothing_is_read_before_the_layout_is_proved(void **state)
{
    (void)state;
    begin(&layouts[0]);
    push(0, 1);
    assert_int_equal(ask(), 0);
    kp_pystacks_enable();
    assert_int_not_equal(ask(), 0);
    python.thread_state = no_thread; /* one that never ran Python */
    assert_int_equal(ask(), 0);
}

static void begin_proved(const struct kp_python_layout *layout)
{
    begin(layout);
    kp_pystacks_enable();
}

static void frames_are_told_from_the_innermost_on_in_every_layout(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LAYOUTS; i++) {
        begin_proved(&layouts[i]);
        push(0, 3);
        push(1, 7);
        push(2, 20);
        assert_string_equal(stack_told(ask()),
                            "torch/nn.py(103): forward;/home/train.py(107): main;/home/train.py(120): <module>;");
    }
}

static void equal_stacks_have_one_number_and_others_another(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LAYOUTS; i++) {
        begin_proved(&layouts[i]);
        push(0, 3);
        push(1, 7);
        const uint32_t first = ask();
        assert_int_equal(ask(), first);
        place_set(1, 1, 8);
        const uint32_t second = ask();
        assert_true(second && second != first);
        place_set(1, 1, 7);
        assert_int_equal(ask(), first);
        push(2, 1);
        assert_int_not_equal(ask(), first);
    }
}

static void a_code_object_in_the_place_of_another_is_told_as_itself(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LAYOUTS; i++) {
        begin_proved(&layouts[i]);
        push(0, 3);
        assert_string_equal(stack_told(ask()), "torch/nn.py(103): forward;");
        uint8_t other[256] = {0};
        ascii_put(other, "lambda");
        put(world.codes[0].bytes + python.layout.code_name, other);
        assert_string_equal(stack_told(ask()), "torch/nn.py(103): lambda;");
    }
}

static void frames_of_the_interpreter_itself_are_passed_by(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LAYOUTS; i++) {
        begin_proved(&layouts[i]);
        if (layouts[i].version < 312) continue; /* it has none */
        push(0, 3);
        push(1, 7);
        push(2, -4); /* without a line */
        push(2, 20);
        world.frames[1].bytes[layouts[i].frame_owner] = KP_PYTHON_OWNED_BY_C;
        assert_string_equal(stack_told(ask()), "torch/nn.py(103): forward;/home/train.py(120): <module>;");
    }
}

static void names_of_every_width_are_written_as_utf8(void **state)
{
    static const struct {
        uint32_t chars[4];
        unsigned width;
        const char *utf8;
    } names[] = {{{'e', 0xe9, 0}, 1, "e\xc3\xa9"},
                 {{0x65e5, 0x672c, 0}, 2, "\xe6\x97\xa5\xe6\x9c\xac"},
                 {{0x1f40d, 'x', 0}, 4, "\xf0\x9f\x90\x8dx"}};
    char wanted[64];
    (void)state;
    for (unsigned i = 0; i < LAYOUTS; i++)
        for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
            begin_proved(&layouts[i]);
            memset(world.codes[0].name, 0, sizeof world.codes[0].name);
            text_put(world.codes[0].name, names[k].chars, names[k].width);
            push(0, 40 + (int)k);
            snprintf(wanted, sizeof wanted, "torch/nn.py(%u): %s;", 140 + k, names[k].utf8);
            assert_string_equal(stack_told(ask()), wanted);
        }
}

static void of_a_very_deep_stack_the_inner_frames_are_told(void **state)
{
    (void)state;
    begin_proved(&layouts[LAYOUTS - 1]);
    for (int i = 0; i < DEPTH; i++) push((unsigned)i % 2, i);
    stack_told(ask());
    assert_memory_equal(told, "torch/nn.py(100): forward;", 26);
    unsigned frames = 0;
    for (const char *at = told; *at; at++) frames += *at == ';';
    assert_int_equal(frames, 128);
}

static void the_line_that_runs_is_told_where_python_runs_it(void **state)
{
    (void)state;
    begin(&layouts[0]);
    push(1, 7);
    assert_string_equal(line_told(), ""); /* the layout is not proved */
    kp_pylines_enable();
    for (unsigned i = 0; i < LAYOUTS; i++) {
        begin(&layouts[i]);
        push(0, 3);
        push(1, 7);
        assert_string_equal(line_told(), "torch/nn.py:103");
        place_set(0, 0, 5);
        assert_string_equal(line_told(), "torch/nn.py:105");
        if (layouts[i].version >= 312) {
            world.frames[0].bytes[layouts[i].frame_owner] = KP_PYTHON_OWNED_BY_C;
            assert_string_equal(line_told(), "/home/train.py:107");
        }
        is_in_python = false; /* a call of C is open */
        assert_string_equal(line_told(), "");
        is_in_python = true;
        assert_null(strchr(stack_told(kp_caller_line(kp_thread_get(), 0)), '@'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_read_before_the_layout_is_proved),
        cmocka_unit_test(the_line_that_runs_is_told_where_python_runs_it),
        cmocka_unit_test(frames_are_told_from_the_innermost_on_in_every_layout),
        cmocka_unit_test(equal_stacks_have_one_number_and_others_another),
        cmocka_unit_test(a_code_object_in_the_place_of_another_is_told_as_itself),
        cmocka_unit_test(frames_of_the_interpreter_itself_are_passed_by),
        cmocka_unit_test(names_of_every_width_are_written_as_utf8),
        cmocka_unit_test(of_a_very_deep_stack_the_inner_frames_are_told),
    };
    return cmocka_run_group_tests_name("python stacks", tests, setup, NULL);
}
