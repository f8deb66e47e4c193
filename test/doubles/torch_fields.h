// SPDX-License-Identifier: Apache-2.0
/* torch_fields.h - a torch of our own for unit tests: the same functions, its fields wherever a test wants them */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "preload/torch/torch.h"

/* Where this torch keeps its fields, and what is wrong with it. */
static struct {
    struct kp_torch_layout at;
    bool lies_about_names, lies_about_inputs, has_no_tensors, has_no_lists;
    bool enabled;
    int alive;          /* RecordFunctions, tensors and values not given back */
    int ran_enabled;    /* objects that other observers would have seen */
    int asked_nonsense; /* questions about an object whose name was of no kind: torch may do anything then */
} mini;

static void mini_word(void *base, size_t at, uint64_t value) { memcpy((uint8_t *)base + at, &value, sizeof value); }

static void mini_string(void *at, const char *text)
{
    char *copy = malloc(24 + strlen(text) + 1); /* the older string has its length in front of the characters */
    uint64_t len = strlen(text);
    memcpy(copy, &len, sizeof len);
    strcpy(copy + 24, text);
    mini_word(at, 0, (uintptr_t)(copy + 24));
    if (mini.at.string_bytes == 32) mini_word(at, 8, len);
}

static void mini_string_drop(void *at)
{
    char *text = (char *)(uintptr_t)kp_torch_word(at, 0);
    if (text) free(text - 24);
}

static uint64_t mini_thread_id(void) { return 77; }

static void mini_make(void *rf, uint8_t scope)
{
    uint8_t *at = rf;
    mini.alive++;
    mini.ran_enabled += mini.enabled;
    mini_word(at, 0, 0xabcdef);
    at[mini.at.rf_scope] = scope;
    mini_word(at, mini.at.rf_thread, mini_thread_id());
    mini_word(at, 128, mini_thread_id()); /* a number that happens to be the same */
    memset(at + mini.at.rf_fn, 0, mini.at.string_bytes + 8u);
    mini_word(at, mini.at.rf_seq, UINT64_MAX);
    mini_word(at, mini.at.rf_inputs, 0);
    mini_word(at, mini.at.rf_inputs + 8u, 0);
    mini_word(at, mini.at.rf_fwd, 0);
    mini_word(at, mini.at.rf_handle, 0);
    at[mini.at.rf_async] = 0;
    at[mini.at.rf_bytes - 1] = 1;
}

static void mini_unmake(void *rf)
{
    mini.alive--;
    mini_string_drop((uint8_t *)rf + mini.at.rf_fn);
}

static void mini_before_view(void *rf, struct kp_torch_view name, int64_t seq)
{
    mini_string((uint8_t *)rf + mini.at.rf_fn, name.text);
    mini_word(rf, mini.at.rf_seq, (uint64_t)seq);
}

static const char *mini_name(const void *rf)
{
    const uint8_t *at = rf;
    if (mini.lies_about_names) return "something else";
    const void *fn = at + mini.at.rf_fn;
    if (at[mini.at.rf_schema] == 1) fn = kp_torch_pointer(fn, 0);
    return kp_torch_pointer(fn, 0);
}

static const char *mini_overload(const void *rf)
{
    const uint8_t *at = rf;
    if (at[mini.at.rf_schema] != 1) return "";
    return kp_torch_pointer(kp_torch_pointer(at, mini.at.rf_fn), mini.at.schema_overload);
}

static size_t mini_num_inputs(const void *rf)
{
    mini.asked_nonsense += ((const uint8_t *)rf)[mini.at.rf_schema] > 1;
    return mini.lies_about_inputs ? 3 : kp_torch_word(rf, mini.at.rf_inputs + 8u);
}

static bool mini_is_async(const void *rf) { return ((const uint8_t *)rf)[mini.at.rf_async]; }

static void mini_set_async(void *rf) { ((uint8_t *)rf)[mini.at.rf_async] = 1; }

static void mini_enable(bool on) { mini.enabled = on; }

static bool mini_is_enabled(void) { return mini.enabled; }

/* ---- values ---- */

static const uint64_t mini_types[8]; /* stands for the Type objects */

static const void *const *mini_tensor_type(void)
{
    static const void *type = &mini_types[0];
    return &type;
}

static const void *mini_string_type(void) { return &mini_types[1]; }

static void mini_tensor(uint8_t *impl, int64_t ndim, const int64_t *sizes, const int64_t *strides, uint16_t dtype)
{
    mini_word(impl, mini.at.ti_ndim, (uint64_t)ndim);
    if (ndim <= 5) {
        memcpy(impl + mini.at.ti_ndim + 8, sizes, 8 * (size_t)ndim);
        memcpy(impl + mini.at.ti_ndim + 48, strides, 8 * (size_t)ndim);
    } else {
        static int64_t rooms[16][2 * 255]; /* a test has few of them at a time */
        static unsigned next;
        int64_t *both = rooms[next++ % 16];
        memcpy(both, sizes, 8 * (size_t)ndim);
        memcpy(both + ndim, strides, 8 * (size_t)ndim);
        mini_word(impl, mini.at.ti_ndim + 8u, (uintptr_t)both);
    }
    memcpy(impl + mini.at.ti_dtype, &dtype, 2);
}

static int32_t mini_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                              int32_t dtype, int32_t device, int32_t index, void **out)
{
    (void)data, (void)offset, (void)device, (void)index;
    if (mini.has_no_tensors) return 1;
    uint8_t *handle = calloc(1, 1024);
    mini_word(handle, 0, (uintptr_t)(handle + 64));
    mini_tensor(handle + 64, ndim, sizes, strides, (uint16_t)dtype);
    mini.alive++;
    *out = handle;
    return 0;
}

static int32_t mini_drop(void *handle)
{
    mini.alive--;
    free(handle);
    return 0;
}

/* A boxed value: 16 bytes, the object it may point to 64 bytes further. */
static uint8_t *mini_boxed(uint8_t tag, void **out)
{
    uint8_t *value = calloc(1, 512);
    value[8] = tag;
    mini_word(value, 0, (uintptr_t)(value + 64));
    mini.alive++;
    *out = value;
    return value;
}

static int32_t mini_from_int(int64_t number, void **out)
{
    mini_word(mini_boxed(mini.at.tag_int, out), 0, (uint64_t)number);
    return 0;
}

static int32_t mini_from_text(const char *text, void **out)
{
    uint8_t *value = mini_boxed(mini.at.tag_string, out);
    strcpy((char *)value + 256, text);
    mini_word(value + 64, mini.at.string_text, (uintptr_t)(value + 256));
    return 0;
}

static int32_t mini_from_texts(const char **texts, int64_t count, void **out)
{
    (void)texts;
    if (mini.has_no_lists) return 1;
    uint8_t *value = mini_boxed(mini.at.tag_list, out);
    mini_word(value + 64, mini.at.list_items, (uintptr_t)(value + 256));
    mini_word(value + 64, mini.at.list_items + 8u, (uintptr_t)(value + 256 + 16 * count));
    mini_word(value + 64, mini.at.list_type, (uintptr_t)mini_string_type());
    return 0;
}

static const char *mini_key_name(uint16_t key)
{
    return key == 1 ? "Dense" : key == 6 ? "MkldnnCPU" : key == 7 ? "Sparse" : key == 8 ? "SparseCsr" : "other";
}

static const char *mini_backend_name(uint8_t backend)
{
    return backend == 1 ? "CPUBit" : backend <= 15 ? "OtherBit" : "UNKNOWN_BACKEND_BIT";
}

/* Fresh, right in every way, laid out as that version. */
static struct kp_torch_api torch_fields(uint32_t version, uint32_t string_bytes)
{
    memset(&mini, 0, sizeof mini);
    kp_torch_layout_make(&mini.at, version, string_bytes);
    mini.enabled = true;
    return (struct kp_torch_api){
        .name = mini_name,
        .overload = mini_overload,
        .num_inputs = mini_num_inputs,
        .is_async = mini_is_async,
        .set_async = mini_set_async,
        .make = mini_make,
        .unmake = mini_unmake,
        .before_view = mini_before_view,
        .thread_id = mini_thread_id,
        .enable = mini_enable,
        .is_enabled = mini_is_enabled,
        .undefined_tensor = &mini_types[7],
        .tensor_type = mini_tensor_type,
        .string_type = mini_string_type,
        .key_name = mini_key_name,
        .backend_name = mini_backend_name,
        .from_blob = mini_from_blob,
        .drop_tensor = mini_drop,
        .from_int = mini_from_int,
        .from_text = mini_from_text,
        .from_texts = mini_from_texts,
        .drop_value = mini_drop,
    };
}
