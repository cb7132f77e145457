/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/blocking.h takes for granted. */
extern int rc;
extern void *file;
int read_whole_file(void *arg);
