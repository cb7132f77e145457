/* SPDX-License-Identifier: MIT */
/* src/sched/computational.c - the task pool for tasks that compute.
 *
 * Each worker is a slot, and each task belongs to one slot for all its life:
 *
 *   spawned   the slots in turn, by whoever spawns; a pinned task its spawner's
 *   woken     the slot where it ran last, which is always the same
 *
 * so what a task touches stays in one cache, and two tasks of a slot never run
 * at once.  There is no theft: a slot has its own tasks and no others, and a
 * worker without any sleeps beside one that has many.
 *
 * A slot is one queue for each priority class.  The highest that has something
 * is first; every so often a lower one is, so that it gets on beside higher ones
 * that are never empty.  Pinned tasks stand in an inbox of their own (pinned.h)
 * and take turns with all these.
 *
 * Only its own worker can run a task, so it is woken by name, and all workers
 * sleep as those with pinned tasks do: one in the wait set, where it takes
 * events and wakes whom they are for, and the others apart from it.  No wake is
 * lost: a waker pushes (seq_cst) and then looks whether the worker has said that
 * it sleeps; the worker says so (seq_cst) and then looks into its slot.
 *
 * The monitor fires the due timers of a worker that does not move, for they may
 * be of tasks of other slots.  Its tasks it leaves there.
 */
#include "sched/pinned.h"
#include "sched/worker.h"
#include "task/task.h"

/* Runs of a worker between two in which a lower class comes first. */
enum { COMPUTATIONAL_LOWER_INTERVAL = 16 };

static int computational_prepare(struct pirn__worker *worker)
{
    worker->next_slot = worker->index;
    return pirn__pinned_name(worker);
}

/* Each worker and the rest of the world go round by themselves: they need not
 * agree.  A worker begins with its neighbour, for it is busy itself. */
static struct pirn__worker *next_slot(struct pirn__pool *pool,
                                      struct pirn__worker *worker)
{
    uint32_t turn;

    if (worker != NULL) {
        worker->next_slot = (worker->next_slot + 1) % pool->count;
        return pool->workers[worker->next_slot];
    }
    /* relaxed: which slot it is matters to nobody. */
    turn = pirn__add(&pool->next_slot, 1, relaxed);
    return pool->workers[turn % pool->count];
}

static bool computational_push(struct pirn__pool *pool,
                               struct pirn__worker *worker,
                               struct pirn__task *task,
                               enum pirn__origin origin)
{
    pirn__state *state = pirn__task_state(task);
    struct pirn__worker *owner = pool->workers[pirn__state_home(state)];

    if (pirn__state_is_pinned(state)) {
        pirn__pinned_push(owner, &task->cell.link);
        return false;
    }
    if (origin == PIRN__ORIGIN_SPAWN)
        owner = next_slot(pool, worker);
    pirn__injection_push(&owner->slot[pirn__state_class(state)],
                         &task->cell.link);
    if (owner != worker)
        pirn__pinned_wake(owner);
    return false;
}

static bool is_turn_of_lower(const struct pirn__worker *worker)
{
    return pirn__worker_tick(worker) % COMPUTATIONAL_LOWER_INTERVAL == 0;
}

/* The class that comes first this time. */
static enum pirn_priority first_class(const struct pirn__worker *worker)
{
    uint32_t turn = pirn__worker_tick(worker) / COMPUTATIONAL_LOWER_INTERVAL;

    if (!is_turn_of_lower(worker))
        return PIRN_PRIORITY_HIGH;
    return turn % 2 == 0 ? PIRN_PRIORITY_NORMAL : PIRN_PRIORITY_LOW;
}

static pirn_slink *pop_slot(struct pirn__worker *worker)
{
    static const enum pirn_priority order[] = {
        PIRN_PRIORITY_HIGH, PIRN_PRIORITY_NORMAL, PIRN_PRIORITY_LOW};
    pirn_slink *link = pirn__injection_pop(&worker->slot[first_class(worker)]);

    for (uint32_t i = 0; i < PIRN__CLASSES && link == NULL; i++)
        link = pirn__injection_pop(&worker->slot[order[i]]);
    return link;
}

static struct pirn__task *task_of(pirn_slink *link)
{
    return link == NULL ? NULL : pirn__task_of_link(link);
}

static struct pirn__task *computational_pop(struct pirn__worker *worker)
{
    pirn_slink *link = NULL;

    /* Pinned tasks have every other turn, which must not be all those of a lower
     * class. */
    worker->pinned_first = !worker->pinned_first && !is_turn_of_lower(worker);
    if (worker->pinned_first)
        link = pirn__pinned_pop(worker);
    if (link == NULL)
        link = pop_slot(worker);
    if (link == NULL)
        link = pirn__pinned_pop(worker);
    return task_of(link);
}

/* Nothing is shared but what was reclaimed and is only to be dropped. */
static struct pirn__task *computational_pop_shared(struct pirn__worker *worker)
{
    return task_of(pirn__injection_pop(&worker->pool->injection));
}

static bool computational_has_some(struct pirn__worker *worker)
{
    for (uint32_t i = 0; i < PIRN__CLASSES; i++) {
        if (pirn__injection_len(&worker->slot[i]) > 0)
            return true;
    }
    return pirn__pinned_has_some(worker);
}

static uint64_t computational_rescue(struct pirn__worker *stuck)
{
    (void)stuck;
    return 0;
}

static uint64_t computational_reclaim(struct pirn__worker *stuck)
{
    struct pirn__queue taken = {0};
    uint64_t count = 0;

    pirn__pinned_take_deferred(stuck, &taken);
    for (uint32_t i = 0; i < PIRN__CLASSES; i++)
        (void)pirn__injection_take(&stuck->slot[i], &taken, UINT64_MAX);
    for (pirn_slink *link = taken.head; link != NULL; link = link->next_)
        count++;
    if (count > 0)
        pirn__injection_push_all(&stuck->pool->injection, &taken, count);
    return count;
}

const struct pirn__taskpool_ops pirn__computational_ops = {
    .name = "computational",
    .prepare = computational_prepare,
    .push = computational_push,
    .pop = computational_pop,
    .pop_shared = computational_pop_shared,
    .has_some = computational_has_some,
    .rescue = computational_rescue,
    .reclaim = computational_reclaim,
};
