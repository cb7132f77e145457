/* SPDX-License-Identifier: MIT */
/* src/sched/stealable_model.c - the queues of a worker between their owner, a
 * thief, the monitor and threads outside; and who sleeps or naps meanwhile.
 *
 * Who naps does not wake up by himself either, so that a delay shows as a
 * deadlock.  What a worker has taken over from outside is its own from then on,
 * and may wait for the end of a nap.
 */
#include "engine/model_pool.h"

static struct model_pool model;

static struct pirn__worker *owner(void)
{
    return model_worker(&model, 0);
}

static struct pirn__worker *other(void)
{
    return model_worker(&model, 1);
}

/* The other worker rescues, and takes what it finds. */
static void rescue(void *arg)
{
    (void)arg;
    model_become(other());
    (void)model.pool->tasks->rescue(owner());
    if (model_pop_shared(&model, other()) >= 0)
        (void)model_pop(&model, other());
}

/* Goal: a task in the LIFO slot is run by its owner or rescued, not both; nor
 * is one that it displaces. */
MODEL(stealable_slot_between_owner_and_rescue, .preemptions = 4,
      .may_leak = true)
{
    model_pool_begin(&model);
    model_become(owner());
    explore_thread(rescue, NULL);
    model_push_here(&model, owner(), 0, PIRN__ORIGIN_WAKE);
    model_push_here(&model, owner(), 1, PIRN__ORIGIN_WAKE);
    (void)model_pop(&model, owner());
    (void)model_pop(&model, owner());
    explore_join();
    model_pool_end(&model, 2);
}

/* Goal: the same for one that has yielded, and one in the spill. */
MODEL(stealable_all_queues_between_owner_and_rescue, .preemptions = 2,
      .stale = 2, .may_leak = true)
{
    model_pool_begin(&model);
    model_become(owner());
    for (int i = 0; i < PIRN__RING_SIZE + 1; i++)
        model_push_here(&model, owner(), i, PIRN__ORIGIN_SPAWN);
    explore_thread(rescue, NULL);
    (void)model_pop_shared(&model, owner());
    (void)model_pop(&model, owner());
    explore_join();
    model_pool_end(&model, PIRN__RING_SIZE + 1);
}

static void steal_two(void *arg)
{
    (void)arg;
    model_become(other());
    for (int i = 0; i < 2; i++) {
        if (model_steal(&model, other()) < 0)
            (void)model_pop(&model, other());
    }
}

static void wake_from_outside(void *arg)
{
    (void)arg;
    model_push_outside(&model, 1, PIRN__ORIGIN_WAKE);
}

/* Goal: an inbox is taken whole by its owner or by a thief, while another thread
 * pushes. */
MODEL(stealable_inbox_between_owner_thief_and_pusher, .preemptions = 2,
      .stale = 3, .may_leak = true)
{
    model_pool_begin(&model);
    model_push_outside(&model, 0, PIRN__ORIGIN_WAKE);
    explore_thread(steal_two, NULL);
    explore_thread(wake_from_outside, NULL);
    model_become(owner());
    (void)model_pop(&model, owner());
    (void)model_pop(&model, owner());
    explore_join();
    model_pool_end(&model, 2);
}

/* Goal: a thief takes of a spill while its owner does. */
MODEL(stealable_spill_between_owner_and_thief, .preemptions = 3, .stale = 3,
      .may_leak = true)
{
    model_pool_begin(&model);
    model_become(owner());
    for (int i = 0; i < PIRN__RING_SIZE + 1; i++)
        model_push_here(&model, owner(), i, PIRN__ORIGIN_SPAWN);
    while (model_pop(&model, owner()) >= 0)
        continue;
    explore_thread(steal_two, NULL);
    (void)model_pop_shared(&model, owner());
    explore_join();
    model_pool_end(&model, PIRN__RING_SIZE + 1);
}

/* The other worker, until it has a task. */
static void find_or_sleep(void *arg)
{
    (void)arg;
    model_find_or_sleep(&model);
}

static void find_two_or_sleep(void *arg)
{
    find_or_sleep(arg);
    find_or_sleep(arg);
}

/* The same, but it naps. */
static void find_or_nap(void *arg)
{
    struct pirn__worker *self = other();

    (void)arg;
    model_become(self);
    while (model_find(&model, self) < 0) {
        self->harvest.woken = false;
        EXPLORE_CHECK(pirn__nap_try(self, false, 1));
        if (self->harvest.woken)
            (void)pirn__idle_stop_search(&model.pool->idle);
    }
}

/* Goal: what an owner takes of its inbox and does not run at once finds a
 * worker that saw it nowhere and went to sleep. */
MODEL(stealable_open_inbox_against_sleep, .preemptions = 3, .stale = 2,
      .frozen = true, .may_leak = true)
{
    model_pool_begin(&model);
    model_push_outside(&model, 0, PIRN__ORIGIN_WAKE);
    model_push_outside(&model, 1, PIRN__ORIGIN_WAKE);
    explore_thread(find_or_sleep, NULL);
    model_become(owner());
    (void)model_pop(&model, owner());
    explore_join();
    model_pool_end(&model, 2);
}

/* Goal: the same for a share of what all share, and what is put back. */
MODEL(stealable_open_injection_against_sleep, .preemptions = 3, .stale = 2,
      .frozen = true, .may_leak = true)
{
    int count = 2 + (int)explore_choose(2);

    model_pool_begin(&model);
    for (int i = 0; i < count; i++)
        model_push_outside(&model, i, PIRN__ORIGIN_SPAWN);
    explore_thread(find_or_sleep, NULL);
    model_become(owner());
    (void)model_pop_shared(&model, owner());
    explore_join();
    model_pool_end(&model, count);
}

static void spawn_two_more(void *arg)
{
    (void)arg;
    model_push_outside(&model, 1, PIRN__ORIGIN_SPAWN);
    model_push_outside(&model, 2, PIRN__ORIGIN_SPAWN);
}

/* Goal: the same while more is pushed, of which only what comes to an empty place
 * wakes. */
MODEL(stealable_spawns_and_a_taker_against_sleep, .preemptions = 2, .stale = 2,
      .frozen = true, .may_leak = true)
{
    model_pool_begin(&model);
    model_push_outside(&model, 0, PIRN__ORIGIN_SPAWN);
    explore_thread(find_or_sleep, NULL);
    explore_thread(spawn_two_more, NULL);
    model_become(owner());
    (void)model_pop_shared(&model, owner());
    explore_join();
    model_pool_end(&model, 3);
}

/* Goal: the same for one that went to nap. */
MODEL(stealable_open_injection_against_a_nap, .preemptions = 3, .stale = 2,
      .frozen = true, .may_leak = true)
{
    model_pool_begin(&model);
    for (int i = 0; i < 3; i++)
        model_push_outside(&model, i, PIRN__ORIGIN_SPAWN);
    explore_thread(find_or_nap, NULL);
    model_become(owner());
    (void)model_pop_shared(&model, owner());
    explore_join();
    model_pool_end(&model, 3);
}

/* Goal: the same for a spill, all of which fits into the ring. */
MODEL(stealable_open_spill_against_sleep, .preemptions = 3, .stale = 2,
      .frozen = true, .may_leak = true)
{
    model_pool_begin(&model);
    for (int i = 0; i < 2; i++)
        pirn__injection_push(&owner()->spill,
                             &model_news(&model, i)->cell.link);
    explore_thread(find_or_sleep, NULL);
    model_become(owner());
    (void)model_pop_shared(&model, owner());
    explore_join();
    model_pool_end(&model, 2);
}

/* Goal: a task that a worker spawns meets another one on its way to sleep. */
MODEL(stealable_spawn_against_sleep, .preemptions = 3, .frozen = true,
      .may_leak = true)
{
    model_pool_begin(&model);
    model_become(owner());
    explore_thread(find_or_sleep, NULL);
    model_push_here(&model, owner(), 0, PIRN__ORIGIN_SPAWN);
    explore_join();
}

static void spawn_first(void *arg)
{
    (void)arg;
    model_push_outside(&model, 0, PIRN__ORIGIN_SPAWN);
}

/* Goal: two threads outside spawn, each at a place of its own, and a worker that
 * takes one of the tasks and goes to sleep is there for the other, too. */
MODEL(stealable_two_places_against_sleep, .preemptions = 2, .stale = 2,
      .frozen = true, .may_leak = true)
{
    model_pool_begin(&model);
    explore_thread(find_two_or_sleep, NULL);
    explore_thread(spawn_first, NULL);
    model_push_outside(&model, 1, PIRN__ORIGIN_SPAWN);
    explore_join();
    model_pool_end(&model, 2);
}

/* Goal: the same for one that displaces another from the slot. */
MODEL(stealable_displaced_task_against_sleep, .preemptions = 3,
      .frozen = true, .may_leak = true)
{
    model_pool_begin(&model);
    model_become(owner());
    explore_thread(find_or_sleep, NULL);
    model_push_here(&model, owner(), 0, PIRN__ORIGIN_WAKE);
    model_push_here(&model, owner(), 1, PIRN__ORIGIN_WAKE);
    explore_join();
}

/* Goal: work from outside ends a nap that has begun or is about to, in either
 * queue. */
MODEL(stealable_outside_wake_against_a_nap, .preemptions = 3, .frozen = true,
      .may_leak = true)
{
    model_pool_begin(&model);
    explore_thread(find_or_nap, NULL);
    model_push_outside(&model, 0, explore_choose(2) == 0 ? PIRN__ORIGIN_WAKE
                                                         : PIRN__ORIGIN_SPAWN);
    explore_join();
}

/* Of three workers the second searches and then naps, the third sleeps; whoever
 * has the task lets the other go. */
static void search_and_nap(void *arg)
{
    struct pirn__worker *self = other();
    struct pirn__idle *idle = &model.pool->idle;
    bool searching = pirn__idle_start_search(idle, 3);

    (void)arg;
    model_become(self);
    while (!pirn__pool_is_stopped(model.pool)) {
        if (model_steal(&model, self) >= 0) {
            if (searching)
                (void)pirn__idle_stop_search(idle);
            pirn__pool_stop(model.pool);
            return;
        }
        self->harvest.woken = false;
        EXPLORE_CHECK(pirn__nap_try(self, searching, 1));
        searching = self->harvest.woken;
    }
    pirn__reactor_wake(model.rt->home.reactor);
}

static void sleep_until_stopped(void *arg)
{
    struct pirn__worker *self = model_worker(&model, 2);
    struct pirn__idle *idle = &model.pool->idle;

    (void)arg;
    model_become(self);
    while (!pirn__pool_is_stopped(model.pool)) {
        if (model_steal(&model, self) >= 0) {
            pirn__pool_stop(model.pool);
            return;
        }
        pirn__idle_enter_sleep(idle, false);
        self->harvest.woken = false;
        if (!model.pool->tasks->has_some(self) &&
            !pirn__pool_is_stopped(model.pool))
            (void)pirn__reactor_harvest(model.rt->home.reactor,
                                        &self->harvest, PIRN_NEVER);
        (void)pirn__idle_leave_sleep(idle);
        if (pirn__pool_is_stopped(model.pool))
            pirn__reactor_wake(model.rt->home.reactor);
        else if (self->harvest.woken)
            (void)pirn__idle_stop_search(idle);
    }
}

/* Goal: who ends his search by a nap sees to it that a sleeper gets what was
 * pushed meanwhile, when its pusher counted on the search. */
MODEL(stealable_search_that_ends_in_a_nap, .preemptions = 2, .stale = 2,
      .spurious = -1, .frozen = true, .may_leak = true)
{
    model_pool_begin_with(&model, 3);
    model_become(owner());
    explore_thread(search_and_nap, NULL);
    explore_thread(sleep_until_stopped, NULL);
    model_push_here(&model, owner(), 0, PIRN__ORIGIN_SPAWN);
    explore_join();
    EXPLORE_CHECK(pirn__load(&model.tasks[0].taken, relaxed) == 1);
}

/* What a stop does with a worker that naps. */
static void stop(void *arg)
{
    (void)arg;
    pirn__pool_stop(model.pool);
}

static void nap_until_stopped(void *arg)
{
    (void)arg;
    model_become(other());
    while (!pirn__pool_is_stopped(model.pool))
        EXPLORE_CHECK(pirn__nap_try(other(), false, 1));
}

/* Goal: the end of a pool ends a nap. */
MODEL(stealable_stop_against_a_nap, .preemptions = 4, .frozen = true,
      .may_leak = true)
{
    model_pool_begin(&model);
    explore_thread(nap_until_stopped, NULL);
    explore_thread(stop, NULL);
    explore_join();
}
