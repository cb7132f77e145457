/* SPDX-License-Identifier: MIT */
/* src/channel/oneshot_model.c - two owners of one message, and one value for
 * many: what is sent, refused, discarded and freed.
 */
#include <errno.h>

#include <pirn/broadcast.h>
#include <pirn/oneshot.h>
#include <pirn/promise.h>
#include <pirn/watch.h>

#include "engine/model_home.h"

static pirn_oneshot_sender *tx;
static pirn_oneshot_receiver *rx;
static struct model_bell bells[2];
static PIRN_ATOMIC(int) discards;
static int send_rc;

static void count_discard(void *arg, void *message)
{
    (void)arg;
    EXPLORE_CHECK(*(int *)message == 5);
    pirn__add(&discards, 1, relaxed);
}

static const pirn_channel_options owning = {
    .message_size = sizeof(int), .capacity = 1, .discard = count_discard};
static const pirn_channel_options plain = {.message_size = sizeof(int),
                                           .capacity = 1};

static void send_five(void *arg)
{
    (void)arg;
    send_rc = pirn_oneshot_send(tx, &(int){5});
}

static void free_receiver(void *arg)
{
    (void)arg;
    pirn_oneshot_receiver_free(rx);
}

/* Goal: a message to a receiver that goes at that moment is refused or
 * discarded, and the memory is freed once. */
MODEL(oneshot_send_against_free, .preemptions = EXPLORE_UNBOUNDED)
{
    EXPLORE_CHECK(pirn_oneshot_new(&owning, &tx, &rx) == 0);
    explore_thread(send_five, NULL);
    explore_thread(free_receiver, NULL);
    explore_join();
    EXPLORE_CHECK(send_rc == 0 || send_rc == PIRN_ECLOSED);
    EXPLORE_CHECK(pirn__load(&discards, relaxed) == (send_rc == 0));
}

static int received;
static pirn_oneshot_op op;

static void receive_and_free(void *arg)
{
    enum pirn_poll poll;

    (void)arg;
    pirn_oneshot_recv_init(&op, rx, &received);
    poll = model_bell_poll(&bells[0], &op.future);
    if (poll == PIRN_PENDING && model_bell_rang(&bells[0]))
        poll = model_bell_poll(&bells[0], &op.future);
    if (poll == PIRN_PENDING)
        pirn_future_drop(&op.future);
    pirn_oneshot_receiver_free(rx);
}

/* Goal: a message is received, refused or discarded, whatever a receiver that
 * waits and gives up sees of it. */
MODEL(oneshot_send_against_receive, .preemptions = EXPLORE_UNBOUNDED)
{
    int fates;

    EXPLORE_CHECK(pirn_oneshot_new(&owning, &tx, &rx) == 0);
    explore_thread(send_five, NULL);
    explore_thread(receive_and_free, NULL);
    explore_join();
    fates = (received == 5) + (send_rc == PIRN_ECLOSED) +
            pirn__load(&discards, relaxed);
    EXPLORE_CHECK(fates == 1);
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
}

static void wait_closed_and_go(void *arg)
{
    enum pirn_poll poll;

    (void)arg;
    pirn_oneshot_closed_init(&op, tx);
    poll = model_bell_poll(&bells[0], &op.future);
    if (poll == PIRN_PENDING && model_bell_rang(&bells[0]))
        poll = model_bell_poll(&bells[0], &op.future);
    if (poll == PIRN_PENDING)
        pirn_future_drop(&op.future);
    pirn_oneshot_sender_free(tx);
}

/* Goal: a sender that waits for the end of the receiver may go itself at that
 * moment. */
MODEL(oneshot_both_ends_go, .preemptions = EXPLORE_UNBOUNDED)
{
    EXPLORE_CHECK(pirn_oneshot_new(&owning, &tx, &rx) == 0);
    explore_thread(wait_closed_and_go, NULL);
    explore_thread(free_receiver, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
}

static struct {
    pirn_oneshot_op op;
    enum pirn_poll poll;
} waits[2]; /* of the receiver, of the sender */

static void wait_for_message(void *arg)
{
    (void)arg;
    pirn_oneshot_recv_init(&waits[0].op, rx, &received);
    waits[0].poll = model_bell_poll(&bells[0], &waits[0].op.future);
}

static void wait_for_close(void *arg)
{
    (void)arg;
    pirn_oneshot_closed_init(&waits[1].op, tx);
    waits[1].poll = model_bell_poll(&bells[1], &waits[1].op.future);
}

/* After the join: one that had to wait has been woken, and is done now. */
static void check_told(int who)
{
    if (waits[who].poll == PIRN_PENDING) {
        EXPLORE_CHECK(model_bell_rang(&bells[who]));
        EXPLORE_CHECK(model_bell_poll(&bells[who], &waits[who].op.future) ==
                      PIRN_READY);
    }
    EXPLORE_CHECK(model_bell_wakers(&bells[who]) == 0);
}

/* Goal: a receiver that finds no message is told of the one that comes at that
 * moment. */
MODEL(oneshot_receiver_is_told, .preemptions = EXPLORE_UNBOUNDED)
{
    EXPLORE_CHECK(pirn_oneshot_new(&owning, &tx, &rx) == 0);
    explore_thread(send_five, NULL);
    explore_thread(wait_for_message, NULL);
    explore_join();
    check_told(0);
    EXPLORE_CHECK(received == 5);
    pirn_oneshot_receiver_free(rx);
}

static void close_receiver(void *arg)
{
    (void)arg;
    pirn_oneshot_receiver_close(rx);
}

/* Goal: both sides are told that the receiver is closed at that moment. */
MODEL(oneshot_both_are_told_of_the_close)
{
    EXPLORE_CHECK(pirn_oneshot_new(&owning, &tx, &rx) == 0);
    explore_thread(wait_for_message, NULL);
    explore_thread(wait_for_close, NULL);
    explore_thread(close_receiver, NULL);
    explore_join();
    check_told(0);
    check_told(1);
    pirn_oneshot_sender_free(tx);
    pirn_oneshot_receiver_free(rx);
}

/* One in memory of the receiver's, which is gone as soon as the sender is: who
 * touches it then is found. */

struct placed {
    pirn_oneshot oneshot;
    int room;
};

static struct placed *placed;

static void place(void)
{
    placed = explore_heap.take(NULL, sizeof *placed, 16);
    EXPLORE_CHECK(placed != NULL);
    EXPLORE_CHECK(pirn_oneshot_init(&placed->oneshot, &owning, &placed->room,
                                    &tx, &rx) == 0);
}

static void end_placed(void)
{
    pirn_oneshot_deinit(&placed->oneshot);
    explore_heap.give(NULL, placed, sizeof *placed, 16);
    placed = NULL;
}

static void free_sender(void *arg)
{
    (void)arg;
    pirn_oneshot_sender_free(tx);
}

static void try_and_end(void *arg)
{
    int rc = pirn_oneshot_try_recv(rx, &received);

    (void)arg;
    if (rc != -EAGAIN)
        end_placed();
}

/* Goal: who has received, or has been told that nothing comes, may use the memory
 * for something else at once. */
MODEL(oneshot_placed_ends_after_a_look, .preemptions = EXPLORE_UNBOUNDED)
{
    place();
    explore_thread(send_five, NULL);
    explore_thread(try_and_end, NULL);
    explore_join();
    if (placed != NULL)
        end_placed();
    EXPLORE_CHECK(send_rc == 0);
    EXPLORE_CHECK((received == 5) + pirn__load(&discards, relaxed) == 1);
}

/* Goal: the same of a sender that goes without a message. */
MODEL(oneshot_placed_ends_after_a_sender_in_vain,
      .preemptions = EXPLORE_UNBOUNDED)
{
    place();
    explore_thread(free_sender, NULL);
    explore_thread(try_and_end, NULL);
    explore_join();
    if (placed != NULL)
        end_placed();
    EXPLORE_CHECK(received == 0 && pirn__load(&discards, relaxed) == 0);
}

/* Poll, and again if that was rung for. */
static enum pirn_poll poll_twice(void)
{
    enum pirn_poll poll = model_bell_poll(&bells[0], &op.future);

    if (poll == PIRN_PENDING && model_bell_rang(&bells[0]))
        poll = model_bell_poll(&bells[0], &op.future);
    return poll;
}

static void wait_and_end(void *arg)
{
    (void)arg;
    pirn_oneshot_recv_init(&op, rx, &received);
    if (poll_twice() == PIRN_READY)
        end_placed();
    else
        pirn_future_drop(&op.future);
}

/* Goal: the same of one that waits for it, and perhaps gives up waiting. */
MODEL(oneshot_placed_ends_after_a_wait, .preemptions = EXPLORE_UNBOUNDED)
{
    place();
    explore_thread(send_five, NULL);
    explore_thread(wait_and_end, NULL);
    explore_join();
    if (placed != NULL)
        end_placed();
    EXPLORE_CHECK((received == 5) + pirn__load(&discards, relaxed) == 1);
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
}

static void refuse_and_end(void *arg)
{
    (void)arg;
    pirn_oneshot_receiver_close(rx);
    pirn_oneshot_finished_init(&op, rx);
    if (poll_twice() == PIRN_READY)
        end_placed();
}

/* Goal: who wants no message any more is told when the sender is gone, and may
 * then use the memory; the message was refused or is discarded. */
MODEL(oneshot_placed_ends_when_the_sender_has, .preemptions = EXPLORE_UNBOUNDED)
{
    place();
    explore_thread(send_five, NULL);
    explore_thread(refuse_and_end, NULL);
    explore_join();
    if (placed != NULL) {
        EXPLORE_CHECK(model_bell_rang(&bells[0]));
        EXPLORE_CHECK(model_bell_poll(&bells[0], &op.future) == PIRN_READY);
        end_placed();
    }
    EXPLORE_CHECK((send_rc == PIRN_ECLOSED) +
                      pirn__load(&discards, relaxed) == 1);
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
}

/* A promise. */

static pirn_promise *promise;
static int set_rcs[2];

static void set_five(void *arg)
{
    set_rcs[arg != NULL] = pirn_promise_set(promise, &(int){5});
    pirn_promise_unref(promise);
}

static void look_and_go(void *arg)
{
    (void)arg;
    if (pirn_promise_try_get(promise, &received) == 0)
        EXPLORE_CHECK(received == 5);
    pirn_promise_unref(promise);
}

/* Goal: one of two wins; who sees that there is a value sees the value; the last
 * to go discards it. */
MODEL(promise_is_set_once)
{
    EXPLORE_CHECK(pirn_promise_new(&owning, &promise) == 0);
    (void)pirn_promise_ref(promise);
    (void)pirn_promise_ref(promise);
    explore_thread(set_five, NULL);
    explore_thread(set_five, &set_rcs);
    explore_thread(look_and_go, NULL);
    explore_join();
    EXPLORE_CHECK((set_rcs[0] == 0) + (set_rcs[1] == 0) == 1);
    EXPLORE_CHECK(pirn__load(&discards, relaxed) == 1);
}

static pirn_promise_get_op get_op;
static enum pirn_poll get_poll;

static void wait_for_value(void *arg)
{
    (void)arg;
    pirn_promise_get_init(&get_op, promise, &received);
    get_poll = model_bell_poll(&bells[0], &get_op.future);
}

/* Goal: who finds no value is told of the one that comes at that moment. */
MODEL(promise_waiter_is_told, .preemptions = EXPLORE_UNBOUNDED)
{
    EXPLORE_CHECK(pirn_promise_new(&owning, &promise) == 0);
    (void)pirn_promise_ref(promise);
    explore_thread(set_five, NULL);
    explore_thread(wait_for_value, NULL);
    explore_join();
    if (get_poll == PIRN_PENDING) {
        EXPLORE_CHECK(model_bell_rang(&bells[0]));
        EXPLORE_CHECK(model_bell_poll(&bells[0], &get_op.future) ==
                      PIRN_READY);
    }
    EXPLORE_CHECK(received == 5);
    pirn_promise_unref(promise);
}

/* Broadcast and watch: receivers with memory of their own. */

static pirn_broadcast_sender *speaker;
static pirn_broadcast_receiver *hearer;

static void speak_and_go(void *arg)
{
    (void)arg;
    (void)pirn_broadcast_send(speaker, &(int){5});
    pirn_broadcast_sender_unref(speaker);
}

static void hear_and_go(void *arg)
{
    int rc = pirn_broadcast_try_recv(hearer, &received);

    (void)arg;
    EXPLORE_CHECK(rc == -EAGAIN || (rc == 0 && received == 5));
    pirn_broadcast_receiver_free(hearer);
}

/* Goal: the channel is freed by whoever goes last. */
MODEL(broadcast_both_sides_go, .preemptions = EXPLORE_UNBOUNDED)
{
    EXPLORE_CHECK(pirn_broadcast_new(&plain, &speaker, &hearer) == 0);
    explore_thread(speak_and_go, NULL);
    explore_thread(hear_and_go, NULL);
    explore_join();
}

static pirn_watch_sender *teller;
static pirn_watch_receiver *watcher;
static pirn_watch_op watch_op;

static void tell_and_go(void *arg)
{
    (void)arg;
    (void)pirn_watch_send(teller, &(int){5});
    pirn_watch_sender_unref(teller);
}

static void watch_and_go(void *arg)
{
    enum pirn_poll poll;

    (void)arg;
    pirn_watch_changed_init(&watch_op, watcher, &received);
    poll = model_bell_poll(&bells[0], &watch_op.future);
    if (poll == PIRN_PENDING)
        pirn_future_drop(&watch_op.future);
    else
        EXPLORE_CHECK(watch_op.rc == 0 && received == 5);
    pirn_watch_receiver_free(watcher);
}

/* Goal: the same; a change is seen before the end. */
MODEL(watch_both_sides_go, .preemptions = EXPLORE_UNBOUNDED)
{
    EXPLORE_CHECK(pirn_watch_new(&plain, &(int){1}, &teller, &watcher) == 0);
    explore_thread(tell_and_go, NULL);
    explore_thread(watch_and_go, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
}
