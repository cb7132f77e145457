/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/runtime.h takes for granted. */
pirn_fiber_fn start;
