/* SPDX-License-Identifier: MIT */
/* tests/sim/slow_consumer_sim.c - producers that are faster than their
 * consumer.
 *
 * Fibers and threads outside put numbered messages into a channel that holds a
 * few.  The consumer dawdles, and gives up waiting now and then.
 */
#include <errno.h>

#include "engine/sim.h"

enum { PRODUCERS = 6, MESSAGES = 40 };

struct message {
    uint32_t producer;
    uint32_t number;
};

struct feed {
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    size_t capacity;
    uint32_t producers;
    uint32_t next_producer;
    uint32_t per_producer;
    uint32_t expected[PRODUCERS]; /* the number of the next message */
    uint32_t received;
};

/* Producing. */

static int send_one(struct feed *feed, pirn_mpsc_sender *sender,
                    const struct message *message)
{
    pirn_mpsc_permit permit;
    int rc;

    if (sim_chance(700))
        return pirn_mpsc_send(sender, message,
                              pirn_after_ms(1 + sim_below(100)));
    rc = pirn_mpsc_reserve(sender, 1 + sim_below((uint32_t)feed->capacity),
                           pirn_after_ms(1 + sim_below(100)), &permit);
    if (rc < 0)
        return rc;
    rc = pirn_mpsc_permit_send(&permit, message);
    pirn_mpsc_permit_release(&permit);
    return rc;
}

static int produce(void *arg)
{
    struct feed *feed = arg;
    struct message message = {feed->next_producer++, 0};
    pirn_mpsc_sender *sender = pirn_mpsc_sender_ref(feed->sender);
    int rc = 0;

    /* Ends: the consumer takes one after the other. */
    while (message.number < feed->per_producer && rc == 0) {
        rc = send_one(feed, sender, &message);
        if (rc == 0)
            message.number++;
        else if (rc == -ETIMEDOUT)
            rc = 0;
    }
    sim_check(rc == 0, "a producer is done");
    pirn_mpsc_sender_unref(sender);
    return rc;
}

static void produce_outside(void *arg)
{
    (void)produce(arg);
}

/* Consuming. */

static void look_at(struct feed *feed, const struct message *message)
{
    sim_check(message->producer < feed->producers, "the message was sent");
    if (message->producer >= feed->producers)
        return;
    sim_check(message->number == feed->expected[message->producer],
              "messages of a producer arrive in order, each once");
    feed->expected[message->producer]++;
    feed->received++;
}

/* How many were received; 0 if none came in time. */
static int receive_some(struct feed *feed)
{
    struct message messages[4];
    pirn_mpsc_recv_op op;
    ssize_t n;

    if (sim_chance(500)) {
        n = pirn_mpsc_recv_many(feed->receiver, messages, 1 + sim_below(4),
                                pirn_after_ms(sim_below(50)));
    } else {
        pirn_mpsc_recv_init(&op, feed->receiver, messages);
        n = sim_await(&op.future, pirn_after_ms(sim_below(50)));
        if (n == 0)
            n = op.n;
    }
    for (ssize_t i = 0; i < n; i++)
        look_at(feed, &messages[i]);
    return n == -ETIMEDOUT ? 0 : (int)n;
}

static int consume(void *arg)
{
    struct feed *feed = arg;
    int rc = 0;

    while (rc >= 0) {
        pirn_channel_info info = pirn_mpsc_receiver_info(feed->receiver);

        sim_check(info.length <= feed->capacity, "the channel is bounded");
        rc = receive_some(feed);
        if (rc > 0 && sim_chance(300))
            sim_check(sim_sleep_ms(sim_below(20)) == 0, "the consumer sleeps");
    }
    return rc == PIRN_ECLOSED ? 0 : rc;
}

/* All of it; ends when all producers have given their handles up. */
static int run_feed(void *arg)
{
    struct feed *feed = arg;
    pirn_task *consumer;
    int outcome = 0;
    int rc = pirn_go_with(consume, feed, NULL, &consumer);

    sim_check(rc == 0, "the consumer starts");
    for (uint32_t i = 0; i < feed->producers; i++) {
        if (sim_chance(250)) {
            sim_thread(produce_outside, feed);
        } else {
            rc = pirn_go(produce, feed);
            sim_check(rc == 0, "a producer starts");
        }
    }
    /* Until each has a handle of its own. */
    while (feed->next_producer < feed->producers && rc == 0)
        rc = sim_sleep_ms(1);
    pirn_mpsc_sender_unref(feed->sender);
    rc = pirn_task_join(consumer, PIRN_NEVER, &outcome);
    sim_check(rc == 0 && outcome == 0, "the consumer ends well");
    pirn_task_unref(consumer);
    return 0;
}

static void story(void)
{
    struct sim_program program = sim_program_begin();
    struct feed feed = {
        .capacity = 1 + sim_below(8),
        .producers = sim_options()->clients,
        .per_producer = 1 + sim_below(MESSAGES),
    };
    const pirn_channel_options options = {
        .message_size = sizeof(struct message), .capacity = feed.capacity};
    int rc = pirn_mpsc_new(&options, &feed.sender, &feed.receiver);

    sim_check(rc == 0, "a channel can be made");
    sim_check(sim_program_run(&program, run_feed, &feed) == 0,
              "the feed ends well");
    sim_check(feed.received == feed.producers * feed.per_producer,
              "no message is lost");
    pirn_mpsc_receiver_free(feed.receiver);
    sim_program_shutdown(&program, 60000);
    sim_check(program.report.in_time, "shutdown is in time");
    sim_program_end(&program);
}

/* Goal: producers wait for their consumer, nothing is lost, doubled or out of
 * order.  Method: a run for each seed. */
TEST(slow_consumer_gets_all)
{
    sim_expect_clean("slow_consumer_gets_all", story, NULL,
                     test_size(30, 400, 20000));
}

/* Goal: a feed is repeatable, too.  Method: as for echo. */
TEST(slow_consumer_can_be_repeated)
{
    sim_expect_repeatable("slow_consumer_gets_all", story, 10);
}
