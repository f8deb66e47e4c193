// SPDX-License-Identifier: Apache-2.0
/* shapetext.h - shapes of an op's inputs, short enough to read: equal tensors of a list once, with their number */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text of both functions is never longer than `text`, and is cut at `bytes`. They return `out`. */

/*
 * "[[[3, 32], [3, 32]], []]" becomes "[2 x [3, 32], []]". A list that is long all the same becomes "148
 * tensors". Inputs that are no lists stay as they are.
 */
const char *kp_shapetext_short(char *out, size_t bytes, const char *text);
/* As torch's tables have it: "[[], []]". */
const char *kp_shapetext_torch(char *out, size_t bytes, const char *text);

/* "[[32, 100], [], [100]]": how many numbers all tensors have, and the largest. A scalar has none. */
void kp_shapetext_numbers(const char *text, double *all, double *largest);

enum { KP_DIMS_MOST = 8 };
struct kp_dims {
    size_t count;
    double of[KP_DIMS_MOST];
    bool is_other; /* it is a list of tensors, or has more dimensions than these */
};
/* "[[8, 16, 2048, 64], [], []]": the dimensions of the input of that number, from 0 on. False: there are fewer. */
bool kp_shapetext_dims(struct kp_dims *out, const char *text, size_t number);

/* How many elements the input of that number has, from 0 on, or each tensor of it, if it is a list: of
 * "[[[16, 101, 128], [16, 1, 128]], []]" input 0 has two tensors. A scalar is none. Returns how many were written. */
size_t kp_shapetext_elements(const char *text, size_t number, double *of, size_t most);

/* The input of that number, from 0 on: "[100]". NULL: there are fewer. */
const char *kp_shapetext_input(const char *text, size_t number, size_t *bytes);

/* How many tensors the first input has, which is a list: 3 of "[[2 x [3, 32], [3]], []]". 0: it is none. */
size_t kp_shapetext_tensors(const char *text);

/* Types of floating point among an op's tensors. */
enum { KP_TYPES_DOUBLE = 1, KP_TYPES_FLOAT = 2, KP_TYPES_HALF = 4, KP_TYPES_BFLOAT16 = 8 };
uint8_t kp_shapetext_type(const char *name, size_t bytes); /* of an input, as torch names it; 0: none of these */
/* " double", " float and double"; "" of float alone, which is the usual one, and of none. */
const char *kp_shapetext_types(char *out, size_t bytes, uint8_t types);
