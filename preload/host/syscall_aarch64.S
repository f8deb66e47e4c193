// SPDX-License-Identifier: Apache-2.0
/*
 * syscall_aarch64.S - AArch64: the tap on syscall(): calls confine.c for two numbers, then jumps to the real function
 *
 * Return address, registers and stack stay the caller's, so that clone by number works unchanged.
 */
#include <asm/unistd.h>

        .hidden kp_confine_look, kp_confine_real_syscall

        .text
        .globl  kp_confine_tap_syscall
        .hidden kp_confine_tap_syscall
        .type   kp_confine_tap_syscall, %function
        .balign 16
kp_confine_tap_syscall:
        .cfi_startproc
        hint    #34                     /* bti c */
        cmp     x0, #__NR_prctl
        b.eq    1f
        cmp     x0, #__NR_seccomp
        b.ne    2f
1:      stp     x29, x30, [sp, #-80]!
        .cfi_def_cfa_offset 80
        .cfi_offset 29, -80
        .cfi_offset 30, -72
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        bl      kp_confine_look
        ldp     x6, x7, [sp, #64]
        ldp     x4, x5, [sp, #48]
        ldp     x2, x3, [sp, #32]
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #80
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
2:      adrp    x16, kp_confine_real_syscall
        ldr     x16, [x16, #:lo12:kp_confine_real_syscall]
        br      x16
        .cfi_endproc
        .size   kp_confine_tap_syscall, . - kp_confine_tap_syscall

        .section .note.GNU-stack, "", %progbits
