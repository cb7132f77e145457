/* SPDX-License-Identifier: MIT */
/* src/task/group_model.c - a group's gate, its members and their ends. */
#include "task/group.h"

#include "engine/model_home.h"

static struct model_home model;

/* A future that is ready at once and leaves a mark of how it went. */
struct brief {
    pirn_future future;
};

static PIRN_ATOMIC(int) polled;
static PIRN_ATOMIC(int) dropped;

static enum pirn_poll brief_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    pirn__add(&polled, 1, relaxed);
    return PIRN_READY;
}

static void brief_drop(pirn_future *self)
{
    (void)self;
    pirn__add(&dropped, 1, relaxed);
}

static struct brief brief(void)
{
    static const pirn_future_ops ops = {.poll = brief_poll,
                                        .drop = brief_drop};

    return (struct brief){{&ops}};
}

static PIRN_SHARED(int) admitted;

static void spawn(void *arg)
{
    struct brief future = brief();

    (void)arg;
    if (model_home_spawn(&model, &future.future, sizeof future, false) != NULL)
        pirn_cell_write(&admitted, 1);
}

static void cancel(struct pirn__task *task, void *arg)
{
    (void)arg;
    pirn__task_submit(task, pirn__state_cancel(pirn__task_state(task)));
}

static void close_and_visit(void *arg)
{
    (void)arg;
    pirn__group_close(&model.group, PIRN__GROUP_CLOSED);
    pirn__group_visit(&model.group, cancel, NULL);
}

/* Goal: whoever is admitted is visited: a spawn against a closing group either
 * fails or is cancelled. */
MODEL(group_spawn_against_close_is_refused_or_visited,
      .preemptions = EXPLORE_UNBOUNDED)
{
    struct pirn__group_counts counts;

    model_home_begin(&model);
    explore_thread(spawn, NULL);
    explore_thread(close_and_visit, NULL);
    explore_join();
    model_home_drain(&model);
    counts = pirn__group_read(&model.group);
    EXPLORE_CHECK(counts.spawned == (uint64_t)pirn_cell_read(&admitted));
    EXPLORE_CHECK(counts.cancelled == counts.spawned);
    EXPLORE_CHECK(pirn__load(&polled, relaxed) == 0);
    model_home_finish(&model);
}

/* A task that spawns another one, and whose worker has a ledger. */

static struct pirn__ledger ledger;

static enum pirn_poll mother_poll(pirn_future *self, pirn_cx *cx)
{
    struct brief future = brief();
    struct pirn__task_plan plan = {
        .ops = &pirn__stackless_ops,
        .home = &model.home,
        .slabs = &model.slabs,
        .future = &future.future,
        .size = sizeof future,
        .site = PIRN_SITE,
    };
    struct pirn__task *task = pirn__task_new(&plan);

    (void)self;
    (void)cx;
    EXPLORE_CHECK(task != NULL);
    if (pirn__group_admit(&model.group, &ledger, task, &plan) < 0) {
        pirn__task_discard_new(task, &plan);
        return PIRN_READY;
    }
    model_home_submit(&model.home, task, PIRN__ORIGIN_SPAWN);
    pirn_cell_write(&admitted, 1);
    return PIRN_READY;
}

/* Run one task as a worker does whose ledger `arg` is. */
static void run_one(void *arg)
{
    struct pirn__turn turn = {.home = &model.home,
                              .ledger = arg,
                              .quiet_ledger = arg,
                              .budget = PIRN__COOP_BUDGET};
    struct pirn__slab_cache cache = {0};
    pirn_slink *link;

    pirn__lock(&model.lock);
    link = pirn__queue_pop(&model.queue);
    pirn__unlock(&model.lock);
    if (link != NULL)
        (void)pirn__task_run(pirn__task_of_link(link), &turn, &cache);
}

static struct pirn__group_counts read_both(void)
{
    struct pirn__group_counts counts = {0};

    pirn__ledger_read_ends(&model.group.ledger, &counts);
    pirn__ledger_read_ends(&ledger, &counts);
    pirn__ledger_read_spawned(&model.group.ledger, &counts);
    pirn__ledger_read_spawned(&ledger, &counts);
    return counts;
}

static void close_see_and_visit(void *arg)
{
    (void)arg;
    pirn__group_close(&model.group, PIRN__GROUP_CLOSED);
    pirn__ledger_see(&ledger);
    pirn__group_visit(&model.group, cancel, NULL);
    /* Nobody who lives is overlooked: a child has not been run yet. */
    if (read_both().live == 0)
        EXPLORE_CHECK(pirn_cell_read(&admitted) == 0);
}

/* Goal: the same for what a member spawns without the lock: the child is refused,
 * visited, or told by its spawner; and a closed group without live members stays
 * so. */
MODEL(group_spawn_by_a_member_against_close, .preemptions = 3, .stale = 2)
{
    static const pirn_future_ops ops = {.poll = mother_poll,
                                        .drop = brief_drop};
    struct brief mother = {{&ops}};
    struct pirn__group_counts counts;

    model_home_begin(&model);
    ledger = (struct pirn__ledger){0};
    (void)model_home_spawn(&model, &mother.future, sizeof mother, false);
    explore_thread(run_one, &ledger);
    explore_thread(close_see_and_visit, NULL);
    explore_join();
    model_home_drain(&model);
    counts = read_both();
    EXPLORE_CHECK(counts.spawned == 1 + (uint64_t)pirn_cell_read(&admitted));
    EXPLORE_CHECK(counts.live == 0);
    EXPLORE_CHECK(pirn__load(&polled, relaxed) == 0);
    EXPLORE_CHECK(pirn__slabs_retire(&model.slabs));
}

/* Goal: a member may end while it is visited: it is left once and counted once,
 * and the visit touches no freed cell. */
MODEL(group_visit_against_members_that_end, .preemptions = 2, .stale = 2)
{
    static struct pirn__ledger ledgers[2];
    struct brief future = brief();
    struct pirn__group_counts counts;

    model_home_begin(&model);
    for (int i = 0; i < 2; i++) {
        ledgers[i] = (struct pirn__ledger){0};
        (void)model_home_spawn(&model, &future.future, sizeof future, false);
    }
    explore_thread(run_one, &ledgers[0]);
    explore_thread(run_one, &ledgers[1]);
    explore_thread(close_and_visit, NULL);
    explore_join();
    model_home_drain(&model);
    counts = pirn__group_read(&model.group);
    for (int i = 0; i < 2; i++)
        pirn__ledger_read_ends(&ledgers[i], &counts);
    EXPLORE_CHECK(counts.completed + counts.cancelled == 2);
    EXPLORE_CHECK((int)counts.completed == pirn__load(&polled, relaxed));
    EXPLORE_CHECK((int)counts.cancelled == pirn__load(&dropped, relaxed));
    EXPLORE_CHECK(pirn__slabs_retire(&model.slabs));
}
