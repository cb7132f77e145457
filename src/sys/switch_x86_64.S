/* SPDX-License-Identifier: MIT */
/* src/sys/switch_x86_64.S - the context switch for x86-64, System V ABI.
 *
 * A suspended context is its stack pointer; above it, upwards:
 *
 *     r15 r14 r13 r12 rbx rbp, the address to continue at
 *
 * Unwinders see the same picture at every instruction, before and after the
 * stack pointer changes hands, because both stacks look alike here.
 *
 * The last jump may land behind any call, where there is no endbr64, so it is
 * marked notrack for indirect-branch tracking.  Shadow stacks are not
 * switched, and the note at the end does not claim so: a process that links
 * this runs without them.
 */

    .text

/* What a function leaves as it found it. */
.macro push_kept
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq   %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq   %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq   %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq   %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq   %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
.endm

.macro pop_kept
    popq    %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    popq    %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    popq    %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    popq    %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r12
    popq    %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    popq    %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
.endm

/* int pirn__switch_raw(from, to, word) */
    .globl  pirn__switch_raw
    .hidden pirn__switch_raw
    .type   pirn__switch_raw, @function
    .p2align 4
pirn__switch_raw:
    .cfi_startproc
    endbr64
    push_kept
    movq    %rsp, (%rdi)
    movq    (%rsi), %rsp
    movl    %edx, %eax
    pop_kept
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rcx
    notrack jmp *%rcx
    .cfi_endproc
    .size   pirn__switch_raw, . - pirn__switch_raw

/* See pirn__host_enter() in switch.h, which jumps here: rdi is the host, rsi the
 * context, rax where the host goes on.  The host has saved its registers but for
 * rsp and rbp.  A suspended context looks as above; here the way back into it is a
 * `ret`, for in the list of the processor it is the way back of the context that
 * left last by pirn__switch_return(), which returns 0. */
    .globl  pirn__switch_enter
    .hidden pirn__switch_enter
    .type   pirn__switch_enter, @function
    .p2align 4
pirn__switch_enter:
    .cfi_startproc
    .cfi_def_cfa %rsp, 0
    .cfi_register %rip, %rax
    movq    %rsp, (%rdi)
    movq    %rbp, 8(%rdi)
    movq    %rax, 16(%rdi)
    movq    (%rsi), %rsp
    .cfi_def_cfa %rsp, 56
    .cfi_offset %rip, -8
    .cfi_offset %rbp, -16
    .cfi_offset %rbx, -24
    .cfi_offset %r12, -32
    .cfi_offset %r13, -40
    .cfi_offset %r14, -48
    .cfi_offset %r15, -56
    xorl    %eax, %eax
    pop_kept
    ret
    .cfi_endproc
    .size   pirn__switch_enter, . - pirn__switch_enter

/* int pirn__switch_return(from, host, word) */
    .globl  pirn__switch_return
    .hidden pirn__switch_return
    .type   pirn__switch_return, @function
    .p2align 4
pirn__switch_return:
    .cfi_startproc
    endbr64
    push_kept
    movq    %rsp, (%rdi)
    movl    %edx, %eax
    movq    8(%rsi), %rbp
    movq    (%rsi), %rsp
    .cfi_undefined %rip
    notrack jmp *16(%rsi)
    .cfi_endproc
    .size   pirn__switch_return, . - pirn__switch_return

/* The outermost frame of every context: rbx is the function, r12 its argument.
 * There is no return address, which is where backtraces end.  The nop lets an
 * unwinder that looks up the byte before the address of a context that has not
 * started yet find this frame too. */
    .type   switch_start, @function
    .p2align 4
    .cfi_startproc
    .cfi_undefined %rip
    .cfi_undefined %rbp
    nop
switch_start:
    endbr64
    movq    %r12, %rdi
    callq   *%rbx
    ud2
    .cfi_endproc
    .size   switch_start, . - switch_start

/* void *pirn__switch_make(top, start, arg)
 *
 * Two zero words stay above the frame for unwinders that guess; what remains
 * is a multiple of 16 at the call in switch_start. */
    .globl  pirn__switch_make
    .hidden pirn__switch_make
    .type   pirn__switch_make, @function
    .p2align 4
pirn__switch_make:
    .cfi_startproc
    endbr64
    leaq    switch_start(%rip), %rcx
    leaq    -72(%rdi), %rax
    movq    $0, 0(%rax)
    movq    $0, 8(%rax)
    movq    $0, 16(%rax)
    movq    %rdx, 24(%rax)
    movq    %rsi, 32(%rax)
    movq    $0, 40(%rax)
    movq    %rcx, 48(%rax)
    movq    $0, 56(%rax)
    movq    $0, 64(%rax)
    ret
    .cfi_endproc
    .size   pirn__switch_make, . - pirn__switch_make

/* uint64_t pirn__switch_fp_read(void): MXCSR low, x87 control word high. */
    .globl  pirn__switch_fp_read
    .hidden pirn__switch_fp_read
    .type   pirn__switch_fp_read, @function
    .p2align 4
pirn__switch_fp_read:
    .cfi_startproc
    endbr64
    stmxcsr -8(%rsp)
    fnstcw  -16(%rsp)
    movl    -8(%rsp), %eax
    movzwl  -16(%rsp), %ecx
    shlq    $32, %rcx
    orq     %rcx, %rax
    ret
    .cfi_endproc
    .size   pirn__switch_fp_read, . - pirn__switch_fp_read

/* void pirn__switch_fp_write(uint64_t words) */
    .globl  pirn__switch_fp_write
    .hidden pirn__switch_fp_write
    .type   pirn__switch_fp_write, @function
    .p2align 4
pirn__switch_fp_write:
    .cfi_startproc
    endbr64
    movl    %edi, -8(%rsp)
    shrq    $32, %rdi
    movw    %di, -16(%rsp)
    ldmxcsr -8(%rsp)
    fldcw   -16(%rsp)
    ret
    .cfi_endproc
    .size   pirn__switch_fp_write, . - pirn__switch_fp_write

    .section .note.GNU-stack, "", @progbits

/* GNU_PROPERTY_X86_FEATURE_1_AND with IBT alone. */
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long   4, 16, 5
    .asciz  "GNU"
    .long   0xc0000002, 4, 1, 0
