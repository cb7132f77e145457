/* SPDX-License-Identifier: MIT */
/* src/sched/computational_test.c - where tasks go and where they come from, by
 * the hand of one thread that is whichever worker it wants to be; then whole
 * runtimes whose tasks look where they are.
 */
#include <pirn/blocking.h>

#include "engine/pool_fixture.h"
#include "engine/state_start.h"
#include "sched/pinned.h"

enum { LOWER_INTERVAL = 16 };

static const struct pirn__taskpool_ops *const ops = &pirn__computational_ops;

static void slots_init(struct rig *rig, uint32_t workers)
{
    rig_init_kind(rig, workers, PIRN_POOL_COMPUTATIONAL);
    REQUIRE(rig->pool->tasks == ops);
}

static void spawn_with(struct rig *rig, const pirn_spawn_options *options)
{
    struct probe probe = probe_of(step_ready, NULL, NULL);
    pirn_spawn_options with = *options;

    with.runtime = rig->rt;
    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &with, NULL));
}

static void spawn(struct rig *rig)
{
    spawn_with(rig, &(pirn_spawn_options){.pinned = false});
}

/* How many a slot holds. */
static uint64_t length(struct rig *rig, uint32_t worker)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < PIRN__CLASSES; i++)
        count += pirn__injection_len(&rig_worker(rig, worker)->slot[i]);
    return count;
}

static struct pirn__task *pop(struct rig *rig, uint32_t worker)
{
    return ops->pop(rig_worker(rig, worker));
}

/* As that worker, run all it has; how many. */
static uint64_t run_slot(struct rig *rig, uint32_t worker)
{
    struct pirn__task *task;
    uint64_t count = 0;

    rig_become(rig, worker);
    while ((task = pop(rig, worker)) != NULL) {
        rig_run(rig_worker(rig, worker), task);
        count++;
    }
    rig_leave();
    return count;
}

/* Goal: what is spawned outside goes to the slots in turn, and nobody else finds
 * it or is wanted for it.
 * Method: three rounds over three slots. */
TEST(computational_spawns_outside_go_round)
{
    struct rig rig;

    slots_init(&rig, 3);
    for (uint64_t i = 0; i < 9; i++) {
        uint64_t before = length(&rig, (uint32_t)(i % 3));

        spawn(&rig);
        EXPECT_EQ(before + 1, length(&rig, (uint32_t)(i % 3)));
    }
    EXPECT_PTR_EQ(NULL, ops->pop_shared(rig_worker(&rig, 0)));
    EXPECT(ops->steal == NULL);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(3, run_slot(&rig, i));
        EXPECT_EQ(0, length(&rig, i));
    }
    rig_deinit(&rig);
}

/* Goal: so does what a worker spawns, and it begins with its neighbour.
 * Method: two workers, each for itself. */
TEST(computational_spawns_of_a_worker_go_round)
{
    struct rig rig;

    slots_init(&rig, 3);
    rig_become(&rig, 1);
    spawn(&rig);
    EXPECT_EQ(1, length(&rig, 2));
    spawn(&rig);
    EXPECT_EQ(1, length(&rig, 0));
    rig_become(&rig, 2);
    spawn(&rig);
    EXPECT_EQ(2, length(&rig, 0));
    rig_become(&rig, 1);
    spawn(&rig);
    EXPECT_EQ(1, length(&rig, 1));
    rig_leave();
    EXPECT_EQ(2, run_slot(&rig, 0));
    EXPECT_EQ(1, run_slot(&rig, 1));
    EXPECT_EQ(1, run_slot(&rig, 2));
    rig_deinit(&rig);
}

/* Goal: a woken task comes back to the slot where it ran, whoever wakes it, and
 * without a sleeper being asked for.
 * Method: a task that was run by worker 1. */
TEST(computational_woken_task_returns_to_its_slot)
{
    struct pirn__worker *wakers[3] = {NULL};
    struct pirn__task *task;
    pirn__state *state;
    struct rig rig;

    slots_init(&rig, 3);
    spawn(&rig);
    task = pop(&rig, 0);
    REQUIRE(task != NULL);
    state = pirn__task_state(task);
    wakers[1] = rig_worker(&rig, 1);
    wakers[2] = rig_worker(&rig, 2);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(PIRN__START_POLL, state_start(state, 1));
        EXPECT_EQ(PIRN__WAKE_SUBMIT,
                  pirn__state_end(state, true, PIRN__LOAN));
        EXPECT(!ops->push(rig.pool, wakers[i], task, PIRN__ORIGIN_WAKE));
        EXPECT_EQ(1, length(&rig, 1));
        EXPECT_PTR_EQ(NULL, pop(&rig, 0));
        EXPECT_PTR_EQ(NULL, pop(&rig, 2));
        EXPECT_PTR_EQ(task, pop(&rig, 1));
    }
    rig_become(&rig, 1);
    rig_run(rig_worker(&rig, 1), task);
    rig_leave();
    rig_deinit(&rig);
}

static bool is_told(struct rig *rig, uint32_t worker)
{
    /* relaxed: one thread. */
    return pirn__load(&rig_worker(rig, worker)->named_sleep, relaxed) == 0;
}

/* Goal: a push wakes the worker whose slot it is, by name, and no other; a worker
 * does not wake itself.
 * Method: both have said that they sleep; the descriptors count. */
TEST(computational_push_wakes_by_name)
{
    struct rig rig;

    slots_init(&rig, 2);
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT(pirn__pinned_has(rig_worker(&rig, i)));
        EXPECT(!rig_worker(&rig, i)->keeps_thread);
        /* relaxed: one thread. */
        pirn__store(&rig_worker(&rig, i)->named_sleep, 1, relaxed);
    }
    spawn(&rig);
    EXPECT(is_told(&rig, 0));
    EXPECT(!is_told(&rig, 1));
    rig_become(&rig, 1);
    spawn(&rig);
    spawn(&rig);
    EXPECT(!is_told(&rig, 1));
    rig_leave();
    spawn(&rig);
    EXPECT(is_told(&rig, 1));
    EXPECT_EQ(2, run_slot(&rig, 0));
    EXPECT_EQ(2, run_slot(&rig, 1));
    rig_deinit(&rig);
}

/* Goal: who goes to sleep looks into its own slot, each class, and nowhere else.
 * Method: each class in turn, and a pinned task. */
TEST(computational_has_some_looks_into_the_own_slot)
{
    struct rig rig;

    slots_init(&rig, 2);
    for (uint32_t i = 0; i < PIRN__CLASSES; i++) {
        spawn_with(&rig, &(pirn_spawn_options){
                             .priority = (enum pirn_priority)i});
        EXPECT_EQ(i % 2 == 0, ops->has_some(rig_worker(&rig, 0)));
        EXPECT_EQ(i % 2 == 1, ops->has_some(rig_worker(&rig, 1)));
        EXPECT_EQ(1, run_slot(&rig, i % 2));
        EXPECT(!ops->has_some(rig_worker(&rig, i % 2)));
    }
    rig_become(&rig, 1);
    spawn_with(&rig, &(pirn_spawn_options){.pinned = true});
    EXPECT(!ops->has_some(rig_worker(&rig, 0)));
    EXPECT(ops->has_some(rig_worker(&rig, 1)));
    EXPECT_EQ(1, run_slot(&rig, 1));
    rig_deinit(&rig);
}

static char letter_of(struct pirn__task *task)
{
    return "nhl"[pirn__state_class(pirn__task_state(task))];
}

/* Goal: a higher class comes first, within a class it is first come first served,
 * and a lower one gets on beside higher ones that never end.
 * Method: many of each class in one slot; a trace over two rounds of ticks. */
TEST(computational_classes_are_served_in_order)
{
    enum { EACH = 40 };
    char trace[2 * LOWER_INTERVAL + 1] = {0};
    struct pirn__worker *worker;
    struct rig rig;

    slots_init(&rig, 1);
    worker = rig_worker(&rig, 0);
    for (int i = 0; i < EACH; i++)
        for (uint32_t class = 0; class < PIRN__CLASSES; class ++)
            spawn_with(&rig, &(pirn_spawn_options){
                                 .priority = (enum pirn_priority)class});
    for (uint32_t tick = 0; tick < 2 * LOWER_INTERVAL; tick++) {
        struct pirn__task *task;

        pirn__init(&worker->counters.polls, tick);
        task = pop(&rig, 0);
        trace[tick] = letter_of(task);
        rig_become(&rig, 0);
        rig_run(worker, task);
        rig_leave();
    }
    EXPECT_STR_EQ("nhhhhhhhhhhhhhhhlhhhhhhhhhhhhhhh", trace);
    pirn__init(&worker->counters.polls, 1);
    for (int i = 0; i < 3 * EACH - 2 * LOWER_INTERVAL; i++) {
        struct pirn__task *task = pop(&rig, 0);

        EXPECT_EQ(i < 10 ? 'h' : i < 10 + 39 ? 'n' : 'l', letter_of(task));
        rig_become(&rig, 0);
        rig_run(worker, task);
        rig_leave();
    }
    EXPECT_PTR_EQ(NULL, pop(&rig, 0));
    rig_deinit(&rig);
}

/* Goal: neither a slot nor the pinned tasks make a worker forget the other.
 * Method: two of each, one at a time. */
TEST(computational_pinned_tasks_take_turns)
{
    struct pirn__worker *worker;
    bool was_pinned = false;
    struct rig rig;

    slots_init(&rig, 1);
    worker = rig_worker(&rig, 0);
    rig_become(&rig, 0);
    for (int i = 0; i < 2; i++) {
        spawn(&rig);
        spawn_with(&rig, &(pirn_spawn_options){.pinned = true});
    }
    EXPECT(worker->keeps_thread);
    for (int i = 0; i < 4; i++) {
        struct pirn__task *task = ops->pop(worker);
        bool is_pinned = pirn__state_is_pinned(pirn__task_state(task));

        EXPECT(i == 0 || is_pinned != was_pinned);
        was_pinned = is_pinned;
        rig_run(worker, task);
    }
    rig_leave();
    rig_deinit(&rig);
}

/* Run all there is, beginning behind a tick; how far behind it a task of the
 * normal class ran. */
static uint32_t run_until_normal(struct rig *rig, uint32_t first)
{
    struct pirn__worker *worker = rig_worker(rig, 0);
    uint32_t found = 0;

    for (uint32_t ran = 1; ran <= 4 * LOWER_INTERVAL; ran++) {
        struct pirn__task *task;
        bool is_pinned;

        pirn__init(&worker->counters.polls, first + ran);
        task = ops->pop(worker);
        is_pinned = pirn__state_is_pinned(pirn__task_state(task));
        if (found == 0 && !is_pinned && letter_of(task) == 'n')
            found = ran;
        rig_run(worker, task);
    }
    return found;
}

/* Goal: pinned tasks and a higher class, both never empty, do not keep a lower one
 * from its turn, whichever of the two comes first at which tick.
 * Method: many of both and one of the lower class; beginning at each of two ticks. */
TEST(computational_lower_class_gets_on_beside_pinned_tasks)
{
    for (uint32_t first = 0; first < 2; first++) {
        struct rig rig;
        uint32_t ticks;

        slots_init(&rig, 1);
        rig_become(&rig, 0);
        for (uint32_t i = 0; i < 4 * LOWER_INTERVAL; i++) {
            bool is_pinned = i % 2 == 0;

            spawn_with(&rig, &(pirn_spawn_options){
                                 .pinned = is_pinned,
                                 .priority = i == 1 ? PIRN_PRIORITY_NORMAL
                                                    : PIRN_PRIORITY_HIGH});
        }
        ticks = run_until_normal(&rig, first);
        EXPECT_GE(ticks, 1);
        EXPECT_LE(ticks, 2 * LOWER_INTERVAL);
        rig_leave();
        rig_deinit(&rig);
    }
}

/* Goal: the monitor moves nothing; the end of the runtime takes all but what is
 * pinned.
 * Method: a slot with something in each place. */
TEST(computational_reclaim_takes_what_rescue_leaves)
{
    struct pirn__worker *stuck;
    struct pirn__task *task;
    struct rig rig;
    uint64_t count = 0;

    slots_init(&rig, 2);
    stuck = rig_worker(&rig, 0);
    EXPECT_EQ(0, ops->reclaim(stuck));
    spawn(&rig);
    task = pop(&rig, 0);
    pirn__inbox_push(&stuck->deferred, &task->cell.link);
    for (uint32_t i = 0; i < 2 * PIRN__CLASSES; i++)
        spawn_with(&rig, &(pirn_spawn_options){
                             .priority = (enum pirn_priority)(i / 2)});
    rig_become(&rig, 0);
    spawn_with(&rig, &(pirn_spawn_options){.pinned = true});
    rig_leave();
    EXPECT_EQ(0, ops->rescue(stuck));
    EXPECT_EQ(PIRN__CLASSES, length(&rig, 0));

    EXPECT_EQ(PIRN__CLASSES + 1, ops->reclaim(stuck));
    EXPECT_EQ(0, length(&rig, 0));
    EXPECT_EQ(1, run_slot(&rig, 0));
    EXPECT_EQ(PIRN__CLASSES, run_slot(&rig, 1));
    rig_become(&rig, 1);
    for (; (task = ops->pop_shared(rig_worker(&rig, 1))) != NULL; count++)
        rig_run(rig_worker(&rig, 1), task);
    rig_leave();
    EXPECT_EQ(PIRN__CLASSES + 1, count);
    rig_deinit(&rig);
}

/* Whole runtimes. */

static pirn_runtime *computational(uint32_t workers)
{
    return pool_with(&(pirn_runtime_options){
        .workers = workers, .pool = PIRN_POOL_COMPUTATIONAL, .seed = 1});
}

static uint32_t worker_here(void)
{
    struct pirn__local *local = pirn__local();

    return local->worker == NULL ? UINT32_MAX : local->worker->index;
}

/* Goal: the options make such a pool, and say so; a wrong priority is refused.
 * Method: read what was made; values beside the range. */
TEST(computational_pool_is_made_and_shown)
{
    pirn_runtime *rt = computational(2);
    pirn_spawn_options options = {.runtime = rt};
    struct probe probe = probe_of(step_ready, NULL, NULL);
    pirn_runtime_info info;

    pirn_runtime_get_info(rt, &info);
    EXPECT_STR_EQ("computational", info.pool);
    EXPECT_EQ(2, info.workers);
    options.priority = (enum pirn_priority)(PIRN_PRIORITY_LOW + 1);
    EXPECT_EQ(-EINVAL, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    EXPECT_EQ(-EINVAL, pirn_go_with(hear_bell, NULL, &options, NULL));
    options.priority = (enum pirn_priority)-1;
    EXPECT_EQ(-EINVAL, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    runtime_end(rt);
}

struct traveller {
    tally *ends;
    uint64_t rounds;
};

static int note_nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* Waits in each way and looks where it is afterwards. */
static int stay(void *arg)
{
    struct traveller *traveller = arg;
    uint32_t home = worker_here();

    for (uint64_t i = 0; i < traveller->rounds; i++) {
        pirn_task *child = NULL;
        int outcome = -1;

        EXPECT_EQ(0, pirn_yield());
        EXPECT_EQ(home, worker_here());
        EXPECT_EQ(0, pirn_sleep(pirn_after_us(20)));
        EXPECT_EQ(home, worker_here());
        EXPECT_EQ(0, pirn_go_with(note_nothing, NULL, NULL, &child));
        EXPECT_EQ(0, pirn_task_join(child, PIRN_NEVER, &outcome));
        EXPECT_EQ(home, worker_here());
        pirn_task_unref(child);
    }
    tally_up(traveller->ends);
    return 0;
}

/* Goal: a task is run by one worker from its first run to its last, woken by
 * timers, yields and joins from any worker; nothing is stolen, no wake is lost.
 * Method: many such tasks on one to four workers; each looks where it is. */
TEST(computational_tasks_stay_with_their_worker)
{
    enum { TASKS = 50 };

    for (uint32_t workers = 1; workers <= 4; workers++) {
        tally ends = {0};
        struct traveller traveller = {&ends, test_size(5, 40, 2000)};
        pirn_runtime *rt = computational(workers);
        pirn_worker_info sum;

        for (int i = 0; i < TASKS; i++)
            go(rt, stay, &traveller);
        wait_for_tally(&ends, TASKS);
        sum = pool_counters(rt);
        EXPECT_EQ(0, sum.steals);
        EXPECT_EQ(0, sum.wakes);
        EXPECT_EQ(0, sum.queued);
        EXPECT_GE(sum.yields, TASKS * traveller.rounds);
        EXPECT_EQ(TASKS * (traveller.rounds + 1), runtime_end(rt).completed);
    }
}

static int count_run(void *arg)
{
    tally_up(arg);
    return 0;
}

/* Goal: as many workers as slots: each spawned task gets on although all others
 * are held, and one that belongs to a held worker waits, and is counted.
 * Method: hold all but one of four workers; spawn two rounds. */
TEST(computational_slots_do_not_help_each_other)
{
    enum { WORKERS = 4 };
    pirn_runtime *rt = computational(WORKERS);
    struct hog hog = {.holding = {0}};
    pirn_task *hogs[WORKERS - 1];
    pirn_worker_info sum;
    tally runs = {0};

    for (int i = 0; i < WORKERS - 1; i++)
        hogs[i] = hog_start(&hog, rt);
    for (int i = 0; i < 2 * WORKERS; i++)
        go(rt, count_run, &runs);
    wait_for_tally(&runs, 2);
    sum = pool_counters(rt);
    EXPECT_EQ(2 * (WORKERS - 1), sum.queued);
    EXPECT_EQ(2, tally_of(&runs));
    tally_up(&hog.let_go);
    for (int i = 0; i < WORKERS - 1; i++)
        EXPECT_EQ(0, join_and_unref(hogs[i]));
    wait_for_tally(&runs, 2 * WORKERS);
    runtime_end(rt);
}

/* Sleeps on the wheel of a worker that is held when the time comes. */
struct ringer {
    struct bell bell;
    tally armed;
    pirn_sleep_op nap;
};

static enum pirn_poll step_ring_late(struct probe *probe, pirn_cx *cx)
{
    struct ringer *ringer = probe->arg;

    if (probe->polls == 0) {
        pirn_sleep_init(&ringer->nap, pirn_after_ms(2));
        tally_up(&ringer->armed);
    }
    return pirn_future_poll(&ringer->nap.future, cx);
}

/* Goal: a held worker does not keep timers on its wheel from firing: tasks of
 * others that they wake run.  Its own wait until it is let go.
 * Method: of two sleepers one shares its worker with a hog. */
TEST(computational_monitor_fires_timers_and_moves_no_task)
{
    pirn_runtime *rt = computational(2);
    struct ringer ringers[2] = {{.armed = {0}}, {.armed = {0}}};
    struct hog hog = {.holding = {0}};
    pirn_task *tasks[2];
    pirn_task *task;

    for (int i = 0; i < 2; i++) {
        spawn_probe(rt, step_ring_late, &ringers[i], &tasks[i]);
        wait_for_tally(&ringers[i].armed, 1);
    }
    task = hog_start(&hog, rt);
    EXPECT_EQ(0, join_and_unref(tasks[1]));
    tally_up(&hog.let_go);
    EXPECT_EQ(0, join_and_unref(task));
    EXPECT_EQ(0, join_and_unref(tasks[0]));
    runtime_end(rt);
}

static int block(void *arg)
{
    /* The worker goes on meanwhile. */
    wait_for_tally(arg, 2);
    return 0;
}

static int block_here(void *arg)
{
    uint32_t home = worker_here();
    int rc = pirn_block_in_place(block, arg);

    EXPECT_EQ(UINT32_MAX, worker_here());
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(home, worker_here());
    return rc;
}

/* Goal: a worker may change its thread for a task that blocks, and the task comes
 * back to it.
 * Method: it waits for what stands behind it in its slot. */
TEST(computational_worker_changes_its_thread)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        pirn_runtime *rt = computational(workers);
        tally runs = {0};
        pirn_task *task = go_task(rt, block_here, &runs);

        for (uint32_t i = 0; i < 2 * workers; i++)
            go(rt, count_run, &runs);
        EXPECT_EQ(0, join_and_unref(task));
        wait_for_tally(&runs, 2 * workers);
        runtime_end(rt);
    }
}

static int sleep_for_ever(void *arg)
{
    (void)arg;
    return pirn_sleep(PIRN_NEVER);
}

static void no_failure(void *arg, const pirn_failure *failure)
{
    (void)arg;
    (void)failure;
}

/* Goal: what waits for a worker that does not come back is ended by shutdown all
 * the same, and who joins it is told.
 * Method: tasks that have not run, that have, and that had yielded there. */
TEST(computational_shutdown_reclaims_from_a_held_worker)
{
    enum { TASKS = 6 };
    pirn_runtime *rt = pool_with(
        &(pirn_runtime_options){.workers = 2,
                                .pool = PIRN_POOL_COMPUTATIONAL,
                                .on_failure = no_failure});
    struct hog hog = {.holding = {0}};
    tally drops = {0};
    pirn_task *sleepers[TASKS];
    pirn_task *task;
    pirn_report report;

    for (int i = 0; i < TASKS; i++)
        sleepers[i] = go_task(rt, sleep_for_ever, NULL);
    task = hog_start(&hog, rt);
    for (int i = 0; i < TASKS; i++) {
        struct probe probe = probe_of(step_never, NULL, &drops);
        const pirn_spawn_options options = {.runtime = rt};

        EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    }
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT_EQ(TASKS, tally_of(&drops));
    EXPECT_EQ(1, report.still_running);
    EXPECT_EQ(2 * TASKS + 1, report.spawned);
    for (int i = 0; i < TASKS; i++)
        (void)join_and_unref(sleepers[i]);
    tally_up(&hog.let_go);
    EXPECT_EQ(0, join_and_unref(task));
    pirn_runtime_unref(rt);
}

/* Goal: pools that have just gone to sleep, or are about to, hear of every spawn
 * and of every wake, of each slot.
 * Method: one at a time, waiting for each, from outside and from a worker. */
TEST(computational_single_wakes_reach_each_slot)
{
    size_t rounds = test_size(100, 2000, 100000);

    for (uint32_t workers = 1; workers <= 3; workers++) {
        pirn_runtime *rt = computational(workers);
        tally runs = {0};

        for (size_t i = 0; i < rounds; i++) {
            go(rt, count_run, &runs);
            wait_for_tally(&runs, i + 1);
        }
        runtime_end(rt);
    }
}
