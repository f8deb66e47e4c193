// SPDX-License-Identifier: Apache-2.0
/*
 * inputs.c - copies what torch.profiler shows of an op's inputs: shapes, strides, types, small values
 *
 * Called by: ops.c when an op starts (hot, inside a hook), because the inputs may change or go later
 * Memory:    none; writes straight into the record. Holds no reference and calls no function of torch.
 * On fail:   inputs that would pass KP_MAX_RECORD are counted as lost; the op itself is kept.
 *
 * Inputs are sorted into kinds (list of tensors, of scalars, "something else") and cut in length as torch.profiler
 * does. kp_inputs.h has the format.
 */
#include <string.h>

#include "collector/format/kp_inputs.h"
#include "preload/python_bridge.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum { INLINE_DIMS = 5, IVALUE_BYTES = 16, SHOWS_ARGUMENTS = 204 /* the torch from which on its profiler does */ };
enum { POLICY_MASK = 0x0c, POLICY_STRIDES = 0x04, SYMBOLIC = 0x10 }; /* sizes_strides_policy_, has_symbolic_... */

/*
 * Each put_ function writes at `at` and returns the address behind. It returns NULL if that would pass `end`, or if
 * `at` is NULL already. Addresses pass by value: else the compiler would reload them after each byte stored.
 */
struct target {
    const struct kp_torch_layout *l;
    const uint8_t *end;
};

static inline bool has_room(const struct target *t, const uint8_t *at, size_t bytes)
{
    return __builtin_expect(at != NULL && (size_t)(t->end - at) >= bytes, 1);
}

static inline uint32_t tag_of(const uint8_t *value)
{
    uint32_t tag;
    memcpy(&tag, value + 8, sizeof tag);
    return tag;
}

/* Undefined, nested, symbolic or sized by Python: torch.profiler shows no shape, or the fields do not hold it. */
static inline bool is_opaque(const struct kp_torch_layout *l, const uint8_t *tensor)
{
    if (!tensor || tensor == l->undefined_tensor) return true;
    uint8_t policy = tensor[l->ti_policy];
    return (policy & SYMBOLIC) || (policy & POLICY_MASK) > POLICY_STRIDES || kp_torch_word(tensor, l->ti_ndim) > 255;
}

static inline uint8_t *put_byte(const struct target *t, uint8_t *at, uint8_t tag)
{
    if (!has_room(t, at, 1)) return NULL;
    *at = tag;
    return at + 1;
}

/* Writes n words of 8 bytes; `narrow`: as 4 bytes each. */
static inline uint8_t *put_words(uint8_t *at, const uint8_t *words, size_t n, bool narrow)
{
    if (!narrow) {
        memcpy(at, words, 8 * n);
        return at + 8 * n;
    }
    for (size_t i = 0; i < n; i++) memcpy(at + 4 * i, words + 8 * i, 4);
    return at + 4 * n;
}

static inline bool all_narrow(const uint8_t *words, size_t n)
{
    uint64_t any = 0;
    for (size_t i = 0; i < n; i++) any |= kp_torch_word(words, 8 * i);
    return any >> 32 == 0;
}

static inline uint8_t *put_tensor(const struct target *t, uint8_t *at, const uint8_t *tensor)
{
    const struct kp_torch_layout *l = t->l;
    if (is_opaque(l, tensor)) return put_byte(t, at, KP_IN_NONE);
    size_t ndim = kp_torch_word(tensor, l->ti_ndim);
    const uint8_t *sizes = tensor + l->ti_ndim + 8;
    const uint8_t *strides = sizes + 8 * INLINE_DIMS;
    if (ndim > INLINE_DIMS) {
        sizes = kp_torch_pointer(tensor, l->ti_ndim + 8u);
        strides = sizes + 8 * ndim;
    }
    if (!has_room(t, at, 4 + 16 * ndim)) return NULL;
    bool strided = !(tensor[l->ti_policy] & POLICY_MASK) || !(kp_torch_word(tensor, l->ti_keys) & l->unstrided);
    bool narrow = all_narrow(sizes, ndim) && (!strided || all_narrow(strides, ndim));
    uint32_t flags = (strided ? 0 : KP_IN_TENSOR_NO_STRIDES) | (narrow ? KP_IN_TENSOR_NARROW : 0);
    uint32_t head = KP_IN_TENSOR | (uint32_t)tensor[l->ti_dtype] << 8 | flags << 16 | (uint32_t)ndim << 24;
    memcpy(at, &head, sizeof head);
    at = put_words(at + sizeof head, sizes, ndim, narrow);
    return strided ? put_words(at, strides, ndim, narrow) : at;
}

static inline uint8_t *put_value(const struct target *t, uint8_t *at, uint8_t tag, const uint8_t *value, size_t bytes)
{
    if (!has_room(t, at, 1 + 16)) return NULL;
    *at = tag;
    memcpy(at + 1, value, bytes > 8 ? 16 : 8);
    return at + 1 + bytes;
}

enum scalar { NO_SCALAR, SCALAR_INT, SCALAR_BOOL, SCALAR_DOUBLE, SCALAR_COMPLEX, SCALAR_SYMBOL };

/* The kinds of scalar are those of torch.profiler. */
static inline enum scalar scalar_of(const struct kp_torch_layout *l, uint32_t tag)
{
    if (l->dropped & KP_TORCH_NO_SCALARS) return NO_SCALAR;
    if (tag == l->tag_int) return SCALAR_INT;
    if (tag == l->tag_bool) return SCALAR_BOOL;
    if (tag == l->tag_double) return SCALAR_DOUBLE;
    if (tag == l->tag_complex) return SCALAR_COMPLEX;
    return tag == l->tag_symint || tag == l->tag_symfloat || tag == l->tag_symbool ? SCALAR_SYMBOL : NO_SCALAR;
}

static inline uint8_t *put_scalar(const struct target *t, uint8_t *at, const uint8_t *value, enum scalar what)
{
    switch (what) {
    case SCALAR_INT: return put_value(t, at, KP_IN_INT, value, 8);
    case SCALAR_BOOL: return put_value(t, at, KP_IN_BOOL, value, 1);
    case SCALAR_DOUBLE: return put_value(t, at, KP_IN_DOUBLE, value, 8);
    case SCALAR_COMPLEX: /* a reference-counted object that holds the two doubles */
        return put_value(t, at, KP_IN_COMPLEX,
                         (const uint8_t *)kp_torch_pointer(value, 0) + ((t->l->list_items + 15u) & ~15u), 16);
    case SCALAR_SYMBOL: return put_byte(t, at, KP_IN_SYMBOL);
    default: return put_byte(t, at, KP_IN_NONE);
    }
}

static uint8_t *put_count(const struct target *t, uint8_t *at, uint8_t tag, size_t count)
{
    uint16_t shown = count > UINT16_MAX ? UINT16_MAX : (uint16_t)count;
    if (!has_room(t, at, 3)) return NULL;
    *at = tag;
    memcpy(at + 1, &shown, 2);
    return at + 3;
}

static uint8_t *put_tensor_list(const struct target *t, uint8_t *at, const uint8_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++) { /* a tensor that cannot be shown hides the whole list */
        const uint8_t *item = items + i * IVALUE_BYTES;
        if (tag_of(item) != t->l->tag_tensor || is_opaque(t->l, kp_torch_pointer(item, 0)))
            return put_byte(t, at, KP_IN_NONE);
    }
    at = put_count(t, at, KP_IN_TENSOR_LIST, count);
    if (count > KP_IN_LIST_MAX) return at;
    for (size_t i = 0; i < count; i++) at = put_tensor(t, at, kp_torch_pointer(items + i * IVALUE_BYTES, 0));
    return at;
}

static uint8_t *put_scalar_list(const struct target *t, uint8_t *at, const uint8_t *items, size_t count)
{
    uint8_t *begin = at;
    at = put_count(t, at, KP_IN_SCALAR_LIST, count);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *item = items + i * IVALUE_BYTES;
        uint32_t tag = tag_of(item);
        enum scalar what = scalar_of(t->l, tag);
        if (!what && (i == 0 || tag != 0)) return put_byte(t, begin, KP_IN_NONE); /* no list of scalars */
        at = put_scalar(t, at, item, what);
    }
    return at;
}

static KP_HOT __attribute__((noinline)) uint8_t *put_list(const struct target *t, uint8_t *at, const uint8_t *value)
{
    const struct kp_torch_layout *l = t->l;
    const uint8_t *list = kp_torch_pointer(value, 0);
    const uint8_t *items = kp_torch_pointer(list, l->list_items);
    const uint8_t *items_end = kp_torch_pointer(list, l->list_items + 8u);
    size_t count = (size_t)(items_end - items) / IVALUE_BYTES;
    if (kp_torch_pointer(list, l->list_type) == l->tensor_type)
        return l->dropped & KP_TORCH_NO_TENSORS ? put_byte(t, at, KP_IN_NONE) : put_tensor_list(t, at, items, count);
    return count > KP_IN_LIST_MAX ? put_byte(t, at, KP_IN_NONE) : put_scalar_list(t, at, items, count);
}

/* ---- what a Python autograd function was applied to ---- */

static uint8_t *put_applied(const struct target *t, uint8_t *at, const struct kp_applied *v)
{
    const double pair[] = {v->real, v->imaginary};
    const uint64_t words[2] = {(uint64_t)v->integer};
    switch (v->kind) {
    case KP_APPLIED_BOOL: return put_value(t, at, KP_IN_BOOL, (const uint8_t *)words, 1);
    case KP_APPLIED_INT: return put_value(t, at, KP_IN_INT, (const uint8_t *)words, 8);
    case KP_APPLIED_DOUBLE: return put_value(t, at, KP_IN_DOUBLE, (const uint8_t *)pair, 8);
    case KP_APPLIED_COMPLEX: return put_value(t, at, KP_IN_COMPLEX, (const uint8_t *)pair, 16);
    default: return put_byte(t, at, KP_IN_NONE);
    }
}

/* As put_scalar_list: what begins with a scalar, and has scalars and None alone. */
static uint8_t *put_applied_list(const struct target *t, uint8_t *at, const struct kp_applied *list)
{
    uint8_t *const begin = at;
    if (list->count > KP_IN_LIST_MAX) return put_byte(t, at, KP_IN_NONE);
    at = put_count(t, at, KP_IN_SCALAR_LIST, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        struct kp_applied item;
        kp_applied_item(list, i, &item);
        if (item.kind == KP_APPLIED_LEFT_OUT || (i == 0 && item.kind == KP_APPLIED_NONE))
            return put_byte(t, begin, KP_IN_NONE);
        at = put_applied(t, at, &item);
    }
    return at;
}

/* torch announced the tensors alone, in the order of the call. Returns NULL too if they are not those. */
static KP_COLD uint8_t *put_call(const struct target *t, uint8_t *at, const uint8_t *values, size_t tensors,
                                 const void *arguments, uint32_t *count)
{
    size_t used = 0;
    *count = 0;
    for (uint32_t i = 0; i < kp_applied_count(arguments); i++) {
        struct kp_applied v;
        kp_applied_get(arguments, i, &v);
        if (v.kind == KP_APPLIED_LEFT_OUT) continue;
        ++*count;
        if (v.kind == KP_APPLIED_LIST) at = put_applied_list(t, at, &v);
        else if (v.kind != KP_APPLIED_TENSOR) at = put_applied(t, at, &v);
        else if (used++ < tensors) at = put_tensor(t, at, kp_torch_pointer(values + (used - 1) * IVALUE_BYTES, 0));
    }
    if (used != tensors) *count = UINT32_MAX;
    return at;
}

uint8_t *kp_torch_inputs_encode(const struct kp_torch_layout *layout, const uint8_t *rf, const void *arguments,
                                uint8_t *at, uint8_t *end, uint32_t *count)
{
    const struct target t = {layout, end};
    const uint8_t *values = kp_torch_pointer(rf, layout->rf_inputs);
    size_t n = kp_torch_word(rf, layout->rf_inputs + 8u);
    /* UINT32_MAX matches no tag: the self-check could not prove the kind. */
    uint32_t tensor = layout->dropped & KP_TORCH_NO_TENSORS ? UINT32_MAX : layout->tag_tensor;
    uint32_t list = layout->dropped & KP_TORCH_NO_LISTS ? UINT32_MAX : layout->tag_list;
    uint8_t *const called =
        KP_UNLIKELY(arguments) && tensor != UINT32_MAX ? put_call(&t, at, values, n, arguments, count) : NULL;
    if (KP_UNLIKELY(called) && *count != UINT32_MAX) return called;
    *count = (uint32_t)n;
    for (size_t i = 0; i < n; i++, values += IVALUE_BYTES) {
        uint32_t tag = tag_of(values);
        if (tag == tensor) at = put_tensor(&t, at, kp_torch_pointer(values, 0));
        else if (tag == list) at = put_list(&t, at, values);
        else at = put_scalar(&t, at, values, scalar_of(layout, tag));
    }
    return at;
}

uint32_t kp_torch_inputs_put(struct kp_thread *t, uint64_t gate, const uint8_t *rf, uint8_t **rec, uint32_t head_bytes)
{
    uint32_t count = 0, data = head_bytes + 4;
    uint8_t *stop = NULL;
    const bool is_applied = KP_UNLIKELY(kp_applied_arguments != NULL) && kp_torch.layout.version >= SHOWS_ARGUMENTS;
    const void *const arguments = is_applied ? kp_applied_to(kp_torch.api.name(rf)) : NULL;
    for (bool whole = false; *rec && !stop && !whole;) {
        size_t room = (size_t)(t->end - *rec);
        whole = room >= KP_MAX_RECORD;
        if (whole) room = KP_MAX_RECORD;
        stop = kp_torch_inputs_encode(&kp_torch.layout, rf, arguments, *rec + data, *rec + room - 8, &count);
        if (!stop && !whole) *rec = kp_put_reserve(t, gate, KP_MAX_RECORD, KP_KIND_OP); /* this chunk is too short */
    }
    if (!*rec) return 0;
    if (!stop) {
        kp_loss_count(KP_KIND_OP, KP_LOSS_TOO_BIG);
        return 0;
    }
    memcpy(*rec + head_bytes, &count, sizeof count);
    return ((uint32_t)(stop - *rec) + 7) & ~7u;
}
