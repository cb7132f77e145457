/* SPDX-License-Identifier: MIT */
/* src/sched/worker_model.c - what a worker does beside running tasks: timers, pinned
 * tasks, the monitor, and going on on another thread.
 */
#include <pirn/time.h>

#include <errno.h>

#include "engine/model_workers.h"
#include "sys/sys.h"

enum { NEAR_NS = 16000 }; /* how late alarms seem to be */

/* A task that wakes another one and does not come back before that has run. */
static enum pirn_poll waiting_waker_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    meet(&condition);
    wait_for_child();
    return PIRN_READY;
}

static enum pirn_poll waiting_child_poll(pirn_future *self, pirn_cx *cx)
{
    enum pirn_poll poll = waiting_poll(self, cx);

    if (poll == PIRN_READY)
        (void)child_poll(self, cx);
    return poll;
}

static const pirn_future_ops waiting_waker_ops = {.poll = waiting_waker_poll,
                                                  .drop = nothing_drop};
/* The one that is woken. */
static pirn_task *spawn_waiting_child(void)
{
    static const pirn_future_ops ops = {.poll = waiting_child_poll,
                                        .drop = waiting_drop};
    struct waiting child = {{&ops}, &condition};
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task;

    EXPLORE_CHECK(
        pirn_spawn(&child.future, sizeof child, &options, &task) == 0);
    return task;
}

/* Goal: a task in the LIFO slot of a worker that does not move is rescued. */
MODEL(worker_slot_of_a_stuck_worker, .preemptions = -1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *tasks[2];

    begin(2);
    tasks[0] = spawn_waiting_child();
    tasks[1] = spawn_plain(&waiting_waker_ops);
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
    end();
}

/* Goal: the monitor watches while a task runs, and rests when nobody does. */
MODEL(worker_monitor_rests, .preemptions = -1, .stale = 1, .spurious = -1,
      .timeouts = -1)
{
    begin(2);
    join(spawn(NULL));
    wait_ns(20000000);
    EXPLORE_CHECK(pirn__load(&rt->pool->monitor_armed, seq_cst) == 0);
    end();
}

/* A task that gives its worker to another thread, as pirn_block_in_place() does
 * for a fiber, and waits there for what the worker does next. */
static enum pirn_poll leaving_poll(pirn_future *self, pirn_cx *cx)
{
    struct pirn__local *local = pirn__local();

    (void)self;
    meet(&condition);
    EXPLORE_CHECK(pirn__worker_hand_off(local) == 0);
    cx->turn_ = &local->lone;
    wait_for_child();
    return PIRN_READY;
}

static const pirn_future_ops leaving_ops = {.poll = leaving_poll,
                                            .drop = nothing_drop};

/* Two tasks, of which one leaves, and a third one of another thread. */
static void change_threads(uint32_t workers)
{
    pirn_task *tasks[2];

    begin(workers);
    tasks[0] = spawn_waiting_child();
    tasks[1] = spawn_plain(&leaving_ops);
    join(spawn(NULL));
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
    end();
}

/* Goal: what a worker has in its slot goes on with it on its new thread, while
 * another thread spawns. */
MODEL(worker_changes_threads, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    change_threads(1);
}

/* Goal: the same beside a worker that takes what it can. */
MODEL(worker_changes_threads_beside_a_thief, .preemptions = -1,
      .stale = -1, .spurious = -1, .timeouts = -1)
{
    change_threads(2);
}

/* A task that gives its worker away, and ends or wants another turn. */
static enum pirn_poll leaving_again_poll(pirn_future *self, pirn_cx *cx)
{
    struct pirn__local *local = pirn__local();

    (void)self;
    /* relaxed: this task alone looks. */
    if (pirn__add(&begun, 1, relaxed) > 0)
        return PIRN_READY;
    EXPLORE_CHECK(pirn__worker_hand_off(local) == 0);
    cx->turn_ = &local->lone;
    if (explore_choose(2) == 0)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

static const pirn_future_ops leaving_again_ops = {.poll = leaving_again_poll,
                                                  .drop = nothing_drop};

/* Goal: a task without a worker that wants another turn gets it, or is dropped,
 * and the end of the runtime waits for it. */
MODEL(worker_shutdown_against_a_task_that_left, .preemptions = 2, .stale = -1,
      .spurious = -1, .frozen = true)
{
    begin(1);
    pirn_task_unref(spawn_plain(&leaving_again_ops));
    end();
}

/* A task that starts a pinned one. */
static struct condition pinned_condition;

static enum pirn_poll pinning_poll(pirn_future *self, pirn_cx *cx)
{
    static const pirn_future_ops ops = {.poll = waiting_poll,
                                        .drop = waiting_drop};
    struct waiting pinned = {{&ops}, &pinned_condition};
    const pirn_spawn_options options = {.pinned = true};

    (void)self;
    (void)cx;
    EXPLORE_CHECK(pirn_spawn(&pinned.future, sizeof pinned, &options, NULL) ==
                  0);
    return PIRN_READY;
}

static const pirn_future_ops pinning_ops = {.poll = pinning_poll,
                                            .drop = nothing_drop};

/* Goal: a pinned task is woken by name; work for all finds its worker in the
 * set. */
MODEL(worker_pinned_task, .preemptions = 1, .stale = 1, .spurious = -1,
      .frozen = true)
{
    pirn_report report;

    begin(1);
    join(spawn_plain(&pinning_ops));
    meet(&pinned_condition);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, &report) == 0);
    EXPLORE_CHECK(report.spawned == 2);
    pirn_runtime_unref(rt);
}

/* Goal: two spawns that need two workers get them though one of these has pinned
 * tasks and sleeps apart from the wait set: whoever leaves that tells it. */
MODEL(worker_two_spawns_that_meet_beside_a_pinned_task, .preemptions = -1,
      .stale = -1, .spurious = -1, .timeouts = -1)
{
    pirn_task *tasks[2];

    begin(2);
    wait_ns(1000);
    join(spawn_plain(&pinning_ops));
    wait_ns(1000);
    for (int i = 0; i < 2; i++)
        tasks[i] = spawn_plain(&meeting_ops);
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
    expect_before_the_monitor();
    meet(&pinned_condition);
    end();
}

/* Goal: an earlier time reaches a worker that sleeps, or is about to, at that
 * time and not when the monitor looks. */
MODEL(worker_earlier_timer_reaches_a_worker, .preemptions = 2, .stale = 1,
      .spurious = -1, .timeouts = -1)
{
    enum { SOON_NS = 2000000 };
    pirn_task *task;

    begin(1);
    task = spawn_sleeper(PIRN_NEVER);
    pirn_sleep_reset(&long_sleep, (pirn_deadline){SOON_NS});
    join(task);
    expect_before_the_monitor();
    end();
}

/* Goal: a timer that a task has armed is cancelled by another thread while its
 * worker, or another one, fires it. */
MODEL(worker_timer_cancelled_while_it_fires, .preemptions = 1, .stale = -1,
      .spurious = -1, .timeouts = 1)
{
    pirn_task *task;
    int outcome = 1;

    begin(2);
    task = spawn_sleeper((pirn_deadline){2000000});
    pirn_task_cancel(task);
    EXPLORE_CHECK(pirn_task_join(task, PIRN_NEVER, &outcome) == 0);
    EXPLORE_CHECK(outcome == 0 || outcome == -ECANCELED);
    pirn_task_unref(task);
    end();
}

/* Two tasks that sleep to the same time and then meet. */
struct late_meeting {
    pirn_future future;
    pirn_sleep_op sleep;
    bool slept;
};

static enum pirn_poll late_meeting_poll(pirn_future *self, pirn_cx *cx)
{
    struct late_meeting *late =
        PIRN_CONTAINER_OF(self, struct late_meeting, future);

    if (!late->slept && pirn_future_poll(&late->sleep.future, cx) == PIRN_PENDING)
        return PIRN_PENDING;
    late->slept = true;
    return meeting_poll(self, cx);
}

static enum pirn_poll hog_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    wait_ns(1500000);
    return PIRN_READY;
}

static const pirn_future_ops hog_ops = {.poll = hog_poll, .drop = nothing_drop};

static pirn_task *spawn_late_meeting(uint64_t ns)
{
    static const pirn_future_ops ops = {.poll = late_meeting_poll,
                                        .drop = nothing_drop};
    struct late_meeting late = {.future = {&ops}};
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task;

    pirn_sleep_init(&late.sleep, (pirn_deadline){ns});
    EXPLORE_CHECK(
        pirn_spawn(&late.future, sizeof late, &options, &task) == 0);
    return task;
}

/* Goal: what becomes ready at once, by one event, gets as many workers as it
 * needs, also if all are asleep, before the monitor looks. */
MODEL(worker_two_timers_that_meet, .preemptions = 1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *tasks[2];

    begin(2);
    for (int i = 0; i < 2; i++)
        tasks[i] = spawn_late_meeting(2000000);
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
    expect_before_the_monitor();
    end();
}

/* Goal: the same when their worker has been busy at that time, and finds both
 * between two tasks.
 * Method: another task holds a worker until then. */
MODEL(worker_two_overdue_timers_that_meet, .preemptions = -1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *tasks[3];

    begin_with((pirn_runtime_options){.workers = 2, .event_interval = 1});
    tasks[0] = spawn_late_meeting(2000000);
    tasks[1] = spawn_late_meeting(2000000);
    tasks[2] = spawn_plain(&hog_ops);
    for (int i = 0; i < 3; i++)
        join(tasks[i]);
    expect_before_the_monitor();
    end();
}

/* Is woken by the one below, and meets it. */
static enum pirn_poll met_poll(pirn_future *self, pirn_cx *cx)
{
    enum pirn_poll poll = waiting_poll(self, cx);

    return poll == PIRN_READY ? meeting_poll(self, cx) : poll;
}

static PIRN_ATOMIC(uint32_t) turns;

static enum pirn_poll next_turn_poll(pirn_future *self, pirn_cx *cx)
{
    /* relaxed: this task alone looks. */
    if (pirn__add(&turns, 1, relaxed) > 0)
        return meeting_poll(self, cx);
    meet(&condition);
    if (explore_choose(2) == 0)
        pirn_waker_wake_by_ref(cx->waker);
    else
        pirn__turn_defer(cx, PIRN__DEFER_TO_EVENTS);
    return PIRN_PENDING;
}

static const pirn_future_ops next_turn_ops = {.poll = next_turn_poll,
                                              .drop = nothing_drop};

/* Goal: a task that wants another turn, or yields, alone in the ring, gets another
 * worker when the one that it has woken comes first. */
MODEL(worker_turn_behind_a_woken_task, .preemptions = -1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    static const pirn_future_ops ops = {.poll = met_poll,
                                        .drop = waiting_drop};
    struct waiting met = {{&ops}, &condition};
    pirn_spawn_options options = {0};
    pirn_task *tasks[2];

    begin(2);
    options.runtime = rt;
    EXPLORE_CHECK(
        pirn_spawn(&met.future, sizeof met, &options, &tasks[0]) == 0);
    wait_ns(1000);
    tasks[1] = spawn_plain(&next_turn_ops);
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
    expect_before_the_monitor();
    end();
}

/* Goal: of two timers in a row on the wheel of a worker that sleeps the second
 * fires, too, when another worker has taken the first one's event. */
MODEL(worker_two_timers_in_a_row, .preemptions = -1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *tasks[2];

    /* Nobody has to meet anybody. */
    pirn__init(&begun, 2);
    begin(2);
    for (uint64_t i = 0; i < 2; i++)
        tasks[i] = spawn_late_meeting(2000000 + i * 1000000);
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
    expect_before_the_monitor();
    end();
}

/* Two timers in a row, the second so much later, on workers whose alarms seem to be
 * late. */
static void run_timers_apart(uint32_t workers, uint64_t ns)
{
    pirn_task *tasks[2];

    begin(workers);
    for (uint32_t i = 0; i < workers; i++)
        rt->pool->workers[i]->alarm_late_ns = NEAR_NS;
    for (uint64_t i = 0; i < 2; i++)
        tasks[i] = spawn_late_meeting(2000000 + i * ns);
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
}

/* So near that whoever is woken for the first one stays up for the second, as long
 * as it may. */
static void run_near_timers(void)
{
    run_timers_apart(2, NEAR_NS / 2);
}

/* Goal: who serves the wheel of a sleeper and then sleeps itself leaves it with an
 * alarm for its next timer. */
MODEL(worker_guardian_that_falls_asleep, .preemptions = -1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    /* Nobody has to meet anybody. */
    pirn__init(&begun, 2);
    run_near_timers();
    EXPLORE_CHECK(pirn__sys->clock_ns() < 2000000 + 2 * NEAR_NS);
    end();
}

/* Goal: when it is held instead, by a task that waits for the second timer, that
 * one fires all the same. */
MODEL(worker_guardian_that_is_held, .preemptions = -1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    run_near_timers();
    expect_before_the_monitor();
    end();
}

/* Goal: a timer for which a worker is woken early, in vain, fires when it is due, and
 * not before.
 * Method: one worker, or two; the looks with which it waits for the rest of the time
 * are few, and no time passes meanwhile. */
MODEL(worker_that_gets_up_early, .preemptions = -1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    /* Nobody has to meet anybody. */
    pirn__init(&begun, 2);
    run_timers_apart(1 + (uint32_t)explore_choose(2), 2 * NEAR_NS);
    EXPLORE_CHECK(pirn__sys->clock_ns() >= 2000000 + 2 * NEAR_NS);
    EXPLORE_CHECK(pirn__sys->clock_ns() < 2000000 + 3 * NEAR_NS);
    end();
}

/* What a hook has written is there for whoever has ended the runtime. */
static PIRN_SHARED(int) hook_news;

static void write_news(void *arg, uint32_t worker)
{
    (void)arg;
    (void)worker;
    pirn_cell_write(&hook_news, 1);
}

/* Goal: what a thread did last is seen after the end. */
MODEL(worker_last_hook_before_the_end, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    const pirn_runtime_options options = {.alloc = &explore_heap,
                                          .seed = 1,
                                          .workers = 1,
                                          .on_thread_stop = write_news};

    EXPLORE_CHECK(pirn_runtime_new(&options, &rt) == 0);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, NULL) == 0);
    EXPLORE_CHECK(pirn_cell_read(&hook_news) == 1);
    pirn_runtime_unref(rt);
}

/* A waker of the program's own, which a worker calls. */

static pirn_waker news_clone(const pirn_waker *self)
{
    return *self;
}

static void news_wake_by_ref(const pirn_waker *self)
{
    (void)self;
    pirn_cell_write(&hook_news, 1);
}

static void news_wake(pirn_waker self)
{
    news_wake_by_ref(&self);
}

static void news_drop(pirn_waker self)
{
    (void)self;
}

/* Goal: what a waker did is seen after the end.
 * Method: a timer that is polled outside, and fired by the worker. */
MODEL(worker_last_waker_before_the_end, .preemptions = 1, .stale = 1,
      .spurious = -1, .timeouts = -1)
{
    static const pirn_waker_ops ops = {.clone = news_clone,
                                       .wake = news_wake,
                                       .wake_by_ref = news_wake_by_ref,
                                       .drop = news_drop};
    const pirn_waker waker = {.ops = &ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    struct pirn__turn turn = {.budget = PIRN__COOP_UNLIMITED};

    begin(1);
    turn.home = &rt->home;
    turn.timers = rt->home.timers;
    cx.turn_ = &turn;
    pirn_sleep_init(&long_sleep, (pirn_deadline){2000000});
    EXPLORE_CHECK(pirn_future_poll(&long_sleep.future, &cx) == PIRN_PENDING);
    wait_ns(2000000);
    end();
    EXPLORE_CHECK(pirn_cell_read(&hook_news) == 1);
    pirn_future_drop(&long_sleep.future);
}

/* Goal: where a thread cannot be had, those that were started are gone when the
 * call returns, and so is all memory. */
MODEL(worker_thread_refused, .preemptions = 1, .stale = 1, .spurious = -1,
      .refusals = 1)
{
    const pirn_runtime_options options = {
        .alloc = &explore_heap, .seed = 1, .workers = 2};
    int rc = pirn_runtime_new(&options, &rt);

    if (rc == 0)
        end();
    else
        EXPLORE_CHECK(rc == -EAGAIN && rt == NULL);
}
