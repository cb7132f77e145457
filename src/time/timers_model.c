/* SPDX-License-Identifier: MIT */
/* src/time/timers_model.c - an entry's owner, the driver that fires it and
 * threads that reset or cancel it, against each other.
 *
 * The clock is paused: what is due is due from the start.  The explorer's heap
 * holds the entry, so that a touch after its owner has given it up is seen.
 */
#include "time/timers.h"

#include "engine/model_home.h"
#include "task/local.h"

enum { NOW = 1000000, SOON = NOW + 1000, LATE = NOW + 5000000 };

static struct model_home model;
static struct pirn__timers timers;
static struct model_bell bell;
static struct model_bell other_bell;
static pirn_timer *timer;

static void begin(uint64_t when_ns)
{
    model_home_begin(&model);
    pirn__timers_init(&timers, &model.home);
    model.home.timers = &timers;
    pirn__timers_pause(&timers);
    timer = explore_heap.take(NULL, sizeof *timer, 16);
    pirn__timer_init(timer, (pirn_deadline){when_ns});
}

static int arm_with(struct model_bell *ring)
{
    const pirn_waker waker = model_bell_waker(ring);
    const pirn_cx cx = pirn_cx_of_waker(&waker);

    return pirn__timer_arm(timer, &timers, &cx);
}

static void advance(void)
{
    EXPLORE_CHECK(pirn__timers_advance(&timers, SOON - NOW) == 0);
}

static enum pirn__timer_state state(void)
{
    return pirn__timer_state(timer);
}

static void end_and_free(enum pirn__timer_state how)
{
    pirn__timer_end(timer, how);
    explore_heap.give(NULL, timer, sizeof *timer, 16);
}

/* Nobody holds a waker, an entry or the home any more. */
static void finish(void)
{
    EXPLORE_CHECK(timers.users == 0);
    EXPLORE_CHECK(pirn__timers_count(&timers) == 0);
    EXPLORE_CHECK(model_bell_wakers(&bell) == 0);
    EXPLORE_CHECK(model_bell_wakers(&other_bell) == 0);
    EXPLORE_CHECK(pirn__load(&model.home.refs, relaxed) == 1);
    EXPLORE_CHECK(pirn__load(&model.frees, relaxed) == 0);
}

static void fire(void *arg)
{
    (void)arg;
    (void)pirn__timers_fire(&timers, 10);
}

static void poll_again_and_end(void *arg)
{
    (void)arg;
    if (state() == PIRN__TIMER_ARMED)
        EXPLORE_CHECK(arm_with(&other_bell) == 0);
    end_and_free(PIRN__TIMER_ENDED);
}

/* Goal: an entry that its owner renews and then gives up is fired at most once,
 * and not touched afterwards. */
MODEL(timers_fire_against_renew_and_end, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(SOON);
    EXPLORE_CHECK(arm_with(&bell) == 0);
    advance();
    explore_thread(fire, NULL);
    explore_thread(poll_again_and_end, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&bell.rings, relaxed) +
                      pirn__load(&other_bell.rings, relaxed) <= 2);
    finish();
}

static void renew(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(arm_with(&other_bell) == 0);
}

/* Goal: whoever polled last is woken, whether the entry fired before, within
 * or after that poll. */
MODEL(timers_fire_against_renew_wakes_the_newest,
      .preemptions = EXPLORE_UNBOUNDED)
{
    begin(SOON);
    EXPLORE_CHECK(arm_with(&bell) == 0);
    advance();
    explore_thread(fire, NULL);
    explore_thread(renew, NULL);
    explore_join();
    EXPLORE_CHECK(state() == PIRN__TIMER_FIRED);
    EXPLORE_CHECK(pirn__load(&other_bell.rings, relaxed) == 1);
    end_and_free(PIRN__TIMER_ENDED);
    finish();
}

static void reset_to_late(void *arg)
{
    (void)arg;
    pirn__timer_reset(timer, (pirn_deadline){LATE});
}

/* Goal: after a reset the entry waits for the new time, whether it had fired or
 * not, and the driver knows when to look. */
MODEL(timers_fire_against_reset, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(SOON);
    EXPLORE_CHECK(arm_with(&bell) == 0);
    advance();
    explore_thread(fire, NULL);
    explore_thread(reset_to_late, NULL);
    explore_join();
    EXPLORE_CHECK(state() == PIRN__TIMER_ARMED);
    EXPLORE_CHECK(pirn__load(&timers.next, relaxed) <= LATE);
    EXPLORE_CHECK(pirn__timers_count(&timers) == 1);
    end_and_free(PIRN__TIMER_ENDED);
    finish();
}

static void advance_and_fire(void *arg)
{
    advance();
    fire(arg);
}

static void look_at_the_time(void *arg)
{
    (void)arg;
    if (state() == PIRN__TIMER_FIRED)
        EXPLORE_CHECK(pirn__timers_now(&timers) >= SOON);
}

/* Goal: who sees that an entry has fired does not find it early. */
MODEL(timers_fired_entry_shows_its_time, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(SOON);
    EXPLORE_CHECK(arm_with(&bell) == 0);
    explore_thread(advance_and_fire, NULL);
    explore_thread(look_at_the_time, NULL);
    explore_join();
    EXPLORE_CHECK(state() == PIRN__TIMER_FIRED);
    end_and_free(PIRN__TIMER_ENDED);
    finish();
}

static void make_wheel_and_arm(void *arg)
{
    (void)arg;
    pirn__timers_init(&timers, &model.home);
    EXPLORE_CHECK(arm_with(&bell) == 0);
}

static void arm(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(arm_with(&bell) == 0);
}

static void cancel(void *arg)
{
    (void)arg;
    pirn__timer_cancel(timer);
}

/* Goal: a cancel that meets the first arming ends the wait and wakes, in either
 * order. */
MODEL(timers_first_arm_against_cancel, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(SOON);
    explore_thread(arm, NULL);
    explore_thread(cancel, NULL);
    explore_join();
    EXPLORE_CHECK(state() == PIRN__TIMER_CANCELLED);
    EXPLORE_CHECK(pirn__load(&bell.rings, relaxed) == 1);
    end_and_free(PIRN__TIMER_ENDED_CANCELLED);
    finish();
}

static void start_and_drop(void *arg)
{
    const pirn_waker waker = model_bell_waker(&bell);
    struct pirn__turn turn = {.home = &model.home};
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};
    int rc;

    (void)arg;
    rc = pirn__timer_start(timer, &timers, &cx);
    EXPLORE_CHECK(rc == 0 || rc == 1);
    pirn__timer_end(timer, PIRN__TIMER_ENDED);
}

static void reset_to_the_past(void *arg)
{
    (void)arg;
    pirn__timer_reset(timer, (pirn_deadline){NOW - 1});
}

/* Goal: an entry whose time has come before it waits, or comes by a reset, ends
 * on no wheel. */
MODEL(timers_start_against_reset_to_the_past,
      .preemptions = EXPLORE_UNBOUNDED)
{
    begin(LATE);
    explore_thread(start_and_drop, NULL);
    explore_thread(reset_to_the_past, NULL);
    explore_join();
    explore_heap.give(NULL, timer, sizeof *timer, 16);
    finish();
}

static void reset_to_soon(void *arg)
{
    (void)arg;
    pirn__timer_reset(timer, (pirn_deadline){SOON});
}

/* Goal: a reset that meets the first arming counts, in either order, and the
 * driver is told of the earlier time. */
MODEL(timers_first_arm_against_reset, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(LATE);
    explore_thread(arm, NULL);
    explore_thread(reset_to_soon, NULL);
    explore_join();
    EXPLORE_CHECK(state() == PIRN__TIMER_ARMED);
    EXPLORE_CHECK(pirn__load(&timers.next, relaxed) <= SOON);
    EXPLORE_CHECK(pirn__load(&model.wakes, relaxed) >= 1);
    advance();
    fire(NULL);
    EXPLORE_CHECK(state() == PIRN__TIMER_FIRED);
    end_and_free(PIRN__TIMER_ENDED);
    finish();
}

/* Goal: a reset that finds the entry on a wheel finds the wheel whole. */
MODEL(timers_reset_against_a_wheel_that_is_new,
      .preemptions = EXPLORE_UNBOUNDED)
{
    model_home_begin(&model);
    timer = explore_heap.take(NULL, sizeof *timer, 16);
    pirn__timer_init(timer, (pirn_deadline){LATE});
    explore_thread(make_wheel_and_arm, NULL);
    explore_thread(reset_to_soon, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&timers.next, relaxed) <= SOON);
    end_and_free(PIRN__TIMER_ENDED);
    finish();
}

/* Goal: three at once: fire, reset and cancel.  The cancel wins or comes after
 * nothing; the waker is not lost. */
MODEL(timers_fire_reset_and_cancel, .preemptions = 3)
{
    begin(SOON);
    EXPLORE_CHECK(arm_with(&bell) == 0);
    advance();
    explore_thread(fire, NULL);
    explore_thread(reset_to_late, NULL);
    explore_thread(cancel, NULL);
    explore_join();
    EXPLORE_CHECK(state() == PIRN__TIMER_CANCELLED);
    EXPLORE_CHECK(model_bell_rang(&bell));
    end_and_free(PIRN__TIMER_ENDED_CANCELLED);
    finish();
}

static PIRN_SHARED(int) refused;

static void arm_and_end(void *arg)
{
    (void)arg;
    if (arm_with(&bell) < 0)
        pirn_cell_write(&refused, 1);
    end_and_free(PIRN__TIMER_ENDED);
}

static void shut_down(void *arg)
{
    (void)arg;
    pirn__timers_shutdown(&timers);
}

/* Goal: an entry that comes during the shutdown is refused, or is in and gets
 * out; the home is kept for as long as one is in. */
MODEL(timers_shutdown_against_arm_and_end, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(SOON);
    explore_thread(arm_and_end, NULL);
    explore_thread(shut_down, NULL);
    explore_join();
    if (pirn_cell_read(&refused))
        EXPLORE_CHECK(!model_bell_rang(&bell));
    finish();
}

/* Goal: who waits for ever is woken by the end. */
MODEL(timers_shutdown_wakes_who_waits_for_ever,
      .preemptions = EXPLORE_UNBOUNDED)
{
    begin(UINT64_MAX);
    EXPLORE_CHECK(arm_with(&bell) == 0);
    explore_thread(reset_to_late, NULL);
    explore_thread(shut_down, NULL);
    explore_join();
    EXPLORE_CHECK(state() == PIRN__TIMER_DEAD);
    EXPLORE_CHECK(pirn__load(&bell.rings, relaxed) == 1);
    end_and_free(PIRN__TIMER_ENDED_SHUTDOWN);
    finish();
}

/* Goal: an entry that has fired does not wait again on a wheel that has ended,
 * where nothing would fire it. */
MODEL(timers_reset_of_a_fired_entry_against_shutdown,
      .preemptions = EXPLORE_UNBOUNDED)
{
    begin(SOON);
    EXPLORE_CHECK(arm_with(&bell) == 0);
    advance();
    fire(NULL);
    explore_thread(reset_to_late, NULL);
    explore_thread(shut_down, NULL);
    explore_join();
    EXPLORE_CHECK(state() == PIRN__TIMER_FIRED || state() == PIRN__TIMER_DEAD);
    end_and_free(PIRN__TIMER_ENDED);
    finish();
}

/* A runtime whose memory goes with the last reference to its home. */
struct passing {
    struct pirn__home home;
    struct pirn__timers timers;
};

static struct passing *passing;

static void passing_wake(struct pirn__home *home)
{
    /* A touch of what is gone would be seen. */
    EXPLORE_CHECK(pirn__load(&home->refs, relaxed) > 0);
}

static void passing_free(struct pirn__home *home)
{
    explore_heap.give(NULL, home, sizeof *passing, 64);
}

static void begin_passing(uint64_t when_ns)
{
    static const struct pirn__home_ops ops = {.wake = passing_wake,
                                              .free = passing_free};
    const pirn_waker waker = model_bell_waker(&bell);
    const pirn_cx cx = pirn_cx_of_waker(&waker);

    passing = explore_heap.take(NULL, sizeof *passing, 64);
    passing->home = (struct pirn__home){.ops = &ops};
    pirn__init(&passing->home.refs, 1);
    pirn__timers_init(&passing->timers, &passing->home);
    pirn__timers_pause(&passing->timers);
    timer = explore_heap.take(NULL, sizeof *timer, 16);
    pirn__timer_init(timer, (pirn_deadline){when_ns});
    EXPLORE_CHECK(pirn__timer_arm(timer, &passing->timers, &cx) == 0);
}

static void end_all(void *arg)
{
    struct pirn__timers *own = &passing->timers;

    (void)arg;
    pirn__timer_end(timer, PIRN__TIMER_ENDED);
    pirn__timers_shutdown(own);
    pirn__home_unref(&passing->home);
}

static void finish_passing(void)
{
    EXPLORE_CHECK(state() == PIRN__TIMER_ENDED);
    EXPLORE_CHECK(model_bell_wakers(&bell) == 0);
    explore_heap.give(NULL, timer, sizeof *timer, 16);
}

/* Goal: a reset that meets the end of the entry, and after it that of the whole
 * runtime, finds the wheel as long as it needs it, or leaves it alone. */
MODEL(timers_reset_against_the_end_of_all, .preemptions = EXPLORE_UNBOUNDED)
{
    begin_passing(LATE);
    explore_thread(end_all, NULL);
    explore_thread(reset_to_soon, NULL);
    explore_join();
    finish_passing();
}

/* Goal: the same for a cancel, which neither revives the entry. */
MODEL(timers_cancel_against_the_end_of_all, .preemptions = EXPLORE_UNBOUNDED)
{
    begin_passing(LATE);
    explore_thread(end_all, NULL);
    explore_thread(cancel, NULL);
    explore_join();
    finish_passing();
}

/* The single entry of a fiber: its waker is borrowed from the task, which goes
 * as soon as the entry is ended. */

struct waiting {
    pirn_future future;
};

static enum pirn_poll waiting_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    return PIRN_READY;
}

static void waiting_drop(pirn_future *self)
{
    (void)self;
}

static void stop_and_let_the_task_go(void *arg)
{
    (void)arg;
    pirn__timer_stop(timer);
    end_and_free(PIRN__TIMER_ENDED);
    model_home_drain(&model);
}

/* Goal: a borrowed waker is not used once its entry has ended. */
MODEL(timers_fire_against_the_end_of_a_borrowed_waker,
      .preemptions = EXPLORE_UNBOUNDED)
{
    static const pirn_future_ops ops = {.poll = waiting_poll,
                                        .drop = waiting_drop};
    struct waiting future = {{&ops}};
    struct pirn__task *task;

    begin(SOON);
    task = model_home_spawn(&model, &future.future, sizeof future, false);
    EXPLORE_CHECK(pirn__timer_rearm(timer, &timers,
                                    pirn__task_waker_borrowed(task),
                                    (pirn_deadline){SOON}) == 0);
    advance();
    explore_thread(fire, NULL);
    explore_thread(stop_and_let_the_task_go, NULL);
    explore_join();
    model_home_drain(&model);
    finish();
    model_home_finish(&model);
}

/* The test clock. */

static void resume(void *arg)
{
    (void)arg;
    pirn__timers_resume(&timers);
}

static void read_clock_twice(void *arg)
{
    uint64_t first = pirn__timers_now(&timers);

    (void)arg;
    EXPLORE_CHECK(first >= NOW);
    EXPLORE_CHECK(pirn__timers_now(&timers) >= first);
}

/* Goal: the clock does not go backward when a pause ends. */
MODEL(timers_resume_against_who_reads_the_clock,
      .preemptions = EXPLORE_UNBOUNDED)
{
    begin(SOON);
    advance();
    explore_thread(resume, NULL);
    explore_thread(read_clock_twice, NULL);
    explore_join();
    explore_heap.give(NULL, timer, sizeof *timer, 16);
}

/* A worker that goes to sleep: it says so and then looks when it must get up;
 * who makes that earlier looks, afterwards, whether it sleeps. */

static PIRN_ATOMIC(uint32_t) asleep;
static PIRN_ATOMIC(int) alarms;

static void set_alarm_of_a_sleeper(struct pirn__timers *of)
{
    (void)of;
    if (pirn__load(&asleep, seq_cst) != 0)
        pirn__add(&alarms, 1, relaxed);
}

static void fall_asleep(void *arg)
{
    (void)arg;
    pirn__store(&asleep, 1, seq_cst);
    if (pirn__load(&timers.next, seq_cst) != UINT64_MAX)
        pirn__add(&alarms, 1, relaxed);
}

/* Goal: a worker does not sleep over a time that another thread has made
 * earlier, in whichever way. */
MODEL(timers_earlier_time_against_a_worker_that_falls_asleep,
      .preemptions = EXPLORE_UNBOUNDED)
{
    unsigned how = explore_choose(3);

    begin(how == 1 ? UINT64_MAX : SOON);
    timers.earlier = set_alarm_of_a_sleeper;
    if (how == 1)
        EXPLORE_CHECK(arm_with(&bell) == 0);
    explore_thread(fall_asleep, NULL);
    if (how == 0)
        EXPLORE_CHECK(arm_with(&bell) == 0);
    else if (how == 1)
        reset_to_soon(NULL);
    else
        EXPLORE_CHECK(pirn__timer_rearm(timer, &timers,
                                        model_bell_waker(&bell),
                                        (pirn_deadline){SOON}) == 0);
    explore_join();
    EXPLORE_CHECK(pirn__load(&alarms, relaxed) > 0);
    end_and_free(PIRN__TIMER_ENDED);
    finish();
}
