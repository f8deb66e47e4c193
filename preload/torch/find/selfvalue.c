// SPDX-License-Identifier: Apache-2.0
/*
 * selfvalue.c - the self-check's second half: tensors, lists and scalars in an op's inputs
 *
 * Called by: selfcheck.c. It makes three tensors and three boxed values by torch's stable C shim, reads their fields
 * and frees them. Known versions that lack these shim functions take their layout from layout.c alone. An unknown
 * version that lacks them gets no shapes.
 */
#include <string.h>

#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum { TENSOR_BYTES = 256, DTYPE_FLOAT = 6, DTYPE_LONG = 4 };

static const int64_t sizes3[] = {7, 11, 13}, strides3[] = {143, 13, 1};
static const int64_t sizes7[] = {2, 3, 5, 2, 3, 1, 2}, strides7[] = {180, 60, 12, 6, 2, 2, 1};

struct sample {
    void *handle; /* at::Tensor*: its first word is the TensorImpl */
    uint8_t at[TENSOR_BYTES];
};

static bool sample_take(const struct kp_torch_api *api, struct sample *s, int64_t ndim, const int64_t *sizes,
                        const int64_t *strides, int32_t dtype)
{
    static _Alignas(64) uint8_t storage[64]; /* the tensor keeps its address and never reads it */
    const void *impl = NULL;
    s->handle = NULL;
    if (api->from_blob(storage, ndim, sizes, strides, 0, dtype, 0, -1, &s->handle) != 0 || !s->handle) return false;
    return kp_torch_peek(s->handle, &impl, sizeof impl) && kp_torch_peek(impl, s->at, sizeof s->at);
}

static bool has_shape3(const struct sample *s, size_t at)
{
    return kp_torch_word(s->at, at) == 3 && memcmp(s->at + at + 8, sizes3, sizeof sizes3) == 0 &&
           memcmp(s->at + at + 48, strides3, sizeof strides3) == 0;
}

static bool has_shape7(const struct sample *s, size_t at)
{
    int64_t both[14];
    return kp_torch_word(s->at, at) == 7 && kp_torch_peek(kp_torch_pointer(s->at, at + 8), both, sizeof both) &&
           memcmp(both, sizes7, sizeof sizes7) == 0 && memcmp(both + 7, strides7, sizeof strides7) == 0;
}

static bool has_dtypes(const struct sample *a, const struct sample *b, size_t at)
{
    uint16_t first, second;
    memcpy(&first, a->at + at, 2);
    memcpy(&second, b->at + at, 2);
    return first == DTYPE_FLOAT && second == DTYPE_LONG;
}

static bool find_fields(struct kp_torch_layout *l, const struct sample *a, const struct sample *b,
                        const struct sample *c)
{
    uint16_t ndim = 0, dtype = 0;
    if (has_shape3(a, l->ti_ndim) && has_shape7(c, l->ti_ndim)) ndim = l->ti_ndim;
    for (uint16_t i = 8; i + 88 <= TENSOR_BYTES && !ndim; i = (uint16_t)(i + 8))
        if (has_shape3(a, i) && has_shape7(c, i)) ndim = i;
    if (!ndim) return false;
    if (has_dtypes(a, b, l->ti_dtype)) dtype = l->ti_dtype;
    for (uint16_t i = (uint16_t)(ndim + 88); i + 8 <= TENSOR_BYTES && !dtype; i = (uint16_t)(i + 2))
        if (has_dtypes(a, b, i)) dtype = i;
    if (!dtype || (a->at[dtype + 6] & 0x1c) != 0) return false;
    l->ti_ndim = ndim;
    l->ti_dtype = dtype;
    l->ti_policy = (uint16_t)(dtype + 6);
    l->ti_keys = (uint16_t)(dtype + 8);
    return true;
}

static bool is_named(const char *name, const char *wanted) { return name && strcmp(name, wanted) == 0; }

/* A DispatchKeySet has a bit for each backend, and above them a bit for each kind of tensor. Nearly every version
 * renumbers them, so torch is asked for their names. Only the kinds without strides matter here. */
static void keys_check(const struct kp_torch_api *api, struct kp_torch_layout *l)
{
    static const char *const wanted[] = {"Sparse", "SparseCsr", "SparseCsrCPU", "SparseCsrCUDA", "MkldnnCPU"};
    uint32_t backends = 0;
    uint64_t found = 0;
    if (!api->key_name || !api->backend_name || !is_named(api->backend_name(1), "CPUBit")) return;
    while (backends < 32 && !is_named(api->backend_name((uint8_t)(backends + 1)), "UNKNOWN_BACKEND_BIT")) backends++;
    if (!is_named(api->key_name(1), "Dense") || backends == 32) return;
    for (uint16_t key = 2; key < 48 && backends + key <= 64; key++)
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (is_named(api->key_name(key), wanted[i])) found |= UINT64_C(1) << (backends + key - 1);
    if (__builtin_popcountll(found) >= 2) l->unstrided = found;
}

static void check_tensors(const struct kp_torch_api *api, struct kp_torch_layout *l)
{
    struct sample a, b, c;
    bool right = sample_take(api, &a, 3, sizes3, strides3, DTYPE_FLOAT);
    right = sample_take(api, &b, 3, sizes3, strides3, DTYPE_LONG) && right;
    right = sample_take(api, &c, 7, sizes7, strides7, DTYPE_FLOAT) && right;
    if (!right || !find_fields(l, &a, &b, &c)) l->dropped |= KP_TORCH_NO_TENSORS;
    if (a.handle) api->drop_tensor(a.handle);
    if (b.handle) api->drop_tensor(b.handle);
    if (c.handle) api->drop_tensor(c.handle);
}

struct boxed {
    union {
        uint64_t word;
        const uint8_t *object;
    } payload;
    uint32_t tag, pad;
};

/* Reads the tag of Int, and requires 5. */
static bool check_int(const struct kp_torch_api *api, struct kp_torch_layout *l)
{
    void *handle = NULL;
    struct boxed v;
    const int64_t value = 0x7766554433221100;
    if (api->from_int(value, &handle) != 0 || !handle) return false;
    bool right = kp_torch_peek(handle, &v, sizeof v) && v.payload.word == (uint64_t)value && v.tag < 200;
    if (right) l->tag_int = (uint8_t)v.tag;
    api->drop_value(handle);
    return right && l->tag_int == 5; /* behind None, Tensor, Storage, Double and Complex */
}

/* Offset in the object of the pointer to the text: `expected` if it points there, else the first that does, else 0. */
static uint16_t find_text(const uint8_t *object, uint16_t expected, const char *text, size_t bytes)
{
    char seen[80];
    const char *chars = NULL;
    for (uint16_t i = 0; i <= 64; i = (uint16_t)(i + 8)) {
        const uint16_t at = i ? i : expected;
        if (kp_torch_peek(object + at, &chars, sizeof chars) && kp_torch_peek(chars, seen, bytes) &&
            memcmp(seen, text, bytes) == 0)
            return at;
    }
    return 0;
}

static bool check_text(const struct kp_torch_api *api, struct kp_torch_layout *l)
{
    static const char text[] = "kprof self-check, a text that does not fit a small buffer";
    void *handle = NULL;
    struct boxed v;
    uint16_t at = 0;
    if (api->from_text(text, &handle) != 0 || !handle) return false;
    if (kp_torch_peek(handle, &v, sizeof v) && v.tag > l->tag_int && v.tag < 200)
        at = find_text(v.payload.object, l->string_text, text, sizeof text);
    api->drop_value(handle);
    if (!at) return false;
    l->string_text = at;
    int moved = (int)v.tag - l->tag_string;
    l->tag_string = (uint8_t)v.tag;
    l->tag_bool = (uint8_t)(l->tag_bool + moved);
    if (moved) l->tag_symint = l->tag_symfloat = l->tag_symbool = 0xff; /* they lie between Int and String: unknown */
    return true;
}

static bool check_list(const struct kp_torch_api *api, struct kp_torch_layout *l)
{
    const char *texts[] = {"kprof", "self-check"};
    void *handle = NULL;
    struct boxed v;
    uint8_t list[64];
    const void *type = api->string_type ? api->string_type() : NULL;
    if (!type || api->from_texts(texts, 2, &handle) != 0 || !handle) return false;
    bool right = kp_torch_peek(handle, &v, sizeof v) && v.tag > l->tag_int && v.tag < 200 &&
                 kp_torch_peek(v.payload.object, list, sizeof list);
    uint16_t items = 0, typed = 0;
    for (uint16_t i = 8; right && i + 16u <= sizeof list; i = (uint16_t)(i + 8)) {
        if (!items && kp_torch_word(list, i + 8u) - kp_torch_word(list, i) == 32) items = i;
        if (!typed && kp_torch_pointer(list, i) == type) typed = i;
    }
    api->drop_value(handle);
    if (!items || !typed) return false;
    l->tag_list = (uint8_t)v.tag;
    l->list_items = items;
    l->list_type = typed;
    return true;
}

void kp_torch_selfcheck_values(const struct kp_torch_api *api, struct kp_torch_layout *l)
{
    bool known = kp_torch_is_known(l->version);
    if (api->from_blob && api->drop_tensor) check_tensors(api, l);
    else if (!known) l->dropped |= KP_TORCH_NO_TENSORS;
    if (!(l->dropped & KP_TORCH_NO_TENSORS)) keys_check(api, l);
    if (!l->undefined_tensor) l->dropped |= KP_TORCH_NO_TENSORS;
    if (!l->tensor_type) l->dropped |= KP_TORCH_NO_LISTS;
    if (api->from_int && api->from_text && api->from_texts && api->drop_value) {
        if (!check_int(api, l) || !check_text(api, l)) l->dropped |= KP_TORCH_NO_SCALARS;
        if (!check_list(api, l)) l->dropped |= KP_TORCH_NO_LISTS;
    } else if (!known) {
        l->dropped |= KP_TORCH_NO_SCALARS | KP_TORCH_NO_LISTS;
    }
}
