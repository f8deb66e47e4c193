// SPDX-License-Identifier: Apache-2.0
/*
 * tap_aarch64.S - AArch64: taps that call kp_hook_note, then jump to the real function with all registers unchanged
 *
 * The tapped functions take integers only, so no vector register is live at their entry. x16 and x17 are the
 * procedure linkage registers: free at a function's entry, and a jump through x16 is legal under BTI.
 */
#include "preload/hook/taps.h"

        .macro  TAP name, opens
        .globl  kp_hook_tap_\name
        .hidden kp_hook_tap_\name
        .type   kp_hook_tap_\name, %function
        .balign 16
kp_hook_tap_\name:
        .cfi_startproc
        hint    #34                     /* bti c */
        adrp    x16, kp_hook_credit
        ldr     w17, [x16, #:lo12:kp_hook_credit]
        cbz     w17, 1f
        stp     x29, x30, [sp, #-96]!
        .cfi_def_cfa_offset 96
        .cfi_offset 29, -96
        .cfi_offset 30, -88
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        str     x8, [sp, #80]
        bl      kp_hook_note
        ldr     x8, [sp, #80]
        ldp     x6, x7, [sp, #64]
        ldp     x4, x5, [sp, #48]
        ldp     x2, x3, [sp, #32]
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #96
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
1:
        .if     \opens
        adrp    x16, kp_hook_credit
        mov     w17, #KP_HOOK_CREDIT
        str     w17, [x16, #:lo12:kp_hook_credit]
        .endif
        adrp    x16, kp_hook_real_\name
        ldr     x16, [x16, #:lo12:kp_hook_real_\name]
        br      x16
        .cfi_endproc
        .size   kp_hook_tap_\name, . - kp_hook_tap_\name
        .endm

        .hidden kp_hook_credit, kp_hook_note
        .hidden kp_hook_real_dlopen, kp_hook_real_dlmopen, kp_hook_real_dlsym, kp_hook_real_dlvsym

        .text
        TAP     dlopen, 1
        TAP     dlmopen, 1
        TAP     dlsym, 0
        TAP     dlvsym, 0

        .section .note.GNU-stack, "", %progbits
