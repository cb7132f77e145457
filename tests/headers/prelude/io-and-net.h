/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/io-and-net.md take for granted. */
#include <sys/socket.h>

pirn_fiber_fn handle;
pirn_fiber_fn writer;
pirn_fiber_fn server;
