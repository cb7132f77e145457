/* SPDX-License-Identifier: MIT */
/* examples/echo.c - an echo server: one fiber per connection, code that reads
 * from top to bottom.
 *
 *     echo [ADDR:PORT]        then: nc 127.0.0.1 7000
 */
#include <pirn/pirn.h>

#include "self_test.h"

/* Owns its connection, which is closed on every way out. */
static int echo(void *arg)
{
    pirn_tcp *conn = arg;
    char buf[4096];
    ssize_t n;

    /* Each exchange has one deadline: a peer that does not read holds the fiber
     * no longer than one that does not write. */
    do {
        pirn_deadline deadline = pirn_after_ms(30000);

        n = pirn_tcp_read(conn, buf, sizeof buf, deadline);
        if (n > 0 && pirn_tcp_write_all(conn, buf, (size_t)n, deadline) < 0)
            break;
    } while (n > 0);
    pirn_tcp_close(conn);
    return 0;
}

/* Accept until something is wrong, or until this fiber is cancelled. */
static int listen_loop(void *arg)
{
    pirn_listener *listener;
    pirn_tcp *conn;
    int rc = pirn_listener_open(arg, NULL, &listener);

    if (rc < 0)
        return rc;
    while ((rc = pirn_listener_accept(listener, PIRN_NEVER, &conn)) == 0)
        if (pirn_go(echo, conn) < 0)
            pirn_tcp_close(conn);
    pirn_listener_close(listener);
    return rc;
}

/* The server as one fiber, a client as another. */
static int self_test(void *address)
{
    int rc = pirn_go(listen_loop, address);

    return rc < 0 ? rc : self_test_echo(address);
}

int main(int argc, char **argv)
{
    char address[PIRN_ADDR_SIZE] = "127.0.0.1:7000";
    int rc;

    if (self_test_wanted(argc, argv)) {
        self_test_address(address);
        rc = pirn_run(self_test, address);
    } else {
        if (argc > 1)
            (void)snprintf(address, sizeof address, "%s", argv[1]);
        rc = pirn_run(listen_loop, address);
    }
    if (rc < 0)
        (void)fprintf(stderr, "echo: %s\n", pirn_err_text(rc));
    return pirn_exit_code(rc);
}
