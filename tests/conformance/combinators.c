/* SPDX-License-Identifier: MIT */
/* tests/conformance/combinators.c - the same stories of select, join and streams,
 * told in every way in which a program may write them:
 *
 *   alone     straight-line calls on a plain thread without any runtime
 *   fiber     straight-line calls in a fiber
 *   future    operations awaited one by one in a fiber
 *   stackless operations awaited by a stackless task, which a fiber joins
 *   host      operations driven by pirn_block_on() from the plain thread
 *   beside    straight-line calls on a plain thread inside a runtime
 *
 * What is waited for is opened by other threads.
 *
 * In the simulated world (tests/sim) each seed chooses one of these ways.
 */
#include <errno.h>

#include <pirn/pirn.h>

#include "base/lock.h"
#include "conformance/ways.h"
#include "engine/test.h"

/* What a branch waits for. */
struct gate {
    pirn_future future;
    pirn_lock lock;
    bool open;         /* lock */
    bool passed;       /* lock; READY has been said */
    pirn_waker waker;  /* lock; not while open */
    int outcome;
    int drops;
    int discards;
};

static enum pirn_poll gate_poll(pirn_future *self, pirn_cx *cx)
{
    struct gate *gate = PIRN_CONTAINER_OF(self, struct gate, future);
    pirn_waker spare;
    bool open;

    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    spare = pirn_waker_clone(cx->waker);
    pirn__lock(&gate->lock);
    open = gate->open;
    gate->passed = open;
    if (!open) {
        pirn_waker old = gate->waker;

        gate->waker = spare;
        spare = old;
    }
    pirn__unlock(&gate->lock);
    pirn_waker_drop(spare);
    return open ? PIRN_READY : PIRN_PENDING;
}

static pirn_waker gate_take(struct gate *gate, bool opens)
{
    pirn_waker waker;

    pirn__lock(&gate->lock);
    gate->open |= opens;
    waker = pirn_waker_take(&gate->waker);
    pirn__unlock(&gate->lock);
    return waker;
}

static void gate_open(struct gate *gate)
{
    pirn_waker_wake(gate_take(gate, true));
}

/* Open it, and wait until that has been seen. */
static void gate_pass(struct gate *gate)
{
    bool passed = false;

    gate_open(gate);
    while (!passed) {
        world_yield();
        pirn__lock(&gate->lock);
        passed = gate->passed;
        pirn__unlock(&gate->lock);
    }
}

static void gate_drop(pirn_future *self)
{
    struct gate *gate = PIRN_CONTAINER_OF(self, struct gate, future);

    gate->drops++;
    pirn_waker_drop(gate_take(gate, false));
}

static void gate_discard(pirn_future *self)
{
    PIRN_CONTAINER_OF(self, struct gate, future)->discards++;
}

static int gate_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const struct gate, future)->outcome;
}

static void gate_init(struct gate *gate)
{
    static const pirn_future_ops ops = {
        .poll = gate_poll,
        .drop = gate_drop,
        .discard = gate_discard,
        .outcome = gate_outcome,
    };

    *gate = (struct gate){.future = {&ops}};
}

enum { MANY = 200 };
static struct gate gates[MANY];
static pirn_branch branches[MANY];

static void gates_init(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gate_init(&gates[i]);
        gates[i].outcome = (int)i;
        branches[i] = (pirn_branch)PIRN_BRANCH(&gates[i]);
    }
}

static int drops(size_t count)
{
    int sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += gates[i].drops;
    return sum;
}

static int discards(size_t count)
{
    int sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += gates[i].discards;
    return sum;
}

/* The calls of the stories. */

static int way_select(const struct way *way, size_t count,
                      pirn_deadline deadline)
{
    pirn_select_op op;
    int rc;

    if (is_straight(way))
        return pirn_select(branches, count, deadline);
    pirn_select_init(&op, branches, count);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.index;
}

static int way_race(const struct way *way, size_t count, pirn_deadline deadline)
{
    pirn_select_op op;
    int rc;

    if (is_straight(way))
        return pirn_race(branches, count, deadline);
    pirn_race_init(&op, branches, count);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.index;
}

static int way_join(const struct way *way, size_t count, bool tries,
                    pirn_deadline deadline)
{
    pirn_join_all_op op;
    int rc;

    if (is_straight(way))
        return tries ? pirn_try_join_all(branches, count, deadline)
                     : pirn_join_all(branches, count, deadline);
    if (tries)
        pirn_try_join_all_init(&op, branches, count);
    else
        pirn_join_all_init(&op, branches, count);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

static int way_next(const struct way *way, pirn_stream *stream, void *item,
                    pirn_deadline deadline)
{
    pirn_next_op op;
    int rc;

    if (is_straight(way))
        return pirn_next(stream, item, deadline);
    pirn_next_init(&op, stream, item);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

/* The ways. */

/* A stackless task that awaits somebody else's future, or drops it. */
struct proxy {
    pirn_frame frame;
    pirn_future *future;
    bool begun;
    pirn_timeout_op timeout;
    pirn_deadline deadline;
};

static enum pirn_poll proxy_poll(pirn_future *self, pirn_cx *cx)
{
    struct proxy *proxy = PIRN_FRAME_OF(self, struct proxy, frame);

    PIRN_ASYNC_BEGIN(&proxy->frame, cx);
    proxy->begun = true;
    PIRN_AWAIT_UNTIL(&proxy->timeout, proxy->future, proxy->deadline);
    PIRN_ASYNC_RETURN(proxy->timeout.rc);
    PIRN_ASYNC_END();
}

static void proxy_cleanup(pirn_frame *frame)
{
    struct proxy *proxy = PIRN_CONTAINER_OF(frame, struct proxy, frame);

    /* Cancelled before its first poll. */
    if (!proxy->begun)
        pirn_future_drop(proxy->future);
}

static const pirn_async_ops proxy_ops =
    PIRN_ASYNC_OPS(proxy_poll, proxy_cleanup);

static pirn_task *spawn_proxy(pirn_future *future, pirn_deadline deadline)
{
    struct proxy proxy = {.future = future, .deadline = deadline};
    pirn_task *task = NULL;

    pirn_frame_init(&proxy.frame, &proxy_ops);
    EXPECT_EQ(0, pirn_spawn(&proxy.frame.future, sizeof proxy, NULL, &task));
    return task;
}

static int await_by_task(pirn_future *future, pirn_deadline deadline)
{
    pirn_task *task = spawn_proxy(future, deadline);
    int outcome = 0;

    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    return outcome;
}

static const struct way ways[] = {
    {"alone", 0, tell_alone, NULL, 0, false},
    {"fiber", 0, tell_by_run, NULL, 0, false},
    {"fiber on 2 workers", 2, tell_by_run, NULL, 0, false},
    {"fiber on 4 workers", 4, tell_by_run, NULL, 0, false},
    {"future", 0, tell_by_run, pirn_await, 0, false},
    {"future on 2 workers", 2, tell_by_run, pirn_await, 0, false},
    {"stackless", 0, tell_by_run, await_by_task, 0, false},
    {"stackless on 2 workers", 2, tell_by_run, await_by_task, 0, false},
    {"stackless on 4 workers", 4, tell_by_run, await_by_task, 0, false},
    {"host", 0, tell_entered, await_on_host, 0, false},
    {"host of 2 workers", 2, tell_entered, await_on_host, 0, false},
    {"beside", 0, tell_entered, NULL, 0, false},
    {"beside 2 workers", 2, tell_entered, NULL, 0, false},
    {"fiber on 3 slots", 3, tell_by_run, NULL,
     PIRN_POOL_COMPUTATIONAL, false},
    {"stackless on 3 slots", 3, tell_by_run, await_by_task,
     PIRN_POOL_COMPUTATIONAL, false},
};

static void tell(const char *test, story_fn *story)
{
    tell_by_all(test, ways, sizeof ways / sizeof ways[0], story);
}

/* Threads that open gates. */
struct opener {
    size_t first;
    size_t step;
    size_t count;
    struct world_thread thread;
};

static void open_gates(void *arg)
{
    const struct opener *opener = arg;

    for (size_t i = opener->first; i < opener->count; i += opener->step) {
        world_pause();
        gate_open(&gates[i]);
    }
}

static void opener_start(struct opener *opener)
{
    world_thread_start(&opener->thread, open_gates, opener);
}

static void opener_join(struct opener *opener)
{
    world_thread_join(&opener->thread);
}

/* The stories. */

static void first_wins(const struct way *way)
{
    struct opener opener = {.first = 1, .step = 3, .count = 3};

    gates_init(3);
    opener_start(&opener);
    EXPECT_EQ(1, way_select(way, 3, PIRN_NEVER));
    EXPECT_EQ(1, branches[1].outcome);
    EXPECT_EQ(2, drops(3));
    opener_join(&opener);

    gates_init(3);
    branches[0].keep = true;
    opener_start(&opener);
    EXPECT_EQ(1, way_race(way, 3, PIRN_NEVER));
    EXPECT_EQ(2, drops(3));
    opener_join(&opener);

    gates_init(2);
    branches[0].keep = true;
    EXPECT_EQ(-ETIMEDOUT, way_select(way, 2, PIRN_EXPIRED));
    EXPECT_EQ(1, drops(2));
    gate_open(&gates[0]);
    EXPECT_EQ(0, way_select(way, 2, PIRN_EXPIRED));
    EXPECT_EQ(-ENOENT, way_select(way, 2, PIRN_NEVER));
}

/* Goal: select and race: the first wins, the others are dropped, and a deadline
 * leaves what is kept.
 * Method: another thread opens one. */
TEST(combinators_first_of_several)
{
    tell(__func__, first_wins);
}

/* One gate stays, the others come and go. */
static void keep_one(const struct way *way)
{
    struct opener opener = {.first = 0, .step = 2, .count = 1};
    int turns = 0;
    int winner;

    gates_init(2);
    branches[0].keep = true;
    do {
        if (turns == 20)
            opener_start(&opener);
        gate_init(&gates[1]);
        branches[1] = (pirn_branch)PIRN_BRANCH(&gates[1]);
        gate_open(&gates[1]);
        winner = way_select(way, 2, PIRN_NEVER);
        turns++;
    } while (winner == 1);
    EXPECT_EQ(0, winner);
    EXPECT_GE(turns, 21);
    EXPECT_EQ(0, gates[0].drops);
    opener_join(&opener);
}

/* Goal: a branch lives on across the turns of a loop, and wins in the end.
 * Method: the other one is always ready; fairness is what ends it. */
TEST(combinators_branch_kept_across_turns)
{
    tell(__func__, keep_one);
}

static void all_end(const struct way *way)
{
    struct opener openers[2] = {
        {.first = 0, .step = 2, .count = MANY},
        {.first = 1, .step = 2, .count = MANY},
    };

    gates_init(MANY);
    opener_start(&openers[0]);
    opener_start(&openers[1]);
    EXPECT_EQ(0, way_join(way, MANY, false, PIRN_NEVER));
    for (int i = 0; i < MANY; i++)
        EXPECT(branches[i].ended && branches[i].outcome == i);
    EXPECT_EQ(0, drops(MANY));
    opener_join(&openers[0]);
    opener_join(&openers[1]);
}

/* Goal: a join of many sees every end.
 * Method: two threads open the gates as fast as they can. */
TEST(combinators_all_of_many)
{
    tell(__func__, all_end);
}

static void first_failure(const struct way *way)
{
    struct opener opener = {.first = 7, .step = MANY, .count = 8};

    gates_init(MANY);
    gates[7].outcome = -EPIPE;
    gate_open(&gates[3]);
    opener_start(&opener);
    EXPECT_EQ(-EPIPE, way_join(way, MANY, true, PIRN_NEVER));
    opener_join(&opener);
    EXPECT(branches[7].ended);
    EXPECT_EQ(MANY, drops(MANY) + branches[3].ended + branches[7].ended);
    pirn_branches_discard(branches, MANY);
    EXPECT_EQ(MANY, drops(MANY) + discards(MANY));
}

/* Goal: the first failure ends a join that tries; every branch is dropped or has
 * a result.
 * Method: one gate is open, one fails. */
TEST(combinators_first_failure)
{
    tell(__func__, first_failure);
}

static void too_late(const struct way *way)
{
    gates_init(4);
    gate_open(&gates[1]);
    gate_open(&gates[2]);
    EXPECT_EQ(-ETIMEDOUT, way_join(way, 4, false, PIRN_EXPIRED));
    EXPECT_EQ(2, drops(4));
    /* A straight-line call hands back what it has; an operation that is dropped
     * has nobody to give it to. */
    EXPECT_EQ(way->await == NULL, branches[1].ended && branches[1].future);
    EXPECT_EQ(way->await == NULL ? 0 : 2, discards(4));
    pirn_branches_discard(branches, 4);
    EXPECT_EQ(2, discards(4));
}

/* Goal: a deadline loses no result.
 * Method: two of four are there. */
TEST(combinators_join_that_is_too_late)
{
    tell(__func__, too_late);
}

/* One byte into a pipe, when whoever waits for it has been woken for others. */
struct writer {
    int fd;
    struct world_thread thread;
};

static void write_late(void *arg)
{
    const struct writer *writer = arg;

    for (int i = 0; i < 10; i++)
        gate_pass(&gates[i]);
    world_send(writer->fd, "x", 1);
}

static void wait_for_a_pipe(const struct way *way)
{
    struct writer writer;
    pirn_fd_ready_op ready;
    pirn_fd *file = NULL;
    int ends[2];

    world_pipe(ends);
    writer.fd = ends[1];
    EXPECT_EQ(0, pirn_fd_adopt(ends[0], &file));
    gates_init(MANY);
    pirn_fd_ready_init(&ready, file, PIRN_READABLE);
    branches[MANY - 1] = (pirn_branch)PIRN_BRANCH(&ready);
    for (int i = 10; i < MANY - 1; i++)
        gate_open(&gates[i]);
    world_thread_start(&writer.thread, write_late, &writer);
    EXPECT_EQ(0, way_join(way, MANY, false, PIRN_NEVER));
    EXPECT_EQ(0, ready.rc);
    world_thread_join(&writer.thread);
    pirn_fd_close(file);
    world_close(ends[1]);
}

/* Goal: a descriptor among many branches is watched, also by a plain thread that
 * was woken for other branches before.
 * Method: gates are opened one after the other; then comes a byte. */
TEST(combinators_descriptor_among_many_branches)
{
    tell(__func__, wait_for_a_pipe);
}

/* A stream of numbers that another thread puts in. */
struct numbers {
    pirn_stream stream;
    pirn_lock lock;
    int first, limit;  /* lock; first..limit-1 are there */
    bool ended;        /* lock */
    pirn_waker waker;  /* lock */
    struct world_thread feeder;
};

enum { FEEDERS = 3 };

static int how_many(void)
{
    return (int)world_size(500, 50);
}

static enum pirn_poll numbers_poll_next(pirn_stream *self, pirn_cx *cx,
                                        void *item, int *rc)
{
    struct numbers *numbers = PIRN_CONTAINER_OF(self, struct numbers, stream);
    pirn_waker drop;

    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    drop = pirn_waker_clone(cx->waker);
    pirn__lock(&numbers->lock);
    *rc = numbers->first < numbers->limit;
    if (*rc == 1) {
        *(int *)item = numbers->first++;
    } else if (!numbers->ended) {
        pirn_waker old = numbers->waker;

        numbers->waker = drop;
        drop = old;
        *rc = -1;
    }
    pirn__unlock(&numbers->lock);
    pirn_waker_drop(drop);
    return *rc < 0 ? PIRN_PENDING : PIRN_READY;
}

static void numbers_drop(pirn_stream *self)
{
    struct numbers *numbers = PIRN_CONTAINER_OF(self, struct numbers, stream);
    pirn_waker waker;

    pirn__lock(&numbers->lock);
    waker = pirn_waker_take(&numbers->waker);
    pirn__unlock(&numbers->lock);
    pirn_waker_drop(waker);
}

static void feed(void *arg)
{
    struct numbers *numbers = arg;

    for (int i = 1; i <= how_many() + 1; i++) {
        pirn_waker waker;

        world_pause();
        pirn__lock(&numbers->lock);
        if (i > how_many())
            numbers->ended = true;
        else
            numbers->limit = i;
        waker = pirn_waker_take(&numbers->waker);
        pirn__unlock(&numbers->lock);
        pirn_waker_wake(waker);
    }
}

static void numbers_start(struct numbers *numbers)
{
    static const pirn_stream_ops ops = {.poll_next = numbers_poll_next,
                                        .drop = numbers_drop};

    *numbers = (struct numbers){.stream = {&ops}};
    world_thread_start(&numbers->feeder, feed, numbers);
}

static void consume(const struct way *way, size_t capacity)
{
    static struct numbers numbers[FEEDERS];
    static pirn_stream_slot slots[MANY];
    pirn_merge_stream merge;
    int expected[FEEDERS] = {0};
    int item = 0;
    int rc;

    memset(slots, 0, sizeof slots);
    for (size_t i = 0; i < FEEDERS; i++) {
        numbers_start(&numbers[i]);
        slots[i * capacity / FEEDERS] =
            (pirn_stream_slot){&numbers[i].stream, i};
    }
    pirn_merge_init(&merge, slots, capacity);
    while ((rc = way_next(way, &merge.stream, &item, PIRN_NEVER)) > 0)
        EXPECT_EQ(expected[merge.key]++, item);
    EXPECT_EQ(0, rc);
    for (size_t i = 0; i < FEEDERS; i++) {
        EXPECT_EQ(how_many(), expected[i]);
        world_thread_join(&numbers[i].feeder);
    }
    pirn_stream_drop(&merge.stream);
}

static void merge_few(const struct way *way)
{
    consume(way, FEEDERS);
}

static void merge_many(const struct way *way)
{
    consume(way, MANY);
}

/* Goal: a merge gives every item once and keeps the order of each stream.
 * Method: three threads feed three streams; few places, and many. */
TEST(combinators_merge_of_streams)
{
    tell(__func__, merge_few);
    tell(__func__, merge_many);
}

static void batches(const struct way *way)
{
    static struct numbers numbers;
    int items[16];
    const pirn_chunk_options options = {
        .items = items,
        .item_size = sizeof items[0],
        .max = 16,
        .patience_ns = UINT64_MAX,
    };
    pirn_chunks_stream chunks;
    pirn_chunk chunk;
    int expected = 0;

    numbers_start(&numbers);
    EXPECT_EQ(0, pirn_chunks_init(&chunks, &numbers.stream, &options));
    for (;;) {
        int rc = way_next(way, &chunks.stream, &chunk, PIRN_EXPIRED);

        if (rc == -ETIMEDOUT)
            rc = way_next(way, &chunks.stream, &chunk, PIRN_NEVER);
        if (rc <= 0)
            break;
        for (size_t i = 0; i < chunk.count; i++)
            EXPECT_EQ(expected++, ((int *)chunk.items)[i]);
    }
    EXPECT_EQ(how_many(), expected);
    world_thread_join(&numbers.feeder);
    pirn_stream_drop(&chunks.stream);
}

/* Goal: chunks give every item once and in order, also if a wait for one is
 * given up again and again.
 * Method: each wait is first tried with a deadline that has passed. */
TEST(combinators_chunks_of_a_stream)
{
    tell(__func__, batches);
}

/* Cancellation, by a fiber. */

static const struct way fibers[] = {
    {"fiber", 0, tell_by_run, NULL, 0, false},
    {"fiber on 2 workers", 2, tell_by_run, NULL, 0, false},
};

static int join_some(void *arg)
{
    return pirn_join_all(branches, *(size_t *)arg, PIRN_NEVER);
}

/* Cancel a join of `count` of which `open` have ended. */
static void cancel_join(size_t count, size_t open, bool fiber)
{
    pirn_join_all_op op;
    pirn_task *task = NULL;
    int outcome = 0;

    gates_init(count);
    for (size_t i = 0; i < open; i++)
        gate_open(&gates[i]);
    pirn_join_all_init(&op, branches, count);
    if (fiber)
        EXPECT_EQ(0, pirn_go_with(join_some, &count, NULL, &task));
    else
        task = spawn_proxy(&op.future, PIRN_NEVER);
    EXPECT_EQ(0, pirn_yield());
    pirn_task_cancel(task);
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    EXPECT_EQ(-ECANCELED, outcome);
    pirn_branches_discard(branches, count);
    EXPECT_EQ((int)count, drops(count) + discards(count));
}

static void cancel_at_each(const struct way *way)
{
    (void)way;
    for (int fiber = 0; fiber < 2; fiber++)
        for (size_t open = 0; open < MANY; open += open < 5 ? 1 : 39) {
            if (open < 5)
                cancel_join(5, open, fiber == 1);
            cancel_join(MANY, open, fiber == 1);
        }
}

/* Goal: cancelled at whatever point, each branch is dropped or has a result
 * that is discarded, once.
 * Method: all points of a small join, some of a large one, as a fiber and as a
 * stackless task. */
TEST(combinators_join_cancelled_at_each_point)
{
    tell_by_all(__func__, fibers, 2, cancel_at_each);
}

static int select_for_ever(void *arg)
{
    (void)arg;
    return pirn_select(branches, 3, PIRN_NEVER);
}

static void cancel_select(const struct way *way)
{
    pirn_task *task = NULL;
    int outcome = 0;

    (void)way;
    gates_init(3);
    branches[1].keep = true;
    EXPECT_EQ(0, pirn_go_with(select_for_ever, NULL, NULL, &task));
    EXPECT_EQ(0, pirn_yield());
    pirn_task_cancel(task);
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    EXPECT_EQ(-ECANCELED, outcome);
    EXPECT_EQ(2, drops(3));
    EXPECT_EQ(0, gates[1].drops);
    gate_open(&gates[1]);
    EXPECT_EQ(1, pirn_select(branches, 3, PIRN_NEVER));
}

/* Goal: a fiber that is cancelled in a select keeps what is kept, for whoever
 * comes after it.
 * Method: the fiber that cancelled it goes on with that branch. */
TEST(combinators_select_cancelled_keeps_what_is_kept)
{
    tell_by_all(__func__, fibers, 2, cancel_select);
}
