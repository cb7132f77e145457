/* SPDX-License-Identifier: MIT */
/* src/sched/stealable.c - the task pool of the multi-thread runtime.
 *
 *   woken by a running task   the LIFO slot of its worker, at most three runs in
 *                             a row; what was there goes to the ring
 *   spawned there, or woken   the ring, bounded; half of a full one goes to the
 *   by an event               spill of its worker
 *   yielded                   the ring, if its worker looks for events before its
 *                             turn; else apart, until it has looked (worker.c)
 *   woken by another thread   the inbox of the worker that ran it last, whole
 *                             for whoever takes it first
 *   spawned by another        the place of that thread (outside.h)
 *   pinned                    its worker's inbox for such, for nobody else
 *
 * Thieves take half of a ring, then a batch of a spill, then whole inboxes, from a
 * random start.  What overflows stays with its worker, and only thieves move it:
 * in a queue of all, tasks that were run by one worker would be run by another
 * the next time, and again, and each time all they touch would change
 * processors.  Thieves leave LIFO slots alone, because two tasks that wake each
 * other are fastest on one worker; the monitor empties the slot of a worker that
 * does not move.
 */
#include "base/assert.h"
#include "sched/pinned.h"
#include "sched/worker.h"
#include "task/task.h"

enum {
    STEALABLE_BATCH = 64,
    STEALABLE_RESCUE = 1024, /* of a spill at once */
    STEALABLE_AHEAD = 16, /* tasks of a spill that are prefetched */
};

/* What was spilled long ago is in no near cache, and in a chain each is waited for
 * before the next is known.  So while they are at hand, each learns of one that
 * stands some way behind it. */
static void tell_ahead(const struct pirn__queue *spilled)
{
    pirn_slink *ahead = spilled->head;

    for (int i = 0; i < STEALABLE_AHEAD && ahead != NULL; i++)
        ahead = ahead->next_;
    for (pirn_slink *link = spilled->head; link != NULL; link = link->next_) {
        pirn__task_of_link(link)->ahead =
            ahead == NULL ? NULL : pirn__task_of_link(ahead);
        if (ahead != NULL)
            ahead = ahead->next_;
    }
}

static void spill(struct pirn__worker *worker, struct pirn__queue *spilled,
                  uint64_t count)
{
    pirn__count(&worker->counters.overflows);
    tell_ahead(spilled);
    pirn__injection_push_all(&worker->spill, spilled, count);
}

/* The ring, or when it is full half of it and the task to the spill. */
static void push_ring(struct pirn__worker *worker, pirn_slink *link)
{
    struct pirn__queue half = {0};
    uint64_t count = 1;

    if (pirn__ring_push(&worker->ring, link))
        return;
    /* While a thief copies, nothing more can be taken out; he makes room, but
     * may have been preempted. */
    if (pirn__ring_overflow(&worker->ring, &half))
        count += PIRN__RING_SIZE / 2;
    pirn__queue_push(&half, link);
    spill(worker, &half, count);
}

/* A batch to the ring, and what has no room there to the spill. */
static void push_ring_all(struct pirn__worker *worker, struct pirn__queue *batch)
{
    uint64_t count = 0;

    pirn__ring_push_all(&worker->ring, batch);
    for (pirn_slink *link = batch->head; link != NULL; link = link->next_)
        count++;
    if (count > 0)
        spill(worker, batch, count);
}

static bool push_here(struct pirn__worker *worker, pirn_slink *link,
                      enum pirn__origin origin)
{
    if (origin == PIRN__ORIGIN_WAKE && worker->turn.task != NULL &&
        !worker->pool->lifo_off) {
        link = pirn__worker_swap_lifo(worker, link);
        if (link == NULL)
            return false;
    }
    push_ring(worker, link);
    return true;
}

static void push_inbox(struct pirn__worker *owner, pirn_slink *link)
{
    /* relaxed: a statistic.  Before the push, so that it is never less than what
     * a taker takes away. */
    pirn__add(&owner->inbox_len, 1, relaxed);
    pirn__inbox_push(&owner->inbox, link);
}

static bool stealable_push(struct pirn__pool *pool, struct pirn__worker *worker,
                           struct pirn__task *task, enum pirn__origin origin)
{
    pirn__state *state = pirn__task_state(task);
    pirn_slink *link = &task->cell.link;

    if (pirn__state_is_pinned(state)) {
        pirn__pinned_push(pool->workers[pirn__state_home(state)], link);
        return false;
    }
    if (worker != NULL)
        return push_here(worker, link, origin);
    if (origin == PIRN__ORIGIN_SPAWN)
        return pirn__outside_push(pool, pirn__local(), task);
    push_inbox(pool->workers[pirn__state_home(state)], link);
    return true;
}

/* Published at once, unless there are such that have a place of their own. */
static void stealable_push_all(struct pirn__worker *worker,
                               struct pirn__queue *batch)
{
    pirn_slink *link;

    if (!worker->keeps_thread) {
        push_ring_all(worker, batch);
        return;
    }
    while ((link = pirn__queue_pop(batch)) != NULL)
        (void)stealable_push(worker->pool, worker, pirn__task_of_link(link),
                             PIRN__ORIGIN_WAKE);
}

/* Take the whole inbox of a worker, whose count of it follows; how many. */
static uint64_t take_inbox(struct pirn__worker *owner,
                           struct pirn__queue *taken)
{
    uint64_t count = 0;

    if (!pirn__inbox_take(&owner->inbox, taken))
        return 0;
    for (pirn_slink *link = taken->head; link != NULL; link = link->next_)
        count++;
    /* relaxed: a statistic; the push that added came before the take. */
    pirn__sub(&owner->inbox_len, count, relaxed);
    return count;
}

/* Move the inbox of a worker to our own queues and return its first. */
static pirn_slink *open_inbox(struct pirn__worker *worker,
                              struct pirn__worker *owner)
{
    struct pirn__queue taken = {0};
    pirn_slink *first;

    if (take_inbox(owner, &taken) == 0)
        return NULL;
    first = pirn__queue_pop(&taken);
    if (pirn__queue_empty(&taken))
        return first;
    push_ring_all(worker, &taken);
    /* Who went to sleep since we took them saw them nowhere. */
    pirn__pool_wake_one(worker->pool);
    return first;
}

static pirn_slink *pop_lifo(struct pirn__worker *worker)
{
    if (!pirn__worker_has_lifo(worker))
        return NULL;
    return pirn__worker_swap_lifo(worker, NULL);
}

static struct pirn__task *task_of(pirn_slink *link)
{
    return link == NULL ? NULL : pirn__task_of_link(link);
}

/* A ring that is never empty must not hold up what others have woken: every so
 * often the inbox comes first. */
static pirn_slink *pop_overdue(struct pirn__worker *worker)
{
    if (!pirn__worker_is_due(worker, worker->inbox_at))
        return NULL;
    worker->inbox_at = pirn__worker_tick(worker) + PIRN__INBOX_INTERVAL;
    return open_inbox(worker, worker);
}

/* The ring and the pinned tasks, if it may have such, turn about, so that neither
 * waits for the other. */
static pirn_slink *pop_in_turn(struct pirn__worker *worker)
{
    pirn_slink *link = NULL;

    if (!worker->keeps_thread)
        return pirn__ring_pop(&worker->ring);
    worker->pinned_first = !worker->pinned_first;
    if (worker->pinned_first)
        link = pirn__pinned_pop(worker);
    if (link == NULL)
        link = pirn__ring_pop(&worker->ring);
    if (link == NULL)
        link = pirn__pinned_pop(worker);
    return link;
}

static struct pirn__task *stealable_pop(struct pirn__worker *worker)
{
    pirn_slink *link = pop_overdue(worker);

    if (link == NULL && worker->lifo_runs < PIRN__LIFO_RUNS) {
        link = pop_lifo(worker);
        if (link != NULL) {
            worker->lifo_runs++;
            pirn__count(&worker->counters.lifo_runs);
            return pirn__task_of_link(link);
        }
    }
    worker->lifo_runs = 0;
    if (link == NULL)
        link = pop_in_turn(worker);
    if (link == NULL)
        link = open_inbox(worker, worker);
    if (link == NULL)
        link = pop_lifo(worker);
    return task_of(link);
}

/* Move at most `limit` of a queue, and no more than there is room for, to our own
 * and return the first.  What does not fit would lose its place in the order, and
 * goes to `rests`.  *moved: there were others besides.  Who went to sleep while we
 * had all in our hands saw neither those nor what we put there. */
static pirn_slink *open_queue(struct pirn__worker *worker,
                              struct pirn__injection *queue,
                              struct pirn__injection *rests, uint64_t limit,
                              bool *moved)
{
    uint64_t room = 1 + PIRN__RING_SIZE - pirn__ring_len(&worker->ring);
    struct pirn__queue taken = {0};
    pirn_slink *first;

    if (pirn__injection_take_to(queue, rests, &taken,
                                room < limit ? room : limit) == 0)
        return NULL;
    first = pirn__queue_pop(&taken);
    *moved = !pirn__queue_empty(&taken);
    if (*moved)
        push_ring_all(worker, &taken);
    return first;
}

/* Our share of a queue that all share, and that has `length`. */
static pirn_slink *open_share(struct pirn__worker *worker,
                              struct pirn__injection *queue,
                              struct pirn__injection *rests, uint64_t length)
{
    struct pirn__pool *pool = worker->pool;
    uint64_t share = length / pool->count + 1;
    bool moved = false;
    pirn_slink *link =
        open_queue(worker, queue, rests,
                   share < STEALABLE_BATCH ? share : STEALABLE_BATCH, &moved);

    if (link != NULL && pirn__injection_len(rests) > 0)
        pirn__pool_wake_any(pool);
    else if (moved)
        pirn__pool_wake_one(pool);
    return link;
}

/* Whoever yields alone comes here each time, and finds them empty. */
static inline pirn_slink *open_injection(struct pirn__worker *worker,
                                         struct pirn__injection *queue,
                                         struct pirn__injection *rests)
{
    uint64_t length = pirn__injection_len(queue);

    return length == 0 ? NULL : open_share(worker, queue, rests, length);
}

/* What has been waiting there for longest comes first. */
static pirn_slink *open_place(struct pirn__worker *worker,
                              struct pirn__outside *outside)
{
    pirn_slink *link =
        open_injection(worker, &outside->front, &outside->front);

    if (link == NULL)
        link = open_injection(worker, &outside->queue, &outside->front);
    return link;
}

/* The places where threads outside spawn, and what was rescued: each in turn. */
static pirn_slink *open_shared(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;
    pirn_slink *link = NULL;

    for (int i = 0; i <= PIRN__OUTSIDES && link == NULL; i++) {
        uint32_t next = worker->next_shared;

        worker->next_shared = next < PIRN__OUTSIDES ? next + 1 : 0;
        if (next < PIRN__OUTSIDES)
            link = open_place(worker, &pool->outside[next]);
        else
            link = open_injection(worker, &pool->injection, &pool->injection);
    }
    return link;
}

/* Of our own only what has been fetched meanwhile: each that is taken has another
 * one fetched, and what runs before the next take is the time for it. */
static pirn_slink *open_spill(struct pirn__worker *worker,
                              struct pirn__worker *owner)
{
    uint64_t limit = owner == worker ? STEALABLE_AHEAD : STEALABLE_BATCH;
    bool moved = false;
    pirn_slink *link =
        open_queue(worker, &owner->spill, &owner->spill, limit, &moved);

    if (moved || (link != NULL && pirn__injection_len(&owner->spill) > 0))
        pirn__pool_wake_one(worker->pool);
    return link;
}

/* The shared queues and our spill, turn about, so that neither waits for the
 * other. */
static struct pirn__task *stealable_pop_shared(struct pirn__worker *worker)
{
    pirn_slink *link = NULL;

    worker->spill_first = !worker->spill_first;
    if (worker->spill_first)
        link = open_spill(worker, worker);
    if (link == NULL)
        link = open_shared(worker);
    if (link == NULL)
        link = open_spill(worker, worker);
    return task_of(link);
}

static struct pirn__task *stealable_steal(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;
    uint32_t start = pirn__prng_below(&worker->prng, pool->count);
    pirn_slink *link = NULL;

    for (uint32_t i = 0; i < pool->count && link == NULL; i++) {
        struct pirn__worker *victim =
            pool->workers[(start + i) % pool->count];

        if (victim == worker)
            continue;
        link = pirn__ring_steal(&victim->ring, &worker->ring);
        if (link == NULL)
            link = open_spill(worker, victim);
        if (link == NULL)
            link = open_inbox(worker, victim);
    }
    if (link != NULL)
        pirn__count(&worker->counters.steals);
    return task_of(link);
}

static bool stealable_has_outside(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    if (pirn__outside_len(pool) > 0 ||
        pirn__injection_len(&pool->injection) > 0)
        return true;
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pirn__inbox_has_some(&pool->workers[i]->inbox))
            return true;
    }
    return false;
}

static bool stealable_has_some(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    if (stealable_has_outside(worker) || pirn__pinned_has_some(worker))
        return true;
    for (uint32_t i = 0; i < pool->count; i++) {
        struct pirn__worker *other = pool->workers[i];

        if (pirn__ring_len(&other->ring) > 0 ||
            pirn__injection_len(&other->spill) > 0)
            return true;
    }
    return false;
}

/* Move all to the queue of all, but of the spill no more than `limit`. */
static uint64_t give_up(struct pirn__worker *stuck, uint64_t limit)
{
    struct pirn__queue taken = {0};
    pirn_slink *link = pirn__worker_swap_lifo(stuck, NULL);
    uint64_t count = 0;
    pirn_slink *next;

    (void)take_inbox(stuck, &taken);
    if (link != NULL)
        pirn__queue_push(&taken, link);
    pirn__pinned_take_deferred(stuck, &taken);
    /* Thieves reach ring and spill, but where all others are busy there are
     * none. */
    (void)pirn__ring_take(&stuck->ring, &taken);
    (void)pirn__injection_take(&stuck->spill, &taken, limit);
    for (link = taken.head; link != NULL; link = next) {
        next = link->next_;
        count++;
    }
    if (count > 0)
        pirn__injection_push_all(&stuck->pool->injection, &taken, count);
    return count;
}

/* A worker that starts a million tasks in one poll does not move either, and they
 * are best run where they are.  So the spill is taken from by parts, as long as
 * the worker is stuck. */
static uint64_t stealable_rescue(struct pirn__worker *stuck)
{
    return give_up(stuck, STEALABLE_RESCUE);
}

static uint64_t stealable_reclaim(struct pirn__worker *stuck)
{
    return give_up(stuck, UINT64_MAX);
}

static int stealable_prepare(struct pirn__worker *worker)
{
    worker->spill.tells_ahead = true;
    worker->by_ring = !worker->pool->rt->home.stamps;
    if (worker->by_ring)
        pirn__spawn_usually(worker->pool->rt, &worker->turn);
    if (worker->by_ring && !worker->pool->lifo_off)
        worker->turn.queue_woken = pirn__pool_queue_woken;
    for (int i = 0; i < PIRN__OUTSIDES; i++) {
        worker->pool->outside[i].keeps_tasks = true;
        worker->pool->outside[i].queue.tells_ahead = true;
        worker->pool->outside[i].front.tells_ahead = true;
    }
    return 0;
}

const struct pirn__taskpool_ops pirn__stealable_ops = {
    .name = "stealable",
    .prepare = stealable_prepare,
    .push = stealable_push,
    .push_all = stealable_push_all,
    .pop = stealable_pop,
    .pop_shared = stealable_pop_shared,
    .steal = stealable_steal,
    .has_some = stealable_has_some,
    .has_outside = stealable_has_outside,
    .rescue = stealable_rescue,
    .reclaim = stealable_reclaim,
};
