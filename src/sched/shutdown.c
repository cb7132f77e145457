/* SPDX-License-Identifier: MIT */
/* src/sched/shutdown.c - the end of a runtime, by one deadline.
 *
 * The steps, and why in this order:
 *
 *   close      the gate first, so that what follows has an end; queued blocking
 *              jobs are taken out, so that nobody waits for them
 *   cancel     every member once; the gate is shut, so none is missed
 *   drain      drive until no task lives and no job runs, or the deadline
 *   note       who is left, while what they wait for can still be described
 *   abort      every member is queued with ABORTED and only dropped; fibers are
 *              quarantined.  In a pool others may poll it until then, so what it
 *              waits for is noted here, by the one that drops it
 *   release    jobs, timers, descriptors: their waiters belong to others now
 *   publish    the report, and with it DONE; no hook is called any more
 *
 * Only the first caller does this; later ones wait for DONE.  The one that does
 * it needs the driver's seat.  A host call that sits there sees the phase and
 * leaves after its current task.  If it does not come back by the deadline, the
 * report is written as things stand and the runtime is ABANDONED: its driver,
 * whenever it returns, does the rest and leaves the report alone.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "reactor/reactor.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/fork.h"
#include "sys/sys.h"
#include "task/await.h"
#include "task/task.h"

enum { SHUTDOWN_GRACE_NS = 50 * 1000 * 1000 };

static pirn_deadline after_grace(void)
{
    return (pirn_deadline){pirn__sys->clock_ns() + SHUTDOWN_GRACE_NS};
}

static void set_phase(struct pirn_runtime *rt, enum pirn__phase phase)
{
    /* release [runtime.phase]: what was prepared is seen with the phase. */
    pirn__store(&rt->phase, (uint32_t)phase, release);
    pirn__sys->futex_wake(&rt->phase.v_, INT32_MAX);
}

/* Close. */

static void close_participants(struct pirn_runtime *rt)
{
    pirn_link *link;

    pirn__lock(&rt->home.participants_lock);
    rt->home.participants_closed = true;
    pirn__unlock(&rt->home.participants_lock);
    /* The list is final now. */
    for (link = rt->home.participants.next_; link != &rt->home.participants;
         link = link->next_) {
        struct pirn__participant *participant =
            PIRN_CONTAINER_OF(link, struct pirn__participant, link);

        participant->ops->close(participant);
    }
}

static void cancel_task(struct pirn__task *task, void *arg)
{
    (void)arg;
    pirn__task_submit(task, pirn__state_cancel(pirn__task_state(task)));
}

static void close_and_cancel(struct pirn_runtime *rt)
{
    pirn__root_close(rt, PIRN__GROUP_CLOSED);
    close_participants(rt);
    pirn__root_visit(rt, cancel_task, NULL);
    rt->home.ops->wake(&rt->home);
}

/* Drain. */

static size_t busy_participants(struct pirn_runtime *rt)
{
    size_t busy = 0;
    pirn_link *link;

    for (link = rt->home.participants.next_; link != &rt->home.participants;
         link = link->next_) {
        struct pirn__participant *participant =
            PIRN_CONTAINER_OF(link, struct pirn__participant, link);

        busy += participant->ops->busy(participant);
    }
    return busy;
}

static bool is_drained(struct pirn_runtime *rt)
{
    return pirn__root_read(rt).live == 0 &&
           busy_participants(rt) == 0;
}

static bool is_past(pirn_deadline deadline)
{
    return deadline.ns != UINT64_MAX &&
           (deadline.ns == 0 || pirn__sys->clock_ns() >= deadline.ns);
}

/* An expired deadline still lets what was cancelled run once: so many turns. */
static uint64_t last_turns(struct pirn_runtime *rt)
{
    return 2 + 2 * pirn__root_read(rt).live / rt->event_interval;
}

/* Drive until all is over; false at the deadline. */
static bool drain(struct pirn_runtime *rt, pirn_deadline deadline)
{
    uint64_t turns = deadline.ns == 0 ? last_turns(rt) : 0;

    while (!is_drained(rt)) {
        bool past = is_past(deadline);

        if (past && turns == 0)
            return false;
        pirn__driver_turn(rt, past ? PIRN_EXPIRED : deadline);
        if (past)
            turns--;
    }
    return true;
}

/* Note. */

/* A new entry for a task, or NULL when the report names enough of them. */
static pirn_report_task *add_entry(pirn_report *report, struct pirn__task *task)
{
    const pirn_task *handle = (pirn_task *)task;
    const char *name = pirn_task_name(handle);
    pirn_report_task *entry;

    if (report->task_count == PIRN_REPORT_TASKS)
        return NULL;
    entry = &report->tasks[report->task_count++];
    *entry = (pirn_report_task){.id = pirn_task_get_id(handle)};
    if (name != NULL)
        strncpy(entry->name, name, sizeof entry->name - 1);
    strncpy(entry->site, pirn_task_site(handle), sizeof entry->site - 1);
    return entry;
}

static void note_task(struct pirn__task *task, void *arg)
{
    pirn_report_task *entry = add_entry(arg, task);
    pirn_text text;

    if (entry == NULL)
        return;
    text = (pirn_text){entry->waits_for, sizeof entry->waits_for, 0};
    /* We hold the seat and poll nothing: that is the RUNNING claim here. */
    pirn_future_describe(pirn__task_future(task), &text);
}

/* Abort. */

static void abort_task(struct pirn__task *task, void *arg)
{
    (void)arg;
    pirn__task_submit(task, pirn__state_abort(pirn__task_state(task)));
}

static void abort_rest(struct pirn_runtime *rt)
{
    set_phase(rt, PIRN__PHASE_ABORTING);
    pirn__root_close(rt, PIRN__GROUP_FORCED);
    pirn__root_visit(rt, abort_task, NULL);
    /* Ends: every member is queued, or its spawner is about to queue it, and a
     * popped one only gets dropped. */
    while (pirn__root_read(rt).live > 0)
        pirn__driver_turn(
            rt, (pirn_deadline){pirn__sys->clock_ns() + 1000000});
}

/* Release and publish. */

static void end_participants(struct pirn_runtime *rt, pirn_report *report)
{
    pirn_link *link;

    while ((link = pirn__list_pop_head(&rt->home.participants)) != NULL) {
        struct pirn__participant *participant =
            PIRN_CONTAINER_OF(link, struct pirn__participant, link);

        participant->ops->report(participant, report);
        participant->ops->end(participant);
    }
}

static void shut_timers(struct pirn_runtime *rt)
{
    if (rt->pool == NULL) {
        pirn__timers_shutdown(&rt->timers);
        return;
    }
    for (uint32_t i = 0; i < rt->pool->count; i++)
        pirn__timers_shutdown(&rt->pool->workers[i]->timers);
}

/* All that were ever spawned.  One that lives and does not run waits for a thread
 * that does not come back: a pinned one, or what a driver has left; it has been
 * told to abort and will only be dropped. */
static void count_tasks(struct pirn_runtime *rt, pirn_report *report)
{
    struct pirn__group_counts counts = pirn__root_read(rt);

    report->spawned = counts.spawned;
    report->completed = counts.completed;
    report->failed = counts.failed;
    report->cancelled = counts.cancelled;
    report->aborted = counts.aborted;
    /* relaxed: a statistic; only the seat adds. */
    report->quarantined = pirn__load(&rt->quarantined, relaxed);
    /* Some that ran when they were counted may have ended since. */
    if (report->still_running > counts.live)
        report->still_running = counts.live;
    report->aborted += counts.live - report->still_running;
}

/* Everything after the last task. */
static void release(struct pirn_runtime *rt, pirn_report *report)
{
    end_participants(rt, report);
    shut_timers(rt);
    /* A worker that was left behind may yet look into the set, and then is told
     * to end; the set goes with the memory. */
    if (rt->pool != NULL && pirn__pool_is_running(rt->pool))
        pirn__reactor_unbind_all(rt->home.reactor);
    else
        pirn__reactor_shutdown(rt->home.reactor);
    pirn__runtime_end_stacks(rt);
    count_tasks(rt, report);
    pirn__slabs_flush(&rt->slabs, &rt->cache);
    pirn__outside_flush(rt);
    if (pirn__slabs_retire(&rt->slabs))
        pirn__home_unref(&rt->home);
    pirn__hooks_end(&rt->hooks, after_grace());
    set_phase(rt, PIRN__PHASE_DONE);
}

/* With the seat held: everything after the drain. */
static void finish(struct pirn_runtime *rt, bool in_time, pirn_report *report)
{
    report->in_time = in_time;
    if (!in_time) {
        pirn__root_visit(rt, note_task, report);
        abort_rest(rt);
    }
    release(rt, report);
}

static bool is_running(struct pirn__task *task)
{
    return (pirn__state_peek(pirn__task_state(task)) & PIRN__RUNNING) != 0;
}

static pirn_report_task *find_entry(pirn_report *report, pirn_task_id id)
{
    for (uint32_t i = 0; i < report->task_count; i++) {
        if (report->tasks[i].id.value == id.value)
            return &report->tasks[i];
    }
    return NULL;
}

/* What it waits for only who runs it may ask. */
static void note_name(struct pirn__task *task, void *arg)
{
    if (find_entry(arg, pirn_task_get_id((pirn_task *)task)) == NULL)
        (void)add_entry(arg, task);
}

/* First those that may turn out to be stuck. */
static void note_name_if_running(struct pirn__task *task, void *arg)
{
    if (is_running(task))
        note_name(task, arg);
}

static void note_names(struct pirn_runtime *rt, pirn_report *report)
{
    pirn__root_visit(rt, note_name_if_running, report);
    pirn__root_visit(rt, note_name, report);
}

static void mark_if_running(struct pirn__task *task, void *arg)
{
    pirn_report *report = arg;
    pirn_report_task *entry;

    if (!is_running(task))
        return;
    report->still_running++;
    note_name(task, report);
    entry = find_entry(report, pirn_task_get_id((pirn_task *)task));
    if (entry != NULL)
        entry->running = true;
}

/* The driver does not come back: say what is known and leave it to finish.  It
 * may be in no task at all, but in the future of a block_on() or in a hook. */
static void abandon(struct pirn_runtime *rt)
{
    pirn_report *report = &rt->report;
    pirn_link *link;

    note_names(rt, report);
    pirn__root_visit(rt, mark_if_running, report);
    count_tasks(rt, report);
    for (link = rt->home.participants.next_; link != &rt->home.participants;
         link = link->next_) {
        struct pirn__participant *participant =
            PIRN_CONTAINER_OF(link, struct pirn__participant, link);

        participant->ops->report(participant, report);
    }
    pirn__hooks_end(&rt->hooks, after_grace());
    set_phase(rt, PIRN__PHASE_ABANDONED);
}

/* The report has been published; this one has no reader. */
void pirn__shutdown_finish_abandoned(struct pirn_runtime *rt)
{
    pirn_report unread = {0};

    finish(rt, false, &unread);
}

static int sit_down(struct pirn_runtime *rt, pirn_deadline deadline)
{
    struct pirn__seat_request request = {.force = true, .deadline = deadline};

    return pirn__seat_take(&rt->seat, &rt->home, &request);
}

static void run_down(struct pirn_runtime *rt, pirn_deadline deadline)
{
    struct pirn__home *outer;
    bool abandoned = false;

    /* A driver that merely sleeps needs a moment to get up, however short the
     * deadline. */
    pirn_deadline moment = after_grace();

    if (sit_down(rt, deadline.ns < moment.ns ? moment : deadline) < 0) {
        abandon(rt);
        abandoned = true;
        /* The driver may have left just before it could see that. */
        if (sit_down(rt, PIRN_EXPIRED) < 0)
            return;
    }
    pirn__driver_enter(rt, &outer);
    /* The driver may also have finished before we sat down. */
    if (!abandoned)
        finish(rt, drain(rt, deadline), &rt->report);
    else if (pirn__runtime_phase(rt) == PIRN__PHASE_ABANDONED)
        pirn__shutdown_finish_abandoned(rt);
    pirn__driver_leave(rt, outer);
    pirn__seat_leave(&rt->seat);
}

/* The same for a pool: its workers drive, we wait. */

/* Wait until all is over; false at the deadline. */
static bool drain_pool(struct pirn_runtime *rt, pirn_deadline deadline)
{
    /* An expired deadline still lets what was cancelled run. */
    if (deadline.ns == 0)
        deadline = after_grace();
    for (;;) {
        /* acquire [runtime.nudge]: whoever has nudged has ended what it is about;
         * a nudge that comes after this ends the wait. */
        uint32_t nudge = pirn__load(&rt->nudge, acquire);

        if (is_drained(rt))
            return true;
        if (is_past(deadline))
            return false;
        (void)pirn__sys->futex_wait(&rt->nudge.v_, nudge, deadline);
    }
}

static void count_if_idle(struct pirn__task *task, void *arg)
{
    uint64_t *count = arg;

    *count += !is_running(task);
}

/* Drop what the workers have left.  Ends: a popped task is only dropped, and one
 * that is in no queue yet is on its way there, for its spawner or waker was just
 * about to put it.  A pinned one may stand behind a worker that does not come
 * back; so the wait has an end of its own. */
static void reap(struct pirn_runtime *rt)
{
    pirn_deadline end = after_grace();

    for (;;) {
        pirn_deadline soon = {pirn__sys->clock_ns() + 1000000};
        /* relaxed: a nudge only shortens the pause. */
        uint32_t nudge = pirn__load(&rt->nudge, relaxed);
        uint64_t idle = 0;

        pirn__pool_drain_stuck(rt->pool);
        pirn__root_visit(rt, count_if_idle, &idle);
        if (idle == 0 || is_past(end))
            return;
        (void)pirn__sys->futex_wait(&rt->nudge.v_, nudge, soon);
    }
}

/* Let those that drop the tasks add what these wait for, or no more: a worker
 * that comes too late finds the report in other hands. */
static void set_notes(struct pirn_runtime *rt, bool open)
{
    pirn__lock(&rt->shutdown_lock);
    rt->notes_open = open;
    pirn__unlock(&rt->shutdown_lock);
}

void pirn__shutdown_note_wait(struct pirn__home *home, struct pirn__task *task)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);
    char wait[PIRN_WAIT_SIZE] = "";
    pirn_text text = {wait, sizeof wait, 0};
    pirn_report_task *entry = NULL;

    if (pirn__runtime_phase(rt) != PIRN__PHASE_ABORTING)
        return;
    /* User code, so before the lock. */
    pirn_future_describe(pirn__task_future(task), &text);
    pirn__lock(&rt->shutdown_lock);
    if (rt->notes_open)
        entry = find_entry(&rt->report, pirn_task_get_id((pirn_task *)task));
    if (entry != NULL)
        memcpy(entry->waits_for, wait, sizeof wait);
    pirn__unlock(&rt->shutdown_lock);
}

/* A task that was idle when it was aborted is dropped by a worker, or by us; one
 * that is on a worker that does not come back is left. */
static void abort_pool(struct pirn_runtime *rt, pirn_report *report)
{
    pirn_deadline grace = after_grace();

    /* They may be polled this very moment, so only their names are noted yet. */
    note_names(rt, report);
    set_notes(rt, true);
    set_phase(rt, PIRN__PHASE_ABORTING);
    pirn__root_close(rt, PIRN__GROUP_FORCED);
    pirn__root_visit(rt, abort_task, NULL);
    pirn__pool_stop(rt->pool);
    (void)pirn__pool_wait_stopped(rt->pool, grace);
    reap(rt);
    set_notes(rt, false);
    pirn__root_visit(rt, mark_if_running, report);
}

/* When nothing is left to run; false if a worker is in a hook, or in what a
 * waker does, and does not come back. */
static bool stop_pool(struct pirn_runtime *rt, pirn_deadline deadline)
{
    pirn_deadline moment = after_grace();

    pirn__pool_stop(rt->pool);
    return pirn__pool_wait_stopped(rt->pool, deadline.ns > moment.ns ? deadline
                                                                     : moment);
}

static void run_down_pool(struct pirn_runtime *rt, pirn_deadline deadline)
{
    pirn_report *report = &rt->report;

    pirn__seat_wake_waiters(&rt->seat);
    report->in_time = drain_pool(rt, deadline) && stop_pool(rt, deadline);
    if (!report->in_time)
        abort_pool(rt, report);
    pirn__pool_close_alarms(rt->pool);
    release(rt, report);
}

static bool is_over(enum pirn__phase phase)
{
    return phase == PIRN__PHASE_DONE || phase == PIRN__PHASE_ABANDONED;
}

static void wait_until_over(struct pirn_runtime *rt)
{
    enum pirn__phase phase;

    /* Ends: the first caller publishes one of the two by its deadline. */
    while (!is_over(phase = pirn__runtime_phase(rt)))
        (void)pirn__sys->futex_wait(&rt->phase.v_, (uint32_t)phase, PIRN_NEVER);
}

/* True for the first caller, whose deadline stands. */
static bool begin(struct pirn_runtime *rt)
{
    bool first;

    pirn__lock(&rt->shutdown_lock);
    first = pirn__runtime_phase(rt) == PIRN__PHASE_OPEN;
    if (first)
        set_phase(rt, PIRN__PHASE_CLOSING);
    pirn__unlock(&rt->shutdown_lock);
    return first;
}

static int may_shut_down(const struct pirn_runtime *rt,
                         const struct pirn__local *local)
{
    if (local->turn != NULL || local->no_suspend > 0)
        return -EDEADLK;
    return rt->home.fork_generation == pirn__fork_generation() ? 0
                                                               : PIRN_EFORKED;
}

static int shut_down(pirn_runtime *rt, pirn_deadline deadline,
                     pirn_report *report)
{
    pirn__home_ref(&rt->home);
    if (begin(rt)) {
        close_and_cancel(rt);
        if (rt->pool != NULL)
            run_down_pool(rt, pirn__deadline_to_system(deadline));
        else
            run_down(rt, pirn__deadline_to_system(deadline));
    } else {
        wait_until_over(rt);
    }
    if (report != NULL)
        *report = rt->report;
    bool in_time = rt->report.in_time;

    pirn__home_unref(&rt->home);
    return in_time ? 0 : -ETIMEDOUT;
}

int pirn_runtime_shutdown(pirn_runtime *rt, pirn_deadline deadline,
                          pirn_report *report)
{
    struct pirn__local spare;
    int rc;

    if (report != NULL)
        *report = (pirn_report){0};
    if (rt == NULL)
        return -EINVAL;
    /* An end must be possible without memory. */
    rc = may_shut_down(rt, pirn__local_borrow(&spare));
    if (rc == 0)
        rc = shut_down(rt, deadline, report);
    pirn__local_return(&spare);
    return rc;
}
