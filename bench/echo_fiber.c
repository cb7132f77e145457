/* SPDX-License-Identifier: MIT */
/* bench/echo_fiber.c - the echo server of the benchmark as fibers.
 *
 *     echo_fiber [--deadline-ms N] [--workers N]
 *
 * A deadline of 0, the default, is none; 0 workers, the default, a current-thread
 * runtime.  Prints "port N" and serves until it is killed.
 */
#include "sample.h"

#include <pirn/pirn.h>

#include <stdio.h>

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

static int listen_loop(void *arg)
{
    pirn_listener *listener;
    pirn_addr address;
    pirn_tcp *conn;
    int rc = pirn_listener_open("127.0.0.1:0", NULL, &listener);

    (void)arg;
    if (rc < 0)
        return rc;
    pirn_listener_address(listener, &address);
    printf("port %u\n", (unsigned)pirn_addr_port(&address));
    fflush(stdout);
    while ((rc = pirn_listener_accept(listener, PIRN_NEVER, &conn)) == 0)
        if (pirn_go(serve, conn) < 0)
            pirn_tcp_close(conn);
    pirn_listener_close(listener);
    return rc;
}

int main(int argc, char **argv)
{
    pirn_runtime_options options = {
        .workers = (uint32_t)sample_get_number(argc, argv, "--workers", 0),
    };

    deadline_ms = sample_get_number(argc, argv, "--deadline-ms", 0);
    return pirn_exit_code(pirn_run_with(listen_loop, NULL, &options, NULL));
}
