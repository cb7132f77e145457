/* SPDX-License-Identifier: MIT */
/* src/sync/sem_model.c - the semaphore, and with it the wait list, between
 * threads.
 */
#include <pirn/sem.h>

#include "engine/model_home.h"

static pirn_sem sem;
static pirn_sem_acquire_op ops[2];
static struct model_bell bells[2];

static void make(uint32_t permits)
{
    EXPLORE_CHECK(pirn_sem_init(&sem, permits) == 0);
}

/* In the body, before the threads: wait in line for so many. */
static void queue(int index, uint32_t permits)
{
    pirn_sem_acquire_init(&ops[index], &sem, permits);
    EXPLORE_CHECK(model_bell_poll(&bells[index], &ops[index].future) ==
                  PIRN_PENDING);
}

/* After the join: this one was woken if it waited, and has its permits. */
static void check_served(int index)
{
    EXPLORE_CHECK(model_bell_rang(&bells[index]));
    EXPLORE_CHECK(model_bell_poll(&bells[index], &ops[index].future) ==
                  PIRN_READY);
    EXPLORE_CHECK(ops[index].rc == 0);
    EXPLORE_CHECK(model_bell_wakers(&bells[index]) == 0);
}

static void release_one(void *arg)
{
    (void)arg;
    pirn_sem_release(&sem, 1);
}

static void drop_first(void *arg)
{
    (void)arg;
    pirn_future_drop(&ops[0].future);
}

/* Goal: whichever of a grant and a drop comes first, the permit reaches the
 * next in line, who is woken. */
MODEL(sem_grant_against_drop, .preemptions = 3, .stale = 2)
{
    make(0);
    queue(0, 1);
    queue(1, 1);
    explore_thread(release_one, NULL);
    explore_thread(drop_first, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    check_served(1);
    EXPLORE_CHECK(pirn_sem_available(&sem) == 0);
    pirn_sem_deinit(&sem);
}

/* Goal: the same with nobody behind: the permit is free. */
MODEL(sem_grant_against_drop_of_the_only_one, .preemptions = 3, .stale = 2)
{
    make(0);
    queue(0, 1);
    explore_thread(release_one, NULL);
    explore_thread(drop_first, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    EXPLORE_CHECK(pirn_sem_available(&sem) == 1);
    EXPLORE_CHECK(pirn_sem_try_acquire(&sem, 1) == 0);
    pirn_sem_deinit(&sem);
}

/* Goal: a head that gives up does not leave those behind it waiting although
 * there is enough for them, while a release comes as well. */
MODEL(sem_head_gives_up_against_release, .preemptions = 3, .stale = 2)
{
    make(1);
    queue(0, 3);
    queue(1, 2);
    explore_thread(release_one, NULL);
    explore_thread(drop_first, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    check_served(1);
    EXPLORE_CHECK(pirn_sem_available(&sem) == 0);
    pirn_sem_deinit(&sem);
}

/* Goal: two releases together serve a request for both.
 * Method: the request stands in line already, or comes at the same time. */
MODEL(sem_two_releases_serve_one_request, .preemptions = 2, .stale = 2)
{
    make(0);
    queue(0, 2);
    explore_thread(release_one, NULL);
    explore_thread(release_one, NULL);
    explore_join();
    check_served(0);
    EXPLORE_CHECK(pirn_sem_available(&sem) == 0);
}

static void release_three(void *arg)
{
    (void)arg;
    pirn_sem_release(&sem, 3);
}

static void drop_second_and_come(void *arg)
{
    (void)arg;
    pirn_future_drop(&ops[1].future);
    if (pirn_sem_try_acquire(&sem, 1) == 0)
        pirn_sem_release(&sem, 1);
}

/* Goal: while a release serves the line in batches, others may serve the rest
 * and come the short way, and no permit is lost.
 * Method: a batch is one waker here. */
MODEL(sem_release_in_batches_against_others, .preemptions = 3, .stale = 2)
{
    make(0);
    queue(0, 1);
    queue(1, 1);
    explore_thread(release_three, NULL);
    explore_thread(drop_second_and_come, NULL);
    explore_join();
    check_served(0);
    EXPLORE_CHECK(model_bell_wakers(&bells[1]) == 0);
    EXPLORE_CHECK(pirn_sem_available(&sem) == 2);
    EXPLORE_CHECK(pirn_sem_try_acquire(&sem, 2) == 0);
    pirn_sem_deinit(&sem);
}

static enum pirn_poll first_poll;

static void acquire_first(void *arg)
{
    (void)arg;
    pirn_sem_acquire_init(&ops[0], &sem, 1);
    first_poll = model_bell_poll(&bells[0], &ops[0].future);
}

/* Goal: a newcomer and a release do not miss each other. */
MODEL(sem_newcomer_against_release, .preemptions = 4)
{
    make(0);
    explore_thread(acquire_first, NULL);
    explore_thread(release_one, NULL);
    explore_join();
    if (first_poll == PIRN_PENDING)
        check_served(0);
    EXPLORE_CHECK(pirn_sem_available(&sem) == 0);
    pirn_sem_deinit(&sem);
}

static void acquire_second(void *arg)
{
    (void)arg;
    pirn_sem_acquire_init(&ops[1], &sem, 1);
    if (model_bell_poll(&bells[1], &ops[1].future) == PIRN_PENDING)
        pirn_future_drop(&ops[1].future);
    else
        pirn_sem_release(&sem, 1);
}

/* Goal: two newcomers for one permit: who waits is served when the other goes,
 * or gives up. */
MODEL(sem_two_newcomers_for_one_permit, .preemptions = 3, .stale = 2)
{
    make(1);
    explore_thread(acquire_first, NULL);
    explore_thread(acquire_second, NULL);
    explore_join();
    if (first_poll == PIRN_PENDING)
        check_served(0);
    pirn_sem_release(&sem, 1);
    EXPLORE_CHECK(pirn_sem_available(&sem) == 1);
    pirn_sem_deinit(&sem);
}

static PIRN_SHARED(int) guarded;

static void count_if_free(void *arg)
{
    (void)arg;
    if (pirn_sem_try_acquire(&sem, 1) < 0)
        return;
    pirn_cell_write(&guarded, pirn_cell_read(&guarded) + 1);
    pirn_sem_release(&sem, 1);
}

/* Goal: permits order what they guard, on the short ways. */
MODEL(sem_permits_guard_data, .preemptions = 3)
{
    make(1);
    explore_thread(count_if_free, NULL);
    explore_thread(count_if_free, NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&guarded) >= 1);
}

static void write_and_release(void *arg)
{
    (void)arg;
    pirn_cell_write(&guarded, 7);
    pirn_sem_release(&sem, 2);
}

static void take_rest(void *arg)
{
    (void)arg;
    /* What a grant leaves over is taken on the short way. */
    if (pirn_sem_try_acquire(&sem, 1) == 0)
        EXPLORE_CHECK(pirn_cell_read(&guarded) == 7);
}

/* Goal: what is left over after a grant carries what was written before the
 * release. */
MODEL(sem_rest_of_a_grant_guards_data, .preemptions = 3)
{
    make(0);
    queue(0, 1);
    explore_thread(write_and_release, NULL);
    explore_thread(take_rest, NULL);
    explore_join();
    check_served(0);
}

static void write_release_one(void *arg)
{
    (void)arg;
    pirn_cell_write(&guarded, 7);
    pirn_sem_release(&sem, 1);
}

static void drop_then_take(void *arg)
{
    (void)arg;
    drop_first(NULL);
    if (pirn_sem_try_acquire(&sem, 1) == 0)
        EXPLORE_CHECK(pirn_cell_read(&guarded) == 7);
}

/* Goal: permits that were added while somebody waited for more carry it, too.
 */
MODEL(sem_permits_from_under_a_waiter_guard_data, .preemptions = 3)
{
    make(0);
    queue(0, 2);
    explore_thread(write_release_one, NULL);
    explore_thread(drop_then_take, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
}

static void come_for_two_give_up_take_one(void *arg)
{
    (void)arg;
    pirn_sem_acquire_init(&ops[0], &sem, 2);
    if (model_bell_poll(&bells[0], &ops[0].future) == PIRN_READY)
        return;
    drop_then_take(NULL);
}

/* Goal: the same for permits that came just before somebody stood in line. */
MODEL(sem_permits_before_a_waiter_guard_data, .preemptions = 4)
{
    make(0);
    explore_thread(write_release_one, NULL);
    explore_thread(come_for_two_give_up_take_one, NULL);
    explore_join();
}

static void take_away(void *arg)
{
    (void)arg;
    if (pirn_sem_remove(&sem, 1) == 1)
        EXPLORE_CHECK(pirn_cell_read(&guarded) == 7);
}

/* Goal: removed permits carry it as acquired ones do. */
MODEL(sem_removed_permits_guard_data, .preemptions = 3)
{
    make(0);
    explore_thread(write_release_one, NULL);
    explore_thread(take_away, NULL);
    explore_join();
}

static void close_it(void *arg)
{
    (void)arg;
    pirn_cell_write(&guarded, 9);
    pirn_sem_close(&sem);
}

static void acquire_or_closed(void *arg)
{
    (void)arg;
    acquire_first(NULL);
    if (first_poll == PIRN_READY && ops[0].rc == PIRN_ECLOSED)
        EXPLORE_CHECK(pirn_cell_read(&guarded) == 9);
}

/* Goal: a close reaches who waits and who comes, once, with what came before
 * it. */
MODEL(sem_close_against_newcomer, .preemptions = 3)
{
    make(0);
    queue(1, 1);
    explore_thread(close_it, NULL);
    explore_thread(acquire_or_closed, NULL);
    explore_join();
    if (first_poll == PIRN_PENDING) {
        EXPLORE_CHECK(model_bell_rang(&bells[0]));
        EXPLORE_CHECK(model_bell_poll(&bells[0], &ops[0].future) == PIRN_READY);
    }
    EXPLORE_CHECK(ops[0].rc == PIRN_ECLOSED);
    EXPLORE_CHECK(model_bell_rang(&bells[1]));
    EXPLORE_CHECK(model_bell_poll(&bells[1], &ops[1].future) == PIRN_READY);
    EXPLORE_CHECK(ops[1].rc == PIRN_ECLOSED);
    pirn_sem_deinit(&sem);
}

static void look_whether_closed(void *arg)
{
    (void)arg;
    if (pirn_sem_is_closed(&sem))
        EXPLORE_CHECK(pirn_cell_read(&guarded) == 9);
}

/* Goal: the same for who would find a permit, and for who only asks. */
MODEL(sem_close_against_acquire_and_look, .preemptions = 3)
{
    make(1);
    explore_thread(close_it, NULL);
    explore_thread(acquire_or_closed, NULL);
    explore_thread(look_whether_closed, NULL);
    explore_join();
    EXPLORE_CHECK(first_poll == PIRN_READY);
    pirn_sem_deinit(&sem);
}

/* Goal: a close and a release at once lose no permit. */
MODEL(sem_close_against_release, .preemptions = 3)
{
    make(0);
    queue(0, 2);
    explore_thread(close_it, NULL);
    explore_thread(release_one, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_rang(&bells[0]));
    EXPLORE_CHECK(model_bell_poll(&bells[0], &ops[0].future) == PIRN_READY);
    EXPLORE_CHECK(ops[0].rc == PIRN_ECLOSED);
    EXPLORE_CHECK(pirn_sem_available(&sem) == 1);
    EXPLORE_CHECK(pirn_sem_is_closed(&sem));
}

/* A semaphore that whoever acquires frees. */
static pirn_sem *brief;
static PIRN_ATOMIC(int) freed;

static void free_brief(void)
{
    pirn_sem_deinit(brief);
    explore_heap.give(explore_heap.ctx, brief, sizeof *brief,
                      _Alignof(pirn_sem));
    pirn__store(&freed, 1, relaxed);
}

static void release_brief(void *arg)
{
    (void)arg;
    pirn_sem_release(brief, 1);
}

static void acquire_brief_and_free(void *arg)
{
    (void)arg;
    if (model_bell_poll(&bells[0], &ops[0].future) == PIRN_READY) {
        free_brief();
        return;
    }
    /* Not yet: give up, and look once more on the short way. */
    pirn_future_drop(&ops[0].future);
    if (pirn_sem_try_acquire(brief, 1) == 0)
        free_brief();
}

/* Goal: who acquires what the release of one permit gave may free the
 * semaphore at once, granted in line, or on the short way after it gave up. */
MODEL(sem_freed_by_who_acquires, .preemptions = 3, .stale = 2)
{
    brief =
        explore_heap.take(explore_heap.ctx, sizeof *brief, _Alignof(pirn_sem));
    EXPLORE_CHECK(pirn_sem_init(brief, 0) == 0);
    pirn_sem_acquire_init(&ops[0], brief, 1);
    EXPLORE_CHECK(model_bell_poll(&bells[0], &ops[0].future) == PIRN_PENDING);
    explore_thread(release_brief, NULL);
    explore_thread(acquire_brief_and_free, NULL);
    explore_join();
    if (pirn__load(&freed, relaxed) == 0)
        free_brief();
}
