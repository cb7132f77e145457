/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/histogram.h takes for granted. */
extern pirn_runtime *rt;
