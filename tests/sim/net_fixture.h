/* SPDX-License-Identifier: MIT */
/* tests/sim/net_fixture.h - a server and clients for stories.
 *
 * The server's accept loop and each client are fibers; each connection is
 * served by a fiber of its own.  A client repeats what has failed: in calm
 * weather it must succeed.
 */
#ifndef PIRN_TESTS_SIM_NET_FIXTURE_H
#define PIRN_TESTS_SIM_NET_FIXTURE_H

#include <errno.h>

#include "engine/sim.h"

enum { NET_PATIENCE_MS = 3000, NET_PAUSE_MS = 20, NET_CLIENTS = 16 };

struct net {
    struct sim_program program;
    pirn_listener *listener;
    pirn_addr address;
    pirn_fiber_fn *serve; /* owns its argument, a pirn_tcp */
    pirn_fiber_fn *client;
    pirn_task *acceptor;
};

static inline pirn_deadline net_patience(void)
{
    return pirn_after_ms(NET_PATIENCE_MS);
}

/* Operations, straight-line or as watched futures. */

/* What has begun in calm weather is not that slow: an event was lost. */
static inline ssize_t net_judge(bool calm, ssize_t n)
{
    sim_check(!calm || n != -ETIMEDOUT, "nothing times out when it is calm");
    return n;
}

static inline ssize_t net_await(pirn_tcp_op *op)
{
    int rc = sim_await(&op->future, net_patience());

    return rc < 0 ? rc : op->n;
}

static inline ssize_t net_read(pirn_tcp *conn, void *buf, size_t len)
{
    bool calm = sim_is_calm();
    pirn_tcp_op op;

    if (sim_chance(500))
        return net_judge(calm, pirn_tcp_read(conn, buf, len, net_patience()));
    pirn_tcp_read_init(&op, conn, buf, len);
    return net_judge(calm, net_await(&op));
}

static inline int net_read_exact(pirn_tcp *conn, void *buf, size_t len)
{
    bool calm = sim_is_calm();
    pirn_tcp_op op;
    ssize_t n;

    if (sim_chance(500)) {
        n = pirn_tcp_read_exact(conn, buf, len, net_patience());
    } else {
        pirn_tcp_read_exact_init(&op, conn, buf, len);
        n = net_await(&op);
    }
    return net_judge(calm, n) < 0 ? (int)n : 0;
}

static inline int net_write(pirn_tcp *conn, const void *buf, size_t len)
{
    bool calm = sim_is_calm();
    pirn_tcp_op op;
    ssize_t n;

    if (sim_chance(500)) {
        n = pirn_tcp_write_all(conn, buf, len, net_patience());
    } else {
        pirn_tcp_write_all_init(&op, conn, buf, len);
        n = net_await(&op);
    }
    return net_judge(calm, n) < 0 ? (int)n : 0;
}

static inline int net_connect(struct net *net, pirn_tcp **out)
{
    pirn_connect_op op;
    int rc;

    *out = NULL;
    pirn_connect_init(&op, &net->address, NULL);
    rc = sim_await(&op.future, net_patience());
    if (rc < 0)
        return rc;
    *out = op.conn;
    return op.rc;
}

/* Try until it works; only a cancellation, or the end of the runtime, ends it
 * before. */
static inline int net_retry(struct net *net,
                            int (*fn)(struct net *net, uint32_t number),
                            uint32_t number)
{
    int rc = fn(net, number);

    /* Ends: the world gets calm. */
    while (rc < 0 && rc != -ECANCELED && rc != PIRN_ESHUTDOWN) {
        rc = sim_sleep_ms(1 + sim_below(NET_PAUSE_MS));
        if (rc == 0)
            rc = fn(net, number);
    }
    return rc;
}

/* The server. */

static inline int net_accept_all(void *arg)
{
    struct net *net = arg;
    pirn_listener *listener = pirn_listener_ref(net->listener);
    pirn_tcp *conn;
    int rc;

    /* Ends when it is cancelled, or the listener closed. */
    while ((rc = pirn_listener_accept(listener, PIRN_NEVER, &conn)) == 0 ||
           rc == -ENOMEM || rc == -ENOSPC) {
        if (rc == 0 && pirn_go(net->serve, conn) < 0)
            pirn_tcp_close(conn);
    }
    pirn_listener_unref(listener);
    return 0;
}

static inline int net_listen(struct net *net)
{
    int rc = pirn_listener_open("127.0.0.1:0", NULL, &net->listener);

    while (rc == -EMFILE) {
        rc = sim_sleep_ms(NET_PAUSE_MS);
        if (rc == 0)
            rc = pirn_listener_open("127.0.0.1:0", NULL, &net->listener);
    }
    if (rc == 0)
        pirn_listener_address(net->listener, &net->address);
    return rc;
}

static inline int net_start(void *arg)
{
    struct net *net = arg;
    int rc = net_listen(net);

    return rc < 0 ? rc
                  : pirn_go_with(net_accept_all, net, NULL, &net->acceptor);
}

static inline void net_begin(struct net *net, pirn_fiber_fn *serve)
{
    *net = (struct net){.program = sim_program_begin(), .serve = serve};
    sim_check(sim_program_run(&net->program, net_start, net) == 0,
              "the server starts");
}

/* Clients, all at once; the story goes on when all have ended well. */

static inline int net_run_clients(void *arg)
{
    struct net *net = arg;
    pirn_task *tasks[NET_CLIENTS];
    uint32_t count = sim_options()->clients;
    int outcome;

    for (uint32_t i = 0; i < count; i++) {
        int rc = pirn_go_with(net->client, net, NULL, &tasks[i]);

        sim_check(rc == 0, "a client starts");
        if (rc < 0)
            count = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        int rc = pirn_task_join(tasks[i], PIRN_NEVER, &outcome);

        sim_check(rc == 0 && outcome == 0, "a client ends well");
        pirn_task_unref(tasks[i]);
    }
    return 0;
}

static inline void net_clients(struct net *net, pirn_fiber_fn *client)
{
    net->client = client;
    sim_check(sim_program_run(&net->program, net_run_clients, net) == 0,
              "the clients run");
}

static inline void net_end(struct net *net)
{
    enum { SHUTDOWN_MS = 20000 };

    pirn_listener_close(net->listener);
    pirn_task_unref(net->acceptor);
    sim_program_shutdown(&net->program, SHUTDOWN_MS);
    sim_check(net->program.report.in_time, "shutdown is in time");
    sim_program_end(&net->program);
}

#endif /* PIRN_TESTS_SIM_NET_FIXTURE_H */
