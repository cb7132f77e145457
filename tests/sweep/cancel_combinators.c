/* SPDX-License-Identifier: MIT */
/* tests/sweep/cancel_combinators.c - consumers that wait for many things at
 * once, cancelled at each step: no message is lost, and none comes twice.
 */
#include <pirn/async.h>
#include <pirn/channel_stream.h>
#include <pirn/select.h>

#include "cancel_fixture.h"

enum { SOURCES = 3, MESSAGES = 4 };

/* Numbers on their way: what has been sent has been used or thrown away. */
struct flow {
    pirn_mpsc_sender *senders[SOURCES];
    pirn_mpsc_receiver *receivers[SOURCES];
    int sent, used, discarded;
    int ticks;
};

static struct flow flow;

static void discard(void *arg, void *message)
{
    (void)arg;
    flow.discarded += *(int *)message;
}

static int send_some(void *arg)
{
    pirn_mpsc_sender *sender = arg;
    int rc = 0;

    for (int i = 1; i <= MESSAGES && rc == 0; i++) {
        rc = pirn_mpsc_send(sender, &i, PIRN_NEVER);
        if (rc == 0)
            flow.sent += i;
        if (rc == 0)
            rc = pirn_sleep(pirn_after_ms(2));
    }
    pirn_mpsc_sender_unref(sender);
    return rc == PIRN_ECLOSED ? 0 : rc;
}

static int begin_flow(void)
{
    const pirn_channel_options options = {
        .message_size = sizeof(int), .capacity = 2, .discard = discard};
    int rc = 0;

    flow = (struct flow){.sent = 0};
    for (int i = 0; i < SOURCES && rc == 0; i++)
        rc = pirn_mpsc_new(&options, &flow.senders[i], &flow.receivers[i]);
    for (int i = 0; i < SOURCES && rc == 0; i++)
        rc = pirn_go(send_some, flow.senders[i]);
    return rc;
}

/* Balanced, once the senders have gone, too. */
static int end_flow(int outcome)
{
    if (outcome != 0 && outcome != -ECANCELED)
        return outcome;
    return flow.sent == flow.used + flow.discarded ? 0 : -EIO;
}

/* Batches from several channels, and a tick that lives on from turn to turn. */

struct consumer {
    pirn_channel_stream channels[SOURCES];
    pirn_stream_slot slots[SOURCES];
    pirn_merge_stream merge;
    pirn_chunks_stream chunks;
    int items[3];
};

static int consumer_begin(struct consumer *consumer)
{
    const pirn_chunk_options options = {
        .items = consumer->items,
        .item_size = sizeof consumer->items[0],
        .max = 3,
        .patience_ns = 3000000,
        .discard = discard,
    };

    for (int i = 0; i < SOURCES; i++) {
        pirn_mpsc_stream_init(&consumer->channels[i], flow.receivers[i]);
        consumer->slots[i] = (pirn_stream_slot){
            &consumer->channels[i].stream, (uint64_t)i};
    }
    pirn_merge_init(&consumer->merge, consumer->slots, SOURCES);
    return pirn_chunks_init(&consumer->chunks, &consumer->merge.stream,
                            &options);
}

enum { NEXT, TICK };

/* One turn: 1 to go on. */
static int consume_once(struct consumer *consumer, pirn_branch *branches,
                        pirn_sleep_op *tick)
{
    pirn_next_op next;
    pirn_chunk chunk;
    int winner;

    pirn_next_init(&next, &consumer->chunks.stream, &chunk);
    pirn_branch_set(&branches[NEXT], &next.future);
    winner = pirn_select(branches, 2, PIRN_NEVER);
    if (winner == TICK) {
        flow.ticks++;
        pirn_sleep_init(tick, pirn_after_ms(1));
        pirn_branch_set(&branches[TICK], &tick->future);
        return 1;
    }
    for (size_t i = 0; winner == NEXT && next.rc > 0 && i < chunk.count; i++)
        flow.used += ((int *)chunk.items)[i];
    return winner < 0 ? winner : next.rc;
}

static int consume(void *arg)
{
    struct consumer consumer;
    pirn_sleep_op tick;
    pirn_branch branches[2] = {[TICK] = PIRN_BRANCH_KEPT(&tick)};
    int rc = consumer_begin(&consumer);

    (void)arg;
    pirn_sleep_init(&tick, pirn_after_ms(1));
    while (rc >= 0) {
        rc = consume_once(&consumer, branches, &tick);
        if (rc == 0)
            break;
    }
    pirn_branches_drop(branches, 2);
    pirn_stream_drop(&consumer.chunks.stream);
    return rc;
}

static int begin_consume(void *arg, pirn_task **victim)
{
    int rc = begin_flow();

    (void)arg;
    return rc < 0 ? rc : pirn_go_with(consume, NULL, NULL, victim);
}

static int end_consume(void *arg, int outcome)
{
    (void)arg;
    if (outcome == 0 && (flow.ticks == 0 || flow.discarded > 0))
        return -EIO;
    return end_flow(outcome);
}

/* Goal: whatever a consumer of channels, merged, batched and in a select, was
 * doing when it was cancelled, each number has been used or discarded once.
 * Method: three senders with pauses, chunks that are late, a tick beside it. */
TEST(cancel_in_consumer_of_streams)
{
    CANCEL_SWEEP(begin_consume, end_consume, NULL, 10);
}

/* One message of each channel, by a stackless task. */

struct gatherer {
    pirn_frame frame;
    int items[SOURCES];
    pirn_mpsc_recv_op recvs[SOURCES];
    pirn_branch branches[SOURCES];
    pirn_join_all_op join;
};

static enum pirn_poll gather_poll(pirn_future *self, pirn_cx *cx)
{
    struct gatherer *g = PIRN_FRAME_OF(self, struct gatherer, frame);

    PIRN_ASYNC_BEGIN(&g->frame, cx);
    for (int i = 0; i < SOURCES; i++) {
        pirn_mpsc_recv_init(&g->recvs[i], flow.receivers[i], &g->items[i]);
        pirn_branch_set(&g->branches[i], &g->recvs[i].future);
    }
    pirn_join_all_init(&g->join, g->branches, SOURCES);
    PIRN_AWAIT(&g->join.future);
    for (int i = 0; i < SOURCES; i++)
        flow.used += g->items[i];
    PIRN_ASYNC_RETURN(g->join.rc);
    PIRN_ASYNC_END();
}

static int begin_gather(void *arg, pirn_task **victim)
{
    static const pirn_async_ops ops = PIRN_ASYNC_OPS(gather_poll, NULL);
    struct gatherer gatherer = {.items = {0}};
    int rc = begin_flow();

    (void)arg;
    if (rc < 0)
        return rc;
    pirn_frame_init(&gatherer.frame, &ops);
    return pirn_spawn(&gatherer.frame.future, sizeof gatherer, NULL, victim);
}

static int end_gather(void *arg, int outcome)
{
    (void)arg;
    for (int i = 0; i < SOURCES; i++)
        pirn_mpsc_receiver_free(flow.receivers[i]);
    if (outcome == 0 && flow.used != SOURCES)
        return -EIO;
    return end_flow(outcome);
}

/* Goal: a join that is dropped discards what it has received and takes no more.
 * Method: a stackless task that gathers one message of each channel. */
TEST(cancel_in_join_all)
{
    CANCEL_SWEEP(begin_gather, end_gather, NULL, 1);
}

/* The same in a fiber, which keeps what it has and goes on with the rest. */

static int gather_in_fiber(void *arg)
{
    pirn_mpsc_recv_op recvs[SOURCES];
    pirn_branch branches[SOURCES] = {{0}};
    int items[SOURCES] = {0};
    int rc;

    (void)arg;
    for (int i = 0; i < SOURCES; i++) {
        pirn_mpsc_recv_init(&recvs[i], flow.receivers[i], &items[i]);
        branches[i] = (pirn_branch)PIRN_BRANCH_KEPT(&recvs[i]);
    }
    do
        rc = pirn_try_join_all(branches, SOURCES, pirn_after_ms(1));
    while (rc == -ETIMEDOUT);
    for (int i = 0; i < SOURCES; i++)
        if (branches[i].ended && branches[i].outcome == 1)
            flow.used += items[i];
    pirn_branches_drop(branches, SOURCES);
    return rc;
}

static int begin_gather_in_fiber(void *arg, pirn_task **victim)
{
    int rc = begin_flow();

    (void)arg;
    return rc < 0 ? rc : pirn_go_with(gather_in_fiber, NULL, NULL, victim);
}

/* Goal: a fiber that is cancelled in a join has the results that were there.
 * Method: the same messages, waited for with deadlines again and again. */
TEST(cancel_in_join_all_of_a_fiber)
{
    CANCEL_SWEEP(begin_gather_in_fiber, end_gather, NULL, 2);
}
