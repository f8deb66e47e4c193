// SPDX-License-Identifier: Apache-2.0
/*
 * ranges.c - NVTX handlers, which make records of ranges and marks
 *
 * Called by: any host thread, straight from its NVTX calls (hot)
 * Owns:      per thread, the ranges it has pushed in the current window
 * Locks:     none. Memory: arena, at a thread's first push while a window records.
 * On fail:   the range is not recorded and counted
 * Safe in:   after fork yes (the gate reads 0 in a child)
 *
 * Push and pop return what they return without a tool, so the host sees no difference. Each domain has its own stack on
 * each thread: a pop ends the innermost range of its domain. Ranges pushed before the window are not on the stack, so
 * a pop that finds no range of its domain is ignored.
 */
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/format/kp_device.h"
#include "preload/guard.h"
#include "preload/nvtx/nvtx.h"
#include "collector/base/kp_poison.h"

enum { DEPTH_MAX = 120, NUMBER_BITS = 40 };
#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)

struct pushed {
    struct kp_rec_nvtx *rec; /* NULL: there was no room for the record */
    const struct kp_nvtx_text *domain;
};
struct stack {
    uint32_t thread_no, cycle; /* the thread and the cycle that pushed the ranges */
    uint32_t depth, beyond;    /* beyond: ranges deeper than DEPTH_MAX, not recorded */
    struct pushed ranges[DEPTH_MAX];
};

static _Atomic uint64_t last_id;

/* A new thread may get a dead thread's state, so thread_no is compared before its open ranges are used. */
static struct stack *stack_get(struct kp_thread *t, uint32_t cycle)
{
    struct stack *s = t->source_state[KP_STATE_NVTX];
    if (!s) s = t->source_state[KP_STATE_NVTX] = kp_arena_alloc(sizeof *s);
    if (s && (s->cycle != cycle || s->thread_no != t->thread_no)) {
        s->thread_no = t->thread_no;
        s->cycle = cycle;
        s->depth = s->beyond = 0;
    }
    return s;
}

static struct kp_rec_nvtx *put(const struct kp_guard *g, struct kp_nvtx_text *domain, uint32_t name, uint8_t type,
                               uint64_t id)
{
    struct kp_thread *t = g->thread;
    struct kp_rec_nvtx *rec = kp_put_reserve(t, g->gate, sizeof *rec, KP_KIND_NVTX);
    if (!rec) return NULL;
    rec->head = (struct kp_rec){.kind = KP_KIND_NVTX, .size = sizeof *rec, .name = name};
    kp_store_relaxed(&rec->ticks, type != KP_NVTX_RANGE); /* 0: a range that has not ended */
    rec->id = id;
    rec->domain = domain ? kp_nvtx_text_name(t, domain) : 0;
    rec->type = type;
    memset(rec->pad, 0, sizeof rec->pad);
    rec->start = kp_ticks();
    kp_put_commit(t, sizeof *rec);
    return rec;
}

static void push(struct kp_nvtx_text *domain, struct kp_nvtx_message message)
{
    struct kp_guard guard;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    struct stack *s = guard.gate & KP_GATE_RECORD ? stack_get(guard.thread, kp_gate_cycle(guard.gate)) : NULL;
    if (s && s->depth < DEPTH_MAX) {
        s->ranges[s->depth] =
            (struct pushed){put(&guard, domain, kp_nvtx_message_name(guard.thread, message), KP_NVTX_RANGE, 0), domain};
        kp_signal_fence(); /* a signal handler may jump out of here: the entry is complete before depth counts it */
        s->depth++;
    } else if (s) {
        s->beyond++;
        kp_loss_count(KP_KIND_NVTX, KP_LOSS_NO_SLOT);
    }
    KP_HOOK_LEAVE(&guard);
}

static void end_innermost(struct stack *s, const struct kp_nvtx_text *domain, uint64_t now)
{
    uint32_t i = s->depth;
    while (i && s->ranges[i - 1].domain != domain) i--;
    if (!i) return;
    struct kp_rec_nvtx *rec = s->ranges[i - 1].rec;
    if (rec) kp_put_end(&rec->ticks, rec->start, now);
    memmove(&s->ranges[i - 1], &s->ranges[i], (s->depth - i) * sizeof s->ranges[0]);
    s->depth--;
}

static void pop(const struct kp_nvtx_text *domain)
{
    uint64_t now = kp_ticks();
    struct kp_guard guard;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    struct stack *s = guard.thread->source_state[KP_STATE_NVTX];
    bool is_current = s && s->cycle == kp_gate_cycle(guard.gate) && s->thread_no == guard.thread->thread_no;
    if ((guard.gate & KP_GATE_RECORD) && is_current) {
        if (s->beyond) s->beyond--;
        else end_innermost(s, domain, now);
    }
    KP_HOOK_LEAVE(&guard);
}

/*
 * The id returned to the host holds the range's number and its name's id, and the host passes it to the end call. The
 * end record needs the name, because viewers close a range only under its name. The file has the number alone.
 */
static uint64_t put_one(struct kp_nvtx_text *domain, struct kp_nvtx_message message, uint8_t type, uint64_t id)
{
    struct kp_guard guard;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return 0;
    if (guard.gate & KP_GATE_RECORD) {
        uint32_t name =
            type == KP_NVTX_END ? (uint32_t)(id >> NUMBER_BITS) : kp_nvtx_message_name(guard.thread, message);
        uint64_t number = (type == KP_NVTX_START ? kp_add_relaxed(&last_id, 1) + 1 : id) & NUMBER_MASK;
        put(&guard, domain, name, type, number);
        id = number | (name < 1u << (64 - NUMBER_BITS) ? (uint64_t)name << NUMBER_BITS : 0);
    } else {
        id = 0;
    }
    KP_HOOK_LEAVE(&guard);
    return id;
}

/* ---- a handler for each form of call, under its number of nvtx.h ---- */

#define TEXT_A(text) ((struct kp_nvtx_message){KP_NVTX_TEXT_ASCII, (text)})
#define TEXT_W(text) ((struct kp_nvtx_message){KP_NVTX_TEXT_WIDE, (text)})
#define NO_TEXT ((struct kp_nvtx_message){KP_NVTX_TEXT_NONE, NULL})

static void mark_ex(const struct kp_nvtx_event *e) { put_one(NULL, kp_nvtx_event_message(e), KP_NVTX_MARK, 0); }
static void mark_a(const char *text) { put_one(NULL, TEXT_A(text), KP_NVTX_MARK, 0); }
static void mark_w(const wchar_t *text) { put_one(NULL, TEXT_W(text), KP_NVTX_MARK, 0); }

static uint64_t start_ex(const struct kp_nvtx_event *e)
{
    return put_one(NULL, kp_nvtx_event_message(e), KP_NVTX_START, 0);
}
static uint64_t start_a(const char *text) { return put_one(NULL, TEXT_A(text), KP_NVTX_START, 0); }
static uint64_t start_w(const wchar_t *text) { return put_one(NULL, TEXT_W(text), KP_NVTX_START, 0); }
static void range_end(uint64_t id)
{
    if (id) put_one(NULL, NO_TEXT, KP_NVTX_END, id);
}

static int push_message(struct kp_nvtx_text *domain, struct kp_nvtx_message message)
{
    push(domain, message);
    return KP_NVTX_NO_TRACKING;
}
static int push_ex(const struct kp_nvtx_event *e) { return push_message(NULL, kp_nvtx_event_message(e)); }
static int push_a(const char *text) { return push_message(NULL, TEXT_A(text)); }
static int push_w(const wchar_t *text) { return push_message(NULL, TEXT_W(text)); }
static int pop_range(void)
{
    pop(NULL);
    return KP_NVTX_NO_TRACKING;
}

static void domain_mark(struct kp_nvtx_text *domain, const struct kp_nvtx_event *e)
{
    put_one(domain, kp_nvtx_event_message(e), KP_NVTX_MARK, 0);
}
static uint64_t domain_start(struct kp_nvtx_text *domain, const struct kp_nvtx_event *e)
{
    return put_one(domain, kp_nvtx_event_message(e), KP_NVTX_START, 0);
}
static void domain_range_end(struct kp_nvtx_text *domain, uint64_t id)
{
    if (id) put_one(domain, NO_TEXT, KP_NVTX_END, id);
}
static int domain_push(struct kp_nvtx_text *domain, const struct kp_nvtx_event *e)
{
    return push_message(domain, kp_nvtx_event_message(e));
}
static int domain_pop(struct kp_nvtx_text *domain)
{
    pop(domain);
    return KP_NVTX_NO_TRACKING;
}

static struct kp_nvtx_text *keep(struct kp_nvtx_message message)
{
    return kp_gate_get() & KP_GATE_ON ? kp_nvtx_text_keep(message) : NULL;
}
static struct kp_nvtx_text *string_a(struct kp_nvtx_text *domain, const char *text)
{
    (void)domain;
    return keep(TEXT_A(text));
}
static struct kp_nvtx_text *string_w(struct kp_nvtx_text *domain, const wchar_t *text)
{
    (void)domain;
    return keep(TEXT_W(text));
}
static struct kp_nvtx_text *domain_a(const char *text) { return keep(TEXT_A(text)); }
static struct kp_nvtx_text *domain_w(const wchar_t *text) { return keep(TEXT_W(text)); }

const struct kp_nvtx_handler kp_nvtx_handlers[] = {
    {KP_NVTX_MODULE_CORE, KP_NVTX_MARK_EX, (kp_nvtx_fn)mark_ex},
    {KP_NVTX_MODULE_CORE, KP_NVTX_MARK_A, (kp_nvtx_fn)mark_a},
    {KP_NVTX_MODULE_CORE, KP_NVTX_MARK_W, (kp_nvtx_fn)mark_w},
    {KP_NVTX_MODULE_CORE, KP_NVTX_START_EX, (kp_nvtx_fn)start_ex},
    {KP_NVTX_MODULE_CORE, KP_NVTX_START_A, (kp_nvtx_fn)start_a},
    {KP_NVTX_MODULE_CORE, KP_NVTX_START_W, (kp_nvtx_fn)start_w},
    {KP_NVTX_MODULE_CORE, KP_NVTX_RANGE_END, (kp_nvtx_fn)range_end},
    {KP_NVTX_MODULE_CORE, KP_NVTX_PUSH_EX, (kp_nvtx_fn)push_ex},
    {KP_NVTX_MODULE_CORE, KP_NVTX_PUSH_A, (kp_nvtx_fn)push_a},
    {KP_NVTX_MODULE_CORE, KP_NVTX_PUSH_W, (kp_nvtx_fn)push_w},
    {KP_NVTX_MODULE_CORE, KP_NVTX_POP, (kp_nvtx_fn)pop_range},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_MARK_EX, (kp_nvtx_fn)domain_mark},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_START_EX, (kp_nvtx_fn)domain_start},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_RANGE_END, (kp_nvtx_fn)domain_range_end},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_PUSH_EX, (kp_nvtx_fn)domain_push},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_POP, (kp_nvtx_fn)domain_pop},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_STRING_A, (kp_nvtx_fn)string_a},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_STRING_W, (kp_nvtx_fn)string_w},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_CREATE_A, (kp_nvtx_fn)domain_a},
    {KP_NVTX_MODULE_CORE2, KP_NVTX_DOMAIN_CREATE_W, (kp_nvtx_fn)domain_w},
};
const size_t kp_nvtx_handler_count = sizeof kp_nvtx_handlers / sizeof *kp_nvtx_handlers;
