/* SPDX-License-Identifier: MIT */
/* src/task/parker_model.c - a thread's sleep against its wakers: on the word,
 * in poll, and while it drives a runtime.
 */
#include <pirn/io.h>
#include <poll.h>

#include "engine/model_home.h"
#include "sys/sys.h"

static struct pirn__parker *parker;
static PIRN_ATOMIC(int) reason; /* relaxed: the parker orders it */
static struct model_home model;

static void begin(void)
{
    parker = pirn__parker_of(pirn__local());
    EXPLORE_CHECK(parker != NULL);
    pirn__parker_reset(parker);
}

/* A waker with a reference of its own. */
static void wake(void *arg)
{
    pirn_waker *waker = arg;

    pirn__add(&reason, 1, relaxed);
    pirn_waker_wake(*waker);
}

static void wake_by_ref(void *arg)
{
    pirn_waker *waker = arg;

    pirn__add(&reason, 1, relaxed);
    pirn_waker_wake_by_ref(waker);
    pirn_waker_drop(*waker);
}

static void wait_for(int reasons)
{
    while (pirn__load(&reason, relaxed) < reasons)
        pirn__parker_park(parker, PIRN_NEVER);
}

/* Goal: no unpark is lost, the thread sees what it was woken for, and the last
 * reference frees the parker.
 * Method: the body itself parks; wakers may come before, within and after. */
MODEL(parker_two_unparks_on_the_word, .preemptions = 3)
{
    static pirn_waker wakers[2];

    begin();
    wakers[0] = pirn__parker_waker(parker);
    wakers[1] = pirn__parker_waker(parker);
    explore_thread(wake, &wakers[0]);
    explore_thread(wake_by_ref, &wakers[1]);
    wait_for(2);
}

static void signal_fd(void *arg)
{
    pirn__sys->eventfd_signal(*(int *)arg);
}

/* Until the descriptor was ready and there was an unpark, in any order. */
static void wait_in_poll(int fd, pirn_waker *waker)
{
    pirn_cx cx = {.waker = waker,
                  .turn_ = &(struct pirn__turn){.parker = parker}};
    uint64_t count;
    bool was_ready = false;

    while (!was_ready || pirn__load(&reason, relaxed) == 0) {
        EXPLORE_CHECK(pirn__turn_note_fd(&cx, fd, POLLIN) == 0);
        pirn__parker_park(parker, PIRN_NEVER);
        was_ready |= pirn__sys->read(fd, &count, sizeof count) > 0;
        pirn__parker_reset(parker);
    }
}

/* Goal: a thread that sleeps in poll is woken by the wake descriptor, one that
 * is awake is not kept awake by it for ever, and a wake is not eaten by the
 * draining of an earlier one. */
MODEL(parker_unpark_and_readiness_in_poll, .preemptions = 3, .spurious = -1)
{
    static pirn_waker waker;
    static int fd;

    begin();
    fd = pirn__sys->eventfd();
    waker = pirn__parker_waker(parker);
    explore_thread(wake, &waker);
    explore_thread(signal_fd, &fd);
    wait_in_poll(fd, &waker);
}

/* Driving: the home's own sleep stands for the wait set. */

static void drive_until(struct model_home *of, int reasons)
{
    while (pirn__load(&reason, relaxed) < reasons) {
        uint32_t seen = model_home_wakes(of);

        if (!pirn__parker_drive_begin(parker, &of->home)) {
            (void)pirn__parker_consume(parker);
            continue;
        }
        /* The driver looks between two turns, then sleeps. */
        if (pirn__load(&reason, relaxed) < reasons)
            model_home_wait(of, seen);
        (void)pirn__parker_drive_end(parker);
    }
    pirn__parker_drive_over(parker);
}

/* Goal: an unpark reaches a thread that sleeps as a driver; the home is kept
 * until the last unparker has woken it, also when the driver has long left. */
MODEL(parker_two_unparks_of_a_driver, .preemptions = 3)
{
    static pirn_waker wakers[2];

    model_home_begin(&model);
    begin();
    wakers[0] = pirn__parker_waker(parker);
    wakers[1] = pirn__parker_waker(parker);
    explore_thread(wake, &wakers[0]);
    explore_thread(wake, &wakers[1]);
    drive_until(&model, 2);
    explore_join();
    EXPLORE_CHECK(pirn__load(&model.home.refs, relaxed) == 1);
    EXPLORE_CHECK(pirn__load(&model.frees, relaxed) == 0);
}

/* The same thread drives another runtime, which nobody has seen before. */

static struct model_home other_model;

static void drive_once(struct model_home *of)
{
    model_home_begin(of);
    if (pirn__parker_drive_begin(parker, &of->home))
        (void)pirn__parker_drive_end(parker);
    else
        (void)pirn__parker_consume(parker);
}

/* Goal: an unparker that has seen the thread drive wakes a home that it sees
 * whole, whichever that is by then, and keeps it meanwhile. */
MODEL(parker_unpark_of_a_driver_that_goes_elsewhere, .preemptions = 3)
{
    static pirn_waker wakers[2];

    begin();
    wakers[0] = pirn__parker_waker(parker);
    wakers[1] = pirn__parker_waker(parker);
    explore_thread(wake, &wakers[0]);
    explore_thread(wake, &wakers[1]);
    drive_once(&model);
    drive_once(&other_model);
    pirn__parker_drive_over(parker);
    explore_join();
    EXPLORE_CHECK(pirn__load(&model.home.refs, relaxed) == 1);
    EXPLORE_CHECK(pirn__load(&other_model.home.refs, relaxed) == 1);
}

/* Goal: who drives another runtime than before is woken there. */
MODEL(parker_unpark_of_a_driver_that_sleeps_elsewhere, .preemptions = 3)
{
    static pirn_waker waker;

    begin();
    waker = pirn__parker_waker(parker);
    explore_thread(wake, &waker);
    drive_once(&model);
    model_home_begin(&other_model);
    drive_until(&other_model, 1);
    explore_join();
    EXPLORE_CHECK(pirn__load(&model.home.refs, relaxed) == 1);
    EXPLORE_CHECK(pirn__load(&other_model.home.refs, relaxed) == 1);
}
