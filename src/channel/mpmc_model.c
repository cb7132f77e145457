/* SPDX-License-Identifier: MIT */
/* src/channel/mpmc_model.c - many receivers: promises, and their end. */
#include <errno.h>

#include <pirn/mpmc.h>

#include "engine/model_home.h"

static pirn_mpmc_sender *tx;
static pirn_mpmc_receiver *rx;

struct receiving {
    pirn_mpmc_recv_op op;
    int message;
    enum pirn_poll poll;
    struct model_bell bell;
};

static struct receiving receivings[2];

static void begin(void)
{
    const pirn_channel_options options = {.message_size = sizeof(int),
                                          .capacity = 2};

    EXPLORE_CHECK(pirn_mpmc_new(&options, &tx, &rx) == 0);
}

static void end(void)
{
    pirn_mpmc_sender_unref(tx);
    pirn_mpmc_receiver_unref(rx);
    for (int i = 0; i < 2; i++)
        EXPLORE_CHECK(model_bell_wakers(&receivings[i].bell) == 0);
}

static void receive(void *arg)
{
    struct receiving *r = arg;

    pirn_mpmc_recv_init(&r->op, rx, &r->message);
    r->poll = model_bell_poll(&r->bell, &r->op.future);
}

static void receive_end(struct receiving *r)
{
    if (r->poll == PIRN_PENDING) {
        EXPLORE_CHECK(model_bell_rang(&r->bell));
        r->poll = model_bell_poll(&r->bell, &r->op.future);
    }
    EXPLORE_CHECK(r->poll == PIRN_READY);
}

static void drop_first(void *arg)
{
    (void)arg;
    pirn_future_drop(&receivings[0].op.future);
}

static void send_one(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(pirn_mpmc_try_send(tx, &(int){5}) == 0);
}

/* Goal: a message that is promised to a receiver which is dropped at that moment
 * goes to the next one. */
MODEL(mpmc_promise_is_passed_on, .preemptions = EXPLORE_UNBOUNDED)
{
    begin();
    receive(&receivings[0]);
    receive(&receivings[1]);
    explore_thread(drop_first, NULL);
    explore_thread(send_one, NULL);
    explore_join();
    receive_end(&receivings[1]);
    EXPLORE_CHECK(receivings[1].op.n == 1 && receivings[1].message == 5);
    end();
}

static void send_two(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(pirn_mpmc_try_send(tx, &(int){1}) == 0);
    EXPLORE_CHECK(pirn_mpmc_try_send(tx, &(int){2}) == 0);
}

/* Goal: two receivers get one message each, and both are told. */
MODEL(mpmc_each_message_goes_to_one)
{
    begin();
    explore_thread(receive, &receivings[0]);
    explore_thread(receive, &receivings[1]);
    explore_thread(send_two, NULL);
    explore_join();
    receive_end(&receivings[0]);
    receive_end(&receivings[1]);
    EXPLORE_CHECK(receivings[0].message + receivings[1].message == 3);
    EXPLORE_CHECK(receivings[0].message != receivings[1].message);
    end();
}

static void go_as_sender(void *arg)
{
    (void)arg;
    pirn_mpmc_sender_unref(tx);
    tx = NULL;
}

/* Goal: the end comes after the message, for the other receiver; nobody is left
 * waiting, also if the one that was promised the message is dropped. */
MODEL(mpmc_end_comes_after_the_message)
{
    begin();
    receive(&receivings[0]);
    receive(&receivings[1]);
    EXPLORE_CHECK(pirn_mpmc_try_send(tx, &(int){5}) == 0);
    explore_thread(drop_first, NULL);
    explore_thread(go_as_sender, NULL);
    explore_join();
    receive_end(&receivings[1]);
    EXPLORE_CHECK(receivings[1].op.n == 1 && receivings[1].message == 5);
    EXPLORE_CHECK(pirn_mpmc_try_recv(rx, &receivings[0].message) ==
                  PIRN_ECLOSED);
    end();
}

static void take_promised(void *arg)
{
    (void)arg;
    receive_end(&receivings[0]);
}

/* Goal: who still waits when the last message is taken, while the last sender
 * goes, is told of the end. */
MODEL(mpmc_last_message_ends_it, .preemptions = EXPLORE_UNBOUNDED)
{
    begin();
    receive(&receivings[0]);
    receive(&receivings[1]);
    EXPLORE_CHECK(pirn_mpmc_try_send(tx, &(int){5}) == 0);
    explore_thread(take_promised, NULL);
    explore_thread(go_as_sender, NULL);
    explore_join();
    EXPLORE_CHECK(receivings[0].message == 5);
    receive_end(&receivings[1]);
    EXPLORE_CHECK(receivings[1].op.n == PIRN_ECLOSED);
    end();
}
