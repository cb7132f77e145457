/* SPDX-License-Identifier: MIT */
/* src/channel/broadcast_test.c - every message to every receiver. */
#include <pirn/broadcast.h>

#include "channel/lab_test.h"

struct hearing {
    pirn_broadcast_recv_op op;
    int message;
    poller p;
};

static pirn_broadcast_sender *tx;

static pirn_broadcast_receiver *begin(size_t capacity)
{
    const pirn_channel_options options = options_of_ints(capacity);
    pirn_broadcast_receiver *rx = NULL;

    EXPECT_EQ(0, pirn_broadcast_new(&options, &tx, &rx));
    return rx;
}

static pirn_broadcast_receiver *subscribe(void)
{
    pirn_broadcast_receiver *rx = NULL;

    EXPECT_EQ(0, pirn_broadcast_subscribe(tx, &rx));
    return rx;
}

static size_t say(int message)
{
    return pirn_broadcast_send(tx, &message);
}

static int hear(pirn_broadcast_receiver *rx)
{
    int message = -1;
    int rc = pirn_broadcast_try_recv(rx, &message);

    return rc < 0 ? rc : message;
}

static void hearing_init(struct hearing *h, pirn_broadcast_receiver *rx)
{
    *h = (struct hearing){.message = -1, .p = {.fut = &h->op.future}};
    pirn_broadcast_recv_init(&h->op, rx, &h->message);
}

/* Goal: each receiver gets all messages from its subscription on, in order. */
TEST(broadcast_reaches_all)
{
    pirn_broadcast_receiver *a = begin(4);
    pirn_broadcast_receiver *b, *c;

    EXPECT_EQ(1, say(1));
    b = subscribe();
    EXPECT_EQ(2, say(2));
    EXPECT_EQ(1, hear(a));
    EXPECT_EQ(0, pirn_broadcast_receiver_dup(a, &c));
    EXPECT_EQ(3, say(3));
    EXPECT_EQ(2, hear(b));
    EXPECT_EQ(3, hear(b));
    EXPECT_EQ(-EAGAIN, hear(b));
    EXPECT_EQ(2, hear(a));
    EXPECT_EQ(3, hear(a));
    EXPECT_EQ(2, hear(c));
    EXPECT_EQ(3, hear(c));
    pirn_broadcast_receiver_free(a);
    pirn_broadcast_receiver_free(b);
    pirn_broadcast_receiver_free(c);
    EXPECT_EQ(0, say(4));
    pirn_broadcast_sender_unref(tx);
}

/* Goal: who falls behind is told how many messages it has missed, then gets the
 * oldest that is kept; the others miss nothing. */
TEST(broadcast_reports_lag)
{
    pirn_broadcast_receiver *slow = begin(3);
    pirn_broadcast_receiver *quick = subscribe();

    for (int i = 1; i <= 8; i++) {
        EXPECT_EQ(2, say(i));
        EXPECT_EQ(i, hear(quick));
    }
    EXPECT_EQ(3, pirn_broadcast_receiver_info(slow).length);
    EXPECT_EQ(-EOVERFLOW, hear(slow));
    EXPECT_EQ(5, pirn_broadcast_receiver_missed(slow));
    EXPECT_EQ(6, hear(slow));
    EXPECT_EQ(2, say(9));
    EXPECT_EQ(2, say(10));
    EXPECT_EQ(-EOVERFLOW, hear(slow));
    EXPECT_EQ(1, pirn_broadcast_receiver_missed(slow));
    for (int i = 8; i <= 10; i++)
        EXPECT_EQ(i, hear(slow));
    EXPECT_EQ(-EAGAIN, hear(slow));
    EXPECT_EQ(0, pirn_broadcast_receiver_missed(quick));
    pirn_broadcast_receiver_free(slow);
    pirn_broadcast_receiver_free(quick);
    pirn_broadcast_sender_unref(tx);
}

/* Goal: a message wakes all who wait, once; one that was dropped has received
 * nothing, and its next receive does. */
TEST(broadcast_wakes_all_once)
{
    pirn_broadcast_receiver *rx[40];
    struct hearing waiting[40];

    rx[0] = begin(4);
    for (int i = 1; i < 40; i++)
        rx[i] = subscribe();
    for (int i = 0; i < 40; i++) {
        hearing_init(&waiting[i], rx[i]);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&waiting[i].p));
    }
    poller_drop(&waiting[3].p);
    EXPECT_EQ(40, say(1));
    EXPECT_EQ(40, say(2));
    poller_drop(&waiting[5].p);
    for (int i = 0; i < 40; i++) {
        EXPECT_EQ(i == 3 ? 0 : 1, waiting[i].p.wakes);
        if (waiting[i].p.fut == NULL) {
            EXPECT_EQ(1, hear(rx[i]));
        } else {
            EXPECT_EQ(PIRN_READY, poller_poll(&waiting[i].p));
            EXPECT_EQ(1, waiting[i].message);
        }
        EXPECT_EQ(2, hear(rx[i]));
        pirn_broadcast_receiver_free(rx[i]);
    }
    pirn_broadcast_sender_unref(tx);
}

/* Goal: when the last sender goes, what was sent is received, then the end. */
TEST(broadcast_ends_with_its_senders)
{
    pirn_broadcast_receiver *rx = begin(4);
    struct hearing h;
    int message;

    EXPECT_PTR_EQ(tx, pirn_broadcast_sender_ref(tx));
    EXPECT_EQ(2, pirn_broadcast_sender_info(tx).senders);
    EXPECT_EQ(1, say(1));
    EXPECT_EQ(1, pirn_broadcast_sender_info(tx).length);
    pirn_broadcast_sender_unref(tx);
    EXPECT(!pirn_broadcast_receiver_info(rx).closed);
    EXPECT_EQ(0, pirn_broadcast_recv(rx, &message, PIRN_EXPIRED));
    EXPECT_EQ(1, message);
    EXPECT_EQ(-ETIMEDOUT, pirn_broadcast_recv(rx, &message, PIRN_EXPIRED));
    hearing_init(&h, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&h.p));
    pirn_broadcast_sender_unref(tx);
    EXPECT_EQ(1, h.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&h.p));
    EXPECT_EQ(PIRN_ECLOSED, pirn_future_outcome(&h.op.future));
    EXPECT_EQ(PIRN_ECLOSED, pirn_broadcast_recv(rx, &message, PIRN_NEVER));
    EXPECT(pirn_broadcast_receiver_info(rx).closed);
    pirn_broadcast_receiver_free(rx);
}

/* Goal: a receive spends budget and describes itself. */
TEST(broadcast_receive_spends_and_describes)
{
    pirn_broadcast_receiver *rx = begin(4);
    struct pirn__turn turn = {.budget = 0};
    struct hearing h;
    char buf[64] = "";
    pirn_text text = {buf, sizeof buf, 0};

    EXPECT_EQ(1, say(1));
    hearing_init(&h, rx);
    pirn_future_describe(&h.op.future, &text);
    EXPECT_STR_EQ("receive a broadcast", buf);
    h.p.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&h.p));
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&h.p));
    EXPECT_EQ(1, h.message);
    pirn_broadcast_receiver_free(rx);
    pirn_broadcast_sender_unref(tx);
}

/* Goal: options and arguments are checked; without a receiver it can be made. */
TEST(broadcast_arguments_are_checked)
{
    struct waste waste;
    pirn_channel_options options = options_with_waste(4, &waste);
    pirn_broadcast_receiver *rx = NULL;

    EXPECT_EQ(-EINVAL, pirn_broadcast_new(&options, &tx, &rx));
    EXPECT_PTR_EQ(NULL, tx);
    EXPECT_PTR_EQ(NULL, rx);
    EXPECT_EQ(-EINVAL, pirn_broadcast_new(NULL, &tx, &rx));
    options = options_of_ints(PIRN_UNBOUNDED);
    EXPECT_EQ(-EINVAL, pirn_broadcast_new(&options, &tx, &rx));
    options = options_of_ints(0);
    EXPECT_EQ(-EINVAL, pirn_broadcast_new(&options, NULL, &rx));
    EXPECT_EQ(0, pirn_broadcast_new(&options, &tx, NULL));
    EXPECT_EQ(64, pirn_broadcast_sender_info(tx).capacity);
    EXPECT_EQ(0, say(1));
    rx = subscribe();
    EXPECT_EQ(-EAGAIN, hear(rx));
    pirn_broadcast_receiver_free(rx);
    pirn_broadcast_sender_unref(tx);
    pirn_broadcast_receiver_free(NULL);
    pirn_broadcast_sender_unref(NULL);
}

/* Goal: a receive that was told of a message which a try has taken since waits
 * for the next one. */
TEST(broadcast_receive_beside_a_try_waits_on)
{
    pirn_broadcast_receiver *rx = begin(4);
    struct hearing h;

    hearing_init(&h, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&h.p));
    EXPECT_EQ(1, say(1));
    EXPECT_EQ(1, hear(rx));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&h.p));
    EXPECT_EQ(1, say(2));
    EXPECT_EQ(2, h.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&h.p));
    EXPECT_EQ(2, h.message);
    pirn_broadcast_receiver_free(rx);
    pirn_broadcast_sender_unref(tx);
}

static void give_sender_up_twice(void *arg)
{
    (void)arg;
    (void)begin(4);
    pirn_broadcast_sender_unref(tx);
    pirn_broadcast_sender_unref(tx);
}

/* Goal: a sender too many that is given up is found: receivers would wait for
 * ever. */
TEST(broadcast_sender_given_up_twice_dies)
{
    EXPECT_DEATH(give_sender_up_twice, NULL, "a sender is given up once");
}
