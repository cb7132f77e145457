/* SPDX-License-Identifier: MIT */
/* src/testing/cancel.c - a scenario, cancelled at each step.
 *
 * A round has a current-thread runtime of its own whose turns poll one task at
 * most, or none: a turn of an interval of 0 only looks for events and fires
 * timers.  So between any two things that happen there is a moment in which the
 * victim can be cancelled.
 *
 * Memory comes from an allocator that is told when the last piece is back: if it
 * is not, soon after the runtime is gone, then the scenario has kept something.
 */
#include <pirn/testing.h>

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/atomic.h"
#include "sched/runtime.h"
#include "sys/heap.h"
#include "sys/sys.h"
#include "task/local.h"
#include "task/task.h"

enum {
    POINTS_DEFAULT = 100000,
    PATIENCE_DEFAULT_MS = 5000,
    AFTERMATH_STEPS = 100000, /* of the other tasks, once the victim has ended */
    NS_PER_MS = 1000 * 1000,
    LAST_PIECE_MS = 1000, /* a thread of the runtime may be a little late */
};

/* Memory of a round.  The second of two frees it: the round that is over, or the
 * runtime whose last piece is back. */
enum { METER_LIVE, METER_DONE, METER_LEFT };

struct meter {
    pirn_alloc alloc;
    PIRN_ATOMIC(uint32_t) state;
};

struct round {
    const pirn_cancel_case *scenario;
    pirn_cancel_report *report;
    struct meter *meter;
    pirn_runtime *rt;
    pirn_task *victim;
    uint32_t point; /* cancel after so many steps */
    uint32_t steps; /* made */
    bool cancelled;
};

static void *meter_take(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    return pirn__alloc_malloc.take(NULL, size, align);
}

static void meter_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    pirn__alloc_malloc.give(NULL, memory, size, align);
}

static void meter_free(struct meter *meter)
{
    pirn__alloc_malloc.give(NULL, meter, sizeof *meter,
                            _Alignof(struct meter));
}

static void meter_done(void *ctx)
{
    struct meter *meter = ctx;

    /* acq_rel [cancel.meter]: whoever comes second frees it after the first. */
    if (pirn__swap(&meter->state, METER_DONE, acq_rel) == METER_LEFT) {
        meter_free(meter);
        return;
    }
    /* The address may no longer be ours; such a wake does no harm. */
    pirn__sys->futex_wake(&meter->state.v_, 1);
}

/* False if something is still out after a while. */
static bool meter_wait(struct meter *meter)
{
    pirn_deadline until = {pirn__sys->clock_ns() +
                           (uint64_t)LAST_PIECE_MS * NS_PER_MS};
    int rc = 0;

    /* relaxed: a look; meter_leave() decides.  Ends at that time. */
    while (pirn__load(&meter->state, relaxed) == METER_LIVE && rc == 0)
        rc = pirn__sys->futex_wait(&meter->state.v_, METER_LIVE, until);
    return rc == 0;
}

static void meter_leave(struct meter *meter)
{
    /* acq_rel [cancel.meter]: as above. */
    if (pirn__swap(&meter->state, METER_LEFT, acq_rel) == METER_DONE)
        meter_free(meter);
}

/* Problems. */

static int fail(struct round *round, int rc, const char *what)
{
    pirn_cancel_report *report = round->report;
    pirn_text text = {report->problem, sizeof report->problem, 0};

    if (report->problem[0] != '\0')
        return rc;
    pirn_text_append(&text, "%s, ", what);
    if (!round->cancelled)
        pirn_text_append(&text, "without a cancellation");
    else if (round->point == 0)
        pirn_text_append(&text, "cancelled before its first run");
    else
        pirn_text_append(&text, "cancelled after step %u, %s %s", round->point,
                         report->woken ? "woken from" : "waiting for",
                         report->waits_for);
    if (rc != PIRN_EFAILED)
        pirn_text_append(&text, ": %s", pirn_err_name(rc));
    return rc;
}

/* Driving. */

static bool is_over(const struct round *round)
{
    return pirn_task_is_done(round->victim);
}

/* One turn that polls so many tasks. */
static void turn(struct round *round, uint32_t polls)
{
    uint32_t interval = round->rt->event_interval;

    round->rt->event_interval = polls;
    (void)!pirn_runtime_turn(round->rt, PIRN_EXPIRED);
    round->rt->event_interval = interval;
}

/* True if the runtime's descriptor shows something within so many ms. */
static bool comes_within(struct round *round, uint32_t ms)
{
    struct pollfd fd = {.fd = pirn_runtime_fd(round->rt), .events = POLLIN};
    pirn_deadline until = {pirn__sys->clock_ns() + (uint64_t)ms * NS_PER_MS};

    /* Ends at that time; a wait may end early for no reason. */
    while (pirn__sys->clock_ns() < until.ns) {
        if (pirn__sys->poll(&fd, 1, until) > 0)
            return true;
    }
    return false;
}

static uint32_t patience_ms(const struct round *round)
{
    uint32_t wanted = round->scenario->patience_ms;

    return wanted != 0 ? wanted : PATIENCE_DEFAULT_MS;
}

/* Nothing is ready.  False: and nothing will ever be. */
static bool wait_for_news(struct round *round)
{
    struct pirn__timers *timers = &round->rt->timers;
    /* relaxed: timers are armed on this thread, or their task is woken. */
    uint64_t next = pirn__load(&timers->next, relaxed);
    uint64_t now = pirn__timers_now(timers);

    if (next == UINT64_MAX)
        return comes_within(round, patience_ms(round));
    if (!comes_within(round, 1) && next > now)
        (void)!pirn_runtime_clock_advance(round->rt, next - now);
    return true;
}

/* Let one thing happen: events and deadlines arrive, or a task runs.  False if
 * nothing can. */
static bool step(struct round *round)
{
    /* Ends: news, or none within the patience. */
    while (!pirn__driver_has_ready(round->rt)) {
        turn(round, 0);
        if (pirn__driver_has_ready(round->rt)) {
            round->steps++;
            return true;
        }
        if (!wait_for_news(round))
            return false;
    }
    turn(round, 1);
    round->steps++;
    return true;
}

static void describe_victim(struct round *round)
{
    pirn_cancel_report *report = round->report;
    struct pirn__task *task = (struct pirn__task *)round->victim;
    pirn_text text = {report->waits_for, sizeof report->waits_for, 0};
    enum pirn_task_state state = PIRN_TASK_IDLE;

    (void)!pirn_id_state(pirn_task_get_id(round->victim), &state);
    report->woken = state == PIRN_TASK_QUEUED;
    /* We drive and poll nothing now. */
    pirn_future_describe(pirn__task_future(task), &text);
}

static int drive(struct round *round)
{
    while (!is_over(round) && round->steps < round->point) {
        if (!step(round))
            return fail(round, PIRN_EFAILED, "the task does not end");
    }
    if (!is_over(round)) {
        describe_victim(round);
        round->cancelled = true;
        pirn_task_cancel(round->victim);
    }
    /* A task that looks for nothing but itself is caught by the count. */
    for (uint32_t i = 0; i < POINTS_DEFAULT && !is_over(round); i++) {
        if (!step(round))
            break;
    }
    if (!is_over(round))
        return fail(round, PIRN_EFAILED, "the task does not end");
    for (uint32_t i = 0;
         i < AFTERMATH_STEPS && pirn__driver_has_ready(round->rt); i++)
        turn(round, 1);
    return 0;
}

static int check(struct round *round)
{
    const pirn_cancel_case *scenario = round->scenario;
    int rc = pirn_task_join(round->victim, PIRN_EXPIRED,
                            &round->report->outcome);

    /* What the task may still own goes before what it borrows. */
    pirn_task_unref(round->victim);
    round->victim = NULL;
    if (rc < 0)
        return fail(round, rc, "the task cannot be joined");
    rc = scenario->end == NULL
             ? 0
             : scenario->end(scenario->arg, round->report->outcome);
    return rc < 0 ? fail(round, rc, "the scenario's end objects") : 0;
}

/* One round. */

/* Between begin and the end of the runtime.  `rt` is current. */
static int run_scenario(struct round *round)
{
    const pirn_cancel_case *scenario = round->scenario;
    int rc = pirn_runtime_clock_pause(round->rt);

    if (rc == 0)
        rc = scenario->begin(scenario->arg, &round->victim);
    if (rc < 0)
        return fail(round, rc, "the scenario did not begin");
    if (round->victim == NULL)
        return fail(round, -EINVAL, "the scenario begins without a task");
    rc = drive(round);
    return rc < 0 ? rc : check(round);
}

static int end_runtime(struct round *round)
{
    pirn_deadline deadline = {pirn__sys->clock_ns() +
                              (uint64_t)patience_ms(round) * NS_PER_MS};
    int rc;

    (void)!pirn_runtime_clock_resume(round->rt);
    rc = pirn_runtime_shutdown(round->rt, deadline, NULL);
    pirn_task_unref(round->victim);
    pirn_runtime_unref(round->rt);
    if (rc == -ETIMEDOUT)
        return fail(round, PIRN_EFAILED, "shutdown had to abort a task");
    return rc;
}

static int run_round(struct round *round)
{
    const pirn_runtime_options options = {
        .alloc = &round->meter->alloc,
        .seed = 1,
        .shared_interval = 1,
        .event_interval = 1,
    };
    pirn_runtime *outer;
    int rc = pirn_runtime_new(&options, &round->rt);
    int end_rc;

    if (rc < 0)
        return rc;
    outer = pirn_runtime_enter(round->rt);
    rc = run_scenario(round);
    (void)pirn_runtime_enter(outer);
    end_rc = end_runtime(round);
    if (rc == 0)
        rc = end_rc;
    if (rc == 0 && !meter_wait(round->meter))
        rc = fail(round, PIRN_EFAILED,
                  "something was not given up: a handle, a connection, a "
                  "buffer or the like");
    return rc;
}

static struct meter *meter_new(void)
{
    struct meter *meter = pirn__alloc_malloc.take(NULL, sizeof *meter,
                                                  _Alignof(struct meter));

    if (meter == NULL)
        return NULL;
    memset(meter, 0, sizeof *meter);
    meter->alloc = (pirn_alloc){.take = meter_take,
                                .give = meter_give,
                                .done = meter_done,
                                .ctx = meter};
    return meter;
}

static int sweep_point(const pirn_cancel_case *scenario, uint32_t point,
                       pirn_cancel_report *report)
{
    struct round round = {
        .scenario = scenario,
        .report = report,
        .meter = meter_new(),
        .point = point,
    };
    int rc;

    if (round.meter == NULL)
        return -ENOMEM;
    report->point = point;
    rc = run_round(&round);
    if (round.rt == NULL)
        meter_free(round.meter);
    else
        meter_leave(round.meter);
    report->untouched = !round.cancelled;
    report->points += round.cancelled;
    return rc;
}

/* 0 if this thread may drive a runtime. */
static int may_drive(void)
{
    struct pirn__local *local = pirn__local();

    if (local == NULL)
        return -ENOMEM;
    return local->turn != NULL || local->no_suspend > 0 ? -EDEADLK : 0;
}

int pirn_cancel_sweep(const pirn_cancel_case *scenario,
                      pirn_cancel_report *report)
{
    pirn_cancel_report own;
    uint32_t points;
    int rc = may_drive();

    if (report == NULL)
        report = &own;
    *report = (pirn_cancel_report){.points = 0};
    if (scenario == NULL || scenario->begin == NULL)
        return -EINVAL;
    if (rc < 0)
        return rc;
    points = scenario->points != 0 ? scenario->points : POINTS_DEFAULT;
    for (uint32_t point = 0; point <= points; point++) {
        rc = sweep_point(scenario, point, report);
        if (rc < 0)
            return rc;
        if (report->untouched)
            return (int)report->points;
    }
    return -EOVERFLOW;
}
