/* SPDX-License-Identifier: MIT */
/* tests/stress/channel_budget.c - a channel that is always ready holds nobody up:
 * neither a deadline around it nor other tasks.
 */
#include <errno.h>

#include <pirn/async.h>
#include <pirn/mpsc.h>

#include "engine/test.h"
#include "sched/runtime_test.h"

enum {
    DEADLINE_MS = 50,
    LATE_MS = 2000, /* far less than for ever; the machine may be busy */
};

static pirn_mpsc_sender *tx;
static pirn_mpsc_receiver *rx;

static void begin(void)
{
    const pirn_channel_options options = {.message_size = sizeof(int),
                                          .capacity = 4};

    EXPECT_EQ(0, pirn_mpsc_new(&options, &tx, &rx));
}

static void end(void)
{
    pirn_mpsc_sender_unref(tx);
    pirn_mpsc_receiver_free(rx);
}

/* A message to itself, for ever: every operation is ready at once. */
struct loop {
    pirn_frame frame;
    pirn_mpsc_send_op send;
    pirn_mpsc_recv_op recv;
    int message;
};

static enum pirn_poll loop_poll(pirn_future *self, pirn_cx *cx)
{
    struct loop *loop = PIRN_FRAME_OF(self, struct loop, frame);

    PIRN_ASYNC_BEGIN(&loop->frame, cx);
    /* Ends by the drop of the frame. */
    for (;;) {
        pirn_mpsc_send_init(&loop->send, tx, &loop->message);
        PIRN_AWAIT(&loop->send.future);
        pirn_mpsc_recv_init(&loop->recv, rx, &loop->message);
        PIRN_AWAIT(&loop->recv.future);
    }
    PIRN_ASYNC_END();
}

static int limited(void *arg)
{
    static const pirn_async_ops ops = PIRN_ASYNC_OPS(loop_poll, NULL);
    uint64_t begin_ns = pirn_now_ns();
    struct loop loop;
    pirn_timeout_op timeout;

    pirn_frame_init(&loop.frame, &ops);
    if (arg != NULL)
        return pirn_await(&loop.frame.future, pirn_after_ms(DEADLINE_MS));
    pirn_timeout_init(&timeout, &loop.frame.future, pirn_after_ms(DEADLINE_MS));
    EXPECT_EQ(0, pirn_await(&timeout.future, PIRN_NEVER));
    EXPECT_LE(pirn_now_ns() - begin_ns, (uint64_t)LATE_MS * 1000000);
    return timeout.rc;
}

/* Goal: a deadline around a loop over a channel that is always ready is met.
 * Method: as a timeout and as the deadline of the await; without workers and on
 * one. */
TEST(channel_budget_deadline_is_met)
{
    for (uint32_t workers = 0; workers < 2; workers++) {
        const pirn_runtime_options options = {.workers = workers};
        int as_await = 1;

        begin();
        EXPECT_EQ(-ETIMEDOUT, pirn_run_with(limited, NULL, &options, NULL));
        EXPECT_EQ(-ETIMEDOUT,
                  pirn_run_with(limited, &as_await, &options, NULL));
        end();
    }
}

static int busy(void *arg)
{
    int message = 0;
    int rc = 0;

    (void)arg;
    while (rc == 0) {
        rc = pirn_mpsc_send(tx, &message, PIRN_NEVER);
        if (rc == 0)
            rc = pirn_mpsc_recv(rx, &message, PIRN_NEVER);
    }
    EXPECT_EQ(-ECANCELED, rc);
    return 0;
}

static int beside(void *arg)
{
    uint64_t begin_ns = pirn_now_ns();
    pirn_task *task = NULL;
    int outcome = -1;

    (void)arg;
    EXPECT_EQ(0, pirn_go_with(busy, NULL, NULL, &task));
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(0, pirn_sleep(pirn_after_ms(2)));
        EXPECT_EQ(0, pirn_yield());
    }
    EXPECT_LE(pirn_now_ns() - begin_ns, (uint64_t)LATE_MS * 1000000);
    pirn_task_cancel(task);
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    EXPECT_EQ(0, outcome);
    pirn_task_unref(task);
    return 0;
}

/* Goal: a fiber that talks to itself without end leaves the others their turn,
 * and is told that it was cancelled. */
TEST(channel_budget_others_get_on)
{
    for (uint32_t workers = 0; workers < 2; workers++) {
        const pirn_runtime_options options = {.workers = workers};

        begin();
        EXPECT_EQ(0, pirn_run_with(beside, NULL, &options, NULL));
        end();
    }
}
