// SPDX-License-Identifier: Apache-2.0
/*
 * callers.c - finds callers and call stacks of Python functions, and numbers modules
 *
 * Called by: event.c, for every event in order of start time
 * Memory:    a list of open calls for each thread, a table of modules; both double when full
 * On fail:   -ENOMEM, which ends the export
 *
 * A call is open while its range is. It leaves the list when an event of its thread starts at or after its end. So the
 * list is the next event's call stack, and its last call is the caller. An object of torch.nn.Module
 * is numbered among those of its class when it is first called, as Kineto does.
 */
#include "export/trace/callers.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_idtable.h"
#include "collector/format/kp_python.h"
#include "collector/base/kp_poison.h"

struct open_pycall {
    const char *name; /* as long as the reader */
    uint64_t id, end_ns;
    int64_t module;
};
struct call_stack {
    uint64_t thread; /* thread_no + 1 */
    struct open_pycall *of;
    uint32_t n, cap;
};
struct module_class { /* self 0: the class itself, number counts its objects */
    uint64_t self, type, number;
};
struct kp_callers {
    uint64_t id_last;
    struct kp_idtable stacks;     /* struct call_stack */
    struct call_stack *last;      /* looked at last */
    struct module_class *modules; /* type 0: free */
    uint32_t modules_n, modules_cap;
};

struct kp_callers *kp_callers_open(void)
{
    struct kp_callers *p = kp_map_alloc(sizeof *p);
    if (p) p->stacks.item_bytes = sizeof(struct call_stack);
    return p;
}

void kp_callers_close(struct kp_callers *p)
{
    if (!p) return;
    const struct call_stack *stacks = p->stacks.items;
    for (uint32_t i = 0; i < p->stacks.cap; i++)
        if (stacks[i].of) kp_map_free(stacks[i].of, stacks[i].cap * sizeof *stacks[i].of);
    kp_idtable_fini(&p->stacks);
    if (p->modules) kp_map_free(p->modules, p->modules_cap * sizeof *p->modules);
    kp_map_free(p, sizeof *p);
}

/* ---- open calls ---- */

/* The thread's stack. NULL: it has none, and none is made or memory is out. */
static struct call_stack *stack_get(struct kp_callers *p, uint32_t thread_no, bool is_made)
{
    const uint64_t thread = thread_no + UINT64_C(1);
    if (!p->last || p->last->thread != thread)
        p->last = is_made ? kp_idtable_add(&p->stacks, thread) : kp_idtable_find(&p->stacks, thread);
    return p->last;
}

static void leave_ended(struct call_stack *s, uint64_t now_ns)
{
    while (s->n && s->of[s->n - 1].end_ns <= now_ns) s->n--;
}

/* ---- modules ---- */

static struct module_class *module_slot(struct module_class *table, uint32_t cap, uint64_t self, uint64_t type)
{
    uint64_t h = (type * UINT64_C(0x9e3779b97f4a7c15)) ^ (self * UINT64_C(0xc2b2ae3d27d4eb4f));
    uint32_t at = (uint32_t)(h >> 32) & (cap - 1);
    while (table[at].type && (table[at].type != type || table[at].self != self)) at = (at + 1) & (cap - 1);
    return &table[at];
}

static int modules_grow(struct kp_callers *p)
{
    const uint32_t cap = p->modules_cap ? p->modules_cap * 2 : 1024;
    struct module_class *table = kp_map_alloc(cap * sizeof *table);
    if (!table) return -ENOMEM;
    for (uint32_t i = 0; i < p->modules_cap; i++)
        if (p->modules[i].type) *module_slot(table, cap, p->modules[i].self, p->modules[i].type) = p->modules[i];
    if (p->modules) kp_map_free(p->modules, p->modules_cap * sizeof *table);
    p->modules = table, p->modules_cap = cap;
    return 0;
}

static int module_number(struct kp_callers *p, uint64_t self, uint64_t type, int64_t *number)
{
    if ((p->modules_n + 2) * 2 > p->modules_cap && modules_grow(p)) return -ENOMEM;
    struct module_class *m = module_slot(p->modules, p->modules_cap, self, type ? type : 1);
    if (!m->type) {
        *m = (struct module_class){.self = self, .type = type ? type : 1};
        struct module_class *class = module_slot(p->modules, p->modules_cap, 0, m->type);
        if (!class->type) {
            class->type = m->type;
            p->modules_n++;
        }
        m->number = class->number++;
        p->modules_n++;
    }
    *number = (int64_t)m->number;
    return 0;
}

/* ---- the two together ---- */

int kp_callers_take(struct kp_callers *p, const struct kp_event *call, struct kp_pycall *out)
{
    struct call_stack *s = stack_get(p, call->thread_no, true);
    if (!s) return -ENOMEM;
    leave_ended(s, call->start_ns);
    *out = (struct kp_pycall){.id = ++p->id_last, .parent = s->n ? s->of[s->n - 1].id : 0, .module = -1};
    if (call->flags & KP_PY_MODULE && module_number(p, call->module_self, call->module_type, &out->module))
        return -ENOMEM;
    if (s->n == s->cap) {
        void *more = kp_map_double(s->of, &s->cap, sizeof *s->of, 256);
        if (!more) return -ENOMEM;
        s->of = more;
    }
    s->of[s->n++] = (struct open_pycall){call->name, out->id, call->end_ns, out->module};
    return 0;
}

bool kp_callers_has_stack(struct kp_callers *p, const struct kp_event *e)
{
    struct call_stack *s = stack_get(p, e->thread_no, false);
    if (s) leave_ended(s, e->start_ns);
    return s && s->n;
}

void kp_callers_stack_write(struct kp_callers *p, const struct kp_event *e, struct kp_json *json)
{
    const struct call_stack *s = stack_get(p, e->thread_no, false);
    for (uint32_t i = s ? s->n : 0; i-- > 0;) {
        kp_json_text(json, s->of[i].name, strlen(s->of[i].name));
        if (s->of[i].module >= 0) {
            kp_json_char(json, '_');
            kp_json_u64(json, (uint64_t)s->of[i].module);
        }
        kp_json_char(json, ';');
    }
}
