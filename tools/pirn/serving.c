/* SPDX-License-Identifier: MIT */
/* tools/pirn/serving.c - accept, stop and drain.
 *
 * The fiber that accepts, those of the connections and whoever stops it all run
 * on any worker.  What they share is constant once serving_start() has begun to
 * spawn, or locks by itself, as the rosters do. */
#include "serving.h"

#include <errno.h>

void serving_init(struct serving *serving, size_t max_connections)
{
    roster_init(&serving->server.roster, max_connections);
    roster_init(&serving->server.turned_away, SERVING_TURN_AWAY_LIMIT);
}

void serving_deinit(struct serving *serving)
{
    roster_deinit(&serving->server.turned_away);
    roster_deinit(&serving->server.roster);
}

int serving_open(struct serving *serving, const char *address)
{
    return pirn_listener_open(address, NULL, &serving->listener);
}

static int accept_fiber(void *arg)
{
    struct serving *serving = arg;
    struct server *server = &serving->server;
    int rc;

    for (;;) {
        struct connection *connection;
        pirn_tcp *tcp;

        rc = pirn_listener_accept(serving->listener, PIRN_NEVER, &tcp);
        if (rc == -ENOMEM)
            continue; /* that client is gone, the next one may be luckier */
        if (rc < 0)
            break;
        rc = connection_new(server, tcp, &connection);
        if (rc < 0)
            connection_turn_away(server, tcp);
        else if (pirn_go(connection_run, connection) < 0)
            connection_free(connection);
    }
    pirn_listener_close(serving->listener);
    return rc == -ECANCELED ? 0 : rc;
}

int serving_start(struct serving *serving)
{
    int rc = pirn_go_with(accept_fiber, serving,
                          &(pirn_spawn_options){.name = "accept"},
                          &serving->acceptor);

    if (rc == 0)
        serving->acceptor_id = pirn_task_get_id(serving->acceptor);
    return rc;
}

void serving_stop(struct serving *serving)
{
    /* By its id: the handle may have been given up. */
    (void)!pirn_id_cancel(serving->acceptor_id);
    roster_close(&serving->server.roster);
}

void serving_abandon(struct serving *serving)
{
    roster_abandon(&serving->server.roster);
}

int serving_wait(struct serving *serving)
{
    int outcome = 0;
    int rc = pirn_task_join(serving->acceptor, PIRN_NEVER, &outcome);

    pirn_task_unref(serving->acceptor);
    return rc < 0 ? rc : outcome;
}

int serving_drain(struct serving *serving, uint64_t grace_ms, size_t *cut_off)
{
    struct roster *roster = &serving->server.roster;
    struct roster_departure departure;

    roster_close(roster);
    roster_departure_init(&departure, roster);
    int rc = pirn_await(&departure.future, pirn_after_ms(grace_ms));
    *cut_off = roster_count(roster);
    if (*cut_off == 0)
        return 0;
    return rc < 0 ? rc : -ECANCELED;
}
