/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/time.h takes for granted. */
extern int rc;
