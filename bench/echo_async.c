/* SPDX-License-Identifier: MIT */
/* bench/echo_async.c - the echo server of the benchmark as stackless tasks.
 *
 *     echo_async [--deadline-ms N]      0, the default: no deadline
 *
 * Prints "port N" and serves until it is killed.
 */
#include "sample.h"

#include <pirn/pirn.h>

#include <stdio.h>

static uint64_t deadline_ms;

/* What every request touches comes first and stands together. */
struct session {
    pirn_frame frame;
    pirn_tcp *conn;
    pirn_tcp_op op;
    char buf[4096];
    pirn_timeout_op timeout;
};

/* A session without deadlines: two plain awaits a request. */
static enum pirn_poll session_poll(pirn_future *self, pirn_cx *cx)
{
    struct session *s = PIRN_FRAME_OF(self, struct session, frame);

    PIRN_ASYNC_BEGIN(&s->frame, cx);
    for (;;) {
        pirn_tcp_read_init(&s->op, s->conn, s->buf, sizeof s->buf);
        PIRN_AWAIT(&s->op.future);
        if (s->op.n <= 0)
            break;
        pirn_tcp_write_all_init(&s->op, s->conn, s->buf, (size_t)s->op.n);
        PIRN_AWAIT(&s->op.future);
        if (s->op.n < 0)
            break;
    }
    PIRN_ASYNC_END();
}

/* The same, each await under a deadline of its own. */
static enum pirn_poll timed_session_poll(pirn_future *self, pirn_cx *cx)
{
    struct session *s = PIRN_FRAME_OF(self, struct session, frame);

    PIRN_ASYNC_BEGIN(&s->frame, cx);
    for (;;) {
        pirn_tcp_read_init(&s->op, s->conn, s->buf, sizeof s->buf);
        PIRN_AWAIT_UNTIL(&s->timeout, &s->op.future,
                         pirn_after_ms(deadline_ms));
        if (s->timeout.rc < 0 || s->op.n <= 0)
            break;
        pirn_tcp_write_all_init(&s->op, s->conn, s->buf, (size_t)s->op.n);
        PIRN_AWAIT_UNTIL(&s->timeout, &s->op.future,
                         pirn_after_ms(deadline_ms));
        if (s->timeout.rc < 0 || s->op.n < 0)
            break;
    }
    PIRN_ASYNC_END();
}

static void session_cleanup(pirn_frame *frame)
{
    pirn_tcp_close(PIRN_CONTAINER_OF(frame, struct session, frame)->conn);
}

static const pirn_async_ops session_ops =
    PIRN_ASYNC_OPS(session_poll, session_cleanup);
static const pirn_async_ops timed_session_ops =
    PIRN_ASYNC_OPS(timed_session_poll, session_cleanup);

static void start_session(pirn_tcp *conn)
{
    struct session session;

    session.conn = conn;
    pirn_frame_init(&session.frame,
                    deadline_ms == 0 ? &session_ops : &timed_session_ops);
    if (pirn_spawn(&session.frame.future, sizeof session, NULL, NULL) < 0)
        pirn_tcp_close(conn);
}

struct acceptor {
    pirn_frame frame;
    pirn_listener *listener;
    pirn_accept_op accept;
};

static enum pirn_poll acceptor_poll(pirn_future *self, pirn_cx *cx)
{
    struct acceptor *a = PIRN_FRAME_OF(self, struct acceptor, frame);

    PIRN_ASYNC_BEGIN(&a->frame, cx);
    for (;;) {
        pirn_accept_init(&a->accept, a->listener);
        PIRN_AWAIT(&a->accept.future);
        if (a->accept.rc < 0)
            PIRN_ASYNC_RETURN(a->accept.rc);
        start_session(a->accept.conn);
    }
    PIRN_ASYNC_END();
}

static const pirn_async_ops acceptor_ops = PIRN_ASYNC_OPS(acceptor_poll, NULL);

int main(int argc, char **argv)
{
    struct acceptor acceptor;
    pirn_runtime *rt;
    pirn_addr address;

    deadline_ms = sample_get_number(argc, argv, "--deadline-ms", 0);
    sample_require(pirn_runtime_new(NULL, &rt), "pirn_runtime_new");
    pirn_runtime_enter(rt);
    sample_require(pirn_listener_open("127.0.0.1:0", NULL, &acceptor.listener),
                   "pirn_listener_open");
    pirn_listener_address(acceptor.listener, &address);
    printf("port %u\n", (unsigned)pirn_addr_port(&address));
    fflush(stdout);
    pirn_frame_init(&acceptor.frame, &acceptor_ops);
    sample_require(pirn_block_on(rt, &acceptor.frame.future, PIRN_NEVER),
                   "pirn_block_on");
    sample_require(acceptor.frame.rc, "accept");
    pirn_listener_close(acceptor.listener);
    pirn_runtime_enter(NULL);
    pirn_runtime_unref(rt);
    return 0;
}
