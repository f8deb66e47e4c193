// SPDX-License-Identifier: Apache-2.0
/* libtorch_double.h - a torch of one file for tests: RecordFunction under torch's own names, laid out as in 2.15 */
#pragma once

#include <stdint.h>

/* One op (scope 0) of that name; the text must live for ever. A `user` range has scope 7, as record_function's. */
struct mini_range {
    _Alignas(64) uint8_t rf[512];
    void *contexts[4];
    uint64_t callbacks; /* bit i: callback i was there when it started */
};
void mini_begin(struct mini_range *range, const char *name, int user);
void mini_end(struct mini_range *range);
void mini_op(const char *name);
uint64_t mini_ops_made(void); /* ranges begun since the library was loaded, by all threads */
void mini_run_out(void);      /* a device has a block of 1 MB, and refuses one of a TB */
int mini_is_watched(void);    /* whether a callback is there */
