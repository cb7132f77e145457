/* SPDX-License-Identifier: MIT */
/* tests/stress/net_accept_exhaustion.c - a server that runs out of descriptors.
 *
 * Shipped elsewhere: accept failed with EMFILE, the listener stayed ready, and
 * the loop took a whole processor until somebody hung up.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <pirn/runtime.h>

#include "engine/socket_peer.h"

enum { LIMIT = 64, CLIENTS = 200, CALM_MS = 300 };

/* What the server process reports at its end. */
struct summary {
    uint64_t pauses;
    uint64_t cpu_us;
};

static pirn_listener *listener;

static int echo(void *arg)
{
    pirn_tcp *conn = arg;
    char buf[64];
    ssize_t n;

    while ((n = pirn_tcp_read(conn, buf, sizeof buf, PIRN_NEVER)) > 0) {
        if (pirn_tcp_write_all(conn, buf, (size_t)n, PIRN_NEVER) < 0)
            break;
    }
    pirn_tcp_close(conn);
    return 0;
}

static int serve(void *arg)
{
    static pirn_task *tasks[CLIENTS];
    pirn_tcp *conn;
    int outcome;
    int rc;

    (void)arg;
    for (int i = 0; i < CLIENTS; i++) {
        rc = pirn_listener_accept(listener, PIRN_NEVER, &conn);
        if (rc == 0)
            rc = pirn_go_with(echo, conn, NULL, &tasks[i]);
        if (rc < 0)
            return rc;
    }
    /* Not before all have been answered: the end of this fiber ends them. */
    for (int i = 0; i < CLIENTS; i++) {
        rc = pirn_task_join(tasks[i], PIRN_NEVER, &outcome);
        pirn_task_unref(tasks[i]);
        if (rc < 0 || outcome < 0)
            return rc < 0 ? rc : outcome;
    }
    return 0;
}

static uint64_t cpu_us(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void run_server(int report_fd)
{
    const struct rlimit limit = {LIMIT, LIMIT};
    struct summary summary;
    int rc;

    (void)setrlimit(RLIMIT_NOFILE, &limit);
    rc = pirn_run(serve, NULL);
    summary.pauses = pirn_listener_pauses(listener);
    summary.cpu_us = cpu_us();
    if (write(report_fd, &summary, sizeof summary) < 0)
        rc = -EIO;
    _exit(rc == 0 ? 0 : 1);
}

/* Every client that has been answered hangs up; returns how many that were. */
static int hang_up_answered(int *clients, int timeout_ms)
{
    struct pollfd fds[CLIENTS];
    int answered = 0;

    for (int i = 0; i < CLIENTS; i++)
        fds[i] = (struct pollfd){.fd = clients[i], .events = POLLIN};
    EXPECT_GE(poll(fds, CLIENTS, timeout_ms), 0);
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i] >= 0 && fds[i].revents != 0) {
            peer_expect(clients[i], "hi");
            close(clients[i]);
            clients[i] = -1;
            answered++;
        }
    }
    return answered;
}

/* Goal: with 64 descriptors for 200 clients the server rests instead of
 * spinning, goes on with those it has, and takes everybody in as places become
 * free.
 * Method: a child process with a limit.  The clients first only wait, which is
 * when a spinning server would burn its time; then they hang up one group after
 * the other. */
TEST(accept_out_of_descriptors_rests_and_recovers)
{
    static int clients[CLIENTS];
    struct summary summary = {0};
    pirn_addr address;
    int report[2];
    int answered = 0;
    int status = -1;
    pid_t child;

    EXPECT_EQ(0, pirn_listener_open("127.0.0.1:0", NULL, &listener));
    pirn_listener_address(listener, &address);
    REQUIRE(pipe(report) == 0);
    child = fork();
    if (child == 0)
        run_server(report[1]);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = peer_connect(pirn_addr_port(&address));
        peer_send(clients[i], "hi", 2);
    }
    EXPECT_EQ(0, poll(NULL, 0, CALM_MS));
    while (answered < CLIENTS) {
        int now = hang_up_answered(clients, 10000);

        answered += now;
        REQUIRE(now > 0);
    }
    EXPECT_EQ((ssize_t)sizeof summary,
              read(report[0], &summary, sizeof summary));
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_GE(summary.pauses, 1);
    EXPECT_LE(summary.pauses, 500);
    EXPECT_LE(summary.cpu_us, CALM_MS * 1000 / 5 * test_size(10, 1, 1));
    pirn_listener_close(listener);
    close(report[0]);
    close(report[1]);
}
