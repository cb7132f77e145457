/* SPDX-License-Identifier: MIT */
/* src/sched/runtime_model.c - the whole current-thread runtime: its driver, its
 * seat and its end, against other threads.
 *
 * A lost wake shows as a deadlock: everybody waits without a deadline.
 */
#include <pirn/blocking.h>
#include <pirn/time.h>

#include <errno.h>
#include <poll.h>

#include "engine/model_workers.h"

static struct condition second;
static PIRN_ATOMIC(int) end_count; /* of futures that wait, in whatever way */

static enum pirn_poll counted_poll(pirn_future *self, pirn_cx *cx)
{
    enum pirn_poll poll = waiting_poll(self, cx);

    if (poll == PIRN_READY)
        pirn__add(&end_count, 1, relaxed);
    return poll;
}

static void counted_drop(pirn_future *self)
{
    waiting_drop(self);
    pirn__add(&end_count, 1, relaxed);
}

static struct waiting waiting_for(struct condition *of)
{
    static const pirn_future_ops ops = {.poll = counted_poll,
                                        .drop = counted_drop};

    return (struct waiting){{&ops}, of};
}

static int spawn_counted(struct condition *of, pirn_task **out)
{
    struct waiting future = waiting_for(of);
    const pirn_spawn_options options = {.runtime = rt};

    return pirn_spawn(&future.future, sizeof future, &options, out);
}

static int ends(void)
{
    return pirn__load(&end_count, relaxed);
}

static void block_on(struct condition *of)
{
    struct waiting future = waiting_for(of);

    EXPLORE_CHECK(pirn_block_on(rt, &future.future, PIRN_NEVER) == 0);
}

/* ---- The driver's sleep. ---- */

/* Goal: the future of a block_on is polled again for a wake that comes from
 * another thread, whenever it comes. */
MODEL(runtime_block_on_against_a_foreign_wake, .preemptions = 4, .stale = 3)
{
    begin(0);
    explore_thread(meet_late, &condition);
    block_on(&condition);
    explore_join();
    pirn_runtime_unref(rt);
}

/* Goal: the same for a task, whose wake goes through the inbox. */
MODEL(runtime_task_against_a_foreign_wake, .preemptions = 4, .stale = 2,
      .spurious = -1)
{
    pirn_join_op join;
    pirn_task *task;

    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, &task) == 0);
    pirn_join_init(&join, task);
    explore_thread(meet_late, &condition);
    EXPLORE_CHECK(pirn_block_on(rt, &join.future, PIRN_NEVER) == 0);
    EXPLORE_CHECK(join.rc == 0 && join.outcome == 0);
    explore_join();
    pirn_task_unref(task);
    pirn_runtime_unref(rt);
}

static void reset_sleep(void *arg)
{
    pirn_sleep_reset(arg, (pirn_deadline){1000000 + 5000000});
}

/* Goal: a driver that sleeps for ever is woken for a timer that has become
 * earlier. */
MODEL(runtime_earlier_timer_wakes_the_driver, .preemptions = 4, .stale = 3,
      .spurious = -1)
{
    pirn_sleep_op sleep;

    begin(0);
    pirn_sleep_init(&sleep, PIRN_NEVER);
    explore_thread(reset_sleep, &sleep);
    EXPLORE_CHECK(pirn_block_on(rt, &sleep.future, PIRN_NEVER) == 0);
    EXPLORE_CHECK(pirn_sleep_rc(&sleep) == 0);
    explore_join();
    pirn_runtime_unref(rt);
}

static void advance(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(pirn_runtime_clock_advance(rt, 7000000) == 0);
}

/* Goal: a clock that is moved by hand wakes the driver for what is due then.
 * Method: real time stands still. */
MODEL(runtime_advanced_clock_wakes_the_driver, .preemptions = 4, .stale = 2,
      .spurious = -1, .frozen = true)
{
    pirn_sleep_op sleep;

    begin(0);
    EXPLORE_CHECK(pirn_runtime_clock_pause(rt) == 0);
    pirn_sleep_init(&sleep, (pirn_deadline){1000000 + 5000000});
    explore_thread(advance, NULL);
    EXPLORE_CHECK(pirn_block_on(rt, &sleep.future, PIRN_NEVER) == 0);
    EXPLORE_CHECK(pirn_sleep_rc(&sleep) == 0);
    explore_join();
    pirn_runtime_unref(rt);
}

static void resume(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(pirn_runtime_clock_resume(rt) == 0);
}

/* Goal: a driver that sleeps for ever, as the clock is paused, sleeps no longer
 * than it must once it is resumed. */
MODEL(runtime_resumed_clock_wakes_the_driver, .preemptions = 4, .stale = 2,
      .spurious = -1)
{
    pirn_sleep_op sleep;

    begin(0);
    EXPLORE_CHECK(pirn_runtime_clock_pause(rt) == 0);
    pirn_sleep_init(&sleep, (pirn_deadline){1000000 + 5000000});
    explore_thread(resume, NULL);
    EXPLORE_CHECK(pirn_block_on(rt, &sleep.future, PIRN_NEVER) == 0);
    EXPLORE_CHECK(pirn_sleep_rc(&sleep) == 0);
    explore_join();
    pirn_runtime_unref(rt);
}

static void sleep_here(void *arg)
{
    pirn_sleep_op sleep;

    (void)pirn_runtime_enter(rt);
    pirn_sleep_init(&sleep, (pirn_deadline){1000000 + 5000000});
    EXPLORE_CHECK(pirn_await(&sleep.future, PIRN_NEVER) == 0);
    EXPLORE_CHECK(pirn_sleep_rc(&sleep) == 0);
    (void)pirn_runtime_enter(NULL);
    meet(arg);
}

/* Goal: a timer that another thread arms on this runtime fires, although the
 * driver was to sleep for ever. */
MODEL(runtime_timer_armed_by_another_thread, .preemptions = 3, .stale = 2,
      .spurious = -1)
{
    begin(0);
    explore_thread(sleep_here, &condition);
    block_on(&condition);
    explore_join();
    pirn_runtime_unref(rt);
}

static void stop_task(void *arg)
{
    if (explore_choose(2) == 0)
        pirn_task_cancel(arg);
    else
        pirn_task_abort(arg);
    pirn_task_unref(arg);
}

/* Goal: a task that waits for ever ends when another thread cancels or aborts
 * it. */
MODEL(runtime_cancel_or_abort_from_outside, .preemptions = 3, .stale = 2,
      .spurious = -1)
{
    pirn_join_op join;
    pirn_task *task;

    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, &task) == 0);
    pirn_join_init(&join, task);
    explore_thread(stop_task, pirn_task_ref(task));
    EXPLORE_CHECK(pirn_block_on(rt, &join.future, PIRN_NEVER) == 0);
    EXPLORE_CHECK(join.outcome == -ECANCELED || join.outcome == PIRN_EABORTED);
    explore_join();
    pirn_task_unref(task);
    pirn_runtime_unref(rt);
}

static void cancel_task(void *arg)
{
    pirn_task_cancel(arg);
    pirn_task_unref(arg);
}

/* Goal: a cancel from another thread meets a task that is waiting, running or
 * done, beside a wake. */
MODEL(runtime_cancel_against_a_wake, .preemptions = 2, .stale = 1,
      .spurious = -1)
{
    pirn_join_op join;
    pirn_task *task;

    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, &task) == 0);
    pirn_join_init(&join, task);
    explore_thread(cancel_task, pirn_task_ref(task));
    explore_thread(meet_late, &condition);
    EXPLORE_CHECK(pirn_block_on(rt, &join.future, PIRN_NEVER) == 0);
    EXPLORE_CHECK(join.outcome == 0 || join.outcome == -ECANCELED);
    explore_join();
    EXPLORE_CHECK(ends() == 1);
    pirn_task_unref(task);
    pirn_runtime_unref(rt);
}

/* Goal: a host that watches the descriptor between its turns sleeps over no
 * spawn and no wake.
 * Method: turn, ask for the next deadline, poll the descriptor, as a host
 * does. */
MODEL(runtime_host_that_polls_the_descriptor, .preemptions = 4, .stale = 2,
      .spurious = -1, .timeouts = -1)
{
    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, NULL) == 0);
    explore_thread(meet_late, &condition);
    while (ends() == 0) {
        struct pollfd fd = {.fd = pirn_runtime_fd(rt), .events = POLLIN};

        EXPLORE_CHECK(pirn_runtime_turn(rt, PIRN_EXPIRED) >= 0);
        if (ends() == 0)
            (void)pirn__sys->poll(&fd, 1, pirn_runtime_next_deadline(rt));
    }
    explore_join();
    pirn_runtime_unref(rt);
}

/* ---- The seat. ---- */

static void join_thread(void *arg)
{
    join(arg);
}

/* Goal: of two plain threads that wait for tasks one drives, and when it has
 * what it waited for the other takes over: nobody is left parked beside a free
 * seat. */
MODEL(runtime_waiters_hand_the_seat_over, .preemptions = 3, .stale = 2,
      .spurious = -1)
{
    pirn_task *tasks[2];

    begin(0);
    condition.met = true;
    pirn_cell_write(&condition.news, 1);
    for (int i = 0; i < 2; i++)
        EXPLORE_CHECK(spawn_counted(&condition, &tasks[i]) == 0);
    explore_thread(join_thread, tasks[0]);
    explore_thread(join_thread, tasks[1]);
    explore_join();
    pirn_runtime_unref(rt);
}

/* Goal: a host call takes the seat over from a waiter that drives, and when it
 * leaves, the waiter goes on. */
MODEL(runtime_host_takes_over_from_a_waiter, .preemptions = 3, .stale = 2,
      .spurious = -1)
{
    pirn_task *task;

    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, &task) == 0);
    second.met = true;
    pirn_cell_write(&second.news, 1);
    explore_thread(join_thread, task);
    block_on(&second);
    meet(&condition);
    explore_join();
    pirn_runtime_unref(rt);
}

/* Goal: a waiter that is woken to take over and for its own reason at the same
 * time passes the seat on to the next. */
MODEL(runtime_waiter_that_does_not_need_the_seat, .preemptions = 2,
      .stale = 1, .spurious = -1)
{
    pirn_task *tasks[2];

    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, &tasks[0]) == 0);
    EXPLORE_CHECK(spawn_counted(&second, &tasks[1]) == 0);
    explore_thread(join_thread, tasks[0]);
    explore_thread(join_thread, tasks[1]);
    meet(&condition);
    block_on(&condition);
    meet(&second);
    explore_join();
    pirn_runtime_unref(rt);
}

/* ---- The end. ---- */

static void spawn_from_outside(void *arg)
{
    int rc;

    (void)arg;
    rc = spawn_counted(&condition, NULL);
    EXPLORE_CHECK(rc == 0 || rc == PIRN_ESHUTDOWN);
    /* What was not taken is ours. */
    if (rc < 0)
        pirn__add(&end_count, 1, relaxed);
    pirn_runtime_unref(rt);
}

/* Goal: a spawn that meets the shutdown is refused, or its task is ended by
 * it. */
MODEL(runtime_spawn_against_shutdown, .preemptions = 4, .stale = 2,
      .spurious = -1, .timeouts = -1)
{
    pirn_report report;

    begin(0);
    (void)pirn_runtime_ref(rt);
    explore_thread(spawn_from_outside, NULL);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, &report) == 0);
    explore_join();
    EXPLORE_CHECK(report.spawned ==
                  report.completed + report.cancelled + report.aborted);
    EXPLORE_CHECK(ends() == 1);
    pirn_runtime_unref(rt);
}

/* A task that starts one that waits for ever, unless it is told to stop. */
static enum pirn_poll late_parent_poll(pirn_future *self, pirn_cx *cx)
{
    struct waiting child = waiting_for(&condition);
    size_t size = pirn__task_cell_size(sizeof child);
    int rc;

    (void)self;
    (void)cx;
    /* So that there is a cell at hand, and it is done in place. */
    pirn__slabs_give(&rt->cache, pirn__slabs_take(&rt->slabs, &rt->cache, size));
    rc = pirn_spawn(&child.future, sizeof child, NULL, NULL);
    EXPLORE_CHECK(rc == 0 || rc == PIRN_ESHUTDOWN);
    return PIRN_READY;
}

static void turn_once(void *arg)
{
    int polls = pirn_runtime_turn(rt, PIRN_EXPIRED);

    (void)arg;
    (void)polls;
    pirn_runtime_unref(rt);
}

/* Goal: the same for a usual spawn, whose task is told by the visit or by its
 * spawner. */
MODEL(runtime_usual_spawn_against_shutdown, .preemptions = 3, .stale = 1,
      .spurious = -1, .timeouts = -1)
{
    static const pirn_future_ops ops = {.poll = late_parent_poll,
                                        .drop = nothing_drop};
    pirn_spawn_options options = {0};
    pirn_future parent = {&ops};
    pirn_report report;

    begin(0);
    options.runtime = rt;
    EXPLORE_CHECK(pirn_spawn(&parent, sizeof parent, &options, NULL) == 0);
    (void)pirn_runtime_ref(rt);
    explore_thread(turn_once, NULL);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, &report) == 0);
    explore_join();
    EXPLORE_CHECK(report.spawned == report.completed + report.cancelled);
    pirn_runtime_unref(rt);
}

/* Goal: the last reference goes while a task's waker is used elsewhere: the
 * task is ended once, the waker does nothing on what is dead, and the last of
 * all frees the memory. */
MODEL(runtime_unref_against_a_waker, .preemptions = 4, .stale = 2,
      .spurious = -1)
{
    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, NULL) == 0);
    /* A first poll, so that there is a waker. */
    EXPLORE_CHECK(pirn_runtime_turn(rt, PIRN_EXPIRED) == 1);
    explore_thread(meet_late, &condition);
    pirn_runtime_unref(rt);
    explore_join();
    EXPLORE_CHECK(ends() == 1);
}

static void shut_down(void *arg)
{
    pirn_report report = {0};
    int rc = pirn_runtime_shutdown(rt, PIRN_NEVER, &report);

    (void)arg;
    EXPLORE_CHECK(rc == 0 && report.in_time);
    EXPLORE_CHECK(report.spawned == 1 && report.cancelled == 1);
    pirn_runtime_unref(rt);
}

/* Goal: of two who shut down one does it and both get the same report. */
MODEL(runtime_two_shutdowns, .preemptions = 4, .stale = 2, .spurious = -1)
{
    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, NULL) == 0);
    (void)pirn_runtime_ref(rt);
    explore_thread(shut_down, NULL);
    shut_down(NULL);
    explore_join();
    EXPLORE_CHECK(ends() == 1);
}

static void block_on_until_the_end(void *arg)
{
    struct waiting future = waiting_for(arg);
    int rc = pirn_block_on(rt, &future.future, PIRN_NEVER);

    /* The shutdown may have sat down first. */
    EXPLORE_CHECK(rc == PIRN_ESHUTDOWN || rc == -EBUSY);
    pirn_runtime_unref(rt);
}

/* Goal: a driver that sleeps gets up for the shutdown, in time. */
MODEL(runtime_shutdown_wakes_the_driver, .preemptions = 4, .stale = 2,
      .spurious = -1, .timeouts = -1)
{
    begin(0);
    (void)pirn_runtime_ref(rt);
    explore_thread(block_on_until_the_end, &condition);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, NULL) == 0);
    explore_join();
    EXPLORE_CHECK(ends() == 1);
    pirn_runtime_unref(rt);
}

static void join_until_the_end(void *arg)
{
    int outcome = 0;

    EXPLORE_CHECK(pirn_task_join(arg, PIRN_NEVER, &outcome) == 0);
    EXPLORE_CHECK(outcome == -ECANCELED);
    pirn_task_unref(arg);
}

/* Goal: a plain thread that waits for a task, and perhaps drives, gives the
 * seat up for the shutdown, and is told of the end. */
MODEL(runtime_shutdown_against_a_waiting_thread, .preemptions = 3, .stale = 1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *task;

    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, &task) == 0);
    explore_thread(join_until_the_end, task);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, NULL) == 0);
    explore_join();
    EXPLORE_CHECK(ends() == 1);
    pirn_runtime_unref(rt);
}

static int work(void *arg)
{
    pirn__add((pirn__state *)arg, 1, relaxed);
    return 0;
}

/* Goal: a shutdown waits for the job that runs, and its end wakes it. */
MODEL(runtime_shutdown_waits_for_a_job, .preemptions = 3, .stale = 1,
      .spurious = -1, .frozen = true)
{
    static pirn__state runs;
    pirn_spawn_options options = {0};
    pirn_report report = {0};

    begin(0);
    options.runtime = rt;
    EXPLORE_CHECK(pirn_spawn_blocking(work, &runs, &options, NULL) == 0);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, &report) == 0);
    EXPLORE_CHECK(report.jobs_completed + report.jobs_refused == 1);
    EXPLORE_CHECK(pirn__load(&runs, relaxed) == report.jobs_completed);
    explore_join();
    pirn_runtime_unref(rt);
}

/* A future whose poll does not come back until it is let go. */
static PIRN_ATOMIC(uint32_t) let_go;
static PIRN_ATOMIC(int) stuck_drops;

static enum pirn_poll stuck_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    while (pirn__load(&let_go, acquire) == 0)
        (void)pirn__sys->futex_wait(&let_go.v_, 0, PIRN_NEVER);
    return PIRN_PENDING;
}

static void stuck_drop(pirn_future *self)
{
    (void)self;
    pirn__add(&stuck_drops, 1, relaxed);
}

static void drive_the_stuck_one(void *arg)
{
    static const pirn_future_ops ops = {.poll = stuck_poll,
                                        .drop = stuck_drop};
    pirn_future stuck = {&ops};
    int rc = pirn_block_on(rt, &stuck, PIRN_NEVER);

    (void)arg;
    EXPLORE_CHECK(rc == PIRN_ESHUTDOWN || rc == -EBUSY);
    pirn_runtime_unref(rt);
}

static void let_it_go(void *arg)
{
    (void)arg;
    pirn__store(&let_go, 1, release);
    pirn__sys->futex_wake(&let_go.v_, 1);
}

/* Goal: a driver that comes back around the deadline, or in the middle of being
 * given up, and the shutdown: one of the two finishes, once. */
MODEL(runtime_driver_that_comes_back_around_the_deadline, .preemptions = 3,
      .stale = 1, .spurious = -1)
{
    int rc;

    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, NULL) == 0);
    (void)pirn_runtime_ref(rt);
    explore_thread(drive_the_stuck_one, NULL);
    explore_thread(let_it_go, NULL);
    rc = pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL);
    EXPLORE_CHECK(rc == 0 || rc == -ETIMEDOUT);
    explore_join();
    EXPLORE_CHECK(ends() == 1);
    EXPLORE_CHECK(pirn__runtime_phase(rt) == PIRN__PHASE_DONE);
    pirn_runtime_unref(rt);
}

/* A task that does not care for a cancel, as a fiber may. */
static void spawn_deaf(pirn_future *future, size_t size)
{
    static const struct pirn__task_ops deaf = {.injects = true};

    EXPLORE_CHECK(pirn__spawn(&rt->home, &deaf, future, size, NULL, "here",
                              NULL) == 0);
}

/* Goal: at the deadline the abort reaches a task that ignored the cancel. */
MODEL(runtime_abort_ends_what_ignores_a_cancel, .preemptions = 2,
      .spurious = -1)
{
    struct waiting future = waiting_for(&condition);

    begin(0);
    spawn_deaf(&future.future, sizeof future);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL) ==
                  -ETIMEDOUT);
    EXPLORE_CHECK(ends() == 1);
    pirn_runtime_unref(rt);
}

/* Goal: a shutdown does not wait for a driver that does not come back; it is
 * reported late, and the driver does the rest, whenever it returns.
 * Method: the driver's poll returns only after the deadline, or, by an early
 * timeout, around it. */
MODEL(runtime_driver_that_was_given_up_finishes, .preemptions = 4, .stale = 2,
      .spurious = -1)
{
    int rc;

    begin(0);
    EXPLORE_CHECK(spawn_counted(&condition, NULL) == 0);
    (void)pirn_runtime_ref(rt);
    explore_thread(drive_the_stuck_one, NULL);
    rc = pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL);
    EXPLORE_CHECK(rc == 0 || rc == -ETIMEDOUT);
    pirn__store(&let_go, 1, release);
    pirn__sys->futex_wake(&let_go.v_, 1);
    explore_join();
    EXPLORE_CHECK(ends() == 1);
    EXPLORE_CHECK(pirn__load(&stuck_drops, relaxed) == 1);
    pirn_runtime_unref(rt);
}

static PIRN_ATOMIC(uint32_t) is_stuck;
static PIRN_ATOMIC(int) given_up;

static enum pirn_poll stuck_task_poll(pirn_future *self, pirn_cx *cx)
{
    pirn__store(&is_stuck, 1, release);
    pirn__sys->futex_wake(&is_stuck.v_, 1);
    return stuck_poll(self, cx);
}

static enum pirn_poll bystander_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    EXPLORE_CHECK(pirn__load(&given_up, relaxed) == 0);
    return PIRN_PENDING;
}

/* Goal: a driver that was given up in the middle of a turn polls nobody when it
 * comes back. */
MODEL(runtime_driver_that_was_given_up_polls_nobody, .preemptions = 2,
      .stale = 1, .spurious = -1)
{
    static const pirn_future_ops stuck = {.poll = stuck_task_poll,
                                          .drop = stuck_drop};
    static const pirn_future_ops bystander = {.poll = bystander_poll,
                                              .drop = stuck_drop};
    pirn_future futures[2] = {{&stuck}, {&bystander}};

    begin(0);
    for (int i = 0; i < 2; i++)
        spawn_deaf(&futures[i], sizeof futures[i]);
    (void)pirn_runtime_ref(rt);
    explore_thread(block_on_until_the_end, &condition);
    while (pirn__load(&is_stuck, acquire) == 0)
        (void)pirn__sys->futex_wait(&is_stuck.v_, 0, PIRN_NEVER);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL) ==
                  -ETIMEDOUT);
    pirn__store(&given_up, 1, relaxed);
    let_it_go(NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&stuck_drops, relaxed) == 2);
    pirn_runtime_unref(rt);
}
