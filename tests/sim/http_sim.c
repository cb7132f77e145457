/* SPDX-License-Identifier: MIT */
/* tests/sim/http_sim.c - requests and responses in bad weather.
 *
 * A client asks for so many bytes; the server has them made on the blocking
 * pool.  Connections are kept for several requests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "sim/net_fixture.h"

enum { HEAD_SIZE = 128, BODY_SIZE = 600 };

/* Read up to and with an empty line; the length, 0 at the end, or a code. */
static ssize_t read_head(pirn_tcp *conn, char *head)
{
    size_t len = 0;

    while (len < HEAD_SIZE - 1) {
        ssize_t n = net_read(conn, head + len, 1);

        if (n <= 0)
            return n;
        head[++len] = '\0';
        if (len >= 4 && strcmp(head + len - 4, "\r\n\r\n") == 0)
            return (ssize_t)len;
    }
    return -ENOBUFS;
}

struct response {
    uint32_t number; /* what was asked for */
    size_t len;
    char body[BODY_SIZE];
};

static char byte_of(uint32_t number, size_t i)
{
    return (char)(number * 7 + i);
}

/* On a thread of the pool. */
static int make_body(void *arg)
{
    struct response *response = arg;
    sim_block_ms(sim_below(5));
    response->len = response->number % BODY_SIZE;
    for (size_t i = 0; i < response->len; i++)
        response->body[i] = byte_of(response->number, i);
    return 0;
}

/* Both parts in one call, as far as that goes. */
static int write_both(pirn_tcp *conn, const char *head, size_t head_len,
                      const struct response *response)
{
    const struct iovec vec[] = {
        {(char *)(uintptr_t)head, head_len},
        {(char *)(uintptr_t)response->body, response->len},
    };
    ssize_t n = pirn_tcp_writev(conn, vec, 2, net_patience());
    size_t done = n < 0 ? 0 : (size_t)n;
    int rc = n < 0 ? (int)n : 0;

    if (rc == 0 && done < head_len) {
        rc = net_write(conn, head + done, head_len - done);
        done = head_len;
    }
    if (rc == 0 && done < head_len + response->len)
        rc = net_write(conn, response->body + (done - head_len),
                       response->len - (done - head_len));
    return rc;
}

static int respond(pirn_tcp *conn, uint32_t number)
{
    struct response response = {.number = number};
    char head[HEAD_SIZE];
    int len;
    int rc = pirn_blocking_run(make_body, &response);

    if (rc < 0)
        return rc;
    len = snprintf(head, sizeof head,
                   "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                   response.len);
    return write_both(conn, head, (size_t)len, &response);
}

static int serve(void *arg)
{
    pirn_tcp *conn = arg;
    char head[HEAD_SIZE];
    int rc = 0;

    /* Ends with the connection. */
    while (rc == 0 && read_head(conn, head) > 0) {
        sim_check(strncmp(head, "GET /", 5) == 0, "a request is whole");
        rc = respond(conn, (uint32_t)strtoul(head + 5, NULL, 10));
    }
    pirn_tcp_close(conn);
    return 0;
}

static int check_response(pirn_tcp *conn, uint32_t number)
{
    char head[HEAD_SIZE], body[BODY_SIZE];
    const char *field;
    size_t len;
    ssize_t n = read_head(conn, head);
    int rc;

    if (n <= 0)
        return n < 0 ? (int)n : PIRN_EEOF;
    field = strstr(head, "Length: ");
    sim_check(field != NULL, "a response is whole");
    if (field == NULL)
        return -EPROTO;
    len = strtoul(field + 8, NULL, 10);
    sim_check(len == number % BODY_SIZE, "it is what was asked for");
    rc = net_read_exact(conn, body, len);
    for (size_t i = 0; rc == 0 && i < len; i++)
        sim_check(body[i] == byte_of(number, i), "the body is what was sent");
    return rc;
}

/* A few requests on one connection. */
static int visit(struct net *net, uint32_t first)
{
    uint32_t count = 1 + sim_below(3);
    char request[HEAD_SIZE];
    pirn_tcp *conn;
    int rc = net_connect(net, &conn);

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        uint32_t number = first * 100 + sim_below(100);
        int len = snprintf(request, sizeof request,
                           "GET /%u HTTP/1.1\r\n\r\n", number);

        rc = net_write(conn, request, (size_t)len);
        if (rc == 0)
            rc = check_response(conn, number);
    }
    pirn_tcp_close(conn);
    return rc;
}

static int browse(void *arg)
{
    struct net *net = arg;
    int rc = 0;

    for (uint32_t i = 0; i < sim_options()->requests && rc == 0; i++)
        rc = net_retry(net, visit, i);
    return rc;
}

static void http(void)
{
    struct net net;

    net_begin(&net, serve);
    net_clients(&net, browse);
    net_end(&net);
}

/* Goal: each answer belongs to its question, whatever the network and the
 * blocking pool do.  Method: a run for each seed. */
TEST(http_answers_are_right)
{
    sim_expect_clean("http_answers_are_right", http, NULL,
                     test_size(30, 400, 20000));
}

/* Goal: with threads of the blocking pool, too, a seed makes one run.  Method:
 * as for echo. */
TEST(http_can_be_repeated)
{
    sim_expect_repeatable("http_answers_are_right", http, 10);
}
