/* SPDX-License-Identifier: MIT */
/* tests/stress/sync.c - locks under deadlines and cancellation, for as long as
 * one cares to.
 */
#include <pirn/sync.h>

#include <time.h>

#include "base/prng.h"
#include "sched/runtime_test.h"

enum { FIBERS = 24, THREADS = 2, PERMITS = 4 };

static uint64_t base_seed;
static size_t each;   /* rounds of a fiber or thread */
static tally players; /* numbers them, and with that their seeds */

/* From at once to a few turns of a busy runtime; sometimes never. */
static pirn_deadline some_deadline(struct pirn__prng *prng)
{
    uint32_t dice = pirn__prng_below(prng, 8);

    if (dice == 0)
        return PIRN_NEVER;
    return dice == 1 ? PIRN_EXPIRED
                     : pirn_after_us(pirn__prng_below(prng, 100));
}

static struct pirn__prng next_prng(void)
{
    struct pirn__prng prng;

    pirn__prng_seed(&prng, base_seed + tally_up(&players));
    return prng;
}

static void run_on_thread(void *arg, size_t index)
{
    pirn_fiber_fn *const *fn = arg;

    (void)index;
    EXPECT_EQ(0, (*fn)(NULL));
}

/* Run fn in many fibers on a pool and on some threads beside it. */
static void run_crowd(uint32_t workers, pirn_fiber_fn *fn)
{
    const pirn_runtime_options options = {.workers = workers};
    pirn_task *tasks[FIBERS];
    pirn_runtime *rt;
    struct crew crew;

    base_seed = test_seed();
    each = test_size(100, 10000, 1000000 / FIBERS);
    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    for (int i = 0; i < FIBERS; i++)
        tasks[i] = go_task(rt, fn, NULL);
    crew_start(&crew, THREADS, run_on_thread, &fn);
    for (int i = 0; i < FIBERS; i++)
        EXPECT_EQ(0, join_and_unref(tasks[i]));
    crew_join(&crew);
    (void)runtime_end(rt);
}

/* Semaphore. */

static pirn_sem sem;
static tally in_use;

static int acquire_or_expire(void *arg)
{
    struct pirn__prng prng = next_prng();

    (void)arg;
    for (size_t i = 0; i < each; i++) {
        uint32_t count = 1 + pirn__prng_below(&prng, PERMITS);
        int rc = pirn_sem_acquire(&sem, count, some_deadline(&prng));

        if (rc == -ETIMEDOUT)
            continue;
        EXPECT_EQ(0, rc);
        for (uint32_t k = 0; k < count; k++)
            EXPECT_LE(tally_up(&in_use) + 1, PERMITS);
        if (pirn__prng_below(&prng, 4) == 0)
            EXPECT_EQ(0, pirn_yield());
        for (uint32_t k = 0; k < count; k++)
            tally_down(&in_use);
        pirn_sem_release(&sem, count);
    }
    return 0;
}

/* Goal: with waits that end at any moment no permit is lost or doubled, and
 * nobody is stuck while there are enough.
 * Method: four permits, requests for one to four, deadlines around the time
 * that it takes; some wait without one, so that a lost wake hangs the test. */
TEST(sem_random_deadlines)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        EXPECT_EQ(0, pirn_sem_init(&sem, PERMITS));
        run_crowd(workers, acquire_or_expire);
        EXPECT_EQ(PERMITS, pirn_sem_available(&sem));
        EXPECT_EQ(0, pirn_sem_try_acquire(&sem, PERMITS));
        pirn_sem_deinit(&sem);
    }
}

/* Mutex and condition. */

static pirn_mutex mutex;
static pirn_cond cond;
static uint64_t inside; /* mutex */

static void be_alone_inside(struct pirn__prng *prng)
{
    EXPECT_EQ(0, inside++);
    if (pirn__prng_below(prng, 4) == 0)
        EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(1, inside--);
}

static int lock_or_expire(void *arg)
{
    struct pirn__prng prng = next_prng();

    (void)arg;
    for (size_t i = 0; i < each; i++) {
        int rc = pirn_mutex_lock(&mutex, some_deadline(&prng));

        if (rc == -ETIMEDOUT)
            continue;
        EXPECT_EQ(0, rc);
        be_alone_inside(&prng);
        pirn_mutex_unlock(&mutex);
    }
    return 0;
}

/* Goal: the same for a mutex: one at a time, and free in the end. */
TEST(mutex_random_deadlines)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        pirn_mutex_init(&mutex);
        run_crowd(workers, lock_or_expire);
        EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
        pirn_mutex_unlock(&mutex);
        pirn_mutex_deinit(&mutex);
    }
}

static int signal_or_wait(void *arg)
{
    struct pirn__prng prng = next_prng();

    (void)arg;
    for (size_t i = 0; i < each; i++) {
        EXPECT_EQ(0, pirn_mutex_lock(&mutex, PIRN_NEVER));
        be_alone_inside(&prng);
        if (pirn__prng_below(&prng, 2) == 0) {
            pirn_cond_signal(&cond);
        } else {
            int rc = pirn_cond_wait(&cond, &mutex, pirn_after_us(20));

            EXPECT(rc == 0 || rc == -ETIMEDOUT);
            be_alone_inside(&prng);
        }
        pirn_mutex_unlock(&mutex);
    }
    return 0;
}

/* Goal: a wait for a condition has the mutex afterwards, whatever ended it. */
TEST(cond_random_deadlines)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        pirn_mutex_init(&mutex);
        pirn_cond_init(&cond);
        run_crowd(workers, signal_or_wait);
        pirn_cond_deinit(&cond);
        pirn_mutex_deinit(&mutex);
    }
}

/* Cancellation. */

static int lock_until_cancelled(void *arg)
{
    struct pirn__prng prng = next_prng();
    int rc;

    (void)arg;
    while ((rc = pirn_mutex_lock(&mutex, PIRN_NEVER)) == 0) {
        EXPECT_EQ(0, inside++);
        if (pirn__prng_below(&prng, 4) == 0)
            (void)!pirn_yield(); /* perhaps cancelled: the next lock says so */
        EXPECT_EQ(1, inside--);
        pirn_mutex_unlock(&mutex);
    }
    return rc;
}

static void cancel_crowd(pirn_runtime *rt)
{
    pirn_task *tasks[FIBERS];

    for (int i = 0; i < FIBERS; i++)
        tasks[i] = go_task(rt, lock_until_cancelled, NULL);
    for (int i = 0; i < FIBERS; i++) {
        pirn_task_cancel(tasks[i]);
        EXPECT_EQ(-ECANCELED, join_and_unref(tasks[i]));
    }
}

/* Goal: whoever is cancelled in line, at the hand-over or while it holds, the
 * others go on.
 * Method: one after the other is cancelled and joined, again and again. */
TEST(mutex_cancelled_at_any_moment)
{
    const pirn_runtime_options options = {.workers = 2};
    pirn_runtime *rt;

    base_seed = test_seed();
    pirn_mutex_init(&mutex);
    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    for (size_t i = 0; i < test_size(5, 100, 10000); i++)
        cancel_crowd(rt);
    (void)runtime_end(rt);
    pirn_mutex_deinit(&mutex);
}

/* Ping-pong. */

static pirn_notify pings[2];
static tally is_over;
static tally counted;

static int ping_pong(void *arg)
{
    size_t index = (size_t)(uintptr_t)arg;

    while (tally_of(&is_over) == 0) {
        pirn_notify_one(&pings[1 - index]);
        EXPECT_EQ(0, pirn_notify_wait(&pings[index], PIRN_NEVER));
    }
    pirn_notify_one(&pings[1 - index]);
    return 0;
}

static int count_turns(void *arg)
{
    (void)arg;
    while (tally_of(&is_over) == 0) {
        tally_up(&counted);
        EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Goal: two tasks that wake each other for ever do not starve a third.
 * Method: on one worker; the third counts its turns, a thousand of which come
 * within a second (ten on a machine that does other things). */
TEST(notify_ping_pong_does_not_starve_the_queue)
{
    const pirn_runtime_options options = {.workers = 1};
    uint64_t begin = now_ms();
    pirn_task *tasks[3];
    pirn_runtime *rt;

    tally_set(&is_over, 0);
    tally_set(&counted, 0);
    for (int i = 0; i < 2; i++)
        pirn_notify_init(&pings[i]);
    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    tasks[0] = go_task(rt, ping_pong, NULL);
    tasks[1] = go_task(rt, ping_pong, (void *)(uintptr_t)1);
    tasks[2] = go_task(rt, count_turns, NULL);
    while (tally_of(&counted) < 1000 && now_ms() < begin + 10 * 1000)
        sched_yield();
    EXPECT_GE(tally_of(&counted), 1000);
    tally_set(&is_over, 1);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(0, join_and_unref(tasks[i]));
    (void)runtime_end(rt);
}
