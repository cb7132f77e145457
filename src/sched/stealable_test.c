/* SPDX-License-Identifier: MIT */
/* src/sched/stealable_test.c - where tasks go and where they come from, by the
 * hand of one thread that is whichever worker it wants to be.
 */
#include "engine/pool_fixture.h"
#include "engine/state_start.h"
#include "sched/pinned.h"
#include "task/waker.h"

enum { TASKS = 2 * PIRN__RING_SIZE, LIFO_RUNS = 3 };

static const struct pirn__taskpool_ops *const ops = &pirn__stealable_ops;

/* A rig, and tasks in no queue. */
struct table {
    struct rig rig;
    struct pirn__task *tasks[TASKS];
    size_t count;
};

static void table_init(struct table *table, uint32_t workers, size_t count)
{
    *table = (struct table){.count = count};
    rig_init(&table->rig, workers);
    for (size_t i = 0; i < count; i++)
        table->tasks[i] = rig_task(&table->rig);
}

/* All tasks are out of the queues. */
static void table_deinit(struct table *table)
{
    for (uint32_t i = 0; i < table->rig.pool->count; i++) {
        EXPECT_PTR_EQ(NULL, ops->pop(rig_worker(&table->rig, i)));
        EXPECT_PTR_EQ(NULL, ops->pop_shared(rig_worker(&table->rig, i)));
    }
    rig_become(&table->rig, 0);
    for (size_t i = 0; i < table->count; i++)
        rig_run(rig_worker(&table->rig, 0), table->tasks[i]);
    rig_leave();
    rig_deinit(&table->rig);
}

/* Push as a thread outside. */
static bool push_outside(struct table *table, size_t task,
                         enum pirn__origin origin)
{
    return ops->push(table->rig.pool, NULL, table->tasks[task], origin);
}

/* Push as a worker, in a task or between two. */
static bool push_here(struct table *table, uint32_t worker, size_t task,
                      enum pirn__origin origin, bool in_task)
{
    struct pirn__worker *self = rig_worker(&table->rig, worker);
    bool wants_sleeper;

    self->turn.task = in_task ? table->tasks[task] : NULL;
    wants_sleeper =
        ops->push(table->rig.pool, self, table->tasks[task], origin);
    self->turn.task = NULL;
    return wants_sleeper;
}

static bool push_ring(struct table *table, uint32_t worker, size_t task)
{
    return push_here(table, worker, task, PIRN__ORIGIN_SPAWN, true);
}

static bool push_lifo(struct table *table, uint32_t worker, size_t task)
{
    return push_here(table, worker, task, PIRN__ORIGIN_WAKE, true);
}

/* Which of the tasks it is; -1: none. */
static int number_of(const struct table *table, const struct pirn__task *task)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->tasks[i] == task)
            return (int)i;
    EXPECT_PTR_EQ(NULL, task);
    return -1;
}

static int pop(struct table *table, uint32_t worker)
{
    return number_of(table, ops->pop(rig_worker(&table->rig, worker)));
}

static int pop_shared(struct table *table, uint32_t worker)
{
    return number_of(table, ops->pop_shared(rig_worker(&table->rig, worker)));
}

static int steal(struct table *table, uint32_t worker)
{
    return number_of(table, ops->steal(rig_worker(&table->rig, worker)));
}

static uint32_t ring_len(struct table *table, uint32_t worker)
{
    return pirn__ring_len(&rig_worker(&table->rig, worker)->ring);
}

static uint64_t count_of(pirn__counter *counter)
{
    /* relaxed: written by this thread. */
    return pirn__load(counter, relaxed);
}

/* Goal: what a worker spawns, and what events wake, goes to its own ring in
 * order, and a sleeper may be wanted for it.
 * Method: spawn in a task; wake between two tasks. */
TEST(stealable_spawns_and_events_go_to_the_ring)
{
    struct table table;

    table_init(&table, 2, 3);
    EXPECT(push_ring(&table, 1, 0));
    EXPECT(push_here(&table, 1, 1, PIRN__ORIGIN_WAKE, false));
    EXPECT(push_here(&table, 1, 2, PIRN__ORIGIN_SPAWN, false));
    EXPECT_EQ(3, ring_len(&table, 1));
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(i, pop(&table, 1));
    table_deinit(&table);
}

/* Goal: a task woken by a running one is next, and wakes nobody; the one that
 * was next before goes to the ring.
 * Method: three wakes behind one spawn. */
TEST(stealable_woken_task_runs_next)
{
    struct table table;

    table_init(&table, 2, 4);
    EXPECT(push_ring(&table, 0, 0));
    EXPECT(!push_lifo(&table, 0, 1));
    EXPECT(push_lifo(&table, 0, 2));
    EXPECT(push_lifo(&table, 0, 3));
    EXPECT_EQ(3, pop(&table, 0));
    EXPECT_EQ(0, pop(&table, 0));
    EXPECT_EQ(1, pop(&table, 0));
    EXPECT_EQ(2, pop(&table, 0));
    table_deinit(&table);
}

/* Goal: at most three runs in a row come from the slot while something else
 * waits; when nothing does the slot is not left full.
 * Method: refill the slot after each pop. */
TEST(stealable_lifo_runs_are_capped)
{
    struct table table;
    struct pirn__worker *worker;

    table_init(&table, 1, 8);
    worker = rig_worker(&table.rig, 0);
    push_ring(&table, 0, 0);
    push_ring(&table, 0, 1);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < LIFO_RUNS; i++) {
            push_lifo(&table, 0, 2 + (size_t)i);
            EXPECT_EQ(2 + i, pop(&table, 0));
            EXPECT_EQ(i + 1, worker->lifo_runs);
        }
        push_lifo(&table, 0, 7);
        EXPECT_EQ(round, pop(&table, 0));
        EXPECT_EQ(0, worker->lifo_runs);
        EXPECT_EQ(7, pop(&table, 0));
        worker->lifo_runs = 0;
    }
    for (int i = 0; i < 2 * LIFO_RUNS; i++) {
        push_lifo(&table, 0, 7);
        EXPECT_EQ(7, pop(&table, 0));
    }
    EXPECT_GE(count_of(&worker->counters.lifo_runs), 3 * LIFO_RUNS);
    table_deinit(&table);
}

/* Goal: a thread outside puts what it spawns at its place, and what it wakes in the
 * inbox of the worker that ran it last.
 * Method: a task that was run by worker 1. */
TEST(stealable_outside_goes_to_its_place_and_inbox)
{
    struct table table;
    pirn__state *state;

    table_init(&table, 2, 2);
    EXPECT(push_outside(&table, 0, PIRN__ORIGIN_SPAWN));
    EXPECT_EQ(1, pirn__outside_len(table.rig.pool));
    EXPECT_EQ(0, pop_shared(&table, 1));

    state = pirn__task_state(table.tasks[1]);
    EXPECT_EQ(PIRN__START_POLL, state_start(state, 1));
    EXPECT_EQ(PIRN__WAKE_SUBMIT, pirn__state_end(state, true, PIRN__LOAN));
    EXPECT(push_outside(&table, 1, PIRN__ORIGIN_WAKE));
    EXPECT(pirn__inbox_has_some(&rig_worker(&table.rig, 1)->inbox));
    EXPECT_EQ(-1, pop(&table, 0));
    EXPECT_EQ(1, pop(&table, 1));
    table_deinit(&table);
}

/* Goal: a full ring gives its older half to the spill of its worker, and the new
 * task with it; nothing is lost, and others can have it.
 * Method: one more than it holds; the owner takes the first, a thief the rest. */
TEST(stealable_full_ring_overflows)
{
    bool seen[TASKS] = {false};
    struct table table;
    struct pirn__worker *worker;
    int number;

    table_init(&table, 2, PIRN__RING_SIZE + 1);
    worker = rig_worker(&table.rig, 0);
    for (size_t i = 0; i < table.count; i++)
        EXPECT(push_ring(&table, 0, i));
    EXPECT_EQ(1, count_of(&worker->counters.overflows));
    EXPECT_EQ(PIRN__RING_SIZE / 2, ring_len(&table, 0));
    EXPECT_EQ(0, pirn__injection_len(&table.rig.pool->injection));
    EXPECT_EQ(PIRN__RING_SIZE / 2 + 1, pirn__injection_len(&worker->spill));
    EXPECT_EQ(-1, pop_shared(&table, 1));
    /* The oldest first. */
    number = pop_shared(&table, 0);
    EXPECT_EQ(0, number);
    while (number >= 0) {
        seen[number] = true;
        number = pop(&table, 1);
        if (number < 0)
            number = steal(&table, 1);
    }
    for (size_t i = 0; i < table.count; i++)
        EXPECT(seen[i]);
    table_deinit(&table);
}

/* Goal: neither the shared queue nor its own spill makes a worker forget the
 * other.
 * Method: two tasks in each, one at a time. */
TEST(stealable_spill_and_shared_queue_take_turns)
{
    struct table table;
    struct pirn__worker *worker;
    bool was_shared;
    int number;

    table_init(&table, 4, 4);
    worker = rig_worker(&table.rig, 2);
    for (int i = 0; i < 2; i++) {
        push_outside(&table, (size_t)i, PIRN__ORIGIN_SPAWN);
        pirn__injection_push(&worker->spill, &table.tasks[2 + i]->cell.link);
    }
    was_shared = pop_shared(&table, 2) < 2;
    while ((number = pop(&table, 2)) >= 0)
        continue;
    EXPECT_EQ(!was_shared, pop_shared(&table, 2) < 2);
    while ((number = pop(&table, 2)) >= 0)
        continue;
    number = pop_shared(&table, 2);
    EXPECT_EQ(1, number);
    EXPECT_EQ(-1, pop_shared(&table, 2));
    table_deinit(&table);
}

/* Goal: a worker takes its share of the shared queue, never all of a long one.
 * Method: four workers; queues of a few and of very many. */
TEST(stealable_shared_queue_is_taken_by_shares)
{
    struct table table;

    table_init(&table, 4, 400);
    EXPECT_EQ(-1, pop_shared(&table, 0));
    for (size_t i = 0; i < 400; i++)
        push_outside(&table, i, PIRN__ORIGIN_SPAWN);
    /* 101 would be the share, 64 is the most. */
    EXPECT_EQ(0, pop_shared(&table, 0));
    EXPECT_EQ(63, ring_len(&table, 0));
    EXPECT_EQ(64, pop_shared(&table, 1));
    EXPECT_EQ(63, ring_len(&table, 1));
    for (int i = 1; i < 64; i++)
        EXPECT_EQ(i, pop(&table, 0));
    for (int i = 65; i < 128; i++)
        EXPECT_EQ(i, pop(&table, 1));
    for (int next = 128; next < 400;) {
        uint64_t before = pirn__outside_len(table.rig.pool);

        EXPECT_EQ(next, pop_shared(&table, 2));
        EXPECT_LE(ring_len(&table, 2), before / 4);
        for (next++; ring_len(&table, 2) > 0; next++)
            EXPECT_EQ(next, pop(&table, 2));
    }
    table_deinit(&table);
}

/* Goal: a thief takes half of a ring, or a whole inbox, but no LIFO slot, and
 * nothing of its own; it is counted.
 * Method: each place in turn. */
TEST(stealable_thief_takes_rings_and_inboxes)
{
    struct table table;
    struct pirn__worker *thief;

    table_init(&table, 3, 8);
    thief = rig_worker(&table.rig, 0);
    push_ring(&table, 0, 0);
    EXPECT_EQ(-1, steal(&table, 0));
    EXPECT_EQ(0, pop(&table, 0));

    push_lifo(&table, 2, 1);
    EXPECT_EQ(-1, steal(&table, 0));
    EXPECT_EQ(0, count_of(&thief->counters.steals));
    EXPECT_EQ(1, pop(&table, 2));

    for (size_t i = 2; i < 6; i++)
        push_ring(&table, 2, i);
    EXPECT_EQ(3, steal(&table, 0));
    EXPECT_EQ(2, pop(&table, 0));
    EXPECT_EQ(2, ring_len(&table, 2));
    EXPECT_EQ(4, pop(&table, 2));
    EXPECT_EQ(5, pop(&table, 2));

    for (size_t i = 4; i < 7; i++)
        pirn__inbox_push(&rig_worker(&table.rig, 1)->inbox,
                         &table.tasks[i]->cell.link);
    EXPECT_EQ(4, steal(&table, 0));
    EXPECT_EQ(2, ring_len(&table, 0));
    EXPECT_EQ(-1, pop(&table, 1));
    EXPECT_EQ(5, pop(&table, 0));
    EXPECT_EQ(6, pop(&table, 0));
    EXPECT_EQ(2, count_of(&thief->counters.steals));

    pirn__injection_push(&rig_worker(&table.rig, 1)->spill,
                         &table.tasks[7]->cell.link);
    EXPECT_EQ(7, steal(&table, 0));
    EXPECT_EQ(3, count_of(&thief->counters.steals));
    table_deinit(&table);
}

/* Goal: who goes to sleep finds whatever another worker could hand over.
 * Method: each place in turn; a LIFO slot is not such a place. */
TEST(stealable_has_some_looks_everywhere)
{
    struct table table;
    struct pirn__worker *sleeper;

    table_init(&table, 3, 1);
    sleeper = rig_worker(&table.rig, 2);
    EXPECT(!ops->has_some(sleeper));
    push_outside(&table, 0, PIRN__ORIGIN_SPAWN);
    EXPECT(ops->has_some(sleeper));
    EXPECT_EQ(0, pop_shared(&table, 0));
    for (uint32_t i = 0; i < 3; i++) {
        push_ring(&table, i, 0);
        EXPECT(ops->has_some(sleeper));
        EXPECT_EQ(0, pop(&table, i));
        pirn__inbox_push(&rig_worker(&table.rig, i)->inbox,
                         &table.tasks[0]->cell.link);
        EXPECT(ops->has_some(sleeper));
        EXPECT_EQ(0, pop(&table, i));
        EXPECT(!ops->has_some(sleeper));
        pirn__injection_push(&rig_worker(&table.rig, i)->spill,
                             &table.tasks[0]->cell.link);
        EXPECT(ops->has_some(sleeper));
        EXPECT_EQ(0, pop_shared(&table, i));
        EXPECT(!ops->has_some(sleeper));
    }
    push_lifo(&table, 0, 0);
    EXPECT(!ops->has_some(sleeper));
    EXPECT_EQ(0, pop(&table, 0));
    table_deinit(&table);
}

/* Goal: what came from outside is told from what workers have.
 * Method: each queue alone. */
TEST(stealable_has_outside_leaves_rings_alone)
{
    struct table table;
    struct pirn__worker *napper;

    table_init(&table, 2, 1);
    napper = rig_worker(&table.rig, 1);
    EXPECT(!ops->has_outside(napper));
    push_ring(&table, 0, 0);
    EXPECT(!ops->has_outside(napper));
    EXPECT_EQ(0, pop(&table, 0));
    pirn__injection_push(&rig_worker(&table.rig, 0)->spill,
                         &table.tasks[0]->cell.link);
    EXPECT(!ops->has_outside(napper));
    EXPECT_EQ(0, pop_shared(&table, 0));
    push_outside(&table, 0, PIRN__ORIGIN_SPAWN);
    EXPECT(ops->has_outside(napper));
    EXPECT_EQ(0, pop_shared(&table, 0));
    push_outside(&table, 0, PIRN__ORIGIN_WAKE);
    EXPECT(ops->has_outside(napper));
    EXPECT_EQ(0, pop(&table, 0));
    table_deinit(&table);
}

/* Goal: what waits in the spill keeps its order while the ring is full.
 * Method: take of it as long as there is no room but for the one to run. */
TEST(stealable_spill_of_a_full_ring_keeps_its_order)
{
    enum { IN_SPILL = 70 };
    struct table table;
    struct pirn__worker *worker;

    table_init(&table, 1, PIRN__RING_SIZE + IN_SPILL);
    worker = rig_worker(&table.rig, 0);
    for (size_t i = 0; i < IN_SPILL; i++)
        pirn__injection_push(&worker->spill, &table.tasks[i]->cell.link);
    for (size_t i = IN_SPILL; i < table.count; i++)
        push_ring(&table, 0, i);
    for (int i = 0; i < IN_SPILL; i++)
        EXPECT_EQ(i, pop_shared(&table, 0));
    for (size_t i = IN_SPILL; i < table.count; i++)
        EXPECT_EQ((int)i, pop(&table, 0));
    EXPECT_EQ(0, count_of(&worker->counters.overflows));
    table_deinit(&table);
}

/* Goal: who takes several for itself sees to it that a sleeper looks for the
 * others; it does not end a nap, for they are its own now.
 * Method: the word says that one sleeps or naps; open an inbox, the shared queue
 * and a spill. */
TEST(stealable_who_takes_several_wakes)
{
    struct table table;
    struct pirn__worker *worker;
    struct pirn__idle *idle;

    table_init(&table, 2, 2);
    worker = rig_worker(&table.rig, 0);
    idle = &table.rig.pool->idle;
    for (int source = 0; source < 6; source++) {
        bool naps = source >= 3;

        for (size_t i = 0; i < 2; i++) {
            if (source % 3 == 0)
                push_outside(&table, i, PIRN__ORIGIN_WAKE);
            else if (source % 3 == 1)
                push_outside(&table, i, PIRN__ORIGIN_SPAWN);
            else
                pirn__injection_push(&worker->spill,
                                     &table.tasks[i]->cell.link);
        }
        if (naps)
            EXPECT(pirn__idle_enter_nap(idle, 2, false));
        else
            pirn__idle_enter_sleep(idle, false);
        EXPECT_EQ(0, source % 3 == 0 ? pop(&table, 0) : pop_shared(&table, 0));
        if (naps)
            pirn__idle_leave_nap(idle);
        else
            (void)pirn__idle_leave_sleep(idle);
        /* The wake is the searcher. */
        EXPECT_EQ(naps ? 0 : 1, pirn__load(&idle->word, relaxed));
        pirn__init(&idle->word, 0);
        EXPECT_EQ(1, pop(&table, 0));
    }
    table_deinit(&table);
}

/* Goal: whatever a stuck worker holds can be had by others afterwards.
 * Method: its slot, its inbox, what had yielded, its ring and its spill. */
TEST(stealable_rescue_makes_all_reachable)
{
    bool seen[7] = {false};
    struct table table;
    struct pirn__worker *stuck;
    int number;

    table_init(&table, 2, 7);
    stuck = rig_worker(&table.rig, 0);
    EXPECT_EQ(0, ops->rescue(stuck));
    push_ring(&table, 0, 0);
    push_lifo(&table, 0, 1);
    pirn__inbox_push(&stuck->inbox, &table.tasks[2]->cell.link);
    pirn__inbox_push(&stuck->inbox, &table.tasks[3]->cell.link);
    pirn__inbox_push(&stuck->deferred, &table.tasks[4]->cell.link);
    pirn__inbox_push(&stuck->deferred, &table.tasks[5]->cell.link);
    pirn__injection_push(&stuck->spill, &table.tasks[6]->cell.link);
    EXPECT_EQ(7, ops->rescue(stuck));
    EXPECT_EQ(7, pirn__injection_len(&table.rig.pool->injection));
    while ((number = pop(&table, 1)) >= 0 ||
           (number = pop_shared(&table, 1)) >= 0 ||
           (number = steal(&table, 1)) >= 0)
        seen[number] = true;
    for (int i = 0; i < 7; i++)
        EXPECT(seen[i]);
    EXPECT_PTR_EQ(NULL, ops->pop(stuck));
    table_deinit(&table);
}

/* Goal: a worker that has started very many tasks keeps most of them when it looks
 * stuck, and none at the end of the runtime.
 * Method: a spill of more than is taken at once. */
TEST(stealable_rescue_takes_a_long_spill_by_parts)
{
    enum { COUNT = 1500, AT_ONCE = 1024 };
    struct pirn__injection *shared;
    struct pirn__worker *stuck;
    struct table table;

    table_init(&table, 2, COUNT);
    stuck = rig_worker(&table.rig, 0);
    shared = &table.rig.pool->injection;
    for (size_t i = 0; i < COUNT; i++)
        pirn__injection_push(&stuck->spill, &table.tasks[i]->cell.link);
    EXPECT_EQ(AT_ONCE, ops->rescue(stuck));
    EXPECT_EQ(COUNT - AT_ONCE, pirn__injection_len(&stuck->spill));
    EXPECT_EQ(COUNT - AT_ONCE, ops->reclaim(stuck));
    EXPECT_EQ(0, pirn__injection_len(&stuck->spill));
    /* They are in order. */
    for (int i = 0; i < COUNT; i++) {
        int number = pop(&table, 1);

        if (number < 0)
            number = pop_shared(&table, 1);
        EXPECT_EQ(i, number);
    }
    EXPECT_EQ(0, pirn__injection_len(shared));
    table_deinit(&table);
}

static void spawn_pinned(pirn_runtime *rt)
{
    const pirn_spawn_options options = {.runtime = rt, .pinned = true};
    struct probe probe = probe_of(step_ready, NULL, NULL);

    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
}

/* Goal: a pinned task that has yielded on a stuck worker is not carried away to
 * another one.
 * Method: rescue with nothing else there. */
TEST(stealable_rescue_leaves_pinned_tasks)
{
    struct table table;
    struct pirn__worker *stuck;
    pirn_slink *link;

    table_init(&table, 2, 0);
    stuck = rig_worker(&table.rig, 0);
    rig_become(&table.rig, 0);
    spawn_pinned(table.rig.rt);
    link = pirn__pinned_pop(stuck);
    REQUIRE(link != NULL);
    pirn__inbox_push(&stuck->deferred, link);
    EXPECT_EQ(0, ops->rescue(stuck));
    EXPECT_EQ(0, pirn__injection_len(&table.rig.pool->injection));
    EXPECT_PTR_EQ(link, pirn__pinned_pop(stuck));
    rig_run(stuck, pirn__task_of_link(link));
    rig_leave();
    table_deinit(&table);
}

/* Wakes in the poll of a task. */

/* Waits once, and leaves its waker. */
static enum pirn_poll step_wait(struct probe *probe, pirn_cx *cx)
{
    pirn_waker *waker = probe->arg;

    if (probe->polls > 0)
        return PIRN_READY;
    *waker = pirn_waker_clone(cx->waker);
    return PIRN_PENDING;
}

static enum pirn_poll step_wake(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    pirn_waker_wake(pirn_waker_take(probe->arg));
    return PIRN_READY;
}

static enum pirn_poll step_wake_by_ref(struct probe *probe, pirn_cx *cx)
{
    pirn_waker *waker = probe->arg;

    (void)cx;
    pirn_waker_wake_by_ref(waker);
    pirn_waker_drop(pirn_waker_take(waker));
    return PIRN_READY;
}

static enum pirn_poll step_wake_in_turn(struct probe *probe, pirn_cx *cx)
{
    pirn__waker_wake_in_turn(pirn_waker_take(probe->arg), cx->turn_);
    return PIRN_READY;
}

static probe_step *const wakes[] = {step_wake, step_wake_by_ref,
                                    step_wake_in_turn};

enum { WAKES = sizeof wakes / sizeof wakes[0] };

/* Run a new task as worker 0. */
static struct pirn__task *run_new(struct rig *rig, probe_step *step,
                                  pirn_waker *waker, bool pinned)
{
    const pirn_spawn_options options = {.runtime = rig->rt, .pinned = pinned};
    struct probe probe = probe_of(step, waker, NULL);
    struct pirn__task *task;

    rig_become(rig, 0);
    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    if (pinned)
        task = pirn__task_of_link(pirn__pinned_pop(rig_worker(rig, 0)));
    else
        task = ops->pop(rig_worker(rig, 0));
    rig_run(rig_worker(rig, 0), task);
    rig_leave();
    return task;
}

/* Goal: a task that is woken in the poll of another one is next on that worker,
 * and no sleeper is wanted for it.
 * Method: each way to wake. */
TEST(stealable_wake_in_a_poll_goes_to_the_slot)
{
    struct table table;

    for (size_t i = 0; i < WAKES; i++) {
        struct pirn__task *waiter;
        pirn_waker waker;

        table_init(&table, 1, 0);
        waiter = run_new(&table.rig, step_wait, &waker, false);
        run_new(&table.rig, wakes[i], &waker, false);
        EXPECT(pirn__worker_has_lifo(rig_worker(&table.rig, 0)));
        EXPECT_PTR_EQ(waiter, ops->pop(rig_worker(&table.rig, 0)));
        rig_become(&table.rig, 0);
        rig_run(rig_worker(&table.rig, 0), waiter);
        rig_leave();
        table_deinit(&table);
    }
}

/* Goal: a pinned one waits with its like.
 * Method: the same. */
TEST(stealable_wake_in_a_poll_of_a_pinned_task)
{
    struct table table;

    for (size_t i = 0; i < WAKES; i++) {
        struct pirn__worker *worker;
        struct pirn__task *waiter;
        pirn_waker waker;

        table_init(&table, 1, 0);
        worker = rig_worker(&table.rig, 0);
        waiter = run_new(&table.rig, step_wait, &waker, true);
        run_new(&table.rig, wakes[i], &waker, false);
        EXPECT(!pirn__worker_has_lifo(worker));
        EXPECT_PTR_EQ(waiter, pirn__task_of_link(pirn__pinned_pop(worker)));
        rig_become(&table.rig, 0);
        rig_run(worker, waiter);
        rig_leave();
        table_deinit(&table);
    }
}

/* Goal: one of another runtime goes there.
 * Method: the same, with two rigs. */
TEST(stealable_wake_in_a_poll_of_another_runtime)
{
    struct table here, there;

    for (size_t i = 0; i < WAKES; i++) {
        struct pirn__worker *worker;
        struct pirn__task *waiter;
        pirn_waker waker;

        table_init(&here, 1, 0);
        table_init(&there, 1, 0);
        worker = rig_worker(&there.rig, 0);
        waiter = run_new(&there.rig, step_wait, &waker, false);
        run_new(&here.rig, wakes[i], &waker, false);
        EXPECT(!pirn__worker_has_lifo(rig_worker(&here.rig, 0)));
        EXPECT(pirn__inbox_has_some(&worker->inbox));
        EXPECT_PTR_EQ(waiter, ops->pop(worker));
        rig_become(&there.rig, 0);
        rig_run(worker, waiter);
        rig_leave();
        table_deinit(&there);
        table_deinit(&here);
    }
}
