// SPDX-License-Identifier: Apache-2.0
/*
 * inputs.c - copies what torch.profiler shows of an op's inputs: shapes, strides, types, small values
 *
 * Called by: ops.c when an op starts (hot, inside a hook); the inputs are gone or changed later
 * Memory:    none; writes straight into the record. Holds no reference, calls nothing of torch's.
 * On fail:   inputs that would pass KP_MAX_RECORD are counted as lost; the op itself is kept.
 *
 * What counts as what (a list of tensors, of scalars, "something else"), and which lists are too long to be
 * kept, follows what torch.profiler prints; the form is kp_inputs.h's.
 */
#include <string.h>

#include "collector/format/kp_inputs.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum { INLINE_DIMS = 5, IVALUE_BYTES = 16 };
enum { POLICY_MASK = 0x0c, POLICY_STRIDES = 0x04, SYMBOLIC = 0x10 }; /* sizes_strides_policy_, has_symbolic_... */

struct cursor {
    uint8_t *at, *end;
    const struct kp_torch_layout *l;
};

static inline bool has_room(struct cursor *c, size_t bytes)
{
    if (__builtin_expect((size_t)(c->end - c->at) >= bytes, 1)) return true;
    c->at = c->end + 1; /* nothing fits any more, not even a smaller entry */
    c->end = c->at;
    return false;
}

static inline uint32_t tag_of(const uint8_t *value)
{
    uint32_t tag;
    memcpy(&tag, value + 8, sizeof tag);
    return tag;
}

/* Undefined, nested, symbolic or sized by Python: torch.profiler shows nothing (or we must not look). */
static inline bool is_opaque(const struct kp_torch_layout *l, const uint8_t *tensor)
{
    if (!tensor || tensor == l->undefined_tensor) return true;
    uint8_t policy = tensor[l->ti_policy];
    return (policy & SYMBOLIC) || (policy & POLICY_MASK) > POLICY_STRIDES || kp_torch_word(tensor, l->ti_ndim) > 255;
}

static inline void put_none(struct cursor *c)
{
    if (has_room(c, 1)) *c->at++ = KP_IN_NONE;
}

static inline void put_tensor(struct cursor *c, const uint8_t *tensor)
{
    const struct kp_torch_layout *l = c->l;
    if (is_opaque(l, tensor)) {
        put_none(c);
        return;
    }
    size_t ndim = kp_torch_word(tensor, l->ti_ndim);
    const uint8_t *sizes = tensor + l->ti_ndim + 8;
    const uint8_t *strides = sizes + 8 * INLINE_DIMS;
    if (ndim > INLINE_DIMS) {
        sizes = kp_torch_pointer(tensor, l->ti_ndim + 8u);
        strides = sizes + 8 * ndim;
    }
    if (!has_room(c, 4 + 16 * ndim)) return;
    bool strided = !(tensor[l->ti_policy] & POLICY_MASK) || !(kp_torch_word(tensor, l->ti_keys) & l->unstrided);
    *c->at++ = KP_IN_TENSOR;
    *c->at++ = tensor[l->ti_dtype];
    *c->at++ = strided ? 0 : KP_IN_TENSOR_NO_STRIDES;
    *c->at++ = (uint8_t)ndim;
    for (size_t i = 0; i < ndim; i++, c->at += 8) memcpy(c->at, sizes + 8 * i, 8);
    if (!strided) return;
    for (size_t i = 0; i < ndim; i++, c->at += 8) memcpy(c->at, strides + 8 * i, 8);
}

static inline void put_word(struct cursor *c, uint8_t tag, const uint8_t *value, size_t bytes)
{
    if (!has_room(c, 1 + 16)) return;
    *c->at++ = tag;
    memcpy(c->at, value, 8);
    c->at += bytes;
}

/* False: not a scalar as torch.profiler counts them. */
static inline bool put_scalar(struct cursor *c, const uint8_t *value, uint32_t tag)
{
    const struct kp_torch_layout *l = c->l;
    if (l->dropped & KP_TORCH_NO_SCALARS) return false;
    if (tag == l->tag_int) {
        put_word(c, KP_IN_INT, value, 8);
    } else if (tag == l->tag_bool) {
        put_word(c, KP_IN_BOOL, value, 1);
    } else if (tag == l->tag_double) {
        put_word(c, KP_IN_DOUBLE, value, 8);
    } else if (tag == l->tag_complex) { /* a counted object that holds the two doubles */
        const uint8_t *holder = kp_torch_pointer(value, 0);
        if (!has_room(c, 17)) return true;
        *c->at++ = KP_IN_COMPLEX;
        memcpy(c->at, holder + ((l->list_items + 15u) & ~15u), 16);
        c->at += 16;
    } else if (tag == l->tag_symint || tag == l->tag_symfloat || tag == l->tag_symbool) {
        if (has_room(c, 1)) *c->at++ = KP_IN_SYMBOL;
    } else {
        return false;
    }
    return true;
}

static void put_count(struct cursor *c, uint8_t tag, size_t count)
{
    uint16_t shown = count > UINT16_MAX ? UINT16_MAX : (uint16_t)count;
    if (!has_room(c, 3)) return;
    *c->at++ = tag;
    memcpy(c->at, &shown, 2);
    c->at += 2;
}

static void put_tensor_list(struct cursor *c, const uint8_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++) { /* one that cannot be shown hides the whole list */
        const uint8_t *item = items + i * IVALUE_BYTES;
        if (tag_of(item) == c->l->tag_tensor && !is_opaque(c->l, kp_torch_pointer(item, 0))) continue;
        put_none(c);
        return;
    }
    put_count(c, KP_IN_TENSOR_LIST, count);
    if (count > KP_IN_LIST_MAX) return;
    for (size_t i = 0; i < count; i++) put_tensor(c, kp_torch_pointer(items + i * IVALUE_BYTES, 0));
}

static void put_scalar_list(struct cursor *c, const uint8_t *items, size_t count)
{
    uint8_t *begin = c->at;
    put_count(c, KP_IN_SCALAR_LIST, count);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *item = items + i * IVALUE_BYTES;
        uint32_t tag = tag_of(item);
        if (put_scalar(c, item, tag)) continue;
        if (i == 0 || tag != 0) { /* a list of something else */
            c->at = begin;
            put_none(c);
            return;
        }
        put_none(c);
    }
}

static void put_list(struct cursor *c, const uint8_t *value)
{
    const struct kp_torch_layout *l = c->l;
    const uint8_t *list = kp_torch_pointer(value, 0);
    const uint8_t *items = kp_torch_pointer(list, l->list_items);
    const uint8_t *items_end = kp_torch_pointer(list, l->list_items + 8u);
    size_t count = (size_t)(items_end - items) / IVALUE_BYTES;
    if (kp_torch_pointer(list, l->list_type) == l->tensor_type) {
        if (l->dropped & KP_TORCH_NO_TENSORS)
            put_none(c);
        else
            put_tensor_list(c, items, count);
    } else if (count > KP_IN_LIST_MAX) {
        put_none(c);
    } else {
        put_scalar_list(c, items, count);
    }
}

uint8_t *kp_torch_inputs_encode(const struct kp_torch_layout *layout, const uint8_t *rf, uint8_t *at, uint8_t *end,
                                uint32_t *count)
{
    struct cursor c = {at, end, layout};
    const uint8_t *values = kp_torch_pointer(rf, layout->rf_inputs);
    size_t n = kp_torch_word(rf, layout->rf_inputs + 8u);
    *count = (uint32_t)n;
    for (size_t i = 0; i < n; i++, values += IVALUE_BYTES) {
        uint32_t tag = tag_of(values);
        if (tag == layout->tag_tensor && !(layout->dropped & KP_TORCH_NO_TENSORS))
            put_tensor(&c, kp_torch_pointer(values, 0));
        else if (tag == layout->tag_list && !(layout->dropped & KP_TORCH_NO_LISTS))
            put_list(&c, values);
        else if (!put_scalar(&c, values, tag))
            put_none(&c);
    }
    return c.at <= end ? c.at : NULL;
}

uint32_t kp_torch_inputs_put(struct kp_thread *t, uint64_t gate, const uint8_t *rf, uint8_t **rec, uint32_t head_bytes)
{
    uint32_t count = 0, data = head_bytes + 4;
    uint8_t *stop = NULL;
    for (bool whole = false; *rec && !stop && !whole;) {
        size_t room = (size_t)(t->end - *rec);
        whole = room >= KP_MAX_RECORD;
        if (whole) room = KP_MAX_RECORD;
        stop = kp_torch_inputs_encode(&kp_torch.layout, rf, *rec + data, *rec + room - 8, &count);
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
