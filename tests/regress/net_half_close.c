/* SPDX-License-Identifier: MIT */
/* tests/regress/net_half_close.c - the end of one direction is not the end.
 *
 * Shipped elsewhere: EPOLLRDHUP taken for "closed" cut off what was still to be
 * written, or was armed again and again at full processor load.
 */
#include <pthread.h>
#include <stdlib.h>

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/socket_peer.h"

enum { SIZE = 10 * 1024 * 1024, STEP = 64 * 1024 };

/* A client that ends its own direction first and reads slowly, in small steps
 * through a small buffer. */
struct client {
    int fd;
    size_t received;
    size_t reads;
};

static void *read_slowly(void *arg)
{
    struct client *client = arg;
    char *buf = malloc(STEP);
    ssize_t n;

    while ((n = recv(client->fd, buf, STEP, 0)) > 0) {
        client->received += (size_t)n;
        client->reads++;
        sched_yield();
    }
    free(buf);
    return NULL;
}

static int write_after_end(void *arg)
{
    struct client *client = arg;
    pirn_tcp *conn = peer_adopted(&client->fd);
    const int small = 16 * 1024;
    char *data = calloc(1, SIZE);
    pirn_runtime_info info;
    pthread_t thread;
    char byte;

    EXPECT_EQ(0, setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &small,
                            sizeof small));
    EXPECT_EQ(0, pirn_tcp_set_send_buffer(conn, 32 * 1024));
    EXPECT_EQ(0, shutdown(client->fd, SHUT_WR));
    EXPECT_EQ(0, pirn_tcp_read(conn, &byte, 1, PIRN_NEVER));
    EXPECT_EQ(0, pthread_create(&thread, NULL, read_slowly, client));
    EXPECT_EQ(0, pirn_tcp_write_all(conn, data, SIZE, PIRN_NEVER));
    EXPECT_EQ(0, pirn_tcp_read(conn, &byte, 1, PIRN_NEVER));
    pirn_tcp_close(conn);
    pthread_join(thread, NULL);
    EXPECT_EQ(SIZE, client->received);
    /* Nothing spun: there was no more to do than the client caused. */
    pirn_runtime_get_info(pirn_runtime_current(), &info);
    EXPECT_LE(info.turns, 4 * client->reads + 100);
    close(client->fd);
    free(data);
    return 0;
}

/* Goal: everything that is written after the peer's end of stream arrives, at
 * no more effort than the peer's own reads.
 * Method: 10 MB to a slow reader that has shut its sending side down; count the
 * turns of the runtime. */
TEST(half_closed_peer_gets_all_that_is_written)
{
    struct client client = {0};

    EXPECT_EQ(0, pirn_run(write_after_end, &client));
}

static int wait_beside_dead_socket(void *arg)
{
    pirn_runtime_info before, after;
    pirn_fd *file;
    char byte;
    int fds[2];

    (void)arg;
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    EXPECT_EQ(0, pirn_fd_adopt(fds[0], &file));
    EXPECT_EQ(-ETIMEDOUT, pirn_fd_read(file, &byte, 1, PIRN_EXPIRED));
    close(fds[1]);
    EXPECT_EQ(0, pirn_fd_read(file, &byte, 1, PIRN_NEVER));
    pirn_runtime_get_info(pirn_runtime_current(), &before);
    EXPECT_EQ(0, pirn_sleep(pirn_after_us(2000)));
    pirn_runtime_get_info(pirn_runtime_current(), &after);
    EXPECT_LE(after.turns - before.turns, 5);
    EXPECT_EQ(0, pirn_fd_read(file, &byte, 1, PIRN_NEVER));
    pirn_fd_close(file);
    return 0;
}

/* Goal: a hang-up that nobody acts on costs nothing.
 * Method: the peer of a Unix socket closes; the descriptor stays open while the
 * runtime waits for something else; count its turns. */
TEST(hung_up_descriptor_left_open_does_not_spin)
{
    EXPECT_EQ(0, pirn_run(wait_beside_dead_socket, NULL));
}
