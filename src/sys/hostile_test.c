/* SPDX-License-Identifier: MIT */
/* src/sys/hostile_test.c - is the hostile build hostile?  It is easily linked
 * without the part that is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/test.h"
#include "sys/heap.h"
#include "sys/sys.h"

enum { TRIES = 2000, LEN = 100 };

/* Goal: transfers are short or would block, now and then, and each time there is
 * news of the rest.
 * Method: a socket that always has as much as is asked for, in an edge-triggered
 * set. */
TEST(hostile_transfers_are_short)
{
    char buf[LEN] = "";
    int shorts = 0, agains = 0;
    int fds[2];
    int set = pirn__sys->epoll_create();
    struct epoll_event event;

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    EXPECT_EQ(LEN, send(fds[1], buf, LEN, 0));
    EXPECT_EQ(0, pirn__sys->epoll_add(set, fds[0], EPOLLIN | EPOLLET, NULL));
    for (int i = 0; i < TRIES; i++) {
        ssize_t n;

        (void)pirn__sys_linux.epoll_wait(set, &event, 1, PIRN_EXPIRED);
        n = pirn__sys->recv(fds[0], buf, LEN);
        if (n == LEN) {
            EXPECT_EQ(LEN, send(fds[1], buf, LEN, 0));
            continue;
        }
        agains += n == -EAGAIN;
        shorts += n > 0;
        EXPECT_EQ(1,
                  pirn__sys_linux.epoll_wait(set, &event, 1, PIRN_EXPIRED));
        if (n > 0)
            EXPECT_EQ(n, send(fds[1], buf, (size_t)n, 0));
    }
    EXPECT_GE(shorts, 1);
    EXPECT_GE(agains, 1);
    pirn__sys->close(fds[0]);
    pirn__sys->close(fds[1]);
    pirn__sys->close(set);
}

/* Goal: waits end for no reason.
 * Method: a futex that nobody wakes, often enough. */
TEST(hostile_waits_end_early)
{
    uint32_t word = 0;
    int early = 0;

    for (int i = 0; i < TRIES / 10; i++) {
        pirn_deadline soon = {pirn__sys->clock_ns() + 10000};

        early += pirn__sys->futex_wait(&word, 0, soon) == 0;
    }
    EXPECT_GE(early, 1);
}

/* Goal: fresh memory is not zero.
 * Method: one piece, twice. */
TEST(hostile_memory_is_rubbish)
{
    const pirn_alloc *alloc = &pirn__alloc_malloc;

    for (int i = 0; i < 2; i++) {
        unsigned char *piece = alloc->take(alloc->ctx, 1000, 8);

        REQUIRE(piece != NULL);
        EXPECT_EQ(0xa5, piece[0]);
        EXPECT_EQ(0xa5, piece[999]);
        alloc->give(alloc->ctx, piece, 1000, 8);
    }
}
