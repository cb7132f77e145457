/* SPDX-License-Identifier: MIT */
/* bench/bench_channel.c - what a message costs.
 *
 *   mpsc_1     one sender, one receiver, 8 bytes, capacity 1024; one by one
 *   mpsc_4     four senders
 *   many_1, many_4   the same, but the receiver takes up to 64 at once
 *   free_1, free_4   unbounded
 *   tight_1    capacity 1: sender and receiver take turns
 *   mpmc_1, mpmc_4   as many receivers as senders
 *   oneshot    made, sent, received and freed, within one fiber
 *   oneshot_placed   the same in the fiber's own memory
 *
 * All in fibers.  The figure is one message from send to receive.
 */
#include "rig.h"
#include "sample.h"
#include "tally.h"

enum { BATCH = 64, CAPACITY = 1024 };

struct plan {
    const char *name;
    size_t capacity;
    int senders;
    size_t limit; /* of one receive */
};

static struct {
    const struct plan *plan;
    uint64_t each; /* messages of a sender */
    PIRN_ATOMIC(uint64_t) sum; /* of what the receivers got */
    struct tally left;
} work;

static pirn_channel_options options_of(const struct plan *plan)
{
    return (pirn_channel_options){.message_size = sizeof(uint64_t),
                                  .capacity = plan->capacity};
}

/* Owns `arg`, a handle of the sending side. */
static int send_all(void *arg)
{
    pirn_mpsc_sender *sender = arg;

    for (uint64_t i = 1; i <= work.each; i++)
        sample_require(pirn_mpsc_send(sender, &i, PIRN_NEVER), "send");
    pirn_mpsc_sender_unref(sender);
    return 0;
}

/* Of a receiver that has come to the end. */
static void add_sum(uint64_t sum)
{
    /* relaxed: a count, read after the tally. */
    (void)pirn__add(&work.sum, sum, relaxed);
    tally_hit(&work.left);
}

static int receive_each(void *arg)
{
    pirn_mpsc_receiver *receiver = arg;
    uint64_t message, sum = 0;

    while (pirn_mpsc_recv(receiver, &message, PIRN_NEVER) == 0)
        sum += message;
    pirn_mpsc_receiver_free(receiver);
    add_sum(sum);
    return 0;
}

static int receive_many(void *arg)
{
    pirn_mpsc_receiver *receiver = arg;
    uint64_t messages[BATCH], sum = 0;
    ssize_t n;

    while ((n = pirn_mpsc_recv_many(receiver, messages, BATCH, PIRN_NEVER)) > 0)
        for (ssize_t i = 0; i < n; i++)
            sum += messages[i];
    pirn_mpsc_receiver_free(receiver);
    add_sum(sum);
    return 0;
}

/* Every message has come once. */
static void check_sum(void)
{
    uint64_t one = work.each * (work.each + 1) / 2;

    /* relaxed: the tally orders it. */
    if (pirn__load(&work.sum, relaxed) !=
        one * (uint64_t)work.plan->senders)
        sample_require(-1, "the sum of all messages");
}

static void begin(uint64_t receivers)
{
    tally_init(&work.left, receivers);
    /* relaxed: nobody else is there yet. */
    pirn__store(&work.sum, 0, relaxed);
}

static void run_mpsc(void *arg)
{
    const struct plan *plan = arg;
    const pirn_channel_options options = options_of(plan);
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;

    sample_require(pirn_mpsc_new(&options, &sender, &receiver), "new");
    begin(1);
    sample_require(
        pirn_go(plan->limit == 1 ? receive_each : receive_many, receiver),
        "pirn_go");
    for (int i = 0; i < plan->senders; i++)
        sample_require(pirn_go(send_all, pirn_mpsc_sender_ref(sender)),
                       "pirn_go");
    pirn_mpsc_sender_unref(sender);
    tally_await(&work.left);
    check_sum();
}

/* Owns `arg`, a handle of the sending side. */
static int send_all_to_many(void *arg)
{
    pirn_mpmc_sender *sender = arg;

    for (uint64_t i = 1; i <= work.each; i++)
        sample_require(pirn_mpmc_send(sender, &i, PIRN_NEVER), "send");
    pirn_mpmc_sender_unref(sender);
    return 0;
}

static int receive_share(void *arg)
{
    pirn_mpmc_receiver *receiver = arg;
    uint64_t message, sum = 0;

    while (pirn_mpmc_recv(receiver, &message, PIRN_NEVER) == 0)
        sum += message;
    pirn_mpmc_receiver_unref(receiver);
    add_sum(sum);
    return 0;
}

static void run_mpmc(void *arg)
{
    const struct plan *plan = arg;
    const pirn_channel_options options = options_of(plan);
    pirn_mpmc_sender *sender;
    pirn_mpmc_receiver *receiver;

    sample_require(pirn_mpmc_new(&options, &sender, &receiver), "new");
    begin((uint64_t)plan->senders);
    for (int i = 0; i < plan->senders; i++) {
        sample_require(pirn_go(receive_share, pirn_mpmc_receiver_ref(receiver)),
                       "pirn_go");
        sample_require(pirn_go(send_all_to_many, pirn_mpmc_sender_ref(sender)),
                       "pirn_go");
    }
    pirn_mpmc_sender_unref(sender);
    pirn_mpmc_receiver_unref(receiver);
    tally_await(&work.left);
    check_sum();
}

static void run_oneshots(void *arg)
{
    static const pirn_channel_options options = {.message_size =
                                                     sizeof(uint64_t)};
    uint64_t message = 0;

    (void)arg;
    for (uint64_t i = 0; i < work.each; i++) {
        pirn_oneshot_sender *sender;
        pirn_oneshot_receiver *receiver;

        sample_require(pirn_oneshot_new(&options, &sender, &receiver), "new");
        sample_require(pirn_oneshot_send(sender, &i), "send");
        sample_require(pirn_oneshot_recv(receiver, &message, PIRN_NEVER),
                       "receive");
        pirn_oneshot_receiver_free(receiver);
    }
}

static void run_placed_oneshots(void *arg)
{
    static const pirn_channel_options options = {.message_size =
                                                     sizeof(uint64_t)};
    uint64_t room, message = 0;

    (void)arg;
    for (uint64_t i = 0; i < work.each; i++) {
        pirn_oneshot_sender *sender;
        pirn_oneshot_receiver *receiver;
        pirn_oneshot oneshot;

        sample_require(pirn_oneshot_init(&oneshot, &options, &room, &sender,
                                         &receiver),
                       "init");
        sample_require(pirn_oneshot_send(sender, &i), "send");
        sample_require(pirn_oneshot_recv(receiver, &message, PIRN_NEVER),
                       "receive");
        pirn_oneshot_deinit(&oneshot);
    }
}

static void measure(const struct plan *plan, void (*fn)(void *arg),
                    uint64_t messages)
{
    struct rig_row row = {
        .name = plan->name,
        .operations = messages,
        .fn = fn,
        .arg = (void *)(uintptr_t)plan,
    };

    work.plan = plan;
    work.each = messages / (uint64_t)plan->senders;
    rig_time(&row);
}

int main(int argc, char **argv)
{
    static const struct plan plans[] = {
        {"mpsc_1", CAPACITY, 1, 1},
        {"mpsc_4", CAPACITY, 4, 1},
        {"many_1", CAPACITY, 1, BATCH},
        {"many_4", CAPACITY, 4, BATCH},
        {"free_1", PIRN_UNBOUNDED, 1, 1},
        {"free_4", PIRN_UNBOUNDED, 4, 1},
    };
    static const struct plan tight = {"tight_1", 1, 1, 1};
    static const struct plan mpmc[] = {{"mpmc_1", CAPACITY, 1, 1},
                                       {"mpmc_4", CAPACITY, 4, 1}};
    static const struct plan oneshot = {"oneshot", 1, 1, 1};
    static const struct plan placed = {"oneshot_placed", 1, 1, 1};

    rig_begin(argc, argv);
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        measure(&plans[i], run_mpsc, rig_scale(400000, 4000000));
    measure(&tight, run_mpsc, rig_scale(100000, 400000));
    for (size_t i = 0; i < sizeof mpmc / sizeof mpmc[0]; i++)
        measure(&mpmc[i], run_mpmc, rig_scale(400000, 4000000));
    measure(&oneshot, run_oneshots, rig_scale(100000, 400000));
    measure(&placed, run_placed_oneshots, rig_scale(100000, 400000));
    rig_end();
    return 0;
}
