/* SPDX-License-Identifier: MIT */
/* src/channel/permit_test.c - places that are reserved first. */
#include "channel/lab_test.h"

struct reserving {
    pirn_mpsc_reserve_op op;
    poller p;
};

static void reserving_init(struct reserving *r, pirn_mpsc_sender *tx,
                           size_t count)
{
    *r = (struct reserving){.p = {.fut = &r->op.future}};
    pirn_mpsc_reserve_init(&r->op, tx, count);
}

static void reserving_wait(struct reserving *r, pirn_mpsc_sender *tx,
                           size_t count)
{
    reserving_init(r, tx, count);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r->p));
}

static int reserving_end(struct reserving *r)
{
    EXPECT_EQ(PIRN_READY, poller_poll(&r->p));
    return r->op.rc;
}

static int put_int(pirn_mpsc_permit *permit, int message)
{
    return pirn_mpsc_permit_send(permit, &message);
}

/* Goal: a reserved place is nobody else's, and a send into it does not wait. */
TEST(permit_keeps_its_places)
{
    struct lab lab = lab_new(3);
    pirn_mpsc_permit permit;

    EXPECT_EQ(0, pirn_mpsc_try_reserve(lab.tx, 2, &permit));
    EXPECT_EQ(2, permit.count);
    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(-EAGAIN, give_int(lab.tx, 9));
    EXPECT_EQ(0, put_int(&permit, 2));
    EXPECT_EQ(1, permit.count);
    EXPECT_EQ(0, put_int(&permit, 3));
    EXPECT_EQ(0, permit.count);
    EXPECT_EQ(-EINVAL, put_int(&permit, 4));
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(2, take_int(lab.rx));
    EXPECT_EQ(3, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: what is left of a permit goes back, to those who wait for it. */
TEST(permit_released_lets_others_in)
{
    struct lab lab = lab_new(2);
    pirn_mpsc_permit permit;
    struct sending a, b;

    EXPECT_EQ(0, pirn_mpsc_try_reserve(lab.tx, 2, &permit));
    sending_wait(&a, lab.tx, 1);
    sending_wait(&b, lab.tx, 2);
    pirn_mpsc_permit_release(&permit);
    EXPECT_EQ(1, a.p.wakes);
    EXPECT_EQ(1, b.p.wakes);
    EXPECT_EQ(0, sending_end(&b));
    EXPECT_EQ(0, sending_end(&a));
    EXPECT_EQ(2, take_int(lab.rx));
    EXPECT_EQ(1, take_int(lab.rx));
    pirn_mpsc_permit_release(&permit); /* empty: nothing */
    lab_end(&lab);
}

/* Goal: requests that cannot be are refused by all three forms. */
TEST(permit_request_is_checked)
{
    struct lab lab = lab_new(2);
    struct lab endless = lab_new(PIRN_UNBOUNDED);
    struct reserving r;
    pirn_mpsc_permit permit = {.count = 7};

    EXPECT_EQ(-EINVAL, pirn_mpsc_try_reserve(lab.tx, 0, &permit));
    EXPECT_EQ(0, permit.count);
    EXPECT_EQ(-EINVAL, pirn_mpsc_try_reserve(lab.tx, 3, &permit));
    EXPECT_EQ(-EINVAL, pirn_mpsc_reserve(lab.tx, 3, PIRN_NEVER, &permit));
    reserving_init(&r, lab.tx, (size_t)UINT32_MAX + 2);
    EXPECT_EQ(-EINVAL, reserving_end(&r));
    EXPECT_EQ(-EINVAL, pirn_future_outcome(&r.op.future));
    EXPECT_EQ(-ENOTSUP, pirn_mpsc_try_reserve(endless.tx, 1, &permit));
    EXPECT_EQ(-ENOTSUP, pirn_mpsc_reserve(endless.tx, 1, PIRN_NEVER, &permit));
    EXPECT_EQ(0, pirn_mpsc_reserve(lab.tx, 2, PIRN_NEVER, &permit));
    EXPECT_EQ(-EAGAIN, pirn_mpsc_try_reserve(lab.tx, 1, &(pirn_mpsc_permit){0}));
    EXPECT_EQ(-ETIMEDOUT,
              pirn_mpsc_reserve(lab.tx, 1, PIRN_EXPIRED,
                                &(pirn_mpsc_permit){0}));
    pirn_mpsc_permit_release(&permit);
    pirn_mpsc_sender_close(lab.tx);
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpsc_try_reserve(lab.tx, 1, &permit));
    EXPECT_EQ(PIRN_ECLOSED,
              pirn_mpsc_reserve(lab.tx, 1, PIRN_NEVER, &permit));
    lab_end(&lab);
    lab_end(&endless);
}

/* Goal: a request for many is not passed by one for few, and gets all at once.
 * Method: two places come free one by one. */
TEST(permit_large_request_is_not_passed)
{
    struct lab lab = lab_new(2);
    struct reserving many;
    struct sending few;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(0, give_int(lab.tx, 2));
    reserving_wait(&many, lab.tx, 2);
    sending_wait(&few, lab.tx, 5);
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(0, many.p.wakes);
    EXPECT_EQ(0, few.p.wakes);
    EXPECT_EQ(2, take_int(lab.rx));
    EXPECT_EQ(1, many.p.wakes);
    EXPECT_EQ(0, few.p.wakes);
    EXPECT_EQ(0, reserving_end(&many));
    EXPECT_EQ(2, many.op.permit.count);
    EXPECT_EQ(0, put_int(&many.op.permit, 3));
    EXPECT_EQ(0, put_int(&many.op.permit, 4));
    EXPECT_EQ(3, take_int(lab.rx));
    EXPECT_EQ(1, few.p.wakes);
    EXPECT_EQ(0, sending_end(&few));
    EXPECT_EQ(4, take_int(lab.rx));
    EXPECT_EQ(5, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: a large request that is dropped lets those behind it through. */
TEST(permit_large_request_dropped_lets_others_in)
{
    struct lab lab = lab_new(2);
    struct reserving many;
    struct sending few;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    reserving_wait(&many, lab.tx, 2);
    sending_wait(&few, lab.tx, 2);
    poller_drop(&many.p);
    EXPECT_EQ(1, few.p.wakes);
    EXPECT_EQ(0, sending_end(&few));
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(2, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: a request that was granted and then dropped gives its places back; one
 * whose result nobody takes, too. */
TEST(permit_granted_and_dropped_is_given_back)
{
    struct lab lab = lab_new(2);
    struct reserving r;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    reserving_wait(&r, lab.tx, 2);
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(1, r.p.wakes);
    EXPECT_EQ(0, pirn_mpsc_sender_info(lab.tx).available);
    poller_drop(&r.p);
    EXPECT_EQ(2, pirn_mpsc_sender_info(lab.tx).available);

    reserving_init(&r, lab.tx, 2);
    EXPECT_EQ(0, reserving_end(&r));
    EXPECT_EQ(0, pirn_mpsc_sender_info(lab.tx).available);
    pirn_future_discard(&r.op.future);
    EXPECT_EQ(2, pirn_mpsc_sender_info(lab.tx).available);
    EXPECT_EQ(1, pirn_mpsc_sender_info(lab.tx).senders);
    lab_end(&lab);
}

/* Goal: a permit keeps the channel from ending: for its receiver, after a close,
 * and after the last handle; until it is used up.
 * Method: two places, one used and one released. */
TEST(permit_keeps_the_channel_going)
{
    struct lab lab = lab_new(2);
    pirn_mpsc_permit permit;
    struct receiving r;

    EXPECT_EQ(0, pirn_mpsc_try_reserve(lab.tx, 2, &permit));
    pirn_mpsc_receiver_close(lab.rx);
    pirn_mpsc_sender_unref(lab.tx);
    receiving_wait(&r, lab.rx);
    EXPECT_EQ(0, put_int(&permit, 6));
    EXPECT_EQ(6, receiving_end(&r));
    receiving_wait(&r, lab.rx);
    pirn_mpsc_permit_release(&permit);
    EXPECT_EQ(1, r.p.wakes);
    EXPECT_EQ(PIRN_ECLOSED, receiving_end(&r));
    pirn_mpsc_receiver_free(lab.rx);
}

/* Goal: without a receiver a permit sends nothing, keeps its place, and can be
 * released after everything else is gone. */
TEST(permit_of_a_channel_without_receiver)
{
    struct waste waste = {0};
    const pirn_channel_options options = options_with_waste(2, &waste);
    struct lab lab = lab_with(&options);
    pirn_mpsc_permit permit;

    EXPECT_EQ(0, pirn_mpsc_try_reserve(lab.tx, 1, &permit));
    pirn_mpsc_sender_unref(lab.tx);
    pirn_mpsc_receiver_free(lab.rx);
    EXPECT_EQ(PIRN_ECLOSED, put_int(&permit, 6));
    EXPECT_EQ(1, permit.count);
    EXPECT_EQ(0, waste.count);
    pirn_mpsc_permit_release(&permit);
    EXPECT_EQ(0, permit.count);
}

/* The end of a channel by the hand of whoever is woken last: 16 sends are given
 * up, then both handles. */
enum { CROWD = 16 };

struct crowd {
    struct lab lab;
    pirn_channel_send_op sends[CROWD];
    int message;
    bool ended;
};

static pirn_waker crowd_clone(const pirn_waker *self)
{
    return *self;
}

static void crowd_end(const pirn_waker *self)
{
    struct crowd *crowd = self->data;

    for (int i = 0; i < CROWD; i++)
        pirn_future_drop(&crowd->sends[i].future);
    lab_end(&crowd->lab);
    crowd->ended = true;
}

static void crowd_wake(pirn_waker self)
{
    crowd_end(&self);
}

static void crowd_forget(pirn_waker self)
{
    (void)self;
}

static const pirn_waker_ops crowd_waker_ops = {
    .clone = crowd_clone,
    .wake = crowd_wake,
    .wake_by_ref = crowd_end,
    .drop = crowd_forget,
};

/* Goal: a permit whose release lets in more senders than are woken at a time may
 * be the last that knows the channel: those it wakes may end everything else.
 * Method: the last of them does, from inside its waker. */
TEST(permit_released_to_a_crowd_keeps_the_channel_so_long)
{
    struct crowd crowd = {.lab = lab_new(CROWD), .message = 7};
    pirn_waker last = {&crowd, &crowd_waker_ops};
    poller others = {0};
    pirn_waker other = poller_waker(&others);
    pirn_mpsc_permit permit;

    EXPECT_EQ(0, pirn_mpsc_try_reserve(crowd.lab.tx, CROWD, &permit));
    for (int i = 0; i < CROWD; i++) {
        pirn_cx cx = pirn_cx_of_waker(i == CROWD - 1 ? &last : &other);

        pirn_mpsc_send_init(&crowd.sends[i], crowd.lab.tx, &crowd.message);
        EXPECT_EQ(PIRN_PENDING, pirn_future_poll(&crowd.sends[i].future, &cx));
    }
    pirn_mpsc_permit_release(&permit);
    EXPECT(crowd.ended);
    EXPECT_EQ(CROWD - 1, others.wakes);
    EXPECT_EQ(0, others.wakers);
}

/* Goal: a dump says how many places are waited for. */
TEST(permit_describes_itself)
{
    struct lab lab = lab_new(2);
    struct reserving r;
    char buf[64] = "";
    pirn_text text = {buf, sizeof buf, 0};

    reserving_init(&r, lab.tx, 2);
    pirn_future_describe(&r.op.future, &text);
    EXPECT_STR_EQ("reserve 2 places in a channel", buf);
    poller_drop(&r.p);
    lab_end(&lab);
}

/* Goal: a reservation costs one unit of budget, and without any takes no place. */
TEST(permit_reservation_spends_budget)
{
    struct pirn__turn turn = {.budget = 0};
    struct lab lab = lab_new(2);
    struct reserving r;

    reserving_init(&r, lab.tx, 2);
    r.p.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r.p));
    EXPECT_EQ(2, pirn_mpsc_sender_info(lab.tx).available);
    turn.budget = 1;
    EXPECT_EQ(0, reserving_end(&r));
    EXPECT_EQ(0, turn.budget);
    EXPECT_EQ(0, pirn_mpsc_sender_info(lab.tx).available);
    pirn_mpsc_permit_release(&r.op.permit);
    lab_end(&lab);
}
