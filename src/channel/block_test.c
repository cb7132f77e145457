/* SPDX-License-Identifier: MIT */
/* src/channel/block_test.c - the memory of an unbounded channel. */
#include "channel/channel.h"

#include "channel/lab_test.h"
#include "sched/runtime_test.h"

/* A channel whose memory is counted. */
static struct lab counted_lab(struct meter *meter, pirn_runtime **rt)
{
    struct lab lab;

    meter_init(meter);
    *rt = runtime_on(meter);
    pirn_runtime_enter(*rt);
    lab = lab_new(PIRN_UNBOUNDED);
    pirn_runtime_enter(NULL);
    return lab;
}

static void end_counted(struct lab *lab, struct meter *meter, pirn_runtime *rt)
{
    lab_end(lab);
    runtime_end(rt);
    EXPECT_EQ(0, tally_of(&meter->pieces));
    EXPECT_EQ(1, tally_of(&meter->dones));
}

/* Goal: what is sent is received, in order, over many blocks. */
TEST(block_chain_keeps_order)
{
    enum { MANY = 5 * PIRN__CHANNEL_BLOCK_MESSAGES + 3 };
    struct lab lab = lab_new(PIRN_UNBOUNDED);
    int taken = 0;

    for (int i = 0; i < MANY; i++) {
        EXPECT_EQ(0, give_int(lab.tx, i));
        if (i % 3 == 0)
            EXPECT_EQ(taken++, take_int(lab.rx));
    }
    EXPECT_EQ(MANY - taken, pirn_mpsc_sender_info(lab.tx).length);
    EXPECT_EQ(PIRN_UNBOUNDED, pirn_mpsc_sender_info(lab.tx).available);
    while (taken < MANY)
        EXPECT_EQ(taken++, take_int(lab.rx));
    EXPECT_EQ(-EAGAIN, take_int(lab.rx));
    lab_end(&lab);
}

/* Goal: the memory of a burst goes back when it has been received; a steady flow
 * takes none.
 * Method: count the pieces that are out. */
TEST(block_memory_returns_after_a_burst)
{
    enum { BURST = 20 * PIRN__CHANNEL_BLOCK_MESSAGES };
    struct meter meter;
    pirn_runtime *rt;
    struct lab lab = counted_lab(&meter, &rt);
    uint64_t idle = tally_of(&meter.pieces);
    uint64_t requests;

    for (int i = 0; i < BURST; i++)
        EXPECT_EQ(0, give_int(lab.tx, i));
    EXPECT_EQ(idle + 19, tally_of(&meter.pieces));
    for (int i = 0; i < BURST; i++)
        EXPECT_EQ(i, take_int(lab.rx));
    EXPECT_EQ(-EAGAIN, take_int(lab.rx));
    EXPECT_LE(tally_of(&meter.pieces), idle + 1);

    requests = tally_of(&meter.requests);
    for (int i = 0; i < BURST; i++) {
        EXPECT_EQ(0, give_int(lab.tx, i));
        EXPECT_EQ(i, take_int(lab.rx));
    }
    EXPECT_LE(tally_of(&meter.requests), requests + 1);
    end_counted(&lab, &meter, rt);
}

/* Goal: messages that nobody receives are discarded, and no block is left. */
TEST(block_chain_of_a_dropped_channel_is_freed)
{
    enum { MANY = 3 * PIRN__CHANNEL_BLOCK_MESSAGES };
    struct waste waste = {0};
    const pirn_channel_options options =
        options_with_waste(PIRN_UNBOUNDED, &waste);
    struct meter meter;
    pirn_runtime *rt;
    struct lab lab;

    meter_init(&meter);
    rt = runtime_on(&meter);
    pirn_runtime_enter(rt);
    lab = lab_with(&options);
    pirn_runtime_enter(NULL);
    for (int i = 0; i < MANY; i++)
        EXPECT_EQ(0, give_int(lab.tx, 1));
    for (int i = 0; i < MANY / 2; i++)
        EXPECT_EQ(1, take_int(lab.rx));
    pirn_mpsc_receiver_free(lab.rx);
    lab.rx = NULL;
    EXPECT_EQ(MANY - MANY / 2, waste.count);
    end_counted(&lab, &meter, rt);
}

/* Goal: without memory for a block a send says so and the message stays with the
 * caller; the channel goes on when there is memory again. */
TEST(block_without_memory_fails_the_send)
{
    struct meter meter;
    pirn_runtime *rt;
    struct lab lab = counted_lab(&meter, &rt);
    struct sending s;

    for (int i = 0; i < PIRN__CHANNEL_BLOCK_MESSAGES; i++)
        EXPECT_EQ(0, give_int(lab.tx, i));
    meter_fail(&meter, 1, true);
    EXPECT_EQ(-ENOMEM, give_int(lab.tx, 64));
    sending_init(&s, lab.tx, 64);
    EXPECT_EQ(-ENOMEM, sending_end(&s));
    meter.fails_at = 0;
    EXPECT_EQ(0, give_int(lab.tx, 64));
    for (int i = 0; i <= PIRN__CHANNEL_BLOCK_MESSAGES; i++)
        EXPECT_EQ(i, take_int(lab.rx));
    end_counted(&lab, &meter, rt);
}

/* Goal: making a channel without memory leaves nothing behind.
 * Method: fail the channel, then its first block. */
TEST(block_without_memory_fails_new)
{
    const pirn_channel_options options = options_of_ints(PIRN_UNBOUNDED);
    struct meter meter;
    pirn_runtime *rt;
    struct lab lab;
    uint64_t before;

    meter_init(&meter);
    rt = runtime_on(&meter);
    pirn_runtime_enter(rt);
    before = tally_of(&meter.pieces);
    for (uint64_t k = 1; k <= 2; k++) {
        meter_fail(&meter, k, true);
        EXPECT_EQ(-ENOMEM, pirn_mpsc_new(&options, &lab.tx, &lab.rx));
        EXPECT_PTR_EQ(NULL, lab.tx);
        EXPECT_PTR_EQ(NULL, lab.rx);
        meter.fails_at = 0;
        EXPECT_EQ(before, tally_of(&meter.pieces));
    }
    pirn_runtime_enter(NULL);
    runtime_end(rt);
}

/* Goal: after a close an unbounded channel refuses, and takes no memory for it.
 */
TEST(block_channel_closed_refuses)
{
    struct lab lab = lab_new(PIRN_UNBOUNDED);

    EXPECT_EQ(0, give_int(lab.tx, 1));
    pirn_mpsc_sender_close(lab.tx);
    EXPECT_EQ(PIRN_ECLOSED, give_int(lab.tx, 2));
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(PIRN_ECLOSED, take_int(lab.rx));
    lab_end(&lab);
}
