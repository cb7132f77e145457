/* SPDX-License-Identifier: MIT */
/* examples/embed.c - Pirn inside a program that has a loop of its own.
 *
 * The loop is a plain poll() here; any other would do.  It watches one
 * descriptor of the runtime beside its own, and asks the runtime when it wants
 * to be called at the latest. */
#include <pirn/pirn.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { TICKS = 5 };

/* What the fiber and the loop share. */
struct shared {
    int pipe_write_fd;
    bool done;
};

/* Writes to the host's pipe: the host hears of it like of anything else. */
static int tick(void *arg)
{
    struct shared *shared = arg;
    int rc = 0;

    for (int i = 0; rc == 0 && i < TICKS; i++) {
        rc = pirn_sleep(pirn_after_ms(10));
        if (rc == 0 && write(shared->pipe_write_fd, "x", 1) != 1)
            break;
    }
    shared->done = true;
    return rc;
}

/* For poll(): milliseconds until `deadline`, rounded up, -1 for never. */
static int timeout_until(pirn_deadline deadline)
{
    uint64_t now_ns = pirn_now_ns();
    uint64_t ms;

    if (deadline.ns == PIRN_NEVER.ns)
        return -1;
    if (deadline.ns <= now_ns)
        return 0;
    ms = (deadline.ns - now_ns + 999999) / 1000000;
    return ms < 60000 ? (int)ms : 60000;
}

/* The host's own work: a byte has come. */
static int hear(int fd)
{
    char byte;

    if (read(fd, &byte, 1) != 1)
        return 0;
    (void)printf("host: heard a tick\n");
    return 1;
}

static int host_loop(pirn_runtime *rt, const struct shared *shared,
                     int pipe_read_fd)
{
    struct pollfd fds[] = {
        {.fd = pirn_runtime_fd(rt), .events = POLLIN},
        {.fd = pipe_read_fd, .events = POLLIN},
    };
    int heard = 0;

    while (!shared->done || heard < TICKS) {
        int timeout_ms = timeout_until(pirn_runtime_next_deadline(rt));

        if (poll(fds, 2, timeout_ms) < 0)
            return -1;
        if ((fds[1].revents & POLLIN) != 0)
            heard += hear(pipe_read_fd);
        /* At most so long, then the host's own work is due again. */
        if (pirn_runtime_turn(rt, pirn_after_ms(5)) < 0)
            return -1;
    }
    return heard;
}

int main(void)
{
    pirn_runtime *rt;
    pirn_report report;
    struct shared shared = {.done = false};
    int fds[2];

    if (pipe(fds) < 0)
        return 1;
    shared.pipe_write_fd = fds[1];
    if (pirn_runtime_new(NULL, &rt) < 0)
        return 1;

    /* Outside a task the options say whose fiber it is to be. */
    int rc =
        pirn_go_with(tick, &shared, &(pirn_spawn_options){.runtime = rt}, NULL);
    int heard = rc < 0 ? rc : host_loop(rt, &shared, fds[0]);

    rc = pirn_runtime_shutdown(rt, pirn_after_ms(1000), &report);
    pirn_runtime_unref(rt);
    (void)close(fds[0]);
    (void)close(fds[1]);
    (void)printf("%d ticks, %llu tasks completed\n", heard,
                 (unsigned long long)report.completed);
    return rc == 0 && heard == TICKS && report.completed == 1 ? 0 : 1;
}
