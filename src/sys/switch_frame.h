/* SPDX-License-Identifier: MIT */
/* src/sys/switch_frame.h - what each processor's file provides to switch.c. */
#ifndef PIRN_SYS_SWITCH_FRAME_H
#define PIRN_SYS_SWITCH_FRAME_H

#include "sys/switch.h"

/* Build the frame from which pirn__switch_raw() starts start(arg), which never
 * returns, in the bytes below `top`, a multiple of 16; returns its stack pointer. */
void *pirn__switch_make(void *top, pirn__context_fn *start, void *arg);

/* The floating-point control words: MXCSR and the x87 control word, or FPCR. */
uint64_t pirn__switch_fp_read(void);
void pirn__switch_fp_write(uint64_t words);

#endif /* PIRN_SYS_SWITCH_FRAME_H */
