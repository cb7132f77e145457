/* SPDX-License-Identifier: MIT */
/* src/net/sendfile_test.c - files to connections. */
#include <stdlib.h>

#include <pirn/runtime.h>

#include "engine/socket_peer.h"

enum { FILE_SIZE = 3 * 1024 * 1024 + 17 };

/* A file of known bytes. */
static int open_file(void)
{
    char path[] = "/tmp/pirn_sendfile_XXXXXX";
    int fd = mkstemp(path);
    char *data = malloc(FILE_SIZE);

    EXPECT_GE(fd, 0);
    (void)unlink(path);
    for (int i = 0; i < FILE_SIZE; i++)
        data[i] = (char)(i * 7 + i / 251);
    EXPECT_EQ(FILE_SIZE, write(fd, data, FILE_SIZE));
    free(data);
    return fd;
}

struct transfer {
    pirn_tcp *conn;
    int peer;
    int file;
    int64_t offset;
    int64_t begin; /* the offset before the call, for the reader */
    size_t count;
    size_t received;
};

/* Compare what arrives with the file from `begin` on. */
static int receive(void *arg)
{
    struct transfer *transfer = arg;
    static char buf[128 * 1024], expected[128 * 1024];
    off_t place = (off_t)transfer->begin;
    ssize_t n;

    EXPECT_EQ(0, fcntl(transfer->peer, F_SETFL, O_NONBLOCK));
    for (;;) {
        n = recv(transfer->peer, buf, sizeof buf, 0);
        if (n == 0)
            break;
        if (n > 0) {
            EXPECT_EQ(n, pread(transfer->file, expected, (size_t)n, place));
            EXPECT_EQ(0, memcmp(expected, buf, (size_t)n));
            place += n;
            transfer->received += (size_t)n;
        }
        EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

/* Send and count; returns what the call did. */
static int send_and_compare(struct transfer *transfer)
{
    pirn_task *task;
    int outcome;
    int rc;

    transfer->conn = peer_adopted(&transfer->peer);
    transfer->begin = transfer->offset;
    EXPECT_EQ(0, pirn_go_with(receive, transfer, NULL, &task));
    EXPECT_EQ(0, pirn_yield());
    rc = pirn_tcp_sendfile(transfer->conn, transfer->file, &transfer->offset,
                           transfer->count, PIRN_NEVER);
    pirn_tcp_close(transfer->conn);
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    close(transfer->peer);
    return rc;
}

static int send_whole(void *arg)
{
    struct transfer transfer = {.file = open_file(), .count = FILE_SIZE};

    (void)arg;
    EXPECT_EQ(0, send_and_compare(&transfer));
    EXPECT_EQ(FILE_SIZE, transfer.offset);
    EXPECT_EQ(FILE_SIZE, transfer.received);
    close(transfer.file);
    return 0;
}

/* Goal: a file that is larger than every buffer arrives byte for byte.
 * Method: 3 MB and some against a slow reader. */
TEST(sendfile_whole_file_arrives)
{
    EXPECT_EQ(0, pirn_run(send_whole, NULL));
}

static int send_part(void *arg)
{
    struct transfer transfer = {
        .file = open_file(), .offset = 1000, .count = 5000};

    (void)arg;
    EXPECT_EQ(0, send_and_compare(&transfer));
    EXPECT_EQ(6000, transfer.offset);
    EXPECT_EQ(5000u, transfer.received);
    close(transfer.file);
    return 0;
}

/* Goal: a part is a part.
 * Method: from an offset, some bytes. */
TEST(sendfile_part_of_file_moves_offset)
{
    EXPECT_EQ(0, pirn_run(send_part, NULL));
}

static int send_beyond(void *arg)
{
    struct transfer transfer = {
        .file = open_file(), .offset = FILE_SIZE - 10, .count = 100};

    (void)arg;
    EXPECT_EQ(PIRN_EEOF, send_and_compare(&transfer));
    EXPECT_EQ(FILE_SIZE, transfer.offset);
    EXPECT_EQ(10u, transfer.received);
    close(transfer.file);
    return 0;
}

/* Goal: a file that is too short is an error, and the offset says how far it
 * went.
 * Method: ask for more than there is. */
TEST(sendfile_beyond_the_end_answers_eeof)
{
    EXPECT_EQ(0, pirn_run(send_beyond, NULL));
}

static int send_nonsense(void *arg)
{
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    int file = open_file();
    int64_t offset = 0;
    int64_t negative = -1;

    (void)arg;
    EXPECT_EQ(-EINVAL, pirn_tcp_sendfile(NULL, file, &offset, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_sendfile(conn, file, NULL, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_sendfile(conn, file, &negative, 1, PIRN_NEVER));
    EXPECT_EQ(-EBADF, pirn_tcp_sendfile(conn, -1, &offset, 1, PIRN_NEVER));
    EXPECT_EQ(0, pirn_tcp_sendfile(conn, file, &offset, 0, PIRN_NEVER));
    EXPECT_EQ(0, offset);
    pirn_tcp_close(conn);
    close(peer);
    close(file);
    return 0;
}

/* Goal: nonsense is refused.
 * Method: NULLs, a negative offset, a closed file, nothing to send. */
TEST(sendfile_of_nonsense_is_refused)
{
    EXPECT_EQ(0, pirn_run(send_nonsense, NULL));
}

static int send_to_the_dead(void *arg)
{
    int fds[2];
    pirn_tcp *conn;
    int file = open_file();
    int64_t offset = 0;
    int rc;

    (void)arg;
    peer_pair(fds);
    EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
    peer_reset(fds[1]);
    peer_await(fds[0], POLLIN);
    rc = pirn_tcp_sendfile(conn, file, &offset, FILE_SIZE, PIRN_NEVER);
    EXPECT(rc == -EPIPE || rc == -ECONNRESET);
    pirn_tcp_close(conn);
    close(file);
    return 0;
}

/* Goal: a dead peer is an error, not a signal.
 * Method: reset first; SIGPIPE has its default disposition. */
TEST(sendfile_to_dead_peer_is_an_error_not_a_signal)
{
    EXPECT_EQ(0, pirn_run(send_to_the_dead, NULL));
}

static int send_until_full(void *arg)
{
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    int file = open_file();
    int64_t offset = 0;
    int rc;

    (void)arg;
    EXPECT_EQ(0, pirn_tcp_set_send_buffer(conn, 16 * 1024));
    /* Nobody reads: sooner or later there is no room. */
    do {
        if (offset == FILE_SIZE)
            offset = 0;
        rc = pirn_tcp_sendfile(conn, file, &offset,
                               (size_t)(FILE_SIZE - offset), PIRN_EXPIRED);
    } while (rc == 0);
    EXPECT_EQ(-ETIMEDOUT, rc);
    pirn_tcp_close(conn);
    close(peer);
    close(file);
    return 0;
}

/* Goal: a peer that does not read ends the call at the deadline, and the offset
 * says how far it went.
 * Method: an expired deadline, until the buffers are full. */
TEST(sendfile_to_stalled_peer_ends_at_deadline)
{
    EXPECT_EQ(0, pirn_run(send_until_full, NULL));
}
