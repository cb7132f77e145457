/* SPDX-License-Identifier: MIT */
/* tests/sim/shared_sim.c - a connection that several tasks use, and that one of
 * them closes at any moment.
 *
 * Of each client, some fibers read and some write; another one, or a thread
 * outside, closes the connection, or ends its halves, while they wait.
 */
#include "sim/net_fixture.h"

enum { USERS = 4, PIECE = 64, LIFE_MS = 15 };

struct shared {
    pirn_tcp *conn; /* the users' reference */
    bool closed;
    uint32_t users;
};

/* What a user may be told. */
static bool is_end(const struct shared *shared, ssize_t n)
{
    return n == 0 || n == PIRN_EEOF || n == -ECONNRESET || n == -EPIPE ||
           n == -EHOSTUNREACH || n == -ETIMEDOUT || n == PIRN_ESHUTDOWN ||
           (n == PIRN_ECLOSED && shared->closed);
}

static int read_some(void *arg)
{
    struct shared *shared = arg;
    char buf[PIECE];
    ssize_t n = 1;

    /* Ends with the connection, or its deadline. */
    while (n > 0)
        n = pirn_tcp_read(shared->conn, buf, sizeof buf, net_patience());
    sim_check(is_end(shared, n), "a reader is told why it ends");
    shared->users--;
    return 0;
}

static int write_some(void *arg)
{
    struct shared *shared = arg;
    char buf[PIECE] = "";
    ssize_t n = 1;

    /* As above. */
    while (n > 0)
        n = pirn_tcp_write(shared->conn, buf, 1 + sim_below(PIECE),
                           net_patience());
    sim_check(is_end(shared, n), "a writer is told why it ends");
    shared->users--;
    return 0;
}

static void close_it(struct shared *shared)
{
    shared->closed = true;
    pirn_tcp_close(pirn_tcp_ref(shared->conn));
}

static void close_outside(void *arg)
{
    struct shared *shared = arg;

    sim_pause("outside", 0);
    close_it(shared);
    shared->users--;
}

static void end_halves(struct shared *shared)
{
    int rc = pirn_tcp_shutdown(shared->conn, sim_chance(500) ? PIRN_HALF_WRITE
                                                             : PIRN_HALF_BOTH);

    sim_check(rc == 0 || rc == -ENOTCONN, "a half can be ended");
}

static int use(struct shared *shared)
{
    int rc = 0;

    for (uint32_t i = 0; i < USERS && rc == 0; i++) {
        rc = pirn_go(sim_chance(500) ? read_some : write_some, shared);
        shared->users += rc == 0;
    }
    sim_check(rc == 0, "a user starts");
    rc = sim_sleep_ms(sim_below(LIFE_MS));
    if (rc == 0 && sim_chance(300)) {
        end_halves(shared);
        rc = sim_sleep_ms(sim_below(LIFE_MS));
    }
    if (sim_chance(300)) {
        shared->users++;
        sim_thread(close_outside, shared);
    } else {
        close_it(shared);
    }
    /* They are woken by the close and look once more. */
    while (shared->users > 0 && rc == 0)
        rc = sim_sleep_ms(1);
    return rc;
}

static int live(struct net *net, uint32_t number)
{
    struct shared shared = {0};
    int rc = net_connect(net, &shared.conn);

    (void)number;
    if (rc < 0)
        return rc;
    rc = use(&shared);
    pirn_tcp_unref(shared.conn);
    return rc;
}

static int be_client(void *arg)
{
    struct net *net = arg;
    int rc = 0;

    for (uint32_t i = 0; i < sim_options()->requests && rc == 0; i++)
        rc = net_retry(net, live, i);
    return rc;
}

/* Sends back what comes, and stops when it cannot. */
static int serve(void *arg)
{
    pirn_tcp *conn = arg;
    char buf[PIECE];
    ssize_t n;

    /* Ends with the connection, or when nothing moves any more. */
    while ((n = pirn_tcp_read(conn, buf, sizeof buf, net_patience())) > 0) {
        if (pirn_tcp_write_all(conn, buf, (size_t)n, net_patience()) < 0)
            break;
    }
    pirn_tcp_close(conn);
    return 0;
}

static void story(void)
{
    struct net net;

    net_begin(&net, serve);
    net_clients(&net, be_client);
    net_end(&net);
}

/* Goal: a close ends every wait on the connection, and the descriptor goes
 * once, when nobody uses it any more.  Method: a run for each seed. */
TEST(shared_connection_closes_for_all)
{
    sim_expect_clean("shared_connection_closes_for_all", story, NULL,
                     test_size(30, 400, 20000));
}
