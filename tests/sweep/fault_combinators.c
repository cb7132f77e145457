/* SPDX-License-Identifier: MIT */
/* tests/sweep/fault_combinators.c - waiting for many in a world without memory:
 * it becomes slower, and never fails for that reason.
 */
#include <errno.h>

#include <pirn/channel_stream.h>
#include <pirn/fiber.h>
#include <pirn/select.h>

#include "fault_fixture.h"

enum { CHANNELS = 40 };

static uint32_t workers;
static pirn_mpsc_sender *senders[CHANNELS];
static pirn_mpsc_receiver *receivers[CHANNELS];
static pirn_mpsc_recv_op recvs[CHANNELS];
static pirn_branch branches[CHANNELS];
static int items[CHANNELS];

static void open_channels(void)
{
    const pirn_channel_options options = {.message_size = sizeof(int),
                                          .capacity = 2};

    sweep_hold();
    for (int i = 0; i < CHANNELS; i++)
        EXPECT_EQ(0, pirn_mpsc_new(&options, &senders[i], &receivers[i]));
    sweep_go_on();
}

static void await_all(void)
{
    for (int i = 0; i < CHANNELS; i++) {
        pirn_mpsc_recv_init(&recvs[i], receivers[i], &items[i]);
        branches[i] = (pirn_branch)PIRN_BRANCH_KEPT(&recvs[i]);
    }
}

static void send_to_each(void)
{
    for (int i = 0; i < CHANNELS; i++)
        EXPECT_EQ(0, pirn_mpsc_try_send(senders[i], &i));
}

static int wait_for_many(void *arg)
{
    bool inside = arg == NULL;
    int rc;

    open_channels();
    await_all();
    rc = pirn_join_all(branches, CHANNELS, PIRN_EXPIRED);
    EXPECT(rc == -ETIMEDOUT || (rc == -ENOMEM && !inside));
    send_to_each();
    rc = SWEPT(pirn_select(branches, CHANNELS, PIRN_NEVER));
    EXPECT(rc >= 0 || (rc == -ENOMEM && !inside));
    rc = SWEPT(pirn_try_join_all(branches, CHANNELS, PIRN_NEVER));
    EXPECT(rc == 0 || (rc == -ENOMEM && !inside));
    for (int i = 0; i < CHANNELS && rc == 0; i++)
        EXPECT_EQ(i, items[i]);
    pirn_branches_drop(branches, CHANNELS);
    for (int i = 0; i < CHANNELS; i++) {
        pirn_mpsc_sender_unref(senders[i]);
        pirn_mpsc_receiver_free(receivers[i]);
    }
    return 0;
}

static void wait_for_many_outside(void)
{
    (void)wait_for_many(&workers);
}

static void wait_for_many_inside(void)
{
    fault_run(workers, wait_for_many, NULL);
}

/* Goal: a join and a select of many work without memory, wake by wake.
 * Method: forty channels, on a plain thread and in a fiber. */
TEST(fault_in_join_and_select_of_many)
{
    SWEEP(wait_for_many_outside, SWEEP_EVERYTHING);
    workers = 0;
    SWEEP(wait_for_many_inside, SWEEP_EVERYTHING);
    workers = 2;
    SWEEP(wait_for_many_inside, SWEEP_EVERYTHING);
}

static int merge_many(void *arg)
{
    static pirn_channel_stream streams[CHANNELS];
    static pirn_stream_slot slots[CHANNELS];
    pirn_merge_stream merge;
    int item = -1;
    int sum = 0;

    (void)arg;
    open_channels();
    for (int i = 0; i < CHANNELS; i++) {
        pirn_mpsc_stream_init(&streams[i], receivers[i]);
        slots[i] = (pirn_stream_slot){&streams[i].stream, (uint64_t)i};
    }
    pirn_merge_init(&merge, slots, CHANNELS);
    EXPECT_EQ(-ETIMEDOUT, pirn_next(&merge.stream, &item, PIRN_EXPIRED));
    send_to_each();
    for (int i = 0; i < CHANNELS; i++) {
        EXPECT_EQ(1, SWEPT(pirn_next(&merge.stream, &item, PIRN_NEVER)));
        EXPECT_EQ(merge.key, item);
        sum += item;
        pirn_mpsc_sender_unref(senders[i]);
    }
    EXPECT_EQ(CHANNELS * (CHANNELS - 1) / 2, sum);
    EXPECT_EQ(0, SWEPT(pirn_next(&merge.stream, &item, PIRN_NEVER)));
    pirn_stream_drop(&merge.stream);
    return 0;
}

static void merge_inside(void)
{
    fault_run(workers, merge_many, NULL);
}

/* Goal: the same for a merge of many streams.
 * Method: forty channels, one message in each. */
TEST(fault_in_merge_of_many)
{
    workers = 0;
    SWEEP(merge_inside, SWEEP_EVERYTHING);
    workers = 2;
    SWEEP(merge_inside, SWEEP_EVERYTHING);
}
