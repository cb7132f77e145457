/* SPDX-License-Identifier: MIT */
/* bench/peers/peer_uring.c - servers on plain io_uring: the other practical
 * bound, beside plain epoll.
 *
 * One ring of one thread with deferred task running.  Each connection has one
 * operation under way at a time, a receive or a send; what has completed is
 * answered, and everything new is submitted by the call that waits.  One system
 * call for as many connections as are ready.
 */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <unistd.h>

enum { RING_SIZE = 4096 };

struct session {
    int fd;
    bool sends;
    size_t filled;
    char buf[4096];
};

static struct io_uring ring;
static bool serves_hello;

static struct io_uring_sqe *next_entry(void)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);

    if (entry != NULL)
        return entry;
    io_uring_submit(&ring);
    entry = io_uring_get_sqe(&ring);
    peer_require(entry != NULL, "io_uring_get_sqe");
    return entry;
}

/* Entries without a session are accepts. */
static void start_accept(int listener)
{
    struct io_uring_sqe *entry = next_entry();

    io_uring_prep_multishot_accept(entry, listener, NULL, NULL, SOCK_CLOEXEC);
    io_uring_sqe_set_data(entry, NULL);
}

static void start_receive(struct session *session)
{
    struct io_uring_sqe *entry = next_entry();

    session->sends = false;
    io_uring_prep_recv(entry, session->fd, session->buf + session->filled,
                       sizeof session->buf - session->filled, 0);
    io_uring_sqe_set_data(entry, session);
}

static void start_send(struct session *session, const char *text, size_t size)
{
    struct io_uring_sqe *entry = next_entry();

    session->sends = true;
    io_uring_prep_send(entry, session->fd, text, size, MSG_WAITALL);
    io_uring_sqe_set_data(entry, session);
}

static void end_session(struct session *session)
{
    close(session->fd);
    free(session);
}

static void take_connection(const struct io_uring_cqe *event, int listener)
{
    struct session *session = calloc(1, sizeof *session);

    peer_require(event->res >= 0 && session != NULL, "accept");
    session->fd = event->res;
    start_receive(session);
    if ((event->flags & IORING_CQE_F_MORE) == 0)
        start_accept(listener);
}

static void take_input(struct session *session, size_t n)
{
    if (!serves_hello) {
        start_send(session, session->buf, n);
        return;
    }
    session->filled += n;
    if (session->filled == sizeof session->buf) {
        end_session(session);
    } else if (!peer_request_ends(session->buf, session->filled)) {
        start_receive(session);
    } else {
        session->filled = 0;
        start_send(session, peer_response, peer_response_size);
    }
}

static void take_event(const struct io_uring_cqe *event, int listener)
{
    struct session *session = io_uring_cqe_get_data(event);

    if (session == NULL)
        take_connection(event, listener);
    else if (event->res <= 0)
        end_session(session);
    else if (session->sends)
        start_receive(session);
    else
        take_input(session, (size_t)event->res);
}

static void serve(void)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_CQSIZE,
        .cq_entries = 4 * RING_SIZE,
    };
    int rc = io_uring_queue_init_params(RING_SIZE, &ring, &params);
    int listener;

    errno = -rc;
    peer_require(rc == 0, "io_uring_queue_init_params");
    listener = peer_listen();
    start_accept(listener);
    for (;;) {
        struct io_uring_cqe *event;
        unsigned head;
        unsigned count = 0;

        io_uring_submit_and_wait(&ring, 1);
        io_uring_for_each_cqe(&ring, head, event) {
            take_event(event, listener);
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
}

static void serve_hello(void)
{
    serves_hello = true;
    serve();
}

int main(int argc, char **argv)
{
    static const struct peer_row rows[] = {
        {"echo", serve},
        {"hello", serve_hello},
        {NULL, NULL},
    };

    return peer_main(argc, argv, rows);
}
