/* SPDX-License-Identifier: MIT */
/* src/sched/host_test.c - driving a runtime: turn, its descriptor, its next
 * deadline, block_on, and waiting plain threads.
 *
 * Where two threads take part, one waits until the other has visibly arrived,
 * not for a time.
 */
#include <poll.h>

#include "base/list.h"
#include "base/lock.h"
#include "sched/runtime.h"
#include "sched/runtime_test.h"
#include "sys/sys.h"

static bool is_readable(pirn_runtime *rt)
{
    struct pollfd fd = {.fd = pirn_runtime_fd(rt), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

static int count_up(void *arg)
{
    tally_up(arg);
    return 0;
}

/* Wait until a plain thread is parked among those who want the seat. */
static void wait_until_parked(pirn_runtime *rt)
{
    bool parked;

    do {
        sched_yield();
        pirn__lock(&rt->seat.lock);
        parked = !pirn__list_empty(&rt->seat.waiters);
        pirn__unlock(&rt->seat.lock);
    } while (!parked);
}

/* Goal: nonsense gets a code.
 * Method: no runtime, no future. */
TEST(host_calls_without_a_runtime_are_refused)
{
    pirn_runtime *rt = runtime_new();
    tally drops = {0};
    struct probe probe = probe_of(step_never, NULL, &drops);
    pirn_report report;

    EXPECT_EQ(-EINVAL, pirn_runtime_turn(NULL, PIRN_EXPIRED));
    EXPECT_EQ(-EINVAL, pirn_block_on(rt, NULL, PIRN_EXPIRED));
    EXPECT_EQ(-EINVAL, pirn_block_on(NULL, &probe.future, PIRN_EXPIRED));
    EXPECT_EQ(1, tally_of(&drops));
    EXPECT_EQ(-EINVAL, pirn_runtime_shutdown(NULL, PIRN_EXPIRED, NULL));
    memset(&report, 'x', sizeof report);
    EXPECT_EQ(-EINVAL, pirn_runtime_shutdown(NULL, PIRN_EXPIRED, &report));
    EXPECT_EQ(0, report.task_count);
    runtime_end(rt);
}

/* Goal: a turn runs what is ready, counts the polls, and never waits.
 * Method: three tasks are ready, one sleeps for an hour. */
TEST(host_turn_runs_what_is_ready_and_does_not_wait)
{
    pirn_runtime *rt = runtime_new();
    pirn_sleep_op sleep;
    tally runs = {0};

    pirn_sleep_init(&sleep, pirn_after_ms(3600 * 1000));
    EXPECT_EQ(0, turn(rt));
    for (int i = 0; i < 3; i++)
        go(rt, count_up, &runs);
    EXPECT_EQ(0, pirn_spawn(&sleep.future, sizeof sleep,
                            &(pirn_spawn_options){.runtime = rt}, NULL));
    EXPECT_EQ(4, turn(rt));
    EXPECT_EQ(3, tally_of(&runs));
    EXPECT_EQ(0, turn(rt));
    EXPECT_EQ(1, runtime_end(rt).cancelled);
}

static enum pirn_poll step_endless(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: a turn ends at its deadline although tasks are still ready.
 * Method: one that is always ready, and a deadline that has passed. */
TEST(host_turn_ends_at_its_deadline)
{
    pirn_runtime *rt = runtime_new();

    spawn_probe(rt, step_endless, NULL, NULL);
    EXPECT_GE(pirn_runtime_turn(rt, PIRN_EXPIRED), 1);
    EXPECT_EQ(0, pirn_runtime_next_deadline(rt).ns);
    EXPECT_EQ(1, runtime_end(rt).cancelled);
}

static void expect_bound_elsewhere(void *arg, size_t index)
{
    pirn_runtime *rt = arg;
    tally drops = {0};
    struct probe probe = probe_of(step_ready, NULL, &drops);

    (void)index;
    EXPECT_EQ(-EPERM, pirn_runtime_turn(rt, PIRN_EXPIRED));
    EXPECT_EQ(-EPERM, pirn_block_on(rt, &probe.future, PIRN_NEVER));
    EXPECT_EQ(1, tally_of(&drops));
}

static void expect_block_on_works(void *arg, size_t index)
{
    struct probe probe = probe_of(step_ready, NULL, NULL);

    (void)index;
    EXPECT_EQ(0, pirn_block_on(arg, &probe.future, PIRN_NEVER));
}

/* Goal: turn binds the runtime to its thread; block_on does not.
 * Method: block on two threads, then turn on one and try both on the other. */
TEST(host_turn_binds_and_block_on_does_not)
{
    pirn_runtime *rt = runtime_new();

    expect_block_on_works(rt, 0);
    on_another_thread(expect_block_on_works, rt);
    turn(rt);
    on_another_thread(expect_bound_elsewhere, rt);
    turn(rt);
    expect_block_on_works(rt, 0);
    runtime_end(rt);
}

struct meeting {
    pirn_runtime *rt;
    struct bell bell;
    struct bell second;
    pirn_task *task;
    tally runs;
    int rc;
};

static void meeting_init(struct meeting *meeting)
{
    *meeting = (struct meeting){.rt = runtime_new(), .rc = INT32_MIN};
    bell_init(&meeting->bell);
    bell_init(&meeting->second);
}

static void block_on_bell(void *arg, size_t index)
{
    struct meeting *meeting = arg;

    (void)index;
    meeting->rc = bell_block_on(meeting->rt, &meeting->bell, PIRN_NEVER);
}

/* Goal: while one host call drives, another is told -EBUSY, its future is
 * dropped, and nothing is bound.
 * Method: one thread blocks on a bell, this one tries both calls. */
TEST(host_calls_are_busy_while_another_drives)
{
    struct meeting meeting;
    struct crew crew;
    tally drops = {0};
    struct probe probe = probe_of(step_ready, NULL, &drops);

    meeting_init(&meeting);
    crew_start(&crew, 1, block_on_bell, &meeting);
    wait_for_tally(&meeting.bell.waiting, 1);
    EXPECT_EQ(-EBUSY, pirn_runtime_turn(meeting.rt, PIRN_EXPIRED));
    EXPECT_EQ(-EBUSY, pirn_block_on(meeting.rt, &probe.future, PIRN_NEVER));
    EXPECT_EQ(1, tally_of(&drops));
    bell_ring(&meeting.bell);
    crew_join(&crew);
    EXPECT_EQ(0, meeting.rc);
    on_another_thread(expect_block_on_works, meeting.rt);
    runtime_end(meeting.rt);
}

static void spawn_counter(void *arg, size_t index)
{
    struct meeting *meeting = arg;

    (void)index;
    go(meeting->rt, count_up, &meeting->runs);
}

static void ring(void *arg, size_t index)
{
    struct meeting *meeting = arg;

    (void)index;
    bell_ring(&meeting->bell);
}

/* Goal: in a foreign loop the descriptor becomes readable when another thread
 * spawns or wakes, and the next deadline says that there is work; after a turn
 * both are quiet again.
 * Method: poll it before and after each. */
TEST(host_descriptor_is_readable_after_foreign_work)
{
    struct meeting meeting;

    meeting_init(&meeting);
    go(meeting.rt, hear_bell, &meeting.bell);
    EXPECT(is_readable(meeting.rt));
    turn(meeting.rt);
    EXPECT(!is_readable(meeting.rt));
    EXPECT_EQ(UINT64_MAX, pirn_runtime_next_deadline(meeting.rt).ns);

    on_another_thread(spawn_counter, &meeting);
    EXPECT(is_readable(meeting.rt));
    EXPECT_EQ(0, pirn_runtime_next_deadline(meeting.rt).ns);
    EXPECT_EQ(1, turn(meeting.rt));
    EXPECT(!is_readable(meeting.rt));

    on_another_thread(ring, &meeting);
    EXPECT(is_readable(meeting.rt));
    EXPECT_EQ(0, pirn_runtime_next_deadline(meeting.rt).ns);
    EXPECT_EQ(1, turn(meeting.rt));
    EXPECT(!is_readable(meeting.rt));
    EXPECT_EQ(2, runtime_end(meeting.rt).completed);
}

/* Goal: the next deadline is that of the earliest timer, or a little earlier,
 * and moves with it.
 * Method: a sleep of an hour, one of ten seconds, and the clock paused. */
TEST(host_next_deadline_follows_the_timers)
{
    pirn_runtime *rt = runtime_new();
    pirn_deadline hour = pirn_after_ms(3600 * 1000);
    pirn_deadline soon = pirn_after_ms(10 * 1000);
    pirn_sleep_op sleeps[2];
    const pirn_spawn_options options = {.runtime = rt};

    pirn_sleep_init(&sleeps[0], hour);
    pirn_sleep_init(&sleeps[1], soon);
    EXPECT_EQ(UINT64_MAX, pirn_runtime_next_deadline(rt).ns);
    EXPECT_EQ(0,
              pirn_spawn(&sleeps[0].future, sizeof sleeps[0], &options, NULL));
    turn(rt);
    EXPECT_LE(pirn_runtime_next_deadline(rt).ns, hour.ns);
    EXPECT_GE(pirn_runtime_next_deadline(rt).ns, soon.ns);
    EXPECT_EQ(0,
              pirn_spawn(&sleeps[1].future, sizeof sleeps[1], &options, NULL));
    turn(rt);
    EXPECT_LE(pirn_runtime_next_deadline(rt).ns, soon.ns);
    EXPECT_GE(pirn_runtime_next_deadline(rt).ns, 1);
    EXPECT_EQ(0, pirn_runtime_clock_pause(rt));
    EXPECT_EQ(UINT64_MAX, pirn_runtime_next_deadline(rt).ns);
    EXPECT_EQ(2, runtime_end(rt).cancelled);
}

/* Goal: after the end there is nothing to watch and no turn is due, even if a
 * timer was.
 * Method: a sleep that is long over when the runtime ends. */
TEST(host_has_nothing_to_watch_after_the_end)
{
    pirn_runtime *rt = runtime_new();
    pirn_sleep_op op;

    EXPECT_EQ(0, pirn_runtime_clock_pause(rt));
    pirn_sleep_init(&op, pirn_after_ms(3600 * 1000));
    EXPECT_EQ(0, pirn_spawn(&op.future, sizeof op,
                            &(pirn_spawn_options){.runtime = rt}, NULL));
    turn(rt);
    EXPECT_EQ(0, pirn_runtime_clock_advance(rt, UINT64_C(7200) * 1000 * 1000 *
                                                    1000));
    EXPECT_EQ(0, pirn_runtime_next_deadline(rt).ns);
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));
    EXPECT_EQ(PIRN_NEVER.ns, pirn_runtime_next_deadline(rt).ns);
    EXPECT_EQ(-1, pirn_runtime_fd(rt));
    pirn_runtime_unref(rt);
}

/* Goal: block_on polls at least once, so that success beats an expired
 * deadline; else it says -ETIMEDOUT and has dropped the future.
 * Method: a future that is ready, and one that never is. */
TEST(host_block_on_keeps_its_deadline)
{
    pirn_runtime *rt = runtime_new();
    tally drops = {0};
    struct probe ready = probe_of(step_ready, NULL, &drops);
    struct probe never = probe_of(step_never, NULL, &drops);

    EXPECT_EQ(0, pirn_block_on(rt, &ready.future, PIRN_EXPIRED));
    EXPECT_EQ(0, tally_of(&drops));
    EXPECT_EQ(-ETIMEDOUT, pirn_block_on(rt, &never.future, PIRN_EXPIRED));
    EXPECT_EQ(1, tally_of(&drops));
    never = probe_of(step_never, NULL, &drops);
    EXPECT_EQ(-ETIMEDOUT, pirn_block_on(rt, &never.future, pirn_after_us(50)));
    EXPECT_EQ(2, tally_of(&drops));
    runtime_end(rt);
}

static int ring_the_bell(void *arg)
{
    bell_ring(arg);
    return 0;
}

/* Goal: other tasks run while a thread blocks on a future.
 * Method: one of them ends the wait. */
TEST(host_block_on_runs_other_tasks)
{
    struct meeting meeting;

    meeting_init(&meeting);
    go(meeting.rt, ring_the_bell, &meeting.bell);
    EXPECT_EQ(0, bell_block_on(meeting.rt, &meeting.bell, PIRN_NEVER));
    EXPECT_EQ(1, runtime_end(meeting.rt).completed);
}

static enum pirn_poll step_spend_twice(struct probe *probe, pirn_cx *cx)
{
    while (probe->outcome < 300) {
        if (!pirn_coop_spend(cx))
            return PIRN_PENDING;
        probe->outcome++;
    }
    return PIRN_READY;
}

/* Goal: a future under block_on that uses up its budget is polled again.
 * Method: one that spends 300 units, more than two polls may. */
TEST(host_block_on_resumes_after_the_budget)
{
    pirn_runtime *rt = runtime_new();
    struct probe probe = probe_of(step_spend_twice, NULL, NULL);

    EXPECT_EQ(0, pirn_block_on(rt, &probe.future, PIRN_NEVER));
    EXPECT_EQ(3, probe.polls);
    runtime_end(rt);
}

/* Every call that would drive. */
static void expect_deadlock(pirn_runtime *rt)
{
    tally drops = {0};
    struct probe probe = probe_of(step_ready, NULL, &drops);

    EXPECT_EQ(-EDEADLK, pirn_runtime_turn(rt, PIRN_EXPIRED));
    EXPECT_EQ(-EDEADLK, pirn_block_on(rt, &probe.future, PIRN_NEVER));
    EXPECT_EQ(1, tally_of(&drops));
    EXPECT_EQ(-EDEADLK, pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));
    EXPECT_EQ(-EDEADLK, pirn_run(count_up, &drops));
    EXPECT_EQ(1, tally_of(&drops));
}

/* Every call that would wait. */
static void expect_no_suspension(pirn_runtime *rt)
{
    struct probe probe = probe_of(step_ready, NULL, NULL);

    expect_deadlock(rt);
    EXPECT_EQ(-EDEADLK, pirn_await(&probe.future, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, pirn_sleep(PIRN_EXPIRED));
    EXPECT_EQ(-EDEADLK, pirn_yield());
}

static int try_in_fiber(void *arg)
{
    expect_deadlock(arg);
    return 0;
}

static enum pirn_poll step_try(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    expect_no_suspension(probe->arg);
    return PIRN_READY;
}

static int try_in_nested_poll(void *arg)
{
    struct probe probe = probe_of(step_try, arg, NULL);

    return pirn_await(&probe.future, PIRN_NEVER);
}

static void try_in_hook(void *arg, const pirn_failure *failure)
{
    pirn_runtime **rt = arg;

    EXPECT_EQ(-EIO, failure->outcome);
    expect_no_suspension(*rt);
}

static int fail_with_eio(void *arg)
{
    (void)arg;
    return -EIO;
}

/* Goal: inside a task no call drives, and inside a poll or a hook none waits.
 * Method: try all in a fiber, a stackless poll, a poll that a fiber's await
 * makes, one that block_on makes, and the failure hook. */
TEST(host_calls_inside_tasks_and_hooks_are_refused)
{
    pirn_runtime *rt;
    const pirn_runtime_options options = {.on_failure = try_in_hook,
                                          .on_failure_arg = &rt};
    struct probe probe;

    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    go(rt, try_in_fiber, rt);
    go(rt, try_in_nested_poll, rt);
    spawn_probe(rt, step_try, rt, NULL);
    go(rt, fail_with_eio, NULL);
    turn(rt);
    probe = probe_of(step_try, rt, NULL);
    EXPECT_EQ(0, pirn_block_on(rt, &probe.future, PIRN_NEVER));
    EXPECT_EQ(1, runtime_end(rt).failed);
}

static pirn_waker tried_clone(const pirn_waker *self)
{
    return *self;
}

static void tried_wake_by_ref(const pirn_waker *self)
{
    expect_no_suspension(self->data);
}

static void tried_wake(pirn_waker self)
{
    tried_wake_by_ref(&self);
}

static const pirn_waker_ops tried_ops = {
    .clone = tried_clone,
    .wake = tried_wake,
    .wake_by_ref = tried_wake_by_ref,
    .drop = tried_wake,
};

/* Goal: the same in a waker's callbacks, outside any task.
 * Method: a foreign waker that tries everything when it is woken. */
TEST(host_calls_inside_a_waker_are_refused)
{
    pirn_runtime *rt = runtime_new();
    pirn_waker waker = {.data = rt, .ops = &tried_ops};

    pirn_waker_wake_by_ref(&waker);
    pirn_waker_drop(waker);
    runtime_end(rt);
}

/* Goal: block_on ends with PIRN_ESHUTDOWN when another thread stops the
 * runtime; its future is dropped; host calls say the same from then on.
 * Method: stop while it waits for a bell that nobody rings. */
TEST(host_block_on_ends_when_the_runtime_does)
{
    struct meeting meeting;
    struct crew crew;
    pirn_report report;
    tally drops = {0};
    struct probe probe = probe_of(step_ready, NULL, &drops);

    meeting_init(&meeting);
    crew_start(&crew, 1, block_on_bell, &meeting);
    wait_for_tally(&meeting.bell.waiting, 1);
    EXPECT_EQ(0, pirn_runtime_shutdown(meeting.rt, pirn_after_ms(RESCUE_MS),
                                       &report));
    crew_join(&crew);
    EXPECT_EQ(PIRN_ESHUTDOWN, meeting.rc);
    EXPECT_EQ(1, tally_of(&meeting.bell.drops));
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_runtime_turn(meeting.rt, PIRN_EXPIRED));
    EXPECT_EQ(PIRN_ESHUTDOWN,
              pirn_block_on(meeting.rt, &probe.future, PIRN_EXPIRED));
    EXPECT_EQ(1, tally_of(&drops));
    pirn_runtime_unref(meeting.rt);
}

/* Plain threads that wait. */

/* Goal: a plain thread that waits for a task of a runtime nobody drives drives
 * it itself.
 * Method: join here. */
TEST(host_waiting_thread_drives_an_undriven_runtime)
{
    pirn_runtime *rt = runtime_new();
    tally runs = {0};

    EXPECT_EQ(0, join_and_unref(go_task(rt, count_up, &runs)));
    EXPECT_EQ(1, tally_of(&runs));
    runtime_end(rt);
}

/* Goal: such a wait keeps its deadline and loses nothing.
 * Method: join a task that waits for a bell, in vain, and again. */
TEST(host_waiting_thread_keeps_its_deadline)
{
    struct meeting meeting;
    pirn_task *task;
    int outcome;

    meeting_init(&meeting);
    task = go_task(meeting.rt, hear_bell, &meeting.bell);
    EXPECT_EQ(-ETIMEDOUT, pirn_task_join(task, PIRN_EXPIRED, &outcome));
    EXPECT_EQ(-ETIMEDOUT, pirn_task_join(task, pirn_after_us(50), &outcome));
    bell_ring(&meeting.bell);
    EXPECT_EQ(0, join_and_unref(task));
    runtime_end(meeting.rt);
}

static void join_task(void *arg, size_t index)
{
    struct meeting *meeting = arg;

    (void)index;
    meeting->rc = join_and_unref(meeting->task);
}

/* Goal: a host call takes the seat from a waiting thread, which gets it back.
 * Method: a thread drives while it joins a task that waits for a bell; block_on
 * here can only succeed with the seat, and the join only with a driver. */
TEST(host_call_takes_over_from_a_waiting_thread)
{
    struct meeting meeting;
    struct crew crew;

    meeting_init(&meeting);
    meeting.task = go_task(meeting.rt, hear_bell, &meeting.bell);
    crew_start(&crew, 1, join_task, &meeting);
    wait_for_tally(&meeting.bell.waiting, 1);
    expect_block_on_works(meeting.rt, 0);
    bell_ring(&meeting.bell);
    crew_join(&crew);
    EXPECT_EQ(0, meeting.rc);
    runtime_end(meeting.rt);
}

/* Goal: a driver that leaves wakes a parked waiting thread, which takes over.
 * Method: the join is parked while block_on drives; its task is woken only when
 * that has returned. */
TEST(host_leaving_driver_is_followed_by_a_waiting_thread)
{
    struct meeting meeting;
    struct crew driver;
    struct crew joiner;
    int rc;

    meeting_init(&meeting);
    crew_start(&driver, 1, block_on_bell, &meeting);
    wait_for_tally(&meeting.bell.waiting, 1);
    meeting.task = go_task(meeting.rt, hear_bell, &meeting.second);
    wait_for_tally(&meeting.second.waiting, 1);
    crew_start(&joiner, 1, join_task, &meeting);
    wait_until_parked(meeting.rt);
    bell_ring(&meeting.bell);
    crew_join(&driver);
    rc = meeting.rc;
    bell_ring(&meeting.second);
    crew_join(&joiner);
    EXPECT_EQ(0, rc == 0 ? meeting.rc : rc);
    runtime_end(meeting.rt);
}

/* Goal: a waiting thread never drives a runtime that is bound to another one.
 * Method: bind here; while a thread is parked on the join of a ready task, that
 * task has not run; a turn here runs it. */
TEST(host_waiting_thread_leaves_a_bound_runtime_alone)
{
    struct meeting meeting;
    struct crew joiner;

    meeting_init(&meeting);
    turn(meeting.rt);
    meeting.task = go_task(meeting.rt, count_up, &meeting.runs);
    crew_start(&joiner, 1, join_task, &meeting);
    wait_until_parked(meeting.rt);
    EXPECT_EQ(0, tally_of(&meeting.runs));
    EXPECT_EQ(1, turn(meeting.rt));
    crew_join(&joiner);
    EXPECT_EQ(0, meeting.rc);
    runtime_end(meeting.rt);
}

static pirn_runtime *doomed; /* this thread's first wait ends it */
static pthread_t doomsday_thread;
static int shutdown_rc;

/* The wait for the seat: by its end the runtime has ended. */
static int end_runtime_and_wait(uint32_t *word, uint32_t expected,
                                pirn_deadline deadline)
{
    pirn_runtime *rt;

    if (!pthread_equal(pthread_self(), doomsday_thread) || doomed == NULL)
        return pirn__sys_linux.futex_wait(word, expected, deadline);
    rt = doomed;
    doomed = NULL;
    shutdown_rc = pirn_runtime_shutdown(rt, PIRN_NEVER, NULL);
    return 0;
}

static bool is_driven_by_a_waiter(pirn_runtime *rt)
{
    bool is;

    pirn__lock(&rt->seat.lock);
    is = rt->seat.state == PIRN__SEAT_WAITER;
    pirn__unlock(&rt->seat.lock);
    return is;
}

/* Goal: a turn that had to wait for the seat, and finds that the runtime has
 * ended meanwhile, says so.
 * Method: a plain thread drives while it joins; in the wait for it to get up the
 * runtime is shut down. */
TEST(host_turn_after_the_end_of_the_wait_for_the_seat)
{
    static struct pirn__sys table;
    struct meeting meeting;
    struct crew joiner;

    meeting_init(&meeting);
    table = pirn__sys_linux;
    table.futex_wait = end_runtime_and_wait;
    doomsday_thread = pthread_self();
    pirn__sys = &table;
    meeting.task = go_task(meeting.rt, hear_bell, &meeting.bell);
    crew_start(&joiner, 1, join_task, &meeting);
    while (!is_driven_by_a_waiter(meeting.rt))
        sched_yield();
    wait_for_tally(&meeting.bell.waiting, 1);
    doomed = meeting.rt;
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_runtime_turn(meeting.rt, PIRN_EXPIRED));
    EXPECT_PTR_EQ(NULL, doomed);
    EXPECT_EQ(0, shutdown_rc);
    crew_join(&joiner);
    pirn__sys = &pirn__sys_linux;
    EXPECT_EQ(-ECANCELED, meeting.rc);
    pirn_runtime_unref(meeting.rt);
}

/* Entering. */

static int expect_current(void *arg)
{
    EXPECT_PTR_EQ(arg, pirn_runtime_current());
    return 0;
}

/* Goal: enter makes a runtime current on this thread, nests, and returns what
 * was current; inside a task its own runtime is current all the same.
 * Method: two runtimes, one inside the other. */
TEST(host_enter_nests_and_spawns_go_there)
{
    pirn_runtime *first = runtime_new();
    pirn_runtime *second = runtime_new();

    EXPECT_PTR_EQ(NULL, pirn_runtime_current());
    EXPECT_EQ(PIRN_ENORUNTIME, pirn_go(expect_current, NULL));
    EXPECT_PTR_EQ(NULL, pirn_runtime_enter(first));
    EXPECT_EQ(0, pirn_go(expect_current, first));
    EXPECT_PTR_EQ(first, pirn_runtime_enter(second));
    EXPECT_PTR_EQ(second, pirn_runtime_current());
    EXPECT_EQ(0, pirn_go(expect_current, second));
    EXPECT_EQ(1, turn(first));
    EXPECT_EQ(1, turn(second));
    EXPECT_PTR_EQ(second, pirn_runtime_enter(NULL));
    EXPECT_PTR_EQ(NULL, pirn_runtime_current());
    EXPECT_PTR_EQ(NULL, pirn_runtime_enter(first));
    EXPECT_PTR_EQ(first, pirn_runtime_enter(NULL));
    EXPECT_EQ(1, runtime_end(first).completed);
    EXPECT_EQ(1, runtime_end(second).completed);
}

/* Interrupting a parked driver. */

struct alarm {
    pirn_runtime *rt;
    pirn_sleep_op sleep;
};

static int sleep_long(void *arg)
{
    struct alarm *alarm = arg;

    return pirn_await(&alarm->sleep.future, PIRN_NEVER);
}

static void wait_until_armed(pirn_runtime *rt)
{
    while (pirn__timers_count(&rt->timers) == 0)
        sched_yield();
}

static void set_earlier(void *arg, size_t index)
{
    struct alarm *alarm = arg;

    (void)index;
    wait_until_armed(alarm->rt);
    pirn_sleep_reset(&alarm->sleep, PIRN_EXPIRED);
}

static void advance_two_hours(void *arg, size_t index)
{
    struct alarm *alarm = arg;

    (void)index;
    wait_until_armed(alarm->rt);
    EXPECT_EQ(0, pirn_runtime_clock_advance(alarm->rt, UINT64_C(7200) * 1000 *
                                                           1000 * 1000));
}

static void expect_alarm(crew_fn *interrupt, bool paused)
{
    struct alarm alarm = {.rt = runtime_new()};
    struct crew crew;
    pirn_join_op join;
    pirn_task *task;

    if (paused)
        EXPECT_EQ(0, pirn_runtime_clock_pause(alarm.rt));
    pirn_sleep_init(&alarm.sleep, pirn_after_ms(3600 * 1000));
    task = go_task(alarm.rt, sleep_long, &alarm);
    crew_start(&crew, 1, interrupt, &alarm);
    pirn_join_init(&join, task);
    EXPECT_EQ(0, pirn_block_on(alarm.rt, &join.future, PIRN_NEVER));
    EXPECT_EQ(0, join.outcome);
    crew_join(&crew);
    pirn_task_unref(task);
    runtime_end(alarm.rt);
}

/* Goal: a new earlier deadline interrupts the parked driver, from any thread.
 * Method: block on a task that sleeps for an hour; another thread resets the
 * sleep, or moves the clock. */
TEST(host_earlier_deadline_interrupts_the_driver)
{
    expect_alarm(set_earlier, false);
    expect_alarm(advance_two_hours, true);
}
