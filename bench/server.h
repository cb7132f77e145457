/* SPDX-License-Identifier: MIT */
/* bench/server.h - a server that accepts in a fiber, until it is killed. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <pirn/net.h>

/* With --workers N among the arguments in a runtime of N workers; else, or with
 * 0, in a current-thread runtime.  Prints "port N" and calls `start` for each
 * connection, which is closed if that fails.  Returns the program's exit code. */
int server_run(int argc, char **argv, int (*start)(pirn_tcp *conn));

#endif /* BENCH_SERVER_H */
