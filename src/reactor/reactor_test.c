/* SPDX-License-Identifier: MIT */
/* src/reactor/reactor_test.c - the wait set itself: wakes, the timer, the
 * graveyard, and every way in which making one can fail.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "engine/reactor_fixture.h"

static bool is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 1;
}

static struct pirn__sys table;
static int signals;
static int timer_sets;
static pirn_deadline last_timer;
static pirn_deadline last_wait;
static uint64_t now_ns;

static int counting_signal(int fd)
{
    signals++;
    return pirn__sys_linux.eventfd_signal(fd);
}

static int counting_timerfd_set(int fd, pirn_deadline deadline)
{
    (void)fd;
    timer_sets++;
    last_timer = deadline;
    return 0;
}

static uint64_t fixed_clock(void)
{
    return now_ns;
}

static int noting_wait(int epoll_fd, struct epoll_event *events, int capacity,
                       pirn_deadline deadline)
{
    last_wait = deadline;
    return pirn__sys_linux.epoll_wait(epoll_fd, events, capacity, PIRN_EXPIRED);
}

static void begin_fake(void)
{
    table = pirn__sys_linux;
    signals = 0;
    timer_sets = 0;
    now_ns = 1000000000;
    table.eventfd_signal = counting_signal;
    table.timerfd_set = counting_timerfd_set;
    table.clock_ns = fixed_clock;
    table.epoll_wait = noting_wait;
    pirn__sys = &table;
}

static void end_fake(void)
{
    pirn__sys = &pirn__sys_linux;
}

/* Goal: any number of wakes before a poll make one write, and each later poll
 * needs a new one.
 * Method: count the writes; the descriptor of the set tells what a host would
 * see. */
TEST(reactor_wakes_coalesce_until_harvested)
{
    struct reactor_fixture fixture;

    fixture_open(&fixture);
    begin_fake();
    EXPECT(!is_readable(pirn__reactor_fd(fixture.reactor)));
    pirn__reactor_wake(fixture.reactor);
    pirn__reactor_wake(fixture.reactor);
    EXPECT_EQ(1, signals);
    EXPECT(is_readable(pirn__reactor_fd(fixture.reactor)));
    EXPECT_EQ(0, fixture_turn(&fixture));
    EXPECT(!is_readable(pirn__reactor_fd(fixture.reactor)));
    pirn__reactor_wake(fixture.reactor);
    EXPECT_EQ(2, signals);
    EXPECT(is_readable(pirn__reactor_fd(fixture.reactor)));
    end_fake();
    fixture_close(&fixture);
}

static void *wake_it(void *arg)
{
    pirn__reactor_wake(arg);
    return NULL;
}

/* Goal: a wake ends a poll that waits for ever, or keeps it from starting.
 * Method: a second thread wakes. */
TEST(reactor_wake_ends_poll)
{
    struct reactor_fixture fixture;
    pthread_t thread;

    fixture_open(&fixture);
    REQUIRE(pthread_create(&thread, NULL, wake_it, fixture.reactor) == 0);
    EXPECT_EQ(0, pirn__reactor_poll(fixture.reactor, PIRN_NEVER));
    pthread_join(thread, NULL);
    fixture_close(&fixture);
}

/* Goal: after shutdown a wake does nothing, so that a descriptor of somebody
 * else, which got the number, is not written to.
 * Method: shut down, make a new descriptor, wake. */
TEST(reactor_wake_after_shutdown_does_nothing)
{
    struct reactor_fixture fixture;

    fixture_open(&fixture);
    begin_fake();
    pirn__reactor_shutdown(fixture.reactor);
    pirn__reactor_wake(fixture.reactor);
    EXPECT_EQ(0, signals);
    EXPECT_EQ(-1, pirn__reactor_fd(fixture.reactor));
    end_fake();
    fixture_close(&fixture);
}

/* Goal: only waits below 4 ms use the timer, which is armed once for a time.
 * Method: a clock that stands, and the calls that would have been made. */
TEST(reactor_short_wait_arms_timer_once)
{
    struct reactor_fixture fixture;
    pirn_deadline soon, later;

    fixture_open(&fixture);
    begin_fake();
    soon = (pirn_deadline){now_ns + 100000};
    later = (pirn_deadline){now_ns + 5000000};

    EXPECT_EQ(0, pirn__reactor_poll(fixture.reactor, soon));
    EXPECT_EQ(1, timer_sets);
    EXPECT_EQ(soon.ns, last_timer.ns);
    EXPECT_EQ(PIRN_NEVER.ns, last_wait.ns);
    EXPECT_EQ(0, pirn__reactor_poll(fixture.reactor, soon));
    EXPECT_EQ(1, timer_sets);

    EXPECT_EQ(0, pirn__reactor_poll(fixture.reactor, later));
    EXPECT_EQ(1, timer_sets);
    EXPECT_EQ(later.ns, last_wait.ns);
    EXPECT_EQ(0, pirn__reactor_poll(fixture.reactor, PIRN_NEVER));
    EXPECT_EQ(0, pirn__reactor_poll(fixture.reactor, PIRN_EXPIRED));
    EXPECT_EQ(0, last_wait.ns);
    EXPECT_EQ(1, timer_sets);

    /* A time that has passed is no wait at all. */
    now_ns = later.ns;
    EXPECT_EQ(0, pirn__reactor_poll(fixture.reactor, soon));
    EXPECT_EQ(0, last_wait.ns);
    EXPECT_EQ(1, timer_sets);
    end_fake();
    fixture_close(&fixture);
}

/* Goal: the timer really ends a poll, at the time and again for the next one.
 * Method: two waits of 200 us on the real clock; never early. */
TEST(reactor_short_wait_ends_at_its_time)
{
    struct reactor_fixture fixture;

    fixture_open(&fixture);
    for (int i = 0; i < 2; i++) {
        pirn_deadline deadline = {pirn__sys->clock_ns() + 200000};

        EXPECT_EQ(0, pirn__reactor_poll(fixture.reactor, deadline));
        EXPECT_GE(pirn__sys->clock_ns(), deadline.ns);
    }
    fixture_close(&fixture);
}

/* Goal: making a reactor fails as a whole, whichever of its calls fails.
 * Method: fail the k-th; count descriptors and memory. */
static int calls_until_failure;

static int fail_or(int (*fn)(void))
{
    return --calls_until_failure == 0 ? -EMFILE : fn();
}

static int failing_epoll_create(void)
{
    return fail_or(pirn__sys_linux.epoll_create);
}

static int failing_eventfd(void)
{
    return fail_or(pirn__sys_linux.eventfd);
}

static int failing_timerfd(void)
{
    return fail_or(pirn__sys_linux.timerfd);
}

static int failing_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    if (--calls_until_failure == 0)
        return -ENOSPC;
    return pirn__sys_linux.epoll_add(epoll_fd, fd, events, data);
}

static int live_pieces;

static void *counting_take(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (--calls_until_failure == 0)
        return NULL;
    live_pieces++;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void counting_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    live_pieces--;
    free(memory);
}

static int lowest_free_fd(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

TEST(reactor_new_fails_as_a_whole)
{
    const pirn_alloc alloc = {.take = counting_take, .give = counting_give};
    struct pirn__home home = {.alloc = &alloc};
    struct pirn__reactor *reactor = NULL;
    int before = lowest_free_fd();
    int rc = -1;
    int k;

    table = pirn__sys_linux;
    table.epoll_create = failing_epoll_create;
    table.eventfd = failing_eventfd;
    table.timerfd = failing_timerfd;
    table.epoll_add = failing_add;
    pirn__sys = &table;
    for (k = 1; rc < 0 && k < 20; k++) {
        calls_until_failure = k;
        rc = pirn__reactor_new(&alloc, &home, &reactor);
        if (rc == 0)
            break;
        EXPECT(rc == -EMFILE || rc == -ENOSPC || rc == -ENOMEM);
        EXPECT_PTR_EQ(NULL, reactor);
        EXPECT_EQ(0, live_pieces);
        EXPECT_EQ(before, lowest_free_fd());
    }
    pirn__sys = &pirn__sys_linux;
    EXPECT_EQ(8, k); /* memory twice, epoll, eventfd, add, timerfd, add */
    REQUIRE(rc == 0);
    pirn__reactor_shutdown(reactor);
    pirn__reactor_free(reactor);
    EXPECT_EQ(0, live_pieces);
    EXPECT_EQ(before, lowest_free_fd());
}

static int closed_objects;

static void count_closed(void *ctx, void *memory, size_t size, size_t align)
{
    closed_objects++;
    counting_give(ctx, memory, size, align);
}

/* Goal: closing gives the memory back at once, polled or not, and an event that
 * was under way for the closed descriptor meets nobody.
 * Method: a watched pipe has an event waiting in the set when it is closed; a
 * second one takes its place in the table before the set is polled. */
TEST(reactor_event_of_a_closed_descriptor_is_for_nobody)
{
    const pirn_alloc alloc = {.take = counting_take, .give = count_closed};
    struct reactor_fixture fixture;
    pirn_fd_ready_op op;
    struct poller poller = {.future = &op.future};
    pirn_fd *file;
    int fds[2];
    int again[2];

    calls_until_failure = 0;
    fixture_open(&fixture);
    fixture.home.alloc = &alloc;
    open_pipe(fds);
    open_pipe(again);
    REQUIRE(pirn_fd_adopt(fds[0], &file) == 0);
    pirn_fd_ready_init(&op, file, PIRN_READABLE);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&poller));
    pirn_future_drop(&op.future);
    EXPECT_EQ(1, write(fds[1], "x", 1));
    closed_objects = 0;
    pirn_fd_close(file);
    EXPECT_EQ(1, closed_objects);
    REQUIRE(pirn_fd_adopt(again[0], &file) == 0);
    pirn_fd_ready_init(&op, file, PIRN_READABLE);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&poller));
    EXPECT_EQ(0, fixture_turn(&fixture));
    pirn_future_drop(&op.future);
    pirn_fd_close(file);
    close(fds[1]);
    close(again[1]);
    fixture_close(&fixture);
}

static int refuse_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    (void)epoll_fd;
    (void)fd;
    (void)events;
    (void)data;
    return -ENOSPC;
}

/* Goal: the reactor knows whether it watches anything: from the first wait for a
 * descriptor to the close, and not if the kernel has refused it.
 * Method: two pipes, and a third that cannot be entered. */
TEST(reactor_knows_whether_it_watches)
{
    struct reactor_fixture fixture;
    pirn_fd_ready_op ops[3];
    struct poller pollers[3];
    pirn_fd *files[3];
    int fds[3][2];

    fixture_open(&fixture);
    table = pirn__sys_linux;
    table.epoll_add = refuse_add;
    for (int i = 0; i < 3; i++) {
        pollers[i] = (struct poller){.future = &ops[i].future};
        open_pipe(fds[i]);
        REQUIRE(pirn_fd_adopt(fds[i][0], &files[i]) == 0);
        EXPECT_EQ(i > 0, pirn__reactor_is_watching(fixture.reactor));
        pirn_fd_ready_init(&ops[i], files[i], PIRN_READABLE);
        pirn__sys = i == 2 ? &table : &pirn__sys_linux;
        EXPECT_EQ(i == 2 ? PIRN_READY : PIRN_PENDING, poller_poll(&pollers[i]));
        pirn__sys = &pirn__sys_linux;
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(i < 2, pirn__reactor_is_watching(fixture.reactor));
        pirn_future_drop(&ops[i].future);
        pirn_fd_close(files[i]);
        close(fds[i][1]);
    }
    EXPECT(!pirn__reactor_is_watching(fixture.reactor));
    fixture_close(&fixture);
}

/* Alarms. */

static void ring_nobody(struct pirn__alarm *alarm)
{
    (void)alarm;
}

/* Goal: the kernel is told of the earliest time only, and after the close of
 * nothing.
 * Method: a table that counts; a fake clock. */
TEST(reactor_alarm_is_armed_for_the_earliest)
{
    struct reactor_fixture fixture;
    struct pirn__alarm alarm;

    fixture_open(&fixture);
    REQUIRE(pirn__alarm_open(fixture.reactor, &alarm, ring_nobody) == 0);
    begin_fake();
    pirn__alarm_arm(&alarm, (pirn_deadline){now_ns + 100});
    pirn__alarm_arm(&alarm, (pirn_deadline){now_ns + 200});
    pirn__alarm_arm(&alarm, (pirn_deadline){now_ns + 100});
    EXPECT_EQ(1, timer_sets);
    EXPECT_EQ(now_ns + 100, last_timer.ns);
    pirn__alarm_arm(&alarm, (pirn_deadline){now_ns + 50});
    EXPECT_EQ(2, timer_sets);
    EXPECT_EQ(now_ns + 50, last_timer.ns);
    pirn__alarm_close(fixture.reactor, &alarm);
    pirn__alarm_arm(&alarm, (pirn_deadline){now_ns + 10});
    EXPECT_EQ(2, timer_sets);
    pirn__sys = &pirn__sys_linux;
    fixture_close(&fixture);
}

enum { LATE_NS = 2000, EARLY_NS = 1000 };

static struct pirn__alarm contested;
static PIRN_ATOMIC(int) early_begun;
static PIRN_ATOMIC(int) early_done;

static void *arm_early(void *arg)
{
    (void)arg;
    /* acquire [test.alarm]: the other one is in the kernel. */
    while (pirn__load(&early_begun, acquire) == 0)
        sched_yield();
    pirn__alarm_arm(&contested, (pirn_deadline){EARLY_NS});
    /* release [test.alarm]: pairs with the look in preempted_set(). */
    pirn__store(&early_done, 1, release);
    return NULL;
}

/* The one that is late stands still on its way into the kernel. */
static int preempted_set(int fd, pirn_deadline deadline)
{
    (void)fd;
    if (deadline.ns == LATE_NS) {
        /* release [test.alarm]: let the other one come. */
        pirn__store(&early_begun, 1, release);
        /* acquire [test.alarm]: it may be done, or wait for us. */
        for (int i = 0;
             i < 10000 && pirn__load(&early_done, acquire) == 0; i++)
            sched_yield();
    }
    last_timer = deadline;
    return 0;
}

/* Goal: of two threads that arm an alarm at once the earlier time stands, though
 * the later one reaches the kernel last.
 * Method: a table whose system call waits for the other thread, as long as that
 * has a chance to overtake. */
TEST(reactor_alarm_keeps_the_earlier_of_two)
{
    struct reactor_fixture fixture;
    pthread_t thread;

    fixture_open(&fixture);
    REQUIRE(pirn__alarm_open(fixture.reactor, &contested, ring_nobody) == 0);
    begin_fake();
    table.timerfd_set = preempted_set;
    pirn__init(&early_begun, 0);
    pirn__init(&early_done, 0);
    REQUIRE(pthread_create(&thread, NULL, arm_early, NULL) == 0);
    pirn__alarm_arm(&contested, (pirn_deadline){LATE_NS});
    pthread_join(thread, NULL);
    EXPECT_EQ(EARLY_NS, last_timer.ns);
    pirn__sys = &pirn__sys_linux;
    pirn__alarm_close(fixture.reactor, &contested);
    fixture_close(&fixture);
}
