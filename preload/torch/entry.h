// SPDX-License-Identifier: Apache-2.0
/* entry.h - entry points by which torch's C++ calls our callbacks that return an object */
#pragma once

#include <stdint.h>

/*
 * C++ returns an object in memory that the caller provides. On x86-64 its address is a hidden first argument, and the
 * function returns it. On AArch64 the address is in x8 and is not returned. Our callbacks have the x86-64 form.
 * KP_TORCH_ENTRY_MAKE(fn) makes the function KP_TORCH_ENTRY(fn) that torch may call.
 */
#if defined(__aarch64__)
#define KP_TORCH_ENTRY(fn) fn##_entry
#define KP_TORCH_ENTRY_MAKE(fn)                                                                          \
    __asm__(".pushsection .text\n.balign 16\n.hidden " #fn "_entry\n.globl " #fn "_entry\n.type " #fn    \
            "_entry, %function\n" #fn                                                                    \
            "_entry:\n    .cfi_startproc\n    hint #34\n    mov x1, x0\n    mov x0, x8\n    b " #fn "\n" \
            "    .cfi_endproc\n.size " #fn "_entry, . - " #fn "_entry\n.popsection\n");                  \
    extern int kp_torch_no_such_word /* takes the semicolon */
#define KP_TORCH_HIDDEN __attribute__((visibility("hidden"), used))
void **kp_torch_op_start_entry(void **context, const uint8_t *rf);
void **kp_torch_step_start_entry(void **context, const uint8_t *rf);
void **kp_torch_work_start_entry(void **context, const uint8_t *rf);
#else
#define KP_TORCH_ENTRY(fn) fn
#define KP_TORCH_ENTRY_MAKE(fn) extern int kp_torch_no_such_word
#define KP_TORCH_HIDDEN
#endif

void **kp_torch_work_start(void **context, const uint8_t *rf); /* torch_source.c: the first op */
