/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/task.h takes for granted. */
extern void *job;
pirn_fiber_fn worker;
