/* SPDX-License-Identifier: MIT */
/* src/sched/worker.c - the loop of a worker.
 *
 *     own queues -> shared queue -> look for events -> search -> sleep
 *
 * Every few dozen runs the shared queue comes first, and every so often the
 * worker looks for events itself, but only if nobody sleeps: a sleeper in the
 * wait set is told of each event by the kernel.
 *
 * Sleeping.  All idle workers wait on one epoll set, in which are the wake
 * descriptor, an alarm for each worker's wheel and the monitor's.  The kernel
 * wakes one thread for each event.  Whoever harvests the wake descriptor owns
 * that wake and searches; idle.h says why none is lost.
 *
 * A worker whose searches bring little naps between them; see nap.h.
 */
#include "sched/worker.h"

#include <errno.h>

#include "base/assert.h"
#include "sched/histogram.h"
#include "sched/nap.h"
#include "sched/pinned.h"
#include "sched/runtime.h"
#include "sys/sys.h"
#include "task/run_hot.h"

/* The wake that was claimed. */
static void send_wake(struct pirn__pool *pool)
{
    struct pirn__worker *self = pirn__worker_here(pool);

    if (self != NULL)
        pirn__count(&self->counters.wakes);
    pirn__reactor_wake(pool->rt->home.reactor);
}

void pirn__pool_wake_one(struct pirn__pool *pool)
{
    if (pool->tasks->steal != NULL && pirn__idle_claim_wake(&pool->idle))
        send_wake(pool);
}

void pirn__pool_wake_any(struct pirn__pool *pool)
{
    if (pool->tasks->steal != NULL && pirn__idle_claim_any(&pool->idle))
        send_wake(pool);
}

static void set_state(struct pirn__worker *worker,
                      enum pirn__worker_state state)
{
    /* seq_cst [worker.state]: against a thread that arms a timer on this wheel
     * and then looks whether it has to set the alarm; see alarm.c. */
    pirn__store(&worker->state, (uint32_t)state, seq_cst);
}

/* Nobody to search at, to be helped or to be rescued by. */
static bool is_alone(const struct pirn__worker *worker)
{
    return worker->pool->count == 1;
}

/* Running. */

static bool may_share(const struct pirn__worker *worker)
{
    return !worker->searching && pirn__idle_sleepers(&worker->pool->idle) > 0;
}

/* Something else comes before the ring, and may take its time: a task that is
 * alone there has not been announced. */
static void share_lone(struct pirn__worker *worker)
{
    if (may_share(worker) && pirn__ring_len(&worker->ring) == 1)
        pirn__pool_wake_one(worker->pool);
}

/* True if we run something else before the ring. */
static bool has_sooner(struct pirn__worker *worker)
{
    return pirn__worker_has_lifo(worker) ||
           (worker->keeps_thread && pirn__pinned_has_some(worker));
}

PIRN__COLD static void share_ring(struct pirn__worker *worker)
{
    if (pirn__ring_len(&worker->ring) > (has_sooner(worker) ? 0u : 1u))
        pirn__pool_wake_one(worker->pool);
}

/* What events and timers made ready comes in batches, so it is looked at once,
 * after the batch: one task we run ourselves, for more we want help. */
static inline void share_batch(struct pirn__worker *worker)
{
    if (may_share(worker))
        share_ring(worker);
}

/* True once in `ns`: so long after *since_ns, which then is now. */
static bool has_passed(uint64_t *since_ns, uint64_t ns)
{
    uint64_t now = pirn__sys->clock_ns();

    if (now - *since_ns < ns)
        return false;
    *since_ns = now;
    return true;
}

/* Turns for want of budget have taken long since the last look: their operations
 * are no locks but calls of the kernel, or have work between them.  A clock read a
 * turn is little beside what the budget was spent for. */
static bool has_spent_long(struct pirn__worker *worker)
{
    return has_passed(&worker->spent_ns, PIRN__SPENT_NS);
}

static bool is_sooner(uint32_t tick, uint32_t other)
{
    return (int32_t)(tick - other) < 0;
}

static uint32_t sooner(uint32_t one, uint32_t other)
{
    return is_sooner(one, other) ? one : other;
}

/* The next time that something comes before the ring; pinned tasks may always. */
static void plan_look(struct pirn__worker *worker)
{
    worker->look_at = sooner(worker->inbox_at,
                             sooner(worker->shared_at, worker->events_at));
    if (worker->keeps_thread)
        pirn__worker_look_soon(worker);
}

/* All that does not wait in the ring comes first at this tick, if not before. */
PIRN__COLD static void look_by(struct pirn__worker *worker, uint32_t tick)
{
    worker->shared_at = sooner(worker->shared_at, tick);
    worker->inbox_at = sooner(worker->inbox_at, tick);
    worker->events_at = sooner(worker->events_at, tick);
    plan_look(worker);
}

/* Must the task that has just run wait apart for a look at the events?  Not for
 * want of budget, where the others come first in any case, which is so in a ring;
 * but with those who do wait for that look.  Tasks that come back again and again
 * keep the ring from running empty, which is when a worker looks elsewhere: so it
 * does now and then, and what it finds comes first. */
static bool waits_for_look(struct pirn__worker *worker)
{
    if (worker->turn.deferred != PIRN__DEFER_TO_OTHERS ||
        worker->pool->tasks->steal == NULL ||
        pirn__inbox_has_some(&worker->deferred))
        return pirn__turn_is_deferred(&worker->turn);
    worker->spent_turns++;
    if (worker->spent_turns < PIRN__SPENT_TURNS && !has_spent_long(worker))
        return false;
    look_by(worker, pirn__worker_tick(worker));
    return true;
}

PIRN__COLD static void put_back_elsewhere(struct pirn__worker *worker,
                                          struct pirn__task *task)
{
    pirn__histograms_stamp(&worker->pool->rt->home, task);
    if (pirn__turn_is_deferred(&worker->turn))
        pirn__count(&worker->counters.yields);
    if (waits_for_look(worker)) {
        pirn__inbox_push(&worker->deferred, &task->cell.link);
        return;
    }
    (void)worker->pool->tasks->push(worker->pool, worker, task,
                                    PIRN__ORIGIN_WAKE);
}

/* Who has yielded waits in the ring like anybody else, if the look at the events
 * comes before its turn; thieves may bring that forward.  Not while others wait
 * apart for that look. */
__attribute__((noinline)) static void
put_back_deferred(struct pirn__worker *worker, struct pirn__task *task)
{
    uint32_t turn = pirn__worker_tick(worker) + pirn__ring_len(&worker->ring);

    if (worker->turn.deferred != PIRN__DEFER_TO_EVENTS ||
        pirn__inbox_has_some(&worker->deferred) ||
        !pirn__ring_push(&worker->ring, &task->cell.link)) {
        put_back_elsewhere(worker, task);
        return;
    }
    pirn__count(&worker->counters.yields);
    if (is_sooner(turn, worker->events_at))
        look_by(worker, turn);
}

/* A task that wants to run again. */
static inline void put_back(struct pirn__worker *worker,
                            struct pirn__task *task, bool by_ring)
{
    if (!by_ring || pirn__state_is_pinned(pirn__task_state(task)))
        put_back_elsewhere(worker, task);
    else if (pirn__turn_is_deferred(&worker->turn))
        put_back_deferred(worker, task);
    else if (!pirn__ring_push(&worker->ring, &task->cell.link))
        put_back_elsewhere(worker, task);
    /* As share_batch(), of one who has found what it searched for. */
    if (pirn__idle_sleepers(&worker->pool->idle) > 0)
        share_ring(worker);
}

__attribute__((always_inline)) static inline bool
poll_task(struct pirn__worker *worker, struct pirn__task *task,
          struct pirn__loop *loop, bool by_ring, bool *again)
{
    bool wants_again, has_turn;

    if (by_ring || worker->histograms == NULL)
        return pirn__task_run_here(task, loop, again);
    /* Not by `again` itself, which then could be in no register. */
    has_turn = pirn__histograms_run(worker->histograms, task, loop,
                                    &wants_again);
    *again = wants_again;
    return has_turn;
}

/* A shutdown that waits for the last task looks again: before each sleep, and
 * where a task has ended on a thread that will not sleep. */
static void tell_shutdown(struct pirn__pool *pool)
{
    if (pirn__runtime_phase(pool->rt) != PIRN__PHASE_OPEN)
        pool->rt->home.ops->wake(&pool->rt->home);
}

/* A task that has lost its worker waits for another one.  After a stop by force
 * there is none, and it only has to be dropped: here. */
PIRN__COLD static void leave_alone(struct pirn__pool *pool,
                                   struct pirn__task *task, bool again)
{
    enum pirn__wake wake = again ? PIRN__WAKE_SUBMIT : PIRN__WAKE_NONE;

    /* Ends: every task was aborted before the stop. */
    while (wake == PIRN__WAKE_SUBMIT && pirn__pool_is_stopped(pool) &&
           pirn__runtime_phase(pool->rt) >= PIRN__PHASE_ABORTING)
        wake = pirn__task_run(task, &pirn__local()->lone, NULL);
    pirn__task_submit(task, wake);
    tell_shutdown(pool);
}

/* Run a task; false if it gave the core to another thread meanwhile, which then
 * must not be touched any more.  `by_ring`: as the worker's, or false. */
__attribute__((always_inline)) static inline bool
run_task(struct pirn__worker *worker, struct pirn__task *task,
         struct pirn__loop *loop, bool by_ring)
{
    bool again;

    pirn__count(&worker->counters.polls);
    if (!poll_task(worker, task, loop, by_ring, &again)) {
        /* Constant, as long as this thread has not ended. */
        leave_alone(worker->pool, pirn__loop_task(loop), again);
        return false;
    }
    if (again)
        put_back(worker, pirn__loop_task(loop), by_ring);
    return true;
}

int pirn__worker_hand_off(struct pirn__local *local)
{
    struct pirn__worker *worker = local->worker;
    struct pirn__task *task = worker->turn.task;
    struct pirn__home *home = local->driving;
    int rc;

    if (worker->keeps_thread)
        return -EPERM;
    local->lone = (struct pirn__turn){.home = home,
                                      .timers = home->timers,
                                      .task = task,
                                      .own_waker = worker->turn.own_waker,
                                      .worker_index = worker->index,
                                      .budget = worker->turn.budget,
                                      .deferred = worker->turn.deferred,
                                      .loan = worker->turn.loan};
    worker->turn.task = NULL;
    local->turn = &local->lone;
    local->worker = NULL;
    local->driving = NULL;
    rc = pirn__pool_start_thread(worker);
    if (rc < 0) {
        local->driving = home;
        local->worker = worker;
        local->turn = &worker->turn;
        worker->turn.task = task;
    }
    return rc;
}

/* Those that yielded may run again. */
static void release_deferred(struct pirn__worker *worker)
{
    struct pirn__queue ready = {0};
    pirn_slink *link;

    if (!pirn__inbox_take(&worker->deferred, &ready))
        return;
    if (worker->pool->tasks->push_all != NULL) {
        worker->pool->tasks->push_all(worker, &ready);
        return;
    }
    while ((link = pirn__queue_pop(&ready)) != NULL)
        (void)worker->pool->tasks->push(worker->pool, worker,
                                        pirn__task_of_link(link),
                                        PIRN__ORIGIN_WAKE);
}

/* A harvested wake is ours, and counts as a searcher: we search from now on.
 * The wake of a stop was not claimed, and is passed on at once: we may be about
 * to run a task that does not come back. */
static void take_wake(struct pirn__worker *worker)
{
    if (!worker->harvest.woken)
        return;
    if (pirn__pool_is_stopped(worker->pool)) {
        pirn__reactor_wake(worker->pool->rt->home.reactor);
        return;
    }
    if (worker->searching) {
        /* One search is enough for both. */
        (void)pirn__idle_stop_search(&worker->pool->idle);
        return;
    }
    worker->searching = true;
    if (!is_alone(worker))
        pirn__nap_begin_hunt(worker, 0);
}

/* Whether to look at the wait set.  Where it holds no descriptors a worker that is
 * awake needs little of it: it sees to its wheel without an alarm, and a wake is for
 * the next sleep.  What is left is the monitor, which can wait a little, and watches
 * nobody who is alone.  But looks that wait for a timer are counted, as what they are
 * with the system call. */
static bool may_have_events(struct pirn__worker *worker)
{
    const struct pirn__pool *pool = worker->pool;

    /* A worker that comes back late finds no set any more. */
    if (pirn__idle_sleepers(&pool->idle) > 0 || pirn__pool_is_stopped(pool))
        return false;
    return pirn__reactor_is_watching(pool->rt->home.reactor) ||
           worker->waits > 0 ||
           (!is_alone(worker) &&
            has_passed(&worker->looked_ns, PIRN__LOOK_NS));
}

/* Look for events without waiting. */
static void look_for_events(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    if (may_have_events(worker)) {
        (void)pirn__reactor_harvest(pool->rt->home.reactor, &worker->harvest,
                                    PIRN_EXPIRED);
        take_wake(worker);
    }
    worker->spent_turns = 0;
    worker->turn.now_ns = 0;
    pirn__worker_fire_timers(worker);
    release_deferred(worker);
    share_batch(worker);
}

/* No longer a searcher; the last one sees to it that the next pair of hands
 * comes. */
static void stop_search(struct pirn__worker *worker)
{
    const struct pirn__taskpool_ops *tasks = worker->pool->tasks;

    if (!worker->searching)
        return;
    worker->searching = false;
    if (!pirn__idle_stop_search(&worker->pool->idle) || is_alone(worker))
        return;
    if (tasks->has_outside(worker))
        pirn__pool_wake_any(worker->pool);
    else if (tasks->has_some(worker))
        pirn__pool_wake_one(worker->pool);
}

/* Something to run was found after a search or a sleep: now the monitor has
 * somebody to watch. */
static void leave_rest(struct pirn__worker *worker)
{
    if (worker->rested && !is_alone(worker))
        pirn__monitor_arm(worker->pool);
    worker->rested = false;
    pirn__nap_forget_wake(worker);
    stop_search(worker);
}

/* Who was woken and has neither rested nor searched since has been here before,
 * so `hunting` need not be asked. */
static void found_work(struct pirn__worker *worker)
{
    if (worker->rested || worker->searching)
        leave_rest(worker);
}

/* A task woken by the one before shares its budget. */
static void renew_budget(struct pirn__worker *worker)
{
    if (worker->lifo_runs == 0)
        worker->turn.budget = PIRN__COOP_BUDGET;
}

/* The next one, by way of all that may be due. */
static struct pirn__task *next_in_turn(struct pirn__worker *worker)
{
    const struct pirn__taskpool_ops *tasks = worker->pool->tasks;
    struct pirn__task *task = NULL;

    if (pirn__worker_is_due(worker, worker->shared_at)) {
        worker->shared_at =
            pirn__worker_tick(worker) + worker->pool->rt->shared_interval;
        task = tasks->pop_shared(worker);
        if (task != NULL) {
            worker->lifo_runs = 0;
            share_lone(worker);
        }
    }
    if (pirn__worker_is_due(worker, worker->events_at)) {
        worker->events_at =
            pirn__worker_tick(worker) + worker->pool->rt->event_interval;
        look_for_events(worker);
    }
    if (task == NULL)
        task = tasks->pop(worker);
    if (task == NULL) {
        worker->lifo_runs = 0;
        task = tasks->pop_shared(worker);
    }
    return task;
}

static inline bool take_lifo(struct pirn__worker *worker, pirn_slink **link)
{
    if (!pirn__worker_has_lifo(worker) || worker->lifo_runs >= PIRN__LIFO_RUNS)
        return false;
    *link = pirn__worker_swap_lifo(worker, NULL);
    if (*link == NULL)
        return false;
    worker->lifo_runs++;
    pirn__count(&worker->counters.lifo_runs);
    return true;
}

/* Where the ring is empty, the pool, asked next, has to know of the runs. */
static inline bool take_itself(struct pirn__worker *worker, pirn_slink **link)
{
    if (take_lifo(worker, link))
        return true;
    if (!pirn__ring_take_first(&worker->ring, link))
        return false;
    worker->lifo_runs = 0;
    worker->turn.budget = PIRN__COOP_BUDGET;
    return true;
}

/* The next one, where the pool would take it from the slot or the ring, which we
 * do without it, and nothing else is to be done. */
static inline bool next_at_hand(struct pirn__worker *worker,
                                struct pirn__task **task)
{
    pirn_slink *link;

    if (pirn__worker_is_due(worker, worker->look_at) ||
        !take_itself(worker, &link))
        return false;
    *task = pirn__task_of_link(link);
    return true;
}

/* Become a searcher, unless there are enough.  One who sees something does in
 * any case: it could not go to sleep, and would come back here until one of the
 * others is scheduled. */
static bool start_search(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    if (!worker->searching)
        worker->searching = pirn__idle_start_search(&pool->idle, pool->count);
    if (!worker->searching && pool->tasks->has_some(worker))
        worker->searching = pirn__idle_start_search(&pool->idle, UINT32_MAX);
    return worker->searching;
}

static struct pirn__task *search(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;
    struct pirn__task *task;

    if (pool->tasks->steal == NULL || is_alone(worker) || !start_search(worker))
        return NULL;
    task = pool->tasks->steal(worker);
    if (task != NULL)
        pirn__nap_begin_hunt(worker, 1 + pirn__ring_len(&worker->ring));
    return task;
}

/* Sleeping. */

static void wait_for_event(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    pirn__count(&worker->counters.parks);
    worker->harvested = pirn__reactor_harvest(pool->rt->home.reactor,
                                              &worker->harvest, PIRN_NEVER);
}

static void sleep_in_set(struct pirn__worker *worker, bool searching)
{
    struct pirn__pool *pool = worker->pool;

    pirn__idle_enter_sleep(&pool->idle, searching);
    /* After we are counted: what was pushed before a waker could see us.  The
     * wake of a stop stays in the set. */
    if (!pool->tasks->has_some(worker))
        wait_for_event(worker);
    if (pirn__idle_leave_sleep(&pool->idle))
        pirn__pinned_nudge(pool);
}

/* The same for one with pinned tasks. */
static void sleep_by_name(struct pirn__worker *worker, bool searching)
{
    if (pirn__pinned_sleep(worker, searching))
        (void)pirn__reactor_harvest(worker->pool->rt->home.reactor,
                                    &worker->harvest, PIRN_EXPIRED);
}

/* A hook may take its time: nobody counts on our search meanwhile. */
static void tell_hook(struct pirn__worker *worker, pirn_worker_fn *hook)
{
    if (hook == NULL)
        return;
    stop_search(worker);
    pirn__hooks_tell(&worker->pool->rt->hooks, hook, worker->index);
}

static void sleep_until_event(struct pirn__worker *worker, uint64_t nap_ns)
{
    struct pirn__pool *pool = worker->pool;
    bool searching;

    tell_hook(worker, pool->rt->hooks.on_park);
    searching = worker->searching;
    worker->harvest.woken = false;
    worker->searching = false;
    if (nap_ns == 0)
        pirn__slabs_trim(&pool->rt->slabs, &worker->cache);
    set_state(worker, PIRN__WORKER_SLEEPING);
    pirn__worker_set_alarm(worker);
    tell_shutdown(pool);
    if (pirn__pinned_has(worker))
        sleep_by_name(worker, searching);
    else if (nap_ns == 0 || !pirn__nap_try(worker, searching, nap_ns))
        sleep_in_set(worker, searching);
    take_wake(worker);
    worker->turn.now_ns = 0;
    set_state(worker, PIRN__WORKER_RUNNING);
    tell_hook(worker, pool->rt->hooks.on_unpark);
    share_batch(worker);
    worker->rested = true;
}

/* A worker that is alone has nowhere to search, and its sleep is a look for events
 * as well.  To look before that costs a system call each time, and saves the
 * ceremony of a sleep where events come in crowds. */
static bool looks_first(struct pirn__worker *worker)
{
    /* relaxed: who arms an entry from elsewhere is seen before the sleep. */
    return !is_alone(worker) || worker->harvested > 1 ||
           pirn__load(&worker->timers.next, relaxed) != UINT64_MAX ||
           pirn__inbox_has_some(&worker->deferred);
}

/* Find something, or sleep; the loop looks again. */
static struct pirn__task *find_or_sleep(struct pirn__worker *worker)
{
    struct pirn__task *task = NULL;
    uint64_t nap_ns = 0;

    if (looks_first(worker)) {
        look_for_events(worker);
        task = next_in_turn(worker);
    }
    if (task != NULL)
        return task;
    /* A wake that is ours has to be followed by a search. */
    if (!worker->searching)
        nap_ns = pirn__nap_plan(worker);
    if (!worker->searching && pirn__worker_awaits_timer(worker))
        return NULL;
    if (nap_ns == 0) {
        task = search(worker);
        if (task == NULL)
            nap_ns = pirn__nap_plan(worker);
    }
    if (task == NULL)
        sleep_until_event(worker, nap_ns);
    return task;
}

/* After next_at_hand(): any other task, or a sleep.  Who comes from a rest or a
 * search takes nothing in place before that is over. */
__attribute__((noinline)) static struct pirn__task *
find_task(struct pirn__worker *worker)
{
    struct pirn__task *task = next_in_turn(worker);

    if (task == NULL)
        task = find_or_sleep(worker);
    if (task == NULL) {
        pirn__worker_look_soon(worker);
        return NULL;
    }
    found_work(worker);
    renew_budget(worker);
    plan_look(worker);
    return task;
}

void pirn__worker_drain(struct pirn__worker *worker)
{
    const struct pirn__taskpool_ops *tasks = worker->pool->tasks;
    struct pirn__loop loop;
    struct pirn__task *task;

    pirn__loop_init(&loop, &worker->turn, &worker->cache);
    release_deferred(worker);
    /* Ends: past the deadline a popped task is only dropped. */
    while ((task = tasks->pop(worker)) != NULL ||
           (task = tasks->pop_shared(worker)) != NULL ||
           (tasks->steal != NULL && (task = tasks->steal(worker)) != NULL))
        (void)run_task(worker, task, &loop, false);
}

/* The pool stops: drop what is left to us. */
static void end_run(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    if (pirn__runtime_phase(pool->rt) >= PIRN__PHASE_ABORTING)
        pirn__worker_drain(worker);
    if (worker->searching)
        (void)pirn__idle_stop_search(&pool->idle);
    worker->searching = false;
    set_state(worker, PIRN__WORKER_ENDED);
    pirn__slabs_flush(&pool->rt->slabs, &worker->cache);
}

/* Until the pool stops or the core is given away.  A stop is looked for where the
 * next task is not at hand, which is soon enough. */
__attribute__((always_inline)) static inline void
run_tasks(struct pirn__worker *worker, bool by_ring)
{
    struct pirn__loop loop;
    struct pirn__task *task;

    pirn__loop_init(&loop, &worker->turn, &worker->cache);
    do {
        while (!by_ring || !next_at_hand(worker, &task)) {
            if (pirn__pool_is_stopped(worker->pool))
                return;
            task = find_task(worker);
            if (task != NULL)
                break;
        }
    } while (run_task(worker, task, &loop, by_ring));
}

/* What is constant of a worker is asked before its loop, not in each turn.  Each
 * apart, so that what one needs is not kept for the other. */
__attribute__((noinline)) static void run_by_ring(struct pirn__worker *worker)
{
    run_tasks(worker, true);
}

__attribute__((noinline)) static void run_by_pool(struct pirn__worker *worker)
{
    run_tasks(worker, false);
}

void pirn__worker_run(struct pirn__worker *worker)
{
    struct pirn__local *local = pirn__local();

    PIRN_ASSERT(local != NULL);
    local->driving = &worker->pool->rt->home;
    local->worker = worker;
    local->turn = &worker->turn;
    pirn__no_suspend_begin(local);
    set_state(worker, PIRN__WORKER_RUNNING);
    worker->rested = true;
    pirn__worker_look_soon(worker);
    if (worker->by_ring)
        run_by_ring(worker);
    else
        run_by_pool(worker);
    if (local->worker == worker)
        end_run(worker);
    pirn__no_suspend_end(local);
    local->turn = NULL;
    local->worker = NULL;
    local->driving = NULL;
}
