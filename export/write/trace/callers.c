// SPDX-License-Identifier: Apache-2.0
/*
 * callers.c - finds callers and call stacks of Python functions, and numbers modules
 *
 * Called by: event.c, for every event in order of start time
 * Memory:    a list of open calls for each thread, a table of modules; all double when full
 * On fail:   -ENOMEM, which ends the export
 *
 * A call is open until it ends, though a part of it may end before (decisions/131). It leaves the list when an event of
 * its thread starts at or after its end. So the list is the next event's call stack, and its last call is the caller.
 * An object of torch.nn.Module is numbered among those of its class when it is first called, as Kineto does. If it has
 * several keys in modules around it the first call's counts.
 */
#include "export/write/trace/callers.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_hash.h"
#include "collector/base/kp_idtable.h"
#include "collector/format/kp_python.h"
#include "collector/base/kp_poison.h"

enum { PATH_MOST = 32 };

struct open_pycall {
    const char *name; /* as long as the reader */
    uint64_t id, start_ns, end_ns;
    int64_t module;
    uint64_t object; /* id of the module that is called, or of the one around the call; 0: neither */
};
struct call_stack {
    uint64_t thread; /* thread_no + 1 */
    struct open_pycall *of;
    uint32_t n, cap;
};
struct module_class { /* of a class itself, which has an id with self 0, number counts its objects */
    uint64_t id, number;
    const char *key; /* as long as the reader; NULL: none so far */
    uint64_t around; /* id of the module in which it has that key */
};
struct kp_callers {
    uint64_t id_last;
    struct kp_idtable stacks;  /* struct call_stack */
    struct call_stack *last;   /* looked at last */
    struct kp_idtable modules; /* struct module_class */
};

struct kp_callers *kp_callers_open(void)
{
    struct kp_callers *p = kp_map_alloc(sizeof *p);
    if (!p) return NULL;
    p->stacks.item_bytes = sizeof(struct call_stack);
    p->modules.item_bytes = sizeof(struct module_class);
    return p;
}

void kp_callers_close(struct kp_callers *p)
{
    if (!p) return;
    const struct call_stack *stacks = p->stacks.items;
    for (uint32_t i = 0; i < p->stacks.cap; i++)
        if (stacks[i].of) kp_map_free(stacks[i].of, stacks[i].cap * sizeof *stacks[i].of);
    kp_idtable_fini(&p->stacks);
    kp_idtable_fini(&p->modules);
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

static uint64_t id_of(uint64_t self, uint64_t type)
{
    const uint64_t both[] = {self, type ? type : 1}, id = kp_hash64(both, sizeof both);
    return id ? id : 1;
}

/* The objects around m, as far as they have keys, the innermost first. */
static uint32_t path_gather(const struct kp_callers *p, const struct module_class *m,
                            const struct module_class *path[PATH_MOST])
{
    uint32_t n = 0;
    for (; m && m->key && n < PATH_MOST; m = kp_idtable_find(&p->modules, m->around)) path[n++] = m;
    return n;
}

/* No object is around itself, though an address may be that of another object later. */
static void key_take(const struct kp_callers *p, struct module_class *m, const char *key,
                     const struct open_pycall *around)
{
    const struct module_class *path[PATH_MOST], *outer = kp_idtable_find(&p->modules, around->object);
    const uint32_t n = path_gather(p, outer, path);
    bool is_inside = outer == m || n == PATH_MOST;
    for (uint32_t i = 0; i < n && !is_inside; i++) is_inside = path[i] == m || path[i]->around == m->id;
    if (is_inside || !key) return;
    m->key = key;
    m->around = around->object;
}

void kp_callers_path_write(struct kp_callers *p, const struct kp_event *call, struct kp_json *json)
{
    const struct module_class *path[PATH_MOST];
    uint32_t n = path_gather(p, kp_idtable_find(&p->modules, id_of(call->module_self, call->module_type)), path);
    while (n-- > 0) {
        kp_json_text(json, path[n]->key, strcspn(path[n]->key, (char[]){KP_PY_KEY_END, 0}));
        if (n) kp_json_char(json, '.');
    }
}

/* `around`: the call around it, if that is in a module. */
static int module_take(struct kp_callers *p, const struct kp_event *call, const struct open_pycall *around,
                       struct kp_pycall *out)
{
    const uint64_t id = id_of(call->module_self, call->module_type);
    struct module_class *m = kp_idtable_find(&p->modules, id);
    if (!m) {
        struct module_class *const class = kp_idtable_add(&p->modules, id_of(0, call->module_type));
        const uint64_t number = class ? class->number++ : 0;
        if (!class || !(m = kp_idtable_add(&p->modules, id))) return -ENOMEM;
        m->number = number;
    }
    if (!m->key && around) key_take(p, m, call->module_key, around);
    out->module = (int64_t)m->number;
    out->has_path = m->key != NULL;
    return 0;
}

/* ---- the two together ---- */

static uint64_t end_of(const struct kp_event *call)
{
    return call->call_end_ns > call->end_ns ? call->call_end_ns : call->end_ns;
}

/* A further part is the call that is open already. False: it is not, or this is no such part. */
static bool further_take(const struct call_stack *s, const struct kp_event *call, struct kp_pycall *out)
{
    for (uint32_t i = call->flags & KP_PY_FURTHER ? s->n : 0; i-- > 0;) {
        const struct open_pycall *const open = &s->of[i];
        if (open->name != call->name || open->end_ns != end_of(call)) continue;
        *out = (struct kp_pycall){.id = open->id, .parent = i ? s->of[i - 1].id : 0, .module = open->module};
        out->before_ns = call->start_ns - open->start_ns;
        return true;
    }
    return false;
}

int kp_callers_take(struct kp_callers *p, const struct kp_event *call, struct kp_pycall *out)
{
    struct call_stack *s = stack_get(p, call->thread_no, true);
    if (!s) return -ENOMEM;
    leave_ended(s, call->start_ns);
    if (further_take(s, call, out)) return 0;
    *out = (struct kp_pycall){.id = ++p->id_last, .parent = s->n ? s->of[s->n - 1].id : 0, .module = -1};
    struct open_pycall own = {call->name, out->id, call->start_ns, end_of(call), -1, 0},
                       *around = s->n ? &s->of[s->n - 1] : NULL;
    if (around) own.object = around->object;
    if (call->flags & KP_PY_MODULE) {
        if (module_take(p, call, around && around->object ? around : NULL, out)) return -ENOMEM;
        own.module = out->module, own.object = id_of(call->module_self, call->module_type);
    }
    if (!kp_map_room(&s->of, s->n, &s->cap, sizeof *s->of, 256)) return -ENOMEM;
    s->of[s->n++] = own;
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
        if (s->of[i].module >= 0) kp_json_fmt(json, "_%lu", (uint64_t)s->of[i].module);
        kp_json_char(json, ';');
    }
}
