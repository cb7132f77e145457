/* SPDX-License-Identifier: MIT */
/* examples/echo_async.c - the echo server without stacks: a struct and a poll
 * function for each kind of task.
 *
 * What must live across an await is a field; what a task owns is given back by
 * its clean-up, which runs on every way out, also when the task is cancelled.
 *
 *     echo_async [ADDR:PORT]
 */
#include <pirn/pirn.h>

#include "self_test.h"

struct echo {
    pirn_frame frame; /* first */
    pirn_tcp *conn;
    pirn_tcp_op op;
    pirn_timeout_op timeout;
    char buf[4096];
};

static enum pirn_poll echo_poll(pirn_future *self, pirn_cx *cx)
{
    struct echo *echo = PIRN_FRAME_OF(self, struct echo, frame);

    PIRN_ASYNC_BEGIN(&echo->frame, cx);
    for (;;) {
        pirn_tcp_read_init(&echo->op, echo->conn, echo->buf, sizeof echo->buf);
        PIRN_AWAIT_UNTIL(&echo->timeout, &echo->op.future,
                         pirn_after_ms(30000));
        if (echo->timeout.rc < 0 || echo->op.n <= 0)
            break; /* idle too long, gone, or done */
        pirn_tcp_write_all_init(&echo->op, echo->conn, echo->buf,
                                (size_t)echo->op.n);
        PIRN_AWAIT_UNTIL(&echo->timeout, &echo->op.future,
                         pirn_after_ms(30000));
        if (echo->timeout.rc < 0 || echo->op.n < 0)
            break;
    }
    PIRN_ASYNC_END();
}

static void echo_cleanup(pirn_frame *frame)
{
    struct echo *echo = PIRN_CONTAINER_OF(frame, struct echo, frame);

    pirn_tcp_close(echo->conn);
}

static const pirn_async_ops echo_ops = PIRN_ASYNC_OPS(echo_poll, echo_cleanup);

/* Start a task for a connection, which it owns. */
static void start_echo(pirn_tcp *conn)
{
    struct echo echo;

    echo.conn = conn;
    pirn_frame_init(&echo.frame, &echo_ops);
    /* The struct moves into the task; if it cannot, it is still here and
     * dropping it closes the connection. */
    if (pirn_spawn(&echo.frame.future, sizeof echo, NULL, NULL) < 0)
        pirn_future_drop(&echo.frame.future);
}

struct acceptor {
    pirn_frame frame; /* first */
    pirn_listener *listener;
    pirn_accept_op op;
};

static enum pirn_poll acceptor_poll(pirn_future *self, pirn_cx *cx)
{
    struct acceptor *acceptor = PIRN_FRAME_OF(self, struct acceptor, frame);

    PIRN_ASYNC_BEGIN(&acceptor->frame, cx);
    for (;;) {
        pirn_accept_init(&acceptor->op, acceptor->listener);
        PIRN_AWAIT(&acceptor->op.future);
        if (acceptor->op.rc < 0)
            PIRN_ASYNC_RETURN(acceptor->op.rc);
        start_echo(acceptor->op.conn);
    }
    PIRN_ASYNC_END();
}

static void acceptor_cleanup(pirn_frame *frame)
{
    struct acceptor *acceptor =
        PIRN_CONTAINER_OF(frame, struct acceptor, frame);

    pirn_listener_close(acceptor->listener);
}

static const pirn_async_ops acceptor_ops =
    PIRN_ASYNC_OPS(acceptor_poll, acceptor_cleanup);

/* Listen and start the acceptor as a task of the current runtime. */
static int start_acceptor(const char *address, pirn_task **out)
{
    struct acceptor acceptor;
    int rc = pirn_listener_open(address, NULL, &acceptor.listener);

    if (rc < 0)
        return rc;
    pirn_frame_init(&acceptor.frame, &acceptor_ops);
    rc = pirn_spawn(&acceptor.frame.future, sizeof acceptor, NULL, out);
    if (rc < 0)
        pirn_future_drop(&acceptor.frame.future);
    return rc;
}

/* The first fiber: the server, until it ends. */
static int run_server(void *address)
{
    pirn_task *task;
    int outcome;
    int rc = start_acceptor(address, &task);

    if (rc < 0)
        return rc;
    rc = pirn_task_join(task, PIRN_NEVER, &outcome);
    pirn_task_unref(task);
    return rc < 0 ? rc : outcome;
}

static int self_test(void *address)
{
    int rc = start_acceptor(address, NULL);

    return rc < 0 ? rc : self_test_echo(address);
}

int main(int argc, char **argv)
{
    char address[PIRN_ADDR_SIZE] = "127.0.0.1:7000";
    int rc;

    if (self_test_wanted(argc, argv)) {
        self_test_address(address);
        rc = pirn_run(self_test, address);
    } else {
        if (argc > 1)
            (void)snprintf(address, sizeof address, "%s", argv[1]);
        rc = pirn_run(run_server, address);
    }
    if (rc < 0)
        (void)fprintf(stderr, "echo_async: %s\n", pirn_err_text(rc));
    return pirn_exit_code(rc);
}
