// SPDX-License-Identifier: Apache-2.0
/* test_ops.c - from torch's callbacks to events a reader sees: ends anywhere, open ranges, inputs, steps */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unwind.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/format/kp_inputs.h"
#include "collector/read/kp_read.h"
#include "collector/record/record_internal.h"
#include "preload/hook/hook.h"
#include "preload/run.h"
#include "preload/source.h"
#include "schedule/kp_schedule.h"
#include "test/doubles/torch_fields.h"
#include "test/support/reader_open.h"
#include "test/support/support.h"

static unsigned steps;
static uint32_t cycle;
static uint64_t window_begin;

int kp_hook_add_taps_own(const struct kp_tap *taps, uint32_t tap_count) /* as boot.c, left out */
{
    (void)taps, (void)tap_count;
    return -EBUSY;
}

int kp_hook_add_taps(const struct kp_tap *taps, uint32_t tap_count) { return kp_hook_add_taps_own(taps, tap_count); }

static void step_count(struct kp_thread *thread, uint64_t now_ticks)
{
    assert_non_null(thread);
    assert_true(now_ticks != 0);
    steps++;
}

/* A FunctionSchema: two strings. */
struct schema {
    struct {
        const char *text;
        uint64_t len, buffer[2];
    } name, overload;
};
static const struct schema add = {{"aten::add", 9, {0}}, {"Tensor", 6, {0}}};
static const struct schema relu = {{"aten::relu", 10, {0}}, {"", 0, {0}}};

struct value {
    uint64_t payload;
    uint32_t tag, pad;
};
struct op {
    uint8_t rf[512];
    struct kp_torch_slot *context;
};

static void op_begin(struct op *op, const struct schema *schema, const char *text, uint8_t scope)
{
    const struct kp_torch_layout *l = &kp_torch.layout;
    if (schema) {
        mini_word(op->rf, l->rf_fn, (uintptr_t)schema);
        op->rf[l->rf_schema] = 1;
    } else {
        mini_word(op->rf, l->rf_fn, (uintptr_t)text);
        mini_word(op->rf, l->rf_fn + 8u, strlen(text));
    }
    op->rf[l->rf_scope] = scope;
    assert_ptr_equal(kp_torch_op_start((void **)&op->context, op->rf), &op->context);
}

static struct op op_make(void)
{
    struct op op;
    memset(&op, 0, sizeof op);
    mini_word(op.rf, kp_torch.layout.rf_thread, 1);
    mini_word(op.rf, kp_torch.layout.rf_seq, UINT64_MAX);
    return op;
}

/* As torch does: the end callback, then the deleting destructor. */
static void op_end(struct op *op)
{
    kp_torch_op_end(op->rf, op->context);
    if (!op->context) return;
    void (*const *table)(struct kp_torch_slot *) = op->context->vptr;
    table[1](op->context);
    op->context = NULL;
}

static void window_open(uint32_t bits)
{
    window_begin = kp_ticks();
    kp_gate_set(kp_gate_make(++cycle, KP_GATE_ON | KP_GATE_RECORD | bits));
}

static void window_announce(uint64_t end)
{
    struct kp_rec_cycle rec = {
        .head = {.kind = KP_KIND_CYCLE, .size = sizeof rec},
        .cycle = cycle,
        .begin = window_begin,
        .warm_begin = window_begin,
        .end = end,
    };
    assert_int_equal(kp_record_meta(&rec, sizeof rec), 0);
    kp_record_clock();
}

static void window_close(void)
{
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(cycle, 5000), 0);
    window_announce(kp_ticks()); /* after the last op that saw the window open */
}

struct seen {
    char name[64], overload[32], modules[128];
    struct kp_event event;
    struct kp_comms comms;
    uint8_t inputs[4096];
};
static struct seen seen[64];
static size_t seen_count;

static int event_keep(void *context, const struct kp_event *e)
{
    (void)context;
    assert_true(seen_count < 64);
    struct seen *s = &seen[seen_count++];
    s->event = *e;
    if (e->comms) s->comms = *e->comms;
    snprintf(s->name, sizeof s->name, "%s", e->name);
    snprintf(s->overload, sizeof s->overload, "%s", e->overload);
    snprintf(s->modules, sizeof s->modules, "%s", e->modules ? e->modules : "none");
    if (e->inputs && e->inputs_bytes <= sizeof s->inputs) memcpy(s->inputs, e->inputs, e->inputs_bytes);
    return 0;
}

static struct kp_reader *reader_open(void)
{
    struct kp_reader *r;
    char why[256];
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    return r;
}

static size_t events_read(void)
{
    struct kp_reader *r = reader_open();
    seen_count = 0;
    assert_int_equal(kp_reader_events(r, cycle, event_keep, NULL), 0);
    kp_reader_close(r);
    return seen_count;
}

static void an_op_has_name_overload_sequence_and_threads(void **state)
{
    (void)state;
    window_open(0);
    struct op op = op_make(), other = op_make();
    mini_word(op.rf, kp_torch.layout.rf_seq, 42);
    mini_word(op.rf, kp_torch.layout.rf_fwd, 5);
    mini_word(op.rf, kp_torch.layout.rf_handle, 99);
    op_begin(&op, &add, NULL, 1);
    op_begin(&other, NULL, "a range of mine", 7);
    op_end(&other);
    op_end(&op);
    window_close();
    assert_int_equal(events_read(), 2);
    assert_string_equal(seen[1].name, "a range of mine");
    assert_int_equal(seen[1].event.scope, 7);
    assert_int_equal(seen[1].event.seq, -1);
    assert_string_equal(seen[0].name, "aten::add");
    assert_string_equal(seen[0].overload, "Tensor");
    assert_int_equal(seen[0].event.seq, 42);
    assert_int_equal(seen[0].event.fwd_tid, 5);
    assert_int_equal(seen[0].event.handle, 99);
    assert_int_equal(seen[0].event.rt_tid, 1);
    assert_int_equal(seen[0].event.scope, 1);
    assert_true(seen[0].event.start_ns <= seen[1].event.start_ns && seen[1].event.end_ns <= seen[0].event.end_ns);
    assert_int_equal(seen[0].event.flags & (KP_OP_UNFINISHED | KP_OP_ASYNC), 0);
}

static void *end_it(void *op)
{
    op_end(op);
    return NULL;
}

static void an_op_may_end_on_another_thread(void **state)
{
    (void)state;
    window_open(0);
    for (int i = 0; i < 40; i++) { /* more than one batch of slots would hold, were they not to come back */
        struct op op = op_make();
        pthread_t thread;
        op.rf[kp_torch.layout.rf_async] = 1;
        op_begin(&op, &relu, NULL, 0);
        assert_int_equal(pthread_create(&thread, NULL, end_it, &op), 0);
        pthread_join(thread, NULL);
    }
    window_close();
    assert_int_equal(events_read(), 40);
    assert_true(seen[39].event.flags & KP_OP_ASYNC);
    assert_false(seen[39].event.flags & KP_OP_UNFINISHED);
    assert_int_equal(seen[39].event.tid, kp_load_relaxed(&kp_thread_self->tid));
    assert_int_equal(kp_loss_total(), 0);
}

static void ranges_open_at_the_end_are_unfinished(void **state)
{
    (void)state;
    window_open(0);
    struct op outer = op_make(), late = op_make(), done = op_make();
    op_begin(&outer, NULL, "outer", 7);
    op_begin(&late, NULL, "late", 7);
    op_begin(&done, &relu, NULL, 0);
    op_end(&done);
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    op_end(&late); /* after the window */
    window_close();
    assert_int_equal(events_read(), 3);
    assert_string_equal(seen[0].name, "outer");
    assert_true(seen[0].event.flags & KP_OP_UNFINISHED);
    assert_string_equal(seen[1].name, "late");
    assert_true(seen[1].event.flags & KP_OP_UNFINISHED);
    assert_false(seen[2].event.flags & KP_OP_UNFINISHED);
    assert_true(seen[0].event.end_ns >= seen[2].event.end_ns);
    uint32_t before = cycle;
    window_open(0);
    op_end(&outer); /* in the next window: belongs to none, and the old one is not touched */
    window_close();
    assert_int_equal(kp_record_events(cycle), 0);
    cycle = before;
    assert_int_equal(events_read(), 3);
    assert_true(seen[0].event.flags & KP_OP_UNFINISHED);
    cycle++;
}

static void warm_up_keeps_nothing_of_what_outlives_it(void **state)
{
    (void)state;
    kp_gate_set(kp_gate_make(++cycle, KP_GATE_ON | KP_GATE_WARM));
    struct op op = op_make();
    op_begin(&op, &add, NULL, 0);
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON | KP_GATE_RECORD));
    op_end(&op);
    assert_int_equal(kp_record_events(cycle), 0);
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    op_begin(&op, &add, NULL, 0);
    assert_null(op.context);
}

static void inputs_are_copied_as_the_profiler_shows_them(void **state)
{
    static const int64_t small[] = {2, 3}, small_strides[] = {3, 1};
    static const int64_t big[] = {1ll << 32, 2, 3, 4, 5, 6, 7}, big_strides[] = {7, 6, 5, 4, 3, 2, 1};
    static uint8_t a[512], b[512], opaque[512], sparse[512], list[64], tensors[64], text[64];
    const struct kp_torch_layout *l = &kp_torch.layout;
    (void)state;
    mini_tensor(a, 2, small, small_strides, 6);
    mini_tensor(b, 7, big, big_strides, 4);
    mini_tensor(opaque, 2, small, small_strides, 6);
    opaque[l->ti_policy] = 0x10; /* symbolic sizes */
    mini_tensor(sparse, 2, small, small_strides, 6);
    sparse[l->ti_policy] = 0x04;
    mini_word(sparse, l->ti_keys, l->unstrided);
    struct value numbers[] = {{1, l->tag_int, 0}, {2, l->tag_int, 0}};
    struct value pair[] = {{(uintptr_t)a, l->tag_tensor, 0}, {(uintptr_t)b, l->tag_tensor, 0}};
    mini_word(list, l->list_items, (uintptr_t)numbers), mini_word(list, l->list_items + 8u, (uintptr_t)(numbers + 2));
    mini_word(tensors, l->list_items, (uintptr_t)pair), mini_word(tensors, l->list_items + 8u, (uintptr_t)(pair + 2));
    mini_word(tensors, l->list_type, (uintptr_t)l->tensor_type);
    const double half = 0.5;
    uint64_t half_bits;
    memcpy(&half_bits, &half, 8);
    struct value values[] = {{(uintptr_t)a, l->tag_tensor, 0},
                             {(uintptr_t)b, l->tag_tensor, 0},
                             {0, 0, 0},
                             {(uint64_t)-7, l->tag_int, 0},
                             {half_bits, l->tag_double, 0},
                             {1, l->tag_bool, 0},
                             {(uintptr_t)list, l->tag_list, 0},
                             {(uintptr_t)tensors, l->tag_list, 0},
                             {(uintptr_t)opaque, l->tag_tensor, 0},
                             {(uintptr_t)sparse, l->tag_tensor, 0},
                             {(uintptr_t)l->undefined_tensor, l->tag_tensor, 0},
                             {(uintptr_t)text, l->tag_string, 0},
                             {0, l->tag_symint, 0}};
    struct op op = op_make();
    mini_word(op.rf, l->rf_inputs, (uintptr_t)values);
    mini_word(op.rf, l->rf_inputs + 8u, sizeof values / sizeof *values);
    window_open(KP_GATE_SHAPES);
    op_begin(&op, &add, NULL, 0);
    op_end(&op);
    window_close();
    assert_int_equal(events_read(), 1);
    assert_int_equal(seen[0].event.inputs_count, sizeof values / sizeof *values);
    static const uint8_t tags[] = {KP_IN_TENSOR, KP_IN_TENSOR,      KP_IN_NONE,        KP_IN_INT,  KP_IN_DOUBLE,
                                   KP_IN_BOOL,   KP_IN_SCALAR_LIST, KP_IN_TENSOR_LIST, KP_IN_NONE, KP_IN_TENSOR,
                                   KP_IN_NONE,   KP_IN_NONE,        KP_IN_SYMBOL};
    static const size_t sizes[] = {20, 116, 1, 9, 9, 2, 21, 139, 1, 12, 1, 1, 1};
    static const uint32_t narrow[] = {2, 3, 3, 1};
    const uint8_t *at = seen[0].inputs;
    for (size_t i = 0; i < sizeof tags; at += sizes[i++]) assert_int_equal(*at, tags[i]);
    assert_memory_equal(seen[0].inputs + 4, narrow, 16);
    assert_memory_equal(seen[0].inputs + 20 + 4 + 56, big_strides, 56);
}

static void inputs_beyond_a_record_lose_the_inputs_not_the_op(void **state)
{
    static int64_t dims[255];
    static uint8_t tensor[512];
    static struct value values[20];
    (void)state;
    for (size_t i = 0; i < 255; i++) dims[i] = 1ll << 40; /* 8 bytes each are needed */
    mini_tensor(tensor, 255, dims, dims, 6);
    for (size_t i = 0; i < 20; i++) values[i] = (struct value){(uintptr_t)tensor, kp_torch.layout.tag_tensor, 0};
    struct op op = op_make();
    uint64_t before = kp_loss_total();
    window_open(KP_GATE_SHAPES);
    for (uint64_t n = 1; n <= 20; n++) { /* 4 KB each: the chunk's end is met, then the limit */
        mini_word(op.rf, kp_torch.layout.rf_inputs, (uintptr_t)values);
        mini_word(op.rf, kp_torch.layout.rf_inputs + 8u, n);
        op_begin(&op, &add, NULL, 0);
        op_end(&op);
    }
    window_close();
    assert_int_equal(kp_record_events(cycle), 20);
    assert_int_equal(events_read(), 20);
    for (size_t i = 0; i < 20; i++) assert_int_equal(seen[i].event.inputs_count, i < 8 ? i + 1 : 0);
    assert_int_equal(kp_loss_total() - before, 12); /* 9 and more of 4,084 bytes pass 32 KB */
}

static void steps_are_reported_when_a_marked_range_ends(void **state)
{
    const struct kp_schedule schedule = {.set = true, .active = 1};
    const struct kp_step_rule rule = {.kind = KP_RULE_AUTO};
    (void)state;
    assert_int_equal(kp_steps_init(&schedule, &rule), 0);
    steps = 0;
    window_open(KP_GATE_STEPS);
    for (int i = 0; i < 3; i++) {
        struct op op = op_make(), other = op_make();
        op_begin(&op, NULL, "Optimizer.step#SGD.step", 7);
        op_begin(&other, NULL, "Optimizer.step#SGD.step", 0); /* not a user's range */
        op_end(&other);
        op_end(&op);
    }
    assert_int_equal(steps, 3);
    assert_int_equal(kp_record_events(cycle), 6);
    window_close();
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON | KP_GATE_STEPS)); /* waiting: the cheap callback */
    struct op op = op_make();
    mini_word(op.rf, kp_torch.layout.rf_fn, (uintptr_t) "Optimizer.step#SGD.step");
    mini_word(op.rf, kp_torch.layout.rf_fn + 8u, 23);
    op.rf[kp_torch.layout.rf_scope] = 7;
    errno = 17;
    kp_torch_step_start((void **)&op.context, op.rf);
    assert_null(op.context);
    kp_torch_step_end(op.rf, op.context);
    assert_int_equal(errno, 17);
    assert_int_equal(steps, 4);
}

/* ---- many threads, windows that close under them, ends that wander ---- */

enum { WORKERS = 4, OPS = 20000 };
static _Atomic(struct op *) handed[WORKERS];
static _Atomic unsigned started_in[64], workers_left;

static void *work(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg;
    for (int i = 0; i < OPS; i++) {
        struct op *op = malloc(sizeof *op);
        *op = op_make();
        op_begin(op, i % 2 ? &add : &relu, NULL, 0);
        if (op->context) kp_add_relaxed(&started_in[op->context->cycle], 1);
        if (i % 3 == 0) op = kp_exchange_acq_rel(&handed[(me + 1) % WORKERS], op); /* a neighbour ends it */
        if (!op) continue;
        op_end(op);
        free(op);
    }
    kp_add_relaxed(&workers_left, -1u);
    return NULL;
}

static void every_op_is_in_its_window_exactly_once(void **state)
{
    pthread_t threads[WORKERS];
    uint32_t first = cycle + 1;
    uint64_t lost = kp_loss_total();
    (void)state;
    kp_store_relaxed(&workers_left, WORKERS);
    for (int i = 0; i < 60000 && kp_chunk_ready() < 250;
         i++) { /* what they write fits into this, should the writer not come by for long */
        kp_chunk_ask();
        kp_writer_wake();
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    window_open(0);
    for (size_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
    while (kp_load_relaxed(&workers_left) && cycle < 50) {
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        window_close();
        window_open(0);
    }
    for (size_t i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < WORKERS; i++) {
        struct op *op = kp_exchange_acq_rel(&handed[i], NULL);
        if (op) op_end(op);
        free(op);
    }
    window_close();
    assert_int_equal(kp_loss_total(), lost);
    for (uint32_t c = first; c <= cycle; c++) assert_int_equal(kp_record_events(c), kp_load_relaxed(&started_in[c]));
}

/* torch::ParamCommsDebugInfo; what its first word points to stands for the vtable torch exports. */
static uint8_t info[240];
static const uint64_t vtable[4];
static const uintptr_t kind_of_comms = 4711;

static const void *info_get(uintptr_t kind) { return kind == kind_of_comms ? info : NULL; }

static void info_text(size_t at, const char *text)
{
    mini_word(info, at, (uintptr_t)text);
    mini_word(info, at + 8, strlen(text));
}

static void info_list(size_t at, const int64_t *values, size_t n)
{
    mini_word(info, at, (uintptr_t)values);
    mini_word(info, at + 8, (uintptr_t)(values + n));
}

static void collective_run(void)
{
    struct op op = op_make(), other = op_make();
    op_begin(&op, NULL, "record_param_comms", 0);
    op_begin(&other, &relu, NULL, 0);
    op_end(&other);
    op_end(&op);
}

static void a_collective_is_kept_with_its_op(void **state)
{
    static int64_t sizes[2] = {3, 4}, ranks[40];
    (void)state;
    for (int i = 0; i < 40; i++) ranks[i] = 2 * i;
    info_text(8, "");
    info_text(40, "group 1");
    info_text(80, "all_to_all_v");
    mini_word(info, 72, 3 | UINT64_C(40) << 32); /* rank, group size */
    mini_word(info, 112, 7);
    mini_word(info, 120, 9);
    info[128] = 6;
    info_list(136, sizes, 2);
    info_list(160, NULL, 0);
    mini_word(info, 184, 0xffffffff | UINT64_C(2) << 32);
    info_list(192, ranks, 40);
    info[216] = 1;
    mini_word(info, 224, 21);
    mini_word(info, 0, (uintptr_t)vtable + 16);
    kp_torch.api.debug_info = info_get;
    kp_torch.api.comms_kind = &kind_of_comms;
    kp_torch.api.comms_vtable = vtable;
    kp_torch_comms_attach(&kp_torch.api, &kp_torch.layout);
    window_open(0);
    collective_run();
    mini_word(info, 0, (uintptr_t)vtable + 24); /* another class: nothing of it is believed */
    collective_run();
    window_close();
    assert_int_equal(events_read(), 4);
    const struct kp_comms *c = &seen[0].comms;
    assert_non_null(seen[0].event.comms);
    assert_int_equal(c->rec.in_elements, 7);
    assert_int_equal(c->rec.out_elements, 9);
    assert_int_equal(c->rec.rank, 3);
    assert_int_equal(c->rec.group_size, 40);
    assert_int_equal(c->rec.rank_start, -1);
    assert_int_equal(c->rec.rank_stride, 2);
    assert_int_equal(c->rec.dtype, 6);
    assert_int_equal(c->rec.sequence, 21);
    assert_int_equal(c->rec.peer, 6);
    assert_int_equal(c->rec.head.flags, KP_COMMS_SEQ | KP_COMMS_ASYNC | KP_COMMS_PEER | KP_COMMS_TYPED);
    assert_int_equal(c->rec.group_description, 0);
    assert_int_equal(c->rec.count[0], 2);
    assert_int_equal(c->rec.count[1], 0);
    assert_int_equal(c->rec.count[2], 40);
    assert_int_equal(c->values[1], 4);
    assert_int_equal(c->values[2 + 28], 56);
    assert_int_equal(c->values[2 + 29], 78);
    assert_null(seen[1].event.comms);
    assert_null(seen[2].event.comms);
    kp_store_relaxed(&kp_torch_comms_id, UINT32_MAX);
}

static void collectives_of_a_torch_we_do_not_know_are_not_read(void **state)
{
    (void)state;
    const struct {
        uint32_t version, string_bytes;
    } unknown[] = {{206, 8}, {206, 32}, {207, 8}, {216, 32}};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct kp_torch_layout layout;
        kp_torch_layout_make(&layout, unknown[i].version, unknown[i].string_bytes);
        kp_torch_comms_attach(&kp_torch.api, &layout);
        assert_int_equal(kp_load_relaxed(&kp_torch_comms_id), UINT32_MAX);
    }
}

/* ---- TorchScript's modules ---- */

static const char *const *hierarchy; /* what the interpreter would say; NULL: it throws */
static int texts_alive, blocks_alive, caught;
static struct _Unwind_Exception exception;

static void hierarchy_get(void *texts)
{
    const uint32_t bytes = kp_torch.layout.string_bytes;
    uint8_t **vector = texts;
    size_t n = 0;
    assert_true(kp_in_profiler); /* the host's heap does not count it */
    if (!hierarchy) _Unwind_RaiseException(&exception);
    assert_non_null(hierarchy); /* nobody caught it */
    while (hierarchy[n]) n++;
    vector[0] = n ? calloc(n + 1, bytes) : NULL; /* room for one more, as push_back leaves it */
    vector[1] = vector[0] + n * bytes;
    vector[2] = n ? vector[1] + bytes : NULL;
    blocks_alive += n != 0;
    for (size_t i = 0; i < n; i++, texts_alive++) mini_string(vector[0] + i * bytes, hierarchy[i]);
}

static void text_drop(void *string)
{
    mini_string_drop(string);
    texts_alive--;
}

static void block_drop(void *block)
{
    free(block);
    blocks_alive--;
}

static void *catch_begin(void *thrown)
{
    assert_ptr_equal(thrown, &exception);
    caught++;
    return thrown;
}

static void catch_end(void) {}

static void set_register(void *context, int number, uintptr_t value) { _Unwind_SetGR(context, number, value); }

static void set_place(void *context, uintptr_t address) { _Unwind_SetIP(context, address); }

static void op_in(const char *const *modules, uint8_t scope)
{
    static const struct {
        uint64_t len, room, shares; /* where the older std::string has them */
        char text[8];
    } name = {2, 2, 0, "op"};
    struct op op = op_make();
    hierarchy = modules;
    mini.at = kp_torch.layout; /* for its strings */
    op_begin(&op, NULL, name.text, scope);
    op_end(&op);
}

static void ops_carry_the_modules_that_torchscript_runs(uint32_t string_bytes)
{
    static const char *const two[] = {"TOP(Net)::forward", "fc1(Linear)::forward", NULL}, *const none[] = {NULL};
    static char wide[8000];
    memset(wide, 'x', sizeof wide - 1);
    const char *const long_one[] = {"first", wide, wide, NULL};
    const struct kp_torch_layout kept = kp_torch.layout;
    kp_torch.layout.string_bytes = string_bytes;
    caught = 0;
    window_open(KP_GATE_MODULES);
    op_in(two, 0);
    op_in(none, 0);
    op_in(NULL, 0);
    op_in(two, KP_TORCH_BACKWARD_SCOPE);
    op_in(two, 7);
    op_in(long_one, 0);
    kp_torch.layout = kept;
    window_close();
    window_open(0);
    op_in(NULL, 0); /* not asked for: not asked */
    window_close();
    cycle--;
    assert_int_equal(events_read(), 6);
    cycle++;
    static const char *const want[] = {"TOP(Net)::forward.fc1(Linear)::forward.", "none", "none", "none",
                                       "TOP(Net)::forward.fc1(Linear)::forward."};
    for (size_t i = 0; i < 5; i++) assert_string_equal(seen[i].modules, want[i]);
    assert_memory_equal(seen[5].modules, "first.xxx", 9);
    assert_int_equal(texts_alive, 0);
    assert_int_equal(blocks_alive, 0);
    assert_int_equal(caught, 1);
    assert_false(kp_in_profiler);
}

static void modules_are_joined_given_back_and_what_is_thrown_is_caught(void **state)
{
    struct kp_torch_api *api = &kp_torch.api;
    (void)state;
    api->modules = hierarchy_get;
    api->text_drop = text_drop;
    api->block_drop = block_drop;
    kp_torch_modules_attach(api, "unable to throw"); /* no functions of the unwinder: never asked */
    window_open(KP_GATE_MODULES);
    op_in(NULL, 0);
    window_close();
    api->catch_begin = catch_begin;
    api->catch_end = catch_end;
    api->set_register = set_register;
    api->set_place = set_place;
    kp_torch_modules_attach(api, "test");
    ops_carry_the_modules_that_torchscript_runs(32);
    ops_carry_the_modules_that_torchscript_runs(8);
}

static void a_forked_child_may_fork_and_interns_names_of_its_own(void **state)
{
    (void)state;
    assert_true(kp_torch_source.before_fork());
    kp_torch_source.after_fork(true);
    kp_store_relaxed(&kp_torch_comms_id, 7); /* as the parent's spool has it */
    kp_torch_source.forget();
    assert_int_equal(kp_load_relaxed(&kp_torch_comms_id), 0);
    assert_true(kp_torch_source.before_fork()); /* of a child of its own: nobody is waited for */
    kp_torch_source.after_fork(false);
    kp_store_relaxed(&kp_torch_comms_id, UINT32_MAX); /* not read in this torch: nor in a child */
    kp_torch_source.forget();
    assert_int_equal(kp_load_relaxed(&kp_torch_comms_id), UINT32_MAX);
}

static int begin(void **state)
{
    static char path[4096];
    (void)state;
    kp_run_set_calls(&(struct kp_run_calls){.step = step_count});
    kp_torch.api = torch_fields(215, 32);
    kp_torch_layout_make(&kp_torch.layout, 215, 32);
    kp_torch_selfcheck(&kp_torch.api, &kp_torch.layout);
    kp_clock_init();
    snprintf(path, sizeof path, "%s", kp_test_tmpdir());
    struct kp_record_options options = {.dir = path, .max_bytes = 256u << 20, .text = ""};
    return kp_gate_init() || kp_record_open(&options) || kp_torch.layout.dropped;
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
        cmocka_unit_test(an_op_has_name_overload_sequence_and_threads),
        cmocka_unit_test(an_op_may_end_on_another_thread),
        cmocka_unit_test(ranges_open_at_the_end_are_unfinished),
        cmocka_unit_test(warm_up_keeps_nothing_of_what_outlives_it),
        cmocka_unit_test(inputs_are_copied_as_the_profiler_shows_them),
        cmocka_unit_test(inputs_beyond_a_record_lose_the_inputs_not_the_op),
        cmocka_unit_test(steps_are_reported_when_a_marked_range_ends),
        cmocka_unit_test(every_op_is_in_its_window_exactly_once),
        cmocka_unit_test(modules_are_joined_given_back_and_what_is_thrown_is_caught),
        cmocka_unit_test(a_collective_is_kept_with_its_op),
        cmocka_unit_test(collectives_of_a_torch_we_do_not_know_are_not_read),
        cmocka_unit_test(a_forked_child_may_fork_and_interns_names_of_its_own),
    };
    return cmocka_run_group_tests_name("torch_ops", tests, begin, end);
}
