// SPDX-License-Identifier: Apache-2.0
/*
 * strange_layout.c - layout.c as if this torch had come after us: a version it does not know, every field moved
 *
 * Takes the place of preload/torch/find/layout.c in tests: what is recorded with it was found by self-calibration
 * alone. Offsets that are read without being proved would show at once.
 */
#define kp_torch_layout_make kp_strange_true_layout
#include "preload/torch/find/layout.c"
#undef kp_torch_layout_make

void kp_torch_layout_make(struct kp_torch_layout *layout, uint32_t version, uint32_t string_bytes);
int kp_strange_shift = 8; /* bytes; a test may set another */

static void move(struct kp_torch_layout *l)
{
    uint16_t *const offsets[] = {&l->rf_thread,  &l->rf_scope,  &l->rf_fn,       &l->rf_schema, &l->rf_seq,
                                 &l->rf_inputs,  &l->rf_fwd,    &l->rf_handle,   &l->rf_async,  &l->rf_bytes,
                                 &l->list_items, &l->list_type, &l->string_text, &l->ti_ndim,   &l->ti_dtype,
                                 &l->ti_policy,  &l->ti_keys};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        *offsets[i] = (uint16_t)(*offsets[i] + kp_strange_shift);
    l->tag_string = (uint8_t)(l->tag_string + 3);
    l->tag_bool = (uint8_t)(l->tag_bool + 3);
    l->tag_list = (uint8_t)(l->tag_list + 7);
}

void kp_torch_layout_make(struct kp_torch_layout *layout, uint32_t version, uint32_t string_bytes)
{
    (void)version;
    kp_strange_true_layout(layout, 299, string_bytes);
    move(layout);
}
