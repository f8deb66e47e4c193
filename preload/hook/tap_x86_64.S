// SPDX-License-Identifier: Apache-2.0
/*
 * tap_x86_64.S - x86-64: taps that call kp_hook_note, then jump to the real function with all registers unchanged
 *
 * The tapped functions take integers only, so no vector register is live at their entry; rax, r10 and r11 are kept
 * although no caller may rely on them. The stack is aligned for the call: return address, rbp and nine registers
 * make 88 bytes, 8 more make 96.
 */
#include "preload/hook/taps.h"

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

        .macro  KEEP reg
        pushq   %\reg
        .cfi_adjust_cfa_offset 8
        .endm
        .macro  BACK reg
        popq    %\reg
        .cfi_adjust_cfa_offset -8
        .endm

        .macro  TAP name, opens
        .globl  kp_hook_tap_\name
        .hidden kp_hook_tap_\name
        .type   kp_hook_tap_\name, @function
        .balign 16
kp_hook_tap_\name:
        .cfi_startproc
        _CET_ENDBR
        cmpl    $0, kp_hook_credit(%rip)
        jne     1f
        .if     \opens
        movl    $KP_HOOK_CREDIT, kp_hook_credit(%rip)
        .endif
        jmp     *kp_hook_real_\name(%rip)
1:      KEEP    rbp
        movq    %rsp, %rbp
        KEEP    rdi
        KEEP    rsi
        KEEP    rdx
        KEEP    rcx
        KEEP    r8
        KEEP    r9
        KEEP    rax
        KEEP    r10
        KEEP    r11
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    kp_hook_note
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        BACK    r11
        BACK    r10
        BACK    rax
        BACK    r9
        BACK    r8
        BACK    rcx
        BACK    rdx
        BACK    rsi
        BACK    rdi
        BACK    rbp
        .if     \opens
        movl    $KP_HOOK_CREDIT, kp_hook_credit(%rip)
        .endif
        jmp     *kp_hook_real_\name(%rip)
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

        .section .note.GNU-stack, "", @progbits
