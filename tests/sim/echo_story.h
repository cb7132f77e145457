/* SPDX-License-Identifier: MIT */
/* tests/sim/echo_story.h - an echo server and its clients. */
#ifndef PIRN_TESTS_SIM_ECHO_STORY_H
#define PIRN_TESTS_SIM_ECHO_STORY_H

#include "sim/net_fixture.h"

static inline int echo_serve(void *arg)
{
    pirn_tcp *conn = arg;
    char buf[256];
    ssize_t n;
    int rc = 0;

    /* Ends with the connection. */
    while ((n = net_read(conn, buf, 1 + sim_below(sizeof buf))) > 0 && rc == 0)
        rc = net_write(conn, buf, (size_t)n);
    pirn_tcp_close(conn);
    return 0;
}

/* Send a piece and read it back.  It fits the pipe: who writes does not read
 * meanwhile, and the server neither. */
static inline int echo_exchange(pirn_tcp *conn, const char *piece, size_t len)
{
    char back[300];
    int rc = net_write(conn, piece, len);

    if (rc == 0)
        rc = net_read_exact(conn, back, len);
    if (rc == 0)
        sim_check(memcmp(piece, back, len) == 0, "what comes back was sent");
    return rc;
}

/* One conversation; 0 if all came back. */
static inline int echo_converse(struct net *net, uint32_t number)
{
    char text[300];
    size_t len = 1 + sim_below(sizeof text);
    size_t most = 1 + sim_options()->buffer / 2;
    size_t piece = 0;
    pirn_tcp *conn;
    int rc = net_connect(net, &conn);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(number + i);
    for (size_t at = 0; at < len && rc == 0; at += piece) {
        piece = len - at < most ? len - at : most;
        rc = echo_exchange(conn, text + at, piece);
    }
    pirn_tcp_close(conn);
    return rc;
}

static inline int echo_talk(void *arg)
{
    struct net *net = arg;

    for (uint32_t i = 0; i < sim_options()->requests; i++) {
        int rc = net_retry(net, echo_converse, i);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static inline void echo_story(void)
{
    struct net net;

    net_begin(&net, echo_serve);
    net_clients(&net, echo_talk);
    net_end(&net);
}

#endif /* PIRN_TESTS_SIM_ECHO_STORY_H */
