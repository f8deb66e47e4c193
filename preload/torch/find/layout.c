// SPDX-License-Identifier: Apache-2.0
/*
 * layout.c - offsets of torch's fields, from its version and the size of its std::string
 *
 * Pure. The objects that we read changed a few times between 1.13 and 2.15, always for one of two reasons. A version
 * added or dropped a member, or the build has the other std::string (8 bytes, copy on write, or 32 bytes, C++11).
 * PyPI wheels changed to the latter at 2.7, Debian and others earlier: so both are arguments.
 * Checked against the headers of 17 releases in both string flavours (test/unit/torch/test_layout.c).
 */
#include <string.h>

#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

/* at::RecordFunction: vptr, StepCallbacks (96), flag, contexts (48), fn_ (a string or a schema), ... */
static void record_function(struct kp_torch_layout *l)
{
    uint32_t kwinputs = l->version >= 204 ? 56 : 0; /* 2.4 added an unordered_map */
    l->rf_thread = 88;
    l->rf_scope = 96;
    l->rf_fn = 160;
    l->rf_schema = (uint16_t)(l->rf_fn + l->string_bytes); /* the variant's index: 1 when it refers to a schema */
    l->rf_seq = (uint16_t)(l->rf_schema + 8);
    l->rf_inputs = (uint16_t)(l->rf_seq + 8);
    l->rf_fwd = (uint16_t)(l->rf_inputs + 16 + kwinputs + 24);
    l->rf_handle = (uint16_t)(l->rf_fwd + 8);
    l->rf_async = (uint16_t)(l->rf_handle + 8);
    l->rf_bytes = (uint16_t)(l->rf_async + 24);
    l->schema_overload = (uint16_t)l->string_bytes;
}

/* Reference-counted objects: 2.3 joined their two counts in one word, which made each 8 bytes smaller. */
static void objects(struct kp_torch_layout *l)
{
    uint16_t head = l->version >= 203 ? 16 : 24;
    l->list_items = head;
    l->list_type = (uint16_t)(head + 24);
    l->string_text = head;
    l->ti_ndim = (uint16_t)(head + (l->version >= 213 ? 40 : 48));
    l->ti_dtype = (uint16_t)(l->ti_ndim + 104);
    l->ti_policy = (uint16_t)(l->ti_dtype + 6);
    l->ti_keys = (uint16_t)(l->ti_dtype + 8);
    l->unstrided = ~UINT64_C(0);
}

/* c10::IValue::Tag: 2.1 added SymBool and 2.9 added UInt; each moved the tags behind it. */
static void tags(struct kp_torch_layout *l)
{
    uint8_t unsigned_ints = l->version >= 209 ? 1 : 0;
    uint8_t symbolic_bools = l->version >= 201 ? 1 : 0;
    l->tag_tensor = 1;
    l->tag_double = 3;
    l->tag_complex = 4;
    l->tag_int = 5;
    l->tag_symint = (uint8_t)(6 + unsigned_ints);
    l->tag_symfloat = (uint8_t)(l->tag_symint + 1);
    l->tag_symbool = symbolic_bools ? (uint8_t)(l->tag_symint + 2) : 0xff;
    l->tag_bool = (uint8_t)(l->tag_symint + 2 + symbolic_bools);
    l->tag_string = (uint8_t)(l->tag_bool + 2);
    l->tag_list = (uint8_t)(l->tag_bool + 4);
}

void kp_torch_layout_make(struct kp_torch_layout *layout, uint32_t version, uint32_t string_bytes)
{
    memset(layout, 0, sizeof *layout);
    layout->version = version;
    layout->string_bytes = string_bytes;
    record_function(layout);
    objects(layout);
    tags(layout);
}
