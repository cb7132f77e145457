/* SPDX-License-Identifier: MIT */
/* tests/sweep/cancel_channel.c - tasks that send and receive, one of them
 * cancelled at each step: no message is lost or doubled, no place is kept, and
 * the others go on.
 */
#include <pirn/broadcast.h>
#include <pirn/mpmc.h>
#include <pirn/mpsc.h>
#include <pirn/oneshot.h>
#include <pirn/promise.h>
#include <pirn/watch.h>

#include "cancel_fixture.h"

enum { MESSAGES = 4 };

/* What became of the messages, by their sums. */
static struct {
    int sent, received, discarded;
    int others_done;
} tally;

static void discard(void *arg, void *message)
{
    (void)arg;
    tally.discarded += *(int *)message;
}

static const pirn_channel_options narrow = {
    .message_size = sizeof(int), .capacity = 1, .discard = discard};
static const pirn_channel_options plain = {.message_size = sizeof(int),
                                           .capacity = 2};

static int only_cancelled(int outcome)
{
    return outcome == 0 || outcome == -ECANCELED ? 0 : outcome;
}

static bool is_all_there(void)
{
    return tally.sent == tally.received + tally.discarded;
}

/* mpsc: senders in line for one place. */

static pirn_mpsc_sender *mpsc_sender;
static pirn_mpsc_receiver *mpsc_receiver;

/* Owns its sender. */
static int send_some(void *arg)
{
    pirn_mpsc_sender *sender = arg;
    int rc = 0;

    for (int i = 1; i <= MESSAGES && rc == 0; i++) {
        rc = pirn_mpsc_send(sender, &i, PIRN_NEVER);
        tally.sent += rc == 0 ? i : 0;
    }
    pirn_mpsc_sender_unref(sender);
    tally.others_done += rc == 0;
    return rc == PIRN_ECLOSED ? 0 : rc; /* the receiver is the victim */
}

/* Owns its sender. */
static int reserve_some(void *arg)
{
    pirn_mpsc_sender *sender = arg;
    pirn_mpsc_permit permit;
    int rc = 0;

    for (int i = 1; i <= MESSAGES && rc == 0; i++) {
        rc = pirn_mpsc_reserve(sender, 1, PIRN_NEVER, &permit);
        if (rc == 0)
            rc = pirn_yield();
        if (rc == 0)
            rc = pirn_mpsc_permit_send(&permit, &i);
        tally.sent += rc == 0 ? i : 0;
        pirn_mpsc_permit_release(&permit);
    }
    pirn_mpsc_sender_unref(sender);
    return rc;
}

static int receive_all(void *arg)
{
    int message, rc;

    (void)arg;
    while ((rc = pirn_mpsc_recv(mpsc_receiver, &message, PIRN_NEVER)) == 0) {
        tally.received += message;
        rc = pirn_yield();
        if (rc < 0)
            break;
    }
    pirn_mpsc_receiver_free(mpsc_receiver);
    tally.others_done += rc == PIRN_ECLOSED;
    return rc == PIRN_ECLOSED ? 0 : rc;
}

static int begin_mpsc(pirn_fiber_fn *victim_fn, pirn_task **victim)
{
    int rc = pirn_mpsc_new(&narrow, &mpsc_sender, &mpsc_receiver);

    memset(&tally, 0, sizeof tally);
    if (rc == 0)
        rc = pirn_go(send_some, pirn_mpsc_sender_ref(mpsc_sender));
    if (rc == 0)
        rc = pirn_go_with(victim_fn, pirn_mpsc_sender_ref(mpsc_sender), NULL,
                          victim);
    if (rc == 0)
        rc = pirn_go(send_some, mpsc_sender);
    if (rc == 0)
        rc = pirn_go(receive_all, NULL);
    return rc;
}

static int begin_send(void *arg, pirn_task **victim)
{
    (void)arg;
    return begin_mpsc(send_some, victim);
}

static int begin_reserve(void *arg, pirn_task **victim)
{
    (void)arg;
    return begin_mpsc(reserve_some, victim);
}

static int end_senders(void *arg, int outcome)
{
    (void)arg;
    /* The receiver, two senders, and the victim if it sends. */
    if (tally.others_done < 3 || !is_all_there())
        return -EIO;
    return only_cancelled(outcome);
}

/* Goal: the victim's place in line, or what was reserved for it, is for the next
 * one; the others send all that they have, and the channel ends. */
TEST(cancel_in_line_for_a_place)
{
    CANCEL_SWEEP(begin_send, end_senders, NULL, 5);
    CANCEL_SWEEP(begin_reserve, end_senders, NULL, 5);
}

static int begin_receive(void *arg, pirn_task **victim)
{
    int rc = pirn_mpsc_new(&narrow, &mpsc_sender, &mpsc_receiver);

    (void)arg;
    memset(&tally, 0, sizeof tally);
    if (rc == 0)
        rc = pirn_go_with(receive_all, NULL, NULL, victim);
    if (rc == 0)
        rc = pirn_go(send_some, mpsc_sender);
    return rc;
}

static int end_receive(void *arg, int outcome)
{
    (void)arg;
    return is_all_there() ? only_cancelled(outcome) : -EIO;
}

/* Goal: a receiver that goes has received a message or it is discarded; who is
 * in line is told, and keeps its own. */
TEST(cancel_in_receive)
{
    CANCEL_SWEEP(begin_receive, end_receive, NULL, 5);
}

/* mpmc: receivers in line for one message each. */

static pirn_mpmc_receiver *mpmc_receiver;

static int take_all(void)
{
    pirn_mpmc_receiver *receiver = mpmc_receiver;
    int message, rc;

    while ((rc = pirn_mpmc_recv(receiver, &message, PIRN_NEVER)) == 0)
        tally.received += message;
    pirn_mpmc_receiver_unref(receiver);
    return rc == PIRN_ECLOSED ? 0 : rc;
}

static int other_takes(void *arg)
{
    int rc = take_all();

    (void)arg;
    tally.others_done += rc == 0;
    return rc;
}

static int victim_takes(void *arg)
{
    (void)arg;
    return take_all();
}

/* Owns its sender. */
static int feed(void *arg)
{
    pirn_mpmc_sender *sender = arg;
    int rc = 0;

    for (int i = 1; i <= MESSAGES && rc == 0; i++) {
        rc = pirn_yield();
        if (rc == 0)
            rc = pirn_mpmc_send(sender, &i, PIRN_NEVER);
        tally.sent += rc == 0 ? i : 0;
    }
    pirn_mpmc_sender_unref(sender);
    return rc;
}

static int begin_takers(void *arg, pirn_task **victim)
{
    pirn_mpmc_sender *sender;
    int rc = pirn_mpmc_new(&narrow, &sender, &mpmc_receiver);

    (void)arg;
    memset(&tally, 0, sizeof tally);
    if (rc < 0)
        return rc;
    (void)pirn_mpmc_receiver_ref(mpmc_receiver);
    (void)pirn_mpmc_receiver_ref(mpmc_receiver);
    rc = pirn_go(other_takes, NULL);
    if (rc == 0)
        rc = pirn_go_with(victim_takes, NULL, NULL, victim);
    if (rc == 0)
        rc = pirn_go(other_takes, NULL);
    if (rc == 0)
        rc = pirn_go(feed, sender);
    return rc;
}

static int end_takers(void *arg, int outcome)
{
    (void)arg;
    if (tally.others_done != 2 || tally.discarded != 0 || !is_all_there())
        return -EIO;
    return only_cancelled(outcome);
}

/* Goal: a message that was on its way to the victim goes to another. */
TEST(cancel_in_line_for_a_message)
{
    CANCEL_SWEEP(begin_takers, end_takers, NULL, 3);
}

/* Oneshot: a request, and who answers it a while later. */

/* Owns its sender. */
static int answer(void *arg)
{
    int rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++)
        rc = pirn_yield();
    if (rc < 0) {
        pirn_oneshot_sender_free(arg);
        return rc;
    }
    tally.sent = 5;
    if (pirn_oneshot_send(arg, &(int){5}) == PIRN_ECLOSED)
        tally.sent = 0;
    tally.others_done++;
    return 0;
}

static int ask(void *arg)
{
    pirn_oneshot_sender *sender;
    pirn_oneshot_receiver *receiver;
    int message, rc = pirn_oneshot_new(&narrow, &sender, &receiver);

    (void)arg;
    if (rc == 0)
        rc = pirn_go(answer, sender);
    if (rc < 0)
        return rc;
    rc = pirn_oneshot_recv(receiver, &message, PIRN_NEVER);
    tally.received = rc == 0 ? message : 0;
    pirn_oneshot_receiver_free(receiver);
    return rc;
}

/* With the oneshot on its stack. */
static int ask_by_own_memory(void *arg)
{
    pirn_oneshot_sender *sender;
    pirn_oneshot_receiver *receiver;
    pirn_oneshot oneshot;
    int room, message;
    int rc = pirn_oneshot_init(&oneshot, &narrow, &room, &sender, &receiver);

    (void)arg;
    if (rc == 0)
        rc = pirn_go(answer, sender);
    if (rc < 0)
        return rc;
    rc = pirn_oneshot_recv(receiver, &message, PIRN_NEVER);
    tally.received = rc == 0 ? message : 0;
    if (rc < 0) {
        pirn_oneshot_receiver_close(receiver);
        pirn_fiber_shield_begin();
        if (pirn_oneshot_finished(receiver, PIRN_NEVER) < 0)
            rc = -EIO;
        pirn_fiber_shield_end();
    }
    pirn_oneshot_deinit(&oneshot);
    memset(&oneshot, 0x5a, sizeof oneshot);
    /* The answer is over for whoever has ended it. */
    return tally.others_done == 1 ? rc : -EIO;
}

static int begin_ask(void *arg, pirn_task **victim)
{
    (void)arg;
    memset(&tally, 0, sizeof tally);
    return pirn_go_with(ask, NULL, NULL, victim);
}

static int begin_ask_by_own_memory(void *arg, pirn_task **victim)
{
    (void)arg;
    memset(&tally, 0, sizeof tally);
    return pirn_go_with(ask_by_own_memory, NULL, NULL, victim);
}

static int end_ask(void *arg, int outcome)
{
    (void)arg;
    if (tally.others_done != 1 || !is_all_there())
        return -EIO;
    return only_cancelled(outcome);
}

/* Goal: an answer is received, discarded or refused, also where the memory of
 * both goes with the victim. */
TEST(cancel_in_request)
{
    CANCEL_SWEEP(begin_ask, end_ask, NULL, 3);
    CANCEL_SWEEP(begin_ask_by_own_memory, end_ask, NULL, 3);
}

/* Broadcast, watch and promise: what others hear does not depend on the victim.
 */

static pirn_broadcast_sender *speaker;
static pirn_watch_sender *teller;
static pirn_promise *promise;

static int hear_all(pirn_broadcast_receiver *hearer)
{
    int message, last = 0, rc;

    while ((rc = pirn_broadcast_recv(hearer, &message, PIRN_NEVER)) == 0) {
        if (message != last + 1)
            rc = -EIO;
        last = message;
    }
    pirn_broadcast_receiver_free(hearer);
    return rc == PIRN_ECLOSED ? 0 : rc;
}

static int watch_all(pirn_watch_receiver *watcher)
{
    int value = 0, rc;

    while ((rc = pirn_watch_changed(watcher, &value, PIRN_NEVER)) == 0)
        continue;
    pirn_watch_receiver_free(watcher);
    if (rc == PIRN_ECLOSED)
        return value == MESSAGES ? 0 : -EIO;
    return rc;
}

/* All three, one after the other; subscribed from the start. */
struct listener {
    pirn_broadcast_receiver *hearer;
    pirn_watch_receiver *watcher;
};

static struct listener listeners[2];

static int listen_in(void *arg)
{
    const struct listener *listener = arg;
    int value, rc = pirn_promise_get(promise, &value, PIRN_NEVER);
    int heard = hear_all(listener->hearer);
    int watched = watch_all(listener->watcher);

    pirn_promise_unref(promise);
    if (rc == 0)
        rc = heard < 0 ? heard : watched;
    tally.others_done += rc == 0;
    return rc;
}

static int speak(void *arg)
{
    int rc = 0;

    (void)arg;
    for (int i = 1; i <= MESSAGES && rc == 0; i++) {
        rc = pirn_yield();
        (void)pirn_broadcast_send(speaker, &i);
        (void)pirn_watch_send(teller, &i);
        if (i == 1 && pirn_promise_set(promise, &i) < 0)
            rc = -EIO;
    }
    pirn_promise_unref(promise);
    pirn_broadcast_sender_unref(speaker);
    pirn_watch_sender_unref(teller);
    return rc;
}

static int begin_listen(void *arg, pirn_task **victim)
{
    const pirn_channel_options wide = {.message_size = sizeof(int),
                                       .capacity = MESSAGES};
    int rc = pirn_broadcast_new(&wide, &speaker, &listeners[0].hearer);

    (void)arg;
    memset(&tally, 0, sizeof tally);
    if (rc == 0)
        rc = pirn_broadcast_subscribe(speaker, &listeners[1].hearer);
    if (rc == 0)
        rc = pirn_watch_new(&plain, &(int){0}, &teller, &listeners[0].watcher);
    if (rc == 0)
        rc = pirn_watch_subscribe(teller, &listeners[1].watcher);
    if (rc == 0)
        rc = pirn_promise_new(&plain, &promise);
    if (rc < 0)
        return rc;
    (void)pirn_promise_ref(promise);
    (void)pirn_promise_ref(promise);
    rc = pirn_go_with(listen_in, &listeners[0], NULL, victim);
    if (rc == 0)
        rc = pirn_go(listen_in, &listeners[1]);
    if (rc == 0)
        rc = pirn_go(speak, NULL);
    return rc;
}

static int end_listen(void *arg, int outcome)
{
    (void)arg;
    if (tally.others_done != 1 + (outcome == 0))
        return -EIO;
    return only_cancelled(outcome);
}

/* Goal: the other one hears everything, whatever the victim waited for. */
TEST(cancel_in_what_others_hear)
{
    CANCEL_SWEEP(begin_listen, end_listen, NULL, 3);
}
