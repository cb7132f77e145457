/* SPDX-License-Identifier: MIT */
/* src/channel/channel_test.c - the life of a channel: options, handles, closing,
 * what becomes of messages that nobody receives, memory.
 */
#include "channel/channel.h"

#include "channel/lab_test.h"
#include "sched/runtime_test.h"

static int try_options(pirn_channel_options options)
{
    struct lab lab = {(void *)&lab, (void *)&lab};
    int rc = pirn_mpsc_new(&options, &lab.tx, &lab.rx);

    if (rc == 0) {
        lab_end(&lab);
    } else {
        EXPECT_PTR_EQ(NULL, lab.tx);
        EXPECT_PTR_EQ(NULL, lab.rx);
    }
    return rc;
}

/* Goal: options out of range are refused, those without a value have a default.
 * Method: the edges of each. */
TEST(channel_options_are_checked)
{
    const pirn_channel_options good = options_of_ints(1);
    pirn_mpsc_sender *tx;
    pirn_mpsc_receiver *rx;
    pirn_mpmc_sender *mtx;
    pirn_mpmc_receiver *mrx;

    EXPECT_EQ(-EINVAL, try_options((pirn_channel_options){.capacity = 1}));
    EXPECT_EQ(-EINVAL, try_options((pirn_channel_options){
                           .message_size = (1 << 20) + 1, .capacity = 1}));
    EXPECT_EQ(0, try_options((pirn_channel_options){.message_size = 1 << 20,
                                                    .capacity = 1}));
    EXPECT_EQ(-EINVAL,
              try_options(options_of_ints((size_t)UINT32_MAX + 1)));
    EXPECT_EQ(0, try_options(options_of_ints(PIRN_UNBOUNDED)));
    EXPECT_EQ(-EINVAL, pirn_mpsc_new(NULL, &tx, &rx));
    EXPECT_EQ(-EINVAL, pirn_mpsc_new(&good, NULL, &rx));
    EXPECT_EQ(-EINVAL, pirn_mpsc_new(&good, &tx, NULL));
    EXPECT_PTR_EQ(NULL, tx);

    const pirn_channel_options endless = options_of_ints(PIRN_UNBOUNDED);

    EXPECT_EQ(-EINVAL, pirn_mpmc_new(&endless, &mtx, &mrx));
    EXPECT_PTR_EQ(NULL, mtx);

    struct lab lab = lab_new(0);

    EXPECT_EQ(64, pirn_mpsc_sender_info(lab.tx).capacity);
    lab_end(&lab);
}

/* Goal: the info says what is in the channel and who is there. */
TEST(channel_info_counts)
{
    struct lab lab = lab_new(3);
    pirn_channel_info info;
    pirn_mpsc_permit permit;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(0, pirn_mpsc_try_reserve(lab.tx, 1, &permit));
    (void)pirn_mpsc_sender_ref(lab.tx);
    info = pirn_mpsc_receiver_info(lab.rx);
    EXPECT_EQ(3, info.capacity);
    EXPECT_EQ(1, info.length);
    EXPECT_EQ(1, info.available);
    EXPECT_EQ(3, info.senders); /* two handles and the permit */
    EXPECT_EQ(1, info.receivers);
    EXPECT(!info.closed);
    pirn_mpsc_permit_release(&permit);
    pirn_mpsc_sender_unref(lab.tx);
    EXPECT_EQ(1, take_int(lab.rx));
    pirn_mpsc_receiver_close(lab.rx);
    info = pirn_mpsc_sender_info(lab.tx);
    EXPECT_EQ(0, info.length);
    EXPECT_EQ(3, info.available);
    EXPECT_EQ(1, info.senders);
    EXPECT(info.closed);
    lab_end(&lab);
}

/* Goal: the last sender closes the channel; the receiver gets what is there
 * first. */
TEST(channel_last_sender_closes)
{
    struct lab lab = lab_new(4);
    struct receiving r;

    (void)pirn_mpsc_sender_ref(lab.tx);
    EXPECT_EQ(0, give_int(lab.tx, 7));
    pirn_mpsc_sender_unref(lab.tx);
    EXPECT_EQ(7, take_int(lab.rx));
    receiving_wait(&r, lab.rx);
    pirn_mpsc_sender_unref(lab.tx);
    EXPECT_EQ(1, r.p.wakes);
    EXPECT_EQ(PIRN_ECLOSED, receiving_end(&r));
    EXPECT_EQ(PIRN_ECLOSED, take_int(lab.rx));
    pirn_mpsc_receiver_free(lab.rx);
}

/* Goal: without a receiver nothing is sent any more, and what is there is
 * discarded, each once; senders that wait keep theirs. */
TEST(channel_without_receiver_discards)
{
    struct waste waste = {0};
    const pirn_channel_options options = options_with_waste(2, &waste);
    struct lab lab = lab_with(&options);
    struct sending s;

    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(0, give_int(lab.tx, 2));
    EXPECT_EQ(1, take_int(lab.rx));
    EXPECT_EQ(0, give_int(lab.tx, 4));
    sending_wait(&s, lab.tx, 8);
    pirn_mpsc_receiver_free(lab.rx);
    EXPECT_EQ(2, waste.count);
    EXPECT_EQ(6, waste.sum);
    EXPECT_EQ(1, s.p.wakes);
    EXPECT_EQ(PIRN_ECLOSED, sending_end(&s));
    EXPECT_EQ(PIRN_ECLOSED, give_int(lab.tx, 16));
    EXPECT_EQ(2, waste.count);
    pirn_mpsc_sender_unref(lab.tx);
    EXPECT_EQ(2, waste.count);
}

static void close_and_look(struct lab *lab, void (*close)(struct lab *lab))
{
    struct sending a, b;
    struct receiving r;

    EXPECT_EQ(0, give_int(lab->tx, 1));
    sending_wait(&a, lab->tx, 2);
    sending_wait(&b, lab->tx, 3);
    close(lab);
    close(lab);
    EXPECT_EQ(1, a.p.wakes);
    EXPECT_EQ(1, b.p.wakes);
    EXPECT_EQ(PIRN_ECLOSED, sending_end(&a));
    EXPECT_EQ(PIRN_ECLOSED, sending_end(&b));
    EXPECT_EQ(PIRN_ECLOSED, give_int(lab->tx, 4));
    EXPECT_EQ(1, take_int(lab->rx));
    receiving_init(&r, lab->rx);
    EXPECT_EQ(PIRN_ECLOSED, receiving_end(&r));
    lab_end(lab);
}

static void close_by_sender(struct lab *lab)
{
    pirn_mpsc_sender_close(lab->tx);
}

static void close_by_receiver(struct lab *lab)
{
    pirn_mpsc_receiver_close(lab->rx);
}

/* Goal: closing wakes everybody who waits, once; what was sent is received.
 * Method: from either end, twice. */
TEST(channel_close_wakes_all_once)
{
    struct lab lab = lab_new(1);

    close_and_look(&lab, close_by_sender);
    lab = lab_new(1);
    close_and_look(&lab, close_by_receiver);
}

/* Goal: more waiters than fit into one batch of wakers are all told. */
TEST(channel_close_wakes_more_than_a_batch)
{
    enum { MANY = 3 * PIRN__WAKE_BATCH + 1 };
    struct lab lab = lab_new(1);
    struct sending waiting[MANY];

    EXPECT_EQ(0, give_int(lab.tx, 1));
    for (int i = 0; i < MANY; i++)
        sending_wait(&waiting[i], lab.tx, i);
    pirn_mpsc_receiver_close(lab.rx);
    for (int i = 0; i < MANY; i++) {
        EXPECT_EQ(1, waiting[i].p.wakes);
        EXPECT_EQ(PIRN_ECLOSED, sending_end(&waiting[i]));
    }
    lab_end(&lab);
}

/* Goal: a weak sender keeps neither the channel open nor, once it is closed,
 * becomes a sender again. */
TEST(channel_weak_sender_does_not_hold)
{
    struct lab lab = lab_new(1);
    pirn_mpsc_weak_sender *weak = pirn_mpsc_sender_downgrade(lab.tx);
    pirn_mpsc_sender *again = NULL;

    EXPECT_PTR_EQ(weak, pirn_mpsc_weak_sender_ref(weak));
    EXPECT_EQ(0, pirn_mpsc_weak_sender_upgrade(weak, &again));
    pirn_mpsc_sender_unref(lab.tx);
    EXPECT_EQ(0, give_int(again, 5));
    pirn_mpsc_sender_unref(again);
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpsc_weak_sender_upgrade(weak, &again));
    EXPECT_PTR_EQ(NULL, again);
    EXPECT_EQ(5, take_int(lab.rx));
    EXPECT_EQ(PIRN_ECLOSED, take_int(lab.rx));
    pirn_mpsc_receiver_free(lab.rx);
    pirn_mpsc_weak_sender_unref(weak);
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpsc_weak_sender_upgrade(weak, &again));
    pirn_mpsc_weak_sender_unref(weak);
    pirn_mpsc_weak_sender_unref(NULL);
}

/* Goal: a channel that was made under a runtime uses its allocator, gives all
 * back, and may outlive it. */
TEST(channel_memory_is_its_runtimes)
{
    struct meter meter;
    pirn_runtime *rt;
    struct lab lab;
    uint64_t before;

    meter_init(&meter);
    rt = runtime_on(&meter);
    pirn_runtime_enter(rt);
    before = tally_of(&meter.pieces);
    lab = lab_new(8);
    EXPECT_EQ(before + 1, tally_of(&meter.pieces));
    pirn_runtime_enter(NULL);
    runtime_end(rt);
    EXPECT_EQ(0, tally_of(&meter.dones));
    EXPECT_EQ(0, give_int(lab.tx, 1));
    EXPECT_EQ(1, take_int(lab.rx));
    lab_end(&lab);
    EXPECT_EQ(0, tally_of(&meter.pieces));
    EXPECT_EQ(1, tally_of(&meter.dones));
}

static void give_sender_up(void *arg)
{
    struct lab lab = lab_new(1);
    struct sending s;

    (void)arg;
    EXPECT_EQ(0, give_int(lab.tx, 1));
    sending_wait(&s, lab.tx, 2);
    pirn_mpsc_sender_unref(lab.tx);
}

static void give_receiver_up(void *arg)
{
    struct lab lab = lab_new(1);
    struct receiving r;

    (void)arg;
    receiving_wait(&r, lab.rx);
    pirn_mpsc_receiver_free(lab.rx);
}

/* Goal: a handle that is given up under a waiting operation is found. */
TEST(channel_handle_given_up_under_a_wait_dies)
{
    EXPECT_DEATH(give_sender_up, NULL, "while a send waits on it");
    EXPECT_DEATH(give_receiver_up, NULL, "while a receive waits on it");
}

static void give_sender_up_twice(void *arg)
{
    struct lab lab = lab_new(1);

    (void)arg;
    pirn_mpsc_sender_unref(lab.tx);
    pirn_mpsc_sender_unref(lab.tx);
}

static void give_receiver_up_twice(void *arg)
{
    struct lab lab = lab_new(1);

    (void)arg;
    pirn_mpsc_receiver_free(lab.rx);
    pirn_mpsc_receiver_free(lab.rx);
}

/* Goal: a handle too many that is given up is found while the other side lives.
 */
TEST(channel_handle_given_up_twice_dies)
{
    EXPECT_DEATH(give_sender_up_twice, NULL, "a sender is given up once");
    EXPECT_DEATH(give_receiver_up_twice, NULL, "a receiver is given up once");
}
