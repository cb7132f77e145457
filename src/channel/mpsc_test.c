/* SPDX-License-Identifier: MIT */
/* src/channel/mpsc_test.c - one receiver: what it gets, and what it leaves. */
#include "channel/lab_test.h"

/* Goal: a waiting receiver is woken once, by the first message; it gets all in
 * the order in which they were sent. */
TEST(mpsc_receiver_is_woken_once)
{
    struct lab lab = lab_new(4);
    struct receiving r;

    receiving_wait(&r, lab.rx);
    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(0, give_int(lab.tx, 2));
    EXPECT_EQ(1, r.p.wakes);
    EXPECT_EQ(1, receiving_end(&r));
    EXPECT_EQ(1, pirn_future_outcome(&r.op.future));
    EXPECT_EQ(2, take_int(lab.rx));
    EXPECT_EQ(-EAGAIN, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: a receive that is dropped, woken or not, has taken nothing. */
TEST(mpsc_receive_dropped_takes_nothing)
{
    struct lab lab = lab_new(4);
    struct receiving r;

    receiving_wait(&r, lab.rx);
    poller_drop(&r.p);
    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(0, r.p.wakes);
    EXPECT_EQ(1, take_int(lab.rx));

    receiving_wait(&r, lab.rx);
    EXPECT_EQ(0, give_int(lab.tx, 2));
    EXPECT_EQ(1, r.p.wakes);
    poller_drop(&r.p);
    EXPECT_EQ(-1, r.message);
    EXPECT_EQ(2, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: another poll renews the waker; a spurious one writes nothing. */
TEST(mpsc_receive_polled_again_renews_its_waker)
{
    struct lab lab = lab_new(4);
    struct receiving r;
    poller other;

    receiving_wait(&r, lab.rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r.p));
    EXPECT_EQ(1, r.p.wakers);
    other = (poller){.fut = &r.op.future};
    EXPECT_EQ(PIRN_PENDING, poller_poll(&other));
    EXPECT_EQ(0, r.p.wakers);
    EXPECT_EQ(-1, r.message);
    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(0, r.p.wakes);
    EXPECT_EQ(1, other.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&other));
    EXPECT_EQ(1, r.message);
    lab_end(&lab);
}

/* Goal: a second receive at the same time is refused; the first goes on. */
TEST(mpsc_second_receive_is_busy)
{
    struct lab lab = lab_new(4);
    struct receiving a, b;

    receiving_wait(&a, lab.rx);
    receiving_init(&b, lab.rx);
    EXPECT_EQ(-EBUSY, receiving_end(&b));
    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(1, receiving_end(&a));
    lab_end(&lab);
}

/* Goal: many messages are taken at once, up to the limit and to what is there,
 * also across the end of the ring. */
TEST(mpsc_receives_many_at_once)
{
    struct lab lab = lab_new(5);
    pirn_mpsc_recv_op op;
    poller p = {.fut = &op.future};
    int got[8] = {0};

    for (int i = 1; i <= 3; i++)
        EXPECT_EQ(0, give_int(lab.tx, i));
    EXPECT_EQ(2, pirn_mpsc_try_recv_many(lab.rx, got, 2));
    EXPECT_EQ(1, got[0]);
    EXPECT_EQ(2, got[1]);
    for (int i = 4; i <= 7; i++)
        EXPECT_EQ(0, give_int(lab.tx, i));
    /* What the receiver knows of comes first; it need not be all. */
    EXPECT_EQ(1, pirn_mpsc_try_recv_many(lab.rx, got, 8));
    EXPECT_EQ(3, got[0]);
    EXPECT_EQ(4, pirn_mpsc_recv_many(lab.rx, got, 8, PIRN_NEVER));
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(4 + i, got[i]);
    EXPECT_EQ(-EAGAIN, pirn_mpsc_try_recv_many(lab.rx, got, 8));
    EXPECT_EQ(-ETIMEDOUT, pirn_mpsc_recv_many(lab.rx, got, 8, PIRN_EXPIRED));

    pirn_mpsc_recv_many_init(&op, lab.rx, got, 8);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(0, give_int(lab.tx, 8));
    EXPECT_EQ(0, give_int(lab.tx, 9));
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(2, op.n);
    EXPECT_EQ(2, pirn_future_outcome(&op.future));
    EXPECT_EQ(9, got[1]);
    lab_end(&lab);
}

/* Goal: a receive of none is refused by all forms. */
TEST(mpsc_receive_of_none_is_refused)
{
    struct lab lab = lab_new(4);
    pirn_mpsc_recv_op op;
    poller p = {.fut = &op.future};
    int got;

    EXPECT_EQ(-EINVAL, pirn_mpsc_try_recv_many(lab.rx, &got, 0));
    EXPECT_EQ(-EINVAL, pirn_mpsc_recv_many(lab.rx, &got, 0, PIRN_NEVER));
    pirn_mpsc_recv_many_init(&op, lab.rx, &got, 0);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(-EINVAL, op.n);
    lab_end(&lab);
}

/* Goal: messages that were received and have no taker are discarded. */
TEST(mpsc_received_without_taker_is_discarded)
{
    struct waste waste = {0};
    const pirn_channel_options options = options_with_waste(4, &waste);
    struct lab lab = lab_with(&options);
    pirn_mpsc_recv_op op;
    poller p = {.fut = &op.future};
    int got[4];

    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(0, give_int(lab.tx, 2));
    pirn_mpsc_recv_many_init(&op, lab.rx, got, 4);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    pirn_future_discard(&op.future);
    EXPECT_EQ(2, waste.count);
    EXPECT_EQ(3, waste.sum);
    pirn_mpsc_sender_close(lab.tx);
    pirn_mpsc_recv_many_init(&op, lab.rx, got, 4);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(PIRN_ECLOSED, op.n);
    pirn_future_discard(&op.future);
    EXPECT_EQ(2, waste.count);
    lab_end(&lab);
}

/* Goal: each message that is taken frees its place at once.
 * Method: a full channel of which the receiver knows all messages; after one is
 * taken there is room for one. */
TEST(mpsc_place_is_free_at_once)
{
    struct lab lab = lab_new(3);
    struct sending s;

    for (int i = 1; i <= 3; i++)
        EXPECT_EQ(0, give_int(lab.tx, i));
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(0, give_int(lab.tx, 4));
    EXPECT_EQ(-EAGAIN, give_int(lab.tx, 5));
    sending_wait(&s, lab.tx, 5);
    EXPECT_EQ(2, take_int(lab.rx));
    EXPECT_EQ(1, s.p.wakes);
    EXPECT_EQ(0, sending_end(&s));
    for (int i = 3; i <= 5; i++)
        EXPECT_EQ(i, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: a receive costs one unit of budget, and without any takes nothing. */
TEST(mpsc_receive_spends_budget)
{
    struct lab lab = lab_new(4);
    struct pirn__turn turn = {.budget = 0};
    struct receiving r;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    receiving_init(&r, lab.rx);
    r.p.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r.p));
    EXPECT(turn.deferred);
    EXPECT_EQ(-1, r.message);
    turn.budget = 1;
    EXPECT_EQ(1, receiving_end(&r));
    EXPECT_EQ(0, turn.budget);
    lab_end(&lab);
}

/* Goal: the straight-line receive says what the channel says. */
TEST(mpsc_straight_line_answers)
{
    struct lab lab = lab_new(1);
    int got = -1;

    EXPECT_EQ(-ETIMEDOUT, pirn_mpsc_recv(lab.rx, &got, PIRN_EXPIRED));
    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(0, pirn_mpsc_recv(lab.rx, &got, PIRN_EXPIRED));
    EXPECT_EQ(1, got);
    pirn_mpsc_sender_close(lab.tx);
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpsc_recv(lab.rx, &got, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpsc_recv_many(lab.rx, &got, 1, PIRN_NEVER));
    lab_end(&lab);
}

struct inside {
    pirn_future future;
    struct lab *lab;
};

/* In a poll nothing may wait, whether it would have to or not. */
static enum pirn_poll inside_poll(pirn_future *self, pirn_cx *cx)
{
    struct lab *lab = PIRN_CONTAINER_OF(self, struct inside, future)->lab;
    pirn_mpsc_permit permit;
    int message = 1;

    (void)cx;
    EXPECT_EQ(-EDEADLK, pirn_mpsc_send(lab->tx, &message, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, pirn_mpsc_reserve(lab->tx, 1, PIRN_NEVER, &permit));
    EXPECT_EQ(-EDEADLK, pirn_mpsc_recv(lab->rx, &message, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, pirn_mpsc_recv_many(lab->rx, &message, 1, PIRN_NEVER));
    EXPECT_EQ(0, give_int(lab->tx, 5));
    EXPECT_EQ(5, take_int(lab->rx));
    return PIRN_READY;
}

static void inside_drop(pirn_future *self)
{
    (void)self;
}

/* Goal: straight-line calls inside a poll are refused, try_ forms are not. */
TEST(mpsc_calls_inside_a_poll)
{
    static const pirn_future_ops ops = {.poll = inside_poll,
                                        .drop = inside_drop};
    struct lab lab = lab_new(1);
    struct inside inside = {{&ops}, &lab};
    poller p = {.fut = &inside.future};

    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    lab_end(&lab);
}

/* Goal: a dump says what a receiver waits for. */
TEST(mpsc_receive_describes_itself)
{
    struct lab lab = lab_new(1);
    struct receiving r;
    char buf[64] = "";
    pirn_text text = {buf, sizeof buf, 0};

    receiving_init(&r, lab.rx);
    pirn_future_describe(&r.op.future, &text);
    EXPECT_STR_EQ("receive from a channel", buf);
    poller_drop(&r.p);
    lab_end(&lab);
}

/* Goal: giving nothing up is allowed. */
TEST(mpsc_null_handles_are_nothing)
{
    pirn_mpsc_sender_unref(NULL);
    pirn_mpsc_receiver_free(NULL);
}

/* Goal: a receive that was told of a message which a try has taken since waits
 * for the next one. */
TEST(mpsc_receive_beside_a_try_waits_on)
{
    struct lab lab = lab_new(4);
    struct receiving r;

    receiving_wait(&r, lab.rx);
    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r.p));
    EXPECT_EQ(0, give_int(lab.tx, 2));
    EXPECT_EQ(2, r.p.wakes);
    EXPECT_EQ(2, receiving_end(&r));
    lab_end(&lab);
}
