// SPDX-License-Identifier: Apache-2.0
/*
 * applied.c - what a Python autograd function was applied to: its arguments that are no tensors
 *
 * Called by: CPython, in place of torch's `apply`; inputs.c through python_bridge.h, when that op starts (hot)
 * Owns:      one row of the method table of torch._C._FunctionBase, from then on. Per thread: the call that is open.
 * Locks:     the GIL, which torch holds while it announces such an op
 * Memory:    none
 * On fail:   the op has its tensors alone, as without this file
 * Safe in:   after fork yes: it keeps nothing
 *
 * torch announces such an op with its tensors; it adds numbers, truth values, None and containers of them only for its
 * own profiler. So `apply` is ours: it keeps the tuple of arguments until the op starts, and which of them torch would
 * show is found out as torch does. Nothing of Python runs for that. See decisions/024.
 */
#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/python/pycalls.h"
#include "preload/python_bridge.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

enum { AT_TYPE = 8, AT_COUNT = 16, AT_VALUE = 16, AT_IMAGINARY = 24, TYPE_NAME = 24 };
/* METH_CLASS | METH_VARARGS; METH_KEYWORDS, which newer ones of torch have too */
enum { OF_CLASS_WITH_TUPLE = 0x11, AND_KEYWORDS = 0x2, DEPTH_MOST = 16 };

static bool wants, is_refused;
static _Atomic bool attached;
static kp_python_call_fn torch_apply;
static const void *tensor_type;

/* The call whose op has not started yet. */
_Thread_local const void *kp_applied_arguments __attribute__((tls_model("initial-exec")));
static _Thread_local const char *applied_name __attribute__((tls_model("initial-exec")));

static void *our_apply(void *class, void *arguments, void *keywords)
{
    const char *const name = applied_name;
    const void *const outer = kp_applied_arguments;
    applied_name = kp_python_at(class, TYPE_NAME);
    kp_applied_arguments = arguments;
    void *const result = torch_apply(class, arguments, keywords);
    applied_name = name;
    kp_applied_arguments = outer;
    return result;
}

/* ---- what torch infers of an argument ---- */

static size_t count_of(const void *container) { return (size_t)kp_python_at(container, AT_COUNT); }

/* The kinds of simple values; 0: none of them. */
static enum kp_applied_kind simple_kind(const void *object)
{
    const struct kp_python_api *const api = &kp_python_api;
    if (object == api->none) return KP_APPLIED_NONE;
    if (kp_pyobject_is(object, api->bool_type)) return KP_APPLIED_BOOL;
    if (kp_pyobject_is(object, api->int_type)) return KP_APPLIED_INT;
    if (kp_pyobject_is(object, api->float_type)) return KP_APPLIED_DOUBLE;
    return kp_python_at(object, AT_TYPE) == api->complex_type ? KP_APPLIED_COMPLEX : KP_APPLIED_LEFT_OUT;
}

static uint64_t type_hash(void *object, int depth);

/* The one type of a list's items, beside None; 0: it has none. */
static uint64_t list_hash(void *list, int depth)
{
    uint64_t of_all = 0;
    for (size_t i = 0; i < count_of(list); i++) {
        const uint64_t hash = type_hash(kp_python_api.list_item(list, (intptr_t)i), depth);
        if (!hash || (of_all > KP_APPLIED_NONE && hash > KP_APPLIED_NONE && hash != of_all)) return 0;
        if (hash > of_all) of_all = hash;
    }
    return of_all ? of_all * UINT64_C(0x9e3779b97f4a7c15) | 1 << 10 : 0;
}

static uint64_t tuple_hash(void *tuple, int depth)
{
    uint64_t of_all = 1 << 11;
    for (size_t i = 0; i < count_of(tuple); i++) {
        const uint64_t hash = type_hash(kp_python_api.tuple_item(tuple, (intptr_t)i), depth);
        if (!hash) return 0;
        of_all = (of_all ^ hash) * UINT64_C(0xc2b2ae3d27d4eb4f) | 1 << 11;
    }
    return of_all;
}

/* All keys are of one type, and all values. */
static uint64_t dict_hash(void *dict, int depth)
{
    uint64_t of_keys = 0, of_values = 0;
    void *key, *value;
    for (intptr_t at = 0; kp_python_api.dict_next(dict, &at, &key, &value);) {
        const uint64_t hashes[] = {type_hash(key, depth), type_hash(value, depth)};
        if (!hashes[0] || !hashes[1] || (of_keys && (of_keys != hashes[0] || of_values != hashes[1]))) return 0;
        of_keys = hashes[0], of_values = hashes[1];
    }
    return of_keys ? (of_keys ^ of_values * 3) * UINT64_C(0xd6e8feb86659fd93) | 1 << 12 : 0;
}

/* A number that is the same for values of the same type, KP_APPLIED_NONE of None; 0: torch infers none. */
static uint64_t type_hash(void *object, int depth)
{
    const uint64_t simple = simple_kind(object);
    if (simple || ++depth > DEPTH_MOST) return simple;
    if (kp_pyobject_is(object, kp_python_api.list_type)) return list_hash(object, depth);
    if (kp_pyobject_is(object, kp_python_api.tuple_type)) return tuple_hash(object, depth);
    return kp_pyobject_is(object, kp_python_api.dict_type) ? dict_hash(object, depth) : 0;
}

/* ---- what inputs.c asks ---- */

const void *kp_applied_to(const char *op)
{
    const void *const arguments = kp_applied_arguments;
    if (!arguments || !op || strcmp(op, applied_name) != 0) return NULL;
    kp_applied_arguments = NULL; /* an op inside of this one may have its name */
    return arguments;
}

static void value_read(void *object, struct kp_applied *out)
{
    switch (out->kind) {
    case KP_APPLIED_BOOL: out->integer = object == kp_python_api.yes; break;
    case KP_APPLIED_INT:
        out->integer = kp_python_api.int_value(object);
        if (out->integer != -1) break;
        kp_python_api.forget_error(); /* too large: torch.profiler would end the program */
        break;
    case KP_APPLIED_COMPLEX: memcpy(&out->imaginary, (const uint8_t *)object + AT_IMAGINARY, 8); /* fall through */
    case KP_APPLIED_DOUBLE: memcpy(&out->real, (const uint8_t *)object + AT_VALUE, 8); break;
    default: break;
    }
}

static void describe(void *object, struct kp_applied *out)
{
    *out = (struct kp_applied){.kind = simple_kind(object)};
    value_read(object, out);
    if (out->kind || !type_hash(object, 0)) return;
    out->kind = kp_pyobject_is(object, kp_python_api.list_type) ? KP_APPLIED_LIST : KP_APPLIED_NONE;
    out->object = object;
    out->count = out->kind == KP_APPLIED_LIST ? (uint32_t)count_of(object) : 0;
}

uint32_t kp_applied_count(const void *arguments) { return (uint32_t)count_of(arguments); }

void kp_applied_get(const void *arguments, uint32_t at, struct kp_applied *out)
{
    void *const object = kp_python_api.tuple_item((void *)(uintptr_t)arguments, (intptr_t)at);
    if (kp_pyobject_is(object, tensor_type)) *out = (struct kp_applied){.kind = KP_APPLIED_TENSOR};
    else describe(object, out);
}

void kp_applied_item(const struct kp_applied *list, uint32_t at, struct kp_applied *out)
{
    void *const object = kp_python_api.list_item((void *)(uintptr_t)list->object, (intptr_t)at);
    *out = (struct kp_applied){.kind = simple_kind(object)};
    value_read(object, out);
}

/* ---- finding torch's method. With the GIL ---- */

/* The kernel writes the row once, which returns an error instead of faulting. */
static bool method_take(struct kp_python_method *method)
{
    struct kp_python_method seen;
    const kp_python_call_fn ours = our_apply;
    if (kp_io_peek(method, &seen, sizeof seen) != 0 || (seen.flags & ~AND_KEYWORDS) != OF_CLASS_WITH_TUPLE)
        return false;
    if (strcmp(seen.name, "apply") != 0) return false;
    torch_apply = kp_load_relaxed(&method->call);
    return kp_io_poke(&method->call, &ours, sizeof ours) == 0;
}

/* True: it is done, or will never be. */
static bool look(void)
{
    void *const base = kp_pymodule_member("torch._C", "_FunctionBase");              /* references are never dropped */
    void *const tensor = base ? kp_pymodule_member("torch._C", "TensorBase") : NULL; /* before torch 2.1 _TensorBase */
    void *const apply = tensor ? kp_pyobject_member(base, "apply") : NULL;
    if (!apply) return false; /* torch is still imported */
    tensor_type = tensor;
    const bool is_bound = strcmp(kp_pyobject_type(apply), "builtin_function_or_method") == 0;
    is_refused = !is_bound || !method_take(kp_python_at(apply, AT_VALUE));
    if (is_refused) kp_log(1, "torch's autograd functions cannot be asked for their arguments that are no tensors");
    return true;
}

static bool is_usable(void) { return wants && !is_refused && kp_python_api_find() && !kp_python_is_over(); }

static void look_with_gil(void)
{
    struct kp_pyaside aside;
    if (kp_load_relaxed(&attached) || is_refused || kp_python_is_over()) return;
    kp_pyaside_begin(&aside, NULL);
    if (look()) kp_store_release(&attached, true); /* pairs with: attach, wait_ready */
    kp_pyaside_end(&aside);
}

static bool attach(void)
{
    if (kp_load_acquire(&attached)) return true; /* pairs with: look_with_gil */
    if (!is_usable()) return false;
    if (kp_python_api.has_gil()) look_with_gil();
    else kp_python_attach_later(); /* on the ticker: Python's main thread attaches all sources again */
    return kp_load_relaxed(&attached);
}

/* Modules of Python that come without a library, as torch's last ones, are no news. */
static void wait_ready(uint64_t begin_ticks, uint32_t timeout_ms)
{
    (void)begin_ticks;
    if (!kp_load_acquire(&attached) && is_usable()) /* pairs with: look_with_gil */
        (void)kp_python_with_gil(look_with_gil, timeout_ms > 0);
}

static void setup(const struct kp_config *config)
{
    wants = (config->record_shapes || config->with_flops) && config->activities & KP_ACTIVITY_CPU;
}

static void forget(void) {}

const struct kp_source kp_applied_source = {
    .name = "applied",
    .setup = setup,
    .attach = attach,
    .wait_ready = wait_ready,
    .forget = forget,
};
