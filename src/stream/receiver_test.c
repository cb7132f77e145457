/* SPDX-License-Identifier: MIT */
/* src/stream/receiver_test.c - the receiving side of a channel as a stream. */
#include <pirn/channel_stream.h>

#include "stream/source_test.h"

static int discarded;

static void count_discard(void *arg, void *message)
{
    (void)arg;
    discarded += *(int *)message;
}

static pirn_channel_options options_of(pirn_discard_fn *discard)
{
    return (pirn_channel_options){
        .message_size = sizeof(int),
        .capacity = 4,
        .discard = discard,
    };
}

/* Goal: messages come out in order, a wait is woken, the end follows the last
 * message.
 * Method: a channel that is empty, filled, and closed; the buffer changes
 * between two polls of one wait. */
TEST(receiver_of_mpsc_gives_messages_and_then_the_end)
{
    const pirn_channel_options options = options_of(NULL);
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    pirn_channel_stream stream;
    poller p = {0};
    int items[2] = {0};

    EXPECT_EQ(0, pirn_mpsc_new(&options, &sender, &receiver));
    pirn_mpsc_stream_init(&stream, receiver);
    expect_describes("messages of a channel", &stream.stream);
    EXPECT_EQ(WAITS, ask(&p, &stream.stream, &items[0]));
    for (int i = 1; i <= 3; i++)
        EXPECT_EQ(0, pirn_mpsc_try_send(sender, &i));
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(1, ask(&p, &stream.stream, &items[1]));
    EXPECT_EQ(0, items[0]);
    EXPECT_EQ(1, items[1]);
    EXPECT_EQ(1, pirn_next(&stream.stream, &items[0], PIRN_EXPIRED));
    EXPECT_EQ(2, items[0]);
    pirn_mpsc_sender_unref(sender);
    EXPECT_EQ(1, ask(&p, &stream.stream, &items[0]));
    EXPECT_EQ(3, items[0]);
    EXPECT_EQ(0, ask(&p, &stream.stream, &items[0]));
    EXPECT_EQ(0, ask(&p, &stream.stream, &items[0]));
    drop_stream(&p, &stream.stream);
}

/* Goal: a wait that is given up loses nothing, and dropping the stream gives the
 * receiver up with what is left.
 * Method: deadlines that have passed; a drop while it waits, and one with
 * messages in the channel. */
TEST(receiver_dropped_gives_the_channel_up)
{
    const pirn_channel_options options = options_of(count_discard);
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    pirn_channel_stream stream;
    poller p = {0};
    int item = 5;

    discarded = 0;
    EXPECT_EQ(0, pirn_mpsc_new(&options, &sender, &receiver));
    pirn_mpsc_stream_init(&stream, receiver);
    EXPECT_EQ(-ETIMEDOUT, pirn_next(&stream.stream, &item, PIRN_EXPIRED));
    EXPECT_EQ(0, pirn_mpsc_try_send(sender, &item));
    item = 0;
    EXPECT_EQ(1, ask(&p, &stream.stream, &item));
    EXPECT_EQ(5, item);
    pirn_stream_discard(&stream.stream, &item);
    EXPECT_EQ(5, discarded);
    EXPECT_EQ(WAITS, ask(&p, &stream.stream, &item));
    item = 7;
    EXPECT_EQ(0, pirn_mpsc_try_send(sender, &item));
    drop_stream(&p, &stream.stream);
    EXPECT_EQ(12, discarded);
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpsc_try_send(sender, &item));
    pirn_mpsc_sender_unref(sender);
}

/* Goal: what has been set aside for somebody who then gives up is for others.
 * Method: two receivers of one channel wait; a message comes for the first, who
 * gives up. */
TEST(receiver_of_mpmc_given_up_passes_its_message_on)
{
    const pirn_channel_options options = options_of(count_discard);
    pirn_mpmc_sender *sender;
    pirn_mpmc_receiver *receiver;
    pirn_channel_stream streams[2];
    pirn_next_op next;
    poller first = {.fut = &next.future};
    poller second = {0};
    int items[2] = {0};

    discarded = 0;
    EXPECT_EQ(0, pirn_mpmc_new(&options, &sender, &receiver));
    pirn_mpmc_stream_init(&streams[0], pirn_mpmc_receiver_ref(receiver));
    pirn_mpmc_stream_init(&streams[1], receiver);
    pirn_next_init(&next, &streams[0].stream, &items[0]);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&first));
    EXPECT_EQ(WAITS, ask(&second, &streams[1].stream, &items[1]));
    EXPECT_EQ(0, pirn_mpmc_try_send(sender, &(int){9}));
    EXPECT_EQ(1, first.wakes);
    EXPECT_EQ(0, second.wakes);
    poller_drop(&first);
    EXPECT_EQ(1, second.wakes);
    EXPECT_EQ(1, ask(&second, &streams[1].stream, &items[1]));
    EXPECT_EQ(9, items[1]);
    pirn_stream_discard(&streams[1].stream, &items[1]);
    EXPECT_EQ(9, discarded);
    drop_stream(&first, &streams[0].stream);
    pirn_mpmc_sender_unref(sender);
    EXPECT_EQ(0, ask(&second, &streams[1].stream, &items[1]));
    drop_stream(&second, &streams[1].stream);
}

/* Goal: a receiver that fell behind is told so, and goes on.
 * Method: more messages than the channel keeps. */
TEST(receiver_of_a_broadcast_says_what_it_missed)
{
    const pirn_channel_options options = options_of(NULL);
    pirn_broadcast_sender *sender;
    pirn_broadcast_receiver *receiver;
    pirn_channel_stream stream;
    poller p = {0};
    int item = 0;

    EXPECT_EQ(0, pirn_broadcast_new(&options, &sender, &receiver));
    pirn_broadcast_stream_init(&stream, receiver);
    EXPECT_EQ(WAITS, ask(&p, &stream.stream, NULL));
    for (int i = 1; i <= 6; i++)
        (void)pirn_broadcast_send(sender, &i);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(-EOVERFLOW, ask(&p, &stream.stream, &item));
    for (int i = 3; i <= 6; i++) {
        EXPECT_EQ(1, ask(&p, &stream.stream, &item));
        EXPECT_EQ(i, item);
    }
    pirn_stream_discard(&stream.stream, &item);
    pirn_broadcast_sender_unref(sender);
    EXPECT_EQ(0, ask(&p, &stream.stream, &item));
    drop_stream(&p, &stream.stream);
}

/* Goal: a watch gives the latest value, once for each time that it has changed.
 * Method: two values between two asks. */
TEST(receiver_of_a_watch_gives_what_is_new)
{
    const pirn_channel_options options = {.message_size = sizeof(int)};
    pirn_watch_sender *sender;
    pirn_watch_receiver *receiver;
    pirn_channel_stream stream;
    poller p = {0};
    int item = 0;

    EXPECT_EQ(0, pirn_watch_new(&options, &item, &sender, &receiver));
    pirn_watch_stream_init(&stream, receiver);
    EXPECT_EQ(WAITS, ask(&p, &stream.stream, &(int){0}));
    (void)pirn_watch_send(sender, &(int){1});
    (void)pirn_watch_send(sender, &(int){2});
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(1, ask(&p, &stream.stream, &item));
    EXPECT_EQ(2, item);
    EXPECT_EQ(WAITS, ask(&p, &stream.stream, &item));
    pirn_watch_sender_unref(sender);
    EXPECT_EQ(0, ask(&p, &stream.stream, &item));
    drop_stream(&p, &stream.stream);
}

/* Goal: a message costs one unit of budget, and without any stays in the channel.
 */
TEST(receiver_spends_budget)
{
    const pirn_channel_options options = options_of(NULL);
    struct pirn__turn turn = {.budget = 0};
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    pirn_channel_stream stream;
    poller p = {.turn = &turn};
    int item = 0;

    EXPECT_EQ(0, pirn_mpsc_new(&options, &sender, &receiver));
    pirn_mpsc_stream_init(&stream, receiver);
    EXPECT_EQ(0, pirn_mpsc_try_send(sender, &(int){7}));
    EXPECT_EQ(WAITS, ask(&p, &stream.stream, &item));
    EXPECT_EQ(1, pirn_mpsc_sender_info(sender).length);
    turn.budget = 1;
    EXPECT_EQ(1, ask(&p, &stream.stream, &item));
    EXPECT_EQ(7, item);
    EXPECT_EQ(0, turn.budget);
    pirn_mpsc_sender_unref(sender);
    drop_stream(&p, &stream.stream);
}
