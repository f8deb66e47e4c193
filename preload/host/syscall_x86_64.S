// SPDX-License-Identifier: Apache-2.0
/*
 * syscall_x86_64.S - x86-64: the tap on syscall(): calls confine.c for two numbers, then jumps to the real function
 *
 * Return address, registers and stack stay the caller's, so that vfork and clone by number work unchanged.
 */
#include <asm/unistd.h>

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

        .hidden kp_confine_look, kp_confine_real_syscall

        .text
        .globl  kp_confine_tap_syscall
        .hidden kp_confine_tap_syscall
        .type   kp_confine_tap_syscall, @function
        .balign 16
kp_confine_tap_syscall:
        .cfi_startproc
        _CET_ENDBR
        cmpq    $__NR_prctl, %rdi
        je      1f
        cmpq    $__NR_seccomp, %rdi
        je      1f
        jmp     *kp_confine_real_syscall(%rip)
1:      pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        pushq   %rcx
        .cfi_adjust_cfa_offset 8
        pushq   %r8
        .cfi_adjust_cfa_offset 8
        pushq   %r9
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                /* aligns the stack to 16 */
        .cfi_adjust_cfa_offset 8
        call    kp_confine_look
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r9
        .cfi_adjust_cfa_offset -8
        popq    %r8
        .cfi_adjust_cfa_offset -8
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *kp_confine_real_syscall(%rip)
        .cfi_endproc
        .size   kp_confine_tap_syscall, . - kp_confine_tap_syscall

        .section .note.GNU-stack, "", @progbits
