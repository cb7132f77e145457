/* SPDX-License-Identifier: MIT */
/* tests/regress/net_copied_descriptor.c - a descriptor that lives on elsewhere.
 *
 * Shipped elsewhere: a closed descriptor of which dup() or fork() had made a
 * copy stayed in the wait set; its events could not be stopped any more.
 */
#include <sys/wait.h>

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/socket_peer.h"

/* The runtime waits a little; how many turns does it take? */
static uint64_t turns_while_idle(void)
{
    pirn_runtime_info before, after;

    EXPECT_EQ(0, pirn_yield());
    pirn_runtime_get_info(pirn_runtime_current(), &before);
    EXPECT_EQ(0, pirn_sleep(pirn_after_us(2000)));
    pirn_runtime_get_info(pirn_runtime_current(), &after);
    return after.turns - before.turns;
}

/* A registered connection. */
static pirn_tcp *registered(int *fd, int *peer)
{
    pirn_tcp *conn;
    char byte;
    int fds[2];

    peer_pair(fds);
    *fd = fds[0];
    *peer = fds[1];
    EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
    EXPECT_EQ(-ETIMEDOUT, pirn_tcp_read(conn, &byte, 1, PIRN_EXPIRED));
    return conn;
}

static int close_with_copy(void *arg)
{
    int fd, peer, copy;
    pirn_tcp *conn = registered(&fd, &peer);

    (void)arg;
    copy = dup(fd);
    pirn_tcp_close(conn);
    for (int i = 0; i < 10; i++)
        peer_send(peer, "x", 1);
    EXPECT_LE(turns_while_idle(), 5);
    close(copy);
    close(peer);
    return 0;
}

/* Goal: the copy's data wakes nobody.
 * Method: dup, close the original, send to it; count turns. */
TEST(closed_descriptor_with_a_copy_is_silent)
{
    EXPECT_EQ(0, pirn_run(close_with_copy, NULL));
}

static int reuse_number(void *arg)
{
    int fd, peer, copy, next_fd, next_peer;
    pirn_tcp *conn = registered(&fd, &peer);
    pirn_tcp *next;
    char byte;

    (void)arg;
    copy = dup(fd);
    pirn_tcp_close(conn);
    next = registered(&next_fd, &next_peer);
    /* Data for the old one must not be taken for the new one's. */
    peer_send(peer, "old", 3);
    EXPECT_EQ(-ETIMEDOUT, pirn_tcp_read(next, &byte, 1, pirn_after_us(500)));
    peer_send(next_peer, "n", 1);
    EXPECT_EQ(1, pirn_tcp_read(next, &byte, 1, PIRN_NEVER));
    EXPECT_EQ('n', byte);
    pirn_tcp_close(next);
    close(copy);
    close(peer);
    close(next_peer);
    return 0;
}

/* Goal: whoever gets the number next does not get the old events.
 * Method: a new connection while the copy of the old one receives data. */
TEST(reused_number_gets_no_old_events)
{
    EXPECT_EQ(0, pirn_run(reuse_number, NULL));
}

static int close_with_child(void *arg)
{
    int fd, peer;
    int stop[2];
    pirn_tcp *conn = registered(&fd, &peer);
    char byte;
    pid_t child;

    (void)arg;
    EXPECT_EQ(0, pipe(stop));
    child = fork();
    if (child == 0) {
        /* Holds a copy of everything until it is told to go. */
        close(stop[1]);
        _exit(read(stop[0], &byte, 1) == 0 ? 0 : 1);
    }
    pirn_tcp_close(conn);
    for (int i = 0; i < 10; i++)
        peer_send(peer, "x", 1);
    EXPECT_LE(turns_while_idle(), 5);
    close(stop[0]);
    close(stop[1]);
    EXPECT_EQ(child, waitpid(child, NULL, 0));
    close(peer);
    return 0;
}

/* Goal: a child process that holds the descriptor keeps no events alive.
 * Method: fork, close in the parent, send; count turns. */
TEST(closed_descriptor_in_a_child_is_silent)
{
    EXPECT_EQ(0, pirn_run(close_with_child, NULL));
}

static int close_in_child(void *arg)
{
    int fd, peer;
    pirn_tcp *conn = registered(&fd, &peer);
    int status = -1;
    char byte;
    pid_t child;

    (void)arg;
    child = fork();
    if (child == 0) {
        pirn_tcp_close(conn);
        _exit(0);
    }
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    peer_send(peer, "x", 1);
    EXPECT_EQ(1, pirn_tcp_read(conn, &byte, 1, PIRN_NEVER));
    pirn_tcp_close(conn);
    close(peer);
    return 0;
}

/* Goal: a close in a child does not take the parent's registration along, for
 * both share the wait set.
 * Method: fork, close there, and wait for data here. */
TEST(close_in_a_child_leaves_the_parent_registered)
{
    EXPECT_EQ(0, pirn_run(close_in_child, NULL));
}
