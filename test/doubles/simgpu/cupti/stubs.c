// SPDX-License-Identifier: Apache-2.0
/*
 * stubs.c - the exports of libcupti that are not simulated answer NOT_SUPPORTED
 *
 * All names are defined here as weak; the other files' definitions win.
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#define EXPORT(name, since, until)                  \
    CUPTI_API __attribute__((weak)) int name(void); \
    int name(void) { API(CALL_FREE, 0, 0, CUPTI_NOT_SUPPORTED); }
#include "test/doubles/simgpu/cupti/exports.def"
