/* SPDX-License-Identifier: MIT */
/* tests/sweep/fault_channel.c - channels and what synchronises, in a world without
 * memory: constructors, messages that need memory, waits on a plain thread.
 */
#include <errno.h>

#include <pirn/channel.h>
#include <pirn/broadcast.h>
#include <pirn/mpmc.h>
#include <pirn/mpsc.h>
#include <pirn/oneshot.h>
#include <pirn/promise.h>
#include <pirn/sync.h>
#include <pirn/watch.h>

#include "fault_fixture.h"

enum { MESSAGES = 300 };

static uint32_t workers;

/* mpsc without a bound: memory for each block of messages. */

static const pirn_channel_options unbounded = {
    .message_size = sizeof(int), .capacity = PIRN_UNBOUNDED};

/* What was sent arrives, in order, and nothing else. */
static int send_and_count(pirn_mpsc_sender *sender, pirn_mpsc_receiver *receiver)
{
    int sent = 0;
    int received;

    for (int i = 0; i < MESSAGES; i++) {
        if (SWEPT(pirn_mpsc_send(sender, &i, PIRN_NEVER)) == 0)
            sent++;
    }
    for (int last = -1; sent > 0; last = received, sent--) {
        EXPECT_EQ(0, SWEPT(pirn_mpsc_try_recv(receiver, &received)));
        EXPECT(received > last);
    }
    EXPECT_EQ(-EAGAIN, pirn_mpsc_try_recv(receiver, &received));
    return 0;
}

static int through_mpsc(void *arg)
{
    pirn_mpsc_sender *sender = SWEEP_JUNK;
    pirn_mpsc_receiver *receiver = SWEEP_JUNK;
    int rc = SWEPT(pirn_mpsc_new(&unbounded, &sender, &receiver));

    (void)arg;
    if (rc < 0) {
        EXPECT_PTR_EQ(NULL, sender);
        EXPECT_PTR_EQ(NULL, receiver);
        return 0;
    }
    send_and_count(sender, receiver);
    pirn_mpsc_sender_unref(sender);
    pirn_mpsc_receiver_free(receiver);
    return 0;
}

static void through_mpsc_outside(void)
{
    (void)through_mpsc(NULL);
}

static void through_mpsc_inside(void)
{
    fault_run(workers, through_mpsc, NULL);
}

/* Goal: a message for which there is no memory stays with its sender; the others
 * arrive in order.
 * Method: more messages than one block holds, outside and inside a runtime. */
TEST(fault_in_unbounded_channel)
{
    SWEEP(through_mpsc_outside, SWEEP_MEMORY);
    workers = 0;
    SWEEP(through_mpsc_inside, SWEEP_EVERYTHING);
    workers = 2;
    SWEEP(through_mpsc_inside, SWEEP_EVERYTHING);
}

/* The other constructors. */

static const pirn_channel_options bounded = {.message_size = sizeof(int),
                                             .capacity = 4};

static void make_mpmc(void)
{
    pirn_mpmc_sender *sender = SWEEP_JUNK;
    pirn_mpmc_receiver *receiver = SWEEP_JUNK;
    int message = 7;

    if (SWEPT(pirn_mpmc_new(&bounded, &sender, &receiver)) == 0) {
        if (SWEPT(pirn_mpmc_send(sender, &message, PIRN_NEVER)) == 0)
            (void)SWEPT(pirn_mpmc_recv(receiver, &message, PIRN_NEVER));
        EXPECT_EQ(7, message);
    }
    pirn_mpmc_sender_unref(sender);
    pirn_mpmc_receiver_unref(receiver);
}

static void make_broadcast(void)
{
    pirn_broadcast_sender *sender = SWEEP_JUNK;
    pirn_broadcast_receiver *receiver = SWEEP_JUNK;
    pirn_broadcast_receiver *second = NULL;
    pirn_broadcast_receiver *third = NULL;
    int message = 7;

    if (SWEPT(pirn_broadcast_new(&bounded, &sender, &receiver)) == 0) {
        int rc = SWEPT(pirn_broadcast_subscribe(sender, &second));

        EXPECT(rc == 0 || second == NULL);
        rc = SWEPT(pirn_broadcast_receiver_dup(receiver, &third));
        EXPECT(rc == 0 || third == NULL);
        EXPECT_GE(pirn_broadcast_send(sender, &message), 1);
        (void)SWEPT(pirn_broadcast_recv(receiver, &message, PIRN_NEVER));
    }
    pirn_broadcast_receiver_free(third);
    pirn_broadcast_receiver_free(second);
    pirn_broadcast_receiver_free(receiver);
    pirn_broadcast_sender_unref(sender);
}

static void make_watch(void)
{
    const pirn_channel_options options = {.message_size = sizeof(int)};
    pirn_watch_sender *sender = SWEEP_JUNK;
    pirn_watch_receiver *receiver = SWEEP_JUNK;
    pirn_watch_receiver *second = NULL;
    int value = 7;

    if (SWEPT(pirn_watch_new(&options, &value, &sender, &receiver)) == 0) {
        int rc = SWEPT(pirn_watch_subscribe(sender, &second));

        EXPECT(rc == 0 || second == NULL);
        EXPECT_GE(pirn_watch_send(sender, &value), 1);
        (void)SWEPT(pirn_watch_changed(receiver, &value, PIRN_NEVER));
    }
    pirn_watch_receiver_free(second);
    pirn_watch_receiver_free(receiver);
    pirn_watch_sender_unref(sender);
}

static void make_oneshot(void)
{
    pirn_oneshot_sender *sender = SWEEP_JUNK;
    pirn_oneshot_receiver *receiver = SWEEP_JUNK;
    int message = 7;

    if (SWEPT(pirn_oneshot_new(&bounded, &sender, &receiver)) == 0) {
        EXPECT_EQ(0, SWEPT(pirn_oneshot_send(sender, &message)));
        (void)SWEPT(pirn_oneshot_recv(receiver, &message, PIRN_NEVER));
    }
    pirn_oneshot_receiver_free(receiver);
}

/* Nothing needs memory but a plain thread's first wait, and without that the
 * memory is still the caller's to end. */
static void place_oneshot(void)
{
    pirn_oneshot_sender *sender = SWEEP_JUNK;
    pirn_oneshot_receiver *receiver = SWEEP_JUNK;
    pirn_oneshot oneshot;
    int room, message = 7;

    EXPECT_EQ(0, pirn_oneshot_init(&oneshot, &bounded, &room, &sender,
                                   &receiver));
    EXPECT_EQ(0, SWEPT(pirn_oneshot_send(sender, &message)));
    (void)SWEPT(pirn_oneshot_finished(receiver, PIRN_NEVER));
    (void)SWEPT(pirn_oneshot_recv(receiver, &message, PIRN_NEVER));
    EXPECT_EQ(7, message);
    pirn_oneshot_deinit(&oneshot);
}

static void make_promise(void)
{
    pirn_promise *promise = SWEEP_JUNK;
    int value = 7;

    if (SWEPT(pirn_promise_new(&bounded, &promise)) == 0) {
        EXPECT_EQ(0, SWEPT(pirn_promise_set(promise, &value)));
        (void)SWEPT(pirn_promise_get(promise, &value, PIRN_NEVER));
    }
    pirn_promise_unref(promise);
}

/* Goal: each constructor makes all or nothing.
 * Method: with one message through each. */
TEST(fault_in_channels)
{
    SWEEP(make_mpmc, SWEEP_MEMORY);
    SWEEP(make_broadcast, SWEEP_MEMORY);
    SWEEP(make_watch, SWEEP_MEMORY);
    SWEEP(make_oneshot, SWEEP_MEMORY);
    SWEEP(place_oneshot, SWEEP_MEMORY);
    SWEEP(make_promise, SWEEP_MEMORY);
}

/* What synchronises allocates nothing; a plain thread's first wait does. */

static void wait_outside(void)
{
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_sem sem = PIRN_SEM_INIT(1);
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_cond cond = PIRN_COND_INIT;
    pirn_rwlock lock = PIRN_RWLOCK_INIT;

    if (SWEPT(pirn_mutex_lock(&mutex, PIRN_NEVER)) == 0) {
        int rc = pirn_cond_wait(&cond, &mutex, pirn_after_us(10));

        EXPECT(rc == -ETIMEDOUT || rc == -ENOMEM);
        (void)sweep_saw("pirn_cond_wait", rc == -ETIMEDOUT ? 0 : rc);
        /* Locked in every case. */
        EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
        pirn_mutex_unlock(&mutex);
    }
    if (SWEPT(pirn_sem_acquire(&sem, 1, PIRN_NEVER)) == 0)
        pirn_sem_release(&sem, 1);
    EXPECT_EQ(1, pirn_sem_available(&sem));
    pirn_notify_one(&notify);
    if (SWEPT(pirn_notify_wait(&notify, PIRN_NEVER)) < 0)
        EXPECT_EQ(0, pirn_notify_try_wait(&notify));
    if (SWEPT(pirn_rwlock_write(&lock, PIRN_NEVER)) == 0)
        pirn_rwlock_write_unlock(&lock);
    if (SWEPT(pirn_rwlock_read(&lock, PIRN_NEVER)) == 0)
        pirn_rwlock_read_unlock(&lock);
    EXPECT_EQ(0, pirn_rwlock_try_write(&lock));
    pirn_rwlock_write_unlock(&lock);
    pirn_rwlock_deinit(&lock);
    pirn_cond_deinit(&cond);
    pirn_notify_deinit(&notify);
    pirn_sem_deinit(&sem);
    pirn_mutex_deinit(&mutex);
}

/* Goal: a thread that cannot wait for want of memory has taken nothing, and what
 * must be locked afterwards is.
 * Method: each primitive on a thread whose first calls these are. */
TEST(fault_in_waits_of_a_plain_thread)
{
    SWEEP(wait_outside, SWEEP_MEMORY | SWEEP_WAITS | SWEEP_INTERRUPTS);
}
