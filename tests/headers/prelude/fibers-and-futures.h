/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/fibers-and-futures.md take for granted; each
 * is compiled by itself, so that one leans on the others' types only by name. */
extern void *job;
extern int settings;
pirn_fiber_fn worker;
