/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/sem.h takes for granted. */
struct file;
extern struct file *file;
extern int rc;
extern int upload(struct file *file);
