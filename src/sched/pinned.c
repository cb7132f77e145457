/* SPDX-License-Identifier: MIT */
/* src/sched/pinned.c - see pinned.h. */
#include "sched/pinned.h"

#include <poll.h>

#include "sched/runtime.h"
#include "sys/sys.h"
#include "task/task.h"

static int own_fd(const struct pirn__worker *worker)
{
    /* relaxed: the number is all there is.  A waker has found that the worker
     * sleeps by name, before which it was stored. */
    return pirn__load(&worker->own_fd, relaxed);
}

bool pirn__pinned_has(const struct pirn__worker *worker)
{
    return own_fd(worker) >= 0;
}

int pirn__pinned_name(struct pirn__worker *worker)
{
    int rc;

    if (pirn__pinned_has(worker))
        return 0;
    rc = pirn__sys->eventfd();
    if (rc < 0)
        return rc;
    /* relaxed: as in own_fd(). */
    pirn__store(&worker->own_fd, rc, relaxed);
    return 0;
}

int pirn__pinned_prepare(struct pirn__worker *worker)
{
    int rc = pirn__pinned_name(worker);

    if (rc < 0)
        return rc;
    worker->keeps_thread = true;
    pirn__worker_look_soon(worker);
    return 0;
}

void pirn__pinned_wake(struct pirn__worker *worker)
{
    /* seq_cst [worker.named_sleep]: after the push; against a worker that says
     * it sleeps and then looks at its inbox. */
    if (pirn__load(&worker->named_sleep, seq_cst) == 0)
        return;
    /* relaxed: of several wakers one writes. */
    if (pirn__swap(&worker->named_sleep, 0, relaxed) != 0)
        (void)pirn__sys->eventfd_signal(own_fd(worker));
}

void pirn__pinned_push(struct pirn__worker *worker, pirn_slink *link)
{
    pirn__inbox_push(&worker->pinned, link);
    pirn__pinned_wake(worker);
}

pirn_slink *pirn__pinned_pop(struct pirn__worker *worker)
{
    if (pirn__queue_empty(&worker->pinned_ready))
        pirn__inbox_take(&worker->pinned, &worker->pinned_ready);
    return pirn__queue_pop(&worker->pinned_ready);
}

bool pirn__pinned_has_some(struct pirn__worker *worker)
{
    return !pirn__queue_empty(&worker->pinned_ready) ||
           pirn__inbox_has_some(&worker->pinned);
}

void pirn__pinned_take_deferred(struct pirn__worker *worker,
                                struct pirn__queue *taken)
{
    struct pirn__queue deferred = {0};
    pirn_slink *link;

    pirn__inbox_take(&worker->deferred, &deferred);
    while ((link = pirn__queue_pop(&deferred)) != NULL) {
        struct pirn__task *task = pirn__task_of_link(link);

        if (pirn__state_is_pinned(pirn__task_state(task)))
            pirn__pinned_push(worker, link);
        else
            pirn__queue_push(taken, link);
    }
}

void pirn__pinned_nudge(struct pirn__pool *pool)
{
    /* seq_cst [pool.pinned_apart]: after we left the set; against one that says
     * it sleeps apart and then looks whether anybody is in the set. */
    if (pirn__load(&pool->pinned_apart, seq_cst) == 0)
        return;
    for (uint32_t i = 0; i < pool->count; i++) {
        struct pirn__worker *worker = pool->workers[i];

        /* seq_cst [worker.named_sleep]: as in pirn__pinned_wake(). */
        if (pirn__load(&worker->named_sleep, seq_cst) != 0) {
            pirn__pinned_wake(worker);
            return;
        }
    }
}

/* Count as a sleeper of the shared set, or, if there is another, apart from it.
 * True: in the set. */
static bool choose_place(struct pirn__worker *worker, bool searching)
{
    struct pirn__pool *pool = worker->pool;

    /* seq_cst [pool.pinned_apart]: before the look at the sleepers; against the
     * last of them, who leaves and then looks here. */
    pirn__add(&pool->pinned_apart, 1, seq_cst);
    if (pirn__idle_sleepers(&pool->idle) > 0) {
        if (searching)
            (void)pirn__idle_stop_search(&pool->idle);
        return false;
    }
    /* relaxed: we are in the set after all, where everybody finds us. */
    pirn__sub(&pool->pinned_apart, 1, relaxed);
    pirn__idle_enter_sleep(&pool->idle, searching);
    return true;
}

static void wait_by_name(struct pirn__worker *worker, bool in_set)
{
    struct pirn__pool *pool = worker->pool;
    struct pollfd fds[2] = {
        {.fd = own_fd(worker), .events = POLLIN},
        {.fd = pirn__reactor_fd(pool->rt->home.reactor), .events = POLLIN},
    };
    uint64_t count;

    pirn__count(&worker->counters.parks);
    (void)pirn__sys->poll(fds, in_set ? 2 : 1, PIRN_NEVER);
    if (fds[0].revents != 0)
        (void)pirn__sys->read(fds[0].fd, &count, sizeof count);
}

/* Apart, while nobody is in the set any more: the last one may have looked for
 * us before we could be woken by name. */
static bool is_left_alone(const struct pirn__pool *pool, bool in_set)
{
    return !in_set && pirn__idle_sleepers(&pool->idle) == 0;
}

bool pirn__pinned_sleep(struct pirn__worker *worker, bool searching)
{
    struct pirn__pool *pool = worker->pool;
    bool in_set = choose_place(worker, searching);

    /* seq_cst [worker.named_sleep]: before the last look at the queues, and at
     * the sleepers. */
    pirn__store(&worker->named_sleep, 1, seq_cst);
    if (!pool->tasks->has_some(worker) && !is_left_alone(pool, in_set) &&
        !pirn__pool_is_stopped(pool))
        wait_by_name(worker, in_set);
    /* relaxed: a waker that still sees 1 only writes once too often. */
    pirn__store(&worker->named_sleep, 0, relaxed);
    if (in_set && pirn__idle_leave_sleep(&pool->idle))
        pirn__pinned_nudge(pool);
    if (!in_set)
        /* relaxed: whoever still counts on us only wakes once too often. */
        pirn__sub(&pool->pinned_apart, 1, relaxed);
    return in_set;
}
