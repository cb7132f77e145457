/* SPDX-License-Identifier: MIT */
/* tests/sweep/cancel_tasks.c - what the Cancel lines of tasks, jobs, channels and
 * primitives promise, at each step.
 */
#include <pirn/blocking.h>
#include <pirn/channel.h>
#include <pirn/mpmc.h>
#include <pirn/mpsc.h>
#include <pirn/sync.h>

#include "cancel_fixture.h"

/* Joining. */

struct joined {
    pirn_task *task;
    pirn_job *job;
    int value;
};

static int count_slowly(void *arg)
{
    struct joined *joined = arg;

    for (int i = 0; i < 3; i++) {
        int rc = pirn_sleep(pirn_after_ms(1));

        if (rc < 0)
            return rc;
        joined->value++;
    }
    return joined->value;
}

static int join(void *arg)
{
    struct joined *joined = arg;
    int outcome;
    int rc = pirn_task_join(joined->task, PIRN_NEVER, &outcome);

    return rc < 0 ? rc : outcome;
}

static int begin_join(void *arg, pirn_task **victim)
{
    struct joined *joined = arg;
    int rc;

    *joined = (struct joined){.value = 0};
    rc = pirn_go_with(count_slowly, joined, NULL, &joined->task);
    return rc < 0 ? rc : pirn_go_with(join, joined, NULL, victim);
}

static int end_join(void *arg, int outcome)
{
    struct joined *joined = arg;
    pirn_join_op op;
    int rc;

    /* A cancelled join: join again. */
    pirn_join_init(&op, joined->task);
    rc = pirn_block_on(pirn_runtime_current(), &op.future,
                       PIRN_EXPIRED);
    EXPECT(rc == 0 || rc == -ETIMEDOUT);
    EXPECT(rc != 0 || op.rc == 0);
    pirn_task_unref(joined->task);
    return outcome == 3 || outcome == -ECANCELED ? 0 : -EIO;
}

/* Goal: a cancelled join leaves the task alone, and it can be joined again.
 * Method: a task of three sleeps. */
TEST(cancel_in_join)
{
    struct joined joined;

    CANCEL_SWEEP(begin_join, end_join, &joined, 6);
}

static int add_one(void *arg)
{
    ++*(int *)arg;
    return 0;
}

static int run_jobs(void *arg)
{
    int value = 0; /* on this stack: a job that outlived us would write here */
    int rc = pirn_blocking_run(add_one, &value);

    if (rc == 0) {
        ((struct joined *)arg)->value += value;
        rc = pirn_blocking_run(add_one, &value);
    }
    if (rc == 0)
        ((struct joined *)arg)->value += value;
    return rc;
}

static int begin_jobs(void *arg, pirn_task **victim)
{
    *(struct joined *)arg = (struct joined){.value = 0};
    return pirn_go_with(run_jobs, arg, NULL, victim);
}

static int end_jobs(void *arg, int outcome)
{
    int value = ((struct joined *)arg)->value;

    /* It has run or it has not; the count says which. */
    return outcome == 0 ? (value == 3 ? 0 : -EIO) : (value <= 1 ? 0 : -EIO);
}

/* Goal: a blocking call is not cut short, and the next one is not begun.
 * Method: two jobs in a row. */
TEST(cancel_in_blocking_run)
{
    struct joined joined;

    CANCEL_SWEEP(begin_jobs, end_jobs, &joined, 1);
}

/* Channels. */

enum { MESSAGES = 6 };

struct channel {
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    pirn_mpmc_sender *many_sender;
    pirn_mpmc_receiver *many_receiver;
    int sent;
    int received;
};

static const pirn_channel_options narrow = {.message_size = sizeof(int),
                                            .capacity = 2};

static int send_all(void *arg)
{
    struct channel *channel = arg;
    int rc = 0;

    while (channel->sent < MESSAGES && rc == 0) {
        rc = pirn_mpsc_send(channel->sender, &channel->sent, PIRN_NEVER);
        if (rc == 0)
            channel->sent++;
    }
    return rc == PIRN_ECLOSED ? 0 : rc;
}

static int receive_all(void *arg)
{
    struct channel *channel = arg;
    int rc = 0;

    while (channel->received < MESSAGES && rc == 0) {
        int message = -1;

        rc = pirn_mpsc_recv(channel->receiver, &message, PIRN_NEVER);
        if (rc == 0)
            EXPECT_EQ(channel->received++, message);
    }
    return rc == PIRN_ECLOSED ? 0 : rc;
}

static int make_channel(struct channel *channel)
{
    *channel = (struct channel){.sent = 0};
    return pirn_mpsc_new(&narrow, &channel->sender, &channel->receiver);
}

static int begin_send(void *arg, pirn_task **victim)
{
    struct channel *channel = arg;
    int rc = make_channel(channel);

    if (rc == 0)
        rc = pirn_go_with(send_all, channel, NULL, victim);
    return rc < 0 ? rc : pirn_go(receive_all, channel);
}

static int begin_receive(void *arg, pirn_task **victim)
{
    struct channel *channel = arg;
    int rc = make_channel(channel);

    if (rc == 0)
        rc = pirn_go_with(receive_all, channel, NULL, victim);
    return rc < 0 ? rc : pirn_go(send_all, channel);
}

static int end_channel(void *arg, int outcome)
{
    struct channel *channel = arg;
    int message;

    (void)outcome;
    while (pirn_mpsc_try_recv(channel->receiver, &message) == 0)
        EXPECT_EQ(channel->received++, message);
    /* The other one lives until the runtime ends, and may still send. */
    pirn_mpsc_receiver_close(channel->receiver);
    return channel->received == channel->sent ? 0 : -EIO;
}

static int end_send(void *arg, int outcome)
{
    struct channel *channel = arg;
    int rc;

    /* The receiver waits: it is asked to leave first. */
    (void)outcome;
    pirn_mpsc_sender_unref(channel->sender);
    (void)!pirn_runtime_turn(pirn_runtime_current(), PIRN_NEVER);
    rc = end_channel(arg, outcome);
    pirn_mpsc_receiver_free(channel->receiver);
    return rc;
}

static int end_receive(void *arg, int outcome)
{
    struct channel *channel = arg;
    int rc = end_channel(arg, outcome);

    /* The sender waits: it is answered that the channel is closed. */
    (void)!pirn_runtime_turn(pirn_runtime_current(), PIRN_NEVER);
    pirn_mpsc_sender_unref(channel->sender);
    pirn_mpsc_receiver_free(channel->receiver);
    return rc;
}

/* Goal: a cancelled send has sent nothing, a cancelled receive received nothing.
 * Method: six messages through a channel for two. */
TEST(cancel_in_channel)
{
    struct channel channel;

    CANCEL_SWEEP(begin_send, end_send, &channel, 4);
    CANCEL_SWEEP(begin_receive, end_receive, &channel, 4);
}

/* A receive that is handed a message and dropped. */
static int many_message;

static int send_one(void *arg)
{
    struct channel *channel = arg;
    int message = 7;
    int rc = pirn_yield();

    if (rc == 0)
        rc = pirn_mpmc_send(channel->many_sender, &message, PIRN_NEVER);
    channel->sent += rc == 0;
    return rc == 0 ? pirn_yield() : rc;
}

static int begin_receive_op(void *arg, pirn_task **victim)
{
    struct channel *channel = arg;
    pirn_mpmc_recv_op op;
    int rc;

    *channel = (struct channel){.sent = 0};
    many_message = 0;
    rc = pirn_mpmc_new(&narrow, &channel->many_sender, &channel->many_receiver);
    if (rc < 0)
        return rc;
    pirn_mpmc_recv_init(&op, channel->many_receiver, &many_message);
    rc = pirn_spawn(&op.future, sizeof op, NULL, victim);
    return rc < 0 ? rc : pirn_go(send_one, channel);
}

static int end_receive_op(void *arg, int outcome)
{
    struct channel *channel = arg;
    int message;

    channel->received = outcome >= 0 && many_message == 7;
    while (pirn_mpmc_try_recv(channel->many_receiver, &message) == 0)
        channel->received++;
    pirn_mpmc_receiver_unref(channel->many_receiver);
    pirn_mpmc_sender_unref(channel->many_sender);
    return channel->received == channel->sent ? 0 : -EIO;
}

/* Goal: a message on its way to a receive that is dropped is not lost.
 * Method: the receive is a stackless task; the sender pauses after the send. */
TEST(cancel_in_receive_operation)
{
    struct channel channel;

    CANCEL_SWEEP(begin_receive_op, end_receive_op, &channel, 3);
}

/* Permits. */

struct crowd {
    pirn_sem sem;
    pirn_mutex mutex;
    int inside;
    int done;
};

static int hold_permit(void *arg)
{
    struct crowd *crowd = arg;
    int rc = pirn_sem_acquire(&crowd->sem, 1, PIRN_NEVER);

    if (rc < 0)
        return rc;
    EXPECT_LE(++crowd->inside, 2);
    rc = pirn_yield();
    crowd->inside--;
    crowd->done++;
    pirn_sem_release(&crowd->sem, 1);
    return rc;
}

static int begin_permits(void *arg, pirn_task **victim)
{
    struct crowd *crowd = arg;
    int rc = 0;

    *crowd = (struct crowd){.sem = PIRN_SEM_INIT(2)};
    for (int i = 0; i < 5 && rc == 0; i++)
        rc = i == 3 ? pirn_go_with(hold_permit, crowd, NULL, victim)
                    : pirn_go(hold_permit, crowd);
    return rc;
}

static int end_permits(void *arg, int outcome)
{
    struct crowd *crowd = arg;
    uint32_t free;

    (void)!pirn_runtime_turn(pirn_runtime_current(), PIRN_NEVER);
    free = pirn_sem_available(&crowd->sem);
    EXPECT_EQ(outcome == 0 ? 5 : crowd->done, crowd->done);
    pirn_sem_deinit(&crowd->sem);
    return free == 2 && crowd->done >= 4 ? 0 : -EIO;
}

/* Goal: permits are neither lost nor made by a cancelled acquire.
 * Method: five fibers for two permits; one in the middle is cancelled. */
TEST(cancel_in_semaphore)
{
    struct crowd crowd;

    CANCEL_SWEEP(begin_permits, end_permits, &crowd, 4);
}

static int begin_permit_op(void *arg, pirn_task **victim)
{
    struct crowd *crowd = arg;
    pirn_sem_acquire_op op;
    int rc;

    *crowd = (struct crowd){.sem = PIRN_SEM_INIT(1)};
    rc = pirn_go(hold_permit, crowd);
    if (rc < 0)
        return rc;
    pirn_sem_acquire_init(&op, &crowd->sem, 1);
    rc = pirn_spawn(&op.future, sizeof op, NULL, victim);
    return rc < 0 ? rc : pirn_go(hold_permit, crowd);
}

static int end_permit_op(void *arg, int outcome)
{
    struct crowd *crowd = arg;

    /* A permit that nobody took out of the task has been discarded with it. */
    (void)outcome;
    (void)!pirn_runtime_turn(pirn_runtime_current(), PIRN_NEVER);
    EXPECT_EQ(1, pirn_sem_available(&crowd->sem));
    pirn_sem_deinit(&crowd->sem);
    return crowd->done == 2 ? 0 : -EIO;
}

/* Goal: a permit that was granted to an acquire which is dropped goes on.
 * Method: a stackless task between two fibers. */
TEST(cancel_in_semaphore_operation)
{
    struct crowd crowd;

    CANCEL_SWEEP(begin_permit_op, end_permit_op, &crowd, 2);
}

static int lock_and_count(void *arg)
{
    struct crowd *crowd = arg;
    int rc = pirn_mutex_lock(&crowd->mutex, PIRN_NEVER);

    if (rc < 0)
        return rc;
    EXPECT_EQ(1, ++crowd->inside);
    rc = pirn_yield();
    crowd->inside--;
    crowd->done++;
    pirn_mutex_unlock(&crowd->mutex);
    return rc;
}

static int begin_mutex(void *arg, pirn_task **victim)
{
    struct crowd *crowd = arg;
    int rc = 0;

    *crowd = (struct crowd){.mutex = PIRN_MUTEX_INIT};
    for (int i = 0; i < 4 && rc == 0; i++)
        rc = i == 2 ? pirn_go_with(lock_and_count, crowd, NULL, victim)
                    : pirn_go(lock_and_count, crowd);
    return rc;
}

static int end_mutex(void *arg, int outcome)
{
    struct crowd *crowd = arg;

    (void)outcome;
    (void)!pirn_runtime_turn(pirn_runtime_current(), PIRN_NEVER);
    EXPECT_EQ(0, pirn_mutex_try_lock(&crowd->mutex));
    pirn_mutex_unlock(&crowd->mutex);
    pirn_mutex_deinit(&crowd->mutex);
    return crowd->done >= 3 ? 0 : -EIO;
}

/* Goal: a mutex is passed on by a cancelled lock, and is free in the end.
 * Method: four fibers; the third is cancelled. */
TEST(cancel_in_mutex)
{
    struct crowd crowd;

    CANCEL_SWEEP(begin_mutex, end_mutex, &crowd, 4);
}
