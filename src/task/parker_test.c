/* SPDX-License-Identifier: MIT */
/* src/task/parker_test.c - a thread that sleeps until it is woken.  Every park
 * here has a reason to return that does not need the clock. */
#include "task/lab_test.h"

#include <poll.h>
#include <pthread.h>

static struct pirn__parker *own_parker(void)
{
    struct pirn__parker *parker = pirn__parker_of(pirn__local());

    pirn__parker_reset(parker);
    return parker;
}

/* Goal: an unpark before the park makes it return at once, and counts once.
 * Method: unpark twice, consume twice; park with the unpark there. */
TEST(parker_unparked_before_does_not_sleep)
{
    struct pirn__parker *parker = own_parker();

    pirn__parker_unpark(parker);
    pirn__parker_unpark(parker);
    EXPECT(pirn__parker_consume(parker));
    EXPECT(!pirn__parker_consume(parker));
    pirn__parker_unpark(parker);
    pirn__parker_park(parker, PIRN_NEVER);
    EXPECT(!pirn__parker_consume(parker));
    pirn__parker_unpark(parker);
    pirn__parker_reset(parker);
    EXPECT(!pirn__parker_consume(parker));
}

/* Goal: a park ends at its deadline.
 * Method: one that has passed, on the word and on a descriptor. */
TEST(parker_park_ends_at_its_deadline)
{
    struct pirn__parker *parker = own_parker();
    struct pirn__turn turn = {.parker = parker};
    pirn_cx cx = {.turn_ = &turn};
    int fd = pirn__sys->eventfd();

    pirn__parker_park(parker, PIRN_EXPIRED);
    EXPECT_EQ(0, pirn__turn_note_fd(&cx, fd, POLLIN));
    pirn__parker_park(parker, PIRN_EXPIRED);
    EXPECT(!pirn__parker_consume(parker));
    pirn__parker_reset(parker);
    pirn__sys->close(fd);
}

/* Goal: a thread that waits for descriptors is woken by them, and by an unpark
 * any number of times.
 * Method: a descriptor that is ready; then one that is not, and an unpark
 * before each of three parks. */
TEST(parker_sleeps_on_descriptors_and_unparks)
{
    struct pirn__parker *parker = own_parker();
    struct pirn__turn turn = {.parker = parker};
    pirn_cx cx = {.turn_ = &turn};
    int fd = pirn__sys->eventfd();
    uint64_t count;

    EXPECT_EQ(0, pirn__turn_note_fd(&cx, fd, POLLIN));
    EXPECT_EQ(0, pirn__sys->eventfd_signal(fd));
    pirn__parker_park(parker, PIRN_NEVER);
    EXPECT_EQ(sizeof count, pirn__sys->read(fd, &count, sizeof count));
    for (int i = 0; i < 3; i++) {
        pirn__parker_unpark(parker);
        pirn__parker_park(parker, PIRN_NEVER);
        EXPECT(!pirn__parker_consume(parker));
    }
    pirn__parker_reset(parker);
    pirn__sys->close(fd);
}

/* Goal: a thread that drives a runtime is woken through that runtime.
 * Method: begin, unpark, end; an unpark that came first refuses the begin. */
TEST(parker_that_drives_is_woken_by_its_home)
{
    struct pirn__parker *parker = own_parker();
    struct lab lab;

    lab_begin(&lab);
    EXPECT(pirn__parker_drive_begin(parker, &lab.home));
    EXPECT(!pirn__parker_drive_end(parker));
    EXPECT_EQ(0, lab.wakes);
    EXPECT(pirn__parker_drive_begin(parker, &lab.home));
    pirn__parker_unpark(parker);
    pirn__parker_unpark(parker);
    EXPECT_EQ(1, lab.wakes);
    EXPECT(pirn__parker_drive_end(parker));
    pirn__parker_unpark(parker);
    EXPECT(!pirn__parker_drive_begin(parker, &lab.home));
    EXPECT_EQ(1, lab.wakes);
    EXPECT(pirn__parker_consume(parker));
    pirn__parker_drive_over(parker);
    lab_finish(&lab);
}

static void *lend_waker(void *arg)
{
    pirn_waker *out = arg;

    *out = pirn__parker_waker(pirn__parker_of(pirn__local()));
    return NULL;
}

/* Goal: a waker outlives its thread and then wakes nobody.
 * Method: a thread lends one and ends; the waker is used in every way. */
TEST(parker_waker_outlives_its_thread)
{
    pirn_waker waker, copy;
    pthread_t thread;

    REQUIRE(pthread_create(&thread, NULL, lend_waker, &waker) == 0);
    pthread_join(thread, NULL);
    copy = pirn_waker_clone(&waker);
    EXPECT(pirn_waker_same(&waker, &copy));
    pirn_waker_wake_by_ref(&waker);
    pirn_waker_wake(waker);
    pirn_waker_drop(copy);
}

/* Threads. */

struct duel {
    PIRN_ATOMIC(int) ready; /* the other's waker may be used */
    PIRN_ATOMIC(size_t) turn;
    pirn_waker wakers[2];
    size_t rounds;
    int fd; /* sleep on this descriptor, too; or -1 */
};

/* Take every second turn, sleeping in between. */
static void take_turns(struct duel *duel, size_t self)
{
    struct pirn__parker *parker = own_parker();
    struct pirn__turn turn = {.parker = parker};
    pirn_cx cx = {.turn_ = &turn};
    size_t now;

    /* acquire [parker_test.turn]: the other's last turn. */
    while ((now = pirn__load(&duel->turn, acquire)) < duel->rounds) {
        if (now % 2 != self) {
            if (duel->fd >= 0)
                EXPECT_EQ(0, pirn__turn_note_fd(&cx, duel->fd, POLLIN));
            pirn__parker_park(parker, PIRN_NEVER);
            continue;
        }
        /* release [parker_test.turn]: hand the turn over. */
        pirn__store(&duel->turn, now + 1, release);
        pirn_waker_wake_by_ref(&duel->wakers[1 - self]);
    }
    pirn_waker_wake_by_ref(&duel->wakers[1 - self]);
    pirn__parker_reset(parker);
}

static void *second_of_duel(void *arg)
{
    struct duel *duel = arg;

    duel->wakers[1] = pirn__parker_waker(own_parker());
    /* release [parker_test.ready]: publishes the waker. */
    pirn__store(&duel->ready, 1, release);
    take_turns(duel, 1);
    return NULL;
}

/* Goal: no unpark between the last look and the sleep is lost, on the word and
 * on descriptors.
 * Method: two threads hand a turn back and forth; a lost one hangs. */
TEST(parker_loses_no_unpark_between_two_threads)
{
    for (int way = 0; way < 2; way++) {
        struct duel duel = {
            .rounds = test_size(300, 3000, 300000),
            .fd = way == 0 ? -1 : pirn__sys->eventfd(),
        };
        pthread_t thread;

        duel.wakers[0] = pirn__parker_waker(own_parker());
        REQUIRE(pthread_create(&thread, NULL, second_of_duel, &duel) == 0);
        /* acquire [parker_test.ready]: pairs with the other's store.  Ends:
         * the thread comes there. */
        while (pirn__load(&duel.ready, acquire) == 0)
            pirn__spin_hint();
        take_turns(&duel, 0);
        pthread_join(thread, NULL);
        pirn_waker_drop(duel.wakers[0]);
        pirn_waker_drop(duel.wakers[1]);
        if (duel.fd >= 0)
            pirn__sys->close(duel.fd);
    }
}
