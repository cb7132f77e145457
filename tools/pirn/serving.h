/* SPDX-License-Identifier: MIT */
/* tools/pirn/serving.h - a server, from its listener to its last connection.
 *
 * Without options, signals and what is printed: those are the command's.  In a
 * fiber:
 *
 *     rc = serving_open(serving, "127.0.0.1:0");
 *     rc = serving_start(serving);
 *     rc = serving_wait(serving);
 *     rc = serving_drain(serving, grace_ms, &cut_off);
 *
 * and from wherever it is decided serving_stop(), which ends the first wait,
 * and serving_abandon(), which ends the second.
 */
#ifndef PIRN_TOOLS_SERVING_H
#define PIRN_TOOLS_SERVING_H

#include <pirn/pirn.h>

#include "connection.h"

enum { SERVING_TURN_AWAY_LIMIT = 64 };

struct serving {
    struct server server;      /* in: what it serves, and its limits */
    pirn_listener *listener;   /* the accepting fiber's, once that runs */
    pirn_task *acceptor;       /* of the fiber that waits */
    pirn_task_id acceptor_id;
};

/* Make the rosters; site, limits and times are left to the caller. */
void serving_init(struct serving *serving, size_t max_connections);
void serving_deinit(struct serving *serving);

/* Listen.  As pirn_listener_open(). */
int serving_open(struct serving *serving, const char *address);

/* Accept connections, on a fiber of its own and each on another one.  As
 * pirn_go_with(); on error the listener is still the caller's. */
int serving_start(struct serving *serving);

/* Accept no more and send the idle connections home; any thread, repeatable. */
void serving_stop(struct serving *serving);

/* Wait for nobody any more; any thread, after serving_stop(). */
void serving_abandon(struct serving *serving);

/* Wait until no more connections are accepted: 0 if that was wanted, or why
 * not. */
int serving_wait(struct serving *serving);

/* Then wait for the requests in flight.  0 if all connections have ended, or a
 * negative code with their number in *cut_off: what the end of the runtime will
 * cut off. */
int serving_drain(struct serving *serving, uint64_t grace_ms, size_t *cut_off);

#endif /* PIRN_TOOLS_SERVING_H */
