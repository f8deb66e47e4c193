// SPDX-License-Identifier: Apache-2.0
/*
 * stubs_x86_64.S - x86-64: entry and exit of calls of functions by name
 *
 * At entry every register may hold an argument but r11, which the binding of a PLT word destroys as well. At exit rax,
 * rdx, xmm0, xmm1 and x87's stack hold what is returned (rcx and r8, too, in Swift), and functions that promise it have
 * kept all others but r11 (preserve_most), so all are kept; what C does there uses general registers only. The stack is
 * a multiple of 16 at every call of C.
 *
 * The processor guesses where a `ret` leads by the calls it saw, and where an indirect jump leads by its address and by
 * the jumps just before it. So whatever returns was called from there: the entry stub calls `entry`, which returns to
 * it; the function is called by the exit stub it shall return to; and that leaves by a `ret` to the caller. And the
 * jump to the exit stub lies in the function's own entry stub: it tells the processor which function is called next.
 * Where it leads is told in the memory below the stack pointer, for r11 holds the row; signals leave 128 bytes there
 * alone.
 *
 * An exit stub is a call and, behind it, where the function returns to. What is unwound through one, at either: its
 * frame is empty, so the caller's stack pointer is its own, and in the word below lies the address behind the call. It
 * counts as a signal's frame, for unwinders that know frames by their stack pointer must not take it for its caller;
 * and then the caller's address is taken as it is, not less one as for a call, so the rule gives it less one. The true
 * return address lies at a distance from the stub that the first word of the stub's page tells.
 */
#include "preload/calltrace/calltrace.h"

        .hidden kp_symbol_row_base, kp_symbols_armed, kp_symbols_vectors
        .hidden kp_symbol_enter, kp_symbol_enter_slow, kp_symbol_exit

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
        .globl  kp_symbol_stubs
        .hidden kp_symbol_stubs
        .type   kp_symbol_stubs, @function
        .balign 4096
kp_symbol_stubs:
        .cfi_startproc
        /*
         * DW_CFA_def_cfa_expression, 18 bytes: the stack pointer and 8; without those behind the call, when entry took
         * the function's return address off. Then the word below the stack pointer is that, else it is what entry
         * returned by. (Valgrind knows of no jumps in such rules.) DW_OP_breg7 8, breg7 -8 deref breg16 0 ne, breg16 0
         * lit15 and lit9 ge, and lit3 shl minus
         */
        .cfi_escape 0x0f, 18, 0x77, 8, 0x77, 0x78, 0x06, 0x80, 0, 0x2e, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x1a, 0x33, \
                    0x24, 0x1c
        .rept   KP_SYMBOL_ROWS
        .balign 1 << KP_SYMBOL_STUB_SHIFT
        endbr64
        call    entry
        notrack jmp *-104(%rsp)
        .endr
        .cfi_endproc
        .size   kp_symbol_stubs, . - kp_symbol_stubs

        /* Called by stubs. Unwound as their part: its caller is the function's, not the stub. */
        .type   entry, @function
        .balign 16
entry:
        .cfi_startproc
        .cfi_def_cfa_offset 16
        movq    (%rsp), %r11
        shlq    $KP_SYMBOL_ROW_SHIFT - KP_SYMBOL_STUB_SHIFT, %r11
        addq    kp_symbol_row_base(%rip), %r11
        cmpl    $0, kp_symbols_armed(%rip)
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
        call    kp_symbol_enter
        cmpq    $1, %rax
        jbe     2f
        /* To the exit stub, the return address off the stack: the stub's call puts there what lies there already. */
1:      movq    %rax, -8(%rsp)
        ALL_BACK
        ret     $8
        .cfi_restore_state

        /* To the function. */
2:      je      4f
3:      movq    (%rsp), %rax
        movq    (%rax), %rax
        movq    %rax, -16(%rsp)
        ALL_BACK
        ret
        .cfi_restore_state

        /* C that may use vectors: all that may hold arguments, here or in languages with habits of their own, is
         * kept. */
4:      subq    $1088, %rsp
        andq    $-64, %rsp
        movl    kp_symbols_vectors(%rip), %eax
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
        call    kp_symbol_enter_slow
        movl    kp_symbols_vectors(%rip), %ecx
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

        .globl  kp_symbol_exits
        .hidden kp_symbol_exits
        .type   kp_symbol_exits, @function
        .balign 4096
        .cfi_startproc
        .cfi_signal_frame
        .cfi_def_cfa rsp, 0
        /*
         * DW_CFA_val_expression rip, 14 bytes: on the stack is the CFA; DW_OP_lit8 minus deref  (the word below it: the
         * stub's address) dup const2s -4096 and deref  (its page's first word)  plus deref lit1 minus
         */
        .cfi_escape 0x16, 16, 13, 0x38, 0x1c, 0x06, 0x12, 0x0b, 0x00, 0xf0, 0x1a, 0x06, 0x22, 0x06, 0x31, 0x1c
kp_symbol_exits:
        .set    page, 0
        .rept   KP_SYMBOL_CALLS / KP_SYMBOL_PAGE
        .quad   kp_symbol_returns + page * 4096 - . - KP_SYMBOL_CALL_BYTES
        .rept   KP_SYMBOL_PAGE - 1
        .byte   0x41, 0xff, 0x13        /* call *(%r11) */
        .byte   0xe9                    /* jmp, always the long form */
        .long   left - . - 4
        .endr
        .set    page, page + 1
        .endr
        .cfi_endproc
        .size   kp_symbol_exits, . - kp_symbol_exits

        /* The word below the stack pointer still is the stub's address: signals leave 128 bytes there alone. */
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
        .long   kp_symbol_returns - kp_symbol_exits - KP_SYMBOL_CALL_BYTES
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
        call    kp_symbol_exit
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

        .globl  kp_symbols_shadow_stack
        .hidden kp_symbols_shadow_stack
        .type   kp_symbols_shadow_stack, @function
        .balign 16
kp_symbols_shadow_stack:
        .cfi_startproc
        xorl    %eax, %eax
        .byte   0xf3, 0x48, 0x0f, 0x1e, 0xc8    /* rdsspq %rax: does nothing where there is none */
        testq   %rax, %rax
        setne   %al
        movzbl  %al, %eax
        ret
        .cfi_endproc
        .size   kp_symbols_shadow_stack, . - kp_symbols_shadow_stack

        /* Made writable when it is used; whole pages. */
        .section .rodata.kp_symbol_returns, "a", @progbits
        .globl  kp_symbol_returns
        .hidden kp_symbol_returns
        .type   kp_symbol_returns, @object
        .balign 4096
kp_symbol_returns:
        .zero   KP_SYMBOL_CALLS * 8
        .size   kp_symbol_returns, . - kp_symbol_returns

        .section .note.GNU-stack, "", @progbits
