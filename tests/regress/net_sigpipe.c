/* SPDX-License-Identifier: MIT */
/* tests/regress/net_sigpipe.c - writing to the dead raises no signal.
 *
 * Shipped elsewhere: SIGPIPE ended the process, or the library changed its
 * disposition behind the program's back.
 */
#include <stdlib.h>
#include <sys/uio.h>

#include <pirn/runtime.h>

#include "engine/socket_peer.h"

static bool is_dead(ssize_t rc)
{
    return rc == -EPIPE || rc == -ECONNRESET;
}

static int write_to_the_dead(void *arg)
{
    const struct iovec vec = {"x", 1};
    char path[] = "/tmp/pirn_sigpipe_XXXXXX";
    int file = mkstemp(path);
    int64_t offset = 0;
    int fds[2];
    pirn_tcp *conn;
    pirn_fd *end;

    (void)arg;
    (void)unlink(path);
    EXPECT_EQ(1, write(file, "x", 1));
    peer_pair(fds);
    EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
    peer_reset(fds[1]);
    peer_await(fds[0], POLLIN);
    for (int i = 0; i < 2; i++) {
        EXPECT(is_dead(pirn_tcp_write(conn, "x", 1, PIRN_NEVER)));
        EXPECT(is_dead(pirn_tcp_writev(conn, &vec, 1, PIRN_NEVER)));
        EXPECT(is_dead(pirn_tcp_write_all(conn, "x", 1, PIRN_NEVER)));
        EXPECT(is_dead(
            pirn_tcp_sendfile(conn, file, &offset, 1, PIRN_NEVER)));
    }
    pirn_tcp_close(conn);
    close(file);

    EXPECT_EQ(0, pipe(fds));
    EXPECT_EQ(0, pirn_fd_adopt(fds[1], &end));
    close(fds[0]);
    EXPECT_EQ(-EPIPE, pirn_fd_write(end, "x", 1, PIRN_NEVER));
    EXPECT_EQ(-EPIPE, pirn_fd_write(end, "x", 1, PIRN_NEVER));
    pirn_fd_close(end);
    return 0;
}

/* Goal: each form of writing answers with an error, the process lives, and what
 * it does with SIGPIPE is its own affair.
 * Method: the default disposition, then a pending and blocked signal of the
 * program's own, which must still be there. */
TEST(writing_to_the_dead_raises_no_signal)
{
    struct sigaction action;
    sigset_t set, pending;

    EXPECT_EQ(0, pirn_run(write_to_the_dead, NULL));
    EXPECT_EQ(0, write_to_the_dead(NULL));
    EXPECT_EQ(0, sigaction(SIGPIPE, NULL, &action));
    EXPECT(action.sa_handler == SIG_DFL);

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    EXPECT_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
    EXPECT_EQ(0, raise(SIGPIPE));
    EXPECT_EQ(0, write_to_the_dead(NULL));
    EXPECT_EQ(0, sigpending(&pending));
    EXPECT_EQ(1, sigismember(&pending, SIGPIPE));
    EXPECT(signal(SIGPIPE, SIG_IGN) == SIG_DFL);
    EXPECT_EQ(0, sigprocmask(SIG_UNBLOCK, &set, NULL));
    EXPECT(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
}
