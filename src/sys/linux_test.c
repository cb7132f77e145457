/* SPDX-License-Identifier: MIT */
/* src/sys/linux_test.c - the table of the real system: every test calls through
 * `pirn__sys`, as the library does.  Deadlines are in the past or a few
 * milliseconds away. */
#define _GNU_SOURCE

#include "sys/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "engine/test.h"

#define MS UINT64_C(1000000)

static pirn_deadline after_ns(uint64_t ns)
{
    return (pirn_deadline){ pirn__sys->clock_ns() + ns };
}

/* Goal: the clock goes forward and is never 0; chance is not constant.
 * Method: two readings of each. */
TEST(linux_clock_and_random_move)
{
    uint64_t first = pirn__sys->clock_ns();

    EXPECT_NE(0, first);
    EXPECT_LE(first, pirn__sys->clock_ns());
    EXPECT(pirn__sys->random() != pirn__sys->random());
}

/* Goal: a futex wait ends at its deadline, not before, and at once if the word
 * differs.
 * Method: words that nobody wakes. */
TEST(linux_futex_wait_ends_at_deadline)
{
    uint32_t word = 5;
    pirn_deadline deadline = after_ns(2 * MS);

    while (pirn__sys->futex_wait(&word, 5, deadline) == 0)
        continue;
    EXPECT_LE(deadline.ns, pirn__sys->clock_ns());
    EXPECT_EQ(-ETIMEDOUT, pirn__sys->futex_wait(&word, 5, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, pirn__sys->futex_wait(&word, 5, deadline));
    EXPECT_EQ(0, pirn__sys->futex_wait(&word, 6, PIRN_NEVER));
}

/* What a started thread reports. */
static struct {
    PIRN_ATOMIC(uint32_t) done;
    pthread_t thread;
    bool all_blocked;
    bool faults_open;
    char name[32];
} seen;

static void report(void *arg)
{
    sigset_t mask;

    seen.thread = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    seen.all_blocked = sigismember(&mask, SIGTERM) == 1 &&
                       sigismember(&mask, SIGPIPE) == 1 &&
                       sigismember(&mask, SIGUSR1) == 1;
    seen.faults_open = sigismember(&mask, SIGSEGV) == 0 &&
                       sigismember(&mask, SIGBUS) == 0;
    pthread_getname_np(pthread_self(), seen.name, sizeof seen.name);
    /* release: the test reads what stands above. */
    pirn__store(&seen.done, *(uint32_t *)arg, release);
    pirn__sys->futex_wake(&seen.done.v_, 1);
}

static void wait_until_seen(uint32_t value)
{
    /* acquire: pairs with report(). */
    while (pirn__load(&seen.done, acquire) != value)
        (void)pirn__sys->futex_wait(&seen.done.v_, 0, after_ns(10 * MS));
}

/* Goal: a started thread has its name (cut), its argument, no signals but its
 * own faults; the starter's mask is what it was.
 * Method: the thread reports. */
TEST(linux_thread_start_prepares_the_thread)
{
    uint32_t value = 77;
    sigset_t before, after;

    pirn__init(&seen.done, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    EXPECT_EQ(0, pirn__sys->thread_start("a-name-longer-than-that", 0,
                                         report, &value));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    wait_until_seen(77);
    EXPECT(!pthread_equal(pthread_self(), seen.thread));
    EXPECT(seen.all_blocked);
    EXPECT(seen.faults_open);
    EXPECT_STR_EQ("a-name-longer-t", seen.name);
    EXPECT_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
    EXPECT_EQ(sigismember(&before, SIGUSR1), sigismember(&after, SIGUSR1));
}

/* The kernel's struct sched_attr in its first version. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t turn_ns, deadline_ns, period_ns;
};

static struct scheduling scheduling_now(void)
{
    struct scheduling now = {.size = sizeof now};

    EXPECT_EQ(0, syscall(SYS_sched_getattr, 0, &now, sizeof now, 0));
    return now;
}

static struct scheduling turns[4];

static void *note_turns(void *arg)
{
    (void)arg;
    turns[3] = scheduling_now();
    return NULL;
}

static void *shorten_turns(void *arg)
{
    const struct sched_param none = {0};
    pthread_t thread;

    (void)arg;
    turns[0] = scheduling_now();
    pirn__sys->thread_shorten_turns();
    turns[1] = scheduling_now();
    EXPECT_EQ(0, pthread_create(&thread, NULL, note_turns, NULL));
    pthread_join(thread, NULL);
    /* Somebody has chosen. */
    EXPECT_EQ(0, sched_setscheduler(0, SCHED_BATCH, &none));
    pirn__sys->thread_shorten_turns();
    turns[2] = scheduling_now();
    return NULL;
}

/* Goal: a thread may have shorter turns: nothing else of how it is scheduled
 * changes, and what it starts has turns as usual; a policy that was chosen stays.
 * Method: what the kernel says before and after; before 6.12 it says 0. */
TEST(linux_thread_shorten_turns_changes_nothing_else)
{
    pthread_t thread;

    EXPECT_EQ(0, pthread_create(&thread, NULL, shorten_turns, NULL));
    pthread_join(thread, NULL);
    EXPECT_EQ(turns[0].policy, turns[1].policy);
    EXPECT_EQ(turns[0].nice, turns[1].nice);
    EXPECT_LE(turns[1].turn_ns, 500 * 1000);
    EXPECT_LE(turns[1].turn_ns, turns[0].turn_ns);
    EXPECT_EQ(turns[0].turn_ns == 0, turns[1].turn_ns == 0);
    EXPECT_EQ(turns[0].turn_ns, turns[3].turn_ns);
    EXPECT_EQ(SCHED_BATCH, turns[2].policy);
}

/* Goal: locks block in the kernel and wake, without any initialisation.
 * Method: the holder keeps the lock until another thread waits for it. */
static pirn_lock shared_lock;
static int guarded_value;

static void *lock_and_add(void *arg)
{
    (void)arg;
    pirn__lock(&shared_lock);
    guarded_value++;
    pirn__unlock(&shared_lock);
    return NULL;
}

TEST(linux_lock_waits_and_wakes)
{
    pthread_t thread;

    pirn__lock(&shared_lock);
    EXPECT_EQ(0, pthread_create(&thread, NULL, lock_and_add, NULL));
    /* relaxed: only polled; 2 says that the other thread is about to wait. */
    while (pirn__load(&shared_lock.word_, relaxed) != 2)
        sched_yield();
    guarded_value++;
    pirn__unlock(&shared_lock);
    pthread_join(thread, NULL);
    EXPECT_EQ(2, guarded_value);
}

/* Goal: memory is mapped, given back, and unmapped; the mapping limit is read.
 * Method: contents and residence. */
TEST(linux_memory_is_given_back)
{
    size_t page = pirn__sys->page_size();
    unsigned char pages[2] = { 0, 0 };
    void *base;

    REQUIRE(pirn__sys->map(2 * page, &base) == 0);
    EXPECT_EQ(0, pirn__sys->resident(base, 2 * page, pages));
    EXPECT_EQ(0, (pages[0] | pages[1]) & 1);
    *((char *)base + page) = 1;
    EXPECT_EQ(0, pirn__sys->resident(base, 2 * page, pages));
    EXPECT_EQ(0, pages[0] & 1);
    EXPECT_EQ(1, pages[1] & 1);
    EXPECT_EQ(0, pirn__sys->discard(base, 2 * page));
    EXPECT_EQ(0, *((char *)base + page));
    EXPECT_EQ(0, pirn__sys->unmap(base, 2 * page));
    EXPECT(pirn__sys->map(SIZE_MAX / page * page, &base) < 0);
    EXPECT_PTR_EQ(NULL, base);
    EXPECT_LE(1000, pirn__sys->mapping_limit());
}

/* Make a pipe whose reading end is closed already. */
static int broken_pipe(void)
{
    int fds[2];

    EXPECT_EQ(0, pipe2(fds, O_CLOEXEC | O_NONBLOCK));
    close(fds[0]);
    return fds[1];
}

static bool sigpipe_is_pending(void)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

static void set_sigpipe_blocked(bool blocked)
{
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &mask, NULL);
}

static void expect_sigpipe_blocked(bool blocked)
{
    sigset_t mask;

    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    EXPECT_EQ(blocked, sigismember(&mask, SIGPIPE));
}

/* Goal: writing to a broken pipe is -EPIPE and no signal, whether the thread
 * has SIGPIPE blocked or not, and the mask stays.
 * Method: default disposition, which would end the process. */
TEST(linux_write_to_broken_pipe_raises_nothing)
{
    struct iovec vec = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
    struct sigaction action;
    int fd = broken_pipe();

    signal(SIGPIPE, SIG_DFL);
    for (int blocked = 0; blocked <= 1; blocked++) {
        set_sigpipe_blocked(blocked);
        EXPECT_EQ(-EPIPE, pirn__sys->write(fd, "x", 1));
        EXPECT_EQ(-EPIPE, pirn__sys->writev(fd, &vec, 1));
        EXPECT(!sigpipe_is_pending());
        expect_sigpipe_blocked(blocked);
    }
    set_sigpipe_blocked(false);
    sigaction(SIGPIPE, NULL, &action);
    EXPECT(action.sa_handler == SIG_DFL);
    close(fd);
}

/* Goal: a SIGPIPE that was pending for the program stays pending.
 * Method: block it, raise it, write. */
TEST(linux_write_keeps_pending_sigpipe_of_others)
{
    const struct timespec no_time = { 0 };
    sigset_t mask;
    int fd = broken_pipe();

    set_sigpipe_blocked(true);
    pthread_kill(pthread_self(), SIGPIPE);
    EXPECT_EQ(-EPIPE, pirn__sys->write(fd, "x", 1));
    EXPECT(sigpipe_is_pending());
    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    EXPECT_EQ(SIGPIPE, sigtimedwait(&mask, NULL, &no_time));
    set_sigpipe_blocked(false);
    close(fd);
}

/* A connected pair of stream sockets whose second end is closed. */
static int broken_socket(void)
{
    int fds[2];

    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    close(fds[1]);
    return fds[0];
}

/* Goal: every way to send to a dead peer is -EPIPE and no signal.
 * Method: default disposition. */
TEST(linux_send_to_dead_peer_raises_nothing)
{
    struct iovec vec = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
    FILE *file = tmpfile();
    int fd = broken_socket();
    off_t offset = 0;

    REQUIRE(file != NULL);
    fputs("content", file);
    fflush(file);
    signal(SIGPIPE, SIG_DFL);
    EXPECT_EQ(-EPIPE, pirn__sys->send(fd, "x", 1));
    EXPECT_EQ(-EPIPE, pirn__sys->send_more(fd, "x", 1));
    EXPECT_EQ(-EPIPE, pirn__sys->sendv(fd, &vec, 1));
    EXPECT_EQ(-EPIPE, pirn__sys->sendfile(fd, fileno(file), &offset, 7));
    EXPECT_EQ(0, offset);
    EXPECT(!sigpipe_is_pending());
    fclose(file);
    close(fd);
}

/* Goal: reads and writes move bytes and say -EAGAIN, 0 at the end.
 * Method: one pipe. */
TEST(linux_pipe_moves_bytes)
{
    char first[2], second[3];
    struct iovec in[2] = { { .iov_base = first, .iov_len = 2 },
                           { .iov_base = second, .iov_len = 3 } };
    struct iovec out[2] = { { .iov_base = (char[]){ 'c', 'd' }, .iov_len = 2 },
                            { .iov_base = (char[]){ 'e' }, .iov_len = 1 } };
    int fds[2];

    REQUIRE(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    EXPECT_EQ(-EAGAIN, pirn__sys->read(fds[0], first, 2));
    EXPECT_EQ(2, pirn__sys->write(fds[1], "ab", 2));
    EXPECT_EQ(3, pirn__sys->writev(fds[1], out, 2));
    EXPECT_EQ(5, pirn__sys->readv(fds[0], in, 2));
    EXPECT_EQ(0, memcmp(first, "ab", 2));
    EXPECT_EQ(0, memcmp(second, "cde", 3));
    pirn__sys->close(fds[1]);
    EXPECT_EQ(0, pirn__sys->read(fds[0], first, 2));
    pirn__sys->close(fds[0]);
    EXPECT_EQ(-EBADF, pirn__sys->read(fds[0], first, 2));
    EXPECT_EQ(-EBADF, pirn__sys->write(fds[1], "ab", 2));
}

static void expect_kind(int expected, int fd)
{
    EXPECT_LE(0, fd);
    EXPECT_EQ(expected, pirn__sys->fd_kind(fd));
    close(fd);
}

/* Goal: each kind of descriptor is told apart.
 * Method: one of each; the writing end of a packet pipe is no plain pipe. */
TEST(linux_fd_kind_tells_descriptors_apart)
{
    int fds[2];

    expect_kind(PIRN__FD_TCP, pirn__sys->socket(AF_INET));
    expect_kind(PIRN__FD_STREAM_SOCKET, pirn__sys->socket(AF_UNIX));
    expect_kind(PIRN__FD_OTHER, socket(AF_INET, SOCK_DGRAM, 0));
    expect_kind(PIRN__FD_OTHER, socket(AF_UNIX, SOCK_SEQPACKET, 0));
    expect_kind(PIRN__FD_CHARACTER, open("/dev/null", O_RDWR));
    expect_kind(PIRN__FD_REGULAR, open("/proc/self/exe", O_RDONLY));
    expect_kind(PIRN__FD_REGULAR, open("/", O_RDONLY));
    expect_kind(PIRN__FD_OTHER, pirn__sys->eventfd());
    expect_kind(PIRN__FD_OTHER, pirn__sys->timerfd());
    expect_kind(PIRN__FD_OTHER, pirn__sys->epoll_create());
    REQUIRE(pipe(fds) == 0);
    expect_kind(PIRN__FD_PIPE, fds[0]);
    expect_kind(PIRN__FD_PIPE, fds[1]);
    REQUIRE(pipe2(fds, O_DIRECT) == 0);
    expect_kind(PIRN__FD_OTHER, fds[1]);
    close(fds[0]);
    EXPECT_EQ(-EBADF, pirn__sys->fd_kind(-1));
}

/* Goal: the non-blocking flag is read and written, the previous one reported.
 * Method: a pipe. */
TEST(linux_nonblock_is_set_and_reported)
{
    int fds[2];

    REQUIRE(pipe(fds) == 0);
    EXPECT_EQ(0, pirn__sys->get_nonblock(fds[0]));
    EXPECT_EQ(0, pirn__sys->set_nonblock(fds[0], true));
    EXPECT_EQ(1, pirn__sys->get_nonblock(fds[0]));
    EXPECT_EQ(1, pirn__sys->set_nonblock(fds[0], true));
    EXPECT_EQ(1, pirn__sys->set_nonblock(fds[0], false));
    EXPECT_EQ(0, pirn__sys->get_nonblock(fds[0]));
    close(fds[0]);
    close(fds[1]);
    EXPECT_EQ(-EBADF, pirn__sys->get_nonblock(fds[0]));
    EXPECT_EQ(-EBADF, pirn__sys->set_nonblock(fds[0], true));
}

/* Goal: an eventfd counts signals, also at the end of its range.
 * Method: signal, read; fill it, signal again. */
TEST(linux_eventfd_signal_never_blocks)
{
    int fd = pirn__sys->eventfd();
    uint64_t value = 0;

    EXPECT_EQ(0, pirn__sys->eventfd_signal(fd));
    EXPECT_EQ(0, pirn__sys->eventfd_signal(fd));
    EXPECT_EQ(8, pirn__sys->read(fd, &value, sizeof value));
    EXPECT_EQ(2, value);
    EXPECT_EQ(-EAGAIN, pirn__sys->read(fd, &value, sizeof value));
    value = UINT64_MAX - 1;
    EXPECT_EQ(8, pirn__sys->write(fd, &value, sizeof value));
    EXPECT_EQ(0, pirn__sys->eventfd_signal(fd));
    pirn__sys->close(fd);
    EXPECT_EQ(-EBADF, pirn__sys->eventfd_signal(fd));
}

/* Goal: poll reports what is ready, and ends at its deadline otherwise.
 * Method: an eventfd, ready or not. */
TEST(linux_poll_reports_or_times_out)
{
    int fd = pirn__sys->eventfd();
    struct pollfd entry = { .fd = fd, .events = POLLIN };
    pirn_deadline deadline = after_ns(2 * MS);

    EXPECT_EQ(0, pirn__sys->poll(&entry, 1, PIRN_EXPIRED));
    EXPECT_EQ(0, pirn__sys->poll(&entry, 1, deadline));
    EXPECT_LE(deadline.ns, pirn__sys->clock_ns());
    EXPECT_EQ(0, pirn__sys->eventfd_signal(fd));
    EXPECT_EQ(1, pirn__sys->poll(&entry, 1, PIRN_NEVER));
    EXPECT_EQ(POLLIN, entry.revents);
    pirn__sys->close(fd);
}

/* Goal: epoll_wait keeps its deadlines: none early, the two ends of time
 * without a clock.
 * Method: an eventfd in the set. */
TEST(linux_epoll_wait_keeps_deadlines)
{
    int set = pirn__sys->epoll_create();
    int fd = pirn__sys->eventfd();
    struct epoll_event events[4];
    pirn_deadline deadline;

    EXPECT_EQ(0, pirn__sys->epoll_add(set, fd, EPOLLIN, &deadline));
    EXPECT_EQ(-EEXIST, pirn__sys->epoll_add(set, fd, EPOLLIN, NULL));
    EXPECT_EQ(0, pirn__sys->epoll_wait(set, events, 4, PIRN_EXPIRED));
    deadline = after_ns(MS / 2);
    EXPECT_EQ(0, pirn__sys->epoll_wait(set, events, 4, deadline));
    EXPECT_LE(deadline.ns, pirn__sys->clock_ns());
    EXPECT_EQ(0, pirn__sys->epoll_wait(set, events, 4, deadline));

    EXPECT_EQ(0, pirn__sys->eventfd_signal(fd));
    EXPECT_EQ(1, pirn__sys->epoll_wait(set, events, 4, PIRN_NEVER));
    EXPECT_PTR_EQ(&deadline, events[0].data.ptr);
    EXPECT_EQ(1, pirn__sys->epoll_wait(set, events, 4, PIRN_EXPIRED));
    deadline.ns = UINT64_MAX - 1;
    EXPECT_EQ(1, pirn__sys->epoll_wait(set, events, 4, deadline));

    EXPECT_EQ(0, pirn__sys->epoll_remove(set, fd));
    EXPECT_EQ(-ENOENT, pirn__sys->epoll_remove(set, fd));
    EXPECT_EQ(0, pirn__sys->epoll_wait(set, events, 4, PIRN_EXPIRED));
    pirn__sys->close(fd);
    pirn__sys->close(set);
}

static void ignore_alarm(int number)
{
    (void)number;
}

/* Goal: a signal ends a wait early with 0, which is no error.
 * Method: endless waits of each kind, under a timer that keeps signalling. */
TEST(linux_interrupted_waits_return_zero)
{
    struct sigaction action = { .sa_handler = ignore_alarm }, before;
    const struct timespec pause = { .tv_nsec = 3000000 };
    struct itimerspec ticks = { .it_value = pause, .it_interval = pause };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
                              .sigev_signo = SIGUSR2 };
    struct epoll_event events[1];
    uint32_t word = 0;
    timer_t timer;
    int set = pirn__sys->epoll_create();

    sigaction(SIGUSR2, &action, &before);
    REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    timer_settime(timer, 0, &ticks, NULL);
    EXPECT_EQ(0, pirn__sys->epoll_wait(set, events, 1, PIRN_NEVER));
    EXPECT_EQ(0, pirn__sys->epoll_wait(set, events, 1,
                                       (pirn_deadline){ UINT64_MAX - 1 }));
    EXPECT_EQ(0, pirn__sys->poll(NULL, 0, PIRN_NEVER));
    EXPECT_EQ(0, pirn__sys->futex_wait(&word, 0, PIRN_NEVER));
    timer_delete(timer);
    sigaction(SIGUSR2, &before, NULL);
    pirn__sys->close(set);
}

/* Goal: a timerfd fires at its time, also for the distant past, and can be
 * disarmed.
 * Method: poll it. */
TEST(linux_timerfd_fires_and_is_disarmed)
{
    int fd = pirn__sys->timerfd();
    struct pollfd entry = { .fd = fd, .events = POLLIN };
    pirn_deadline deadline = after_ns(2 * MS);

    EXPECT_EQ(0, pirn__sys->timerfd_set(fd, deadline));
    EXPECT_EQ(1, pirn__sys->poll(&entry, 1, PIRN_NEVER));
    EXPECT_LE(deadline.ns, pirn__sys->clock_ns());
    EXPECT_EQ(0, pirn__sys->timerfd_set(fd, PIRN_NEVER));
    EXPECT_EQ(0, pirn__sys->poll(&entry, 1, PIRN_EXPIRED));
    EXPECT_EQ(0, pirn__sys->timerfd_set(fd, PIRN_EXPIRED));
    EXPECT_EQ(1, pirn__sys->poll(&entry, 1, PIRN_NEVER));
    EXPECT_EQ(0, pirn__sys->timerfd_set(fd, (pirn_deadline){ UINT64_MAX - 1 }));
    EXPECT_EQ(0, pirn__sys->poll(&entry, 1, PIRN_EXPIRED));
    pirn__sys->close(fd);
}

/* Goal: a TCP connection over the loopback, every call of the table once.
 * Method: both ends on this thread. */
TEST(linux_tcp_sockets_work)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct sockaddr *any = (struct sockaddr *)(void *)&address;
    struct iovec vec[2] = { { .iov_base = (char[]){ 'a', 'b' }, .iov_len = 2 },
                            { .iov_base = (char[]){ 'c' }, .iov_len = 1 } };
    int listener = pirn__sys->socket(AF_INET);
    int client = pirn__sys->socket(AF_INET);
    struct pollfd entry = { .fd = listener, .events = POLLIN };
    unsigned len = sizeof address;
    int one = 1, error = -1, server, rc;
    char buf[8];

    EXPECT_EQ(0, pirn__sys->setsockopt(listener, SOL_SOCKET, SO_REUSEADDR,
                                       &one, sizeof one));
    EXPECT_EQ(0, pirn__sys->bind(listener, any, len));
    EXPECT_EQ(0, pirn__sys->listen(listener, 4));
    EXPECT_EQ(-EAGAIN, pirn__sys->accept(listener, NULL, NULL));
    EXPECT_EQ(0, pirn__sys->sockname(listener, any, &len));
    rc = pirn__sys->connect(client, any, len);
    EXPECT(rc == 0 || rc == -EINPROGRESS);
    EXPECT_EQ(1, pirn__sys->poll(&entry, 1, PIRN_NEVER));
    len = sizeof address;
    server = pirn__sys->accept(listener, any, &len);
    EXPECT_EQ(sizeof address, len);
    EXPECT_EQ(1, pirn__sys->get_nonblock(server));
    EXPECT_EQ(FD_CLOEXEC, fcntl(server, F_GETFD));
    len = sizeof error;
    EXPECT_EQ(0, pirn__sys->getsockopt(client, SOL_SOCKET, SO_ERROR, &error,
                                       &len));
    EXPECT_EQ(0, error);
    len = sizeof address;
    EXPECT_EQ(0, pirn__sys->peername(client, any, &len));

    EXPECT_EQ(-EAGAIN, pirn__sys->recv(server, buf, sizeof buf));
    EXPECT_EQ(3, pirn__sys->sendv(client, vec, 2));
    EXPECT_EQ(2, pirn__sys->send(client, "de", 2));
    entry.fd = server;
    EXPECT_EQ(1, pirn__sys->poll(&entry, 1, PIRN_NEVER));
    EXPECT_EQ(5, pirn__sys->recv(server, buf, sizeof buf));
    EXPECT_EQ(0, memcmp(buf, "abcde", 5));
    EXPECT_EQ(0, pirn__sys->shutdown(client, SHUT_WR));
    EXPECT_EQ(1, pirn__sys->poll(&entry, 1, PIRN_NEVER));
    EXPECT_EQ(0, pirn__sys->recv(server, buf, sizeof buf));
    pirn__sys->close(client);
    pirn__sys->close(server);
    pirn__sys->close(listener);
}
