/* SPDX-License-Identifier: MIT */
/* tools/pirn/connection.h - one client of `pirn serve`: a fiber that reads
 * requests and answers them in order. */
#ifndef PIRN_TOOLS_CONNECTION_H
#define PIRN_TOOLS_CONNECTION_H

#include <pirn/pirn.h>

#include "exchange.h"
#include "roster.h"

/* What all connections of a server share. */
struct server {
    struct site site;
    struct roster roster;
    struct roster turned_away; /* being told that there is no room */
    struct http_limits limits;
    uint64_t header_ms; /* for one request, from its first byte to its last */
    bool log;
};

struct connection;

/* Put a client on the roster; it owns `tcp` from here.  -ENOMEM, or -EBUSY if
 * the roster is full: then `tcp` is still the caller's. */
int connection_new(struct server *server, pirn_tcp *tcp,
                   struct connection **out);

/* Give one up that never ran; closes its socket. */
void connection_free(struct connection *connection);

/* The fiber: serves until the client leaves, then frees the connection. */
int connection_run(void *connection);

/* Tell a client that there is no room and close `tcp`, on a fiber of its own;
 * without a word if too many are being told already. */
void connection_turn_away(struct server *server, pirn_tcp *tcp);

#endif /* PIRN_TOOLS_CONNECTION_H */
