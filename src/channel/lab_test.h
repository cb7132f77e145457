/* SPDX-License-Identifier: MIT */
/* src/channel/lab_test.h - what the tests of channels share: channels of ints,
 * operations that are polled by hand, and a count of discarded messages.
 */
#ifndef PIRN_CHANNEL_LAB_TEST_H
#define PIRN_CHANNEL_LAB_TEST_H

#include <pirn/mpmc.h>
#include <pirn/mpsc.h>

#include <errno.h>

#include "engine/poller.h"

/* What was discarded: how many, and their sum. */
struct waste {
    int count;
    int sum;
};

static inline void waste_add(void *arg, void *message)
{
    struct waste *waste = arg;

    waste->count++;
    waste->sum += *(int *)message;
}

static inline pirn_channel_options options_of_ints(size_t capacity)
{
    return (pirn_channel_options){.message_size = sizeof(int),
                                  .capacity = capacity};
}

static inline pirn_channel_options options_with_waste(size_t capacity,
                                                      struct waste *waste)
{
    pirn_channel_options options = options_of_ints(capacity);

    options.discard = waste_add;
    options.discard_arg = waste;
    return options;
}

/* An mpsc channel with one sender. */
struct lab {
    pirn_mpsc_sender *tx;
    pirn_mpsc_receiver *rx;
};

static inline struct lab lab_with(const pirn_channel_options *options)
{
    struct lab lab = {0};

    EXPECT_EQ(0, pirn_mpsc_new(options, &lab.tx, &lab.rx));
    return lab;
}

static inline struct lab lab_new(size_t capacity)
{
    const pirn_channel_options options = options_of_ints(capacity);

    return lab_with(&options);
}

static inline void lab_end(struct lab *lab)
{
    pirn_mpsc_sender_unref(lab->tx);
    pirn_mpsc_receiver_free(lab->rx);
}

/* A send of one int. */
struct sending {
    pirn_channel_send_op op;
    int message;
    poller p;
};

static inline void sending_init(struct sending *s, pirn_mpsc_sender *tx,
                                int message)
{
    *s = (struct sending){.message = message, .p = {.fut = &s->op.future}};
    pirn_mpsc_send_init(&s->op, tx, &s->message);
}

/* Begin a send that has to wait. */
static inline void sending_wait(struct sending *s, pirn_mpsc_sender *tx,
                                int message)
{
    sending_init(s, tx, message);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&s->p));
}

/* Poll a send to its end: what it says. */
static inline int sending_end(struct sending *s)
{
    EXPECT_EQ(PIRN_READY, poller_poll(&s->p));
    EXPECT_EQ(s->op.rc, pirn_future_outcome(&s->op.future));
    return s->op.rc;
}

/* A receive of one int. */
struct receiving {
    pirn_channel_recv_op op;
    int message;
    poller p;
};

static inline void receiving_init(struct receiving *r, pirn_mpsc_receiver *rx)
{
    *r = (struct receiving){.message = -1, .p = {.fut = &r->op.future}};
    pirn_mpsc_recv_init(&r->op, rx, &r->message);
}

static inline void receiving_wait(struct receiving *r, pirn_mpsc_receiver *rx)
{
    receiving_init(r, rx);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r->p));
}

/* Poll a receive to its end: the message, or what it says instead. */
static inline int receiving_end(struct receiving *r)
{
    EXPECT_EQ(PIRN_READY, poller_poll(&r->p));
    return r->op.n < 0 ? (int)r->op.n : r->message;
}

/* Without waiting: the message, or what the call says instead. */
static inline int take_int(pirn_mpsc_receiver *rx)
{
    int message = -1;
    int rc = pirn_mpsc_try_recv(rx, &message);

    return rc < 0 ? rc : message;
}

static inline int give_int(pirn_mpsc_sender *tx, int message)
{
    return pirn_mpsc_try_send(tx, &message);
}

#endif /* PIRN_CHANNEL_LAB_TEST_H */
