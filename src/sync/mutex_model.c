/* SPDX-License-Identifier: MIT */
/* src/sync/mutex_model.c - the mutex between threads. */
#include <pirn/mutex.h>

#include "engine/model_home.h"

static pirn_mutex mutex;
static pirn_mutex_lock_op ops[3];
static struct model_bell bells[3];
static PIRN_SHARED(int) guarded;
static enum pirn_poll polls[3];

static void count(void)
{
    pirn_cell_write(&guarded, pirn_cell_read(&guarded) + 1);
}

static void make_locked(void)
{
    pirn_mutex_init(&mutex);
    EXPLORE_CHECK(pirn_mutex_try_lock(&mutex) == 0);
}

static void queue(int index)
{
    pirn_mutex_lock_init(&ops[index], &mutex);
    EXPLORE_CHECK(model_bell_poll(&bells[index], &ops[index].future) ==
                  PIRN_PENDING);
}

/* Look, and look again if woken; count if locked. */
static void lock_count_unlock(void *arg)
{
    int index = *(int *)arg;
    enum pirn_poll poll;

    pirn_mutex_lock_init(&ops[index], &mutex);
    poll = model_bell_poll(&bells[index], &ops[index].future);
    if (poll == PIRN_PENDING && model_bell_rang(&bells[index])) {
        poll = model_bell_poll(&bells[index], &ops[index].future);
        EXPLORE_CHECK(poll == PIRN_READY);
    }
    polls[index] = poll;
    if (poll == PIRN_PENDING)
        return;
    count();
    pirn_mutex_unlock(&mutex);
}

/* In the body, after the join: whoever still waits has been woken; serve all.
 */
static void serve(int index)
{
    if (polls[index] == PIRN_READY)
        return;
    EXPLORE_CHECK(model_bell_rang(&bells[index]));
    EXPLORE_CHECK(model_bell_poll(&bells[index], &ops[index].future) ==
                  PIRN_READY);
    count();
    pirn_mutex_unlock(&mutex);
}

static int numbers[3] = {0, 1, 2};

/* Goal: one at a time, each sees what the one before did, nobody is forgotten.
 * Method: two threads; a lock in line, a hand-over and a lock of what has just
 * become free are all among the schedules. */
MODEL(mutex_two_threads_take_turns, .preemptions = 4)
{
    pirn_mutex_init(&mutex);
    explore_thread(lock_count_unlock, &numbers[0]);
    explore_thread(lock_count_unlock, &numbers[1]);
    explore_join();
    serve(0);
    serve(1);
    EXPLORE_CHECK(pirn_cell_read(&guarded) == 2);
    pirn_mutex_deinit(&mutex);
}

static void try_and_count(void *arg)
{
    (void)arg;
    if (pirn_mutex_try_lock(&mutex) < 0)
        return;
    count();
    pirn_mutex_unlock(&mutex);
}

/* Goal: the same between a lock, and two that only try. */
MODEL(mutex_lock_against_tries, .preemptions = 3, .stale = 2)
{
    pirn_mutex_init(&mutex);
    explore_thread(lock_count_unlock, &numbers[0]);
    explore_thread(try_and_count, NULL);
    explore_thread(try_and_count, NULL);
    explore_join();
    serve(0);
    EXPLORE_CHECK(pirn_cell_read(&guarded) >= 1);
    pirn_mutex_deinit(&mutex);
}

static void count_and_unlock(void *arg)
{
    (void)arg;
    count();
    pirn_mutex_unlock(&mutex);
}

static void drop_first(void *arg)
{
    (void)arg;
    pirn_future_drop(&ops[0].future);
}

/* Goal: an unlock and a drop of the first in line reach the second, whichever
 * is first. */
MODEL(mutex_hand_over_against_drop, .preemptions = 4)
{
    make_locked();
    queue(0);
    queue(1);
    explore_thread(count_and_unlock, NULL);
    explore_thread(drop_first, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    serve(1);
    EXPLORE_CHECK(pirn_cell_read(&guarded) == 2);
    pirn_mutex_deinit(&mutex);
}

/* Goal: the same with nobody behind, and somebody who tries: it is free in the
 * end. */
MODEL(mutex_hand_over_against_drop_and_try, .preemptions = 3, .stale = 2)
{
    make_locked();
    queue(0);
    explore_thread(count_and_unlock, NULL);
    explore_thread(drop_first, NULL);
    explore_thread(try_and_count, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    pirn_mutex_deinit(&mutex);
}

/* Goal: a newcomer, an unlock and a drop at once. */
MODEL(mutex_newcomer_against_unlock_and_drop, .preemptions = 2, .stale = 2)
{
    make_locked();
    queue(0);
    explore_thread(count_and_unlock, NULL);
    explore_thread(drop_first, NULL);
    explore_thread(lock_count_unlock, &numbers[1]);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    serve(1);
    EXPLORE_CHECK(pirn_cell_read(&guarded) == 2);
    pirn_mutex_deinit(&mutex);
}

/* A mutex in an object whose last holder frees it. */
static pirn_mutex *brief;

static void unlock_brief(void *arg)
{
    (void)arg;
    pirn_mutex_unlock(brief);
}

static void free_brief(void)
{
    pirn_mutex_unlock(brief);
    pirn_mutex_deinit(brief);
    explore_heap.give(explore_heap.ctx, brief, sizeof *brief,
                      _Alignof(pirn_mutex));
}

static PIRN_ATOMIC(int) freed;

static void lock_brief_and_free(void *arg)
{
    (void)arg;
    if (model_bell_poll(&bells[0], &ops[0].future) != PIRN_READY) {
        pirn_future_drop(&ops[0].future);
        if (pirn_mutex_try_lock(brief) < 0)
            return;
    }
    free_brief();
    pirn__store(&freed, 1, relaxed);
}

/* Goal: who locks it next may free it, although the unlock before has perhaps
 * not returned. */
MODEL(mutex_freed_by_the_next_holder, .preemptions = 3, .stale = 2)
{
    brief = explore_heap.take(explore_heap.ctx, sizeof *brief,
                              _Alignof(pirn_mutex));
    pirn_mutex_init(brief);
    EXPLORE_CHECK(pirn_mutex_try_lock(brief) == 0);
    pirn_mutex_lock_init(&ops[0], brief);
    EXPLORE_CHECK(model_bell_poll(&bells[0], &ops[0].future) == PIRN_PENDING);
    explore_thread(unlock_brief, NULL);
    explore_thread(lock_brief_and_free, NULL);
    explore_join();
    if (pirn__load(&freed, relaxed) == 0) {
        EXPLORE_CHECK(pirn_mutex_try_lock(brief) == 0);
        free_brief();
    }
}
