// SPDX-License-Identifier: Apache-2.0
/*
 * call_x86_64.S - x86-64: calls a function with a chosen return address (taps.h)
 */
        .macro  KEEP reg
        pushq   %\reg
        .cfi_adjust_cfa_offset 8
        .endm

        .text
        /* Alignment, our return address, then the one that the function sees. */
        .globl  kp_hook_call_from
        .hidden kp_hook_call_from
        .type   kp_hook_call_from, @function
        .balign 16
kp_hook_call_from:
        .cfi_startproc
        KEEP    rbp
        .cfi_rel_offset rbp, 0
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        andq    $-16, %rsp
        leaq    1f(%rip), %rax
        pushq   $0
        pushq   %rax
        pushq   %rdi
        movq    %rsi, %r11
        movq    %rdx, %rdi
        movq    %rcx, %rsi
        movq    %r8, %rdx
        jmp     *%r11
1:      movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa rsp, 8
        .cfi_restore rbp
        ret
        .cfi_endproc
        .size   kp_hook_call_from, . - kp_hook_call_from

        .section .note.GNU-stack, "", @progbits
