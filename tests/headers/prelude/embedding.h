/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/embedding.md take for granted. */
#include <poll.h>

pirn_fiber_fn worker;
pirn_failure_fn note_failure;
void serve_own(int fd);
