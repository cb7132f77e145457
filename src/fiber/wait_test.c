/* SPDX-License-Identifier: MIT */
/* src/fiber/wait_test.c - how a fiber waits: what comes first on entry, how a
 * wait ends, its single timer, cancellation, shields, and the places where
 * nothing may wait. */
#include "fiber/rig_test.h"

/* A fiber that awaits one gate and notes the answers. */
struct visit {
    struct gate gate;
    pirn_deadline deadline;
    int rc;   /* of the await */
    int next; /* of the call after it */
    int ended;
};

static int await_once(void *arg)
{
    struct visit *visit = arg;

    visit->rc = pirn_await(&visit->gate.future, visit->deadline);
    visit->next = pirn_yield();
    visit->ended++;
    return visit->rc;
}

/* Goal: a future that is ready succeeds, also at a deadline that has passed.
 * Method: an open gate with each kind of deadline. */
TEST(wait_success_beats_an_expired_deadline)
{
    const pirn_deadline deadlines[] = {PIRN_NEVER, PIRN_EXPIRED, {1}};
    struct rig rig;

    rig_begin(&rig);
    for (int i = 0; i < 3; i++) {
        struct visit visit = {.gate = OPEN_GATE, .deadline = deadlines[i]};

        EXPECT_EQ(0, pirn_go(await_once, &visit));
        rig_turn(&rig);
        EXPECT_EQ(0, visit.rc);
        EXPECT_EQ(1, visit.gate.polls);
        EXPECT_EQ(0, visit.gate.drops);
    }
    rig_end(&rig);
}

/* Goal: what is not ready at a deadline that has passed is tried once, dropped
 * and answered with -ETIMEDOUT.
 * Method: PIRN_EXPIRED, and another time in the past. */
TEST(wait_at_an_expired_deadline_tries_once)
{
    const pirn_deadline deadlines[] = {PIRN_EXPIRED, {1}};
    struct rig rig;

    rig_begin(&rig);
    for (int i = 0; i < 2; i++) {
        struct visit visit = {.gate = GATE, .deadline = deadlines[i]};

        EXPECT_EQ(0, pirn_go(await_once, &visit));
        rig_turn(&rig);
        EXPECT_EQ(1, visit.ended);
        EXPECT_EQ(-ETIMEDOUT, visit.rc);
        EXPECT_EQ(0, visit.next);
        EXPECT_LE(1, visit.gate.polls);
        EXPECT_EQ(1, visit.gate.drops);
    }
    rig_end(&rig);
}

/* Goal: a wait ends at its deadline, not before, and withdraws its operation.
 * Method: step around the time; no timer stays behind. */
TEST(wait_ends_at_its_deadline_and_never_early)
{
    struct visit visit = {.gate = GATE};
    struct rig rig;

    rig_begin(&rig);
    visit.deadline = pirn_after_ms(10);
    EXPECT_EQ(0, pirn_go(await_once, &visit));
    rig_turn(&rig);
    EXPECT_EQ(1, rig_info(&rig).timers);
    rig_pass_ns(&rig, 10 * 1000000 - 1);
    EXPECT_EQ(0, visit.ended);
    rig_pass_ns(&rig, 1);
    EXPECT_EQ(1, visit.ended);
    EXPECT_EQ(-ETIMEDOUT, visit.rc);
    EXPECT_EQ(1, visit.gate.drops);
    EXPECT_EQ(0, rig_info(&rig).timers);
    rig_end(&rig);
}

/* Goal: when the operation and the deadline come together, the operation wins.
 * Method: open the gate and let the time pass before the fiber runs. */
TEST(wait_completed_at_its_deadline_succeeds)
{
    struct visit visit = {.gate = GATE};
    struct rig rig;

    rig_begin(&rig);
    visit.deadline = pirn_after_ms(10);
    EXPECT_EQ(0, pirn_go(await_once, &visit));
    rig_turn(&rig);
    gate_open(&visit.gate);
    rig_pass_ms(&rig, 10);
    EXPECT_EQ(0, visit.rc);
    EXPECT_EQ(1, visit.ended);
    EXPECT_EQ(0, visit.gate.drops);
    rig_end(&rig);
}

/* Goal: wakes without a reason do not end a wait.
 * Method: wake by id and through the gate's waker. */
TEST(wait_goes_on_after_a_spurious_wake)
{
    struct visit visit = {.gate = GATE, .deadline = PIRN_NEVER};
    struct rig rig;
    pirn_task *task;

    rig_begin(&rig);
    task = rig_go(await_once, &visit);
    rig_turn(&rig);
    for (int i = 1; i <= 3; i++) {
        EXPECT_EQ(0, pirn_id_wake(pirn_task_get_id(task)));
        rig_turn(&rig);
        EXPECT_EQ(1 + i, visit.gate.polls);
    }
    EXPECT_EQ(0, visit.ended);
    gate_open(&visit.gate);
    rig_turn(&rig);
    EXPECT_EQ(0, rig_outcome(task));
    rig_end(&rig);
}

/* Goal: cancelling cuts a wait short: the operation is withdrawn, and every
 * later call is answered the same way.
 * Method: cancel a fiber that waits for ever, and one with a deadline. */
TEST(wait_cancelled_withdraws_and_every_later_call_is_refused)
{
    struct rig rig;

    rig_begin(&rig);
    for (int i = 0; i < 2; i++) {
        struct visit visit = {.gate = GATE};
        pirn_task *task;

        visit.deadline = i == 0 ? PIRN_NEVER : pirn_after_ms(10);
        task = rig_go(await_once, &visit);
        rig_turn(&rig);
        pirn_task_cancel(task);
        EXPECT_EQ(0, visit.ended);
        rig_turn(&rig);
        EXPECT_EQ(-ECANCELED, visit.rc);
        EXPECT_EQ(-ECANCELED, visit.next);
        EXPECT_EQ(1, visit.gate.drops);
        EXPECT_EQ(0, rig_info(&rig).timers);
        EXPECT_EQ(-ECANCELED, rig_outcome(task));
    }
    rig_end(&rig);
}

/* Goal: what turns out completed while it is being cancelled is returned, and
 * the next call says -ECANCELED.
 * Method: open the gate and cancel before the fiber runs again, in both
 * orders. */
TEST(wait_completed_at_the_last_moment_is_returned)
{
    struct rig rig;

    rig_begin(&rig);
    for (int i = 0; i < 2; i++) {
        struct visit visit = {.gate = GATE, .deadline = PIRN_NEVER};
        pirn_task *task = rig_go(await_once, &visit);

        rig_turn(&rig);
        if (i == 0)
            pirn_task_cancel(task);
        gate_open(&visit.gate);
        pirn_task_cancel(task);
        rig_turn(&rig);
        EXPECT_EQ(0, visit.rc);
        EXPECT_EQ(0, visit.gate.drops);
        EXPECT_EQ(-ECANCELED, visit.next);
        EXPECT_EQ(0, rig_outcome(task));
    }
    rig_end(&rig);
}

/* Every call that can suspend, of a fiber that has been cancelled. */
struct refused {
    pirn_task *other; /* a task that has ended */
    struct gate gate;
    bool shielded;
};

static int call_everything(void *arg)
{
    struct refused *r = arg;
    int outcome = 0;
    int rc = r->shielded ? 0 : -ECANCELED;

    EXPECT(pirn_task_cancelled());
    if (r->shielded)
        pirn_fiber_shield_begin();
    EXPECT_EQ(rc, pirn_await(&r->gate.future, PIRN_NEVER));
    EXPECT_EQ(rc, pirn_yield());
    EXPECT_EQ(rc, pirn_sleep(PIRN_EXPIRED));
    EXPECT_EQ(rc, pirn_sleep(pirn_after_ms(0)));
    EXPECT_EQ(rc, pirn_task_join(r->other, PIRN_NEVER, &outcome));
    if (r->shielded)
        pirn_fiber_shield_end();
    EXPECT_EQ(-ECANCELED, pirn_yield());
    return 5;
}

static int return_zero(void *arg)
{
    (void)arg;
    return 0;
}

/* Goal: a fiber that was cancelled before its first run still runs, and each of
 * its calls answers -ECANCELED, whether or not it would have waited: a ready
 * future is dropped unpolled.  Under a shield they work.
 * Method: every straight-line call, both ways. */
TEST(wait_cancelled_before_the_first_run_refuses_every_call)
{
    struct rig rig;

    rig_begin(&rig);
    for (int i = 0; i < 2; i++) {
        struct refused r = {.gate = OPEN_GATE, .shielded = i == 1};
        pirn_task *task;

        r.other = rig_go(return_zero, NULL);
        rig_turn(&rig);
        task = rig_go(call_everything, &r);
        pirn_task_cancel(task);
        rig_turn(&rig);
        EXPECT_EQ(5, rig_outcome(task));
        EXPECT_EQ(i, r.gate.polls);
        EXPECT_EQ(1 - i, r.gate.drops);
        EXPECT_EQ(0, rig_outcome(r.other));
    }
    rig_end(&rig);
}

/* A fiber that waits under nested shields. */
static int wait_shielded(void *arg)
{
    int *step = arg;

    pirn_fiber_shield_begin();
    pirn_fiber_shield_begin();
    *step = 1;
    EXPECT_EQ(0, pirn_sleep(pirn_after_ms(10)));
    pirn_fiber_shield_end();
    *step = 2;
    EXPECT_EQ(0, pirn_sleep(pirn_after_ms(10)));
    EXPECT(pirn_task_cancelled());
    pirn_fiber_shield_end();
    *step = 3;
    return pirn_sleep(pirn_after_ms(10));
}

/* Goal: between begin and end a cancellation is kept but not told, and sections
 * nest.
 * Method: cancel in the inner one; step through by the clock. */
TEST(wait_under_a_shield_is_not_cut_short)
{
    int step = 0;
    struct rig rig;
    pirn_task *task;

    rig_begin(&rig);
    task = rig_go(wait_shielded, &step);
    rig_turn(&rig);
    pirn_task_cancel(task);
    rig_turn(&rig);
    EXPECT_EQ(1, step);
    rig_pass_ms(&rig, 10);
    EXPECT_EQ(2, step);
    rig_pass_ms(&rig, 10);
    EXPECT_EQ(3, step);
    EXPECT_EQ(-ECANCELED, rig_outcome(task));
    rig_end(&rig);
}

/* Goal: outside fibers a shield does nothing.
 * Method: begin and end it on the plain thread, also out of order. */
TEST(shield_on_a_plain_thread_does_nothing)
{
    pirn_fiber_shield_end();
    pirn_fiber_shield_begin();
    pirn_fiber_shield_end();
    EXPECT_EQ(0, pirn_yield());
}

static int end_unbegun_shield(void *arg)
{
    (void)arg;
    pirn_fiber_shield_begin();
    pirn_fiber_shield_end();
    pirn_fiber_shield_end();
    return 0;
}

static void run_unbegun_shield(void *arg)
{
    EXPECT_EQ(0, pirn_run(end_unbegun_shield, arg));
}

/* Goal: a shield that ends without having begun stops the process.
 * Method: a child process. */
TEST(shield_ended_twice_aborts)
{
    EXPECT_DEATH(run_unbegun_shield, NULL, "a shield that ends has begun");
}

/* A fiber that waits again and again with deadlines that come and go. */
struct patience {
    struct gate gate;
    const uint64_t *after_ms; /* of each wait; 0: for ever */
    size_t count;
    size_t done;
    int rcs[8];
};

static int wait_repeatedly(void *arg)
{
    struct patience *p = arg;

    for (; p->done < p->count; p->done++) {
        uint64_t ms = p->after_ms[p->done];
        pirn_deadline deadline = ms == 0 ? PIRN_NEVER : pirn_after_ms(ms);

        p->rcs[p->done] = pirn_await(&p->gate.future, deadline);
        gate_reset(&p->gate);
    }
    return 0;
}

/* Goal: the timer that an earlier wait left armed neither ends a later wait
 * early nor makes it miss its own deadline.
 * Method: a wait of 10 ms completes at 1 ms; the next is for 30 ms. */
TEST(wait_is_not_ended_by_the_timer_of_an_earlier_one)
{
    static const uint64_t after_ms[] = {10, 30};
    struct patience p = {.gate = GATE, .after_ms = after_ms, .count = 2};
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(wait_repeatedly, &p));
    rig_pass_ms(&rig, 0);
    rig_pass_ms(&rig, 1);
    gate_open(&p.gate);
    rig_turn(&rig);
    EXPECT_EQ(1, p.done);
    EXPECT_EQ(0, p.rcs[0]);
    rig_pass_ms(&rig, 9);
    rig_pass_ms(&rig, 20);
    EXPECT_EQ(1, p.done);
    rig_pass_ns(&rig, 1000000 - 1);
    EXPECT_EQ(1, p.done);
    rig_pass_ns(&rig, 1);
    EXPECT_EQ(2, p.done);
    EXPECT_EQ(-ETIMEDOUT, p.rcs[1]);
    rig_end(&rig);
}

/* Goal: a wait with an earlier deadline than the timer that was left armed ends
 * at its own.
 * Method: 30 ms completed, then 5 ms. */
TEST(wait_with_an_earlier_deadline_ends_at_its_own)
{
    static const uint64_t after_ms[] = {30, 5, 100};
    struct patience p = {.gate = GATE, .after_ms = after_ms, .count = 3};
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(wait_repeatedly, &p));
    rig_turn(&rig);
    gate_open(&p.gate);
    rig_turn(&rig);
    rig_pass_ms(&rig, 4);
    EXPECT_EQ(1, p.done);
    rig_pass_ms(&rig, 1);
    EXPECT_EQ(2, p.done);
    EXPECT_EQ(-ETIMEDOUT, p.rcs[1]);
    rig_pass_ms(&rig, 99);
    EXPECT_EQ(2, p.done);
    rig_pass_ms(&rig, 1);
    EXPECT_EQ(3, p.done);
    EXPECT_EQ(-ETIMEDOUT, p.rcs[2]);
    rig_end(&rig);
}

/* Goal: a wait for ever takes a forgotten timer out, so that an idle runtime
 * has none; a fiber has one timer at most.
 * Method: count the timers from wait to wait. */
TEST(wait_for_ever_leaves_no_timer)
{
    static const uint64_t after_ms[] = {10, 10, 0, 10};
    struct patience p = {.gate = GATE, .after_ms = after_ms, .count = 4};
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(wait_repeatedly, &p));
    rig_turn(&rig);
    EXPECT_EQ(1, rig_info(&rig).timers);
    gate_open(&p.gate);
    rig_turn(&rig);
    EXPECT_EQ(1, rig_info(&rig).timers);
    gate_open(&p.gate);
    rig_turn(&rig);
    EXPECT_EQ(0, rig_info(&rig).timers);
    rig_pass_ms(&rig, 1000);
    EXPECT_EQ(2, p.done);
    gate_open(&p.gate);
    rig_turn(&rig);
    EXPECT_EQ(1, rig_info(&rig).timers);
    rig_pass_ms(&rig, 10);
    EXPECT_EQ(4, p.done);
    EXPECT_EQ(-ETIMEDOUT, p.rcs[3]);
    EXPECT_EQ(0, rig_info(&rig).timers);
    rig_end(&rig);
}

/* Sleeping. */

struct nap {
    pirn_deadline until;
    int rc;
    uint64_t woke_at;
};

static int take_nap(void *arg)
{
    struct nap *nap = arg;

    nap->rc = pirn_sleep(nap->until);
    nap->woke_at = pirn_now_ns();
    return 0;
}

/* Goal: sleepers wake in the order of their times, at them, on the runtime's
 * own clock, which may be resumed.
 * Method: three sleepers on a paused clock. */
TEST(sleep_of_a_fiber_ends_at_its_time)
{
    struct nap naps[3] = {{.rc = 1}, {.rc = 1}, {.rc = 1}};
    struct rig rig;
    uint64_t start;

    rig_begin(&rig);
    start = pirn_now_ns();
    for (int i = 0; i < 3; i++) {
        naps[i].until = pirn_after_ms(10 * (3 - (uint64_t)i));
        EXPECT_EQ(0, pirn_go(take_nap, &naps[i]));
    }
    rig_turn(&rig);
    for (uint64_t ms = 1; ms <= 30; ms++) {
        rig_pass_ms(&rig, 1);
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(naps[i].until.ns <= start + ms * 1000000 ? 0 : 1,
                      naps[i].rc);
    }
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(naps[i].until.ns, naps[i].woke_at);
    EXPECT_EQ(0, pirn_runtime_clock_resume(rig.rt));
    EXPECT_EQ(-EINVAL, pirn_runtime_clock_advance(rig.rt, 1));
    EXPECT_GE(pirn_now_ns(), start + 30 * 1000000);
    rig_end(&rig);
}

/* Goal: a sleep until the past takes no turn of the clock; one for ever ends
 * only by cancellation; one until the far end of time waits.
 * Method: the three of them, a thousand years later. */
TEST(sleep_of_a_fiber_at_the_ends_of_time)
{
    const uint64_t century_ms = 100ull * 365 * 24 * 3600 * 1000;
    struct nap past = {.until = {1}, .rc = 1};
    struct nap far = {.until = {UINT64_MAX - 1}, .rc = 1};
    struct nap never = {.until = {UINT64_MAX}, .rc = 1};
    struct rig rig;
    pirn_task *task;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(take_nap, &past));
    EXPECT_EQ(0, pirn_go(take_nap, &far));
    task = rig_go(take_nap, &never);
    rig_turn(&rig);
    EXPECT_EQ(0, past.rc);
    rig_pass_ms(&rig, century_ms);
    EXPECT_EQ(1, far.rc);
    rig_pass_ns(&rig, UINT64_MAX);
    EXPECT_EQ(0, far.rc);
    EXPECT_EQ(1, never.rc);
    pirn_task_cancel(task);
    rig_turn(&rig);
    EXPECT_EQ(-ECANCELED, never.rc);
    EXPECT_EQ(0, rig_outcome(task));
    rig_end(&rig);
}

/* Joining. */

struct joiner {
    pirn_task *task;
    pirn_deadline deadline;
    int rc;
    int outcome;
};

static int join_it(void *arg)
{
    struct joiner *joiner = arg;

    joiner->rc = pirn_task_join(joiner->task, joiner->deadline,
                                &joiner->outcome);
    return 0;
}

static int await_gate(void *arg)
{
    struct gate *gate = arg;
    int rc = pirn_await(&gate->future, PIRN_NEVER);

    return rc < 0 ? rc : 77;
}

/* Goal: a fiber joins another; a second joiner is told to wait its turn; a
 * joiner that times out or is cancelled loses nothing.
 * Method: one after the other on a task that ends last. */
TEST(join_by_fibers_one_at_a_time)
{
    struct gate gate = GATE;
    struct joiner first = {.rc = 1}, second = {.rc = 1}, third = {.rc = 1};
    struct rig rig;
    pirn_task *target, *cancelled;

    rig_begin(&rig);
    target = rig_go(await_gate, &gate);
    first.task = second.task = third.task = target;
    first.deadline = pirn_after_ms(10);
    second.deadline = third.deadline = PIRN_NEVER;
    EXPECT_EQ(0, pirn_go(join_it, &first));
    EXPECT_EQ(0, pirn_go(join_it, &third));
    rig_turn(&rig);
    EXPECT_EQ(1, first.rc);
    EXPECT_EQ(-EBUSY, third.rc);
    rig_pass_ms(&rig, 10);
    EXPECT_EQ(-ETIMEDOUT, first.rc);

    cancelled = rig_go(join_it, &second);
    rig_turn(&rig);
    pirn_task_cancel(cancelled);
    rig_turn(&rig);
    EXPECT_EQ(-ECANCELED, second.rc);
    EXPECT_EQ(0, rig_outcome(cancelled));

    EXPECT_EQ(0, pirn_go(join_it, &third));
    rig_turn(&rig);
    EXPECT(!pirn_task_is_done(target));
    gate_open(&gate);
    rig_turn(&rig);
    EXPECT_EQ(0, third.rc);
    EXPECT_EQ(77, third.outcome);
    pirn_task_unref(target);
    rig_end(&rig);
}

static int join_self(void *arg)
{
    int outcome;
    pirn_task *self;

    (void)arg;
    EXPECT_EQ(0, pirn_id_find(pirn_task_self(), &self));
    EXPECT_EQ(-EDEADLK, pirn_task_join(self, PIRN_NEVER, &outcome));
    pirn_task_unref(self);
    return 0;
}

/* Goal: a fiber cannot join itself.
 * Method: it tries, with and without a handle for others. */
TEST(join_of_oneself_in_a_fiber_is_a_deadlock)
{
    struct rig rig;
    pirn_task *task;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(join_self, NULL));
    task = rig_go(join_self, NULL);
    rig_turn(&rig);
    EXPECT_EQ(0, rig_outcome(task));
    rig_end(&rig);
}

/* Goal: a plain thread joins a task of a runtime that nobody drives by driving
 * it, and may yield and sleep.
 * Method: join without a turn before it. */
TEST(join_by_a_plain_thread_drives_the_runtime)
{
    struct rig rig;
    pirn_task *task;
    int outcome = 0;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_runtime_clock_resume(rig.rt));
    task = rig_go(join_self, NULL);
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(0, pirn_sleep(PIRN_EXPIRED));
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    rig_end(&rig);
}

/* Yielding. */

struct order {
    char letters[32];
    size_t length;
};

static void note(struct order *order, char letter)
{
    if (order->length < sizeof order->letters - 1)
        order->letters[order->length++] = letter;
}

struct speaker {
    struct order *order;
    char letter;
};

static int speak_thrice(void *arg)
{
    struct speaker *speaker = arg;

    for (int i = 0; i < 3; i++) {
        note(speaker->order, speaker->letter);
        EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

/* Goal: a yield lets every other ready task run once.
 * Method: three fibers that take turns. */
TEST(yield_lets_every_other_ready_task_run_once)
{
    struct order order = {0};
    struct speaker a = {&order, 'a'}, b = {&order, 'b'}, c = {&order, 'c'};
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(speak_thrice, &a));
    EXPECT_EQ(0, pirn_go(speak_thrice, &b));
    EXPECT_EQ(0, pirn_go(speak_thrice, &c));
    rig_turn(&rig);
    EXPECT_STR_EQ("abcabcabc", order.letters);
    rig_end(&rig);
}

/* The coop budget. */

struct hog {
    struct gate gate; /* always open, spends */
    int rounds;
    int seen; /* of the other, when it ran */
    bool stop;
};

static int await_ready_things(void *arg)
{
    struct hog *hog = arg;

    while (!hog->stop) {
        EXPECT_EQ(0, pirn_await(&hog->gate.future, PIRN_NEVER));
        hog->rounds++;
    }
    return 0;
}

static int look_and_stop(void *arg)
{
    struct hog *hog = arg;

    hog->seen = hog->rounds;
    hog->stop = true;
    return 0;
}

/* Goal: a fiber whose operations are always ready lets others run after 128 of
 * them.
 * Method: a fiber in such a loop; another, spawned behind it, ends it. */
TEST(coop_makes_a_fiber_with_ready_operations_yield)
{
    struct hog hog = {.gate = OPEN_GATE};
    struct rig rig;

    hog.gate.spends = true;
    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(await_ready_things, &hog));
    EXPECT_EQ(0, pirn_go(look_and_stop, &hog));
    rig_turn(&rig);
    EXPECT_EQ(128, hog.seen);
    EXPECT_LE(hog.rounds, 129);
    rig_end(&rig);
}

static int try_ready_things(void *arg)
{
    struct hog *hog = arg;

    for (; hog->rounds < 500; hog->rounds++)
        EXPECT_EQ(0, pirn_await(&hog->gate.future, PIRN_EXPIRED));
    return 0;
}

/* Goal: a future that is ready succeeds at an expired deadline also when the
 * budget is used up: it then has not been tried yet.
 * Method: far more of them than one poll has units. */
TEST(coop_without_budget_is_no_timeout)
{
    struct hog hog = {.gate = OPEN_GATE};
    struct rig rig;

    hog.gate.spends = true;
    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(try_ready_things, &hog));
    rig_turn(&rig);
    EXPECT_EQ(500, hog.rounds);
    EXPECT_EQ(0, hog.gate.drops);
    rig_end(&rig);
}

/* A stackless task that does the same under a deadline. */
struct greedy {
    pirn_frame frame;
    struct gate gate;
    int rounds;
};

static enum pirn_poll greedy_poll(pirn_future *self, pirn_cx *cx)
{
    struct greedy *g = PIRN_FRAME_OF(self, struct greedy, frame);

    PIRN_ASYNC_BEGIN(&g->frame, cx);
    for (;;) {
        PIRN_AWAIT(&g->gate.future);
        g->rounds++;
    }
    PIRN_ASYNC_END();
}

static const pirn_async_ops greedy_ops = PIRN_ASYNC_OPS(greedy_poll, NULL);

static int time_greed_out(void *arg)
{
    struct greedy *g = arg;
    pirn_timeout_op timeout;

    pirn_timeout_init(&timeout, &g->frame.future, pirn_after_ms(50));
    EXPECT_EQ(0, pirn_await(&timeout.future, PIRN_NEVER));
    return timeout.rc;
}

/* Goal: a deadline ends a loop over an operation that is always ready.
 * Method: the loop as a frame in a timeout; the clock moves between turns. */
TEST(coop_lets_a_deadline_end_an_always_ready_loop)
{
    struct greedy g = {.gate = OPEN_GATE};
    struct rig rig;
    pirn_task *task;

    g.gate.spends = true;
    pirn_frame_init(&g.frame, &greedy_ops);
    rig_begin(&rig);
    task = rig_go(time_greed_out, &g);
    for (int ms = 0; ms < 50; ms++) {
        EXPECT_LE(1, pirn_runtime_turn(rig.rt, PIRN_EXPIRED));
        EXPECT(!pirn_task_is_done(task));
        EXPECT_EQ(0, pirn_runtime_clock_advance(rig.rt, 1000000));
    }
    EXPECT_LE(1, pirn_runtime_turn(rig.rt, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, rig_outcome(task));
    EXPECT_LE(128, g.rounds);
    rig_end(&rig);
}

/* A fiber that ignores what it is told. */
struct stubborn {
    bool free; /* set by the other fiber */
    int refusals;
    int (*call)(void);
};

static int ignore_cancellation(void *arg)
{
    struct stubborn *s = arg;

    /* Ends: refused calls let the other fiber run. */
    while (!s->free)
        s->refusals += s->call() == -ECANCELED;
    return 0;
}

static int free_it_later(void *arg)
{
    struct stubborn *s = arg;

    for (int i = 0; i < 3; i++)
        EXPECT_EQ(0, pirn_yield());
    s->free = true;
    return 0;
}

static int sleep_for_ever(void)
{
    return pirn_sleep(PIRN_NEVER);
}

static int await_never(void)
{
    struct gate gate = GATE;

    return pirn_await(&gate.future, PIRN_NEVER);
}

/* Goal: a fiber that ignores its cancellation does not keep others from
 * running, whatever it calls.
 * Method: one loops over refused calls until another, which needs turns, lets
 * it go. */
TEST(wait_refused_again_and_again_gives_others_a_turn)
{
    static int (*const calls[])(void) = {pirn_yield, sleep_for_ever,
                                         await_never};

    for (int i = 0; i < 3; i++) {
        struct stubborn s = {.call = calls[i]};
        struct rig rig;
        pirn_task *task;

        rig_begin(&rig);
        task = rig_go(ignore_cancellation, &s);
        EXPECT_EQ(0, pirn_go(free_it_later, &s));
        pirn_task_cancel(task);
        rig_turn(&rig);
        EXPECT_LE(100, s.refusals);
        EXPECT_EQ(0, rig_outcome(task));
        rig_end(&rig);
    }
}

/* Where nothing may wait. */

static pirn_task *ended_task; /* would not keep a joiner waiting */
static int places;            /* how many tried */

/* Try every straight-line call, with what would not have to wait; each must say
 * -EDEADLK. */
static void try_everything(void)
{
    struct gate gate = OPEN_GATE;
    int outcome;

    EXPECT_EQ(-EDEADLK, pirn_await(&gate.future, PIRN_NEVER));
    EXPECT_EQ(0, gate.polls);
    EXPECT_EQ(1, gate.drops);
    EXPECT_EQ(-EDEADLK, pirn_yield());
    EXPECT_EQ(-EDEADLK, pirn_sleep(PIRN_EXPIRED));
    EXPECT_EQ(-EDEADLK, pirn_task_join(ended_task, PIRN_NEVER, &outcome));
    EXPECT_EQ(-EDEADLK, pirn_run(return_zero, NULL));
    places++;
}

static int try_in_poll(struct gate *gate)
{
    (void)gate;
    try_everything();
    return 0;
}

static void try_in_drop(struct gate *gate)
{
    (void)gate;
    try_everything();
}

static pirn_waker nosy_clone(const pirn_waker *self)
{
    try_everything();
    return *self;
}

static void nosy_wake_by_ref(const pirn_waker *self)
{
    (void)self;
    try_everything();
}

static void nosy_wake(pirn_waker self)
{
    (void)self;
    try_everything();
}

static const pirn_waker_ops nosy_ops = {
    .clone = nosy_clone,
    .wake = nosy_wake,
    .wake_by_ref = nosy_wake_by_ref,
    .drop = nosy_wake,
};

/* A fiber's own polls, drops and wakers. */
static int try_around_a_fiber(void *arg)
{
    struct gate gate = OPEN_GATE;
    pirn_waker waker = {.ops = &nosy_ops};

    (void)arg;
    gate.on_poll = try_in_poll;
    EXPECT_EQ(0, pirn_await(&gate.future, PIRN_NEVER));
    gate_reset(&gate);
    gate.on_poll = try_in_poll;
    gate.on_drop = try_in_drop;
    EXPECT_EQ(-ETIMEDOUT, pirn_await(&gate.future, PIRN_EXPIRED));
    pirn_waker_wake_by_ref(&waker);
    pirn_waker_wake(pirn_waker_clone(&waker));
    pirn_waker_drop(waker);
    EXPECT_EQ(0, pirn_yield());
    return 0;
}

/* Goal: inside a poll that a fiber's await drives, a drop and a waker, nothing
 * may wait; the fiber itself may, right afterwards.
 * Method: try every call in each. */
TEST(wait_inside_what_a_fiber_calls_is_a_deadlock)
{
    struct rig rig;

    rig_begin(&rig);
    ended_task = rig_go(return_zero, NULL);
    rig_turn(&rig);
    places = 0;
    EXPECT_EQ(0, pirn_go(try_around_a_fiber, NULL));
    rig_turn(&rig);
    EXPECT_EQ(7, places);
    EXPECT_EQ(0, rig_outcome(ended_task));
    rig_end(&rig);
}

/* A stackless task that tries, and its clean-up, discard and describe. */
struct trier {
    pirn_frame frame;
    struct gate gate;
};

static enum pirn_poll trier_poll(pirn_future *self, pirn_cx *cx)
{
    struct trier *t = PIRN_FRAME_OF(self, struct trier, frame);

    PIRN_ASYNC_BEGIN(&t->frame, cx);
    try_everything();
    if (!t->gate.open)
        PIRN_AWAIT(&t->gate.future);
    PIRN_ASYNC_END();
}

static void trier_cleanup(pirn_frame *frame)
{
    (void)frame;
    try_everything();
}

static void trier_discard(pirn_future *self)
{
    (void)self;
    try_everything();
}

static void trier_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    (void)out;
    try_everything();
}

static const pirn_async_ops trier_ops = {
    {trier_poll, pirn_frame_drop, trier_discard, trier_describe,
     pirn_frame_outcome},
    trier_cleanup,
};

static int spawn_trier(bool open)
{
    struct trier t = {.gate = GATE};

    t.gate.open = open;
    pirn_frame_init(&t.frame, &trier_ops);
    return pirn_spawn(&t.frame.future, sizeof t, NULL, NULL);
}

/* Goal: a stackless task may wait nowhere: not in its poll, its clean-up, when
 * it is dropped, discarded or described.
 * Method: one that ends, one that is dropped by the shutdown. */
TEST(wait_inside_a_stackless_task_is_a_deadlock)
{
    struct rig rig;

    rig_begin(&rig);
    ended_task = rig_go(return_zero, NULL);
    rig_turn(&rig);
    places = 0;
    EXPECT_EQ(0, spawn_trier(true));
    rig_turn(&rig);
    EXPECT_EQ(3, places); /* poll, clean-up, discard */
    EXPECT_EQ(0, spawn_trier(false));
    rig_turn(&rig);
    EXPECT_EQ(4, places);
    EXPECT_EQ(0, pirn_runtime_shutdown(rig.rt, PIRN_EXPIRED, NULL));
    EXPECT_EQ(5, places);
    EXPECT_EQ(0, rig_outcome(ended_task));
    rig_end(&rig);
}

static void nosy_hook(void *arg, const pirn_failure *failure)
{
    (void)arg;
    EXPECT_EQ(-EIO, failure->outcome);
    try_everything();
}

static int return_eio(void *arg)
{
    (void)arg;
    return -EIO;
}

/* Goal: nothing may wait in the failure hook.
 * Method: a failing fiber without a handle, and a handle given up unseen. */
TEST(wait_inside_the_failure_hook_is_a_deadlock)
{
    const pirn_runtime_options options = {.on_failure = nosy_hook};
    pirn_spawn_options spawn = {0};
    pirn_task *task;

    places = 0;
    EXPECT_EQ(0, pirn_runtime_new(&options, &spawn.runtime));
    EXPECT_EQ(0, pirn_go_with(return_zero, NULL, &spawn, &ended_task));
    EXPECT_EQ(0, pirn_go_with(return_eio, NULL, &spawn, NULL));
    EXPECT_EQ(0, pirn_go_with(return_eio, NULL, &spawn, &task));
    EXPECT_LE(0, pirn_runtime_turn(spawn.runtime, PIRN_NEVER));
    EXPECT_EQ(1, places);
    pirn_task_unref(task);
    EXPECT_EQ(2, places);
    EXPECT_EQ(0, rig_outcome(ended_task));
    EXPECT_EQ(0, pirn_runtime_shutdown(spawn.runtime, PIRN_EXPIRED, NULL));
    pirn_runtime_unref(spawn.runtime);
}
