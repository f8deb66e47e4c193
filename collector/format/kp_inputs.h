// SPDX-License-Identifier: Apache-2.0
/*
 * kp_inputs.h - how the inputs of an op lie in an OP record
 *
 * A byte stream without padding, with an entry for each input, read with memcpy. It leaves out what Kineto would not
 * show.
 */
#pragma once

enum kp_input_tag {
    KP_IN_NONE = 0,        /* None, and everything Kineto shows as "" */
    KP_IN_TENSOR = 1,      /* u8 dtype, u8 flags, u8 ndim, then ndim i64 sizes, ndim i64 strides (NARROW: u32) */
    KP_IN_TENSOR_LIST = 2, /* u16 count, then count TENSOR/NONE entries (none when count > KP_IN_LIST_MAX) */
    KP_IN_INT = 3,         /* i64 */
    KP_IN_DOUBLE = 4,      /* f64 */
    KP_IN_BOOL = 5,        /* u8 */
    KP_IN_COMPLEX = 6,     /* f64 real, f64 imaginary */
    KP_IN_STRING = 7,      /* u16 length, bytes (cut at KP_IN_STRING_MAX) */
    KP_IN_SCALAR_LIST = 8, /* u16 count, then count scalar entries (none when count > KP_IN_LIST_MAX) */
    KP_IN_SYMBOL = 9,      /* a symbolic scalar; nothing follows, since torch would have to ask Python for its text */
};
/* Flags of a TENSOR entry. With NO_STRIDES only the sizes follow (sparse and other layouts without strides). */
enum { KP_IN_TENSOR_UNDEFINED = 1, KP_IN_TENSOR_NO_SIZES = 2, KP_IN_TENSOR_NO_STRIDES = 4, KP_IN_TENSOR_NARROW = 8 };
#define KP_IN_LIST_MAX 30
#define KP_IN_STRING_MAX 512
