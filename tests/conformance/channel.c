/* SPDX-License-Identifier: MIT */
/* tests/conformance/channel.c - what Tokio's and Go's documentation promise of
 * their channels, told in every way in which a program may write it:
 *
 *   alone    straight-line calls on a plain thread without any runtime
 *   fiber    straight-line calls in a fiber
 *   future   operations awaited one by one in a fiber
 *   host     operations driven by pirn_block_on() from the plain thread
 *
 * All but "alone" on a current-thread runtime, on pools of two and four workers
 * and on a computational pool of three slots.  The partner at the other end is a
 * plain thread in one telling and a fiber in the next, where there is a runtime.
 *
 * In the simulated world (tests/sim) each seed chooses one of these ways.
 */
#include <errno.h>

#include <pirn/pirn.h>

#include "conformance/ways.h"
#include "engine/test.h"

static int many(void)
{
    return (int)world_size(500, 50);
}

/* The calls of the stories. */

static int way_send(const struct way *way, pirn_mpsc_sender *sender,
                    const int *message, pirn_deadline deadline)
{
    pirn_mpsc_send_op op;
    int rc;

    if (is_straight(way))
        return pirn_mpsc_send(sender, message, deadline);
    pirn_mpsc_send_init(&op, sender, message);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

static int way_recv(const struct way *way, pirn_mpsc_receiver *receiver,
                    int *message, pirn_deadline deadline)
{
    pirn_mpsc_recv_op op;
    int rc;

    if (is_straight(way))
        return pirn_mpsc_recv(receiver, message, deadline);
    pirn_mpsc_recv_init(&op, receiver, message);
    rc = way_await(way, &op.future, deadline);
    if (rc < 0)
        return rc;
    return op.n < 0 ? (int)op.n : 0;
}

static int way_take(const struct way *way, pirn_mpmc_receiver *receiver,
                    int *message, pirn_deadline deadline)
{
    pirn_mpmc_recv_op op;
    int rc;

    if (is_straight(way))
        return pirn_mpmc_recv(receiver, message, deadline);
    pirn_mpmc_recv_init(&op, receiver, message);
    rc = way_await(way, &op.future, deadline);
    if (rc < 0)
        return rc;
    return op.n < 0 ? (int)op.n : 0;
}

static int way_answer(const struct way *way, pirn_oneshot_receiver *receiver,
                      int *message, pirn_deadline deadline)
{
    pirn_oneshot_op op;
    int rc;

    if (is_straight(way))
        return pirn_oneshot_recv(receiver, message, deadline);
    pirn_oneshot_recv_init(&op, receiver, message);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

static int way_finished(const struct way *way, pirn_oneshot_receiver *receiver,
                        pirn_deadline deadline)
{
    pirn_oneshot_op op;

    if (is_straight(way))
        return pirn_oneshot_finished(receiver, deadline);
    pirn_oneshot_finished_init(&op, receiver);
    return way_await(way, &op.future, deadline);
}

static int way_closed(const struct way *way, pirn_oneshot_sender *sender,
                      pirn_deadline deadline)
{
    pirn_oneshot_op op;
    int rc;

    if (is_straight(way))
        return pirn_oneshot_closed(sender, deadline);
    pirn_oneshot_closed_init(&op, sender);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

static int way_hear(const struct way *way, pirn_broadcast_receiver *receiver,
                    int *message, pirn_deadline deadline)
{
    pirn_broadcast_recv_op op;
    int rc;

    if (is_straight(way))
        return pirn_broadcast_recv(receiver, message, deadline);
    pirn_broadcast_recv_init(&op, receiver, message);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

static int way_changed(const struct way *way, pirn_watch_receiver *receiver,
                       int *value, pirn_deadline deadline)
{
    pirn_watch_op op;
    int rc;

    if (is_straight(way))
        return pirn_watch_changed(receiver, value, deadline);
    pirn_watch_changed_init(&op, receiver, value);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

static int way_wait_for(const struct way *way, pirn_watch_receiver *receiver,
                        pirn_watch_fn *fn, int *bound, int *value)
{
    pirn_watch_op op;
    int rc;

    if (is_straight(way))
        return pirn_watch_wait_for(receiver, fn, bound, value, PIRN_NEVER);
    pirn_watch_wait_for_init(&op, receiver, fn, bound, value);
    rc = way_await(way, &op.future, PIRN_NEVER);
    return rc < 0 ? rc : op.rc;
}

static int way_get(const struct way *way, pirn_promise *promise, int *value)
{
    pirn_promise_get_op op;

    if (is_straight(way))
        return pirn_promise_get(promise, value, PIRN_NEVER);
    pirn_promise_get_init(&op, promise, value);
    return way_await(way, &op.future, PIRN_NEVER);
}

/* The partner. */

struct partner {
    pirn_fiber_fn *fn;
    void *arg;
    struct world_thread thread;
    pirn_task *task; /* NULL: a thread */
};

static void partner_run(void *arg)
{
    const struct partner *partner = arg;

    EXPECT_EQ(0, partner->fn(partner->arg));
}

static void partner_start(const struct way *way, struct partner *partner,
                          pirn_fiber_fn *fn, void *arg)
{
    *partner = (struct partner){.fn = fn, .arg = arg};
    if (way->fiber_partner)
        REQUIRE(pirn_go_with(fn, arg, NULL, &partner->task) == 0);
    else
        world_thread_start(&partner->thread, partner_run, partner);
}

static void partner_join(const struct way *way, struct partner *partner)
{
    pirn_join_op op;
    int outcome = -1;

    if (partner->task == NULL) {
        world_thread_join(&partner->thread);
        return;
    }
    if (is_straight(way)) {
        EXPECT_EQ(0, pirn_task_join(partner->task, PIRN_NEVER, &outcome));
    } else {
        pirn_join_init(&op, partner->task);
        EXPECT_EQ(0, way_await(way, &op.future, PIRN_NEVER));
        outcome = op.outcome;
    }
    EXPECT_EQ(0, outcome);
    pirn_task_unref(partner->task);
}

/* The ways. */

static const struct way ways[] = {
    {"alone, thread", 0, tell_alone, NULL, 0, false},
    {"fiber, thread", 0, tell_by_run, NULL, 0, false},
    {"fiber, fiber", 0, tell_by_run, NULL, 0, true},
    {"fiber of 2, thread", 2, tell_by_run, NULL, 0, false},
    {"fiber of 2, fiber", 2, tell_by_run, NULL, 0, true},
    {"fiber of 4, fiber", 4, tell_by_run, NULL, 0, true},
    {"future, thread", 0, tell_by_run, pirn_await, 0, false},
    {"future, fiber", 0, tell_by_run, pirn_await, 0, true},
    {"future of 2, thread", 2, tell_by_run, pirn_await, 0, false},
    {"future of 2, fiber", 2, tell_by_run, pirn_await, 0, true},
    {"host, thread", 0, tell_entered, await_on_host, 0, false},
    {"host, fiber", 0, tell_entered, await_on_host, 0, true},
    {"host of 2, thread", 2, tell_entered, await_on_host, 0, false},
    {"host of 2, fiber", 2, tell_entered, await_on_host, 0, true},
    {"fiber of 3 slots, thread", 3, tell_by_run, NULL,
     PIRN_POOL_COMPUTATIONAL, false},
    {"fiber of 3 slots, fiber", 3, tell_by_run, NULL,
     PIRN_POOL_COMPUTATIONAL, true},
    {"future of 3 slots, fiber", 3, tell_by_run, pirn_await,
     PIRN_POOL_COMPUTATIONAL, true},
    {"host of 3 slots, fiber", 3, tell_entered, await_on_host,
     PIRN_POOL_COMPUTATIONAL, true},
};

static void tell(const char *test, story_fn *story)
{
    tell_by_all(test, ways, sizeof ways / sizeof ways[0], story);
}

static pirn_channel_options of_ints(size_t capacity)
{
    return (pirn_channel_options){.message_size = sizeof(int),
                                  .capacity = capacity};
}

/* mpsc. */

static size_t story_capacity;

/* Owns the sender. */
static int count_up(void *arg)
{
    pirn_mpsc_sender *sender = arg;

    for (int i = 0; i < many(); i++) {
        world_pause();
        EXPECT_EQ(0, pirn_mpsc_send(sender, &i, PIRN_NEVER));
    }
    pirn_mpsc_sender_unref(sender);
    return 0;
}

static void hear_all(const struct way *way)
{
    const pirn_channel_options options = of_ints(story_capacity);
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    struct partner partner;
    int message = -1;

    EXPECT_EQ(0, pirn_mpsc_new(&options, &sender, &receiver));
    EXPECT_EQ(-ETIMEDOUT, way_recv(way, receiver, &message, PIRN_EXPIRED));
    EXPECT_EQ(-1, message);
    partner_start(way, &partner, count_up, sender);
    for (int i = 0; i < many(); i++) {
        EXPECT_EQ(0, way_recv(way, receiver, &message, PIRN_NEVER));
        EXPECT_EQ(i, message);
    }
    EXPECT_EQ(PIRN_ECLOSED, way_recv(way, receiver, &message, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, way_recv(way, receiver, &message, PIRN_NEVER));
    partner_join(way, &partner);
    pirn_mpsc_receiver_free(receiver);
}

/* Goal: every message comes, in order; after the last sender and the last
 * message comes the end, again and again.
 * Method: capacities of 1 and 16, and none. */
TEST(channel_messages_then_the_end)
{
    static const size_t capacities[] = {1, 16, PIRN_UNBOUNDED};

    for (int i = 0; i < 3; i++) {
        story_capacity = capacities[i];
        tell(__func__, hear_all);
    }
}

/* Owns the receiver; takes half, then closes. */
static int hear_half(void *arg)
{
    pirn_mpsc_receiver *receiver = arg;
    int message = -1, taken;

    for (taken = 0; taken < many() / 2; taken++) {
        world_pause();
        EXPECT_EQ(0, pirn_mpsc_recv(receiver, &message, PIRN_NEVER));
    }
    pirn_mpsc_receiver_close(receiver);
    while (pirn_mpsc_recv(receiver, &message, PIRN_NEVER) == 0)
        EXPECT_EQ(taken++, message);
    pirn_mpsc_receiver_free(receiver);
    return 0;
}

static void send_until_closed(const struct way *way)
{
    const pirn_channel_options options = of_ints(4);
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    struct partner partner;
    int sent = 0, rc;

    EXPECT_EQ(0, pirn_mpsc_new(&options, &sender, &receiver));
    while ((rc = way_send(way, sender, &sent, PIRN_EXPIRED)) == 0)
        sent++;
    EXPECT_EQ(-ETIMEDOUT, rc);
    EXPECT_EQ(4, sent);
    partner_start(way, &partner, hear_half, receiver);
    while ((rc = way_send(way, sender, &sent, PIRN_NEVER)) == 0)
        sent++;
    EXPECT_EQ(PIRN_ECLOSED, rc);
    EXPECT_LE(many() / 2, sent);
    EXPECT_EQ(PIRN_ECLOSED, way_send(way, sender, &sent, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, pirn_mpsc_try_send(sender, &sent));
    partner_join(way, &partner);
    pirn_mpsc_sender_unref(sender);
}

/* Goal: a full channel makes the sender wait; a close by the receiver ends that
 * wait and refuses what comes later; what was sent before is received. */
TEST(channel_closed_by_its_receiver)
{
    tell(__func__, send_until_closed);
}

/* mpmc. */

struct share {
    pirn_mpmc_receiver *receiver;
    long sum;
    int count;
};

static int take_share(void *arg)
{
    struct share *share = arg;
    int message, last = -1;

    while (pirn_mpmc_recv(share->receiver, &message, PIRN_NEVER) == 0) {
        EXPECT_LE(last + 1, message);
        last = message;
        share->sum += message;
        share->count++;
        world_pause();
    }
    pirn_mpmc_receiver_unref(share->receiver);
    return 0;
}

static void share_out(const struct way *way)
{
    const pirn_channel_options options = of_ints(8);
    pirn_mpmc_sender *sender;
    pirn_mpmc_receiver *receiver;
    struct share shares[2] = {{0}};
    struct partner partners[2];
    int own, count = 0;
    long sum = 0;

    EXPECT_EQ(0, pirn_mpmc_new(&options, &sender, &receiver));
    EXPECT_EQ(-ETIMEDOUT, way_take(way, receiver, &own, PIRN_EXPIRED));
    for (int i = 0; i < 2; i++) {
        shares[i].receiver = pirn_mpmc_receiver_ref(receiver);
        partner_start(way, &partners[i], take_share, &shares[i]);
    }
    for (int i = 0; i < many(); i++) {
        while (pirn_mpmc_try_send(sender, &i) == -EAGAIN) {
            if (way_take(way, receiver, &own, PIRN_EXPIRED) == 0) {
                sum += own;
                count++;
            }
        }
    }
    pirn_mpmc_sender_unref(sender);
    while (way_take(way, receiver, &own, PIRN_NEVER) == 0) {
        sum += own;
        count++;
    }
    pirn_mpmc_receiver_unref(receiver);
    for (int i = 0; i < 2; i++) {
        partner_join(way, &partners[i]);
        sum += shares[i].sum;
        count += shares[i].count;
    }
    EXPECT_EQ(many(), count);
    EXPECT_EQ((long)many() * (many() - 1) / 2, sum);
}

/* Goal: each message goes to one receiver, none is lost, each receiver sees the
 * order in which they were sent; all come to the end. */
TEST(channel_messages_are_shared_out)
{
    tell(__func__, share_out);
}

/* Oneshot. */

static int answer(void *arg)
{
    EXPECT_EQ(0, pirn_oneshot_send(arg, &(int){42}));
    return 0;
}

static int give_up_sending(void *arg)
{
    pirn_oneshot_sender_free(arg);
    return 0;
}

static int give_up_receiving(void *arg)
{
    pirn_oneshot_receiver_free(arg);
    return 0;
}

static void ask(const struct way *way)
{
    const pirn_channel_options options = of_ints(0);
    pirn_oneshot_sender *sender;
    pirn_oneshot_receiver *receiver;
    struct partner partner;
    int message = 0;

    EXPECT_EQ(0, pirn_oneshot_new(&options, &sender, &receiver));
    EXPECT_EQ(-ETIMEDOUT, way_answer(way, receiver, &message, PIRN_EXPIRED));
    partner_start(way, &partner, answer, sender);
    EXPECT_EQ(0, way_answer(way, receiver, &message, PIRN_NEVER));
    EXPECT_EQ(42, message);
    partner_join(way, &partner);
    pirn_oneshot_receiver_free(receiver);

    EXPECT_EQ(0, pirn_oneshot_new(&options, &sender, &receiver));
    partner_start(way, &partner, give_up_sending, sender);
    EXPECT_EQ(PIRN_ECLOSED, way_answer(way, receiver, &message, PIRN_NEVER));
    partner_join(way, &partner);
    pirn_oneshot_receiver_free(receiver);

    EXPECT_EQ(0, pirn_oneshot_new(&options, &sender, &receiver));
    EXPECT_EQ(-ETIMEDOUT, way_closed(way, sender, PIRN_EXPIRED));
    partner_start(way, &partner, give_up_receiving, receiver);
    EXPECT_EQ(0, way_closed(way, sender, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, pirn_oneshot_send(sender, &message));
    partner_join(way, &partner);
}

/* Goal: an answer, no answer, and nobody who wants one. */
TEST(channel_oneshot_and_its_ends)
{
    tell(__func__, ask);
}

static int answer_if_wanted(void *arg)
{
    EXPECT_EQ(0, pirn_oneshot_closed(arg, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, pirn_oneshot_send(arg, &(int){42}));
    return 0;
}

/* The memory is used for the next one before the partner is joined. */
static void ask_in_own_memory(const struct way *way)
{
    const pirn_channel_options options = of_ints(0);
    pirn_oneshot_sender *sender;
    pirn_oneshot_receiver *receiver;
    struct partner partners[3];
    pirn_oneshot oneshot;
    int room, message = 0;

    EXPECT_EQ(0, pirn_oneshot_init(&oneshot, &options, &room, &sender,
                                   &receiver));
    partner_start(way, &partners[0], answer, sender);
    EXPECT_EQ(0, way_answer(way, receiver, &message, PIRN_NEVER));
    EXPECT_EQ(42, message);
    pirn_oneshot_deinit(&oneshot);

    EXPECT_EQ(0, pirn_oneshot_init(&oneshot, &options, &room, &sender,
                                   &receiver));
    partner_start(way, &partners[1], give_up_sending, sender);
    EXPECT_EQ(PIRN_ECLOSED, way_answer(way, receiver, &message, PIRN_NEVER));
    pirn_oneshot_deinit(&oneshot);

    EXPECT_EQ(0, pirn_oneshot_init(&oneshot, &options, &room, &sender,
                                   &receiver));
    EXPECT_EQ(-ETIMEDOUT, way_finished(way, receiver, PIRN_EXPIRED));
    partner_start(way, &partners[2], answer_if_wanted, sender);
    pirn_oneshot_receiver_close(receiver);
    EXPECT_EQ(0, way_finished(way, receiver, PIRN_NEVER));
    pirn_oneshot_deinit(&oneshot);

    for (int i = 0; i < 3; i++)
        partner_join(way, &partners[i]);
}

/* Goal: the same in the memory of whoever asks, who may use it for something else
 * as soon as the sender is known to be gone. */
TEST(channel_oneshot_in_the_memory_of_its_receiver)
{
    tell(__func__, ask_in_own_memory);
}

/* Broadcast. */

static int announce(void *arg)
{
    pirn_broadcast_sender *sender = arg;

    for (int i = 0; i < many(); i++) {
        world_pause();
        (void)pirn_broadcast_send(sender, &i);
    }
    pirn_broadcast_sender_unref(sender);
    return 0;
}

static void listen_in(const struct way *way)
{
    const pirn_channel_options options = of_ints(16);
    pirn_broadcast_sender *sender;
    pirn_broadcast_receiver *receiver;
    struct partner partner;
    uint64_t missed = 0;
    int message, next = 0, rc;

    EXPECT_EQ(0, pirn_broadcast_new(&options, &sender, &receiver));
    EXPECT_EQ(-ETIMEDOUT, way_hear(way, receiver, &message, PIRN_EXPIRED));
    partner_start(way, &partner, announce, sender);
    while ((rc = way_hear(way, receiver, &message, PIRN_NEVER)) !=
           PIRN_ECLOSED) {
        if (rc == -EOVERFLOW) {
            missed += pirn_broadcast_receiver_missed(receiver);
            next += (int)pirn_broadcast_receiver_missed(receiver);
            continue;
        }
        EXPECT_EQ(0, rc);
        EXPECT_EQ(next++, message);
    }
    EXPECT_EQ(many(), next);
    EXPECT_LE(missed, many() - 16);
    partner_join(way, &partner);
    pirn_broadcast_receiver_free(receiver);
}

/* Goal: each message is received in order or counted as missed; the latest ones
 * are never missed. */
TEST(channel_broadcast_misses_nothing_unsaid)
{
    tell(__func__, listen_in);
}

/* Watch. */

static int progress(void *arg)
{
    pirn_watch_sender *sender = arg;

    for (int i = 1; i <= many(); i++) {
        world_pause();
        (void)pirn_watch_send(sender, &i);
    }
    pirn_watch_sender_unref(sender);
    return 0;
}

static bool is_at_least(void *bound, const void *value)
{
    return *(const int *)value >= *(int *)bound;
}

static void look_on(const struct way *way)
{
    const pirn_channel_options options = of_ints(0);
    pirn_watch_sender *sender;
    pirn_watch_receiver *receiver;
    struct partner partner;
    int value = 0, last = 0, bound = many() / 2;

    EXPECT_EQ(0, pirn_watch_new(&options, &value, &sender, &receiver));
    EXPECT_EQ(-ETIMEDOUT, way_changed(way, receiver, &value, PIRN_EXPIRED));
    partner_start(way, &partner, progress, sender);
    EXPECT_EQ(0, way_wait_for(way, receiver, is_at_least, &bound, &value));
    EXPECT_LE(bound, value);
    last = value;
    while (way_changed(way, receiver, &value, PIRN_NEVER) == 0) {
        EXPECT_LE(last + 1, value);
        last = value;
    }
    EXPECT_EQ(many(), last);
    bound = many() + 1;
    EXPECT_EQ(PIRN_ECLOSED,
              way_wait_for(way, receiver, is_at_least, &bound, &value));
    partner_join(way, &partner);
    pirn_watch_receiver_free(receiver);
}

/* Goal: values are seen in order, the last one always, each once; then the end.
 */
TEST(channel_watch_sees_the_last)
{
    tell(__func__, look_on);
}

/* Promise. */

static int keep(void *arg)
{
    int rc = pirn_promise_set(arg, &(int){7});

    EXPECT(rc == 0 || rc == -EALREADY);
    pirn_promise_unref(arg);
    return 0;
}

static void wait_for_promise(const struct way *way)
{
    const pirn_channel_options options = of_ints(0);
    pirn_promise *promise;
    struct partner partners[2];
    int value = 0;

    EXPECT_EQ(0, pirn_promise_new(&options, &promise));
    for (int i = 0; i < 2; i++)
        partner_start(way, &partners[i], keep, pirn_promise_ref(promise));
    EXPECT_EQ(0, way_get(way, promise, &value));
    EXPECT_EQ(7, value);
    EXPECT_EQ(-EALREADY, pirn_promise_set(promise, &(int){8}));
    for (int i = 0; i < 2; i++)
        partner_join(way, &partners[i]);
    EXPECT_EQ(0, way_get(way, promise, &value));
    EXPECT_EQ(7, value);
    pirn_promise_unref(promise);
}

/* Goal: one of two sets the value; who waits gets it. */
TEST(channel_promise_is_kept_once)
{
    tell(__func__, wait_for_promise);
}

/* Cancellation. */

static int cancelled_calls(void *arg)
{
    const pirn_channel_options options = of_ints(1);
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    pirn_mpsc_permit permit;
    int message = 5;

    (void)arg;
    EXPECT_EQ(0, pirn_mpsc_new(&options, &sender, &receiver));
    EXPECT_EQ(-ECANCELED, pirn_mpsc_recv(receiver, &message, PIRN_NEVER));
    /* Not even what would be possible at once. */
    EXPECT_EQ(-ECANCELED, pirn_mpsc_send(sender, &message, PIRN_NEVER));
    EXPECT_EQ(-ECANCELED, pirn_mpsc_reserve(sender, 1, PIRN_NEVER, &permit));
    EXPECT_EQ(0, pirn_mpsc_try_send(sender, &message));
    EXPECT_EQ(-ECANCELED, pirn_mpsc_recv(receiver, &message, PIRN_NEVER));
    pirn_fiber_shield_begin();
    EXPECT_EQ(0, pirn_mpsc_recv(receiver, &message, PIRN_NEVER));
    pirn_fiber_shield_end();
    pirn_mpsc_sender_unref(sender);
    pirn_mpsc_receiver_free(receiver);
    return 0;
}

static void cancel_while_waiting(const struct way *way)
{
    pirn_task *task = NULL;
    int outcome = -1;

    (void)way;
    EXPECT_EQ(0, pirn_go_with(cancelled_calls, NULL, NULL, &task));
    EXPECT_EQ(0, pirn_yield());
    pirn_task_cancel(task);
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    EXPECT_EQ(0, outcome);
    pirn_task_unref(task);
}

/* Goal: a cancelled fiber is answered so by every call, also where nothing would
 * have to be waited for; nothing is sent, received or reserved. */
TEST(channel_calls_of_a_cancelled_fiber)
{
    static const struct way fibers[] = {
        {"fiber", 0, tell_by_run, NULL, 0, false},
        {"fiber of 2", 2, tell_by_run, NULL, 0, false},
    };

    tell_by_all(__func__, fibers, 2, cancel_while_waiting);
}
