/* SPDX-License-Identifier: MIT */
/* tools/pirn/connection.c - one fiber per client.
 *
 * Requests are read into one small buffer and parsed as they come.  What a
 * client sends ahead stays in the buffer, or in the socket, until the answer
 * before it has been sent: so answers are in order and memory is bounded. */
#include "connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUF_SIZE = 4096,
    GOODBYE_MS = 1000,
    GOODBYE_SIZE = 256 * 1024 /* read and thrown away after the last answer */
};

struct connection {
    struct guest guest;
    struct server *server;
    pirn_tcp *tcp;
    struct http_reader *reader;
    struct date_cache date;
    size_t start; /* buf[start..end) has not been parsed */
    size_t end;
    char buf[BUF_SIZE];
};

/* What came of waiting for a request. */
enum arrival {
    ARRIVAL_REQUEST, /* a whole one */
    ARRIVAL_BROKEN,  /* nonsense, or more than is allowed */
    ARRIVAL_LATE,    /* begun but not finished in time */
    ARRIVAL_NONE     /* the client is gone, idle too long, or asked to go */
};

/* The buffer is empty: read more.  As pirn_tcp_read(). */
static ssize_t refill(struct connection *connection, pirn_deadline deadline)
{
    ssize_t n =
        pirn_tcp_read(connection->tcp, connection->buf, BUF_SIZE, deadline);

    connection->start = 0;
    connection->end = n > 0 ? (size_t)n : 0;
    return n;
}

static enum http_progress parse(struct connection *connection)
{
    enum http_progress progress;

    connection->start += http_reader_feed(
        connection->reader, connection->buf + connection->start,
        connection->end - connection->start, &progress);
    return progress;
}

/* Wait for the first bytes of the next request, which is when a client may be
 * sent away. */
static bool wait_for_bytes(struct connection *connection)
{
    struct roster *roster = &connection->server->roster;

    if (connection->start < connection->end)
        return true;
    if (!roster_rest(roster, &connection->guest))
        return false;
    ssize_t n =
        refill(connection, pirn_after_ms(connection->server->site.idle_ms));
    return roster_work(&connection->guest) && n > 0;
}

static enum arrival read_request(struct connection *connection)
{
    if (!wait_for_bytes(connection))
        return ARRIVAL_NONE;
    enum http_progress progress = parse(connection);
    if (progress == HTTP_PROGRESS_DONE)
        return ARRIVAL_REQUEST;

    /* Ends: the deadline stands for all of these reads together. */
    pirn_deadline deadline = pirn_after_ms(connection->server->header_ms);
    while (progress == HTTP_PROGRESS_MORE) {
        ssize_t n = refill(connection, deadline);

        if (n == -ETIMEDOUT)
            return ARRIVAL_LATE;
        if (n <= 0)
            return ARRIVAL_NONE;
        progress = parse(connection);
    }
    return progress == HTTP_PROGRESS_DONE ? ARRIVAL_REQUEST : ARRIVAL_BROKEN;
}

/* One line for a request, with nothing in it that a terminal would obey.  It is
 * one call of stdio, so that lines of several workers do not mix. */
static void log_exchange(const struct connection *connection,
                         const struct exchange *exchange)
{
    const struct http_message *message = exchange->message;
    struct http_slice target = {"-", 1};
    char client[PIRN_ADDR_SIZE] = "-";
    char shown[256];
    size_t len = 0;
    pirn_addr peer;

    if (pirn_tcp_peer(connection->tcp, &peer) == 0)
        (void)pirn_addr_format(&peer, client, sizeof client);
    if (message != NULL)
        target = message->target;
    for (; len < target.len && len < sizeof shown - 1; len++) {
        char c = target.text[len];

        shown[len] = c > ' ' && c < 127 ? c : '?';
    }
    shown[len] = '\0';
    (void)fprintf(stderr, "%s \"%s %s\" %d %" PRIu64 "\n", client,
                  message == NULL ? "-" : message->method, shown,
                  exchange->status, exchange->sent);
}

/* Closing with unread bytes in the socket would reset the connection and could
 * take the last answer away from the client.  So end this side, and read until
 * the client has ended its own; within bounds. */
static void say_goodbye(pirn_tcp *tcp)
{
    pirn_deadline deadline = pirn_after_ms(GOODBYE_MS);
    char waste[BUF_SIZE];

    if (pirn_tcp_shutdown(tcp, PIRN_HALF_WRITE) < 0)
        return;
    for (size_t total = 0; total < GOODBYE_SIZE;) {
        ssize_t n = pirn_tcp_read(tcp, waste, sizeof waste, deadline);

        if (n <= 0)
            return;
        total += (size_t)n;
    }
}

static int status_of(const struct connection *connection, enum arrival arrival)
{
    return arrival == ARRIVAL_LATE ? 408
                                   : http_reader_error(connection->reader);
}

/* Serve one request; false when the connection should end. */
static bool serve_request(struct connection *connection)
{
    struct server *server = connection->server;
    struct exchange exchange = {
        .site = &server->site,
        .tcp = connection->tcp,
        .date = &connection->date,
    };
    enum arrival arrival = read_request(connection);
    int rc;

    if (arrival == ARRIVAL_NONE)
        return false;
    if (arrival == ARRIVAL_REQUEST) {
        exchange.message = http_reader_message(connection->reader);
        exchange.keep_alive =
            exchange.message->keep_alive && !roster_is_closed(&server->roster);
        rc = exchange_answer(&exchange);
    } else {
        rc = exchange_refuse(&exchange, status_of(connection, arrival));
    }
    if (server->log)
        log_exchange(connection, &exchange);
    if (rc == 0 && exchange.keep_alive)
        return true;
    if (rc == 0)
        say_goodbye(connection->tcp);
    return false;
}

int connection_new(struct server *server, pirn_tcp *tcp,
                   struct connection **out)
{
    struct connection *connection = malloc(sizeof *connection);

    *out = NULL;
    if (connection == NULL)
        return -ENOMEM;
    connection->reader = http_reader_new(HTTP_KIND_REQUEST, &server->limits);
    if (connection->reader == NULL) {
        free(connection);
        return -ENOMEM;
    }
    if (!roster_admit(&server->roster, &connection->guest)) {
        http_reader_free(connection->reader);
        free(connection);
        return -EBUSY;
    }
    connection->server = server;
    connection->tcp = tcp;
    connection->date.second = 0;
    connection->start = 0;
    connection->end = 0;
    *out = connection;
    return 0;
}

void connection_free(struct connection *connection)
{
    struct roster *roster = &connection->server->roster;

    pirn_tcp_close(connection->tcp);
    http_reader_free(connection->reader);
    roster_leave(roster, &connection->guest);
    free(connection);
}

int connection_run(void *arg)
{
    struct connection *connection = arg;
    bool goes_on = true;

    roster_arrive(&connection->server->roster, &connection->guest);
    /* An answer is written whole; waiting to fill segments only delays it. */
    if (pirn_tcp_set_nodelay(connection->tcp, true) < 0)
        goes_on = false;
    while (goes_on)
        goes_on = serve_request(connection);
    connection_free(connection);
    return 0;
}

/* A client there is no room for. */
struct visitor {
    struct guest guest;
    struct server *server;
    pirn_tcp *tcp;
};

static void free_visitor(struct visitor *visitor)
{
    pirn_tcp_close(visitor->tcp);
    roster_leave(&visitor->server->turned_away, &visitor->guest);
    free(visitor);
}

static int visitor_fiber(void *arg)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                 "Server: pirn\r\n"
                                 "Connection: close\r\n"
                                 "Retry-After: 1\r\n"
                                 "Content-Length: 0\r\n\r\n";
    struct visitor *visitor = arg;

    if (pirn_tcp_write_all(visitor->tcp, answer, sizeof answer - 1,
                           pirn_after_ms(GOODBYE_MS)) == 0)
        say_goodbye(visitor->tcp);
    free_visitor(visitor);
    return 0;
}

void connection_turn_away(struct server *server, pirn_tcp *tcp)
{
    struct visitor *visitor = malloc(sizeof *visitor);

    if (visitor == NULL ||
        !roster_admit(&server->turned_away, &visitor->guest)) {
        free(visitor);
        pirn_tcp_close(tcp);
        return;
    }
    visitor->server = server;
    visitor->tcp = tcp;
    if (pirn_go(visitor_fiber, visitor) < 0)
        free_visitor(visitor);
}
