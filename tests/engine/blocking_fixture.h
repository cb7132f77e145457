/* SPDX-License-Identifier: MIT */
/* tests/engine/blocking_fixture.h - a runtime's place for the tests of
 * src/blocking: a home without a scheduler that counts what it is told, an
 * allocator that counts and can fail, and jobs that wait until the test lets
 * them go.
 */
#ifndef PIRN_TESTS_ENGINE_BLOCKING_FIXTURE_H
#define PIRN_TESTS_ENGINE_BLOCKING_FIXTURE_H

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/lock.h"
#include "blocking/pool.h"
#include "engine/test.h"
#include "sys/fork.h"
#include "sys/sys.h"
#include "task/local.h"

typedef PIRN_ATOMIC(int) test_count;

static inline int count_of(test_count *count)
{
    /* acquire [test.count]: sees what was done before it was counted. */
    return pirn__load(count, acquire);
}

static inline int count_up(test_count *count)
{
    /* acq_rel [test.count]: publishes what was done before; returns the count
     * before. */
    return pirn__add(count, 1, acq_rel);
}

static inline int count_down(test_count *count)
{
    /* acq_rel [test.count]: as above. */
    return pirn__sub(count, 1, acq_rel);
}

struct test_home {
    struct pirn__home home; /* first, as in a runtime */
    pirn_alloc alloc;
    test_count pieces;   /* of memory that are out */
    test_count fails_in; /* allocations until one fails; < 0: never */
    test_count wakes;
    test_count failures;
    test_count freed;
    pirn_failure failure; /* the last one */
    pirn_runtime *before; /* what was entered */
};

static inline void *test_take(void *ctx, size_t size, size_t align)
{
    struct test_home *home = ctx;

    if (count_down(&home->fails_in) == 0)
        return NULL;
    count_up(&home->pieces);
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static inline void test_give(void *ctx, void *memory, size_t size, size_t align)
{
    struct test_home *home = ctx;

    (void)size;
    (void)align;
    free(memory);
    count_down(&home->pieces);
}

static inline struct test_home *test_home_of(struct pirn__home *home)
{
    return PIRN_CONTAINER_OF(home, struct test_home, home);
}

static inline void test_wake(struct pirn__home *home)
{
    count_up(&test_home_of(home)->wakes);
}

static inline void test_failed(struct pirn__home *home,
                               const pirn_failure *failure)
{
    test_home_of(home)->failure = *failure;
    count_up(&test_home_of(home)->failures);
}

static inline void test_free(struct pirn__home *home)
{
    count_up(&test_home_of(home)->freed);
}

static inline uint64_t test_now(struct pirn__home *home)
{
    (void)home;
    return pirn__sys->clock_ns();
}

/* Nobody drives here. */
static inline void test_drive_or_park(struct pirn__home *home,
                                      struct pirn__parker *parker,
                                      pirn_deadline deadline)
{
    (void)home;
    pirn__parker_park(parker, deadline);
}

static inline const struct pirn__home_ops *test_home_ops(void)
{
    static const struct pirn__home_ops ops = {
        .now = test_now,
        .drive_or_park = test_drive_or_park,
        .wake = test_wake,
        .failed = test_failed,
        .free = test_free,
    };

    return &ops;
}

/* Make it and enter it. */
static inline void test_home_begin(struct test_home *home, uint32_t threads,
                                   uint32_t queue)
{
    *home = (struct test_home){
        .home.ops = test_home_ops(),
        .home.alloc = &home->alloc,
        .home.blocking_threads = threads,
        .home.blocking_queue = queue,
        .home.fork_generation = pirn__fork_generation(),
        .alloc = {.take = test_take, .give = test_give, .ctx = home},
    };
    home->home.runtime = (pirn_runtime *)(void *)home;
    pirn__init(&home->home.refs, 1);
    pirn__init(&home->fails_in, -1);
    pirn__lock_init(&home->home.participants_lock);
    pirn__list_init(&home->home.participants);
    home->before = pirn_runtime_enter(home->home.runtime);
}

static inline struct pirn__blocking_pool *test_pool(struct test_home *home)
{
    /* relaxed: made on this thread. */
    return pirn__load(&home->home.blocking, relaxed);
}

static inline void wait_until_zero(uint32_t *field, pirn_lock *lock)
{
    uint32_t value;

    /* Ends with the threads' progress; the engine watches the time. */
    do {
        sched_yield();
        pirn__lock(lock);
        value = *field;
        pirn__unlock(lock);
    } while (value != 0);
}

/* What the first step of a shutdown does. */
static inline void test_home_close(struct test_home *home)
{
    struct pirn__blocking_pool *pool = test_pool(home);

    pirn__lock(&home->home.participants_lock);
    home->home.participants_closed = true;
    pirn__unlock(&home->home.participants_lock);
    if (pool != NULL)
        pool->participant.ops->close(&pool->participant);
}

static inline pirn_report test_home_report(struct test_home *home)
{
    struct pirn__blocking_pool *pool = test_pool(home);
    pirn_report report = {0};

    pool->participant.ops->report(&pool->participant, &report);
    return report;
}

static inline size_t test_home_busy(struct test_home *home)
{
    struct pirn__blocking_pool *pool = test_pool(home);

    return pool->participant.ops->busy(&pool->participant);
}

/* The last step: the pool gets no more calls. */
static inline void test_home_end(struct test_home *home)
{
    struct pirn__blocking_pool *pool = test_pool(home);

    if (pool != NULL)
        pool->participant.ops->end(&pool->participant);
    pirn__home_unref(&home->home);
}

/* Everything that was taken is given back, and nobody refers to the home. */
static inline void test_home_expect_gone(struct test_home *home)
{
    /* Ends when the last thread has gone; a reference that leaks hangs the
     * test, and the engine ends it. */
    while (count_of(&home->freed) == 0)
        sched_yield();
    EXPECT_EQ(0, count_of(&home->pieces));
    (void)pirn_runtime_enter(home->before);
}

/* A whole shutdown in which everything ends. */
static inline void test_home_finish(struct test_home *home)
{
    test_home_close(home);
    if (test_pool(home) != NULL) {
        while (test_home_busy(home) != 0)
            sched_yield();
    }
    test_home_end(home);
    test_home_expect_gone(home);
}

/* A job that says when it has begun and waits until it may go. */
struct gate {
    sem_t begun;
    sem_t open;
    test_count runs;
    int outcome;
};

static inline void gate_init(struct gate *gate, int outcome)
{
    *gate = (struct gate){.outcome = outcome};
    sem_init(&gate->begun, 0, 0);
    sem_init(&gate->open, 0, 0);
}

static inline void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

static inline int pass_gate(void *arg)
{
    struct gate *gate = arg;
    int outcome = gate->outcome;

    count_up(&gate->runs);
    sem_post(&gate->begun);
    wait_for(&gate->open);
    return outcome;
}

/* Who is woken: a semaphore, and how many wakers know it. */
struct bell {
    sem_t rings;
    test_count wakers;
};

static inline pirn_waker bell_clone(const pirn_waker *self)
{
    struct bell *bell = self->data;

    count_up(&bell->wakers);
    return *self;
}

static inline void bell_wake_by_ref(const pirn_waker *self)
{
    struct bell *bell = self->data;

    sem_post(&bell->rings);
}

static inline void bell_drop(pirn_waker self)
{
    struct bell *bell = self.data;

    count_down(&bell->wakers);
}

static inline void bell_wake(pirn_waker self)
{
    struct bell *bell = self.data;

    /* The ring is last: the bell may be gone after it. */
    count_down(&bell->wakers);
    sem_post(&bell->rings);
}

/* A waker that counts as none of the bell's. */
static inline pirn_waker bell_init(struct bell *bell)
{
    static const pirn_waker_ops ops = {
        .clone = bell_clone,
        .wake = bell_wake,
        .wake_by_ref = bell_wake_by_ref,
        .drop = bell_drop,
    };

    sem_init(&bell->rings, 0, 0);
    pirn__init(&bell->wakers, 0);
    return (pirn_waker){.data = bell, .ops = &ops};
}

/* A join under way by hand. */
struct joiner {
    pirn_job_join_op op;
    pirn_waker waker;
    pirn_cx cx;
    struct bell bell;
};

static inline void joiner_init(struct joiner *joiner, pirn_job *job)
{
    joiner->waker = bell_init(&joiner->bell);
    joiner->cx = pirn_cx_of_waker(&joiner->waker);
    pirn_job_join_init(&joiner->op, job);
}

static inline enum pirn_poll joiner_poll(struct joiner *joiner)
{
    return pirn_future_poll(&joiner->op.future, &joiner->cx);
}

/* Join by hand, as a task would; gives the handle up. */
static inline int join_and_unref(pirn_job *job)
{
    struct joiner joiner;

    joiner_init(&joiner, job);
    pirn_job_unref(job);
    while (joiner_poll(&joiner) == PIRN_PENDING)
        wait_for(&joiner.bell.rings);
    EXPECT_EQ(0, joiner.op.rc);
    EXPECT_EQ(0, count_of(&joiner.bell.wakers));
    return joiner.op.outcome;
}

#endif /* PIRN_TESTS_ENGINE_BLOCKING_FIXTURE_H */
