// SPDX-License-Identifier: Apache-2.0
/*
 * stubs_x86_64.S - x86-64: entry and exit of calls of functions by name
 *
 * At entry every register may hold an argument, except r11: binding a PLT slot destroys it, too. At exit rax, rdx,
 * xmm0, xmm1 and x87's stack hold the result (in Swift rcx and r8, too). A preserve_most function has kept all others
 * but r11. So all are kept: the C code there uses general registers only. At each call of C the stack is aligned to 16.
 *
 * The processor predicts a `ret` by the calls it saw, and an indirect jump by its address and the jumps before it. So
 * each `ret` here matches a call. The entry stub calls `entry`, which returns to it. The exit stub calls the function,
 * which returns to it, and then leaves by a `ret` to the caller. The jump to the exit stub lies in the function's own
 * entry stub, so the processor can predict which function is called next. Its target is stored below the stack pointer,
 * since r11 holds the row; signal handlers leave 128 bytes there alone (the red zone).
 *
 * An exit stub is a call and the code that the function returns to. To an unwinder, at either place, its frame is
 * empty: the caller's stack pointer is its own, and the word below holds the address behind the call. It is marked as a
 * signal frame, because unwinders that tell frames by their stack pointer must not take it for its caller. In a signal
 * frame the return address is used as it is, not less one, so the rule itself subtracts one. The first word of the
 * stub's page is the distance from the stub to the true return address.
 */
#include "preload/calltrace/calltrace.h"

        .hidden kp_calltrace_row_base, kp_calltrace_armed, kp_calltrace_vectors
        .hidden kp_calltrace_enter, kp_calltrace_enter_slow, kp_calltrace_exit

        .macro  KEEP reg
        pushq   %\reg
        .cfi_adjust_cfa_offset 8
        .endm
        .macro  BACK reg
        popq    %\reg
        .cfi_adjust_cfa_offset -8
        .endm

        .macro  ALL_BACK
        popq    %r11
        popq    %r10
        popq    %r9
        popq    %r8
        popq    %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        popq    %rax
        popq    %rbp
        .cfi_remember_state
        .cfi_def_cfa rsp, 16
        .cfi_restore rbp
        .endm

        .text
        .globl  kp_calltrace_stubs
        .hidden kp_calltrace_stubs
        .type   kp_calltrace_stubs, @function
        .balign 4096
kp_calltrace_stubs:
        .cfi_startproc
        /*
         * DW_CFA_def_cfa_expression, 18 bytes. The CFA is the stack pointer plus 8. Behind the call it is the stack
         * pointer if `entry` removed the function's return address: then the word below the stack pointer is not the
         * address behind the call. The rule has no branches, as Valgrind knows none. DW_OP_breg7 8, breg7 -8 deref
         * breg16 0 ne, breg16 0 lit15 and lit9 ge, and lit3 shl minus
         */
        .cfi_escape 0x0f, 18, 0x77, 8, 0x77, 0x78, 0x06, 0x80, 0, 0x2e, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x1a, 0x33, \
                    0x24, 0x1c
        .rept   KP_CALLTRACE_ROWS
        .balign 1 << KP_CALLTRACE_STUB_SHIFT
        endbr64
        call    entry
        notrack jmp *-104(%rsp)
        .endr
        .cfi_endproc
        .size   kp_calltrace_stubs, . - kp_calltrace_stubs

        /* Called by the stubs. Unwinders skip the stub: the CFA is that of the hooked function's caller. */
        .type   entry, @function
        .balign 16
entry:
        .cfi_startproc
        .cfi_def_cfa_offset 16
        movq    (%rsp), %r11
        shlq    $KP_CALLTRACE_ROW_SHIFT - KP_CALLTRACE_STUB_SHIFT, %r11
        addq    kp_calltrace_row_base(%rip), %r11
        cmpl    $0, kp_calltrace_armed(%rip)
        je      10f
        KEEP    rbp
        .cfi_rel_offset rbp, 0
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        pushq   %rax
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rcx
        pushq   %r8
        pushq   %r9
        pushq   %r10
        pushq   %r11
        movq    %r11, %rdi
        leaq    16(%rbp), %rsi
        call    kp_calltrace_enter
        cmpq    $1, %rax
        jbe     2f
        /* Goes to the exit stub and removes the return address: the exit stub's call pushes an equal one. */
1:      movq    %rax, -8(%rsp)
        ALL_BACK
        ret     $8
        .cfi_restore_state

        /* Goes to the function. */
2:      je      4f
3:      movq    (%rsp), %rax
        movq    (%rax), %rax
        movq    %rax, -16(%rsp)
        ALL_BACK
        ret
        .cfi_restore_state

        /* Calls C that may use vector registers: keeps all that hold arguments in any language's convention. */
4:      subq    $1088, %rsp
        andq    $-64, %rsp
        movl    kp_calltrace_vectors(%rip), %eax
        cmpl    $1, %eax
        je      5f
        ja      6f
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movaps  %xmm\n, \n * 64(%rsp)
        .endr
        jmp     7f
5:
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        vmovaps %ymm\n, \n * 64(%rsp)
        .endr
        jmp     7f
6:
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        vmovaps %zmm\n, \n * 64(%rsp)
        .endr
7:      movq    -72(%rbp), %rdi
        leaq    16(%rbp), %rsi
        call    kp_calltrace_enter_slow
        movl    kp_calltrace_vectors(%rip), %ecx
        cmpl    $1, %ecx
        je      8f
        ja      9f
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movaps  \n * 64(%rsp), %xmm\n
        .endr
        jmp     11f
8:
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        vmovaps \n * 64(%rsp), %ymm\n
        .endr
        jmp     11f
9:
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        vmovaps \n * 64(%rsp), %zmm\n
        .endr
11:     leaq    -72(%rbp), %rsp
        testq   %rax, %rax
        jnz     1b
        jmp     3b

10:     .cfi_def_cfa rsp, 16
        .cfi_restore rbp
        movq    (%r11), %r11
        movq    %r11, -96(%rsp)
        ret
        .cfi_endproc
        .size   entry, . - entry

        .globl  kp_calltrace_exits
        .hidden kp_calltrace_exits
        .type   kp_calltrace_exits, @function
        .balign 4096
        .cfi_startproc
        .cfi_signal_frame
        .cfi_def_cfa rsp, 0
        /*
         * DW_CFA_val_expression rip, 14 bytes: on the stack is the CFA; DW_OP_lit8 minus deref  (the word below it: the
         * stub's address) dup const2s -4096 and deref  (its page's first word)  plus deref lit1 minus
         */
        .cfi_escape 0x16, 16, 13, 0x38, 0x1c, 0x06, 0x12, 0x0b, 0x00, 0xf0, 0x1a, 0x06, 0x22, 0x06, 0x31, 0x1c
kp_calltrace_exits:
        .set    page, 0
        .rept   KP_CALLTRACE_CALLS / KP_CALLTRACE_PAGE
        .quad   kp_calltrace_returns + page * 4096 - . - KP_CALLTRACE_CALL_BYTES
        .rept   KP_CALLTRACE_PAGE - 1
        .byte   0x41, 0xff, 0x13        /* call *(%r11) */
        .byte   0xe9                    /* jmp, always the long form */
        .long   left - . - 4
        .endr
        .set    page, page + 1
        .endr
        .cfi_endproc
        .size   kp_calltrace_exits, . - kp_calltrace_exits

        /* The word below the stack pointer is still the stub's address: signal handlers skip the red zone. */
        .type   left, @function
        .balign 16
left:
        .cfi_startproc
        .cfi_def_cfa rsp, 0
        .cfi_escape 0x10, 16, 10, 0x38, 0x1c, 0x06, 0x12, 0x0b, 0x00, 0xf0, 0x1a, 0x06, 0x22
        movq    -8(%rsp), %r11
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        KEEP    rdi
        movq    %r11, %rdi
        /* movq DISTANCE(%r11), %r11: the assembler has no such relocation for a displacement */
        .byte   0x4d, 0x8b, 0x9b
        .long   kp_calltrace_returns - kp_calltrace_exits - KP_CALLTRACE_CALL_BYTES
        movq    %r11, 8(%rsp)
        .cfi_offset rip, -8
        KEEP    rax
        KEEP    rdx
        KEEP    rcx
        KEEP    rsi
        KEEP    r8
        KEEP    r9
        KEEP    r10
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    kp_calltrace_exit
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        BACK    r10
        BACK    r9
        BACK    r8
        BACK    rsi
        BACK    rcx
        BACK    rdx
        BACK    rax
        BACK    rdi
        ret
        .cfi_endproc
        .size   left, . - left

        .globl  kp_calltrace_shadow_stack
        .hidden kp_calltrace_shadow_stack
        .type   kp_calltrace_shadow_stack, @function
        .balign 16
kp_calltrace_shadow_stack:
        .cfi_startproc
        xorl    %eax, %eax
        .byte   0xf3, 0x48, 0x0f, 0x1e, 0xc8    /* rdsspq %rax: a no-op without a shadow stack */
        testq   %rax, %rax
        setne   %al
        movzbl  %al, %eax
        ret
        .cfi_endproc
        .size   kp_calltrace_shadow_stack, . - kp_calltrace_shadow_stack

        .bss
        .globl  kp_calltrace_returns
        .hidden kp_calltrace_returns
        .type   kp_calltrace_returns, @object
        .balign 64
kp_calltrace_returns:
        .zero   KP_CALLTRACE_CALLS * 8
        .size   kp_calltrace_returns, . - kp_calltrace_returns

        .section .note.GNU-stack, "", @progbits
