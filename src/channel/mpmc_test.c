/* SPDX-License-Identifier: MIT */
/* src/channel/mpmc_test.c - many receivers: each message to one of them. */
#include "channel/lab_test.h"

struct many {
    pirn_mpmc_sender *tx;
    pirn_mpmc_receiver *rx;
};

static struct many many_with(const pirn_channel_options *options)
{
    struct many many = {0};

    EXPECT_EQ(0, pirn_mpmc_new(options, &many.tx, &many.rx));
    return many;
}

static struct many many_new(size_t capacity)
{
    const pirn_channel_options options = options_of_ints(capacity);

    return many_with(&options);
}

static void many_end(struct many *many)
{
    pirn_mpmc_sender_unref(many->tx);
    pirn_mpmc_receiver_unref(many->rx);
}

static int give(struct many *many, int message)
{
    return pirn_mpmc_try_send(many->tx, &message);
}

static int take(struct many *many)
{
    int message = -1;
    int rc = pirn_mpmc_try_recv(many->rx, &message);

    return rc < 0 ? rc : message;
}

static void many_receive(struct receiving *r, struct many *many)
{
    *r = (struct receiving){.message = -1, .p = {.fut = &r->op.future}};
    pirn_mpmc_recv_init(&r->op, many->rx, &r->message);
}

static void many_wait(struct receiving *r, struct many *many)
{
    many_receive(r, many);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r->p));
}

/* Goal: receivers that wait get one message each, in the order in which they
 * came, and a newcomer does not take what another one was promised. */
TEST(mpmc_receivers_are_served_in_order)
{
    struct many many = many_new(4);
    struct receiving a, b;

    many_wait(&a, &many);
    many_wait(&b, &many);
    EXPECT_EQ(0, give(&many, 1));
    EXPECT_EQ(1, a.p.wakes);
    EXPECT_EQ(0, b.p.wakes);
    EXPECT_EQ(-EAGAIN, take(&many));
    EXPECT_EQ(0, give(&many, 2));
    EXPECT_EQ(1, b.p.wakes);
    EXPECT_EQ(-EAGAIN, take(&many));
    EXPECT_EQ(0, give(&many, 3));
    /* Messages leave in order, whoever looks first. */
    EXPECT_EQ(1, receiving_end(&b));
    EXPECT_EQ(2, receiving_end(&a));
    EXPECT_EQ(3, take(&many));
    many_end(&many);
}

/* A waker that acts while it is copied or given up, where a lock is never held.
 */
struct meddler {
    struct many *many;
    struct receiving *first; /* ended by the copy */
    int taken;               /* by the one that is given up */
};

static void meddler_wake(const pirn_waker *self)
{
    (void)self;
}

static pirn_waker meddler_clone(const pirn_waker *self)
{
    struct meddler *meddler = self->data;

    EXPECT_EQ(1, receiving_end(meddler->first));
    return *self;
}

static void meddler_drop(pirn_waker self)
{
    struct meddler *meddler = self.data;

    meddler->taken = take(meddler->many);
}

static const pirn_waker_ops meddler_ops = {
    .clone = meddler_clone,
    .wake = meddler_drop,
    .wake_by_ref = meddler_wake,
    .drop = meddler_drop,
};

/* Goal: a message that has just been put in is not for a newcomer while others
 * wait, although none of them has been promised it yet.
 * Method: a send that finds room at its second look drops a copy of its waker
 * between the put and the promise; there the newcomer looks. */
TEST(mpmc_newcomer_takes_nothing_while_others_wait)
{
    struct many many = many_new(1);
    struct receiving a, b;
    struct meddler meddler = {.many = &many, .first = &a, .taken = -1};
    pirn_waker waker = {&meddler, &meddler_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    pirn_mpmc_send_op send;
    int message = 2;

    many_wait(&a, &many);
    many_wait(&b, &many);
    EXPECT_EQ(0, give(&many, 1));
    pirn_mpmc_send_init(&send, many.tx, &message);
    EXPECT_EQ(PIRN_READY, pirn_future_poll(&send.future, &cx));
    EXPECT_EQ(-EAGAIN, meddler.taken);
    EXPECT_EQ(1, b.p.wakes);
    EXPECT_EQ(2, receiving_end(&b));
    many_end(&many);
}

/* Goal: a promise to a receive that is dropped goes to the next, or stays for
 * whoever comes. */
TEST(mpmc_dropped_after_promise_passes_it_on)
{
    struct many many = many_new(4);
    struct receiving a, b;

    many_wait(&a, &many);
    many_wait(&b, &many);
    EXPECT_EQ(0, give(&many, 1));
    poller_drop(&a.p);
    EXPECT_EQ(1, b.p.wakes);
    poller_drop(&b.p);
    EXPECT_EQ(1, take(&many));
    EXPECT_EQ(-EAGAIN, take(&many));
    many_end(&many);
}

/* Goal: a receive that is dropped in line is as if it had never been. */
TEST(mpmc_dropped_in_line_leaves_it)
{
    struct many many = many_new(4);
    struct receiving a, b;

    many_wait(&a, &many);
    many_wait(&b, &many);
    poller_drop(&a.p);
    EXPECT_EQ(0, give(&many, 1));
    EXPECT_EQ(0, a.p.wakes);
    EXPECT_EQ(1, receiving_end(&b));
    many_end(&many);
}

/* Goal: a message that is taken frees a place for the first sender in line. */
TEST(mpmc_receive_lets_a_sender_in)
{
    struct many many = many_new(1);
    struct receiving r;
    struct sending s = {.message = 2, .p = {.fut = &s.op.future}};

    EXPECT_EQ(0, give(&many, 1));
    pirn_mpmc_send_init(&s.op, many.tx, &s.message);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&s.p));
    EXPECT_EQ(-EAGAIN, give(&many, 9));
    many_receive(&r, &many);
    EXPECT_EQ(1, receiving_end(&r));
    EXPECT_EQ(1, s.p.wakes);
    EXPECT_EQ(0, sending_end(&s));
    EXPECT_EQ(2, take(&many));
    many_end(&many);
}

/* Goal: the channel ends for those who wait only when the last message has been
 * taken, also when the one to whom it was promised is dropped.
 * Method: A is promised the message, B waits; close; drop A. */
TEST(mpmc_close_does_not_lose_a_promised_message)
{
    struct many many = many_new(4);
    struct receiving a, b, c;

    many_wait(&a, &many);
    many_wait(&b, &many);
    many_wait(&c, &many);
    EXPECT_EQ(0, give(&many, 1));
    pirn_mpmc_sender_close(many.tx);
    EXPECT_EQ(0, b.p.wakes);
    EXPECT_EQ(-EAGAIN, take(&many));
    poller_drop(&a.p);
    EXPECT_EQ(1, b.p.wakes);
    EXPECT_EQ(0, c.p.wakes);
    EXPECT_EQ(1, receiving_end(&b));
    EXPECT_EQ(1, c.p.wakes);
    EXPECT_EQ(PIRN_ECLOSED, receiving_end(&c));
    EXPECT_EQ(PIRN_ECLOSED, take(&many));
    many_end(&many);
}

/* Goal: closing wakes all receivers once. */
TEST(mpmc_close_wakes_all_once)
{
    struct many many = many_new(4);
    struct receiving waiting[40];

    for (int i = 0; i < 40; i++)
        many_wait(&waiting[i], &many);
    pirn_mpmc_receiver_close(many.rx);
    pirn_mpmc_sender_close(many.tx);
    for (int i = 0; i < 40; i++) {
        EXPECT_EQ(1, waiting[i].p.wakes);
        EXPECT_EQ(PIRN_ECLOSED, receiving_end(&waiting[i]));
    }
    EXPECT_EQ(PIRN_ECLOSED, give(&many, 1));
    many_end(&many);
}

/* Goal: handles are counted on both sides; the last receiver discards. */
TEST(mpmc_last_receiver_discards)
{
    struct waste waste = {0};
    const pirn_channel_options options = options_with_waste(4, &waste);
    struct many many = many_with(&options);
    pirn_channel_info info;

    EXPECT_PTR_EQ(many.rx, pirn_mpmc_receiver_ref(many.rx));
    EXPECT_PTR_EQ(many.tx, pirn_mpmc_sender_ref(many.tx));
    info = pirn_mpmc_sender_info(many.tx);
    EXPECT_EQ(2, info.senders);
    EXPECT_EQ(2, pirn_mpmc_receiver_info(many.rx).receivers);
    EXPECT_EQ(0, give(&many, 5));
    pirn_mpmc_receiver_unref(many.rx);
    EXPECT_EQ(0, waste.count);
    EXPECT_EQ(0, give(&many, 6));
    pirn_mpmc_receiver_unref(many.rx);
    EXPECT_EQ(2, waste.count);
    EXPECT_EQ(11, waste.sum);
    EXPECT_EQ(PIRN_ECLOSED, give(&many, 7));
    pirn_mpmc_sender_unref(many.tx);
    pirn_mpmc_sender_unref(many.tx);
    pirn_mpmc_sender_unref(NULL);
    pirn_mpmc_receiver_unref(NULL);
}

/* Goal: a message without a taker is discarded, once. */
TEST(mpmc_received_without_taker_is_discarded)
{
    struct waste waste = {0};
    const pirn_channel_options options = options_with_waste(4, &waste);
    struct many many = many_with(&options);
    struct receiving r;

    EXPECT_EQ(0, give(&many, 5));
    many_receive(&r, &many);
    EXPECT_EQ(5, receiving_end(&r));
    pirn_future_discard(&r.op.future);
    EXPECT_EQ(1, waste.count);
    many_end(&many);
    EXPECT_EQ(1, waste.count);
}

/* Goal: the straight-line calls say what the channel says. */
TEST(mpmc_straight_line_answers)
{
    struct many many = many_new(1);
    int message = 3;

    EXPECT_EQ(-ETIMEDOUT, pirn_mpmc_recv(many.rx, &message, PIRN_EXPIRED));
    EXPECT_EQ(0, pirn_mpmc_send(many.tx, &message, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, pirn_mpmc_send(many.tx, &message, PIRN_EXPIRED));
    message = 0;
    EXPECT_EQ(0, pirn_mpmc_recv(many.rx, &message, PIRN_EXPIRED));
    EXPECT_EQ(3, message);
    pirn_mpmc_sender_close(many.tx);
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpmc_send(many.tx, &message, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpmc_recv(many.rx, &message, PIRN_NEVER));
    many_end(&many);
}

/* Goal: each operation spends a unit of budget. */
TEST(mpmc_spends_budget)
{
    struct many many = many_new(1);
    struct pirn__turn turn = {.budget = 0};
    struct receiving r;

    EXPECT_EQ(0, give(&many, 1));
    many_receive(&r, &many);
    r.p.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r.p));
    EXPECT(turn.deferred);
    turn.budget = 1;
    EXPECT_EQ(1, receiving_end(&r));
    EXPECT_EQ(0, turn.budget);
    many_end(&many);
}
