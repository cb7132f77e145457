/* SPDX-License-Identifier: MIT */
/* src/sched/worker_test.c - the loop of a worker, run by the thread of the test
 * until a task stops the pool.
 */
#include <unistd.h>

#include "engine/pool_fixture.h"
#include "reactor/io.h"
#include "sys/sys.h"
#include "task/waker.h"

enum { SHARED_INTERVAL = 61, INBOX_INTERVAL = 31, SPINS = 1000 };

/* What the tasks of a test have in common. */
struct stage {
    struct rig rig;
    struct pirn__worker *worker;
    char trace[64]; /* a letter for each poll that notes one */
    size_t traced;
    uint64_t spins;   /* polls of the spinners */
    bool stop;        /* spinners end */
    pirn_waker waker; /* of a task that waits */
    uint64_t counts[8];
};

static void stage_init(struct stage *stage, uint32_t workers)
{
    *stage = (struct stage){.traced = 0};
    rig_init(&stage->rig, workers);
    stage->worker = rig_worker(&stage->rig, 0);
    pirn__init(&stage->worker->counters.polls, 0);
}

/* Of one worker that has run so many already. */
static void stage_init_at(struct stage *stage, uint64_t polls)
{
    struct pirn__worker *worker;

    stage_init(stage, 1);
    worker = stage->worker;
    pirn__init(&worker->counters.polls, polls);
    worker->shared_at += (uint32_t)polls;
    worker->inbox_at += (uint32_t)polls;
    worker->events_at += (uint32_t)polls;
}

/* Run worker 0 here until a task has stopped the pool. */
static void stage_run(struct stage *stage)
{
    pirn__worker_run(stage->worker);
}

static void stage_deinit(struct stage *stage)
{
    rig_deinit(&stage->rig);
}

static void spawn(struct stage *stage, probe_step *step)
{
    spawn_probe(stage->rig.rt, step, stage, NULL);
}

static void note(struct stage *stage, char letter)
{
    REQUIRE(stage->traced < sizeof stage->trace - 1);
    stage->trace[stage->traced++] = letter;
}

static uint64_t count_of(pirn__counter *counter)
{
    /* relaxed: written by this thread. */
    return pirn__load(counter, relaxed);
}

/* Stop as soon as all others have ended. */
static enum pirn_poll step_stop(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    stage->stop = true;
    if (pirn__root_read(stage->rig.rt).live > 1) {
        pirn_waker_wake_by_ref(cx->waker);
        return PIRN_PENDING;
    }
    pirn__pool_stop(stage->rig.pool);
    return PIRN_READY;
}

/* Always ready again: it keeps the ring from being empty. */
static enum pirn_poll step_spin(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (stage->stop || ++stage->spins > SPINS)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

static enum pirn_poll step_count(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    (void)cx;
    stage->counts[0]++;
    return PIRN_READY;
}

/* Goal: what was queued before runs once each, and then the loop ends.
 * Method: more tasks than a ring holds. */
TEST(worker_runs_all_until_stopped)
{
    enum { TASKS = 3 * PIRN__RING_SIZE };
    struct stage stage;

    stage_init(&stage, 1);
    for (int i = 0; i < TASKS; i++)
        spawn(&stage, step_count);
    spawn(&stage, step_stop);
    stage_run(&stage);
    EXPECT_EQ(TASKS, stage.counts[0]);
    EXPECT_GE(count_of(&stage.worker->counters.polls), TASKS + 1);
    EXPECT_EQ(0, count_of(&stage.worker->counters.parks));
    stage_deinit(&stage);
}

/* Note how long it took until this ran first. */
static enum pirn_poll step_note_and_stop(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (!stage->stop)
        stage->counts[0] = stage->spins;
    return step_stop(probe, cx);
}

/* Spawn something for all, from outside, and go on spinning. */
static enum pirn_poll step_spawn_outside(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (stage->spins == 0) {
        rig_leave();
        spawn(stage, step_note_and_stop);
        rig_become(&stage->rig, 0);
    }
    return step_spin(probe, cx);
}

/* Nobody has to be told of its end, but it has failed. */
static enum pirn_poll step_fail(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    pirn_cx_fail(cx, "for the test");
    return PIRN_READY;
}

/* Nor of this, of which somebody has a waker, by a reference that was lent. */
static enum pirn_poll step_leave_a_waker(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    stage->counts[1]++;
    stage->waker = pirn__waker_get(cx);
    return PIRN_READY;
}

static enum pirn_poll step_wake_and_stop(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (probe->polls == 0)
        pirn_waker_wake(pirn_waker_take(&stage->waker));
    return step_stop(probe, cx);
}

/* Goal: a task that nobody waits for is not ended the usual way if it has failed, or
 * if a waker of it is left.
 * Method: one of each, and one as usual; a wake afterwards is for nobody. */
TEST(worker_tells_unusual_ends_apart)
{
    struct pirn__group_counts counts;
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_count);
    spawn(&stage, step_fail);
    spawn(&stage, step_leave_a_waker);
    spawn(&stage, step_wake_and_stop);
    stage_run(&stage);
    counts = pirn__root_read(stage.rig.rt);
    EXPECT_EQ(1, counts.failed);
    EXPECT_EQ(0, counts.live);
    EXPECT_EQ(1, stage.counts[1]);
    stage_deinit(&stage);
}

/* Goal: a ring that is never empty does not hold up what others spawn.
 * Method: a task that is always ready again; something in the shared queue. */
TEST(worker_looks_at_the_shared_queue)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_spawn_outside);
    stage_run(&stage);
    EXPECT_GE(stage.counts[0], 1);
    EXPECT_LE(stage.counts[0], SHARED_INTERVAL + 1);
    stage_deinit(&stage);
}

/* Wait once, then stop. */
static enum pirn_poll step_wait_and_stop(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (probe->polls == 0) {
        stage->waker = pirn_waker_clone(cx->waker);
        return PIRN_PENDING;
    }
    return step_note_and_stop(probe, cx);
}

static enum pirn_poll step_wake_from_outside(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (stage->spins == 0) {
        rig_leave();
        pirn_waker_wake(pirn_waker_take(&stage->waker));
        rig_become(&stage->rig, 0);
    }
    return step_spin(probe, cx);
}

/* Goal: nor what other threads wake.
 * Method: the same with a task in the inbox. */
TEST(worker_looks_at_its_inbox)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_wait_and_stop);
    spawn(&stage, step_wake_from_outside);
    stage_run(&stage);
    EXPECT_GE(stage.counts[0], 1);
    EXPECT_LE(stage.counts[0], INBOX_INTERVAL + 1);
    stage_deinit(&stage);
}

/* A sleep that is over as soon as anybody looks. */
static enum pirn_poll step_wait_for_timer(struct probe *probe, pirn_cx *cx)
{
    static pirn_sleep_op sleep;
    struct stage *stage = probe->arg;

    if (probe->polls == 0) {
        pirn_sleep_init(&sleep, pirn_after_ns(1));
        if (pirn_future_poll(&sleep.future, cx) == PIRN_PENDING)
            return PIRN_PENDING;
    } else if (!stage->stop) {
        EXPECT_EQ(PIRN_READY, pirn_future_poll(&sleep.future, cx));
    }
    return step_note_and_stop(probe, cx);
}

/* Goal: nor timers that are due.
 * Method: the same with a sleep of a nanosecond. */
TEST(worker_looks_at_its_timers)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_wait_for_timer);
    spawn(&stage, step_spin);
    stage_run(&stage);
    EXPECT_LE(stage.counts[0], PIRN__EVENT_INTERVAL + 1);
    stage_deinit(&stage);
}

/* Goal: nor does any of these wait longer when the ticks come round.
 * Method: workers whose ticks do so at once, between two looks, or later. */
TEST(worker_looks_everywhere_when_its_ticks_come_round)
{
    struct stage stage;

    for (uint64_t polls = UINT32_MAX - 150; polls <= UINT32_MAX; polls += 10) {
        stage_init_at(&stage, polls);
        spawn(&stage, step_spawn_outside);
        stage_run(&stage);
        EXPECT_LE(stage.counts[0], SHARED_INTERVAL + 1);
        stage_deinit(&stage);

        stage_init_at(&stage, polls);
        spawn(&stage, step_wait_and_stop);
        spawn(&stage, step_wake_from_outside);
        stage_run(&stage);
        EXPECT_LE(stage.counts[0], INBOX_INTERVAL + 1);
        stage_deinit(&stage);

        stage_init_at(&stage, polls);
        spawn(&stage, step_wait_for_timer);
        spawn(&stage, step_spin);
        stage_run(&stage);
        EXPECT_LE(stage.counts[0], PIRN__EVENT_INTERVAL + 1);
        stage_deinit(&stage);
    }
}

/* Stop the pool, and be ready again all the same until told to end. */
static enum pirn_poll step_stop_and_spin(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (probe->polls == 0 || stage->stop)
        pirn__pool_stop(stage->rig.pool);
    if (stage->stop || ++stage->spins > SPINS)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: a worker whose ring is never empty sees a stop soon.
 * Method: a task that stops the pool and is always ready again; then it ends. */
TEST(worker_sees_a_stop_before_its_ring_is_empty)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_stop_and_spin);
    stage_run(&stage);
    EXPECT_GE(stage.spins, 1);
    EXPECT_LE(stage.spins, INBOX_INTERVAL + 1);
    stage.stop = true;
    pirn__store(&stage.rig.pool->stop, 0, relaxed);
    stage_run(&stage);
    stage_deinit(&stage);
}

/* Goal: with nothing to do a worker sleeps until its next timer.
 * Method: the same without the spinner. */
TEST(worker_sleeps_until_its_timer)
{
    struct stage stage;
    struct pirn__worker *worker;

    stage_init(&stage, 1);
    worker = stage.worker;
    spawn(&stage, step_wait_for_timer);
    stage_run(&stage);
    EXPECT_LE(count_of(&worker->counters.parks), 2);
    EXPECT_LE(count_of(&worker->counters.polls), 3);
    EXPECT_EQ(0, pirn__idle_sleepers(&stage.rig.pool->idle));
    stage_deinit(&stage);
}

/* Two that wake each other, each noting its letter, until there are ten. */
static enum pirn_poll play(struct probe *probe, pirn_cx *cx, char letter)
{
    struct stage *stage = probe->arg;
    pirn_waker other = pirn_waker_take(&stage->waker);

    note(stage, letter);
    stage->waker = pirn_waker_clone(cx->waker);
    pirn_waker_wake(other);
    if (stage->traced < 16)
        return PIRN_PENDING;
    pirn_waker_drop(pirn_waker_take(&stage->waker));
    return PIRN_READY;
}

static enum pirn_poll step_ping(struct probe *probe, pirn_cx *cx)
{
    return play(probe, cx, 'a');
}

static enum pirn_poll step_pong(struct probe *probe, pirn_cx *cx)
{
    return play(probe, cx, 'b');
}

/* A third, in the ring. */
static enum pirn_poll step_other(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (!stage->stop)
        note(stage, '.');
    if (stage->traced >= 16)
        return step_stop(probe, cx);
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: two tasks that wake each other do not starve a third.
 * Method: note who runs: between two runs of the third are at most three of
 * theirs. */
TEST(worker_lifo_does_not_starve_the_ring)
{
    struct stage stage;
    size_t others = 0;
    size_t run = 0;

    stage_init(&stage, 1);
    spawn(&stage, step_ping);
    spawn(&stage, step_pong);
    spawn(&stage, step_other);
    stage_run(&stage);
    for (size_t i = 0; i < stage.traced; i++) {
        run = stage.trace[i] == '.' ? 0 : run + 1;
        others += stage.trace[i] == '.';
        /* The first two were spawned. */
        EXPECT_LE(run, 5);
    }
    EXPECT_GE(others, 3);
    EXPECT_GE(count_of(&stage.worker->counters.lifo_runs), 6);
    stage_deinit(&stage);
}

static uint64_t spend_all(pirn_cx *cx, uint64_t most)
{
    uint64_t spent = 0;

    while (spent < most && pirn_coop_spend(cx))
        spent++;
    return spent;
}

/* Woken by the one before. */
static enum pirn_poll step_heir(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (probe->polls == 0) {
        stage->waker = pirn_waker_clone(cx->waker);
        return PIRN_PENDING;
    }
    if (probe->polls <= 2)
        stage->counts[probe->polls] = spend_all(cx, 1000);
    /* Without budget, it waits for its next turn. */
    return probe->polls >= 2 ? step_stop(probe, cx) : PIRN_PENDING;
}

static enum pirn_poll step_spender(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    EXPECT_EQ(100, spend_all(cx, 100));
    pirn_waker_wake(pirn_waker_take(&stage->waker));
    return PIRN_READY;
}

/* Goal: a task that runs right after the one that woke it has what that left of
 * the budget; its next turn brings a whole one.
 * Method: 100 units are gone; count how many are left. */
TEST(worker_lifo_run_inherits_the_budget)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_heir);
    spawn(&stage, step_spender);
    stage_run(&stage);
    EXPECT_EQ(PIRN__COOP_BUDGET - 100, stage.counts[1]);
    EXPECT_EQ(PIRN__COOP_BUDGET, stage.counts[2]);
    EXPECT_EQ(1, count_of(&stage.worker->counters.yields));
    stage_deinit(&stage);
}

/* Give way twice. */
static enum pirn_poll give_way(struct probe *probe, pirn_cx *cx, char letter)
{
    struct stage *stage = probe->arg;

    if (!stage->stop)
        note(stage, letter);
    if (probe->polls >= 2)
        return letter == 'c' ? step_stop(probe, cx) : PIRN_READY;
    (void)spend_all(cx, 1000);
    return PIRN_PENDING;
}

static enum pirn_poll step_first(struct probe *probe, pirn_cx *cx)
{
    return give_way(probe, cx, 'a');
}

static enum pirn_poll step_second(struct probe *probe, pirn_cx *cx)
{
    return give_way(probe, cx, 'b');
}

static enum pirn_poll step_third(struct probe *probe, pirn_cx *cx)
{
    return give_way(probe, cx, 'c');
}

/* Goal: tasks that yield take turns, in order.
 * Method: three that use up their budget twice. */
TEST(worker_yielding_tasks_take_turns)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_first);
    spawn(&stage, step_second);
    spawn(&stage, step_third);
    stage_run(&stage);
    EXPECT_STR_EQ("abcabcabc", stage.trace);
    EXPECT_EQ(6, count_of(&stage.worker->counters.yields));
    stage_deinit(&stage);
}

/* Always ready, until the budget is used up. */
static enum pirn_poll step_spend(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (stage->stop || ++stage->spins > SPINS)
        return PIRN_READY;
    (void)spend_all(cx, 1000);
    return PIRN_PENDING;
}

/* A sleep that is over when the first budget is used up. */
static pirn_deadline nap_end;

static enum pirn_poll step_sleep(struct probe *probe, pirn_cx *cx)
{
    static pirn_sleep_op sleep;

    if (probe->polls > 0)
        return step_note_and_stop(probe, cx);
    nap_end = pirn_after_ms(1);
    pirn_sleep_init(&sleep, nap_end);
    EXPECT_EQ(PIRN_PENDING, pirn_future_poll(&sleep.future, cx));
    return PIRN_PENDING;
}

static enum pirn_poll step_spend_and_linger(struct probe *probe, pirn_cx *cx)
{
    while (!pirn_deadline_expired(nap_end))
        continue;
    return step_spend(probe, cx);
}

/* Goal: a task that uses up its budget again and again, and takes long for it, does
 * not hold up timers that are due.
 * Method: one, and a sleep that ends during its first turn. */
TEST(worker_spent_task_lets_it_look_at_its_timers)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_sleep);
    spawn(&stage, step_spend_and_linger);
    stage_run(&stage);
    EXPECT_EQ(1, stage.counts[0]);
    stage_deinit(&stage);
}

static enum pirn_poll step_spend_and_spawn(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (stage->spins == 0) {
        rig_leave();
        spawn(stage, step_note_and_stop);
        rig_become(&stage->rig, 0);
    }
    return step_spend(probe, cx);
}

static uint64_t stand_still(void)
{
    return 1;
}

/* Goal: nor what others spawn, and is not made to wait for it every time.
 * Method: something in the shared queue; turns that take no time. */
TEST(worker_spent_task_lets_it_look_at_the_shared_queue)
{
    struct pirn__sys table = *pirn__sys;
    const struct pirn__sys *before = pirn__sys;
    struct stage stage;

    table.clock_ns = stand_still;
    stage_init(&stage, 1);
    spawn(&stage, step_spend_and_spawn);
    pirn__sys = &table;
    stage_run(&stage);
    pirn__sys = before;
    EXPECT_GE(stage.counts[0], 2);
    EXPECT_LE(stage.counts[0], PIRN__SPENT_TURNS + 1);
    stage_deinit(&stage);
}

static enum pirn_poll step_count_spins(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    stage->counts[probe->outcome]++;
    return step_spin(probe, cx);
}

/* Two that wake each other for as long as it lasts. */
static enum pirn_poll step_rally(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;
    pirn_waker other = pirn_waker_take(&stage->waker);

    stage->counts[3]++;
    stage->spins++;
    if (!stage->stop)
        stage->waker = pirn_waker_clone(cx->waker);
    pirn_waker_wake(other);
    return stage->stop ? PIRN_READY : PIRN_PENDING;
}

static void spawn_counted(struct stage *stage, int which, bool pinned)
{
    const pirn_spawn_options options = {.runtime = stage->rig.rt,
                                        .pinned = pinned};
    struct probe probe = probe_of(step_count_spins, stage, NULL);

    probe.outcome = which;
    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
}

static enum pirn_poll step_spawn_all(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    (void)cx;
    spawn_counted(stage, 1, true);
    spawn_counted(stage, 2, false);
    spawn(stage, step_rally);
    spawn(stage, step_rally);
    return PIRN_READY;
}

/* Stop when they have run often. */
static enum pirn_poll step_clock(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (stage->spins < SPINS) {
        pirn_waker_wake_by_ref(cx->waker);
        return PIRN_PENDING;
    }
    return step_stop(probe, cx);
}

/* Goal: the LIFO slot, the ring and the pinned tasks all get their turn, whatever
 * the others do.
 * Method: tasks in each that are always ready again; each gets a fair part of
 * the polls. */
TEST(worker_every_queue_gets_its_turn)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_clock);
    spawn(&stage, step_spawn_all);
    stage_run(&stage);
    for (int i = 1; i <= 3; i++)
        EXPECT_GE(stage.counts[i], SPINS / 30);
    pirn_waker_drop(pirn_waker_take(&stage.waker));
    stage_deinit(&stage);
}

static enum pirn_poll step_spawn_pinned(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (stage->spins == 0) {
        struct probe pinned = probe_of(step_note_and_stop, stage, NULL);

        EXPECT_EQ(0, pirn_spawn(&pinned.future, sizeof pinned,
                                &(pirn_spawn_options){.pinned = true}, NULL));
    }
    return step_spin(probe, cx);
}

/* Goal: the first pinned task of a worker has its turn as soon as any other.
 * Method: one beside a task that is always ready again. */
TEST(worker_first_pinned_task_does_not_wait)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_spawn_pinned);
    stage_run(&stage);
    EXPECT_LE(stage.counts[0], 2);
    stage_deinit(&stage);
}

static enum pirn_poll step_spawn_many(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    (void)cx;
    for (int i = 0; i < 5 * PIRN__RING_SIZE; i++)
        spawn(stage, step_count);
    return PIRN_READY;
}

static enum pirn_poll step_stop_when_counted(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (stage->counts[0] == 5 * PIRN__RING_SIZE)
        return step_stop(probe, cx);
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: a queue that overflows loses nothing and is counted.
 * Method: a task spawns more than its worker's ring holds. */
TEST(worker_overflow_loses_nothing)
{
    struct stage stage;

    stage_init(&stage, 2);
    spawn(&stage, step_spawn_many);
    spawn(&stage, step_stop_when_counted);
    stage_run(&stage);
    EXPECT_EQ(5 * PIRN__RING_SIZE, stage.counts[0]);
    EXPECT_GE(count_of(&stage.worker->counters.overflows), 8);
    stage_deinit(&stage);
}

/* Time stands still. */
static uint64_t frozen_ns;

static uint64_t frozen_clock(void)
{
    return frozen_ns;
}

/* Note the last nap before this poll. */
static enum pirn_poll step_note_nap(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    (void)cx;
    stage->counts[stage->traced++] = stage->worker->nap_ns;
    if (stage->traced == 4)
        pirn__pool_stop(stage->rig.pool);
    return PIRN_READY;
}

static void spawn_to(struct stage *stage, struct pirn__worker *worker,
                     probe_step *step)
{
    spawn(stage, step);
    EXPECT(pirn__ring_push(&worker->ring, rig_take_spawned(&stage->rig)));
}

/* Steal four tasks that are over at once, two, one and one, by a clock that
 * stands still. */
static void steal_short_ones(struct stage *stage)
{
    struct pirn__sys table = *pirn__sys;

    /* Else the monitor rescues from it, if we are slow. */
    pirn__store(&rig_worker(&stage->rig, 1)->state, PIRN__WORKER_SLEEPING,
                relaxed);
    for (int i = 0; i < 4; i++)
        spawn_to(stage, rig_worker(&stage->rig, 1), step_note_nap);
    frozen_ns = table.clock_ns();
    table.clock_ns = frozen_clock;
    pirn__sys = &table;
    stage_run(stage);
    pirn__sys = &pirn__sys_linux;
    EXPECT_EQ(4, stage->traced);
}

/* Goal: a worker whose hunts bring only what is over at once naps between them,
 * longer each time, and is no sleeper meanwhile.
 * Method: another worker that has four tasks and does not run. */
TEST(worker_naps_between_hunts_that_are_not_worth_it)
{
    struct stage stage;

    stage_init(&stage, 2);
    steal_short_ones(&stage);
    EXPECT_EQ(0, stage.counts[0]);
    EXPECT_EQ(0, stage.counts[1]);
    EXPECT_LE(1, stage.counts[2]);
    EXPECT_EQ(2 * stage.counts[2], stage.counts[3]);
    EXPECT_EQ(2, count_of(&stage.worker->counters.parks));
    EXPECT_EQ(0, pirn__load(&stage.rig.pool->idle.word, relaxed));
    stage_deinit(&stage);
}

/* Goal: the last one does not nap, or there would be nobody to wake.
 * Method: the same while the other says that it naps. */
TEST(worker_does_not_nap_when_all_others_do)
{
    struct stage stage;

    stage_init(&stage, 2);
    EXPECT(pirn__idle_enter_nap(&stage.rig.pool->idle, 2, false));
    steal_short_ones(&stage);
    EXPECT_EQ(0, count_of(&stage.worker->counters.parks));
    pirn__idle_leave_nap(&stage.rig.pool->idle);
    stage_deinit(&stage);
}

/* Note how often the worker has slept or napped before this poll. */
static enum pirn_poll step_note_parks(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    (void)cx;
    stage->counts[0] = count_of(&stage->worker->counters.parks);
    pirn__pool_stop(stage->rig.pool);
    return PIRN_READY;
}

/* Goal: a wake is followed by a search, however the last hunt was.
 * Method: a wake that is under way, and a task in another worker's ring. */
TEST(worker_that_is_woken_searches_before_it_naps)
{
    struct stage stage;

    stage_init(&stage, 2);
    stage.worker->nap_ns = 1000000;
    spawn_to(&stage, rig_worker(&stage.rig, 1), step_note_parks);
    pirn__idle_enter_sleep(&stage.rig.pool->idle, false);
    pirn__pool_wake_one(stage.rig.pool);
    (void)pirn__idle_leave_sleep(&stage.rig.pool->idle);
    stage.counts[0] = 1;
    stage_run(&stage);
    EXPECT_EQ(0, stage.counts[0]);
    stage_deinit(&stage);
}

static enum pirn_poll step_wait(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (probe->polls == 0) {
        stage->waker = pirn_waker_clone(cx->waker);
        return PIRN_PENDING;
    }
    stage->counts[probe->polls] = count_of(&stage->worker->counters.wakes);
    return PIRN_READY;
}

/* Wake the one that waits, if it does, and go to the ring. */
static enum pirn_poll step_back_to_the_ring(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (probe->polls == 2) {
        pirn__pool_stop(stage->rig.pool);
        return PIRN_READY;
    }
    if (probe->polls == 0)
        pirn__idle_enter_sleep(&stage->rig.pool->idle, false);
    stage->counts[0] = count_of(&stage->worker->counters.wakes);
    if (probe->polls == 1)
        pirn_waker_wake(pirn_waker_take(&stage->waker));
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: a sleeper is woken for a single task in the ring if something comes before
 * it, and only then: that may take its time.
 * Method: a task that goes back to the ring, first alone, then behind one that it
 * has woken; the other worker says that it sleeps when both have started. */
TEST(worker_shares_what_it_does_not_run_next)
{
    struct stage stage;

    stage_init(&stage, 2);
    spawn(&stage, step_wait);
    spawn(&stage, step_back_to_the_ring);
    stage_run(&stage);
    EXPECT_EQ(0, stage.counts[0]);
    EXPECT_EQ(1, stage.counts[1]);
    (void)pirn__idle_leave_sleep(&stage.rig.pool->idle);
    stage_deinit(&stage);
}

/* Goal: work from outside ends a nap; work of a worker does not.
 * Method: a worker that says it naps; ask whether a searcher is under way. */
TEST(worker_outside_work_ends_a_nap)
{
    struct pirn__pool *pool;
    struct stage stage;

    stage_init(&stage, 2);
    pool = stage.rig.pool;
    pirn__pool_wake_any(pool);
    EXPECT(pirn__idle_start_search(&pool->idle, 1));
    (void)pirn__idle_stop_search(&pool->idle);
    EXPECT(pirn__idle_enter_nap(&pool->idle, 2, false));
    pirn__pool_wake_one(pool);
    EXPECT(pirn__idle_start_search(&pool->idle, 1));
    (void)pirn__idle_stop_search(&pool->idle);
    pirn__pool_wake_any(pool);
    EXPECT(!pirn__idle_start_search(&pool->idle, 1));
    (void)pirn__idle_stop_search(&pool->idle);
    pirn__idle_leave_nap(&pool->idle);
    stage_deinit(&stage);
}

/* How a worker without work waits: the deadlines of its harvests, up to the first
 * that would sleep, in which it is stopped. */
static struct {
    struct stage *stage;
    uint64_t deadlines[8];
    size_t count;
} waits;

static int note_wait(int epoll_fd, struct epoll_event *events, int capacity,
                     pirn_deadline deadline)
{
    (void)epoll_fd;
    (void)events;
    (void)capacity;
    waits.deadlines[waits.count++ % 8] = deadline.ns;
    if (deadline.ns == PIRN_NEVER.ns)
        pirn__pool_stop(waits.stage->rig.pool);
    return 0;
}

static void stage_run_noting_waits(struct stage *stage)
{
    struct pirn__sys table = *pirn__sys;

    waits.stage = stage;
    waits.count = 0;
    table.epoll_wait = note_wait;
    pirn__sys = &table;
    stage_run(stage);
    pirn__sys = &pirn__sys_linux;
}

/* A descriptor in the wait set, of which nothing is heard. */
struct watched {
    struct pirn__io io;
    int ends[2];
};

static void watch(struct stage *stage, struct watched *watched)
{
    struct pirn__reactor *reactor = stage->rig.rt->home.reactor;

    *watched = (struct watched){.io = {.slot = PIRN__IO_NO_SLOT}};
    pirn__init(&watched->io.refs, 1);
    REQUIRE(pipe(watched->ends) == 0);
    REQUIRE(pirn__reactor_bind(reactor, &watched->io) == 0);
    REQUIRE(pirn__reactor_watch(reactor, &watched->io, watched->ends[0]) == 0);
}

static void unwatch(struct stage *stage, struct watched *watched)
{
    pirn__reactor_unbind(stage->rig.rt->home.reactor, &watched->io);
    close(watched->ends[0]);
    close(watched->ends[1]);
}

/* Goal: a worker that is alone looks for events and sleeps in one system call;
 * one that may find something at others, or to whom events come in crowds, looks
 * before.
 * Method: pools without work, with a descriptor. */
TEST(worker_alone_sleeps_without_a_look_before)
{
    struct watched watched;
    struct stage stage;

    for (uint32_t workers = 1; workers <= 2; workers++) {
        for (int harvested = 0; harvested <= 2; harvested++) {
            bool looks = workers == 2 || harvested == 2;

            stage_init(&stage, workers);
            watch(&stage, &watched);
            stage.worker->harvested = harvested;
            stage_run_noting_waits(&stage);
            EXPECT_EQ(looks ? 2 : 1, waits.count);
            EXPECT_EQ(looks ? 0 : PIRN_NEVER.ns, waits.deadlines[0]);
            EXPECT_EQ(PIRN_NEVER.ns, waits.deadlines[waits.count - 1]);
            unwatch(&stage, &watched);
            stage_deinit(&stage);
        }
    }
}

static enum pirn_poll step_yield_once(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    stage->counts[probe->polls] += waits.count;
    if (probe->polls > 0)
        return PIRN_READY;
    pirn__turn_defer(cx, PIRN__DEFER_TO_EVENTS);
    return PIRN_PENDING;
}

/* Goal: what has yielded waits for a look for events, not for an event; one look is
 * enough for all that have yielded.
 * Method: a task that yields in a pool of one, and several; beside a descriptor. */
TEST(worker_alone_looks_for_who_has_yielded)
{
    struct watched watched;
    struct stage stage;

    for (uint64_t tasks = 1; tasks <= 9; tasks += 8) {
        stage_init(&stage, 1);
        watch(&stage, &watched);
        for (uint64_t i = 0; i < tasks; i++)
            spawn(&stage, step_yield_once);
        stage_run_noting_waits(&stage);
        EXPECT_EQ(0, stage.counts[0]);
        EXPECT_EQ(tasks, stage.counts[1]);
        EXPECT_EQ(tasks, count_of(&stage.worker->counters.yields));
        EXPECT_EQ(2, waits.count);
        EXPECT_EQ(0, waits.deadlines[0]);
        unwatch(&stage, &watched);
        stage_deinit(&stage);
    }
}

/* Why a look is one at the wait set, if it is. */
struct looks_case {
    uint32_t workers;
    bool watches;
    bool has_watched;
    uint32_t waits;
    uint64_t looked_before_ns;
    bool looks;
};

/* Goal: a worker that is alone makes no system call for a look that can bring
 * nothing: without a descriptor, or with none any more.  It does if it waits for a
 * timer, and one that is not alone does now and then to hear of the monitor.
 * Method: a task that yields in a pool of each kind, by a clock that stands still. */
TEST(worker_does_not_look_for_nothing)
{
    static const struct looks_case cases[] = {
        {.workers = 1, .looks = false},
        {.workers = 1, .watches = true, .looks = true},
        {.workers = 1, .has_watched = true, .looks = false},
        {.workers = 1, .waits = 1, .looks = true},
        {.workers = 2, .looked_before_ns = PIRN__LOOK_NS, .looks = true},
        {.workers = 2, .looked_before_ns = PIRN__LOOK_NS - 1, .looks = false},
        {.workers = 2, .watches = true, .looks = true},
    };
    struct pirn__sys frozen = pirn__sys_linux;
    struct watched watched;
    struct stage stage;

    frozen_ns = frozen.clock_ns();
    frozen.clock_ns = frozen_clock;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct looks_case *c = &cases[i];

        stage_init(&stage, c->workers);
        if (c->watches || c->has_watched)
            watch(&stage, &watched);
        if (c->has_watched)
            unwatch(&stage, &watched);
        stage.worker->waits = c->waits;
        stage.worker->looked_ns = frozen_ns - c->looked_before_ns;
        spawn(&stage, step_yield_once);
        pirn__sys = &frozen;
        stage_run_noting_waits(&stage);
        EXPECT_EQ(c->looks ? 1 : 0, stage.counts[1]);
        EXPECT_EQ(1, count_of(&stage.worker->counters.yields));
        if (c->watches)
            unwatch(&stage, &watched);
        stage_deinit(&stage);
    }
}

static enum pirn_poll step_note_and_wait(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    note(stage, 'i');
    if (probe->polls > 0)
        return PIRN_READY;
    stage->waker = pirn_waker_clone(cx->waker);
    return PIRN_PENDING;
}

static enum pirn_poll step_note_outside(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    note(probe->arg, 'o');
    return PIRN_READY;
}

/* Yield when others have become ready elsewhere. */
static enum pirn_poll step_ready_others_and_yield(struct probe *probe,
                                                  pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    note(stage, 'y');
    if (probe->polls > 0)
        return step_stop(probe, cx);
    rig_leave();
    spawn(stage, step_note_outside);
    pirn_waker_wake(pirn_waker_take(&stage->waker));
    rig_become(&stage->rig, 0);
    pirn__turn_defer(cx, PIRN__DEFER_TO_EVENTS);
    return PIRN_PENDING;
}

/* Goal: who has yielded comes after all that is ready, wherever it waits.
 * Method: a task that others have spawned, and one that they have woken. */
TEST(worker_yield_lets_all_others_run_first)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_note_and_wait);
    spawn(&stage, step_ready_others_and_yield);
    stage_run(&stage);
    EXPECT_STR_EQ("iyoiy", stage.trace);
    stage_deinit(&stage);
}

/* Yield behind as many as a ring holds. */
static enum pirn_poll step_fill_and_yield(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    if (probe->polls > 0) {
        EXPECT_EQ(PIRN__RING_SIZE, stage->counts[0]);
        return step_stop(probe, cx);
    }
    for (int i = 0; i < PIRN__RING_SIZE; i++)
        spawn(stage, step_count);
    pirn__turn_defer(cx, PIRN__DEFER_TO_EVENTS);
    return PIRN_PENDING;
}

/* Goal: nor is it lost, or out of order, where the ring is full. */
TEST(worker_yield_behind_a_full_ring)
{
    struct stage stage;

    stage_init(&stage, 1);
    spawn(&stage, step_fill_and_yield);
    stage_run(&stage);
    EXPECT_EQ(PIRN__RING_SIZE, stage.counts[0]);
    stage_deinit(&stage);
}

/* Goal: the monitor watches where somebody else could do what it finds.
 * Method: a task in a pool of one, and in a pool of two. */
TEST(worker_alone_needs_no_monitor)
{
    struct stage stage;

    for (uint32_t workers = 1; workers <= 2; workers++) {
        stage_init(&stage, workers);
        spawn(&stage, step_count);
        stage_run_noting_waits(&stage);
        EXPECT_EQ(1, stage.counts[0]);
        EXPECT_EQ(workers - 1, pirn__load(&stage.rig.pool->monitor_armed,
                                          relaxed));
        stage_deinit(&stage);
    }
}

static enum pirn_poll step_note_monitor(struct probe *probe, pirn_cx *cx)
{
    struct stage *stage = probe->arg;

    (void)cx;
    stage->counts[0] = pirn__load(&stage->rig.pool->monitor_armed, relaxed);
    pirn__pool_stop(stage->rig.pool);
    return PIRN_READY;
}

/* What ends the sleep is a task, which by now nobody watches. */
static int bring_a_task(int epoll_fd, struct epoll_event *events, int capacity,
                        pirn_deadline deadline)
{
    (void)epoll_fd;
    (void)events;
    (void)capacity;
    if (deadline.ns == PIRN_NEVER.ns) {
        pirn__store(&waits.stage->rig.pool->monitor_armed, 0, relaxed);
        spawn(waits.stage, step_note_monitor);
    }
    return 0;
}

/* Goal: the monitor watches from the first task on that is run after a sleep, though
 * it is at hand.
 * Method: a worker that has run a task and sleeps, until it has another in its
 * ring. */
TEST(worker_is_watched_after_a_sleep)
{
    struct pirn__sys table = *pirn__sys;
    struct stage stage;

    stage_init(&stage, 2);
    waits.stage = &stage;
    table.epoll_wait = bring_a_task;
    spawn(&stage, step_count);
    pirn__sys = &table;
    stage_run(&stage);
    pirn__sys = &pirn__sys_linux;
    EXPECT_EQ(1, stage.counts[0]);
    stage_deinit(&stage);
}

/* Goal: nor does it wait when another thread goes on with the worker.
 * Method: a worker that has run a task runs again, with another in its ring. */
TEST(worker_is_watched_on_another_thread)
{
    struct stage stage;

    stage_init(&stage, 2);
    spawn(&stage, step_note_monitor);
    stage_run(&stage);
    pirn__store(&stage.rig.pool->stop, 0, relaxed);
    pirn__store(&stage.rig.pool->monitor_armed, 0, relaxed);
    spawn_to(&stage, stage.worker, step_note_monitor);
    stage_run(&stage);
    EXPECT_EQ(1, stage.counts[0]);
    stage_deinit(&stage);
}
