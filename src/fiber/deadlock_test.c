/* SPDX-License-Identifier: MIT */
/* src/fiber/deadlock_test.c - the places where nothing may wait: inside a poll, a
 * drop, a discard, a describe, a waker, a hook. */
#include "fiber/rig_test.h"

static int return_zero(void *arg)
{
    (void)arg;
    return 0;
}

static pirn_task *ended_task; /* would not keep a joiner waiting */
static int places;            /* how many tried */

/* Try every straight-line call, with what would not have to wait; each must say
 * -EDEADLK. */
static void try_everything(void)
{
    struct gate gate = OPEN_GATE;
    int outcome;

    EXPECT_EQ(-EDEADLK, pirn_await(&gate.future, PIRN_NEVER));
    EXPECT_EQ(0, gate.polls);
    EXPECT_EQ(1, gate.drops);
    EXPECT_EQ(-EDEADLK, pirn_yield());
    EXPECT_EQ(-EDEADLK, pirn_sleep(PIRN_EXPIRED));
    EXPECT_EQ(-EDEADLK, pirn_task_join(ended_task, PIRN_NEVER, &outcome));
    EXPECT_EQ(-EDEADLK, pirn_run(return_zero, NULL));
    places++;
}

static int try_in_poll(struct gate *gate)
{
    (void)gate;
    try_everything();
    return 0;
}

static void try_in_drop(struct gate *gate)
{
    (void)gate;
    try_everything();
}

static pirn_waker nosy_clone(const pirn_waker *self)
{
    try_everything();
    return *self;
}

static void nosy_wake_by_ref(const pirn_waker *self)
{
    (void)self;
    try_everything();
}

static void nosy_wake(pirn_waker self)
{
    (void)self;
    try_everything();
}

static const pirn_waker_ops nosy_ops = {
    .clone = nosy_clone,
    .wake = nosy_wake,
    .wake_by_ref = nosy_wake_by_ref,
    .drop = nosy_wake,
};

/* A fiber's own polls, drops and wakers. */
static int try_around_a_fiber(void *arg)
{
    struct gate gate = OPEN_GATE;
    pirn_waker waker = {.ops = &nosy_ops};

    (void)arg;
    gate.on_poll = try_in_poll;
    EXPECT_EQ(0, pirn_await(&gate.future, PIRN_NEVER));
    gate_reset(&gate);
    gate.on_poll = try_in_poll;
    gate.on_drop = try_in_drop;
    EXPECT_EQ(-ETIMEDOUT, pirn_await(&gate.future, PIRN_EXPIRED));
    pirn_waker_wake_by_ref(&waker);
    pirn_waker_wake(pirn_waker_clone(&waker));
    pirn_waker_drop(waker);
    EXPECT_EQ(0, pirn_yield());
    return 0;
}

/* Goal: inside a poll that a fiber's await drives, a drop and a waker, nothing
 * may wait; the fiber itself may, right afterwards.
 * Method: try every call in each. */
TEST(wait_inside_what_a_fiber_calls_is_a_deadlock)
{
    struct rig rig;

    rig_begin(&rig);
    ended_task = rig_go(return_zero, NULL);
    rig_turn(&rig);
    places = 0;
    EXPECT_EQ(0, pirn_go(try_around_a_fiber, NULL));
    rig_turn(&rig);
    EXPECT_EQ(7, places);
    EXPECT_EQ(0, rig_outcome(ended_task));
    rig_end(&rig);
}

/* A stackless task that tries, and its clean-up, discard and describe. */
struct trier {
    pirn_frame frame;
    struct gate gate;
};

static enum pirn_poll trier_poll(pirn_future *self, pirn_cx *cx)
{
    struct trier *t = PIRN_FRAME_OF(self, struct trier, frame);

    PIRN_ASYNC_BEGIN(&t->frame, cx);
    try_everything();
    if (!t->gate.open)
        PIRN_AWAIT(&t->gate.future);
    PIRN_ASYNC_END();
}

static void trier_cleanup(pirn_frame *frame)
{
    (void)frame;
    try_everything();
}

static void trier_discard(pirn_future *self)
{
    (void)self;
    try_everything();
}

static void trier_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    (void)out;
    try_everything();
}

static const pirn_async_ops trier_ops = {
    {trier_poll, pirn_frame_drop, trier_discard, trier_describe,
     pirn_frame_outcome},
    trier_cleanup,
};

static int spawn_trier(bool open)
{
    struct trier t = {.gate = GATE};

    t.gate.open = open;
    pirn_frame_init(&t.frame, &trier_ops);
    return pirn_spawn(&t.frame.future, sizeof t, NULL, NULL);
}

/* Goal: a stackless task may wait nowhere: not in its poll, its clean-up, when
 * it is dropped, discarded or described.
 * Method: one that ends, one that is dropped by the shutdown. */
TEST(wait_inside_a_stackless_task_is_a_deadlock)
{
    struct rig rig;

    rig_begin(&rig);
    ended_task = rig_go(return_zero, NULL);
    rig_turn(&rig);
    places = 0;
    EXPECT_EQ(0, spawn_trier(true));
    rig_turn(&rig);
    EXPECT_EQ(3, places); /* poll, clean-up, discard */
    EXPECT_EQ(0, spawn_trier(false));
    rig_turn(&rig);
    EXPECT_EQ(4, places);
    EXPECT_EQ(0, pirn_runtime_shutdown(rig.rt, PIRN_EXPIRED, NULL));
    EXPECT_EQ(5, places);
    EXPECT_EQ(0, rig_outcome(ended_task));
    rig_end(&rig);
}

static void nosy_hook(void *arg, const pirn_failure *failure)
{
    (void)arg;
    EXPECT_EQ(-EIO, failure->outcome);
    try_everything();
}

static int return_eio(void *arg)
{
    (void)arg;
    return -EIO;
}

/* Goal: nothing may wait in the failure hook.
 * Method: a failing fiber without a handle, and a handle given up unseen. */
TEST(wait_inside_the_failure_hook_is_a_deadlock)
{
    const pirn_runtime_options options = {.on_failure = nosy_hook};
    pirn_spawn_options spawn = {0};
    pirn_task *task;

    places = 0;
    EXPECT_EQ(0, pirn_runtime_new(&options, &spawn.runtime));
    EXPECT_EQ(0, pirn_go_with(return_zero, NULL, &spawn, &ended_task));
    EXPECT_EQ(0, pirn_go_with(return_eio, NULL, &spawn, NULL));
    EXPECT_EQ(0, pirn_go_with(return_eio, NULL, &spawn, &task));
    EXPECT_LE(0, pirn_runtime_turn(spawn.runtime, PIRN_NEVER));
    EXPECT_EQ(1, places);
    pirn_task_unref(task);
    EXPECT_EQ(2, places);
    EXPECT_EQ(0, rig_outcome(ended_task));
    EXPECT_EQ(0, pirn_runtime_shutdown(spawn.runtime, PIRN_EXPIRED, NULL));
    pirn_runtime_unref(spawn.runtime);
}
