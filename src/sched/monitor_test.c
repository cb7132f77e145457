/* SPDX-License-Identifier: MIT */
/* src/sched/monitor_test.c - the monitor's looks, by hand, on workers that the
 * test declares stuck, moving or asleep.
 */
#include "engine/pool_fixture.h"

/* Worker 0 is the one that is looked at, worker 1 the one that looks. */
struct watch {
    struct rig rig;
    struct pirn__worker *seen;
    struct pirn__worker *looker;
};

static void set_state(struct pirn__worker *worker,
                      enum pirn__worker_state state)
{
    /* seq_cst: as the workers themselves do. */
    pirn__store(&worker->state, (uint32_t)state, seq_cst);
}

static void watch_init(struct watch *watch)
{
    *watch = (struct watch){.seen = NULL};
    rig_init(&watch->rig, 2);
    watch->seen = rig_worker(&watch->rig, 0);
    watch->looker = rig_worker(&watch->rig, 1);
    set_state(watch->looker, PIRN__WORKER_SLEEPING);
}

/* As the worker that harvests the alarm. */
static void look(struct watch *watch)
{
    rig_become(&watch->rig, 1);
    pirn__monitor_event(&watch->rig.pool->monitor);
    rig_leave();
}

static bool is_armed(const struct watch *watch)
{
    /* relaxed: one thread. */
    return pirn__load(&watch->rig.pool->monitor_armed, relaxed) != 0;
}

static uint64_t count_of(pirn__counter *counter)
{
    /* relaxed: one thread. */
    return pirn__load(counter, relaxed);
}

/* Something in each place where a worker may hold tasks up. */
static void fill(struct watch *watch)
{
    const struct pirn__taskpool_ops *ops = watch->rig.pool->tasks;
    struct pirn__worker *seen = watch->seen;
    struct pirn__task *tasks[3];

    for (int i = 0; i < 3; i++)
        tasks[i] = rig_task(&watch->rig);
    pirn__inbox_push(&seen->inbox, &tasks[0]->cell.link);
    pirn__inbox_push(&seen->deferred, &tasks[1]->cell.link);
    seen->turn.task = tasks[2];
    (void)ops->push(watch->rig.pool, seen, tasks[2], PIRN__ORIGIN_WAKE);
    seen->turn.task = NULL;
}

/* Run whatever is reachable for the looker; how many. */
static int run_reachable(struct watch *watch)
{
    const struct pirn__taskpool_ops *ops = watch->rig.pool->tasks;
    struct pirn__worker *looker = watch->looker;
    struct pirn__task *task;
    int count = 0;

    rig_become(&watch->rig, 1);
    while ((task = ops->pop(looker)) != NULL ||
           (task = ops->pop_shared(looker)) != NULL) {
        rig_run(looker, task);
        count++;
    }
    rig_leave();
    return count;
}

/* The worker itself comes back and runs what it still has. */
static int run_own(struct watch *watch)
{
    const struct pirn__taskpool_ops *ops = watch->rig.pool->tasks;
    struct pirn__task *task;
    int count = 0;

    rig_become(&watch->rig, 0);
    while ((task = ops->pop(watch->seen)) != NULL) {
        rig_run(watch->seen, task);
        count++;
    }
    rig_leave();
    return count;
}

/* Goal: what waits for a worker that does not move becomes reachable, and its
 * rescuer counts that.
 * Method: two looks without a poll in between. */
TEST(monitor_rescues_from_a_stuck_worker)
{
    struct watch watch;

    watch_init(&watch);
    pirn__count(&watch.seen->counters.polls);
    look(&watch);
    fill(&watch);
    EXPECT_EQ(0, run_reachable(&watch));
    look(&watch);
    EXPECT_EQ(3, run_reachable(&watch));
    EXPECT_EQ(1, count_of(&watch.looker->counters.rescues));
    EXPECT_EQ(0, run_own(&watch));
    look(&watch);
    EXPECT_EQ(1, count_of(&watch.looker->counters.rescues));
    rig_deinit(&watch.rig);
}

/* Goal: a worker that moves keeps what it has.
 * Method: a poll between two looks. */
TEST(monitor_leaves_a_moving_worker_alone)
{
    struct watch watch;

    watch_init(&watch);
    fill(&watch);
    for (int i = 0; i < 3; i++) {
        pirn__count(&watch.seen->counters.polls);
        look(&watch);
    }
    EXPECT_EQ(0, run_reachable(&watch));
    EXPECT_EQ(0, count_of(&watch.looker->counters.rescues));
    /* What had yielded comes back at the next look for events. */
    EXPECT_EQ(2, run_own(&watch));
    look(&watch);
    look(&watch);
    EXPECT_EQ(1, run_reachable(&watch));
    rig_deinit(&watch.rig);
}

/* Goal: a worker that sleeps or has ended is not stuck.
 * Method: two looks at each. */
TEST(monitor_does_not_help_a_sleeper)
{
    static const enum pirn__worker_state states[] = {PIRN__WORKER_SLEEPING,
                                                     PIRN__WORKER_ENDED};
    struct watch watch;

    watch_init(&watch);
    fill(&watch);
    for (int i = 0; i < 2; i++) {
        set_state(watch.seen, states[i]);
        look(&watch);
        look(&watch);
        EXPECT_EQ(0, run_reachable(&watch));
        EXPECT_EQ(0, count_of(&watch.looker->counters.rescues));
    }
    set_state(watch.seen, PIRN__WORKER_RUNNING);
    look(&watch);
    EXPECT_EQ(3, run_reachable(&watch));
    rig_deinit(&watch.rig);
}

/* Goal: the alarm is armed again only while somebody runs.
 * Method: look at a running worker, then at nobody. */
TEST(monitor_stays_silent_when_nobody_runs)
{
    struct watch watch;

    watch_init(&watch);
    EXPECT(!is_armed(&watch));
    pirn__monitor_arm(watch.rig.pool);
    pirn__monitor_arm(watch.rig.pool);
    EXPECT(is_armed(&watch));
    look(&watch);
    EXPECT(is_armed(&watch));
    set_state(watch.seen, PIRN__WORKER_SLEEPING);
    look(&watch);
    EXPECT(!is_armed(&watch));
    pirn__monitor_arm(watch.rig.pool);
    EXPECT(is_armed(&watch));
    rig_deinit(&watch.rig);
}

/* Sleep for a nanosecond, as a task. */
static enum pirn_poll step_nap(struct probe *probe, pirn_cx *cx)
{
    pirn_sleep_op *nap = probe->arg;

    if (probe->polls == 0)
        pirn_sleep_init(nap, pirn_after_ns(1));
    return pirn_future_poll(&nap->future, cx);
}

/* Goal: due timers of a stuck worker fire.
 * Method: a task that worker 0 has polled once sleeps on its wheel. */
TEST(monitor_fires_the_timers_of_a_stuck_worker)
{
    struct watch watch;
    struct pirn__task *task;
    pirn_sleep_op nap;

    watch_init(&watch);
    spawn_probe(watch.rig.rt, step_nap, &nap, NULL);
    rig_become(&watch.rig, 0);
    task = watch.rig.pool->tasks->pop_shared(watch.seen);
    rig_run(watch.seen, task);
    rig_leave();
    if (pirn__timers_count(&watch.seen->timers) == 1) {
        look(&watch);
        EXPECT_EQ(1, run_reachable(&watch));
        EXPECT_EQ(1, count_of(&watch.looker->counters.rescues));
    }
    EXPECT_EQ(0, pirn__timers_count(&watch.seen->timers));
    rig_deinit(&watch.rig);
}
