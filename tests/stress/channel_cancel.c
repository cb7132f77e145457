/* SPDX-License-Identifier: MIT */
/* tests/stress/channel_cancel.c - random cancels and deadlines on both ends of a
 * channel: every message is received once, or is still its sender's.
 *
 * Producers number their messages; a number that could not be sent is sent again
 * under the same number.  Producers and consumers are fibers that a supervisor
 * cancels at random moments and starts anew with what they had.
 */
#include <errno.h>
#include <stdlib.h>

#include <pirn/mpmc.h>
#include <pirn/mpsc.h>

#include "base/prng.h"
#include "engine/test.h"
#include "sched/runtime_test.h"

enum { PRODUCERS = 4, CONSUMERS_MAX = 3, CAPACITY = 5 };

struct message {
    uint32_t producer;
    uint32_t number;
};

/* What a producer or consumer keeps from one fiber to the next.  Only one of
 * them runs at a time. */
struct shift {
    struct pirn__prng random;
    uint32_t index;
    uint32_t sent;     /* producer: numbers below have been sent */
    uint64_t returned; /* producer: sends that were not answered with success */
    uint64_t received; /* consumer */
    tally done;        /* 1: there is nothing left to do */
    pirn_task *task;
};

static struct {
    bool many;
    pirn_mpsc_sender *tx;
    pirn_mpsc_receiver *rx;
    pirn_mpmc_sender *many_tx;
    pirn_mpmc_receiver *many_rx;
    uint32_t each; /* messages of a producer */
    uint32_t consumers;
    struct shift shifts[PRODUCERS + CONSUMERS_MAX];
    /* How often each number of each producer was received. */
    PIRN_ATOMIC(uint8_t) *seen[PRODUCERS];
} work;

static uint32_t draw(struct shift *shift, uint32_t below)
{
    return pirn__prng_below(&shift->random, below);
}

/* Mostly none, sometimes one that has passed or is about to. */
static pirn_deadline some_deadline(struct shift *shift)
{
    switch (draw(shift, 8)) {
    case 0:
        return PIRN_EXPIRED;
    case 1:
        return pirn_after_us(draw(shift, 30));
    default:
        return PIRN_NEVER;
    }
}

static int send_by_permit(const struct message *message, pirn_deadline deadline)
{
    pirn_mpsc_permit permit;
    int rc = pirn_mpsc_reserve(work.tx, 1 + message->number % 2, deadline,
                               &permit);

    if (rc < 0)
        return rc;
    rc = pirn_mpsc_permit_send(&permit, message);
    EXPECT_EQ(0, rc);
    pirn_mpsc_permit_release(&permit);
    return rc;
}

static int send_one(struct shift *shift)
{
    const struct message message = {shift->index, shift->sent};
    pirn_deadline deadline = some_deadline(shift);

    if (work.many)
        return pirn_mpmc_send(work.many_tx, &message, deadline);
    return draw(shift, 4) == 0 ? send_by_permit(&message, deadline)
                               : pirn_mpsc_send(work.tx, &message, deadline);
}

static int produce(void *arg)
{
    struct shift *shift = arg;

    while (shift->sent < work.each) {
        int rc = send_one(shift);

        if (rc == 0) {
            shift->sent++;
            continue;
        }
        shift->returned++;
        if (rc == -ECANCELED)
            return 0;
        EXPECT_EQ(-ETIMEDOUT, rc);
    }
    tally_set(&shift->done, 1);
    return 0;
}

static void note(struct shift *shift, const struct message *message)
{
    /* relaxed: a count; the join orders it. */
    uint8_t before =
        pirn__add(&work.seen[message->producer][message->number], 1, relaxed);

    EXPECT_EQ(0, before);
    shift->received++;
}

static ssize_t receive_some(struct shift *shift, struct message *messages)
{
    pirn_deadline deadline = some_deadline(shift);
    int rc;

    if (work.many)
        rc = pirn_mpmc_recv(work.many_rx, messages, deadline);
    else if (draw(shift, 4) == 0)
        return pirn_mpsc_recv_many(work.rx, messages, 3, deadline);
    else
        rc = pirn_mpsc_recv(work.rx, messages, deadline);
    return rc < 0 ? rc : 1;
}

static int consume(void *arg)
{
    struct shift *shift = arg;

    for (;;) {
        struct message messages[3];
        ssize_t n = receive_some(shift, messages);

        for (ssize_t i = 0; i < n; i++)
            note(shift, &messages[i]);
        if (n == PIRN_ECLOSED)
            tally_set(&shift->done, 1);
        if (n == PIRN_ECLOSED || n == -ECANCELED)
            return 0;
        EXPECT(n > 0 || n == -ETIMEDOUT);
    }
}

static bool is_producer(const struct shift *shift)
{
    return shift < &work.shifts[PRODUCERS];
}

/* End the shift's fiber and start the next one, unless its work is done. */
static void relieve(pirn_runtime *rt, struct shift *shift)
{
    if (shift->task != NULL) {
        pirn_task_cancel(shift->task);
        EXPECT_EQ(0, join_and_unref(shift->task));
        shift->task = NULL;
    }
    if (tally_of(&shift->done) == 0)
        shift->task =
            go_task(rt, is_producer(shift) ? produce : consume, shift);
}

static bool all_done(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (tally_of(&work.shifts[i].done) == 0)
            return false;
    return true;
}

/* Relieve shifts of that range at random until all of them are done. */
static void supervise(pirn_runtime *rt, struct pirn__prng *random, uint32_t from,
                      uint32_t to)
{
    /* Ends: each shift gets on between two cancels, or is let alone long
     * enough; the engine watches the time. */
    while (!all_done(from, to)) {
        uint32_t last = PRODUCERS + work.consumers;

        EXPECT_EQ(0, pirn_sleep(pirn_after_us(
                         50 + pirn__prng_below(random, 400))));
        relieve(rt, &work.shifts[pirn__prng_below(random, last)]);
    }
}

static void begin(struct pirn__prng *random, uint32_t each)
{
    const pirn_channel_options options = {
        .message_size = sizeof(struct message), .capacity = CAPACITY};

    work.each = each;
    for (uint32_t i = 0; i < PRODUCERS + work.consumers; i++) {
        work.shifts[i] = (struct shift){.index = i};
        pirn__prng_seed(&work.shifts[i].random, pirn__prng_next(random));
    }
    for (int i = 0; i < PRODUCERS; i++)
        work.seen[i] = calloc(each, 1);
    if (work.many)
        EXPECT_EQ(0, pirn_mpmc_new(&options, &work.many_tx, &work.many_rx));
    else
        EXPECT_EQ(0, pirn_mpsc_new(&options, &work.tx, &work.rx));
}

static void end_sending(void)
{
    if (work.many)
        pirn_mpmc_sender_unref(work.many_tx);
    else
        pirn_mpsc_sender_unref(work.tx);
}

static void end_receiving(void)
{
    if (work.many)
        pirn_mpmc_receiver_unref(work.many_rx);
    else
        pirn_mpsc_receiver_free(work.rx);
}

static void check(uint32_t each)
{
    uint64_t received = 0, returned = 0;

    for (uint32_t i = 0; i < PRODUCERS; i++) {
        EXPECT_EQ(each, work.shifts[i].sent);
        returned += work.shifts[i].returned;
        for (uint32_t k = 0; k < each; k++)
            /* relaxed: all have been joined. */
            EXPECT_EQ(1, pirn__load(&work.seen[i][k], relaxed));
        free((void *)work.seen[i]);
    }
    for (uint32_t i = 0; i < work.consumers; i++)
        received += work.shifts[PRODUCERS + i].received;
    EXPECT_EQ((uint64_t)PRODUCERS * each, received);
    /* The test has tested something. */
    EXPECT_LE(1, returned);
}

static void run(uint32_t workers, bool many, uint32_t each)
{
    const pirn_runtime_options options = {.workers = workers};
    struct pirn__prng random;
    pirn_runtime *rt = NULL;
    uint32_t last;

    work.many = many;
    work.consumers = many ? CONSUMERS_MAX : 1;
    last = PRODUCERS + work.consumers;
    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    pirn__prng_seed(&random, test_seed());
    begin(&random, each);
    for (uint32_t i = 0; i < last; i++)
        relieve(rt, &work.shifts[i]);
    supervise(rt, &random, 0, PRODUCERS);
    for (uint32_t i = 0; i < PRODUCERS; i++)
        relieve(rt, &work.shifts[i]);
    end_sending();
    supervise(rt, &random, PRODUCERS, last);
    for (uint32_t i = PRODUCERS; i < last; i++)
        relieve(rt, &work.shifts[i]);
    end_receiving();
    check(each);
    runtime_end(rt);
}

static uint32_t messages_each(void)
{
    return (uint32_t)test_size(1000, 25000, 2500000);
}

/* Goal: received once or returned, never lost, never twice; with one receiver,
 * permits and batches among the calls.
 * Method: see above, on one and on two workers. */
TEST(channel_cancel_one_receiver)
{
    run(1, false, messages_each());
    run(2, false, messages_each());
}

/* Goal: the same with several receivers. */
TEST(channel_cancel_many_receivers)
{
    run(1, true, messages_each());
    run(2, true, messages_each());
}
