/* SPDX-License-Identifier: MIT */
/* tests/engine/timers_fixture.h - a runtime's place for the tests of src/time:
 * timers on a paused clock, a home that counts how often it is told of an
 * earlier deadline, and wakers that count their copies and wakes.
 *
 * A plain thread that waits here moves the clock to its deadline instead.
 */
#ifndef PIRN_TESTS_ENGINE_TIMERS_FIXTURE_H
#define PIRN_TESTS_ENGINE_TIMERS_FIXTURE_H

#include <errno.h>

#include "base/list.h"
#include "base/lock.h"
#include "engine/test.h"
#include "task/home.h"
#include "task/local.h"
#include "time/timers.h"

#define MS UINT64_C(1000000)

struct test_home {
    struct pirn__home home; /* first, as in a runtime */
    struct pirn__timers timers;
    struct pirn__turn turn; /* of polls made by hand */
    PIRN_ATOMIC(int) told;
    int frees;
    pirn_runtime *before; /* what was entered */
};

static inline struct test_home *test_home_of(struct pirn__home *home)
{
    return PIRN_CONTAINER_OF(home, struct test_home, home);
}

static inline void test_wake(struct pirn__home *home)
{
    /* relaxed: a count, read when all is over. */
    (void)pirn__add(&test_home_of(home)->told, 1, relaxed);
}

static inline uint64_t test_now(struct pirn__home *home)
{
    return pirn__timers_now(home->timers);
}

static inline void test_drive_or_park(struct pirn__home *home,
                                      struct pirn__parker *parker,
                                      pirn_deadline deadline)
{
    uint64_t now = test_now(home);

    (void)parker;
    if (deadline.ns > now)
        EXPECT_EQ(0, pirn__timers_advance(home->timers, deadline.ns - now));
    (void)pirn__timers_fire(home->timers, SIZE_MAX);
}

static inline void test_free(struct pirn__home *home)
{
    test_home_of(home)->frees++;
}

/* Make it, pause its clock and enter it. */
static inline void test_home_begin(struct test_home *home)
{
    static const struct pirn__home_ops ops = {
        .wake = test_wake,
        .now = test_now,
        .drive_or_park = test_drive_or_park,
        .free = test_free,
    };

    *home = (struct test_home){
        .home.ops = &ops,
        .home.timers = &home->timers,
        .home.runtime = (pirn_runtime *)(void *)home,
        .turn = {.home = &home->home, .budget = PIRN__COOP_BUDGET},
    };
    pirn__init(&home->home.refs, 1);
    pirn__timers_init(&home->timers, &home->home);
    pirn__timers_pause(&home->timers);
    pirn__init(&home->told, 0);
    home->before = pirn_runtime_enter(home->home.runtime);
}

/* Every entry was ended. */
static inline void test_home_finish(struct test_home *home)
{
    EXPECT_EQ(0, home->timers.users);
    EXPECT_EQ(0, pirn__timers_count(&home->timers));
    pirn__wheel_validate(&home->timers.wheel);
    (void)pirn_runtime_enter(home->before);
}

static inline int told(struct test_home *home)
{
    /* relaxed: as above. */
    return pirn__load(&home->told, relaxed);
}

static inline pirn_deadline in_ms(struct test_home *home, uint64_t ms)
{
    return (pirn_deadline){pirn__timers_now(&home->timers) + ms * MS};
}

/* Let time pass and fire what became due. */
static inline size_t advance_ns(struct test_home *home, uint64_t ns)
{
    EXPECT_EQ(0, pirn__timers_advance(&home->timers, ns));
    return pirn__timers_fire(&home->timers, SIZE_MAX);
}

/* Who is woken. */
struct bell {
    PIRN_ATOMIC(int) wakers;
    PIRN_ATOMIC(int) rings;
    int *order; /* takes a number from here with each ring; or NULL */
    int place;
};

static inline pirn_waker bell_clone(const pirn_waker *self)
{
    struct bell *bell = self->data;

    /* relaxed: a count, read when all is over. */
    (void)pirn__add(&bell->wakers, 1, relaxed);
    return *self;
}

static inline void bell_wake_by_ref(const pirn_waker *self)
{
    struct bell *bell = self->data;

    if (bell->order != NULL)
        bell->place = (*bell->order)++;
    /* relaxed: as above. */
    (void)pirn__add(&bell->rings, 1, relaxed);
}

static inline void bell_drop(pirn_waker self)
{
    struct bell *bell = self.data;

    /* relaxed: as above. */
    (void)pirn__sub(&bell->wakers, 1, relaxed);
}

static inline void bell_wake(pirn_waker self)
{
    bell_wake_by_ref(&self);
    bell_drop(self);
}

/* A waker that counts as none of the bell's. */
static inline pirn_waker bell_waker(struct bell *bell)
{
    static const pirn_waker_ops ops = {
        .clone = bell_clone,
        .wake = bell_wake,
        .wake_by_ref = bell_wake_by_ref,
        .drop = bell_drop,
    };

    return (pirn_waker){.data = bell, .ops = &ops};
}

static inline int rings(struct bell *bell)
{
    /* relaxed: as above. */
    return pirn__load(&bell->rings, relaxed);
}

static inline int wakers(struct bell *bell)
{
    /* relaxed: as above. */
    return pirn__load(&bell->wakers, relaxed);
}

/* Arm an entry by hand. */
static inline int arm(struct test_home *home, pirn_timer *timer,
                      struct bell *bell)
{
    pirn_waker waker = bell_waker(bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    return pirn__timer_arm(timer, &home->timers, &cx);
}

/* Poll a future as a task of the home would; `home` NULL: without one. */
static inline enum pirn_poll poll_in(struct test_home *home,
                                     pirn_future *future, struct bell *bell)
{
    pirn_waker waker = bell_waker(bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    if (home != NULL)
        cx.turn_ = &home->turn;
    return pirn_future_poll(future, &cx);
}

#endif /* PIRN_TESTS_ENGINE_TIMERS_FIXTURE_H */
