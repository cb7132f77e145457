/* SPDX-License-Identifier: MIT */
/* bench/server.c - see server.h. */
#include "server.h"

#include <pirn/pirn.h>

#include <stdio.h>

#include "sample.h"

static int (*start_session)(pirn_tcp *conn);

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
        if (start_session(conn) < 0)
            pirn_tcp_close(conn);
    pirn_listener_close(listener);
    return rc;
}

int server_run(int argc, char **argv, int (*start)(pirn_tcp *conn))
{
    pirn_runtime_options options = {
        .workers = (uint32_t)sample_get_number(argc, argv, "--workers", 0),
    };

    start_session = start;
    return pirn_exit_code(pirn_run_with(listen_loop, NULL, &options, NULL));
}
