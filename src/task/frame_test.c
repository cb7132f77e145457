/* SPDX-License-Identifier: MIT */
/* src/task/frame_test.c - stackless tasks written with the PIRN_ASYNC_ macros,
 * polled by hand: loops, early ends, nesting, deadlines, and who is dropped and
 * cleaned up when. */
#include <pirn/async.h>

#include "engine/poller.h"
#include "engine/timers_fixture.h"

/* A child that is ready at its n-th poll and counts what becomes of it. */
struct child {
    pirn_future future;
    int ready_at; /* 0: never */
    int polls;
    int drops;
    pirn_waker waker;
};

static enum pirn_poll child_poll(pirn_future *self, pirn_cx *cx)
{
    struct child *child = PIRN_CONTAINER_OF(self, struct child, future);

    if (++child->polls == child->ready_at) {
        pirn_waker_drop(pirn_waker_take(&child->waker));
        return PIRN_READY;
    }
    pirn_waker_drop(pirn_waker_store(&child->waker, cx));
    return PIRN_PENDING;
}

static void child_drop(pirn_future *self)
{
    struct child *child = PIRN_CONTAINER_OF(self, struct child, future);

    child->drops++;
    pirn_waker_drop(pirn_waker_take(&child->waker));
}

static void child_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "a child");
}

static const pirn_future_ops child_ops = {
    .poll = child_poll,
    .drop = child_drop,
    .describe = child_describe,
};

static void child_init(struct child *child, int ready_at)
{
    *child = (struct child){.future = {&child_ops}, .ready_at = ready_at};
}

/* A task that awaits its child `rounds` times and may leave early. */
struct walker {
    pirn_frame frame;
    struct child child;
    int rounds;
    int leave_at; /* -1: never */
    int steps;
    int cleanups;
    int child_drops_at_cleanup;
};

static enum pirn_poll walker_poll(pirn_future *self, pirn_cx *cx)
{
    struct walker *w = PIRN_FRAME_OF(self, struct walker, frame);

    PIRN_ASYNC_BEGIN(&w->frame, cx);
    for (w->steps = 0; w->steps < w->rounds; w->steps++) {
        if (w->steps == w->leave_at)
            PIRN_ASYNC_RETURN(-EIO);
        child_init(&w->child, 2);
        PIRN_AWAIT(&w->child.future);
        EXPECT_EQ(2, w->child.polls);
    }
    PIRN_ASYNC_END();
}

static void walker_cleanup(pirn_frame *frame)
{
    struct walker *w = PIRN_CONTAINER_OF(frame, struct walker, frame);

    w->cleanups++;
    w->child_drops_at_cleanup = w->child.drops;
}

static const pirn_async_ops walker_ops =
    PIRN_ASYNC_OPS(walker_poll, walker_cleanup);

static void walker_init(struct walker *w, int rounds, int leave_at)
{
    *w = (struct walker){.rounds = rounds, .leave_at = leave_at};
    pirn_frame_init(&w->frame, &walker_ops);
}

/* Poll until ready, waking the poller's way; returns the number of polls. */
static int poll_through(poller *p)
{
    int polls = 1;

    while (polls < 100 && poller_poll(p) == PIRN_PENDING)
        polls++;
    return polls;
}

/* Goal: a loop of awaits goes on where it was; falling out of the body is
 * outcome 0, and the clean-up runs once.
 * Method: five rounds, each pending once. */
TEST(frame_resumes_in_its_loop)
{
    struct walker w;
    poller p = {.fut = &w.frame.future};

    walker_init(&w, 5, -1);
    EXPECT_EQ(6, poll_through(&p));
    EXPECT_EQ(5, w.steps);
    EXPECT_EQ(0, pirn_future_outcome(&w.frame.future));
    EXPECT_EQ(1, w.cleanups);
    EXPECT_EQ(0, w.child.drops);
}

/* Goal: an early return gives its outcome and cleans up once.
 * Method: leave in the third round. */
TEST(frame_returns_early_with_an_outcome)
{
    struct walker w;
    poller p = {.fut = &w.frame.future};

    walker_init(&w, 5, 2);
    EXPECT_EQ(3, poll_through(&p));
    EXPECT_EQ(2, w.steps);
    EXPECT_EQ(-EIO, pirn_future_outcome(&w.frame.future));
    EXPECT_EQ(-EIO, w.frame.rc);
    EXPECT_EQ(1, w.cleanups);
}

/* Goal: dropping a frame drops the child it awaits, then cleans up once.
 * Method: drop in the middle of an await. */
TEST(frame_dropped_in_an_await_drops_the_child_first)
{
    struct walker w;
    poller p = {.fut = &w.frame.future};

    walker_init(&w, 5, -1);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(1, p.wakers);
    poller_drop(&p);
    EXPECT_EQ(1, w.child.drops);
    EXPECT_EQ(1, w.cleanups);
    EXPECT_EQ(1, w.child_drops_at_cleanup);
}

/* Goal: the clean-up is due from init on, so that what the frame owns is given
 * back even if it never ran.
 * Method: drop before the first poll. */
TEST(frame_dropped_before_its_first_poll_is_cleaned_up)
{
    struct walker w;
    poller p = {.fut = &w.frame.future};

    walker_init(&w, 5, -1);
    poller_drop(&p);
    EXPECT_EQ(0, w.child.drops);
    EXPECT_EQ(1, w.cleanups);
}

/* Goal: a frame tells what it waits for.
 * Method: describe it before its first poll and in an await. */
TEST(frame_describes_what_it_awaits)
{
    char buf[32] = "";
    pirn_text text = {buf, sizeof buf, 0};
    struct walker w;
    poller p = {.fut = &w.frame.future};

    walker_init(&w, 1, -1);
    pirn_future_describe(&w.frame.future, &text);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    text = (pirn_text){buf, sizeof buf, 0};
    pirn_future_describe(&w.frame.future, &text);
    EXPECT_STR_EQ("a child", buf);
    poller_drop(&p);
}

/* A task without a clean-up that awaits a walker, which awaits its children. */
struct outer {
    pirn_frame frame;
    struct walker inner;
};

static enum pirn_poll outer_poll(pirn_future *self, pirn_cx *cx)
{
    struct outer *o = PIRN_FRAME_OF(self, struct outer, frame);

    PIRN_ASYNC_BEGIN(&o->frame, cx);
    walker_init(&o->inner, 2, 1);
    PIRN_AWAIT(&o->inner.frame.future);
    PIRN_ASYNC_RETURN(o->inner.frame.rc == -EIO ? o->inner.steps : -1);
    PIRN_ASYNC_END();
}

static const pirn_async_ops outer_ops = PIRN_ASYNC_OPS(outer_poll, NULL);

/* Goal: frames nest: results come up in fields, drops go down to the innermost.
 * Method: run one to its end; drop another in its innermost await. */
TEST(frame_awaits_another_frame)
{
    struct outer o;
    poller p = {.fut = &o.frame.future};

    pirn_frame_init(&o.frame, &outer_ops);
    EXPECT_EQ(2, poll_through(&p));
    EXPECT_EQ(1, pirn_future_outcome(&o.frame.future));
    EXPECT_EQ(1, o.inner.cleanups);

    pirn_frame_init(&o.frame, &outer_ops);
    p.fut = &o.frame.future;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    poller_drop(&p);
    EXPECT_EQ(1, o.inner.child.drops);
    EXPECT_EQ(1, o.inner.cleanups);
}

/* A task that awaits two children, of which the second is never ready. */
struct pair {
    pirn_frame frame;
    struct child first, second;
};

static enum pirn_poll pair_poll(pirn_future *self, pirn_cx *cx)
{
    struct pair *pair = PIRN_FRAME_OF(self, struct pair, frame);

    PIRN_ASYNC_BEGIN(&pair->frame, cx);
    child_init(&pair->first, 1);
    child_init(&pair->second, 0);
    PIRN_AWAIT(&pair->first.future);
    PIRN_AWAIT(&pair->second.future);
    PIRN_ASYNC_END();
}

static const pirn_async_ops pair_ops = PIRN_ASYNC_OPS(pair_poll, NULL);

/* Goal: a child that has ended is not dropped later.
 * Method: drop the frame while it awaits the second child. */
TEST(frame_drops_only_the_child_that_is_live)
{
    struct pair pair;
    poller p = {.fut = &pair.frame.future};

    pirn_frame_init(&pair.frame, &pair_ops);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(1, pair.first.polls);
    EXPECT_EQ(1, pair.second.polls);
    poller_drop(&p);
    EXPECT_EQ(0, pair.first.drops);
    EXPECT_EQ(1, pair.second.drops);
}

/* A task that fails with words after an await. */
static enum pirn_poll failing_poll(pirn_future *self, pirn_cx *cx)
{
    struct walker *w = PIRN_FRAME_OF(self, struct walker, frame);

    PIRN_ASYNC_BEGIN(&w->frame, cx);
    child_init(&w->child, 2);
    PIRN_AWAIT(&w->child.future);
    pirn_cx_fail(cx, "step %d", w->child.polls);
    PIRN_ASYNC_RETURN(0);
    PIRN_ASYNC_END();
}

static const pirn_async_ops failing_ops =
    PIRN_ASYNC_OPS(failing_poll, walker_cleanup);

/* Goal: a frame that fails is cleaned up like any other, once.
 * Method: fail after an await; the turn holds the words for the task. */
TEST(frame_that_fails_is_cleaned_up_once)
{
    struct pirn__turn turn = {.budget = PIRN__COOP_BUDGET};
    struct walker w = {0};
    poller p = {.fut = &w.frame.future, .turn = &turn};

    pirn_frame_init(&w.frame, &failing_ops);
    EXPECT_EQ(2, poll_through(&p));
    EXPECT_EQ(1, w.cleanups);
    EXPECT_EQ(0, w.child.drops);
    EXPECT(turn.failed);
    EXPECT_STR_EQ("step 2", turn.message);
}

/* A task that awaits a child with a deadline, twice. */
struct hurried {
    pirn_frame frame;
    pirn_timeout_op timeout;
    struct child child;
    int ready_at;
    int rcs[2];
};

static enum pirn_poll hurried_poll(pirn_future *self, pirn_cx *cx)
{
    struct hurried *h = PIRN_FRAME_OF(self, struct hurried, frame);

    PIRN_ASYNC_BEGIN(&h->frame, cx);
    child_init(&h->child, h->ready_at);
    PIRN_AWAIT_UNTIL(&h->timeout, &h->child.future, pirn_after_ms(10));
    h->rcs[0] = h->timeout.rc;
    child_init(&h->child, h->ready_at);
    PIRN_AWAIT_UNTIL(&h->timeout, &h->child.future, pirn_after_ms(10));
    h->rcs[1] = h->timeout.rc;
    PIRN_ASYNC_END();
}

static const pirn_async_ops hurried_ops = PIRN_ASYNC_OPS(hurried_poll, NULL);

/* Goal: an await with a deadline ends with its child or at its time, whichever
 * comes first, and drops the child only then; the same timeout serves again.
 * Method: on a paused clock, children that are ready and that never are. */
TEST(frame_awaits_until_a_deadline)
{
    struct test_home home;
    struct hurried h = {.ready_at = 2, .rcs = {1, 1}};
    poller p = {.fut = &h.frame.future, .turn = &home.turn};

    test_home_begin(&home);
    pirn_frame_init(&h.frame, &hurried_ops);
    EXPECT_EQ(3, poll_through(&p));
    EXPECT_EQ(0, h.rcs[0]);
    EXPECT_EQ(0, h.rcs[1]);

    h = (struct hurried){.ready_at = 0, .rcs = {1, 1}};
    pirn_frame_init(&h.frame, &hurried_ops);
    p.fut = &h.frame.future;
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
        (void)advance_ns(&home, 10 * MS - 1);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
        EXPECT_EQ(1, h.rcs[i]);
        EXPECT_EQ(1, advance_ns(&home, 1));
        EXPECT_EQ(i + 1, p.wakes);
        EXPECT_EQ(i == 0 ? PIRN_PENDING : PIRN_READY, poller_poll(&p));
        EXPECT_EQ(-ETIMEDOUT, h.rcs[i]);
    }
    test_home_finish(&home);
}

/* Goal: a frame dropped in an await with a deadline takes both out.
 * Method: drop; no timer is left on the wheel. */
TEST(frame_dropped_until_a_deadline_leaves_no_timer)
{
    struct test_home home;
    struct hurried h = {.ready_at = 0};
    poller p = {.fut = &h.frame.future, .turn = &home.turn};

    test_home_begin(&home);
    pirn_frame_init(&h.frame, &hurried_ops);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(1, pirn__timers_count(&home.timers));
    poller_drop(&p);
    EXPECT_EQ(1, h.child.drops);
    test_home_finish(&home);
}

/* A task that awaits a future that is always ready, and notes how deep the
 * stack is at each turn. */
struct climber {
    pirn_frame frame;
    pirn_future always;
    size_t left;
    uintptr_t lowest, highest;
};

static enum pirn_poll always_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    return PIRN_READY;
}

static void always_drop(pirn_future *self)
{
    (void)self;
}

static const pirn_future_ops always_ops = {.poll = always_poll,
                                           .drop = always_drop};

__attribute__((noinline)) static void note_depth(struct climber *c)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    c->lowest = here < c->lowest ? here : c->lowest;
    c->highest = here > c->highest ? here : c->highest;
}

static enum pirn_poll climber_poll(pirn_future *self, pirn_cx *cx)
{
    struct climber *c = PIRN_FRAME_OF(self, struct climber, frame);

    PIRN_ASYNC_BEGIN(&c->frame, cx);
    while (c->left > 0) {
        PIRN_AWAIT(&c->always);
        note_depth(c);
        c->left--;
    }
    PIRN_ASYNC_END();
}

static const pirn_async_ops climber_ops = PIRN_ASYNC_OPS(climber_poll, NULL);

/* Goal: ten million awaits of ready futures in one task do not grow the stack.
 * Method: the address of a frame in the innermost call, each time. */
TEST(frame_of_ten_million_ready_awaits_keeps_its_stack)
{
    struct climber c = {
        .always = {&always_ops},
        .left = test_size(1000000, 10000000, 100000000),
        .lowest = UINTPTR_MAX,
    };
    poller p = {.fut = &c.frame.future};

    pirn_frame_init(&c.frame, &climber_ops);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(0, c.left);
    EXPECT_EQ(c.highest, c.lowest);
}
