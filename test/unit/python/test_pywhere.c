// SPDX-License-Identifier: Apache-2.0
/* test_pywhere.c - frames laid out as each Python does are read by a thread that is none of them; Python is played by
 * this file */
#include "preload/python/python.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_io.h"
#include "preload/python_bridge.h"
#include "test/support/support.h"

static const struct kp_python_layout layouts[] = {
#define KP_PYTHON_LAYOUT(version, ...) {version, __VA_ARGS__},
#include "preload/python/api/layouts.def"
#undef KP_PYTHON_LAYOUT
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts, DEPTH = 400, TABLE_AT = 32 };

static struct kp_python python;
static const int code_type, text_type, other_type;
static struct {
    uint8_t threads[2][256], cframe[16], interpreter[16];
    struct {
        uint8_t bytes[128];
    } frames[DEPTH];
    struct {
        _Alignas(16) uint8_t bytes[512];
        uint8_t file[1024], name[256], table[128];
    } code;
    unsigned depth;
    int ends;
} world;
static struct kp_pywhere_thread found[4];
static struct kp_pywhere_stack stack;
static uint32_t count;

static struct kp_pywhere_stack *meanwhile; /* is asked for while another stack is read; NULL: none is */

const struct kp_python *kp_python_get(void)
{
    struct kp_pywhere_stack *const other = meanwhile;
    meanwhile = NULL;
    if (other) kp_pywhere_stack(&found[0], other);
    return python.layout.version ? &python : NULL;
}
const char *kp_python_unknown(void) { return "Python 3.99"; }
void kp_caller_find(void) {}

static void *interpreter_of_test(void) { return world.interpreter; }
static void *first_of_test(void *interpreter)
{
    assert_ptr_equal(interpreter, world.interpreter);
    return world.threads[0];
}
static int yes(void) { return 1; }
static int does_end(void) { return world.ends; }

static void put(uint8_t *at, const void *value) { memcpy(at, &value, sizeof value); }

static void text_put(uint8_t *at, const char *text)
{
    const uint64_t length = strlen(text);
    const uint32_t state = 1u << 2 | 1u << 5 | 1u << 6; /* one byte a letter, compact, ASCII */
    put(at + 8, &text_type);
    memcpy(at + 16, &length, sizeof length);
    memcpy(at + 32, &state, sizeof state);
    memcpy(at + python.layout.text_ascii, text, length);
}

static void table_put(const uint8_t *bytes, uint64_t length)
{
    memcpy(world.code.table + 16, &length, sizeof length);
    memcpy(world.code.table + TABLE_AT, bytes, length);
}

/* Its code: line 10 for four bytes, line 12 for four, none for four, line 8 for four. */
static void lines_put(void)
{
    static const uint8_t locations[] = {0x80 | 10 << 3 | 1, 0, 0, 0x80 | 12 << 3 | 1, 0, 0, 0x80 | 15 << 3 | 1,
                                        0x80 | 13 << 3 | 1, 9};
    static const uint8_t ranges[] = {4, 0, 4, 2, 4, 0x80, 4, 0xfc}, steps[] = {4, 2, 8, 0xfc};
    const uint32_t version = python.layout.version;
    if (version >= 311) table_put(locations, sizeof locations);
    else if (version == 310) table_put(ranges, sizeof ranges);
    else table_put(steps, sizeof steps);
}

static void code_put(const char *file, const char *name)
{
    const struct kp_python_layout *const l = &python.layout;
    const int first = 10;
    put(world.code.bytes + 8, &code_type);
    text_put(world.code.file, file);
    text_put(world.code.name, name);
    put(world.code.bytes + l->code_file, world.code.file);
    put(world.code.bytes + l->code_name, world.code.name);
    put(world.code.bytes + l->code_lines, world.code.table);
    memcpy(world.code.bytes + l->code_line, &first, sizeof first);
    lines_put();
}

/* A frame further out than those there, at so many bytes of the code. */
static void push(int at)
{
    const struct kp_python_layout *const l = &python.layout;
    const unsigned i = world.depth++;
    uint8_t *const frame = world.frames[i].bytes;
    const int32_t lasti = l->version == 310 ? at / 2 : at;
    put(frame + l->frame_code, world.code.bytes + (l->version >= 314 ? 1 : 0));
    if (l->code_bytes) put(frame + l->frame_place, world.code.bytes + l->code_bytes + at);
    else memcpy(frame + l->frame_place, &lasti, sizeof lasti);
    if (i) put(world.frames[i - 1].bytes + l->frame_back, frame);
}

static void begin(const struct kp_python_layout *layout)
{
    const uint64_t tids[] = {kp_io_tid(), 77};
    memset(&world, 0, sizeof world);
    python = (struct kp_python){.layout = *layout,
                                .main_interpreter = interpreter_of_test,
                                .first_thread = first_of_test,
                                .is_initialized = yes,
                                .is_ending = does_end,
                                .code_type = &code_type,
                                .text_type = &text_type};
    put(world.threads[0] + (layout->thread_cframe ? layout->thread_cframe : layout->thread_frame),
        layout->thread_cframe ? (void *)world.cframe : (void *)world.frames[0].bytes);
    if (layout->thread_cframe) put(world.cframe + layout->thread_frame, world.frames[0].bytes);
    put(world.threads[0] + 8, world.threads[1]);
    put(world.threads[0] + layout->thread_id, (void *)(uintptr_t)pthread_self());
    for (int i = 0; i < 2 && layout->version >= 311; i++)
        memcpy(world.threads[i] + layout->thread_id + 8, &tids[i], sizeof tids[i]);
    code_put("/home/train.py", "fetch");
}

static void read_first(void)
{
    assert_null(kp_pywhere_threads(found, 4, &count));
    assert_int_equal(count, 2);
    kp_pywhere_stack(&found[0], &stack);
}

static void every_python_tells_its_threads_files_lines_and_functions(void **state)
{
    static const int lines[] = {10, 12, -1, 8};
    (void)state;
    for (size_t i = 0; i < LAYOUTS; i++) {
        begin(&layouts[i]);
        for (int at = 0; at < 4; at++) push(4 * at + 2);
        read_first();
        assert_int_equal(found[0].tid, kp_io_tid());
        assert_int_equal(found[1].tid, layouts[i].version >= 311 ? 77 : 0);
        assert_int_equal(stack.count, 4);
        for (int at = 0; at < 4; at++) {
            /* up to 3.9 a table cannot say that code has no line */
            const int line = layouts[i].version < 310 && lines[at] < 0 ? 12 : lines[at];
            assert_int_equal(stack.frames[at].line, line);
            assert_string_equal(stack.frames[at].file, "/home/train.py");
            assert_string_equal(stack.frames[at].function, "fetch");
        }
        assert_false(stack.is_cut || stack.has_moved);
    }
}

static void a_frame_whose_code_was_freed_ends_the_stack(void **state)
{
    (void)state;
    for (size_t i = 0; i < LAYOUTS; i++) {
        begin(&layouts[i]);
        push(0);
        push(0);
        put(world.frames[1].bytes + layouts[i].frame_code, world.frames[0].bytes); /* no code object */
        read_first();
        assert_int_equal(stack.count, 1);
        assert_true(stack.is_cut);
        put(world.frames[1].bytes + layouts[i].frame_code, (void *)(uintptr_t)0x10000); /* no memory there */
        read_first();
        assert_true(stack.count == 1 && stack.is_cut);
        put(world.code.bytes + 8, &other_type);
        read_first();
        assert_true(stack.count == 0 && stack.is_cut);
    }
}

static void a_deep_stack_is_cut_and_a_ring_of_frames_ends(void **state)
{
    (void)state;
    begin(&layouts[LAYOUTS - 1]);
    for (int i = 0; i < DEPTH; i++) push(0);
    put(world.frames[DEPTH - 1].bytes + python.layout.frame_back, world.frames[0].bytes);
    read_first();
    assert_true(stack.count == KP_PYWHERE_FRAMES && stack.is_cut);
}

static void a_stack_that_is_not_read_is_neither_cut_nor_moved(void **state)
{
    static struct kp_pywhere_stack other;
    (void)state;
    begin(&layouts[LAYOUTS - 1]);
    push(0);
    read_first();
    other.count = 3;
    other.is_cut = other.has_moved = true; /* of a stack before */
    meanwhile = &other;
    kp_pywhere_stack(&found[0], &stack);
    assert_int_equal(stack.count, 1);
    assert_true(!other.count && !other.is_cut && !other.has_moved);
}

static void of_a_long_name_the_end_is_kept(void **state)
{
    char file[500];
    (void)state;
    memset(file, 'a', sizeof file);
    snprintf(file + 480, 20, "/train.py");
    begin(&layouts[3]);
    code_put(file, "fetch");
    push(0);
    read_first();
    const size_t bytes = strlen(stack.frames[0].file);
    assert_true(bytes > 100 && bytes < KP_PYWHERE_TEXT);
    assert_string_equal(stack.frames[0].file + bytes - 9, "/train.py");
}

static void an_interpreter_that_ends_is_not_read(void **state)
{
    (void)state;
    begin(&layouts[0]);
    world.ends = 1;
    assert_non_null(kp_pywhere_threads(found, 4, &count));
    assert_int_equal(count, 0);
    python.layout.version = 0;
    assert_string_equal(kp_pywhere_threads(found, 4, &count), "Python 3.99");
}

static void what_cannot_be_read_is_left_out(void **state)
{
    (void)state;
    begin(&layouts[3]);
    push(0);
    read_first();
    kp_fail_set("peek:1+:14");
    kp_pywhere_stack(&found[0], &stack);
    assert_int_equal(stack.count, 0);
    assert_null(kp_pywhere_threads(found, 4, &count));
    assert_int_equal(count, 0);
    kp_fail_set(NULL);
}

static void files_of_packages_and_of_pythons_library_are_not_the_programs(void **state)
{
    static const char *const others[] = {"",
                                         "<frozen importlib._bootstrap>",
                                         "/usr/lib/python3.11/threading.py",
                                         "/usr/lib64/python3.11/threading.py",
                                         "/usr/lib/python3/dist-packages/numpy/core.py",
                                         "site-packages/torch/nn/modules/module.py"};
    static const char *const own[] = {"train.py", "/home/a/my-packages/train.py", "/srv/lib/app/main.py"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(kp_pyfile_is_own(others[i]));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) assert_true(kp_pyfile_is_own(own[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_python_tells_its_threads_files_lines_and_functions),
        cmocka_unit_test(a_frame_whose_code_was_freed_ends_the_stack),
        cmocka_unit_test(a_deep_stack_is_cut_and_a_ring_of_frames_ends),
        cmocka_unit_test(a_stack_that_is_not_read_is_neither_cut_nor_moved),
        cmocka_unit_test(of_a_long_name_the_end_is_kept),
        cmocka_unit_test(an_interpreter_that_ends_is_not_read),
        cmocka_unit_test(what_cannot_be_read_is_left_out),
        cmocka_unit_test(files_of_packages_and_of_pythons_library_are_not_the_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
