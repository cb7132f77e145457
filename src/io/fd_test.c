/* SPDX-License-Identifier: MIT */
/* src/io/fd_test.c - foreign descriptors of every sort. */
#define _GNU_SOURCE

#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include <pirn/runtime.h>

#include "engine/reactor_fixture.h"

static pirn_fd *adopt(int fd)
{
    pirn_fd *file = NULL;

    EXPECT_EQ(0, pirn_fd_adopt(fd, &file));
    return file;
}

/* Goal: what would block whatever its mode is refused, and left as it was.
 * Method: a regular file, a directory, a closed number, no place for the
 * result. */
TEST(fd_adopt_of_regular_files_answers_eperm)
{
    char path[] = "/tmp/pirn_fd_XXXXXX";
    int regular = mkstemp(path);
    int directory = open("/tmp", O_RDONLY | O_DIRECTORY);
    pirn_fd *file = (pirn_fd *)8;

    (void)unlink(path);
    EXPECT_EQ(-EPERM, pirn_fd_adopt(regular, &file));
    EXPECT_PTR_EQ(NULL, file);
    EXPECT_EQ(-EPERM, pirn_fd_adopt(directory, &file));
    EXPECT_EQ(-EBADF, pirn_fd_adopt(-1, &file));
    EXPECT_EQ(-EINVAL, pirn_fd_adopt(regular, NULL));
    EXPECT_EQ(0, fcntl(regular, F_GETFL) & O_NONBLOCK);
    EXPECT(is_open(regular));
    close(regular);
    close(directory);
}

static int use_null_device(void *arg)
{
    int fd = open("/dev/null", O_RDWR);
    pirn_fd *null_device = adopt(fd);
    pirn_fd *zero_device = adopt(open("/dev/zero", O_RDONLY));
    char buf[4] = "abc";

    (void)arg;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(0, pirn_fd_ready(null_device, PIRN_READABLE, PIRN_NEVER));
        EXPECT_EQ(0, pirn_fd_ready(null_device, PIRN_WRITABLE, PIRN_NEVER));
        EXPECT_EQ(0, pirn_fd_read(null_device, buf, sizeof buf, PIRN_NEVER));
        EXPECT_EQ(3, pirn_fd_write(null_device, "abc", 3, PIRN_NEVER));
        EXPECT_EQ(4, pirn_fd_read(zero_device, buf, sizeof buf, PIRN_NEVER));
        EXPECT_EQ(0, buf[0]);
        pirn_fd_not_ready(null_device, PIRN_READABLE);
        pirn_fd_not_ready(zero_device, PIRN_READABLE);
    }
    pirn_fd_close(zero_device);
    pirn_fd_close(null_device);
    EXPECT(!is_open(fd));
    return 0;
}

/* Goal: devices without readiness are always ready.
 * Method: /dev/null and /dev/zero, also after "not ready"; in a fiber and on
 * the plain thread. */
TEST(fd_null_device_is_always_ready)
{
    EXPECT_EQ(0, pirn_run(use_null_device, NULL));
    EXPECT_EQ(0, use_null_device(NULL));
}

/* Goal: each pollable sort can be adopted and waited on.
 * Method: an empty one of each is not ready, by facts and not by assumption. */
static int wait_on_empty_sorts(void *arg)
{
    sigset_t none;
    int fds[8];
    int count = 0;

    (void)arg;
    sigemptyset(&none);
    fds[count++] = eventfd(0, 0);
    fds[count++] = timerfd_create(CLOCK_MONOTONIC, 0);
    fds[count++] = signalfd(-1, &none, 0);
    fds[count++] = inotify_init();
    for (int i = 0; i < count; i++) {
        pirn_fd *file = adopt(fds[i]);
        char buf[8];

        EXPECT_EQ(fds[i], pirn_fd_get(file));
        EXPECT_EQ(-ETIMEDOUT, pirn_fd_ready(file, PIRN_READABLE, PIRN_EXPIRED));
        EXPECT_EQ(-ETIMEDOUT,
                  pirn_fd_read(file, buf, sizeof buf, PIRN_EXPIRED));
        pirn_fd_close(file);
    }
    return 0;
}

TEST(fd_every_pollable_sort_can_be_waited_on)
{
    EXPECT_EQ(0, pirn_run(wait_on_empty_sorts, NULL));
    EXPECT_EQ(0, wait_on_empty_sorts(NULL));
}

static int use_event_counter(void *arg)
{
    pirn_fd *file = adopt(eventfd(0, 0));
    uint64_t value = 5;

    (void)arg;
    EXPECT_EQ(8, pirn_fd_write(file, &value, 8, PIRN_NEVER));
    value = 0;
    EXPECT_EQ(0, pirn_fd_ready(file, PIRN_READABLE, PIRN_NEVER));
    EXPECT_EQ(8, pirn_fd_read(file, &value, 8, PIRN_NEVER));
    EXPECT_EQ(5u, value);
    EXPECT_EQ(-ETIMEDOUT, pirn_fd_read(file, &value, 8, PIRN_EXPIRED));
    EXPECT_EQ(-EINVAL, pirn_fd_write(file, &value, 3, PIRN_EXPIRED));
    pirn_fd_close(file);
    return 0;
}

/* Goal: an event counter works, and errors of the system come through.
 * Method: write, read, read again, write too little. */
TEST(fd_event_counter_is_read_and_written)
{
    EXPECT_EQ(0, pirn_run(use_event_counter, NULL));
    EXPECT_EQ(0, use_event_counter(NULL));
}

static int write_to_dead_pipe(void *arg)
{
    pirn_fd *file;
    int fds[2];

    (void)arg;
    EXPECT_EQ(0, pipe(fds));
    file = adopt(fds[1]);
    close(fds[0]);
    EXPECT_EQ(-EPIPE, pirn_fd_write(file, "x", 1, PIRN_NEVER));
    EXPECT_EQ(-EPIPE, pirn_fd_write(file, "x", 1, PIRN_NEVER));
    pirn_fd_close(file);
    return 0;
}

/* Goal: a pipe without readers is an error, not a signal.
 * Method: SIGPIPE has its default disposition. */
TEST(fd_write_to_pipe_without_readers_answers_epipe)
{
    struct sigaction action;

    EXPECT_EQ(0, pirn_run(write_to_dead_pipe, NULL));
    EXPECT_EQ(0, sigaction(SIGPIPE, NULL, &action));
    EXPECT(action.sa_handler == SIG_DFL);
}

/* Goal: nonsense is refused.
 * Method: NULL, and directions that are none. */
TEST(fd_calls_with_nonsense_answer_einval)
{
    pirn_fd *file = adopt(eventfd(0, 0));
    pirn_fd_ready_op op;
    char buf[8];

    EXPECT_EQ(-EINVAL, pirn_fd_ready(NULL, PIRN_READABLE, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_fd_ready(file, (enum pirn_interest)3, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_fd_read(NULL, buf, 8, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_fd_read(file, NULL, 8, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_fd_write(file, NULL, 8, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_fd_read(file, buf, SIZE_MAX, PIRN_NEVER));
    EXPECT_EQ(0, pirn_fd_read(file, buf, 0, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_fd_release(NULL));
    EXPECT_EQ(-EINVAL, pirn_fd_get(NULL));
    pirn_fd_ready_init(&op, NULL, PIRN_READABLE);
    EXPECT_EQ(0, pirn_await(&op.future, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, op.rc);
    pirn_fd_close(NULL);
    pirn_fd_unref(NULL);
    pirn_fd_not_ready(NULL, PIRN_READABLE);
    EXPECT_PTR_EQ(NULL, pirn_fd_ref(NULL));
    pirn_fd_close(file);
}

static int wait_on_two_wrappers(void *arg)
{
    int fd = eventfd(0, 0);
    pirn_fd *first = adopt(fd), *second = adopt(fd);

    (void)arg;
    EXPECT_EQ(-ETIMEDOUT, pirn_fd_ready(first, PIRN_READABLE, PIRN_EXPIRED));
    EXPECT_EQ(-EEXIST, pirn_fd_ready(second, PIRN_READABLE, PIRN_NEVER));
    EXPECT_EQ(fd, pirn_fd_release(second));
    EXPECT_EQ(-ETIMEDOUT, pirn_fd_ready(first, PIRN_READABLE, PIRN_EXPIRED));
    pirn_fd_close(first);
    return 0;
}

/* Goal: a second wrapper of a descriptor is told so and does not hang.
 * Method: both wait, in one runtime. */
TEST(fd_adopted_twice_answers_eexist)
{
    EXPECT_EQ(0, pirn_run(wait_on_two_wrappers, NULL));
}

/* Goal: "not ready" from a user does not erase an event that the user has not
 * seen.
 * Method: say it while a byte waits; then when none does. */
TEST(fd_not_ready_is_checked_with_the_kernel)
{
    struct reactor_fixture fixture;
    pirn_fd_ready_op op;
    struct poller poller = {.future = &op.future};
    pirn_fd *file;
    char byte;
    int fds[2];

    fixture_open(&fixture);
    open_pipe(fds);
    file = adopt(fds[0]);
    pirn_fd_ready_init(&op, file, PIRN_READABLE);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&poller));
    put_byte(fds[1]);
    EXPECT_EQ(1, fixture_turn(&fixture));
    EXPECT_EQ(PIRN_READY, poller_poll(&poller));
    pirn_fd_not_ready(file, PIRN_READABLE);
    pirn_fd_ready_init(&op, file, PIRN_READABLE);
    EXPECT_EQ(PIRN_READY, poller_poll(&poller));

    EXPECT_EQ(1, read(fds[0], &byte, 1));
    pirn_fd_not_ready(file, PIRN_READABLE);
    pirn_fd_ready_init(&op, file, PIRN_READABLE);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&poller));
    pirn_future_drop(&op.future);
    pirn_fd_close(file);
    close(fds[1]);
    fixture_close(&fixture);
}

/* Goal: release gives a descriptor back as it was.
 * Method: one blocking, one not. */
TEST(fd_release_restores_blocking_mode)
{
    for (int mode = 0; mode <= O_NONBLOCK; mode += O_NONBLOCK) {
        pirn_fd *file;
        int fds[2];

        EXPECT_EQ(0, pipe2(fds, mode));
        file = adopt(fds[0]);
        EXPECT_EQ(O_NONBLOCK, fcntl(fds[0], F_GETFL) & O_NONBLOCK);
        EXPECT_EQ(fds[0], pirn_fd_release(file));
        EXPECT_EQ(mode, fcntl(fds[0], F_GETFL) & O_NONBLOCK);
        close(fds[0]);
        close(fds[1]);
    }
}
