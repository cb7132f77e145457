/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/getting-started.md take for granted. */
pirn_fiber_fn first;
