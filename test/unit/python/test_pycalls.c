// SPDX-License-Identifier: Apache-2.0
/* test_pycalls.c - what CPython tells of calls and returns becomes calls that a reader sees; Python is played by
 * this file */
#include "preload/python/pycalls.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/read/kp_read.h"
#include "preload/python/api/modulekeys.h"
#include "test/support/reader_open.h"
#include "test/support/support.h"

enum { CALL = 0, RETURN = 3, C_CALL = 4, C_EXCEPTION = 5, C_RETURN = 6 };
enum { OBJECT_FRAME = 24, BACK = 48, CODE = 32, OWNER = 69, LOCALS = 72, PLACE = 56, FILE_AT = 112, NAME_AT = 120 };

/* --- a Python 3.11 --- */

static struct kp_python python = {.layout = {.version = 311,
                                             .thread_frame = 8,
                                             .frame_back = BACK,
                                             .frame_code = CODE,
                                             .frame_owner = OWNER,
                                             .frame_locals = LOCALS,
                                             .frame_place = PLACE,
                                             .object_frame = OBJECT_FRAME,
                                             .code_file = FILE_AT,
                                             .code_name = NAME_AT}};
struct kp_python_api kp_python_api;
static unsigned named, removed, replaced, threads;

const struct kp_python *kp_python_get(void) { return &python; }
void kp_pyprofile_remove(void) { removed++; }
void kp_pyprofile_replaced(void) { replaced++; }
void kp_pyprofile_set_all(void) { threads++; }
static unsigned setters;
void kp_pyhandover_setter(const void *function) { setters += function != NULL; }

struct code {
    _Alignas(16) uint8_t bytes[256];
    char name[24];
};
struct frame { /* the object and the frame it stands for */
    uint8_t object[64], frame[128];
    struct code *code;
    struct frame *back;
};
static struct code codes[8];

static void *pointer_put(uint8_t *at, const void *value)
{
    memcpy(at, &value, sizeof value);
    return at;
}

static void frame_make(struct frame *f, unsigned code, struct frame *back, unsigned place)
{
    *f = (struct frame){.code = &codes[code], .back = back};
    snprintf(codes[code].name, sizeof codes[code].name, "f%u", code);
    pointer_put(codes[code].bytes + NAME_AT, codes[code].name);
    pointer_put(f->object + OBJECT_FRAME, f->frame);
    pointer_put(f->frame + CODE, codes[code].bytes);
    pointer_put(f->frame + BACK, back ? back->frame : NULL);
    pointer_put(f->frame + PLACE, codes[code].bytes + 128 + place);
}

static void *frame_back_get(void *object)
{
    struct frame *f = object;
    return f->back;
}
static void drop_nothing(void *object) { (void)object; }
static void *innermost;
static void *innermost_get(void) { return innermost; }

uint32_t kp_pysite_call(struct kp_thread *t, void *object)
{
    struct frame *f = object;
    char text[64];
    named++;
    const int n = snprintf(text, sizeof text, "%s%c%s", f->code->name, 0, f->back ? f->back->code->name : "root");
    return kp_name_intern(t, text, (uint32_t)n);
}
struct method {
    const char *name;
};
struct function {
    uint64_t head[2];
    const struct method *method;
};
uint32_t kp_pysite_c_call(struct kp_thread *t, void *object, const void *function, uint8_t *marks)
{
    const char *name = ((const struct function *)function)->method->name;
    (void)object;
    named++;
    *marks = strcmp(name, "start_new_thread") == 0 ? KP_PY_STARTS_THREAD
             : strcmp(name, "setprofile") == 0     ? KP_PY_SETS_PROFILE
                                                   : 0;
    return kp_name_intern(t, name, (uint32_t)strlen(name));
}
struct object {
    uint64_t count;
    const char *type;
};
uint32_t kp_pysite_module(struct kp_thread *t, void *object, const void *self)
{
    const char *const type = ((const struct object *)self)->type;
    (void)object;
    named++;
    char text[64];
    const int n = snprintf(text, sizeof text, "%s%ckey\tplace", type, 0);
    return kp_name_intern(t, text, (uint32_t)n);
}

/* --- windows and what a reader sees of them --- */

static uint32_t cycle;
static uint64_t begun;

static void window_open(void)
{
    begun = kp_ticks();
    kp_pycalls_window(++cycle, begun);
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON | KP_GATE_RECORD));
    named = removed = replaced = threads = 0;
}

static struct {
    char name[32], key[16];
    uint8_t flags;
    uint64_t start, end, self;
    uint32_t tid;
} seen[4096];
static unsigned seen_count;

static int event_keep(void *context, const struct kp_event *e)
{
    (void)context;
    if (e->kind != KP_KIND_PYCALL) return 0;
    assert_true(seen_count < 4096);
    snprintf(seen[seen_count].name, sizeof seen[0].name, "%s/%s", e->name, e->overload);
    snprintf(seen[seen_count].key, sizeof seen[0].key, "%s", e->module_key ? e->module_key : "");
    seen[seen_count].flags = e->flags;
    seen[seen_count].start = e->start_ns;
    seen[seen_count].end = e->end_ns;
    seen[seen_count].self = e->module_self;
    seen[seen_count++].tid = e->tid;
    return 0;
}

static unsigned window_read(void)
{
    struct kp_reader *r;
    char why[256];
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(cycle, 5000), 0);
    struct kp_rec_cycle rec = {.head = {.kind = KP_KIND_CYCLE, .size = sizeof rec},
                               .cycle = cycle,
                               .begin = begun,
                               .warm_begin = begun,
                               .end = kp_ticks()};
    assert_int_equal(kp_record_meta(&rec, sizeof rec), 0);
    kp_record_clock();
    seen_count = 0;
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    assert_int_equal(kp_reader_events(r, cycle, event_keep, NULL), 0);
    kp_reader_close(r);
    return seen_count;
}

static int event(struct frame *f, int what, const void *arg)
{
    return kp_pycalls_event_of(311)(NULL, f, what, (void *)(uintptr_t)arg);
}

static bool holds(unsigned outer, unsigned inner)
{
    return seen[outer].start <= seen[inner].start && seen[inner].end <= seen[outer].end;
}

static int setup(void **state)
{
    (void)state;
    kp_clock_init();
    kp_python_api.frame_back = frame_back_get;
    kp_python_api.drop = drop_nothing;
    kp_python_api.this_frame = innermost_get;
    if (kp_gate_init() != 0) return -1;
    return kp_record_open(&(struct kp_record_options){.dir = kp_test_tmpdir(), .max_bytes = 256 << 20, .text = ""});
}

/* --- the tests --- */

static void calls_nest_and_are_named_once_a_call_site(void **state)
{
    struct frame outer, inner;
    const struct method length = {"len"};
    const struct function len = {.method = &length};
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    frame_make(&inner, 1, &outer, 2);
    window_open();
    for (int i = 0; i < 100; i++) {
        event(&inner, CALL, NULL);
        event(&inner, C_CALL, &len);
        event(&inner, C_RETURN, &len);
        event(&inner, RETURN, NULL);
    }
    assert_int_equal(named, 3); /* outer, which was open, inner, len */
    assert_int_equal(window_read(), 201);
    assert_string_equal(seen[0].name, "f0/root");
    assert_int_equal(seen[0].flags & KP_PY_OPEN, KP_PY_OPEN);
    for (unsigned i = 1; i < 201; i += 2) {
        assert_string_equal(seen[i].name, "f1/f0");
        assert_string_equal(seen[i + 1].name, "len/");
        assert_int_equal(seen[i + 1].flags, KP_PY_C);
        assert_true(holds(0, i) && holds(i, i + 1));
    }
}

static void frames_open_before_the_window_start_with_it(void **state)
{
    struct frame outer, middle, inner;
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    frame_make(&middle, 1, &outer, 4);
    frame_make(&inner, 2, &middle, 4);
    window_open();
    innermost = &middle;
    kp_pycalls_begin(kp_thread_get(), kp_gate_get());
    kp_pycalls_begin(kp_thread_get(), kp_gate_get()); /* once is enough */
    event(&inner, CALL, NULL);
    event(&inner, RETURN, NULL);
    event(&middle, RETURN, NULL);
    assert_int_equal(window_read(), 3);
    assert_string_equal(seen[0].name, "f0/root");
    assert_string_equal(seen[1].name, "f1/f0");
    assert_true(seen[0].start == seen[1].start);
    assert_true(holds(0, 1) && holds(1, 2));
    assert_true(seen[0].end > seen[1].end); /* still open */
}

static void a_return_that_was_missed_is_made_up_for(void **state)
{
    struct frame outer, inner, stranger;
    const struct method length = {"len"};
    const struct function len = {.method = &length};
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    frame_make(&inner, 1, &outer, 2);
    frame_make(&stranger, 2, NULL, 2);
    window_open();
    event(&outer, CALL, NULL);
    event(&inner, CALL, NULL);
    event(&inner, C_CALL, &len);    /* neither of these two returns */
    event(&stranger, RETURN, NULL); /* no call of ours */
    event(&outer, RETURN, NULL);
    event(&outer, CALL, NULL);
    event(&outer, RETURN, NULL);
    assert_int_equal(window_read(), 4);
    assert_true(holds(0, 1) && holds(1, 2));
    assert_true(seen[3].start >= seen[0].end);
    assert_true(seen[2].end <= seen[3].start);
}

static void a_generator_is_called_each_time_it_goes_on(void **state)
{
    struct frame outer, generator;
    (void)state;
    frame_make(&outer, 0, NULL, 30);
    frame_make(&generator, 4, &outer, 2);
    window_open();
    for (unsigned place = 2; place < 8; place += 2) {
        pointer_put(generator.frame + PLACE, codes[4].bytes + 128 + place);
        event(&generator, CALL, NULL);
        event(&generator, RETURN, NULL);
    }
    assert_int_equal(named, 4);
    assert_int_equal(window_read(), 4);
}

static void a_code_object_in_the_place_of_another_gets_its_own_name(void **state)
{
    struct frame outer, inner;
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    frame_make(&inner, 1, &outer, 2);
    window_open();
    event(&inner, CALL, NULL);
    event(&inner, RETURN, NULL);
    static char other[] = "new";
    pointer_put(codes[1].bytes + NAME_AT, other);
    snprintf(codes[1].name, sizeof codes[1].name, "new");
    event(&inner, CALL, NULL);
    event(&inner, RETURN, NULL);
    assert_int_equal(window_read(), 3);
    assert_string_equal(seen[1].name, "f1/f0");
    assert_string_equal(seen[2].name, "new/f0");
}

static void calls_of_modules_carry_the_object(void **state)
{
    struct frame outer, call;
    static const char type[] = "Linear";
    struct object a = {1, type}, b = {1, type};
    (void)state;
    frame_make(&outer, 0, NULL, 40);
    frame_make(&call, 3, &outer, 2);
    kp_modulekey_code = codes[3].bytes;
    window_open();
    for (int i = 0; i < 4; i++) {
        pointer_put(call.frame + LOCALS, i % 2 ? &b : &a);
        event(&call, CALL, NULL);
        event(&call, RETURN, NULL);
    }
    kp_modulekey_code = NULL;
    assert_int_equal(named, 3); /* each object has a name of its own */
    assert_int_equal(window_read(), 5);
    for (unsigned i = 1; i < 5; i++) {
        assert_string_equal(seen[i].name, "Linear/place");
        assert_string_equal(seen[i].key, "key\tplace"); /* up to the tab */
        assert_int_equal(seen[i].flags, KP_PY_MODULE);
        assert_true(seen[i].self == (uint64_t)(uintptr_t)(i % 2 ? &a : &b));
    }
}

static void threads_and_profile_functions_of_the_program_are_noticed(void **state)
{
    struct frame outer;
    const struct method start = {"start_new_thread"}, set = {"setprofile"};
    const struct function starts = {.method = &start}, sets = {.method = &set};
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    window_open();
    event(&outer, C_CALL, &starts);
    assert_int_equal(threads, 0); /* it is not there yet */
    event(&outer, C_RETURN, &starts);
    assert_int_equal(threads, 1);
    event(&outer, C_CALL, &starts);
    event(&outer, C_EXCEPTION, &starts);
    setters = 0;
    event(&outer, C_CALL, &sets);
    assert_int_equal(setters, 1);
    assert_int_equal(window_read(), 4);
}

static void in_a_warm_up_sites_get_their_names_and_nothing_is_recorded(void **state)
{
    struct frame outer, inner, call;
    struct object a = {1, "Linear"};
    const struct method method = {"len"};
    const struct function function = {.method = &method};
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    frame_make(&inner, 1, &outer, 2);
    frame_make(&call, 3, &outer, 2);
    pointer_put(call.frame + LOCALS, &a);
    kp_modulekey_code = codes[3].bytes;
    kp_gate_set(kp_gate_make(cycle + 1, KP_GATE_ON | KP_GATE_WARM));
    named = removed = 0;
    event(&inner, CALL, NULL);
    event(&inner, C_CALL, &function);
    event(&inner, C_RETURN, &function);
    event(&inner, RETURN, NULL);
    event(&call, CALL, NULL);
    assert_int_equal(named, 3);
    assert_int_equal(removed, 0);
    window_open();
    kp_modulekey_code = codes[3].bytes;
    event(&inner, CALL, NULL);
    event(&inner, C_CALL, &function);
    event(&inner, C_RETURN, &function);
    event(&inner, RETURN, NULL);
    event(&call, CALL, NULL);
    const unsigned more = named; /* the frame that was open before it */
    assert_int_equal(window_read(), 4);
    assert_true(more <= 1);
    kp_modulekey_code = NULL;
}

static void calls_end_where_another_function_takes_over_and_new_ones_begin_behind_it(void **state)
{
    struct frame outer, inner;
    const struct method set = {"setprofile"};
    const struct function sets = {.method = &set};
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    frame_make(&inner, 1, &outer, 2);
    window_open();
    event(&outer, CALL, NULL);
    event(&inner, CALL, NULL);
    event(&inner, C_CALL, &sets);
    kp_pycalls_taken_over();
    event(&inner, C_RETURN, &sets); /* ours is set again: of the call that removed the other one */
    event(&inner, RETURN, NULL);
    event(&outer, RETURN, NULL);
    assert_int_equal(window_read(), 5); /* three, and the two frames once more */
    for (unsigned i = 0; i < 3; i++) assert_true(seen[i].end <= seen[3].start);
    for (unsigned i = 3; i < 5; i++) assert_true(seen[i].flags & KP_PY_OPEN);
}

static void very_deep_calls_are_left_out_and_come_back(void **state)
{
    static struct frame outer, deep[KP_PY_DEPTH + 50];
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    window_open();
    event(&outer, CALL, NULL);
    for (unsigned i = 0; i < KP_PY_DEPTH + 50; i++) {
        frame_make(&deep[i], 1, &outer, 2); /* all called from one place */
        event(&deep[i], CALL, NULL);
    }
    for (unsigned i = KP_PY_DEPTH + 50; i-- > 0;) event(&deep[i], RETURN, NULL);
    event(&outer, RETURN, NULL);
    event(&outer, CALL, NULL);
    event(&outer, RETURN, NULL);
    assert_int_equal(window_read(), KP_PY_DEPTH + 1);
    assert_true(holds(0, KP_PY_DEPTH - 1));
    assert_true(seen[KP_PY_DEPTH].start >= seen[0].end);
}

static void outside_a_window_the_function_takes_itself_away(void **state)
{
    struct frame outer;
    (void)state;
    frame_make(&outer, 0, NULL, 10);
    window_open();
    event(&outer, CALL, NULL);
    assert_int_equal(removed, 0);
    assert_int_equal(window_read(), 1); /* closes it */
    static const struct method method = {"setprofile"};
    static const struct function setter = {.method = &method};
    setters = 0;
    event(&outer, C_CALL, (void *)(uintptr_t)&setter); /* it may set another, which would be told of its end */
    assert_int_equal(removed, 0);
    assert_int_equal(setters, 1);
    event(&outer, RETURN, NULL);
    assert_int_equal(removed, 1);
    struct kp_thread *t = kp_thread_get();
    window_open();
    kp_store_relaxed(&t->inside, 1); /* Python called from a hook of ours: neither recorded nor taken away */
    event(&outer, CALL, NULL);
    kp_store_relaxed(&t->inside, 0);
    assert_int_equal(removed, 0);
    assert_int_equal(window_read(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_nest_and_are_named_once_a_call_site),
        cmocka_unit_test(frames_open_before_the_window_start_with_it),
        cmocka_unit_test(a_return_that_was_missed_is_made_up_for),
        cmocka_unit_test(a_generator_is_called_each_time_it_goes_on),
        cmocka_unit_test(a_code_object_in_the_place_of_another_gets_its_own_name),
        cmocka_unit_test(calls_of_modules_carry_the_object),
        cmocka_unit_test(in_a_warm_up_sites_get_their_names_and_nothing_is_recorded),
        cmocka_unit_test(calls_end_where_another_function_takes_over_and_new_ones_begin_behind_it),
        cmocka_unit_test(threads_and_profile_functions_of_the_program_are_noticed),
        cmocka_unit_test(very_deep_calls_are_left_out_and_come_back),
        cmocka_unit_test(outside_a_window_the_function_takes_itself_away),
    };
    return cmocka_run_group_tests_name("python calls", tests, setup, NULL);
}
