/* SPDX-License-Identifier: MIT */
/* src/fiber/fiber_model.c - fibers on real stacks, under every interleaving of those
 * who run, wake, stop and join them.
 *
 * Two kinds of models.  In the first the threads of the model stand for a driver:
 * each runs whatever fiber it finds in a queue, so that a fiber is resumed by one
 * thread while the other has hardly left its stack.  In the second the runtime
 * has workers of its own.
 *
 * The plain fields of a fiber, its stack and what it keeps there are seen by the
 * explorer, so a hand-over that orders nothing is a race.
 */
#include "fiber/fiber.h"

#include <errno.h>

#include <pirn/blocking.h>

#include "engine/model_memory.h"
#include "engine/model_workers.h"

/* ---- Threads that run fibers. ---- */

static pirn_lock queue_lock;
static struct pirn__queue queue; /* queue_lock */

static void queue_submit(struct pirn__home *home, struct pirn__task *task,
                         enum pirn__origin origin)
{
    (void)home;
    (void)origin;
    pirn__lock(&queue_lock);
    pirn__queue_push(&queue, &task->cell.link);
    pirn__unlock(&queue_lock);
}

/* A runtime whose tasks come into our queue. */
static void begin_queue(void)
{
    static struct pirn__home_ops ops;

    model_memory_begin(0);
    begin(0);
    ops = *rt->home.ops;
    ops.submit = queue_submit;
    rt->home.ops = &ops;
}

/* Run one that is queued; false if none is. */
static bool run_one(void)
{
    struct pirn__turn turn = {.home = &rt->home,
                              .timers = rt->home.timers,
                              .budget = PIRN__COOP_BUDGET};
    struct pirn__local *local = pirn__local();
    struct pirn__task *task;
    enum pirn__wake wake;
    pirn_slink *link;

    pirn__lock(&queue_lock);
    link = pirn__queue_pop(&queue);
    pirn__unlock(&queue_lock);
    if (link == NULL)
        return false;
    task = pirn__task_of_link(link);
    local->turn = &turn;
    pirn__no_suspend_begin(local);
    wake = pirn__task_run(task, &turn, NULL);
    pirn__no_suspend_end(local);
    local->turn = NULL;
    pirn__task_submit(task, wake);
    return true;
}

static void run_all(void)
{
    while (run_one())
        continue;
}

static void run_twice(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++)
        (void)run_one();
}

static struct pirn__stack_stats stats_of_all(void)
{
    struct pirn__stack_stats stats;
    struct pirn__stack_pool *pool;

    EXPLORE_CHECK(pirn__stacks_pool(rt, 0, &pool) == 0);
    pirn__stack_pool_validate(pool);
    pirn__stack_stats(pool, &stats);
    return stats;
}

/* All has ended: but for those in quarantine every stack is back. */
static void end_queue(size_t quarantined)
{
    struct pirn__stack_stats stats = stats_of_all();

    EXPLORE_CHECK(stats.in_use == quarantined);
    EXPLORE_CHECK(stats.quarantined == quarantined);
    EXPLORE_CHECK(pirn__root_read(rt).live == 0);
    pirn_runtime_unref(rt);
}

static pirn_task *go(pirn_fiber_fn *fn, void *arg)
{
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task;

    EXPLORE_CHECK(pirn_go_with(fn, arg, &options, &task) == 0);
    return task;
}

/* Of one that has ended; the handle goes. */
static int outcome_of(pirn_task *task)
{
    int outcome = -EINPROGRESS;

    EXPLORE_CHECK(pirn_task_is_done(task));
    EXPLORE_CHECK(pirn_task_join(task, PIRN_EXPIRED, &outcome) == 0);
    pirn_task_unref(task);
    return outcome;
}

/* What only the fiber touches, from whatever thread it runs on. */
static PIRN_SHARED(int) steps;
static int ends;

static void step(void)
{
    pirn_cell_write(&steps, pirn_cell_read(&steps) + 1);
}

static struct condition second;

/* Wait for a condition; what pirn_await() says. */
static int await(struct condition *of, pirn_deadline deadline)
{
    static const pirn_future_ops ops = {.poll = waiting_poll,
                                        .drop = waiting_drop};
    struct waiting wait = {{&ops}, of};
    PIRN_SHARED(int) mine = {0};
    int rc;

    /* Stands on the stack. */
    pirn_cell_write(&mine, 1);
    step();
    rc = pirn_await(&wait.future, deadline);
    step();
    EXPLORE_CHECK(pirn_cell_read(&mine) == 1);
    return rc;
}

static int wait_once(void *arg)
{
    int rc = await(arg, PIRN_NEVER);

    ends++;
    return rc;
}

static int wait_for_both(void *arg)
{
    int rc = await(&condition, PIRN_NEVER);

    (void)arg;
    if (rc == 0)
        rc = await(&second, PIRN_NEVER);
    ends++;
    return rc;
}

static void cancel_thread(void *arg)
{
    pirn_task_cancel(arg);
}

static void abort_thread(void *arg)
{
    pirn_task_abort(arg);
}

/* Goal: a fiber that is woken while it is about to leave its stack is not entered
 * by another thread before it has left, and is entered then. */
MODEL(fiber_wake_against_leaving_its_stack, .preemptions = 4, .stale = 2,
      .spurious = -1)
{
    pirn_task *task;

    begin_queue();
    task = go(wait_once, &condition);
    explore_thread(run_twice, NULL);
    explore_thread(run_twice, NULL);
    explore_thread(meet_late, &condition);
    explore_join();
    run_all();
    EXPLORE_CHECK(outcome_of(task) == 0 && ends == 1);
    end_queue(0);
}

/* Goal: the same with two waits, each of which may end on another thread. */
MODEL(fiber_that_changes_threads, .preemptions = 3, .stale = 1,
      .spurious = -1)
{
    pirn_task *task;

    begin_queue();
    task = go(wait_for_both, NULL);
    explore_thread(run_twice, NULL);
    explore_thread(run_twice, NULL);
    explore_thread(meet_late, &condition);
    meet(&second);
    explore_join();
    run_all();
    EXPLORE_CHECK(outcome_of(task) == 0 && ends == 1);
    end_queue(0);
}

/* Goal: a cancel, a wake and a thread that runs meet: the fiber runs to its end,
 * once, and its stack comes back. */
MODEL(fiber_cancel_against_a_wake, .preemptions = 3, .stale = 1,
      .spurious = -1)
{
    pirn_task *task;
    int outcome;

    begin_queue();
    task = go(wait_once, &condition);
    explore_thread(run_twice, NULL);
    explore_thread(cancel_thread, task);
    explore_thread(meet_late, &condition);
    explore_join();
    run_all();
    outcome = outcome_of(task);
    EXPLORE_CHECK(outcome == 0 || outcome == -ECANCELED);
    EXPLORE_CHECK(ends == 1);
    end_queue(0);
}

static int wait_shielded(void *arg)
{
    int rc;

    pirn_fiber_shield_begin();
    rc = await(arg, PIRN_NEVER);
    pirn_fiber_shield_end();
    EXPLORE_CHECK(rc == 0);
    ends++;
    return await(arg, PIRN_NEVER);
}

/* Goal: a cancel does not end a shielded wait, and is not forgotten over it. */
MODEL(fiber_cancel_of_a_shielded_wait, .preemptions = 3, .stale = 1,
      .spurious = -1)
{
    pirn_task *task;

    begin_queue();
    task = go(wait_shielded, &condition);
    run_all();
    explore_thread(run_twice, NULL);
    explore_thread(cancel_thread, task);
    explore_join();
    EXPLORE_CHECK(ends == 0);
    meet(&condition);
    run_all();
    EXPLORE_CHECK(outcome_of(task) == -ECANCELED && ends == 1);
    end_queue(0);
}

/* Where the fibers stood: the pages of their stacks. */
static char *stood[2];

static int note_and_wait(void *arg)
{
    char here;

    stood[0] = &here;
    return wait_once(arg);
}

static int note_only(void *arg)
{
    char here;

    (void)arg;
    stood[1] = &here;
    return 0;
}

static bool stand_on_one_page(void)
{
    return (uintptr_t)stood[0] / MODEL_PAGE == (uintptr_t)stood[1] / MODEL_PAGE;
}

/* Goal: an abort and a wake meet: either the fiber runs to its end, or it is never
 * entered again, what it waited for is withdrawn, and nobody gets its stack. */
MODEL(fiber_abort_against_a_wake, .preemptions = 3, .stale = 1,
      .spurious = -1, .may_leak = true)
{
    pirn_task *task, *next;
    bool aborted;
    int outcome;

    begin_queue();
    task = go(note_and_wait, &condition);
    run_all();
    explore_thread(run_twice, NULL);
    explore_thread(abort_thread, task);
    if (explore_choose(2) == 0)
        explore_thread(meet_late, &condition);
    explore_join();
    run_all();
    outcome = outcome_of(task);
    aborted = outcome == PIRN_EABORTED;
    EXPLORE_CHECK(aborted == (ends == 0));
    EXPLORE_CHECK(aborted || outcome == 0 || outcome == -ECANCELED);
    EXPLORE_CHECK(condition.waker.ops == NULL);
    next = go(note_only, NULL);
    run_all();
    EXPLORE_CHECK(outcome_of(next) == 0);
    EXPLORE_CHECK(stand_on_one_page() == !aborted);
    end_queue(aborted);
}

/* Goal: one that has not run yet gives what it was promised back if it is aborted,
 * and runs once if it was too late for that. */
MODEL(fiber_abort_before_its_first_run, .preemptions = 4, .stale = 2,
      .spurious = -1, .may_leak = true)
{
    pirn_task *task;
    size_t quarantined;
    int outcome;

    begin_queue();
    task = go(wait_once, &condition);
    explore_thread(run_twice, NULL);
    explore_thread(abort_thread, task);
    explore_join();
    meet(&condition);
    run_all();
    quarantined = stats_of_all().quarantined;
    outcome = outcome_of(task);
    EXPLORE_CHECK((outcome == PIRN_EABORTED) == (ends == 0));
    EXPLORE_CHECK((quarantined == 1) == (pirn_cell_read(&steps) == 1));
    end_queue(quarantined);
}

/* Goal: a fiber that is cancelled before it has run is run all the same, on a stack,
 * and is told at its first wait. */
MODEL(fiber_cancel_before_its_first_run, .preemptions = 4, .stale = 2,
      .spurious = -1)
{
    pirn_task *task;

    begin_queue();
    task = go(wait_once, &condition);
    explore_thread(run_twice, NULL);
    explore_thread(cancel_thread, task);
    explore_join();
    run_all();
    EXPLORE_CHECK(outcome_of(task) == -ECANCELED && ends == 1);
    end_queue(0);
}

static void go_and_leave(void *arg)
{
    pirn_task_unref(go(note_only, arg));
}

/* Goal: threads spawn while others run: the first run of one takes the stack that
 * another has just left, or another one. */
MODEL(fiber_first_run_against_a_spawn, .preemptions = 2, .stale = 1,
      .spurious = -1)
{
    begin_queue();
    go_and_leave(NULL);
    explore_thread(go_and_leave, NULL);
    explore_thread(run_twice, NULL);
    explore_thread(run_twice, NULL);
    explore_join();
    run_all();
    end_queue(0);
}

static int await_until(struct condition *of, pirn_deadline deadline)
{
    int rc = await(of, deadline);

    EXPLORE_CHECK(rc == 0 || rc == -ETIMEDOUT);
    EXPLORE_CHECK(rc == 0 || pirn__sys->clock_ns() >= deadline.ns);
    return rc;
}

static int wait_with_deadlines(void *arg)
{
    int rc;

    (void)await_until(&condition, (pirn_deadline){2000000});
    rc = await_until(&second, *(pirn_deadline *)arg);
    ends++;
    return rc;
}

static void join_and_expect(void *arg)
{
    int outcome = -1;

    EXPLORE_CHECK(pirn_task_join(arg, PIRN_NEVER, &outcome) == 0);
    EXPLORE_CHECK(outcome == 0 || outcome == -ETIMEDOUT);
    EXPLORE_CHECK(ends == 1);
    pirn_task_unref(arg);
}

static void meet_both(void *arg)
{
    bool *also_second = arg;

    meet(&condition);
    if (*also_second)
        meet(&second);
}

static void wait_with_timers(pirn_deadline deadline, bool both)
{
    model_memory_begin(0);
    begin(0);
    explore_thread(meet_both, &both);
    join_and_expect(go(wait_with_deadlines, &deadline));
    explore_join();
    pirn_runtime_unref(rt);
}

/* Goal: a wait with a deadline leaves its timer armed; it fires or is stopped while
 * the fiber waits, on another thread, for something else, and loses no wake.
 * Method: time passes only when nobody can go on. */
MODEL(fiber_timer_that_stays_armed, .preemptions = 3, .stale = 1,
      .spurious = -1)
{
    wait_with_timers(PIRN_NEVER, true);
}

/* Goal: the same where the next deadline is a later one: neither is the wait ended by
 * the timer of the first, nor does it go on for ever. */
MODEL(fiber_timer_that_fires_too_early, .preemptions = 3, .stale = 1,
      .spurious = -1)
{
    wait_with_timers((pirn_deadline){4000000}, explore_choose(2) == 0);
}

/* ---- Who joins, and the end of the runtime. ---- */

/* A fiber, and what it did. */
struct told {
    pirn_task *task;
    PIRN_SHARED(int) news;
};

static struct told told[2];

static int tell(void *arg)
{
    struct told *to = arg;

    pirn_cell_write(&to->news, 1);
    return 7;
}

static void join_seven(void *arg)
{
    struct told *by = arg;
    int outcome = -1;

    EXPLORE_CHECK(pirn_task_join(by->task, PIRN_NEVER, &outcome) == 0);
    EXPLORE_CHECK(outcome == 7);
    EXPLORE_CHECK(pirn_cell_read(&by->news) == 1);
    pirn_task_unref(by->task);
}

/* Goal: two that join on plain threads see what the fiber did, whichever of them
 * drives. */
MODEL(fiber_joined_by_plain_threads, .preemptions = 3, .stale = 1,
      .spurious = -1)
{
    model_memory_begin(0);
    begin(0);
    for (int i = 0; i < 2; i++)
        told[i].task = go(tell, &told[i]);
    explore_thread(join_seven, &told[0]);
    join_seven(&told[1]);
    explore_join();
    pirn_runtime_unref(rt);
}

/* ---- Workers, and what they have at hand. ---- */

static void begin_pool(uint32_t workers)
{
    model_memory_begin(0);
    begin(workers);
}

/* Its last thread may be the last to leave. */
static void end_pool(void)
{
    end();
    explore_join();
    EXPLORE_CHECK(memory.mapped_count == 0);
}

static int note_begun(void *arg)
{
    (void)arg;
    step();
    return 0;
}

static int go_on(void *arg)
{
    int rc = pirn_go(note_begun, NULL);

    (void)arg;
    EXPLORE_CHECK(rc == 0 || rc == PIRN_ESHUTDOWN);
    return 0;
}

/* Goal: the end of the runtime waits for a fiber that spawns another one, and takes
 * their stacks and what its worker has at hand when nobody uses them any more. */
MODEL(fiber_end_against_shutdown, .preemptions = 2, .stale = 1, .spurious = -1,
      .frozen = true)
{
    pirn_report report;

    begin_pool(1);
    pirn_task_unref(go(go_on, NULL));
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, &report) == 0);
    EXPLORE_CHECK(report.quarantined == 0);
    pirn_runtime_unref(rt);
    explore_join();
    EXPLORE_CHECK(memory.mapped_count == 0);
}

/* Two fibers that do not end before both have begun. */
static int meet_the_other(void *arg)
{
    pirn_future future = {&meeting_ops};

    (void)arg;
    return pirn_await(&future, PIRN_NEVER);
}

static int go_and_meet(void *arg)
{
    EXPLORE_CHECK(pirn_go(meet_the_other, arg) == 0);
    return meet_the_other(arg);
}

/* Goal: a fiber that is promised its stack by one worker gets it from the other,
 * beside the first. */
MODEL(fiber_spawned_by_one_worker_and_run_by_the_other, .preemptions = -1,
      .stale = -1, .spurious = -1, .timeouts = -1)
{
    begin_pool(2);
    join(go(go_and_meet, NULL));
    end_pool();
}

/* Blocking in place. */

static int child_runs(void *arg)
{
    static const pirn_future_ops ops = {.poll = child_poll,
                                        .drop = nothing_drop};
    pirn_future future = {&ops};

    (void)arg;
    EXPLORE_CHECK(pirn_go(note_begun, NULL) == 0);
    return pirn_await(&future, PIRN_NEVER);
}

static int block(void *arg)
{
    (void)arg;
    wait_for_child();
    return 0;
}

/* Leave the worker, which has a stack and promises at hand, and end without it. */
static int leave_and_end(void *arg)
{
    EXPLORE_CHECK(pirn_go(child_runs, arg) == 0);
    EXPLORE_CHECK(pirn_block_in_place(block, arg) == 0);
    return 0;
}

/* Goal: what a worker has at hand goes with it to its new thread; a fiber that ends
 * on the old one leaves it alone. */
MODEL(fiber_worker_changes_threads, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin_pool(1);
    join(go(leave_and_end, NULL));
    end_pool();
}

static int no_wait(void *arg)
{
    (void)arg;
    return 0;
}

/* Leave the worker, spawn without it, and wait for it. */
static int leave_and_wait(void *arg)
{
    EXPLORE_CHECK(pirn_block_in_place(no_wait, NULL) == 0);
    step();
    EXPLORE_CHECK(pirn_go(no_wait, NULL) == 0);
    return await(arg, PIRN_NEVER);
}

/* Goal: a fiber that has left its worker, spawns and waits for it again, while
 * another thread wakes it. */
MODEL(fiber_comes_back_to_its_worker, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_task *task;

    begin_pool(1);
    task = go(leave_and_wait, &condition);
    meet(&condition);
    join(task);
    end_pool();
}

/* The core that reaps. */

static PIRN_ATOMIC(uint32_t) is_stuck;

/* Holds its worker, with what that has at hand, until the runtime has waited twice
 * in vain: for the end, and for the worker. */
static int stick(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(pirn_go(no_wait, NULL) == 0);
    EXPLORE_CHECK(pirn_go(no_wait, NULL) == 0);
    pirn__store(&is_stuck, 1, release);
    pirn__sys->futex_wake(&is_stuck.v_, 1);
    wait_ns(2 * 50 * 1000000);
    return 0;
}

/* Goal: fibers that have not run when the runtime is ended by force give back what
 * they were promised, but not to their worker, which comes back at that moment. */
MODEL(fiber_worker_that_comes_back_when_all_ends, .preemptions = 2, .stale = 1,
      .spurious = -1, .timeouts = -1)
{
    pirn_report report;

    begin_pool(1);
    pirn_task_unref(go(stick, NULL));
    while (pirn__load(&is_stuck, acquire) == 0)
        (void)pirn__sys->futex_wait(&is_stuck.v_, 0, PIRN_NEVER);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report) ==
                  -ETIMEDOUT);
    EXPLORE_CHECK(report.quarantined == 0);
    EXPLORE_CHECK(report.aborted == 2);
    pirn_runtime_unref(rt);
    explore_join();
    EXPLORE_CHECK(memory.mapped_count == 0);
}
