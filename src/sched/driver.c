/* SPDX-License-Identifier: MIT */
/* src/sched/driver.c - one turn of the current-thread runtime.
 *
 * A turn looks for events (waiting only if nothing is ready), fires timers,
 * brings back the tasks that had yielded, and runs tasks for one interval.
 *
 * Where a woken task goes:
 *   by a running task of this runtime   the LIFO slot; what was there moves to
 *                                       the tail of the ready queue
 *   by the driver (events, timers)      the tail of the ready queue
 *   by any other thread                 the inbox, and the driver is woken if it
 *                                       sleeps
 * A task that used up its budget or yielded goes to `deferred`.
 *
 * No wake is lost.  A push: the driver announces its sleep and then looks at the
 * inbox; a waker pushes and then looks at the announcement.  All four are
 * seq_cst.  Anything else that the driver must see (an earlier deadline, a phase,
 * a host that wants the seat, an unpark, the end of the last job) it looks at
 * only between turns; a wake for it also reaches a driver that is awake: it
 * leaves TOLD in the word, and the next announcement finds it.
 */
#include "sched/runtime.h"

#include "base/assert.h"
#include "base/hint.h"
#include "reactor/reactor.h"
#include "sched/histogram.h"
#include "task/run_hot.h"

bool pirn__runtime_is_mine(const struct pirn_runtime *rt)
{
    struct pirn__local *local = pirn__local();

    return local != NULL && local->driving == &rt->home;
}

/* Wake-ups. */

static void tell_driver(struct pirn_runtime *rt)
{
    /* The descriptor would wake the parent's driver. */
    if (pirn__home_is_forked(&rt->home))
        return;
    /* release [runtime.sleeping]: publishes what the caller wants seen to the
     * driver's next swap; of several wakers one writes. */
    if (pirn__swap(&rt->sleeping, PIRN__DRIVER_TOLD, release) !=
        PIRN__DRIVER_ASLEEP)
        return;
    /* relaxed: a statistic. */
    pirn__add(&rt->wakes, 1, relaxed);
    pirn__reactor_wake(rt->home.reactor);
}

void pirn__driver_wake(struct pirn__home *home)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    /* The driver itself does not sleep now, and looks at everything before it
     * does. */
    if (!pirn__runtime_is_mine(rt))
        tell_driver(rt);
}

static void submit_here(struct pirn_runtime *rt, struct pirn__task *task,
                        enum pirn__origin origin)
{
    struct pirn__task *displaced = rt->lifo;

    /* One of a batch of events. */
    if (rt->turn.task == NULL)
        pirn__task_prefetch(task);
    if (origin == PIRN__ORIGIN_SPAWN || rt->turn.task == NULL || rt->lifo_off) {
        pirn__queue_push(&rt->ready, &task->cell.link);
        return;
    }
    rt->lifo = task;
    if (displaced != NULL)
        pirn__queue_push(&rt->ready, &displaced->cell.link);
}

PIRN__COLD static void submit_there(struct pirn_runtime *rt,
                                    struct pirn__task *task)
{
    pirn__inbox_push(&rt->inbox, &task->cell.link);
    /* seq_cst [runtime.sleeping]: after the push, against the driver's
     * announcement.  A driver that is awake need not be told. */
    if (pirn__load(&rt->sleeping, seq_cst) == PIRN__DRIVER_ASLEEP)
        tell_driver(rt);
}

void pirn__driver_submit(struct pirn__home *home, struct pirn__task *task,
                         enum pirn__origin origin)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    pirn__histograms_stamp(home, task);
    if (pirn__runtime_is_mine(rt))
        submit_here(rt, task, origin);
    else
        submit_there(rt, task);
}

/* Running. */

static void count_up(pirn__seat_counter *counter)
{
    /* relaxed: a statistic, which only the seat writes. */
    uint64_t before = pirn__load(counter, relaxed);

    /* relaxed: as above. */
    pirn__store(counter, before + 1, relaxed);
}

static struct pirn__task *next_task(struct pirn_runtime *rt, bool *from_lifo)
{
    struct pirn__task *task = rt->lifo;
    pirn_slink *link;

    rt->until_inbox--;
    *from_lifo = task != NULL && rt->lifo_runs < PIRN__LIFO_RUNS;
    if (*from_lifo) {
        rt->lifo = NULL;
        rt->lifo_runs++;
        return task;
    }
    rt->lifo_runs = 0;
    if (rt->until_inbox <= 0 || pirn__queue_empty(&rt->ready)) {
        rt->until_inbox = (int32_t)rt->shared_interval;
        pirn__inbox_take(&rt->inbox, &rt->ready);
    }
    link = pirn__queue_pop(&rt->ready);
    if (link != NULL)
        return pirn__task_of_link(link);
    rt->lifo = NULL;
    return task;
}

/* True if the task wants to run again. */
__attribute__((always_inline)) static inline bool
poll_task(struct pirn_runtime *rt, struct pirn__task *task,
          struct pirn__loop *loop)
{
    bool again;

    if (rt->histograms != NULL)
        (void)pirn__histograms_run(rt->histograms, task, loop, &again);
    else
        (void)pirn__task_run_here(task, loop, &again);
    return again;
}

__attribute__((always_inline)) static inline void
run_task(struct pirn_runtime *rt, struct pirn__task *task, bool from_lifo,
         struct pirn__loop *loop)
{
    /* A task woken by the one before shares its budget, so that two that wake
     * each other cannot run for ever. */
    if (!from_lifo)
        rt->turn.budget = PIRN__COOP_BUDGET;
    count_up(&rt->polls);
    if (!poll_task(rt, task, loop))
        return;
    task = pirn__loop_task(loop);
    pirn__histograms_stamp(&rt->home, task);
    if (pirn__turn_is_deferred(&rt->turn)) {
        count_up(&rt->deferrals);
        pirn__queue_push(&rt->deferred, &task->cell.link);
    } else {
        pirn__queue_push(&rt->ready, &task->cell.link);
    }
}

/* Run tasks for one interval; returns how many polls. */
static size_t run_ready(struct pirn_runtime *rt)
{
    struct pirn__local *local = pirn__local();
    struct pirn__turn *outer = local->turn;
    struct pirn__loop loop;
    size_t polls = 0;
    bool from_lifo;

    local->turn = &rt->turn;
    pirn__loop_init(&loop, &rt->turn, &rt->cache);
    pirn__no_suspend_begin(local);
    /* A driver that was given up and comes back resumes nobody. */
    while (polls < rt->event_interval &&
           pirn__runtime_phase(rt) != PIRN__PHASE_ABANDONED) {
        struct pirn__task *task = next_task(rt, &from_lifo);

        if (task == NULL)
            break;
        run_task(rt, task, from_lifo, &loop);
        polls++;
    }
    pirn__no_suspend_end(local);
    local->turn = outer;
    return polls;
}

bool pirn__driver_has_ready(struct pirn_runtime *rt)
{
    return rt->lifo != NULL || !pirn__queue_empty(&rt->ready) ||
           !pirn__queue_empty(&rt->deferred) ||
           pirn__inbox_has_some(&rt->inbox);
}

pirn_deadline pirn__driver_next(struct pirn_runtime *rt)
{
    /* relaxed: a thread that arms an earlier timer tells the driver afterwards;
     * the announcement of the sleep comes before that, or has found it. */
    uint64_t next = pirn__load(&rt->timers.next, relaxed);

    return pirn__timers_to_system(&rt->timers, next);
}

/* Announce that a wake needs a write from now on.  False: there was a wake since
 * the last sleep; go back and look what it was for. */
static bool announce_sleep(struct pirn_runtime *rt)
{
    /* seq_cst [runtime.sleeping]: before the looks at inbox and timers. */
    return pirn__swap(&rt->sleeping, PIRN__DRIVER_ASLEEP, seq_cst) !=
           PIRN__DRIVER_TOLD;
}

static void end_sleep(struct pirn_runtime *rt)
{
    /* acquire [runtime.sleeping]: sees what a wake that ends here was for; a
     * plain store would read from none. */
    pirn__swap(&rt->sleeping, PIRN__DRIVER_AWAKE, acquire);
}

static void look_for_events(struct pirn_runtime *rt, pirn_deadline wait)
{
    pirn_deadline until = PIRN_EXPIRED;
    bool sleeps = wait.ns != 0 && !pirn__driver_has_ready(rt);

    if (sleeps)
        pirn__hooks_tell(&rt->hooks, rt->hooks.on_park, 0);
    if (sleeps && announce_sleep(rt) && !pirn__driver_has_ready(rt)) {
        until = pirn__driver_next(rt);
        until = until.ns < wait.ns ? until : wait;
    }
    (void)pirn__reactor_poll(rt->home.reactor, until);
    if (sleeps) {
        end_sleep(rt);
        pirn__hooks_tell(&rt->hooks, rt->hooks.on_unpark, 0);
    }
    count_up(&rt->turns);
}

static void fire_timers(struct pirn_runtime *rt)
{
    /* relaxed: only whether a clock read is worth it. */
    uint64_t next = pirn__load(&rt->timers.next, relaxed);

    if (next != UINT64_MAX)
        pirn__timers_fire(&rt->timers, PIRN__EVENT_INTERVAL);
}

size_t pirn__driver_turn(struct pirn_runtime *rt, pirn_deadline wait)
{
    look_for_events(rt, wait);
    rt->turn.now_ns = 0;
    fire_timers(rt);
    pirn__queue_splice(&rt->ready, &rt->deferred);
    return run_ready(rt);
}

void pirn__driver_enter(struct pirn_runtime *rt, struct pirn__home **outer)
{
    struct pirn__local *local = pirn__local();

    *outer = local->driving;
    local->driving = &rt->home;
    end_sleep(rt);
}

void pirn__driver_leave(struct pirn_runtime *rt, struct pirn__home *outer)
{
    /* Between turns a wake must reach the descriptor that the host watches.
     * Whoever drives next looks at everything anew. */
    (void)announce_sleep(rt);
    pirn__local()->driving = outer;
}
