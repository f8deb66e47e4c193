// SPDX-License-Identifier: Apache-2.0
/* test_nvtx.c - NVTX calls of a library, through the tables it hands out, to records in the spool */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "preload/nvtx/nvtx.h"
#include "preload/run.h"
#include "preload/source.h"
#include "test/support/records.h"

int InitializeInjectionNvtx2(kp_nvtx_export_fn export_get);

static unsigned told;
static uint32_t cycle;

static void modules_changed(void) { told++; }

/* ---- a library with NVTX inside: words for its handlers, and tables of pointers to them ---- */

enum { CORE_SIZE = 16, CORE2_SIZE = 16 };
static kp_nvtx_fn core[CORE_SIZE], core2[CORE2_SIZE];
static kp_nvtx_fn *core_table[CORE_SIZE + 1], *core2_table[CORE2_SIZE + 1];
static unsigned core2_count = CORE2_SIZE;
static unsigned tables_asked;

static int table_get(int module, kp_nvtx_fn ***table, unsigned *count)
{
    tables_asked++;
    if (module == KP_NVTX_MODULE_CORE) {
        *table = core_table;
        *count = CORE_SIZE;
    } else if (module == KP_NVTX_MODULE_CORE2) {
        *table = core2_table;
        *count = core2_count;
    } else {
        return 0;
    }
    return 1;
}

static struct kp_nvtx_callbacks callbacks = {sizeof callbacks, table_get};
static const void *export_get(uint32_t table) { return table == KP_NVTX_EXPORT_CALLBACKS ? &callbacks : NULL; }

static void library_load(void)
{
    memset(core, 0, sizeof core);
    memset(core2, 0, sizeof core2);
    for (int i = 1; i < CORE_SIZE; i++) core_table[i] = &core[i];
    for (int i = 1; i < CORE2_SIZE; i++) core2_table[i] = &core2[i];
}

#define CALL(word, type, ...) (((type)(word))(__VA_ARGS__))
typedef int (*text_fn)(const char *);
typedef int (*wide_fn)(const wchar_t *);
typedef int (*event_fn)(const struct kp_nvtx_event *);
typedef int (*none_fn)(void);
typedef void *(*handle_fn)(const char *);
typedef void *(*string_fn)(void *, const char *);
typedef int (*domain_event_fn)(void *, const struct kp_nvtx_event *);
typedef int (*domain_fn)(void *);
typedef uint64_t (*start_fn)(const char *);
typedef void (*id_fn)(uint64_t);

static int push_a(const char *text) { return CALL(core[KP_NVTX_PUSH_A], text_fn, text); }
static int pop(void) { return CALL(core[KP_NVTX_POP], none_fn); }
static struct kp_nvtx_event event(int32_t type, const void *message)
{
    return (struct kp_nvtx_event){
        .version = 3, .bytes = sizeof(struct kp_nvtx_event), .message_type = type, .message = message};
}

static void window_open(void) { kp_gate_set(kp_gate_make(++cycle, KP_GATE_ON | KP_GATE_RECORD)); }
static void window_close(void)
{
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(cycle, 5000), 0);
}

static struct records spool;
static const struct kp_rec_nvtx *seen[512];
static size_t read_back(void)
{
    spool = records_open();
    return records_find(&spool, cycle, KP_KIND_NVTX, (const void **)seen, 512);
}
static const char *name_of(size_t i) { return records_name(&spool, seen[i]->head.name); }
static uint64_t ends(size_t i)
{
    return seen[i]->start + kp_load_relaxed(&((struct kp_rec_nvtx *)(uintptr_t)seen[i])->ticks);
}
static bool is_open(size_t i) { return ends(i) == seen[i]->start; }

static void a_library_gets_our_handlers_and_keeps_what_we_do_not_handle(void **state)
{
    (void)state;
    library_load();
    errno = 77;
    assert_int_equal(InitializeInjectionNvtx2(export_get), 1);
    assert_int_equal(errno, 77);
    assert_int_equal(told, 1);
    for (int i = KP_NVTX_MARK_EX; i <= KP_NVTX_POP; i++) assert_non_null(core[i]);
    for (int i = KP_NVTX_POP + 1; i < CORE_SIZE; i++) assert_null(core[i]);
    for (int i = KP_NVTX_DOMAIN_MARK_EX; i <= KP_NVTX_DOMAIN_POP; i++) assert_non_null(core2[i]);
    for (int i = 6; i <= 9; i++) assert_null(core2[i]); /* resources, names of categories */
    for (int i = KP_NVTX_DOMAIN_STRING_A; i <= KP_NVTX_DOMAIN_CREATE_W; i++) assert_non_null(core2[i]);
    assert_null(core2[14]);
    assert_null(core2[15]);
    assert_true(kp_nvtx_source.attach());
    assert_true(kp_nvtx_source.had_activity());
}

static void shorter_tables_are_filled_as_far_as_they_go(void **state)
{
    (void)state;
    library_load();
    core2_count = KP_NVTX_DOMAIN_POP + 1;
    assert_int_equal(InitializeInjectionNvtx2(export_get), 1);
    core2_count = CORE2_SIZE;
    assert_non_null(core2[KP_NVTX_DOMAIN_POP]);
    for (int i = KP_NVTX_DOMAIN_POP + 1; i < CORE2_SIZE; i++) assert_null(core2[i]);
    callbacks.bytes = sizeof callbacks.bytes;
    assert_int_equal(InitializeInjectionNvtx2(export_get), 0);
    callbacks.bytes = sizeof callbacks;
    assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
}

static void who_does_not_record_gpus_is_no_tool(void **state)
{
    (void)state;
    static struct kp_config config;
    config.activities = KP_ACTIVITY_CPU;
    kp_nvtx_source.setup(&config);
    library_load();
    tables_asked = 0;
    assert_int_equal(InitializeInjectionNvtx2(export_get), 0);
    assert_int_equal(tables_asked, 0);
    config.activities = KP_ACTIVITY_CPU | KP_ACTIVITY_CUDA;
    kp_nvtx_source.setup(&config);
    kp_gate_set(0);
    assert_int_equal(InitializeInjectionNvtx2(export_get), 0);
    assert_null(core[KP_NVTX_PUSH_A]);
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    assert_int_equal(InitializeInjectionNvtx2(export_get), 1);
}

static void ranges_nest_and_say_their_names_in_every_form(void **state)
{
    (void)state;
    window_open();
    void *domain = CALL(core2[KP_NVTX_DOMAIN_CREATE_A], handle_fn, "NCCL");
    void *string = CALL(core2[KP_NVTX_DOMAIN_STRING_A], string_fn, domain, "ncclAllReduce");
    assert_ptr_equal(domain, CALL(core2[KP_NVTX_DOMAIN_CREATE_A], handle_fn, "NCCL"));
    struct kp_nvtx_event registered = event(KP_NVTX_TEXT_REGISTERED, string),
                         ascii = event(KP_NVTX_TEXT_ASCII, "with attributes");
    struct kp_nvtx_event none = event(KP_NVTX_TEXT_NONE, "not a text"), small = ascii;
    small.bytes = 16; /* no room for a message in it */
    assert_int_equal(push_a("outer"), KP_NVTX_NO_TRACKING);
    CALL(core[KP_NVTX_PUSH_W], wide_fn,
         L"gr\u00fc\u00df \u20ac \U0001f600\U000f0000"
         L"\xd800");
    CALL(core2[KP_NVTX_DOMAIN_PUSH_EX], domain_event_fn, domain, &registered);
    CALL(core[KP_NVTX_PUSH_EX], event_fn, &ascii);
    CALL(core[KP_NVTX_PUSH_EX], event_fn, &none);
    CALL(core[KP_NVTX_PUSH_EX], event_fn, &small);
    CALL(core[KP_NVTX_MARK_A], text_fn, "here");
    for (int i = 0; i < 5; i++) assert_int_equal(pop(), KP_NVTX_NO_TRACKING);
    assert_int_equal(CALL(core2[KP_NVTX_DOMAIN_POP], domain_fn, domain), KP_NVTX_NO_TRACKING);
    window_close();
    assert_int_equal(read_back(), 7);
    assert_string_equal(name_of(0), "outer");
    assert_string_equal(name_of(1), "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\xf3\xb0\x80\x80?");
    assert_string_equal(name_of(2), "ncclAllReduce");
    assert_string_equal(records_name(&spool, seen[2]->domain), "NCCL");
    assert_int_equal(seen[0]->domain, 0);
    assert_string_equal(name_of(3), "with attributes");
    assert_string_equal(name_of(4), "");
    assert_string_equal(name_of(5), "");
    assert_int_equal(seen[6]->type, KP_NVTX_MARK);
    for (size_t i = 0; i < 6; i++) assert_int_equal(seen[i]->type, KP_NVTX_RANGE);
    for (size_t i = 0; i < 7; i++) assert_false(is_open(i));
    assert_true(ends(5) <= ends(4) && ends(4) <= ends(3) && ends(3) <= ends(1) && ends(1) <= ends(0) &&
                ends(0) <= ends(2));
    records_close(&spool);
}

static void a_pop_takes_the_innermost_range_of_its_domain(void **state)
{
    (void)state;
    void *one = CALL(core2[KP_NVTX_DOMAIN_CREATE_A], handle_fn, "one"),
         *two = CALL(core2[KP_NVTX_DOMAIN_CREATE_A], handle_fn, "two");
    struct kp_nvtx_event a = event(KP_NVTX_TEXT_ASCII, "a");
    window_open();
    CALL(core2[KP_NVTX_DOMAIN_PUSH_EX], domain_event_fn, one, &a);
    CALL(core2[KP_NVTX_DOMAIN_PUSH_EX], domain_event_fn, two, &a);
    push_a("default");
    CALL(core2[KP_NVTX_DOMAIN_POP], domain_fn, one);
    CALL(core2[KP_NVTX_DOMAIN_POP], domain_fn, one); /* one that was pushed before the window */
    pop();
    window_close();
    assert_int_equal(read_back(), 3);
    assert_false(is_open(0));
    assert_true(is_open(1));
    assert_false(is_open(2));
    assert_true(ends(0) <= ends(2));
    records_close(&spool);
}

static void what_was_pushed_outside_the_window_is_not_recorded_and_not_mixed_up(void **state)
{
    (void)state;
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    assert_int_equal(push_a("before"), KP_NVTX_NO_TRACKING);
    window_open();
    push_a("inside");
    pop();
    pop(); /* before */
    push_a("left open");
    window_close();
    assert_int_equal(pop(), KP_NVTX_NO_TRACKING); /* after the window */
    window_open();
    pop(); /* of a range of the last window that was never closed: touches nothing */
    window_close();
    assert_int_equal(read_back(), 0);
    records_close(&spool);
    cycle--;
    assert_int_equal(read_back(), 2);
    assert_string_equal(name_of(0), "inside");
    assert_false(is_open(0));
    assert_string_equal(name_of(1), "left open");
    assert_true(is_open(1));
    records_close(&spool);
    cycle++;
}

static void *end_it(void *id)
{
    CALL(core[KP_NVTX_RANGE_END], id_fn, *(uint64_t *)id);
    return NULL;
}

static void a_start_and_its_end_on_another_thread_share_an_id_and_a_name(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(CALL(core[KP_NVTX_START_A], start_fn, "too early"), 0);
    window_open();
    uint64_t first = CALL(core[KP_NVTX_START_A], start_fn, "first"),
             second = CALL(core[KP_NVTX_START_A], start_fn, "second");
    assert_true(first && second && first != second);
    assert_int_equal(pthread_create(&thread, NULL, end_it, &first), 0);
    pthread_join(thread, NULL);
    CALL(core[KP_NVTX_RANGE_END], id_fn, 0); /* as a program does that started it before the window */
    window_close();
    assert_int_equal(read_back(), 3);
    size_t starts = 0, found = 0;
    uint64_t numbers[2] = {0};
    for (size_t i = 0; i < 3; i++) /* of one thread, in the order they were put */
        if (seen[i]->type == KP_NVTX_START) numbers[starts++ % 2] = seen[i]->id;
    assert_true(numbers[0] && numbers[0] < numbers[1] && numbers[1] < 1000); /* any viewer holds it */
    for (size_t i = 0; i < 3; i++)
        found += seen[i]->type == KP_NVTX_END && seen[i]->id == numbers[0] && !strcmp(name_of(i), "first");
    assert_int_equal(starts, 2);
    assert_int_equal(found, 1);
    records_close(&spool);
}

static void ranges_nested_too_deep_are_counted_and_the_others_stay_right(void **state)
{
    (void)state;
    uint64_t lost = kp_loss_total();
    window_open();
    for (int i = 0; i < 200; i++) push_a(i == 0 ? "outermost" : "deep");
    for (int i = 0; i < 199; i++) pop();
    window_close();
    size_t count = read_back();
    assert_true(count >= 100 && count < 200);
    assert_int_equal(kp_loss_total() - lost, 200 - count);
    assert_string_equal(name_of(0), "outermost");
    assert_true(is_open(0));
    for (size_t i = 1; i < count; i++) assert_false(is_open(i));
    records_close(&spool);
}

static void a_forked_child_records_nothing_and_is_told_so(void **state)
{
    (void)state;
    window_open();
    pid_t child = fork();
    if (child == 0) {
        int bad = push_a("in the child") != KP_NVTX_NO_TRACKING || pop() != KP_NVTX_NO_TRACKING ||
                  CALL(core[KP_NVTX_START_A], start_fn, "x") != 0 ||
                  CALL(core2[KP_NVTX_DOMAIN_CREATE_A], handle_fn, "a new domain") != NULL ||
                  InitializeInjectionNvtx2(export_get);
        _exit(bad);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    window_close();
    assert_int_equal(read_back(), 0);
    records_close(&spool);
}

static int begin(void **state)
{
    static char path[4096];
    static struct kp_config config;
    (void)state;
    config.activities = KP_ACTIVITY_CUDA;
    kp_run_set_calls(&(struct kp_run_calls){.modules_changed = modules_changed});
    kp_nvtx_source.setup(&config);
    kp_clock_init();
    snprintf(path, sizeof path, "%s", kp_test_tmpdir());
    struct kp_record_options options = {.dir = path, .max_bytes = 64u << 20, .text = ""};
    if (kp_gate_init() || kp_record_open(&options)) return 1;
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)kp_record_close(true, 10000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_gets_our_handlers_and_keeps_what_we_do_not_handle),
        cmocka_unit_test(shorter_tables_are_filled_as_far_as_they_go),
        cmocka_unit_test(who_does_not_record_gpus_is_no_tool),
        cmocka_unit_test(ranges_nest_and_say_their_names_in_every_form),
        cmocka_unit_test(a_pop_takes_the_innermost_range_of_its_domain),
        cmocka_unit_test(what_was_pushed_outside_the_window_is_not_recorded_and_not_mixed_up),
        cmocka_unit_test(a_start_and_its_end_on_another_thread_share_an_id_and_a_name),
        cmocka_unit_test(ranges_nested_too_deep_are_counted_and_the_others_stay_right),
        cmocka_unit_test(a_forked_child_records_nothing_and_is_told_so),
    };
    return cmocka_run_group_tests_name("nvtx", tests, begin, end);
}
