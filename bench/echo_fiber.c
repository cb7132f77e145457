/* SPDX-License-Identifier: MIT */
/* bench/echo_fiber.c - the echo server of the benchmark as fibers.
 *
 *     echo_fiber [--deadline-ms N] [--workers N]
 *
 * A deadline of 0, the default, is none; 0 workers, the default, a current-thread
 * runtime.  Prints "port N" and serves until it is killed.
 */
#include "sample.h"
#include "server.h"

#include <pirn/pirn.h>

static uint64_t deadline_ms;

static pirn_deadline exchange_deadline(void)
{
    return deadline_ms == 0 ? PIRN_NEVER : pirn_after_ms(deadline_ms);
}

static int serve(void *arg)
{
    pirn_tcp *conn = arg;
    char buf[4096];
    ssize_t n;

    while ((n = pirn_tcp_read(conn, buf, sizeof buf, exchange_deadline())) >
           0) {
        int rc = pirn_tcp_write_all(conn, buf, (size_t)n, exchange_deadline());

        if (rc < 0)
            break;
    }
    pirn_tcp_close(conn);
    return 0;
}

static int start_session(pirn_tcp *conn)
{
    return pirn_go(serve, conn);
}

int main(int argc, char **argv)
{
    deadline_ms = sample_get_number(argc, argv, "--deadline-ms", 0);
    return server_run(argc, argv, start_session);
}
