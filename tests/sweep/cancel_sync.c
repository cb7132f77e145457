/* SPDX-License-Identifier: MIT */
/* tests/sweep/cancel_sync.c - tasks that wait for each other by locks and their
 * kin, one of them cancelled at each step: nothing that was granted is lost, and
 * the others go on.
 */
#include <pirn/async.h>
#include <pirn/sync.h>

#include "cancel_fixture.h"

static pirn_sem sem;
static pirn_mutex mutex;
static pirn_cond cond;
static pirn_notify notify;
static pirn_once once;
static pirn_rwlock rwlock;
static int inside, others_done;

/* What takes a while.  Not a sleep: the end does not wait for those of others. */
static int take_a_while(void)
{
    int rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++)
        rc = pirn_yield();
    return rc;
}

static int only_cancelled(int outcome)
{
    return outcome == 0 || outcome == -ECANCELED ? 0 : outcome;
}

/* True unless one of the others is stuck. */
static bool have_others_done(int count)
{
    return others_done == count;
}

static int start_others(pirn_fiber_fn *fn, int count)
{
    int rc = 0;

    others_done = 0;
    for (int i = 0; i < count && rc == 0; i++)
        rc = pirn_go(fn, NULL);
    return rc;
}

/* Semaphore. */

static int acquire_all_sizes(void)
{
    for (uint32_t count = 1; count <= 3; count++) {
        int rc = pirn_sem_acquire(&sem, count, PIRN_NEVER);

        if (rc < 0)
            return rc;
        rc = pirn_yield();
        pirn_sem_release(&sem, count);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int other_acquires(void *arg)
{
    int rc = acquire_all_sizes();

    (void)arg;
    others_done += rc == 0;
    return rc;
}

static int victim_acquires(void *arg)
{
    (void)arg;
    return acquire_all_sizes();
}

static int begin_sem(void *arg, pirn_task **victim)
{
    int rc = pirn_sem_init(&sem, 3);

    (void)arg;
    if (rc == 0)
        rc = start_others(other_acquires, 1);
    if (rc == 0)
        rc = pirn_go_with(victim_acquires, NULL, NULL, victim);
    if (rc == 0)
        rc = pirn_go(other_acquires, NULL);
    return rc;
}

static int end_sem(void *arg, int outcome)
{
    (void)arg;
    if (!have_others_done(2) || pirn_sem_available(&sem) != 3)
        return -EIO;
    pirn_sem_deinit(&sem);
    return only_cancelled(outcome);
}

/* Goal: every permit comes back, and the others get theirs.
 * Method: requests of one to three of three. */
TEST(sem_victim_loses_no_permit)
{
    CANCEL_SWEEP(begin_sem, end_sem, NULL, 5);
}

/* Mutex and condition. */

static int wait_for_turn(int *turn)
{
    int rc = pirn_mutex_lock(&mutex, PIRN_NEVER);

    if (rc < 0)
        return rc;
    while (rc == 0 && *turn == 0)
        rc = pirn_cond_wait(&cond, &mutex, PIRN_NEVER);
    if (inside++ != 0)
        rc = -EIO;
    if (rc == 0)
        (*turn)--;
    if (rc == 0)
        rc = pirn_yield();
    inside--;
    pirn_mutex_unlock(&mutex);
    return rc;
}

static int turns;

static int other_waits(void *arg)
{
    int rc = wait_for_turn(&turns);

    (void)arg;
    others_done += rc == 0;
    return rc;
}

static int victim_waits(void *arg)
{
    (void)arg;
    return wait_for_turn(&turns);
}

/* One turn at a time, each with one signal: who is signalled and cancelled must
 * pass the signal on, or take the turn. */
static int give_turns(void *arg)
{
    int rc = 0;

    (void)arg;
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = take_a_while();
        if (rc == 0)
            rc = pirn_mutex_lock(&mutex, PIRN_NEVER);
        if (rc < 0)
            break;
        turns++;
        pirn_cond_signal(&cond);
        pirn_mutex_unlock(&mutex);
    }
    others_done += rc == 0;
    return rc;
}

static int begin_cond(void *arg, pirn_task **victim)
{
    int rc;

    (void)arg;
    pirn_mutex_init(&mutex);
    pirn_cond_init(&cond);
    turns = inside = 0;
    rc = start_others(other_waits, 1);
    if (rc == 0)
        rc = pirn_go_with(victim_waits, NULL, NULL, victim);
    if (rc == 0)
        rc = pirn_go(other_waits, NULL);
    if (rc == 0)
        rc = pirn_go(give_turns, NULL);
    return rc;
}

static int end_cond(void *arg, int outcome)
{
    (void)arg;
    if (!have_others_done(3) || turns > 1)
        return -EIO;
    /* Nobody has left it locked; deinit looks. */
    pirn_mutex_deinit(&mutex);
    pirn_cond_deinit(&cond);
    return only_cancelled(outcome);
}

/* Goal: the victim has the mutex after its wait and gives it up; a signal that
 * it got and did not use reaches another. */
TEST(cond_victim_keeps_the_mutex_and_no_signal)
{
    CANCEL_SWEEP(begin_cond, end_cond, NULL, 5);
}

/* Notify. */

static int other_hears(void *arg)
{
    int rc = pirn_notify_wait(&notify, PIRN_NEVER);

    (void)arg;
    others_done += rc == 0;
    return rc;
}

static int victim_hears(void *arg)
{
    (void)arg;
    return pirn_notify_wait(&notify, PIRN_NEVER);
}

static int tell_twice(void *arg)
{
    int rc = take_a_while();

    (void)arg;
    pirn_notify_one(&notify);
    if (rc == 0)
        rc = take_a_while();
    pirn_notify_one(&notify);
    return rc;
}

static int begin_notify(void *arg, pirn_task **victim)
{
    int rc;

    (void)arg;
    pirn_notify_init(&notify);
    others_done = 0;
    rc = pirn_go_with(victim_hears, NULL, NULL, victim);
    if (rc == 0)
        rc = pirn_go(other_hears, NULL);
    if (rc == 0)
        rc = pirn_go(tell_twice, NULL);
    return rc;
}

static int end_notify(void *arg, int outcome)
{
    /* Two were told: the other and the victim, or the other, and one is kept. */
    bool is_kept = pirn_notify_try_wait(&notify) == 0;

    (void)arg;
    pirn_notify_deinit(&notify);
    if (!have_others_done(1) || is_kept != (outcome != 0))
        return -EIO;
    return only_cancelled(outcome);
}

/* Goal: a notification that the victim got and did not see reaches the other,
 * or is kept; none is doubled. */
TEST(notify_victim_passes_it_on)
{
    CANCEL_SWEEP(begin_notify, end_notify, NULL, 3);
}

/* Once. */

static int product;

static int make_slowly(void *arg)
{
    int rc = take_a_while();

    (void)arg;
    if (rc == 0)
        product++;
    return rc;
}

static int other_uses(void *arg)
{
    int rc = pirn_once_call(&once, make_slowly, NULL, PIRN_NEVER);

    (void)arg;
    others_done += rc == 0 && product == 1;
    return rc;
}

static int victim_uses(void *arg)
{
    (void)arg;
    return pirn_once_call(&once, make_slowly, NULL, PIRN_NEVER);
}

static int begin_once(void *arg, pirn_task **victim)
{
    int rc;

    (void)arg;
    pirn_once_init(&once);
    product = 0;
    rc = pirn_go_with(victim_uses, NULL, NULL, victim);
    if (rc == 0)
        rc = start_others(other_uses, 2);
    return rc;
}

static int end_once(void *arg, int outcome)
{
    (void)arg;
    if (!have_others_done(2) || !pirn_once_is_done(&once))
        return -EIO;
    pirn_once_deinit(&once);
    return only_cancelled(outcome);
}

/* Goal: a maker that is cancelled hands over; it is made once in the end. */
TEST(once_victim_hands_over)
{
    CANCEL_SWEEP(begin_once, end_once, NULL, 3);
}

/* Barrier. */

static pirn_barrier barrier;
static int leaders;

static int meet(void)
{
    int rc = pirn_barrier_wait(&barrier, PIRN_NEVER);

    leaders += rc > 0;
    return rc < 0 ? rc : 0;
}

static int other_meets(void *arg)
{
    int rc = meet();

    (void)arg;
    others_done += rc == 0;
    return rc;
}

static int late_one_meets(void *arg)
{
    int rc = take_a_while();

    return rc < 0 ? rc : other_meets(arg);
}

static int victim_meets(void *arg)
{
    (void)arg;
    return meet();
}

static int begin_barrier(void *arg, pirn_task **victim)
{
    int rc = pirn_barrier_init(&barrier, 3);

    (void)arg;
    leaders = 0;
    if (rc == 0)
        rc = start_others(other_meets, 1);
    if (rc == 0)
        rc = pirn_go_with(victim_meets, NULL, NULL, victim);
    if (rc == 0)
        rc = pirn_go(late_one_meets, NULL);
    if (rc == 0)
        rc = pirn_go(late_one_meets, NULL);
    return rc;
}

static int end_barrier(void *arg, int outcome)
{
    (void)arg;
    if (!have_others_done(outcome == 0 ? 2 : 3) || leaders != 1)
        return -EIO;
    return only_cancelled(outcome);
}

/* Goal: a victim that gives up has not come, and the others wait for one more;
 * one that has gone on counts.
 * Method: four come to a barrier of three. */
TEST(barrier_victim_has_not_come)
{
    CANCEL_SWEEP(begin_barrier, end_barrier, NULL, 2);
}

/* A stackless task, which is dropped. */

struct reader {
    pirn_frame frame;
    pirn_rwlock_op lock;
    pirn_mutex_lock_op mutex_lock;
    pirn_mutex_guard guard;
    pirn_sleep_op sleep;
    bool reads;
};

static void reader_clean_up(pirn_frame *frame)
{
    struct reader *r = PIRN_CONTAINER_OF(frame, struct reader, frame);

    pirn_mutex_guard_unlock(&r->guard);
    if (r->reads)
        pirn_rwlock_read_unlock(&rwlock);
}

static enum pirn_poll reader_poll(pirn_future *self, pirn_cx *cx)
{
    struct reader *r = PIRN_FRAME_OF(self, struct reader, frame);

    PIRN_ASYNC_BEGIN(&r->frame, cx);
    pirn_rwlock_read_init(&r->lock, &rwlock);
    PIRN_AWAIT(&r->lock.future);
    r->reads = true;
    pirn_mutex_lock_init(&r->mutex_lock, &mutex);
    PIRN_AWAIT(&r->mutex_lock.future);
    r->guard = pirn_mutex_guard_of(&mutex);
    pirn_sleep_init(&r->sleep, pirn_after_ms(1));
    PIRN_AWAIT(&r->sleep.future);
    PIRN_ASYNC_END();
}

static int other_writes(void *arg)
{
    int rc = 0;

    (void)arg;
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = pirn_rwlock_write(&rwlock, PIRN_NEVER);
        if (rc < 0)
            return rc;
        rc = pirn_mutex_lock(&mutex, PIRN_NEVER);
        if (rc == 0)
            rc = take_a_while();
        pirn_mutex_unlock(&mutex);
        pirn_rwlock_write_unlock(&rwlock);
    }
    others_done += rc == 0;
    return rc;
}

static int begin_stackless(void *arg, pirn_task **victim)
{
    static const pirn_async_ops ops =
        PIRN_ASYNC_OPS(reader_poll, reader_clean_up);
    struct reader reader = {.reads = false};
    int rc = pirn_rwlock_init(&rwlock, 0);

    (void)arg;
    pirn_mutex_init(&mutex);
    if (rc == 0)
        rc = start_others(other_writes, 2);
    if (rc < 0)
        return rc;
    pirn_frame_init(&reader.frame, &ops);
    return pirn_spawn(&reader.frame.future, sizeof reader, NULL, victim);
}

static int end_stackless(void *arg, int outcome)
{
    (void)arg;
    if (!have_others_done(2))
        return -EIO;
    pirn_mutex_deinit(&mutex);
    pirn_rwlock_deinit(&rwlock);
    return only_cancelled(outcome);
}

/* Goal: a stackless victim that is dropped in line, or while it holds, leaves
 * nothing locked. */
TEST(stackless_victim_leaves_nothing_locked)
{
    CANCEL_SWEEP(begin_stackless, end_stackless, NULL, 3);
}
