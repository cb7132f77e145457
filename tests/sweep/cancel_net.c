/* SPDX-License-Identifier: MIT */
/* tests/sweep/cancel_net.c - what the Cancel lines of pirn/net.h promise, at each
 * step of a task that reads, writes, accepts, connects or sends a file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdlib.h>
#include <unistd.h>

#include <pirn/net.h>

#include "cancel_fixture.h"
#include "engine/socket_peer.h"

enum { CHUNK = 100, CHUNKS = 6, CONNECTIONS = 3, FILE_SIZE = 100000 };

/* A connection of the library, and its peer. */
struct line {
    pirn_tcp *conn;
    int peer;
    size_t done; /* by the task */
    size_t peer_done;
    int file_fd;
    int64_t offset;
};

/* Read what has come so far at the peer's end. */
static size_t drain(int fd)
{
    char buf[4096];
    size_t total = 0;
    ssize_t n;

    while ((n = recv(fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
        total += (size_t)n;
    return total;
}

static void line_init(struct line *line)
{
    int file_fd = line->file_fd;

    *line = (struct line){.file_fd = file_fd};
    line->conn = peer_adopted(&line->peer);
}

/* Takes a step after each chunk. */
static int feed(void *arg)
{
    struct line *line = arg;
    char chunk[CHUNK] = "";
    int rc = 0;

    for (int i = 0; i < CHUNKS && rc == 0; i++) {
        peer_send(line->peer, chunk, sizeof chunk);
        line->peer_done += sizeof chunk;
        rc = pirn_yield();
    }
    return rc;
}

static int read_all(void *arg)
{
    struct line *line = arg;
    char buf[70];

    while (line->done < CHUNK * CHUNKS) {
        ssize_t n = pirn_tcp_read(line->conn, buf, sizeof buf, PIRN_NEVER);

        if (n < 0)
            return (int)n;
        line->done += (size_t)n;
    }
    return 0;
}

static int begin_read(void *arg, pirn_task **victim)
{
    struct line *line = arg;
    int rc;

    line_init(line);
    rc = pirn_go_with(read_all, line, NULL, victim);
    return rc < 0 ? rc : pirn_go(feed, line);
}

/* What was read and what is still there is what was sent. */
static int end_read(void *arg, int outcome)
{
    struct line *line = arg;
    int fd = pirn_tcp_release(line->conn);

    (void)outcome;
    EXPECT_GE(fd, 0);
    line->done += drain(fd);
    close(fd);
    close(line->peer);
    return line->done == line->peer_done ? 0 : -EIO;
}

/* Goal: a cancelled read has read nothing.
 * Method: the peer sends in chunks while the task reads. */
TEST(cancel_in_read)
{
    struct line line = {.file_fd = -1};

    CANCEL_SWEEP(begin_read, end_read, &line, 8);
}

static int read_exactly(void *arg)
{
    struct line *line = arg;
    char buf[CHUNK * CHUNKS];
    int rc = pirn_tcp_read_exact(line->conn, buf, sizeof buf, PIRN_NEVER);

    if (rc == 0)
        line->done = sizeof buf;
    return rc;
}

static int begin_read_exact(void *arg, pirn_task **victim)
{
    struct line *line = arg;
    int rc;

    line_init(line);
    rc = pirn_go_with(read_exactly, line, NULL, victim);
    return rc < 0 ? rc : pirn_go(feed, line);
}

/* Goal: the sweep finds what the header warns of: a read_exact that is cancelled
 * loses what it has read.
 * Method: the same peer and the same check; it must object. */
TEST(cancel_in_read_exact_loses_bytes)
{
    struct line line = {.file_fd = -1};
    const pirn_cancel_case scenario = {begin_read_exact, end_read, &line, 0, 0};
    pirn_cancel_report report;

    EXPECT_EQ(-EIO, pirn_cancel_sweep(&scenario, &report));
    EXPECT_GE(report.point, 1);
    EXPECT_EQ(-ECANCELED, report.outcome);
}

/* The same by a stackless task of one operation. */
struct reading {
    pirn_tcp_op op;
    char buf[70];
};

static struct reading reading;

static int begin_read_op(void *arg, pirn_task **victim)
{
    struct line *line = arg;
    pirn_tcp_op op;
    int rc;

    line_init(line);
    pirn_tcp_read_init(&op, line->conn, reading.buf, sizeof reading.buf);
    rc = pirn_spawn(&op.future, sizeof op, NULL, victim);
    return rc < 0 ? rc : pirn_go(feed, line);
}

static int end_read_op(void *arg, int outcome)
{
    struct line *line = arg;

    if (outcome >= 0)
        line->done = (size_t)outcome;
    return end_read(arg, outcome);
}

/* Goal: the same of a read that is dropped, as a stackless task is.
 * Method: as above. */
TEST(cancel_in_read_operation)
{
    struct line line = {.file_fd = -1};

    CANCEL_SWEEP(begin_read_op, end_read_op, &line, 2);
}

static int write_all(void *arg)
{
    static const char data[200000];
    struct line *line = arg;

    while (line->done < sizeof data) {
        ssize_t n = pirn_tcp_write(line->conn, data + line->done,
                                   sizeof data - line->done, PIRN_NEVER);

        if (n < 0)
            return (int)n;
        line->done += (size_t)n;
    }
    return 0;
}

/* The peer takes what there is, step by step. */
static int swallow(void *arg)
{
    struct line *line = arg;
    int rc = 0;

    while (rc == 0) {
        line->peer_done += drain(line->peer);
        rc = pirn_sleep(pirn_after_ms(1));
    }
    return rc;
}

static int begin_with_swallower(struct line *line, pirn_fiber_fn *fn,
                                pirn_task **victim)
{
    int rc;

    line_init(line);
    rc = pirn_tcp_set_send_buffer(line->conn, 8192);
    if (rc == 0)
        rc = pirn_go_with(fn, line, NULL, victim);
    return rc < 0 ? rc : pirn_go(swallow, line);
}

static int begin_write(void *arg, pirn_task **victim)
{
    return begin_with_swallower(arg, write_all, victim);
}

/* What the writer knows to be written arrives, and nothing else. */
static int end_write(void *arg, int outcome)
{
    struct line *line = arg;

    (void)outcome;
    pirn_tcp_close(line->conn);
    /* Ends: the other end is closed. */
    for (;;) {
        char buf[4096];
        ssize_t n = recv(line->peer, buf, sizeof buf, 0);

        if (n <= 0)
            break;
        line->peer_done += (size_t)n;
    }
    close(line->peer);
    return line->peer_done == line->done ? 0 : -EIO;
}

/* Goal: a cancelled write has written nothing.
 * Method: more than the socket holds, to a peer that reads in steps. */
TEST(cancel_in_write)
{
    struct line line = {.file_fd = -1};

    CANCEL_SWEEP(begin_write, end_write, &line, 5);
}

static int send_file(void *arg)
{
    struct line *line = arg;

    return pirn_tcp_sendfile(line->conn, line->file_fd, &line->offset,
                             FILE_SIZE, PIRN_NEVER);
}

static int begin_sendfile(void *arg, pirn_task **victim)
{
    return begin_with_swallower(arg, send_file, victim);
}

static int end_sendfile(void *arg, int outcome)
{
    struct line *line = arg;

    line->done = (size_t)line->offset;
    EXPECT(outcome != 0 || line->offset == FILE_SIZE);
    return end_write(arg, outcome);
}

/* Goal: after a cancelled sendfile the offset says what was sent.
 * Method: as above, with a file. */
TEST(cancel_in_sendfile)
{
    static char data[FILE_SIZE];
    char name[] = "/tmp/pirn-cancel-XXXXXX";
    struct line line = {.file_fd = mkstemp(name)};

    REQUIRE(line.file_fd >= 0);
    unlink(name);
    EXPECT_EQ(FILE_SIZE, write(line.file_fd, data, FILE_SIZE));
    CANCEL_SWEEP(begin_sendfile, end_sendfile, &line, 3);
    close(line.file_fd);
}

/* Accepting. */

struct door {
    pirn_listener *listener;
    pirn_addr address;
    int peers[CONNECTIONS];
    int knocked;
    int opened;
    bool by_operation;
};

static int knock(void *arg)
{
    struct door *door = arg;
    int rc = 0;

    while (door->knocked < CONNECTIONS && rc == 0) {
        door->peers[door->knocked++] =
            peer_connect(pirn_addr_port(&door->address));
        rc = pirn_yield();
    }
    return rc;
}

static int open_door(void *arg)
{
    struct door *door = arg;

    while (door->opened < CONNECTIONS) {
        pirn_tcp *conn;
        int rc = pirn_listener_accept(door->listener, PIRN_NEVER, &conn);

        if (rc < 0)
            return rc;
        door->opened++;
        pirn_tcp_close(conn);
    }
    return 0;
}

static int begin_accept(void *arg, pirn_task **victim)
{
    struct door *door = arg;
    pirn_accept_op op;
    int rc;

    *door = (struct door){.by_operation = door->by_operation};
    rc = pirn_listener_open("127.0.0.1:0", NULL, &door->listener);
    if (rc < 0)
        return rc;
    pirn_listener_address(door->listener, &door->address);
    pirn_accept_init(&op, door->listener);
    rc = door->by_operation ? pirn_spawn(&op.future, sizeof op, NULL, victim)
                            : pirn_go_with(open_door, door, NULL, victim);
    return rc < 0 ? rc : pirn_go(knock, door);
}

static int end_accept(void *arg, int outcome)
{
    struct door *door = arg;

    if (door->by_operation && outcome == 0)
        door->opened++;
    for (;;) {
        pirn_tcp *conn;

        if (pirn_listener_accept(door->listener, PIRN_EXPIRED, &conn) < 0)
            break;
        door->opened++;
        pirn_tcp_close(conn);
    }
    pirn_listener_close(door->listener);
    for (int i = 0; i < door->knocked; i++)
        close(door->peers[i]);
    return door->opened == door->knocked ? 0 : -ECONNABORTED;
}

/* Goal: no connection is lost by a cancelled accept.
 * Method: three come in steps; a fiber accepts them all, a stackless task one
 * that nobody takes out, so that it is discarded. */
TEST(cancel_in_accept)
{
    struct door door = {.by_operation = false};

    CANCEL_SWEEP(begin_accept, end_accept, &door, 4);
    door.by_operation = true;
    CANCEL_SWEEP(begin_accept, end_accept, &door, 2);
}

/* Connecting. */

static int connect_and_leave(void *arg)
{
    const struct door *door = arg;
    char text[PIRN_ADDR_SIZE];
    pirn_tcp *conn = NULL;
    int rc;

    pirn_addr_format(&door->address, text, sizeof text);
    rc = pirn_tcp_connect(text, NULL, PIRN_NEVER, &conn);
    EXPECT(rc == 0 || conn == NULL);
    pirn_tcp_close(conn);
    return rc;
}

static int begin_connect(void *arg, pirn_task **victim)
{
    struct door *door = arg;
    pirn_connect_op op;
    int rc;

    *door = (struct door){.by_operation = door->by_operation};
    rc = pirn_listener_open("127.0.0.1:0", NULL, &door->listener);
    if (rc < 0)
        return rc;
    pirn_listener_address(door->listener, &door->address);
    pirn_connect_init(&op, &door->address, NULL);
    return door->by_operation
               ? pirn_spawn(&op.future, sizeof op, NULL, victim)
               : pirn_go_with(connect_and_leave, door, NULL, victim);
}

static int end_connect(void *arg, int outcome)
{
    struct door *door = arg;

    (void)outcome;
    pirn_listener_close(door->listener);
    return 0;
}

/* Goal: a cancelled connect leaves nothing behind.
 * Method: as a fiber, and as an operation whose result is discarded. */
TEST(cancel_in_connect)
{
    struct door door = {.by_operation = false};

    CANCEL_SWEEP(begin_connect, end_connect, &door, 1);
    door.by_operation = true;
    CANCEL_SWEEP(begin_connect, end_connect, &door, 1);
}
