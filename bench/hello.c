/* SPDX-License-Identifier: MIT */
/* bench/hello.c - a server that says hello by HTTP, for wrk.
 *
 *     hello [--fibers] [--workers N]
 *
 * A request ends with an empty line and has no body; that is all that it knows
 * of HTTP, as all servers that it is compared with.  As stackless tasks or as
 * fibers; 0 workers, the default, are a current-thread runtime.  Prints
 * "port N" and serves until it is killed.
 */
#include "sample.h"
#include "server.h"

#include <pirn/pirn.h>

#include <string.h>

enum { REQUEST_MAX = 4096 };

static const char response[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                               "Content-Length: 6\r\n\r\nhello\n";

static bool as_fibers;

static bool request_ends(const char *text, size_t size)
{
    return size >= 4 && memcmp(text + size - 4, "\r\n\r\n", 4) == 0;
}

static int serve(void *arg)
{
    pirn_tcp *conn = arg;
    char buf[REQUEST_MAX];
    size_t filled = 0;
    ssize_t n;
    int rc = 0;

    while (rc == 0 &&
           (n = pirn_tcp_read(conn, buf + filled, sizeof buf - filled,
                              PIRN_NEVER)) > 0) {
        filled += (size_t)n;
        if (!request_ends(buf, filled))
            continue;
        filled = 0;
        rc = pirn_tcp_write_all(conn, response, sizeof response - 1,
                                PIRN_NEVER);
    }
    pirn_tcp_close(conn);
    return 0;
}

struct session {
    pirn_frame frame;
    pirn_tcp *conn;
    pirn_tcp_op op;
    size_t filled;
    char buf[REQUEST_MAX];
};

static enum pirn_poll session_poll(pirn_future *self, pirn_cx *cx)
{
    struct session *s = PIRN_FRAME_OF(self, struct session, frame);

    PIRN_ASYNC_BEGIN(&s->frame, cx);
    for (;;) {
        pirn_tcp_read_init(&s->op, s->conn, s->buf + s->filled,
                           sizeof s->buf - s->filled);
        PIRN_AWAIT(&s->op.future);
        if (s->op.n <= 0)
            break;
        s->filled += (size_t)s->op.n;
        if (!request_ends(s->buf, s->filled))
            continue;
        s->filled = 0;
        pirn_tcp_write_all_init(&s->op, s->conn, response,
                                sizeof response - 1);
        PIRN_AWAIT(&s->op.future);
        if (s->op.n < 0)
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

static int start_session(pirn_tcp *conn)
{
    struct session session;

    if (as_fibers)
        return pirn_go(serve, conn);
    session.conn = conn;
    session.filled = 0;
    pirn_frame_init(&session.frame, &session_ops);
    return pirn_spawn(&session.frame.future, sizeof session, NULL, NULL);
}

int main(int argc, char **argv)
{
    as_fibers = sample_has_flag(argc, argv, "--fibers");
    return server_run(argc, argv, start_session);
}
