/* SPDX-License-Identifier: MIT */
/* src/channel/watch_test.c - the latest value, and who has seen it. */
#include <pirn/watch.h>

#include "channel/lab_test.h"

struct watching {
    pirn_watch_op op;
    int value;
    poller p;
};

static pirn_watch_sender *tx;

static pirn_watch_receiver *begin(int first)
{
    const pirn_channel_options options = options_of_ints(0);
    pirn_watch_receiver *rx = NULL;

    EXPECT_EQ(0, pirn_watch_new(&options, &first, &tx, &rx));
    return rx;
}

static void end(pirn_watch_receiver *rx)
{
    pirn_watch_receiver_free(rx);
    pirn_watch_sender_unref(tx);
}

static size_t put(int value)
{
    return pirn_watch_send(tx, &value);
}

static int peek(pirn_watch_receiver *rx)
{
    int value = -1;

    pirn_watch_peek(rx, &value);
    return value;
}

static int get(pirn_watch_receiver *rx)
{
    int value = -1;

    pirn_watch_get(rx, &value);
    return value;
}

static void changed_init(struct watching *w, pirn_watch_receiver *rx)
{
    *w = (struct watching){.value = -1, .p = {.fut = &w->op.future}};
    pirn_watch_changed_init(&w->op, rx, &w->value);
}

/* Goal: the first value counts as seen; the latest one is what one gets; looking
 * counts as seeing only where it says so. */
TEST(watch_keeps_the_latest)
{
    pirn_watch_receiver *rx = begin(1);
    int value = -1;

    EXPECT(!pirn_watch_has_changed(rx));
    EXPECT_EQ(1, peek(rx));
    EXPECT_EQ(1, put(2));
    EXPECT_EQ(1, put(3));
    EXPECT(pirn_watch_has_changed(rx));
    EXPECT_EQ(3, peek(rx));
    EXPECT(pirn_watch_has_changed(rx));
    EXPECT_EQ(3, get(rx));
    EXPECT(!pirn_watch_has_changed(rx));
    pirn_watch_sender_get(tx, &value);
    EXPECT_EQ(3, value);
    end(rx);
}

/* Goal: changed() is answered at once by what has not been seen, then waits, and
 * what lay between is skipped. */
TEST(watch_changed_waits_for_news)
{
    pirn_watch_receiver *rx = begin(1);
    struct watching w;
    int value = -1;

    EXPECT_EQ(-ETIMEDOUT, pirn_watch_changed(rx, &value, PIRN_EXPIRED));
    EXPECT_EQ(1, put(2));
    EXPECT_EQ(0, pirn_watch_changed(rx, &value, PIRN_EXPIRED));
    EXPECT_EQ(2, value);
    changed_init(&w, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT_EQ(1, put(3));
    EXPECT_EQ(1, put(4));
    EXPECT_EQ(1, w.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&w.p));
    EXPECT_EQ(4, w.value);
    EXPECT(!pirn_watch_has_changed(rx));
    EXPECT_EQ(1, put(5));
    EXPECT_EQ(0, pirn_watch_changed(rx, NULL, PIRN_EXPIRED));
    EXPECT(!pirn_watch_has_changed(rx));
    end(rx);
}

/* Goal: a wait that is dropped, woken or not, has seen nothing. */
TEST(watch_dropped_has_seen_nothing)
{
    pirn_watch_receiver *rx = begin(1);
    struct watching w;

    changed_init(&w, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT_EQ(1, put(2));
    EXPECT_EQ(1, w.p.wakes);
    poller_drop(&w.p);
    EXPECT(pirn_watch_has_changed(rx));
    EXPECT_EQ(2, get(rx));
    changed_init(&w, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    poller_drop(&w.p);
    EXPECT_EQ(1, put(3));
    EXPECT_EQ(0, w.p.wakes);
    end(rx);
}

/* Goal: every receiver is told of a change, once, in any number. */
TEST(watch_change_wakes_all_once)
{
    pirn_watch_receiver *rx[40];
    struct watching waiting[40];

    rx[0] = begin(1);
    for (int i = 1; i < 40; i++)
        EXPECT_EQ(0, pirn_watch_subscribe(tx, &rx[i]));
    for (int i = 0; i < 40; i++) {
        changed_init(&waiting[i], rx[i]);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&waiting[i].p));
    }
    EXPECT_EQ(40, put(2));
    for (int i = 0; i < 40; i++) {
        EXPECT_EQ(1, waiting[i].p.wakes);
        EXPECT_EQ(PIRN_READY, poller_poll(&waiting[i].p));
        EXPECT_EQ(2, waiting[i].value);
        pirn_watch_receiver_free(rx[i]);
    }
    EXPECT_EQ(0, put(3));
    pirn_watch_sender_unref(tx);
}

static bool is_at_least(void *arg, const void *value)
{
    return *(const int *)value >= *(int *)arg;
}

/* Goal: wait_for looks at the value of the moment first, also if it was seen,
 * then at each change; what it refused counts as seen. */
TEST(watch_wait_for_a_condition)
{
    pirn_watch_receiver *rx = begin(1);
    struct watching w = {.p = {.fut = &w.op.future}};
    int bound = 1, value = -1;

    EXPECT_EQ(0, pirn_watch_wait_for(rx, is_at_least, &bound, &value,
                                  PIRN_EXPIRED));
    EXPECT_EQ(1, value);
    bound = 3;
    EXPECT_EQ(1, put(2));
    pirn_watch_wait_for_init(&w.op, rx, is_at_least, &bound, &w.value);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT(!pirn_watch_has_changed(rx));
    EXPECT_EQ(1, put(2));
    EXPECT_EQ(1, w.p.wakes);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT_EQ(1, put(7));
    EXPECT_EQ(2, w.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&w.p));
    EXPECT_EQ(0, pirn_future_outcome(&w.op.future));
    EXPECT_EQ(7, w.value);
    bound = 9;
    EXPECT_EQ(-ETIMEDOUT,
              pirn_watch_wait_for(rx, is_at_least, &bound, &value,
                                  PIRN_EXPIRED));
    end(rx);
}

/* Goal: without senders the last value can still be seen, once, and then waits
 * end; wait_for is satisfied by a value that fits, seen or not. */
TEST(watch_ends_with_its_senders)
{
    pirn_watch_receiver *rx = begin(1);
    pirn_watch_receiver *other;
    struct watching w;
    int bound = 2, value = -1;

    EXPECT_PTR_EQ(tx, pirn_watch_sender_ref(tx));
    EXPECT_EQ(0, pirn_watch_receiver_dup(rx, &other));
    changed_init(&w, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT_EQ(2, put(2));
    EXPECT_EQ(PIRN_READY, poller_poll(&w.p));
    changed_init(&w, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    pirn_watch_sender_unref(tx);
    EXPECT_EQ(0, w.p.wakes);
    pirn_watch_sender_unref(tx);
    EXPECT_EQ(1, w.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&w.p));
    EXPECT_EQ(PIRN_ECLOSED, pirn_future_outcome(&w.op.future));
    EXPECT_EQ(0, pirn_watch_changed(other, &value, PIRN_EXPIRED));
    EXPECT_EQ(2, value);
    EXPECT_EQ(PIRN_ECLOSED, pirn_watch_changed(other, &value, PIRN_NEVER));
    EXPECT_EQ(0, pirn_watch_wait_for(other, is_at_least, &bound, &value,
                                  PIRN_NEVER));
    bound = 3;
    EXPECT_EQ(PIRN_ECLOSED,
              pirn_watch_wait_for(other, is_at_least, &bound, &value,
                                  PIRN_NEVER));
    EXPECT_EQ(2, peek(other));
    pirn_watch_receiver_free(rx);
    pirn_watch_receiver_free(other);
}

/* Goal: each look of a wait costs budget, so that a condition that is never met
 * cannot hold the others up. */
TEST(watch_spends_budget_and_describes)
{
    pirn_watch_receiver *rx = begin(1);
    struct pirn__turn turn = {.budget = 1};
    struct watching w = {.p = {.fut = &w.op.future, .turn = &turn}};
    int bound = 3;
    char buf[64] = "";
    pirn_text text = {buf, sizeof buf, 0};

    pirn_watch_wait_for_init(&w.op, rx, is_at_least, &bound, &w.value);
    pirn_future_describe(&w.op.future, &text);
    EXPECT_STR_EQ("a change of a watched value", buf);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT(turn.deferred);
    EXPECT_EQ(0, turn.budget);
    turn = (struct pirn__turn){.budget = 5};
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT(!turn.deferred);
    EXPECT_EQ(4, turn.budget);
    poller_drop(&w.p);
    end(rx);
}

/* Goal: options and arguments are checked. */
TEST(watch_arguments_are_checked)
{
    struct waste waste;
    pirn_channel_options options = options_with_waste(0, &waste);
    pirn_watch_receiver *rx = NULL;
    int first = 1;

    EXPECT_EQ(-EINVAL, pirn_watch_new(&options, &first, &tx, &rx));
    EXPECT_PTR_EQ(NULL, tx);
    EXPECT_EQ(-EINVAL, pirn_watch_new(NULL, &first, &tx, &rx));
    options = options_of_ints(0);
    EXPECT_EQ(-EINVAL, pirn_watch_new(&options, NULL, &tx, &rx));
    EXPECT_EQ(-EINVAL, pirn_watch_new(&options, &first, NULL, &rx));
    EXPECT_PTR_EQ(NULL, rx);
    options.message_size = 0;
    EXPECT_EQ(-EINVAL, pirn_watch_new(&options, &first, &tx, &rx));
    options.message_size = sizeof(int);
    EXPECT_EQ(0, pirn_watch_new(&options, &first, &tx, NULL));
    EXPECT_EQ(0, put(2));
    EXPECT_EQ(0, pirn_watch_subscribe(tx, &rx));
    EXPECT(!pirn_watch_has_changed(rx));
    EXPECT_EQ(2, peek(rx));
    end(rx);
    pirn_watch_receiver_free(NULL);
    pirn_watch_sender_unref(NULL);
}

/* Goal: a wait that was told of a value which has been looked at since waits for
 * the next one. */
TEST(watch_wait_beside_a_look_waits_on)
{
    pirn_watch_receiver *rx = begin(1);
    struct watching w;

    changed_init(&w, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT_EQ(1, put(2));
    EXPECT_EQ(2, get(rx));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w.p));
    EXPECT_EQ(1, put(3));
    EXPECT_EQ(2, w.p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&w.p));
    EXPECT_EQ(3, w.value);
    end(rx);
}

static void give_sender_up_twice(void *arg)
{
    (void)arg;
    (void)begin(0);
    pirn_watch_sender_unref(tx);
    pirn_watch_sender_unref(tx);
}

/* Goal: a sender too many that is given up is found: receivers would wait for
 * ever. */
TEST(watch_sender_given_up_twice_dies)
{
    EXPECT_DEATH(give_sender_up_twice, NULL, "a sender is given up once");
}
