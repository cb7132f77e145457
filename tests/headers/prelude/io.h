/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/io.h takes for granted. */
extern int descriptor;
extern char buf[512];
extern ssize_t n;
