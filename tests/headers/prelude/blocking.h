/* SPDX-License-Identifier: MIT */
/* What the fragments of pirn/blocking.h and docs/guide/blocking.md take for
 * granted. */
extern int rc;
extern void *file;
int read_whole_file(void *arg);
struct folder;
pirn_blocking_fn measure;
