// SPDX-License-Identifier: Apache-2.0
/*
 * stepfind.c - finds the Python functions whose calls count steps or are phases, in modules that are loaded
 *
 * Called by: stepcalls.c when a module was loaded; stepeval.c while __main__ runs
 * Owns:      which globs have found a function
 * Locks:     the GIL, which the caller holds
 * Memory:    objects of CPython, dropped before it returns
 *
 * Names are read from the dicts of modules and classes, so no code of the program runs. Both of a function that wraps
 * another (functools.wraps) are hooked: only the outer one of a thread's calls counts.
 */
#include "preload/python/steps/stepcalls.h"

#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/text/kp_glob.h"
#include "collector/base/kp_log.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { NAME_BYTES = 512, CLASSES_DEEP = 4, WRAPPED_DEEP = 8, GLOBS_MAX = 40, NEAR_BEST = 4 };

/* The names that are looked for, and in which modules. */
struct code_search {
    const char *glob, *name;          /* of the qualified name; of the module */
    const struct kp_phasecall *phase; /* NULL: its calls count steps */
    bool is_exact, has_found;
};

static bool found[GLOBS_MAX];
static bool has_plain;
static const void *last_code; /* only compared */

bool kp_stepfind_is_code(const void *code) { return code && code == last_code; }

static void phase_hook(struct code_search *s, void *function, const char *name)
{
    if (!kp_phasecalls_hook(s->phase, function)) return;
    if (!s->has_found) kp_log(1, "calls of %s:%s tell phases or steps", s->name, name);
    s->has_found = true;
}

static void hook_with_wrapped(struct code_search *s, void *function, const char *name)
{
    void *held = NULL;
    if (s->phase) {
        phase_hook(s, function, name);
        return;
    }
    for (unsigned i = 0; function && i < WRAPPED_DEEP && kp_stephook_is_function(function); i++) {
        void *code = kp_pyobject_member(function, "__code__");
        if (kp_stephook_count(function)) {
            if (!s->has_found) kp_log(1, "calls of %s:%s count as steps", s->name, name);
            s->has_found = true;
            last_code = code;
        }
        void *next = kp_pyobject_member(function, "__wrapped__");
        KP_PYTHON_DROP(code, held);
        function = held = next;
    }
    KP_PYTHON_DROP(held);
}

static void visit(struct code_search *s, void *space, const char *prefix, unsigned deep);

static bool is_worth_descending(const struct code_search *s, void *class, const char *name)
{
    const size_t n = strlen(name);
    if (s->is_exact) return strncmp(s->glob, name, n) == 0 && s->glob[n] == '.';
    void *home = kp_pyobject_member(class, "__module__");
    const char *text = kp_pyobject_text(home);
    const bool is_here = text && strcmp(text, s->name) == 0;
    KP_PYTHON_DROP(home);
    return is_here;
}

static unsigned nearest = NEAR_BEST; /* letters of the nearest so far; under the GIL */

/* Some function of some module is always near a glob of modules. */
static bool is_module_named(void)
{
    const char *const glob = kp_steps_call_glob(0);
    return glob && glob[strcspn(glob, "*?:")] == ':';
}

static bool is_near(const struct code_search *s, const char *name, unsigned *letters)
{
    *letters = nearest;
    return !s->phase && s->is_exact && kp_steps_is_call_rule() && is_module_named() &&
           kp_config_is_nearer(s->glob, name, letters);
}

static void near_keep(const struct code_search *s, const char *name, unsigned letters)
{
    nearest = letters;
    kp_steps_near_set(s->name, name);
}

/* For a class whose name is misspelt. Others are not asked for the member: a metaclass may run code of the host. */
static void class_near(const struct code_search *s, void *class, const char *name)
{
    char text[NAME_BYTES];
    unsigned letters;
    const char *const member = strchr(s->glob, '.');
    if (!member || strchr(member + 1, '.') || strlen(name) + strlen(member) >= sizeof text) return;
    kp_fmt(text, sizeof text, "%s%s", name, member);
    if (!is_near(s, text, &letters)) return;
    void *const function = kp_pyobject_member(class, member + 1);
    if (!function) return;
    near_keep(s, text, letters);
    kp_python_api.drop(function);
}

static void class_visit(struct code_search *s, void *class, const char *name, unsigned deep)
{
    if (deep >= CLASSES_DEEP) return;
    if (!is_worth_descending(s, class, name)) {
        class_near(s, class, name);
        return;
    }
    void *space = kp_pyobject_member(class, "__dict__");
    if (!space) return;
    visit(s, space, name, deep + 1);
    kp_python_api.drop(space);
}

/* staticmethod, classmethod and bound methods hold a function. */
static bool holds_function(const void *object)
{
    const void *type = kp_python_at(object, 8);
    return type == kp_python_api.static_type || type == kp_python_api.class_method_type ||
           type == kp_python_api.method_type;
}

static void member_visit(struct code_search *s, const char *name, void *value, unsigned deep)
{
    if (kp_pyobject_is(value, kp_python_api.type_type)) {
        class_visit(s, value, name, deep);
        return;
    }
    if (!kp_glob_matches(s->glob, strlen(s->glob), name)) {
        unsigned letters;
        const bool is_function = kp_stephook_is_function(value) || holds_function(value);
        if (is_function && is_near(s, name, &letters)) near_keep(s, name, letters);
        return;
    }
    if (kp_stephook_is_function(value)) {
        hook_with_wrapped(s, value, name);
    } else if (holds_function(value)) {
        void *function = kp_pyobject_member(value, "__func__");
        if (function && kp_stephook_is_function(function)) hook_with_wrapped(s, function, name);
        KP_PYTHON_DROP(function);
    }
}

/* The members of a module or class. A list of them is made first, as the dict may change. */
static void visit(struct code_search *s, void *space, const char *prefix, unsigned deep)
{
    char name[NAME_BYTES];
    void *items = kp_python_api.items(space);
    if (!items) kp_python_api.forget_error();
    for (intptr_t i = 0, n = items ? kp_python_api.list_count(items) : 0; i < n; i++) {
        void *pair = kp_python_api.list_item(items, i), *value = kp_python_api.tuple_item(pair, 1);
        const char *text = kp_pyobject_text(kp_python_api.tuple_item(pair, 0));
        if (!text || strlen(prefix) + strlen(text) + 2 > sizeof name) continue;
        kp_fmt(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", text);
        member_visit(s, name, value, deep);
    }
    KP_PYTHON_DROP(items);
}

static bool module_visit(const char *name, const char *glob, const struct kp_phasecall *phase)
{
    struct code_search s = {.glob = glob, .name = name, .phase = phase, .is_exact = !strpbrk(glob, "*?")};
    void *space = kp_pymodule_dict(name);
    if (space) visit(&s, space, "", 0);
    return s.has_found;
}

static size_t module_bytes(const char *glob) { return (size_t)(strchr(glob, ':') - glob); }

/* The functions to look for: those that count steps, then those of phases. NULL: no more. */
static const char *glob_at(unsigned i, const struct kp_phasecall **phase)
{
    const unsigned models = kp_modulecalls_rows();
    unsigned steps = 0;
    while (steps < i && kp_steps_call_glob(steps)) steps++;
    *phase = NULL;
    const char *glob = kp_steps_call_glob(i);
    if (glob) return glob;
    *phase = i - steps < models ? kp_modulecalls_row(i - steps) : kp_phasecalls_row(i - steps - models);
    return *phase ? (*phase)->glob : NULL;
}

/* An exact module name is looked up until it was found, since some loads are not seen (decisions/053). */
static bool glob_look(unsigned i, const char *glob, const struct kp_phasecall *phase, const char *loaded)
{
    char name[NAME_BYTES];
    const size_t n = module_bytes(glob);
    if (kp_glob_matches(glob, n, loaded)) return module_visit(loaded, glob + n + 1, phase);
    if (found[i] || n >= sizeof name) return false;
    memcpy(name, glob, n);
    name[n] = 0;
    return !strpbrk(name, "*?") && module_visit(name, glob + n + 1, phase);
}

/* All modules: for a glob of modules, once. */
static bool all_look(unsigned i, const char *glob, const struct kp_phasecall *phase)
{
    bool is_found = false;
    void *modules = kp_python_api.sys_get("modules"), *items = modules ? kp_python_api.items(modules) : NULL;
    for (intptr_t at = 0, n = items ? kp_python_api.list_count(items) : 0; at < n; at++) {
        const char *text = kp_pyobject_text(kp_python_api.tuple_item(kp_python_api.list_item(items, at), 0));
        if (text && kp_glob_matches(glob, module_bytes(glob), text)) is_found |= glob_look(i, glob, phase, text);
    }
    KP_PYTHON_DROP(items);
    return is_found;
}

bool kp_stepfind_look(const char *loaded)
{
    struct kp_pyaside aside;
    const struct kp_phasecall *phase;
    const char *glob;
    bool is_found = false;
    kp_pyaside_begin(&aside, NULL);
    for (unsigned i = 0; i < GLOBS_MAX && (glob = glob_at(i, &phase)); i++) {
        if (!(*loaded ? glob_look(i, glob, phase, loaded) : all_look(i, glob, phase))) continue;
        has_plain |= !phase && kp_steps_call_is_plain(i);
        found[i] = is_found = true;
    }
    kp_pyaside_end(&aside);
    return is_found;
}

bool kp_stepfind_has_plain(void) { return has_plain; }

bool kp_stepfind_names_main(void)
{
    const char *glob = kp_steps_call_glob(0);
    return glob && kp_glob_matches(glob, module_bytes(glob), "__main__");
}
