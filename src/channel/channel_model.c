/* SPDX-License-Identifier: MIT */
/* src/channel/channel_model.c - senders under the lock against one receiver that
 * works without it; waiting, dropping and closing on both sides.
 */
#include <errno.h>
#include <string.h>

#include <pirn/mpsc.h>

#include "engine/model_home.h"
#include "task/task.h"

static pirn_mpsc_sender *tx;
static pirn_mpsc_receiver *rx;
static struct model_bell bells[3];

/* Everything below belongs to one thread, and to the body after the join. */
static int64_t got[4];
static int got_count;
static int sent_count[2];
static bool receiver_waits;
static pirn_mpsc_recv_op recv_op;
static int64_t recv_message;

static void begin(size_t capacity)
{
    const pirn_channel_options options = {.message_size = sizeof(int64_t),
                                          .capacity = capacity};

    EXPLORE_CHECK(pirn_mpsc_new(&options, &tx, &rx) == 0);
}

static void end(void)
{
    pirn_mpsc_sender_unref(tx);
    pirn_mpsc_receiver_free(rx);
    for (int i = 0; i < 3; i++)
        EXPLORE_CHECK(model_bell_wakers(&bells[i]) == 0);
}

static bool give(int who, int64_t message)
{
    int rc = pirn_mpsc_try_send(tx, &message);

    EXPLORE_CHECK(rc == 0 || rc == -EAGAIN || rc == PIRN_ECLOSED);
    if (rc == 0)
        sent_count[who]++;
    return rc == 0;
}

static int take(void)
{
    int rc = pirn_mpsc_try_recv(rx, &got[got_count]);

    if (rc == 0)
        got_count++;
    return rc;
}

static void take_rest(void)
{
    while (take() == 0)
        continue;
}

/* Sends. */

struct sending {
    pirn_mpsc_send_op op;
    int64_t message;
    enum pirn_poll poll;
};

static struct sending sendings[2];

static void sending_poll(int who, int64_t message)
{
    struct sending *s = &sendings[who];

    s->message = message;
    pirn_mpsc_send_init(&s->op, tx, &s->message);
    s->poll = model_bell_poll(&bells[who], &s->op.future);
}

/* One that has had to wait has been woken, and is done now. */
static void sending_end(int who)
{
    struct sending *s = &sendings[who];

    if (s->poll == PIRN_PENDING) {
        EXPLORE_CHECK(model_bell_rang(&bells[who]));
        s->poll = model_bell_poll(&bells[who], &s->op.future);
    }
    EXPLORE_CHECK(s->poll == PIRN_READY);
}

static void send_seven(void *arg)
{
    (void)arg;
    sending_poll(0, 7);
}

static void take_one(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(take() == 0);
}

/* Goal: a sender that finds the channel full is told of the place that comes
 * free at that moment. */
MODEL(channel_full_sender_is_told, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    EXPLORE_CHECK(give(1, 1));
    explore_thread(send_seven, NULL);
    explore_thread(take_one, NULL);
    explore_join();
    sending_end(0);
    take_rest();
    EXPLORE_CHECK(got_count == 2 && got[0] == 1 && got[1] == 7);
    end();
}

static void receive_poll(void)
{
    pirn_mpsc_recv_init(&recv_op, rx, &recv_message);
    receiver_waits =
        model_bell_poll(&bells[2], &recv_op.future) == PIRN_PENDING;
}

static void receive_waits_on(void)
{
    receiver_waits =
        model_bell_poll(&bells[2], &recv_op.future) == PIRN_PENDING;
}

static void receive(void *arg)
{
    (void)arg;
    receive_poll();
}

/* The same as the poll of a task makes it: the references to a waker are on
 * loan. */
static void receive_as_task(void *arg)
{
    static char cell[sizeof(struct pirn__task)];
    const pirn_waker waker = model_bell_waker(&bells[2]);
    struct pirn__turn turn = {.task = (struct pirn__task *)(void *)cell,
                              .own_waker = &waker,
                              .budget = 1,
                              .loan = PIRN__LOAN};
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};

    (void)arg;
    pirn__add(&bells[2].wakers, (int)PIRN__LOAN, relaxed);
    pirn_mpsc_recv_init(&recv_op, rx, &recv_message);
    receiver_waits = pirn_future_poll(&recv_op.future, &cx) == PIRN_PENDING;
    pirn__sub(&bells[2].wakers, (int)turn.loan, relaxed);
}

static void send_one(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(give(0, 1));
}

static void send_one_or_none(void *arg)
{
    (void)arg;
    (void)give(0, 1);
}

/* One that has had to wait has been woken, and is done now. */
static void receive_end(void)
{
    if (!receiver_waits)
        return;
    EXPLORE_CHECK(model_bell_rang(&bells[2]));
    EXPLORE_CHECK(model_bell_poll(&bells[2], &recv_op.future) == PIRN_READY);
}

/* Goal: a receiver that finds the channel empty is told of the message that
 * comes at that moment, and sees it whole. */
MODEL(channel_empty_receiver_is_told, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    explore_thread(receive, NULL);
    explore_thread(send_one, NULL);
    explore_join();
    receive_end();
    EXPLORE_CHECK(recv_op.n == 1 && recv_message == 1);
    end();
}

static void take_one_and_receive(void *arg)
{
    take_one(arg);
    receive_poll();
}

/* Goal: a receiver that makes room and then waits is told by the sender who finds
 * the room, or is told of it. */
MODEL(channel_receiver_waits_for_the_next, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    EXPLORE_CHECK(give(1, 1));
    explore_thread(send_seven, NULL);
    explore_thread(take_one_and_receive, NULL);
    explore_join();
    sending_end(0);
    receive_end();
    EXPLORE_CHECK(recv_op.n == 1 && recv_message == 7);
    end();
}

/* Goal: a task that finds the channel empty is told of the message, too; it
 * enters the line by a shorter way. */
MODEL(channel_empty_receiver_task_is_told, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    explore_thread(receive_as_task, NULL);
    explore_thread(send_one, NULL);
    explore_join();
    receive_end();
    EXPLORE_CHECK(recv_op.n == 1 && recv_message == 1);
    end();
}

/* A send in the poll of a task, which says whose turn it is. */
static void send_as_task(void *arg)
{
    static char cell[sizeof(struct pirn__task)];
    const pirn_waker waker = model_bell_waker(&bells[0]);
    struct pirn__turn turn = {.task = (struct pirn__task *)(void *)cell,
                              .own_waker = &waker,
                              .budget = 1};
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};
    struct sending *s = &sendings[0];

    (void)arg;
    s->message = 1;
    pirn_mpsc_send_init(&s->op, tx, &s->message);
    EXPLORE_CHECK(pirn_future_poll(&s->op.future, &cx) == PIRN_READY);
}

/* Goal: a receiver that is no task is told of what a task sends, too. */
MODEL(channel_receiver_is_told_by_a_task, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    explore_thread(receive, NULL);
    explore_thread(send_as_task, NULL);
    explore_join();
    receive_end();
    EXPLORE_CHECK(recv_op.n == 1 && recv_message == 1);
    end();
}

static void receive_again_and_go(void *arg)
{
    (void)arg;
    receive_waits_on();
    if (receiver_waits)
        pirn_future_drop(&recv_op.future);
    memset(&recv_op.waiter_, 0xff, sizeof recv_op.waiter_);
    pirn_mpsc_receiver_free(rx);
    rx = NULL;
}

/* Goal: a receiver that is polled while it is told of a message sees it whole or
 * waits on; with the message in hand its operation is its own, and it may go.
 * Method: it is polled without having been woken, and what it had is spoilt. */
MODEL(channel_told_receiver_needs_no_lock, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    receive_poll();
    EXPLORE_CHECK(receiver_waits);
    explore_thread(receive_again_and_go, NULL);
    explore_thread(send_one_or_none, NULL);
    explore_join();
    if (!receiver_waits)
        EXPLORE_CHECK(recv_op.n == 1 && recv_message == 1);
    end();
}

static void send_three(void *arg)
{
    (void)arg;
    for (int i = 1; i <= 3; i++)
        if (!give(0, i))
            break;
}

static void take_two(void *arg)
{
    (void)arg;
    (void)take();
    (void)take();
}

/* Goal: a place is filled again only when its message has been taken out; what
 * was sent comes out once, in order. */
MODEL(channel_places_are_used_again)
{
    begin(1);
    explore_thread(send_three, NULL);
    explore_thread(take_two, NULL);
    explore_join();
    take_rest();
    EXPLORE_CHECK(got_count == sent_count[0]);
    for (int i = 0; i < got_count; i++)
        EXPLORE_CHECK(got[i] == i + 1);
    end();
}

/* Goal: the same over the blocks of an unbounded channel, which go back and are
 * used again; none is lost or freed twice. */
MODEL(channel_blocks_are_used_again)
{
    begin(PIRN_UNBOUNDED);
    EXPLORE_CHECK(give(0, 0));
    explore_thread(send_three, NULL);
    explore_thread(take_two, NULL);
    explore_join();
    take_rest();
    EXPLORE_CHECK(got_count == 4);
    for (int i = 0; i < got_count; i++)
        EXPLORE_CHECK(got[i] == i);
    end();
}

static void send_other(void *arg)
{
    (void)arg;
    (void)give(1, 8);
}

static void send_two(void *arg)
{
    (void)arg;
    (void)give(0, 1);
    (void)give(0, 2);
}

/* Goal: two senders that both find the last block full add one, and what one of
 * them took too much goes back. */
MODEL(channel_two_senders_begin_a_block)
{
    begin(PIRN_UNBOUNDED);
    EXPLORE_CHECK(give(0, 0));
    explore_thread(send_two, NULL);
    explore_thread(send_other, NULL);
    explore_join();
    take_rest();
    EXPLORE_CHECK(got_count == 4);
    end();
}

static void drop_first(void *arg)
{
    (void)arg;
    pirn_future_drop(&sendings[0].op.future);
}

/* Goal: a place that goes to a sender which is dropped at that moment goes to
 * the next one. */
MODEL(channel_granted_place_is_passed_on, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    EXPLORE_CHECK(give(1, 1));
    sending_poll(0, 7);
    sending_poll(1, 8);
    explore_thread(drop_first, NULL);
    explore_thread(take_one, NULL);
    explore_join();
    sending_end(1);
    take_rest();
    EXPLORE_CHECK(got_count == 2 && got[1] == 8);
    end();
}

static void go_as_sender(void *arg)
{
    (void)arg;
    pirn_mpsc_sender_unref(tx);
    tx = NULL;
}

/* Goal: a receiver that finds the channel empty is told that the last sender
 * goes at that moment. */
MODEL(channel_receiver_is_told_of_the_end, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    explore_thread(receive, NULL);
    explore_thread(go_as_sender, NULL);
    explore_join();
    receive_end();
    EXPLORE_CHECK(recv_op.n == PIRN_ECLOSED);
    end();
}

/* Goal: so is a task. */
MODEL(channel_receiver_task_is_told_of_the_end, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    explore_thread(receive_as_task, NULL);
    explore_thread(go_as_sender, NULL);
    explore_join();
    receive_end();
    EXPLORE_CHECK(recv_op.n == PIRN_ECLOSED);
    end();
}

static void go_as_receiver(void *arg)
{
    (void)arg;
    pirn_mpsc_receiver_free(rx);
    rx = NULL;
}

/* Goal: a sender that finds the channel full is told that the receiver goes at
 * that moment, and keeps its message. */
MODEL(channel_sender_is_told_of_the_end, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    EXPLORE_CHECK(give(1, 1));
    explore_thread(send_seven, NULL);
    explore_thread(go_as_receiver, NULL);
    explore_join();
    sending_end(0);
    EXPLORE_CHECK(sendings[0].op.rc == PIRN_ECLOSED);
    end();
}

/* Goal: when both sides go at the same time the channel is freed once, with the
 * message that is in it. */
MODEL(channel_both_sides_go, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    EXPLORE_CHECK(give(0, 1));
    explore_thread(go_as_sender, NULL);
    explore_thread(go_as_receiver, NULL);
    explore_join();
    end();
}

static pirn_mpsc_permit permit;

static void release_permit(void *arg)
{
    (void)arg;
    pirn_mpsc_permit_release(&permit);
}

/* Goal: a permit that is released while everybody else goes is the last to use
 * the channel, or not; a receiver that waits learns of the end. */
MODEL(channel_permit_against_the_end)
{
    begin(1);
    EXPLORE_CHECK(pirn_mpsc_try_reserve(tx, 1, &permit) == 0);
    pirn_mpsc_receiver_close(rx);
    explore_thread(receive, NULL);
    explore_thread(release_permit, NULL);
    explore_thread(go_as_sender, NULL);
    explore_join();
    receive_end();
    EXPLORE_CHECK(recv_op.n == PIRN_ECLOSED);
    end();
}

static void all_go(void *arg)
{
    drop_first(arg);
    go_as_sender(arg);
    go_as_receiver(arg);
}

/* Goal: a permit that has let somebody in may be the last to use the channel.
 * Method: a batch is one waker here, so that it looks once more after the wake.
 */
MODEL(channel_permit_lets_in_against_the_end, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(1);
    EXPLORE_CHECK(pirn_mpsc_try_reserve(tx, 1, &permit) == 0);
    sending_poll(0, 7);
    explore_thread(release_permit, NULL);
    explore_thread(all_go, NULL);
    explore_join();
    end();
}

static pirn_mpsc_weak_sender *weak;

static void upgrade(void *arg)
{
    pirn_mpsc_sender *again;

    (void)arg;
    if (pirn_mpsc_weak_sender_upgrade(weak, &again) == 0) {
        EXPLORE_CHECK(pirn_mpsc_try_send(again, &(int64_t){5}) == 0);
        pirn_mpsc_sender_unref(again);
    }
    pirn_mpsc_weak_sender_unref(weak);
}

/* Goal: a weak sender becomes one again or not; the end comes once, and after
 * what it sent. */
MODEL(channel_upgrade_against_the_end)
{
    begin(1);
    weak = pirn_mpsc_sender_downgrade(tx);
    explore_thread(upgrade, NULL);
    explore_thread(go_as_sender, NULL);
    explore_join();
    take_rest();
    EXPLORE_CHECK(take() == PIRN_ECLOSED);
    end();
}

static pirn_mpsc_recv_op first_op;
static int64_t first_message;

static void poll_first(void *arg)
{
    (void)arg;
    (void)model_bell_poll(&bells[0], &first_op.future);
}

/* Goal: a receive that was told of a message which a try_ call has taken looks
 * again while another one is being told.
 * Method: the second one stands in line. */
MODEL(channel_told_receiver_looks_while_another_is_told,
      .preemptions = EXPLORE_UNBOUNDED)
{
    begin(2);
    pirn_mpsc_recv_init(&first_op, rx, &first_message);
    EXPLORE_CHECK(model_bell_poll(&bells[0], &first_op.future) == PIRN_PENDING);
    EXPLORE_CHECK(give(0, 1));
    EXPLORE_CHECK(take() == 0);
    receive_poll();
    EXPLORE_CHECK(receiver_waits);
    explore_thread(poll_first, NULL);
    explore_thread(send_one, NULL);
    explore_join();
    if (first_op.n == 1)
        pirn_future_drop(&recv_op.future);
    else if (first_op.n == -EBUSY)
        receive_end();
    end();
}
