/* SPDX-License-Identifier: MIT */
/* src/channel/send_test.c - who may put a message in, and in which order. */
#include "channel/lab_test.h"
#include "sched/runtime_test.h"

/* Goal: as many as the capacity fit in, and no more.
 * Method: capacities that are no powers of two, several times round. */
TEST(send_fills_to_the_capacity)
{
    for (int capacity = 1; capacity <= 5; capacity++) {
        struct lab lab = lab_new((size_t)capacity);

        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < capacity; i++)
                EXPECT_EQ(0, give_int(lab.tx, round * 10 + i));
            EXPECT_EQ(-EAGAIN, give_int(lab.tx, 99));
            for (int i = 0; i < capacity; i++)
                EXPECT_EQ(round * 10 + i, take_int(lab.rx));
            EXPECT_EQ(-EAGAIN, take_int(lab.rx));
        }
        lab_end(&lab);
    }
}

/* Goal: senders that wait are served in the order in which they came, one for
 * each place, and a newcomer does not pass them. */
TEST(send_waits_in_order)
{
    struct lab lab = lab_new(1);
    struct sending a, b;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    sending_wait(&a, lab.tx, 2);
    sending_wait(&b, lab.tx, 3);
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(1, a.p.wakes);
    EXPECT_EQ(0, b.p.wakes);
    /* The place is a's, whether it has been polled or not. */
    EXPECT_EQ(-EAGAIN, give_int(lab.tx, 9));
    EXPECT_EQ(-EAGAIN, take_int(lab.rx));
    EXPECT_EQ(0, sending_end(&a));
    EXPECT_EQ(0, b.p.wakes);
    EXPECT_EQ(2, take_int(lab.rx));
    EXPECT_EQ(1, b.p.wakes);
    EXPECT_EQ(0, sending_end(&b));
    EXPECT_EQ(3, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: a place that was granted to a send which is then dropped goes to the
 * next; nothing is sent by the one that was dropped. */
TEST(send_dropped_after_grant_passes_place_on)
{
    struct lab lab = lab_new(1);
    struct sending a, b;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    sending_wait(&a, lab.tx, 2);
    sending_wait(&b, lab.tx, 3);
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(1, a.p.wakes);
    poller_drop(&a.p);
    EXPECT_EQ(1, b.p.wakes);
    EXPECT_EQ(0, sending_end(&b));
    EXPECT_EQ(3, take_int(lab.rx));
    EXPECT_EQ(-EAGAIN, take_int(lab.rx));
    EXPECT_EQ(0, give_int(lab.tx, 4));
    lab_end(&lab);
}

/* Goal: a send that is dropped while it waits is as if it had never been. */
TEST(send_dropped_in_line_leaves_it)
{
    struct lab lab = lab_new(1);
    struct sending a, b;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    sending_wait(&a, lab.tx, 2);
    sending_wait(&b, lab.tx, 3);
    poller_drop(&a.p);
    EXPECT_EQ(0, b.p.wakes);
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(1, b.p.wakes);
    poller_drop(&b.p);
    EXPECT_EQ(0, give_int(lab.tx, 4));
    EXPECT_EQ(4, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: another poll renews the waker and keeps the place in line. */
TEST(send_polled_again_keeps_its_place)
{
    struct lab lab = lab_new(1);
    struct sending a, b;
    poller other;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    sending_wait(&a, lab.tx, 2);
    sending_wait(&b, lab.tx, 3);
    other = (poller){.fut = &a.op.future};
    EXPECT_EQ(PIRN_PENDING, poller_poll(&other));
    EXPECT_EQ(0, a.p.wakers);
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(0, a.p.wakes);
    EXPECT_EQ(1, other.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&other));
    EXPECT_EQ(2, take_int(lab.rx));
    poller_drop(&b.p);
    lab_end(&lab);
}

/* Goal: a send that was granted a place before the channel was closed still
 * sends; the receiver does not come to the end before.
 * Method: closed between the grant and the poll. */
TEST(send_granted_before_close_is_good)
{
    struct lab lab = lab_new(1);
    struct sending a;
    struct receiving r;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    sending_wait(&a, lab.tx, 2);
    EXPECT_EQ(1, take_int(lab.rx));
    pirn_mpsc_receiver_close(lab.rx);
    EXPECT_EQ(-EAGAIN, take_int(lab.rx));
    receiving_wait(&r, lab.rx);
    EXPECT_EQ(0, sending_end(&a));
    EXPECT_EQ(1, r.p.wakes);
    EXPECT_EQ(2, receiving_end(&r));
    EXPECT_EQ(PIRN_ECLOSED, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: the same when it is dropped instead: the receiver learns of the end. */
TEST(send_granted_before_close_and_dropped_ends_the_channel)
{
    struct lab lab = lab_new(1);
    struct sending a;
    struct receiving r;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    sending_wait(&a, lab.tx, 2);
    EXPECT_EQ(1, take_int(lab.rx));
    pirn_mpsc_receiver_close(lab.rx);
    receiving_wait(&r, lab.rx);
    poller_drop(&a.p);
    EXPECT_EQ(1, r.p.wakes);
    EXPECT_EQ(PIRN_ECLOSED, receiving_end(&r));
    lab_end(&lab);
}

/* Goal: a granted send to a receiver that is gone keeps its message. */
TEST(send_granted_before_the_receiver_went_is_refused)
{
    struct waste waste = {0};
    const pirn_channel_options options = options_with_waste(1, &waste);
    struct lab lab = lab_with(&options);
    struct sending a;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    sending_wait(&a, lab.tx, 2);
    EXPECT_EQ(1, take_int(lab.rx));
    pirn_mpsc_receiver_free(lab.rx);
    EXPECT_EQ(PIRN_ECLOSED, sending_end(&a));
    EXPECT_EQ(0, waste.count);
    pirn_mpsc_sender_unref(lab.tx);
}

/* Goal: a straight-line send says what the channel says, and at an expired
 * deadline that it is full.
 * Method: a plain thread, which needs no runtime for any of this. */
TEST(send_straight_line_answers)
{
    struct lab lab = lab_new(1);
    int message = 3;

    EXPECT_EQ(0, pirn_mpsc_send(lab.tx, &message, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, pirn_mpsc_send(lab.tx, &message, PIRN_EXPIRED));
    EXPECT_EQ(3, take_int(lab.rx));
    EXPECT_EQ(-EAGAIN, take_int(lab.rx));
    pirn_mpsc_receiver_close(lab.rx);
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpsc_send(lab.tx, &message, PIRN_NEVER));
    lab_end(&lab);
}

/* Goal: a full channel is left alone by a send that needs budget first, and each
 * send costs one unit. */
TEST(send_spends_budget)
{
    struct lab lab = lab_new(4);
    struct pirn__turn turn = {.budget = 1};
    struct sending a, b;

    sending_init(&a, lab.tx, 1);
    a.p.turn = &turn;
    EXPECT_EQ(0, sending_end(&a));
    sending_init(&b, lab.tx, 2);
    b.p.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b.p));
    EXPECT_EQ(1, b.p.wakes);
    EXPECT(turn.deferred);
    turn.budget = 1;
    EXPECT_EQ(0, sending_end(&b));
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(2, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: messages of any size arrive whole. */
TEST(send_moves_messages_of_any_size)
{
    static const size_t sizes[] = {1, 2, 3, 8, 12, 16, 24, 100, 5000};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int endless = 0; endless < 2; endless++) {
            const pirn_channel_options options = {
                .message_size = sizes[i],
                .capacity = endless ? PIRN_UNBOUNDED : 3,
            };
            struct lab lab = lab_with(&options);
            char sent[5000], got[5000];

            for (int k = 0; k < 7; k++) {
                memset(sent, k + 1, sizes[i]);
                memset(got, 0, sizes[i]);
                EXPECT_EQ(0, pirn_mpsc_try_send(lab.tx, sent));
                EXPECT_EQ(0, pirn_mpsc_try_recv(lab.rx, got));
                EXPECT_EQ(0, memcmp(sent, got, sizes[i]));
            }
            lab_end(&lab);
        }
    }
}

static void describe_waits(void)
{
    struct lab lab = lab_new(1);
    struct sending s;
    char buf[64] = "";
    pirn_text text = {buf, sizeof buf, 0};

    sending_init(&s, lab.tx, 1);
    pirn_future_describe(&s.op.future, &text);
    EXPECT_STR_EQ("send to a channel", buf);
    poller_drop(&s.p);
    lab_end(&lab);
}

/* Goal: a dump says what a sender waits for. */
TEST(send_describes_itself)
{
    describe_waits();
}
