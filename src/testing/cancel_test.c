/* SPDX-License-Identifier: MIT */
/* src/testing/cancel_test.c - sweeps of sound code, and of code with planted
 * bugs, of which none may stay hidden.
 */
#include <pirn/async.h>
#include <pirn/blocking.h>
#include <pirn/io.h>
#include <pirn/testing.h>

#include <errno.h>

#include "engine/test.h"

static pirn_cancel_case case_of(pirn_cancel_begin_fn *begin,
                                pirn_cancel_end_fn *end, void *arg)
{
    return (pirn_cancel_case){.begin = begin, .end = end, .arg = arg};
}

static void expect_problem(const pirn_cancel_case *scenario, int rc,
                           const char *words)
{
    pirn_cancel_report report;

    EXPECT_EQ(rc, pirn_cancel_sweep(scenario, &report));
    if (strstr(report.problem, words) == NULL)
        EXPECT_STR_EQ(words, report.problem);
}

/* Money that is moved from one account to another. */
struct accounts {
    pirn_fiber_fn *mover;
    int from;
    int to;
    uint32_t rounds;
};

static int begin_move(void *arg, pirn_task **victim)
{
    struct accounts *accounts = arg;

    accounts->from = 100;
    accounts->to = 0;
    accounts->rounds++;
    return pirn_go_with(accounts->mover, accounts, NULL, victim);
}

static int end_move(void *arg, int outcome)
{
    const struct accounts *accounts = arg;

    EXPECT(outcome == 0 || outcome == -ECANCELED);
    EXPECT(outcome != 0 || accounts->to == 100);
    return accounts->from + accounts->to == 100 ? 0 : -EIO;
}

static int move_soundly(void *arg)
{
    struct accounts *accounts = arg;
    int rc = 0;

    for (int i = 0; i < 10 && rc == 0; i++) {
        rc = pirn_sleep(pirn_after_ms(3600 * 1000));
        if (rc == 0) {
            accounts->from -= 10;
            accounts->to += 10;
        }
    }
    return rc;
}

/* Goal: code that bears a cancellation everywhere passes, without waiting for
 * real time, and each await is met twice: waiting, and woken.
 * Method: ten sleeps of an hour; before the first run, and two steps each. */
TEST(cancel_sweep_of_sound_code_passes)
{
    struct accounts accounts = {.mover = move_soundly};
    const pirn_cancel_case scenario = case_of(begin_move, end_move, &accounts);
    pirn_cancel_report report;

    EXPECT_EQ(21, pirn_cancel_sweep(&scenario, &report));
    EXPECT_EQ(21, report.points);
    EXPECT_EQ(22, accounts.rounds);
    EXPECT(report.untouched);
    EXPECT_EQ(0, report.outcome);
    EXPECT_STR_EQ("", report.problem);
}

static int move_in_two_steps(void *arg)
{
    struct accounts *accounts = arg;
    int rc = pirn_yield();

    if (rc < 0)
        return rc;
    accounts->from -= 100;
    rc = pirn_sleep(pirn_after_ms(1));
    if (rc == 0)
        accounts->to += 100;
    return rc;
}

/* Goal: what loses something when it is cancelled is found, with the place.
 * Method: an await between taking and giving. */
TEST(cancel_sweep_finds_what_is_lost)
{
    struct accounts accounts = {.mover = move_in_two_steps};
    const pirn_cancel_case scenario = case_of(begin_move, end_move, &accounts);
    pirn_cancel_report report;

    EXPECT_EQ(-EIO, pirn_cancel_sweep(&scenario, &report));
    EXPECT_EQ(1, report.point);
    EXPECT(report.woken);
    EXPECT_EQ(-ECANCELED, report.outcome);
    EXPECT_STR_EQ("the scenario's end objects, cancelled after step 1, woken "
                  "from yield: EIO",
                  report.problem);
}

/* A value that is handed over: from giver to taker, by its waker. */
struct hand_over {
    bool gives_back;
    int value;         /* with the giver */
    int in_flight;     /* given, and not seen by the taker */
    int taken;
    pirn_waker waker;  /* of the taker */
};

struct take_op {
    pirn_future future;
    struct hand_over *hand_over;
};

static enum pirn_poll take_poll(pirn_future *self, pirn_cx *cx)
{
    struct hand_over *h =
        PIRN_CONTAINER_OF(self, struct take_op, future)->hand_over;

    if (h->in_flight == 0) {
        pirn_waker_drop(pirn_waker_store(&h->waker, cx));
        return PIRN_PENDING;
    }
    h->taken = h->in_flight;
    h->in_flight = 0;
    return PIRN_READY;
}

static void take_drop(pirn_future *self)
{
    struct hand_over *h =
        PIRN_CONTAINER_OF(self, struct take_op, future)->hand_over;

    if (h->gives_back)
        h->value += h->in_flight;
    h->in_flight = 0;
    pirn_waker_drop(pirn_waker_take(&h->waker));
}

static void take_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "a gift");
}

static struct take_op take_op_of(struct hand_over *hand_over)
{
    static const pirn_future_ops ops = {
        .poll = take_poll, .drop = take_drop, .describe = take_describe};

    return (struct take_op){{&ops}, hand_over};
}

static int give(void *arg)
{
    struct hand_over *h = arg;
    int rc = pirn_yield();

    if (rc == 0 && h->waker.ops != NULL) {
        h->in_flight = h->value;
        h->value = 0;
        pirn_waker_wake(pirn_waker_take(&h->waker));
        /* Give the sweep a moment in which only the wake has happened. */
        rc = pirn_yield();
    }
    return rc;
}

static int begin_hand_over(void *arg, pirn_task **victim)
{
    struct hand_over *h = arg;
    struct take_op op = take_op_of(h);
    int rc;

    *h = (struct hand_over){.gives_back = h->gives_back, .value = 1};
    rc = pirn_spawn(&op.future, sizeof op, NULL, victim);
    return rc < 0 ? rc : pirn_go(give, h);
}

static int end_hand_over(void *arg, int outcome)
{
    const struct hand_over *h = arg;

    if (outcome == 0)
        return h->taken == 1 ? 0 : -EIO;
    return h->taken + h->value == 1 ? 0 : -ENODATA;
}

/* Goal: what was handed to a task that is cancelled before it looks is found to
 * be lost; a future that gives it back passes.
 * Method: a hand-over of one value, with and without that line. */
TEST(cancel_sweep_finds_what_is_lost_in_flight)
{
    struct hand_over h = {.gives_back = true};
    const pirn_cancel_case scenario =
        case_of(begin_hand_over, end_hand_over, &h);
    pirn_cancel_report report;

    EXPECT_GE(pirn_cancel_sweep(&scenario, &report), 3);
    EXPECT_STR_EQ("", report.problem);
    h.gives_back = false;
    EXPECT_EQ(-ENODATA, pirn_cancel_sweep(&scenario, &report));
    EXPECT_STR_EQ("the scenario's end objects, cancelled after step 2, waiting "
                  "for a gift: ENODATA",
                  report.problem);
}

static pirn_buf *kept;

static int keep_buffer(void *arg)
{
    int rc = pirn_yield();

    (void)arg;
    if (rc == 0)
        rc = pirn_buf_new(100, &kept);
    if (rc < 0)
        return rc;
    rc = pirn_sleep(pirn_after_ms(1));
    if (rc == 0)
        pirn_buf_unref(kept);
    return rc;
}

static int begin_fiber(void *arg, pirn_task **victim)
{
    return pirn_go_with(*(pirn_fiber_fn **)arg, NULL, NULL, victim);
}

/* Goal: an object of the library that is forgotten on the path of cancellation is
 * found.
 * Method: a buffer that is given up only when all goes well. */
TEST(cancel_sweep_finds_a_leak)
{
    pirn_fiber_fn *fn = keep_buffer;
    const pirn_cancel_case scenario = case_of(begin_fiber, NULL, &fn);

    expect_problem(&scenario, PIRN_EFAILED,
                   "something was not given up: a handle, a connection, a "
                   "buffer or the like, cancelled after step 1");
    /* The sanitizer need not find it, too. */
    pirn_buf_unref(kept);
}

static int sleep_under_shield(void *arg)
{
    struct hand_over nobody = {.value = 0};
    struct take_op op = take_op_of(&nobody);
    int rc = pirn_yield();

    (void)arg;
    if (rc < 0)
        return rc;
    rc = pirn_sleep(pirn_after_ms(1));
    if (rc < 0) {
        pirn_fiber_shield_begin();
        rc = pirn_await(&op.future, PIRN_NEVER);
        pirn_fiber_shield_end();
    }
    return rc;
}

/* Goal: a task that does not end when it is cancelled is found.
 * Method: its clean-up waits for what nobody gives. */
TEST(cancel_sweep_finds_a_task_that_stays)
{
    pirn_fiber_fn *fn = sleep_under_shield;
    pirn_cancel_case scenario = case_of(begin_fiber, NULL, &fn);

    scenario.patience_ms = 50;
    expect_problem(&scenario, PIRN_EFAILED,
                   "the task does not end, cancelled after step 1, woken from "
                   "yield");
}

static int never_end(void *arg)
{
    pirn_fiber_fn *self = never_end;

    (void)arg;
    return self != NULL ? pirn_sleep(PIRN_NEVER) : 0;
}

/* Goal: a scenario that does not end by itself is told from one that does not
 * end when it is cancelled.
 * Method: an endless sleep; it has no second step. */
TEST(cancel_sweep_finds_a_scenario_without_end)
{
    pirn_fiber_fn *fn = never_end;
    pirn_cancel_case scenario = case_of(begin_fiber, NULL, &fn);

    scenario.patience_ms = 50;
    expect_problem(&scenario, PIRN_EFAILED,
                   "the task does not end, without a cancellation");
}

/* A stackless task that holds something between two awaits. */
struct holder {
    pirn_frame frame;
    pirn_sleep_op sleep;
    int *held;
};

static enum pirn_poll holder_poll(pirn_future *self, pirn_cx *cx)
{
    struct holder *holder = PIRN_FRAME_OF(self, struct holder, frame);

    PIRN_ASYNC_BEGIN(&holder->frame, cx);
    ++*holder->held;
    pirn_sleep_init(&holder->sleep, pirn_after_ms(1));
    PIRN_AWAIT(&holder->sleep.future);
    --*holder->held;
    PIRN_ASYNC_END();
}

static void holder_cleanup(pirn_frame *frame)
{
    struct holder *holder = PIRN_CONTAINER_OF(frame, struct holder, frame);

    *holder->held = 0;
}

struct holding {
    int held;
    bool cleans_up;
};

static int begin_holding(void *arg, pirn_task **victim)
{
    static const pirn_async_ops careless = PIRN_ASYNC_OPS(holder_poll, NULL);
    static const pirn_async_ops careful =
        PIRN_ASYNC_OPS(holder_poll, holder_cleanup);
    struct holding *holding = arg;
    struct holder holder = {.held = &holding->held};

    holding->held = 0;
    pirn_frame_init(&holder.frame, holding->cleans_up ? &careful : &careless);
    return pirn_spawn(&holder.frame.future, sizeof holder, NULL, victim);
}

static int end_holding(void *arg, int outcome)
{
    (void)outcome;
    return ((struct holding *)arg)->held == 0 ? 0 : -EBUSY;
}

/* Goal: stackless tasks are swept as fibers are.
 * Method: what is held across an await, with and without a clean-up. */
TEST(cancel_sweep_of_a_stackless_task)
{
    struct holding holding = {.cleans_up = true};
    const pirn_cancel_case scenario =
        case_of(begin_holding, end_holding, &holding);

    EXPECT_EQ(3, pirn_cancel_sweep(&scenario, NULL));
    holding.cleans_up = false;
    expect_problem(&scenario, -EBUSY, "cancelled after step 1, waiting for");
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int run_job(void *arg)
{
    return pirn_blocking_run(do_nothing, arg);
}

/* Goal: what takes real time is waited for.
 * Method: a blocking job. */
TEST(cancel_sweep_waits_for_jobs)
{
    pirn_fiber_fn *fn = run_job;
    const pirn_cancel_case scenario = case_of(begin_fiber, NULL, &fn);

    EXPECT_GE(pirn_cancel_sweep(&scenario, NULL), 1);
}

static int refuse(void *arg, pirn_task **victim)
{
    (void)victim;
    return *(int *)arg;
}

static int sweep_inside(void *arg)
{
    pirn_fiber_fn *fn = do_nothing;
    const pirn_cancel_case scenario = case_of(begin_fiber, NULL, &fn);

    (void)arg;
    return pirn_cancel_sweep(&scenario, NULL);
}

/* Goal: each documented error.
 * Method: one call each. */
TEST(cancel_sweep_errors)
{
    struct accounts accounts = {.mover = move_soundly};
    pirn_cancel_case scenario = case_of(begin_move, end_move, &accounts);
    pirn_cancel_report report;
    int code = -ENXIO;

    memset(&report, 'x', sizeof report);
    EXPECT_EQ(-EINVAL, pirn_cancel_sweep(NULL, &report));
    EXPECT_EQ(0, report.points);
    EXPECT_STR_EQ("", report.problem);
    EXPECT_EQ(-EINVAL, pirn_cancel_sweep(NULL, NULL));
    EXPECT_EQ(-EINVAL, pirn_cancel_sweep(&(pirn_cancel_case){0}, NULL));
    EXPECT_EQ(-EDEADLK, pirn_run(sweep_inside, NULL));
    scenario.points = 5;
    EXPECT_EQ(-EOVERFLOW, pirn_cancel_sweep(&scenario, &report));
    EXPECT_EQ(6, report.points);
    scenario = case_of(refuse, NULL, &code);
    expect_problem(&scenario, -ENXIO, "the scenario did not begin, without");
    code = 0;
    expect_problem(&scenario, -EINVAL, "the scenario begins without a task");
}
