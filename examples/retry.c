/* SPDX-License-Identifier: MIT */
/* examples/retry.c - a client that asks again, and whether somebody pays twice.
 *
 *     retry                 buy something, over this machine's network
 *     retry --search        the same program in 500 simulated worlds
 *     retry --forgetful     likewise, with a shop that has a bug
 *     retry --self-test     both: the bug is found, and without it nothing is
 *
 * The network may break a connection at any moment, so the client cannot know
 * whether an order that was not answered has arrived: it orders again.  A shop
 * that does not remember its orders then charges twice; but only if it is the
 * answer that gets lost, which no test on one machine will ever see. */
#include <pirn/pirn.h>
#include <stdio.h>
#include <string.h>

enum { ORDERS = 3, PATIENCE_MS = 300, PAUSE_MS = 20, TRIES = 10000 };

struct shop {
    bool forgetful; /* the bug */
    int charged[ORDERS];
    pirn_listener *listener;
    char address[PIRN_ADDR_SIZE];
};

/* One order on a connection: its number comes, and goes back when it has been
 * charged. */
static void serve_one(struct shop *shop, pirn_tcp *conn)
{
    pirn_deadline deadline = pirn_after_ms(PATIENCE_MS);
    unsigned char order;

    if (pirn_tcp_read_exact(conn, &order, 1, deadline) < 0 || order >= ORDERS)
        return;
    if (shop->forgetful || shop->charged[order] == 0)
        shop->charged[order]++;
    /* If it does not arrive, the client will ask again. */
    (void)!pirn_tcp_write_all(conn, &order, 1, deadline);
}

static int serve(void *arg)
{
    struct shop *shop = arg;
    pirn_tcp *conn;
    int rc;

    /* Ends when it is cancelled. */
    while ((rc = pirn_listener_accept(shop->listener, PIRN_NEVER, &conn)) == 0) {
        serve_one(shop, conn);
        pirn_tcp_close(conn);
    }
    return rc;
}

static int order_once(struct shop *shop, unsigned char order)
{
    pirn_deadline deadline = pirn_after_ms(PATIENCE_MS);
    unsigned char answer;
    pirn_tcp *conn;
    ssize_t rc = pirn_tcp_connect(shop->address, NULL, deadline, &conn);

    if (rc < 0)
        return (int)rc;
    rc = pirn_tcp_write_all(conn, &order, 1, deadline);
    if (rc >= 0)
        rc = pirn_tcp_read_exact(conn, &answer, 1, deadline);
    pirn_tcp_close(conn);
    return rc < 0 ? (int)rc : 0;
}

static int order_until_it_works(struct shop *shop, unsigned char order)
{
    int rc = order_once(shop, order);

    for (int i = 0; i < TRIES && rc < 0; i++) {
        rc = pirn_sleep(pirn_after_ms(PAUSE_MS));
        if (rc < 0)
            return rc;
        rc = order_once(shop, order);
    }
    return rc;
}

static int trade(void *arg)
{
    struct shop *shop = arg;
    pirn_addr address;
    pirn_task *server;
    int outcome;
    int rc = pirn_listener_open("127.0.0.1:0", NULL, &shop->listener);

    if (rc < 0)
        return rc;
    pirn_listener_address(shop->listener, &address);
    (void)pirn_addr_format(&address, shop->address, sizeof shop->address);
    rc = pirn_go_with(serve, shop, NULL, &server);
    for (unsigned char order = 0; order < ORDERS && rc == 0; order++)
        rc = order_until_it_works(shop, order);
    if (rc == 0) {
        pirn_task_cancel(server);
        rc = pirn_task_join(server, PIRN_NEVER, &outcome);
        pirn_task_unref(server);
    }
    pirn_listener_close(shop->listener);
    return rc;
}

/* The whole program, in whatever world. */
static int buy(void *arg)
{
    const bool *forgetful = arg;
    struct shop shop = {.forgetful = *forgetful};
    int rc = pirn_run(trade, &shop);

    for (int order = 0; order < ORDERS && rc == 0; order++) {
        pirn_sim_check(shop.charged[order] != 0, "who orders, pays");
        pirn_sim_check(shop.charged[order] < 2, "nobody pays twice");
    }
    return rc;
}

/* Try it in many worlds, and say what they show. */
static int search(bool forgetful)
{
    const pirn_sim_case purchase = {.program = buy, .arg = &forgetful};
    pirn_sim_result result;
    char text[PIRN_SIM_TEXT_SIZE];
    int rc = pirn_sim_search(&purchase, 1, 500, &result);

    if (rc < 0 && rc != PIRN_EFAILED)
        return rc;
    (void)pirn_sim_format(&result, text, sizeof text);
    (void)fputs(text, stdout);
    return rc;
}

int main(int argc, char **argv)
{
    const char *word = argc == 2 ? argv[1] : "";
    bool right = false;

    if (strcmp(word, "--search") == 0)
        return pirn_exit_code(search(false));
    if (strcmp(word, "--forgetful") == 0)
        return pirn_exit_code(search(true));
    if (strcmp(word, "--self-test") == 0)
        return search(true) == PIRN_EFAILED ? pirn_exit_code(search(false)) : 1;
    return pirn_exit_code(buy(&right));
}
