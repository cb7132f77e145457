/* SPDX-License-Identifier: MIT */
/* tests/sweep/fault_io.c - other descriptors, and buffers. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <pirn/io.h>

#include "fault_fixture.h"

static uint32_t workers;

static void adopt_pipe(pirn_fd *ends[2])
{
    int fds[2];

    ends[0] = ends[1] = NULL;
    sweep_hold();
    EXPECT_EQ(0, pipe2(fds, O_CLOEXEC));
    sweep_go_on();
    for (int i = 0; i < 2; i++) {
        ends[i] = SWEEP_JUNK;
        if (SWEPT(pirn_fd_adopt(fds[i], &ends[i])) == 0)
            continue;
        EXPECT_PTR_EQ(NULL, ends[i]);
        EXPECT_EQ(0, fcntl(fds[i], F_GETFL) & O_NONBLOCK);
        close(fds[i]);
    }
}

static int write_some(void *arg)
{
    pirn_fd *end = arg;

    for (int i = 0; i < 20; i++) {
        char byte = (char)i;

        if (SWEPT(pirn_fd_write(end, &byte, 1, PIRN_NEVER)) < 0)
            break;
        if (SWEPT(pirn_yield()) < 0)
            break;
    }
    pirn_fd_close(end);
    return 0;
}

static void read_some(pirn_fd *end)
{
    ssize_t n;
    int total = 0;

    do {
        char buf[8];

        n = SWEPT(pirn_fd_read(end, buf, sizeof buf, PIRN_NEVER));
        for (ssize_t i = 0; i < n; i++)
            EXPECT_EQ(total++, buf[i]);
    } while (n > 0);
}

static int through_a_pipe(void *arg)
{
    pirn_fd *ends[2];
    pirn_task *task;
    int outcome;

    (void)arg;
    adopt_pipe(ends);
    if (ends[0] != NULL && ends[1] != NULL &&
        SWEPT(pirn_go_with(write_some, ends[1], NULL, &task)) == 0) {
        ends[1] = NULL;
        read_some(ends[0]);
        pirn_fd_close(ends[0]);
        ends[0] = NULL;
        EXPECT_EQ(0, SWEPT(pirn_task_join(task, PIRN_NEVER, &outcome)));
        pirn_task_unref(task);
    }
    pirn_fd_close(ends[0]);
    pirn_fd_close(ends[1]);
    return 0;
}

static void through_a_pipe_in_runtime(void)
{
    fault_run(workers, through_a_pipe, NULL);
}

/* Goal: a pipe loses no byte and adds none, and every failure is told.
 * Method: a writer and a reader, with fibers. */
TEST(fault_in_a_pipe)
{
    workers = 0;
    SWEEP(through_a_pipe_in_runtime, SWEEP_EVERYTHING | SWEEP_DEVICES);
}

/* Goal, Method: the same with workers. */
TEST(fault_in_a_pipe_with_workers)
{
    workers = 2;
    SWEEP(through_a_pipe_in_runtime, SWEEP_EVERYTHING | SWEEP_DEVICES);
}

static void pipe_outside(void)
{
    pirn_fd *ends[2];

    adopt_pipe(ends);
    if (ends[0] != NULL && ends[1] != NULL) {
        char byte = 1;

        if (SWEPT(pirn_fd_write(ends[1], &byte, 1, PIRN_NEVER)) == 1 &&
            SWEPT(pirn_fd_ready(ends[0], PIRN_READABLE, PIRN_NEVER)) == 0)
            (void)SWEPT(pirn_fd_read(ends[0], &byte, 1, PIRN_NEVER));
    }
    pirn_fd_close(ends[0]);
    pirn_fd_close(ends[1]);
}

/* Goal: the same on a plain thread.
 * Method: one byte. */
TEST(fault_in_a_pipe_outside)
{
    SWEEP(pipe_outside, SWEEP_EVERYTHING | SWEEP_DEVICES);
}

static int fill_buffer(void *arg)
{
    pirn_buf *buf = SWEEP_JUNK;
    int rc = SWEPT(pirn_buf_new(5000, &buf));

    (void)arg;
    EXPECT(rc == 0 || buf == NULL);
    pirn_buf_unref(buf);
    return 0;
}

static void fill_buffer_in_runtime(void)
{
    fault_run(0, fill_buffer, NULL);
}

/* Goal: buffers come from the runtime's allocator and go back there.
 * Method: one. */
TEST(fault_in_buffers)
{
    SWEEP(fill_buffer_in_runtime, SWEEP_EVERYTHING);
}
