/* SPDX-License-Identifier: MIT */
/* src/sys/switch_aarch64.S - the context switch for AArch64, AAPCS64.
 *
 * A suspended context is its stack pointer; above it, upwards in pairs:
 *
 *     x29 x30, x19 x20, x21 x22, x23 x24, x25 x26, x27 x28,
 *     d8 d9, d10 d11, d12 d13, d14 d15
 *
 * It continues at x30.  Unwinders see the same picture at every instruction,
 * before and after the stack pointer changes hands.
 *
 * Where branch targets are enforced (BTI) only `ret` may land behind a call, so
 * builds with that protection end in `ret` and pay for a misprediction.
 */

#if defined(__ARM_FEATURE_BTI_DEFAULT) && __ARM_FEATURE_BTI_DEFAULT
#define LEAVE ret x9
#define WITH_BTI 1
#else
#define LEAVE br x9
#define WITH_BTI 0
#endif

/* Hints, so that they assemble for any processor and do nothing on old ones. */
#define BTI_CALL hint 34

    .text

/* int pirn__switch_raw(from, to, word) */
    .globl  pirn__switch_raw
    .hidden pirn__switch_raw
    .type   pirn__switch_raw, %function
    .p2align 4
pirn__switch_raw:
    .cfi_startproc
    BTI_CALL
    stp     x29, x30, [sp, #-160]!
    .cfi_adjust_cfa_offset 160
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x19, x20, [sp, #16]
    .cfi_rel_offset x19, 16
    .cfi_rel_offset x20, 24
    stp     x21, x22, [sp, #32]
    .cfi_rel_offset x21, 32
    .cfi_rel_offset x22, 40
    stp     x23, x24, [sp, #48]
    .cfi_rel_offset x23, 48
    .cfi_rel_offset x24, 56
    stp     x25, x26, [sp, #64]
    .cfi_rel_offset x25, 64
    .cfi_rel_offset x26, 72
    stp     x27, x28, [sp, #80]
    .cfi_rel_offset x27, 80
    .cfi_rel_offset x28, 88
    stp     d8, d9, [sp, #96]
    .cfi_rel_offset d8, 96
    .cfi_rel_offset d9, 104
    stp     d10, d11, [sp, #112]
    .cfi_rel_offset d10, 112
    .cfi_rel_offset d11, 120
    stp     d12, d13, [sp, #128]
    .cfi_rel_offset d12, 128
    .cfi_rel_offset d13, 136
    stp     d14, d15, [sp, #144]
    .cfi_rel_offset d14, 144
    .cfi_rel_offset d15, 152
    mov     x10, sp
    ldr     x11, [x1]
    str     x10, [x0]
    mov     w0, w2
    mov     sp, x11
    ldp     x19, x20, [sp, #16]
    ldp     x21, x22, [sp, #32]
    ldp     x23, x24, [sp, #48]
    ldp     x25, x26, [sp, #64]
    ldp     x27, x28, [sp, #80]
    ldp     d8, d9, [sp, #96]
    ldp     d10, d11, [sp, #112]
    ldp     d12, d13, [sp, #128]
    ldp     d14, d15, [sp, #144]
    ldp     x29, x9, [sp], #160
    .cfi_adjust_cfa_offset -160
    .cfi_restore x29
    .cfi_restore x19
    .cfi_restore x20
    .cfi_restore x21
    .cfi_restore x22
    .cfi_restore x23
    .cfi_restore x24
    .cfi_restore x25
    .cfi_restore x26
    .cfi_restore x27
    .cfi_restore x28
    .cfi_restore d8
    .cfi_restore d9
    .cfi_restore d10
    .cfi_restore d11
    .cfi_restore d12
    .cfi_restore d13
    .cfi_restore d14
    .cfi_restore d15
    .cfi_register x30, x9
    LEAVE
    .cfi_endproc
    .size   pirn__switch_raw, . - pirn__switch_raw

/* The outermost frame of every context: x19 is the function, x20 its argument.
 * There is no return address, which is where backtraces end.  The nop lets an
 * unwinder that looks up the instruction before the address of a context that has
 * not started yet find this frame too. */
    .type   switch_start, %function
    .p2align 4
    .cfi_startproc
    .cfi_undefined x30
    .cfi_undefined x29
    nop
switch_start:
    mov     x0, x20
    blr     x19
    brk     #0
    .cfi_endproc
    .size   switch_start, . - switch_start

/* void *pirn__switch_make(top, start, arg)
 *
 * Two zero words stay above the frame, a frame record without a parent. */
    .globl  pirn__switch_make
    .hidden pirn__switch_make
    .type   pirn__switch_make, %function
    .p2align 4
pirn__switch_make:
    .cfi_startproc
    BTI_CALL
    adr     x9, switch_start
    stp     xzr, xzr, [x0, #-16]!
    stp     xzr, xzr, [x0, #-16]!
    stp     xzr, xzr, [x0, #-16]!
    stp     xzr, xzr, [x0, #-16]!
    stp     xzr, xzr, [x0, #-16]!
    stp     xzr, xzr, [x0, #-16]!
    stp     xzr, xzr, [x0, #-16]!
    stp     xzr, xzr, [x0, #-16]!
    stp     xzr, xzr, [x0, #-16]!
    stp     x1, x2, [x0, #-16]!
    stp     xzr, x9, [x0, #-16]!
    ret
    .cfi_endproc
    .size   pirn__switch_make, . - pirn__switch_make

/* uint64_t pirn__switch_fp_read(void) */
    .globl  pirn__switch_fp_read
    .hidden pirn__switch_fp_read
    .type   pirn__switch_fp_read, %function
    .p2align 4
pirn__switch_fp_read:
    .cfi_startproc
    BTI_CALL
    mrs     x0, fpcr
    ret
    .cfi_endproc
    .size   pirn__switch_fp_read, . - pirn__switch_fp_read

/* void pirn__switch_fp_write(uint64_t words) */
    .globl  pirn__switch_fp_write
    .hidden pirn__switch_fp_write
    .type   pirn__switch_fp_write, %function
    .p2align 4
pirn__switch_fp_write:
    .cfi_startproc
    BTI_CALL
    msr     fpcr, x0
    ret
    .cfi_endproc
    .size   pirn__switch_fp_write, . - pirn__switch_fp_write

    .section .note.GNU-stack, "", %progbits

#if WITH_BTI
/* GNU_PROPERTY_AARCH64_FEATURE_1_AND with BTI alone. */
    .section .note.gnu.property, "a", %note
    .p2align 3
    .long   4, 16, 5
    .asciz  "GNU"
    .long   0xc0000000, 4, 1, 0
#endif
