/* SPDX-License-Identifier: MIT */
/* src/channel/oneshot_test.c - one message, two owners, in every order. */
#include <pirn/oneshot.h>

#include "channel/lab_test.h"

struct shot {
    pirn_oneshot_sender *tx;
    pirn_oneshot_receiver *rx;
    pirn_oneshot_op op;
    int message;
    poller p;
};

static struct waste waste;

static void shot_begin(struct shot *shot)
{
    const pirn_channel_options options = options_with_waste(0, &waste);

    waste = (struct waste){0};
    *shot = (struct shot){.message = -1, .p = {.fut = &shot->op.future}};
    EXPECT_EQ(0, pirn_oneshot_new(&options, &shot->tx, &shot->rx));
}

static int shot_send(struct shot *shot, int message)
{
    return pirn_oneshot_send(shot->tx, &message);
}

static void shot_wait(struct shot *shot)
{
    pirn_oneshot_recv_init(&shot->op, shot->rx, &shot->message);
    shot->p.fut = &shot->op.future;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&shot->p));
}

/* Goal: sent first, then received; and no second time. */
TEST(oneshot_sent_then_received)
{
    struct shot shot;

    shot_begin(&shot);
    EXPECT_EQ(-EAGAIN, pirn_oneshot_try_recv(shot.rx, &shot.message));
    EXPECT_EQ(0, shot_send(&shot, 5));
    EXPECT_EQ(0, pirn_oneshot_recv(shot.rx, &shot.message, PIRN_EXPIRED));
    EXPECT_EQ(5, shot.message);
    EXPECT_EQ(PIRN_ECLOSED, pirn_oneshot_try_recv(shot.rx, &shot.message));
    EXPECT_EQ(PIRN_ECLOSED,
              pirn_oneshot_recv(shot.rx, &shot.message, PIRN_NEVER));
    pirn_oneshot_receiver_free(shot.rx);
    EXPECT_EQ(0, waste.count);
}

/* Goal: a waiting receiver is woken once and gets the message. */
TEST(oneshot_waiting_receiver_is_woken)
{
    struct shot shot;

    shot_begin(&shot);
    shot_wait(&shot);
    EXPECT_EQ(0, shot_send(&shot, 5));
    EXPECT_EQ(1, shot.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&shot.p));
    EXPECT_EQ(0, pirn_future_outcome(&shot.op.future));
    EXPECT_EQ(5, shot.message);
    pirn_oneshot_receiver_free(shot.rx);
    EXPECT_EQ(0, waste.count);
}

/* Goal: a receive that is dropped after the message came leaves it to the next
 * one. */
TEST(oneshot_receive_dropped_leaves_the_message)
{
    struct shot shot;

    shot_begin(&shot);
    shot_wait(&shot);
    EXPECT_EQ(0, shot_send(&shot, 5));
    poller_drop(&shot.p);
    EXPECT_EQ(-1, shot.message);
    EXPECT_EQ(0, pirn_oneshot_try_recv(shot.rx, &shot.message));
    EXPECT_EQ(5, shot.message);
    pirn_oneshot_receiver_free(shot.rx);
}

/* Goal: a sender that goes without a message ends the wait. */
TEST(oneshot_sender_gone_ends_the_wait)
{
    struct shot shot;

    shot_begin(&shot);
    shot_wait(&shot);
    pirn_oneshot_sender_free(shot.tx);
    EXPECT_EQ(1, shot.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&shot.p));
    EXPECT_EQ(PIRN_ECLOSED, shot.op.rc);
    EXPECT_EQ(PIRN_ECLOSED, pirn_oneshot_try_recv(shot.rx, &shot.message));
    pirn_oneshot_receiver_free(shot.rx);
}

/* Goal: a receiver that goes refuses the message, or discards it if it came
 * before. */
TEST(oneshot_receiver_gone_refuses_or_discards)
{
    struct shot shot;

    shot_begin(&shot);
    EXPECT(!pirn_oneshot_is_closed(shot.tx));
    pirn_oneshot_receiver_free(shot.rx);
    EXPECT(pirn_oneshot_is_closed(shot.tx));
    EXPECT_EQ(PIRN_ECLOSED, shot_send(&shot, 5));
    EXPECT_EQ(0, waste.count);

    shot_begin(&shot);
    EXPECT_EQ(0, shot_send(&shot, 6));
    pirn_oneshot_receiver_free(shot.rx);
    EXPECT_EQ(1, waste.count);
    EXPECT_EQ(6, waste.sum);
}

/* Goal: a closed receiver refuses what comes later and still gets what came
 * before; its own wait ends. */
TEST(oneshot_receiver_closed)
{
    struct shot shot;

    shot_begin(&shot);
    EXPECT_EQ(0, shot_send(&shot, 5));
    pirn_oneshot_receiver_close(shot.rx);
    EXPECT_EQ(0, pirn_oneshot_try_recv(shot.rx, &shot.message));
    EXPECT_EQ(5, shot.message);
    pirn_oneshot_receiver_free(shot.rx);

    shot_begin(&shot);
    shot_wait(&shot);
    pirn_oneshot_receiver_close(shot.rx);
    pirn_oneshot_receiver_close(shot.rx);
    EXPECT_EQ(1, shot.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&shot.p));
    EXPECT_EQ(PIRN_ECLOSED, shot.op.rc);
    EXPECT_EQ(PIRN_ECLOSED, shot_send(&shot, 6));
    pirn_oneshot_receiver_free(shot.rx);
}

/* Goal: a sender learns that its message is in vain, beside a receiver that
 * waits; dropping the wait loses nothing. */
TEST(oneshot_sender_waits_for_the_end)
{
    struct shot shot;
    pirn_oneshot_op closed;
    poller p = {.fut = &closed.future};

    shot_begin(&shot);
    EXPECT_EQ(-ETIMEDOUT, pirn_oneshot_closed(shot.tx, PIRN_EXPIRED));
    shot_wait(&shot);
    pirn_oneshot_closed_init(&closed, shot.tx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    poller_drop(&p);
    pirn_oneshot_closed_init(&closed, shot.tx);
    p.fut = &closed.future;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    poller_drop(&shot.p);
    pirn_oneshot_receiver_free(shot.rx);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(0, closed.rc);
    EXPECT_EQ(0, pirn_oneshot_closed(shot.tx, PIRN_NEVER));
    pirn_oneshot_sender_free(shot.tx);
}

/* Goal: a received message without a taker is discarded. */
TEST(oneshot_received_without_taker_is_discarded)
{
    struct shot shot;

    shot_begin(&shot);
    EXPECT_EQ(0, shot_send(&shot, 5));
    pirn_oneshot_recv_init(&shot.op, shot.rx, &shot.message);
    EXPECT_EQ(PIRN_READY, poller_poll(&shot.p));
    pirn_future_discard(&shot.op.future);
    EXPECT_EQ(1, waste.count);
    pirn_oneshot_receiver_free(shot.rx);
    EXPECT_EQ(1, waste.count);
}

/* Goal: who has no use for the message learns when the sender is gone, however it
 * goes; a close of its own does not end that wait, and dropping it loses nothing.
 */
TEST(oneshot_receiver_waits_for_the_senders_end)
{
    struct shot shot;

    shot_begin(&shot);
    EXPECT_EQ(-ETIMEDOUT, pirn_oneshot_finished(shot.rx, PIRN_EXPIRED));
    pirn_oneshot_finished_init(&shot.op, shot.rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&shot.p));
    poller_drop(&shot.p);
    pirn_oneshot_finished_init(&shot.op, shot.rx);
    shot.p.fut = &shot.op.future;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&shot.p));
    pirn_oneshot_receiver_close(shot.rx);
    EXPECT_EQ(0, shot.p.wakes);
    EXPECT_EQ(PIRN_ECLOSED, shot_send(&shot, 5));
    EXPECT_EQ(1, shot.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&shot.p));
    EXPECT_EQ(0, pirn_future_outcome(&shot.op.future));
    EXPECT_EQ(0, pirn_oneshot_finished(shot.rx, PIRN_NEVER));
    pirn_oneshot_receiver_free(shot.rx);

    shot_begin(&shot);
    pirn_oneshot_finished_init(&shot.op, shot.rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&shot.p));
    pirn_oneshot_sender_free(shot.tx);
    EXPECT_EQ(1, shot.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&shot.p));
    pirn_oneshot_receiver_free(shot.rx);
}

/* In the caller's memory. */

struct placed {
    pirn_oneshot oneshot;
    int room;
    struct shot shot;
};

static void placed_begin(struct placed *placed)
{
    const pirn_channel_options options = options_with_waste(0, &waste);

    waste = (struct waste){0};
    *placed = (struct placed){.shot.message = -1};
    EXPECT_EQ(0, pirn_oneshot_init(&placed->oneshot, &options, &placed->room,
                                   &placed->shot.tx, &placed->shot.rx));
}

/* Nothing looks at the memory from here on. */
static void placed_end(struct placed *placed)
{
    pirn_oneshot_deinit(&placed->oneshot);
    memset(&placed->oneshot, 0x5a, sizeof placed->oneshot);
    memset(&placed->room, 0x5a, sizeof placed->room);
}

/* Goal: in the caller's memory the ends are what they are elsewhere: a message
 * waits, a wait is woken, a sender that goes ends it. */
TEST(oneshot_placed_sends_and_receives)
{
    struct placed placed;

    placed_begin(&placed);
    EXPECT_EQ(-EAGAIN,
              pirn_oneshot_try_recv(placed.shot.rx, &placed.shot.message));
    EXPECT_EQ(0, shot_send(&placed.shot, 5));
    EXPECT_EQ(0, pirn_oneshot_try_recv(placed.shot.rx, &placed.shot.message));
    EXPECT_EQ(5, placed.shot.message);
    placed_end(&placed);

    placed_begin(&placed);
    shot_wait(&placed.shot);
    EXPECT_EQ(0, shot_send(&placed.shot, 6));
    EXPECT_EQ(1, placed.shot.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&placed.shot.p));
    EXPECT_EQ(6, placed.shot.message);
    placed_end(&placed);

    placed_begin(&placed);
    shot_wait(&placed.shot);
    pirn_oneshot_sender_free(placed.shot.tx);
    EXPECT_EQ(PIRN_READY, poller_poll(&placed.shot.p));
    EXPECT_EQ(PIRN_ECLOSED, placed.shot.op.rc);
    placed_end(&placed);
    EXPECT_EQ(0, waste.count);
}

/* Goal: a message that nobody has received is discarded once, by whichever of
 * the two gives the receiver up.
 * Method: the deinit; a free before it; a close, and then a send in vain. */
TEST(oneshot_placed_discards_what_is_left)
{
    struct placed placed;

    placed_begin(&placed);
    EXPECT_EQ(0, shot_send(&placed.shot, 5));
    placed_end(&placed);
    EXPECT_EQ(1, waste.count);
    EXPECT_EQ(5, waste.sum);

    placed_begin(&placed);
    EXPECT_EQ(0, shot_send(&placed.shot, 5));
    pirn_oneshot_receiver_free(placed.shot.rx);
    EXPECT_EQ(1, waste.count);
    placed_end(&placed);
    EXPECT_EQ(1, waste.count);

    placed_begin(&placed);
    pirn_oneshot_receiver_free(placed.shot.rx);
    EXPECT(pirn_oneshot_is_closed(placed.shot.tx));
    EXPECT_EQ(PIRN_ECLOSED, shot_send(&placed.shot, 5));
    placed_end(&placed);
    EXPECT_EQ(0, waste.count);
}

static void end_before_the_sender(void *arg)
{
    struct placed placed;

    (void)arg;
    placed_begin(&placed);
    pirn_oneshot_receiver_close(placed.shot.rx);
    pirn_oneshot_deinit(&placed.oneshot);
}

static void end_under_a_wait(void *arg)
{
    struct placed placed;

    (void)arg;
    placed_begin(&placed);
    shot_wait(&placed.shot);
    pirn_oneshot_deinit(&placed.oneshot);
}

/* Goal: memory is not taken from under a sender. */
TEST(oneshot_placed_ended_before_its_sender_dies)
{
    EXPECT_DEATH(end_before_the_sender, NULL, "after its sender is gone");
    EXPECT_DEATH(end_under_a_wait, NULL, "after its sender is gone");
}

/* Goal: all operations spend budget and describe themselves. */
TEST(oneshot_operations_spend_and_describe)
{
    struct pirn__turn turn = {.budget = 0};
    struct shot shot;
    char buf[64] = "";
    pirn_text text = {buf, sizeof buf, 0};

    shot_begin(&shot);
    pirn_oneshot_closed_init(&shot.op, shot.tx);
    pirn_future_describe(&shot.op.future, &text);
    EXPECT_STR_EQ("the end of a oneshot's receiver", buf);
    pirn_oneshot_finished_init(&shot.op, shot.rx);
    text.len = 0;
    pirn_future_describe(&shot.op.future, &text);
    EXPECT_STR_EQ("the end of a oneshot's sender", buf);
    EXPECT_EQ(0, shot_send(&shot, 5));
    pirn_oneshot_recv_init(&shot.op, shot.rx, &shot.message);
    text.len = 0;
    pirn_future_describe(&shot.op.future, &text);
    EXPECT_STR_EQ("the message of a oneshot", buf);
    shot.p.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&shot.p));
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&shot.p));
    EXPECT_EQ(0, turn.budget);
    pirn_oneshot_finished_init(&shot.op, shot.rx);
    shot.p.fut = &shot.op.future;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&shot.p));
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&shot.p));
    EXPECT_EQ(0, turn.budget);
    pirn_oneshot_receiver_free(shot.rx);
}

/* Goal: options and arguments are checked; NULL is nothing to give up. */
TEST(oneshot_arguments_are_checked)
{
    pirn_channel_options options = {.message_size = 0};
    pirn_oneshot_sender *tx;
    pirn_oneshot_receiver *rx;
    pirn_oneshot oneshot;
    int room;

    EXPECT_EQ(-EINVAL, pirn_oneshot_new(&options, &tx, &rx));
    EXPECT_PTR_EQ(NULL, tx);
    EXPECT_PTR_EQ(NULL, rx);
    options.message_size = (1 << 20) + 1;
    EXPECT_EQ(-EINVAL, pirn_oneshot_new(&options, &tx, &rx));
    EXPECT_EQ(-EINVAL, pirn_oneshot_new(NULL, &tx, &rx));
    options.message_size = 1;
    EXPECT_EQ(-EINVAL, pirn_oneshot_new(&options, NULL, &rx));
    EXPECT_EQ(-EINVAL, pirn_oneshot_new(&options, &tx, NULL));
    EXPECT_EQ(-EINVAL, pirn_oneshot_init(NULL, &options, &room, &tx, &rx));
    EXPECT_PTR_EQ(NULL, tx);
    EXPECT_PTR_EQ(NULL, rx);
    EXPECT_EQ(-EINVAL, pirn_oneshot_init(&oneshot, NULL, &room, &tx, &rx));
    EXPECT_EQ(-EINVAL, pirn_oneshot_init(&oneshot, &options, NULL, &tx, &rx));
    EXPECT_EQ(-EINVAL,
              pirn_oneshot_init(&oneshot, &options, &room, NULL, &rx));
    EXPECT_EQ(-EINVAL,
              pirn_oneshot_init(&oneshot, &options, &room, &tx, NULL));
    options.message_size = 0;
    EXPECT_EQ(-EINVAL, pirn_oneshot_init(&oneshot, &options, &room, &tx, &rx));
    pirn_oneshot_sender_free(NULL);
    pirn_oneshot_receiver_free(NULL);
}

static void give_sender_up(void *arg)
{
    struct shot shot;

    (void)arg;
    shot_begin(&shot);
    pirn_oneshot_closed_init(&shot.op, shot.tx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&shot.p));
    pirn_oneshot_sender_free(shot.tx);
}

static void give_receiver_up(void *arg)
{
    struct shot shot;

    (void)arg;
    shot_begin(&shot);
    shot_wait(&shot);
    pirn_oneshot_receiver_free(shot.rx);
}

/* Goal: an end that is given up while it waits is found. */
TEST(oneshot_end_given_up_under_its_wait_dies)
{
    EXPECT_DEATH(give_sender_up, NULL, "given up while it waits");
    EXPECT_DEATH(give_receiver_up, NULL, "given up while it waits");
}

static void give_sender_up_twice(void *arg)
{
    struct shot shot;
    int message = 1;

    (void)arg;
    shot_begin(&shot);
    EXPECT_EQ(0, pirn_oneshot_send(shot.tx, &message));
    pirn_oneshot_sender_free(shot.tx);
}

static void give_receiver_up_twice(void *arg)
{
    struct shot shot;

    (void)arg;
    shot_begin(&shot);
    pirn_oneshot_receiver_free(shot.rx);
    pirn_oneshot_receiver_free(shot.rx);
}

/* Goal: an end that is given up twice is found while the other one lives.
 * Method: a send has given the sender up already. */
TEST(oneshot_end_given_up_twice_dies)
{
    EXPECT_DEATH(give_sender_up_twice, NULL, "given up once");
    EXPECT_DEATH(give_receiver_up_twice, NULL, "given up once");
}
