/* SPDX-License-Identifier: MIT */
/* tests/sweep/fault_net.c - connections in a world without memory, descriptors
 * or a working network, with short transfers and signals.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include <pirn/net.h>

#include "fault_fixture.h"
#include "engine/socket_peer.h"

enum { MESSAGE = 3000, PIECES = 3 };

static uint32_t workers;

static void fill(char *buf, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = (char)(i % 251);
}

static bool is_filled(const char *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (buf[i] != (char)(i % 251))
            return false;
    }
    return true;
}

/* One side of the exchange: the listener and what went over it. */
struct server {
    pirn_listener *listener;
    int outcome;
};

/* One connection, or NULL.  Owns the listener: who is still in line when it fails
 * is not left waiting. */
static pirn_tcp *accept_one(pirn_listener *listener)
{
    pirn_tcp *conn = SWEEP_JUNK;
    int rc = SWEPT(pirn_listener_accept(listener, PIRN_NEVER, &conn));

    EXPECT(rc == 0 || conn == NULL);
    pirn_listener_close(listener);
    return conn;
}

/* Give back what comes, until the end. */
static int echo_one(void *arg)
{
    struct server *server = arg;
    pirn_tcp *conn = accept_one(server->listener);
    char buf[1000];
    ssize_t n;

    if (conn == NULL)
        return 0;
    (void)SWEPT(pirn_tcp_set_nodelay(conn, true));
    while ((n = SWEPT(pirn_tcp_read(conn, buf, sizeof buf, PIRN_NEVER))) > 0) {
        if (SWEPT(pirn_tcp_write_all(conn, buf, (size_t)n, PIRN_NEVER)) < 0)
            break;
    }
    pirn_tcp_close(conn);
    return 0;
}

/* In two pieces. */
static ssize_t write_vector(pirn_tcp *conn, const char *data, size_t len)
{
    const struct iovec vec[3] = {
        {(void *)(uintptr_t)data, len / 2},
        {NULL, 0},
        {(void *)(uintptr_t)(data + len / 2), len - len / 2},
    };
    ssize_t n = SWEPT(pirn_tcp_writev(conn, vec, 3, PIRN_NEVER));

    if (n < 0 || (size_t)n == len)
        return n;
    return SWEPT(pirn_tcp_write_all(conn, data + n, len - (size_t)n,
                                    PIRN_NEVER));
}

static ssize_t read_vector(pirn_tcp *conn, char *data, size_t len)
{
    const struct iovec vec[2] = {{data, len / 2},
                                 {data + len / 2, len - len / 2}};
    ssize_t n = SWEPT(pirn_tcp_readv(conn, vec, 2, PIRN_NEVER));

    if (n <= 0 || (size_t)n == len)
        return n;
    return SWEPT(pirn_tcp_read_exact(conn, data + n, len - (size_t)n,
                                     PIRN_NEVER));
}

static void talk(pirn_tcp *conn)
{
    char sent[MESSAGE], received[MESSAGE];

    fill(sent, sizeof sent);
    for (int i = 0; i < PIECES; i++) {
        memset(received, 0, sizeof received);
        if (write_vector(conn, sent, sizeof sent) < 0 ||
            read_vector(conn, received, sizeof received) <= 0)
            return;
        EXPECT(is_filled(received, sizeof received));
    }
    (void)SWEPT(pirn_tcp_shutdown(conn, PIRN_HALF_WRITE));
    EXPECT_GE(0, SWEPT(pirn_tcp_read(conn, received, 1, PIRN_NEVER)));
}

static int connect_and_talk(const pirn_addr *address)
{
    char text[PIRN_ADDR_SIZE];
    pirn_tcp *conn = SWEEP_JUNK;
    pirn_addr peer;
    int rc;

    pirn_addr_format(address, text, sizeof text);
    rc = SWEPT(pirn_tcp_connect(text, NULL, PIRN_NEVER, &conn));
    EXPECT(rc == 0 || conn == NULL);
    if (rc < 0)
        return rc;
    if (SWEPT(pirn_tcp_peer(conn, &peer)) == 0)
        EXPECT(pirn_addr_equal(&peer, address));
    (void)SWEPT(pirn_tcp_set_nodelay(conn, true));
    talk(conn);
    pirn_tcp_close(conn);
    return 0;
}

/* Both sides in one runtime.  The server is cancelled when the client could not
 * reach it. */
static int exchange(void *arg)
{
    struct server server = {NULL, 0};
    pirn_task *task = SWEEP_JUNK;
    pirn_addr address;
    int outcome;
    int rc = SWEPT(pirn_listener_open("127.0.0.1:0", NULL, &server.listener));

    (void)arg;
    EXPECT(rc == 0 || server.listener == NULL);
    if (rc < 0)
        return 0;
    pirn_listener_address(server.listener, &address);
    if (SWEPT(pirn_go_with(echo_one, &server, NULL, &task)) == 0) {
        if (connect_and_talk(&address) < 0)
            pirn_task_cancel(task);
        EXPECT_EQ(0, SWEPT(pirn_task_join(task, PIRN_NEVER, &outcome)));
        pirn_task_unref(task);
    } else {
        pirn_listener_close(server.listener);
    }
    return 0;
}

static void exchange_in_runtime(void)
{
    fault_run(workers, exchange, NULL);
}

/* Goal: a conversation over the loopback in a world where everything fails: each
 * call says what happened or bears it, and every byte arrives or is missed.
 * Method: an echo server and its client. */
TEST(fault_in_conversation)
{
    workers = 0;
    SWEEP(exchange_in_runtime, SWEEP_EVERYTHING | SWEEP_NETWORK);
}

/* Goal, Method: the same with workers. */
TEST(fault_in_conversation_with_workers)
{
    workers = 2;
    SWEEP(exchange_in_runtime, SWEEP_EVERYTHING | SWEEP_NETWORK);
}

/* Plain threads, without a runtime: the client's end is a bare socket. */

static void talk_outside(void)
{
    pirn_listener *listener = SWEEP_JUNK;
    pirn_tcp *client = SWEEP_JUNK;
    pirn_tcp *server = SWEEP_JUNK;
    char text[PIRN_ADDR_SIZE];
    char byte = 'x';
    pirn_addr address;
    int rc = SWEPT(pirn_listener_open("127.0.0.1:0", NULL, &listener));

    EXPECT(rc == 0 || listener == NULL);
    if (rc < 0)
        return;
    pirn_listener_address(listener, &address);
    pirn_addr_format(&address, text, sizeof text);
    if (SWEPT(pirn_tcp_connect(text, NULL, PIRN_NEVER, &client)) == 0) {
        if (SWEPT(pirn_listener_accept(listener, PIRN_NEVER, &server)) == 0) {
            if (SWEPT(pirn_tcp_write_all(client, &byte, 1, PIRN_NEVER)) == 0)
                (void)SWEPT(pirn_tcp_read(server, &byte, 1, PIRN_NEVER));
            pirn_tcp_close(server);
        }
    }
    pirn_tcp_close(client);
    pirn_listener_close(listener);
}

/* Goal: the same without any runtime.
 * Method: one thread is both sides in turn. */
TEST(fault_on_plain_thread)
{
    SWEEP(talk_outside, SWEEP_EVERYTHING | SWEEP_NETWORK);
}

/* Adopting. */

static void adopt(void)
{
    pirn_tcp *conn = SWEEP_JUNK;
    int fds[2];
    int flags, rc;

    sweep_hold();
    peer_pair(fds);
    flags = fcntl(fds[0], F_GETFL);
    sweep_go_on();
    rc = SWEPT(pirn_tcp_adopt(fds[0], &conn));
    if (rc < 0) {
        EXPECT_PTR_EQ(NULL, conn);
        /* Open, and as it was. */
        EXPECT_EQ(flags, fcntl(fds[0], F_GETFL));
        close(fds[0]);
    } else if ((rc = SWEPT(pirn_tcp_release(conn))) >= 0) {
        EXPECT_EQ(fds[0], rc);
        EXPECT_EQ(flags, fcntl(rc, F_GETFL));
        close(rc);
    } else {
        pirn_tcp_close(conn);
    }
    close(fds[1]);
}

/* Goal: a socket that cannot be adopted is still the caller's, with its flags.
 * Method: adopt and release. */
TEST(fault_in_adopt)
{
    SWEEP(adopt, SWEEP_EVERYTHING);
}

/* Files. */

enum { FILE_SIZE = 20000 };

static int file_fd = -1;

static int receive_file(void *arg)
{
    struct server *server = arg;
    pirn_tcp *conn = accept_one(server->listener);
    char buf[512];
    size_t total = 0;
    ssize_t n;

    if (conn == NULL)
        return 0;
    while ((n = SWEPT(pirn_tcp_read(conn, buf, sizeof buf, PIRN_NEVER))) > 0)
        total += (size_t)n;
    server->outcome = (int)total;
    pirn_tcp_close(conn);
    return 0;
}

static int send_to(const pirn_addr *address, int64_t *offset)
{
    char text[PIRN_ADDR_SIZE];
    pirn_tcp *conn;
    int rc;

    pirn_addr_format(address, text, sizeof text);
    rc = SWEPT(pirn_tcp_connect(text, NULL, PIRN_NEVER, &conn));
    if (rc < 0)
        return rc;
    rc = SWEPT(pirn_tcp_sendfile(conn, file_fd, offset, FILE_SIZE, PIRN_NEVER));
    EXPECT(rc < 0 || *offset == FILE_SIZE);
    (void)SWEPT(pirn_tcp_shutdown(conn, PIRN_HALF_WRITE));
    pirn_tcp_close(conn);
    return 0;
}

static int send_file(void *arg)
{
    struct server server = {NULL, 0};
    pirn_task *task;
    pirn_addr address;
    int64_t offset = 0;
    int outcome;

    (void)arg;
    if (SWEPT(pirn_listener_open("127.0.0.1:0", NULL, &server.listener)) < 0)
        return 0;
    pirn_listener_address(server.listener, &address);
    if (SWEPT(pirn_go_with(receive_file, &server, NULL, &task)) == 0) {
        if (send_to(&address, &offset) < 0)
            pirn_task_cancel(task);
        EXPECT_EQ(0, SWEPT(pirn_task_join(task, PIRN_NEVER, &outcome)));
        /* What was sent is what *offset says, unless the reader gave up. */
        EXPECT_LE(server.outcome, (int)offset);
        pirn_task_unref(task);
    } else {
        pirn_listener_close(server.listener);
    }
    return 0;
}

static void send_file_in_runtime(void)
{
    fault_run(workers, send_file, NULL);
}

/* Goal: the offset of sendfile is what was sent, also on error.
 * Method: a file to a reader that counts. */
TEST(fault_in_sendfile)
{
    char name[] = "/tmp/pirn-sweep-XXXXXX";
    static char data[FILE_SIZE];

    file_fd = mkstemp(name);
    REQUIRE(file_fd >= 0);
    unlink(name);
    EXPECT_EQ(FILE_SIZE, write(file_fd, data, FILE_SIZE));
    workers = 0;
    SWEEP(send_file_in_runtime, SWEEP_EVERYTHING | SWEEP_NETWORK);
    workers = 2;
    SWEEP(send_file_in_runtime, SWEEP_EVERYTHING | SWEEP_NETWORK);
    close(file_fd);
}
