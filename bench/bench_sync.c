/* SPDX-License-Identifier: MIT */
/* bench/bench_sync.c - what locks cost, on a pool.
 *
 *   lock        one fiber locks and unlocks; nobody else wants it.  The figure
 *               is a pair
 *   lock_16     16 fibers lock, count and unlock the same thing as fast as they
 *               can.  The figure is a pair; on two workers the fibers contend
 *   lock_16_held the same, but each yields while it holds the lock, so that all
 *               the others are in line: the cost of a hand-over
 *
 * for a mutex, and where it says so for a semaphore, and a lock of readers and
 * writers whose users all read, or all write.
 */
#include "rig.h"
#include "sample.h"
#include "tally.h"

enum { FIBERS = 16 };

/* What is locked. */

static pirn_mutex mutex = PIRN_MUTEX_INIT;
static pirn_sem sem = PIRN_SEM_INIT(1);
static pirn_rwlock rwlock = PIRN_RWLOCK_INIT;

/* One fiber. */

static void mutex_pairs(void *arg)
{
    uint64_t count = *(const uint64_t *)arg;

    for (uint64_t i = 0; i < count; i++) {
        int rc = pirn_mutex_lock(&mutex, PIRN_NEVER);

        if (rc < 0)
            sample_require(rc, "mutex");
        pirn_mutex_unlock(&mutex);
    }
}

static void sem_pairs(void *arg)
{
    uint64_t count = *(const uint64_t *)arg;

    for (uint64_t i = 0; i < count; i++) {
        int rc = pirn_sem_acquire(&sem, 1, PIRN_NEVER);

        if (rc < 0)
            sample_require(rc, "sem");
        pirn_sem_release(&sem, 1);
    }
}

static void read_pairs(void *arg)
{
    uint64_t count = *(const uint64_t *)arg;

    for (uint64_t i = 0; i < count; i++) {
        int rc = pirn_rwlock_read(&rwlock, PIRN_NEVER);

        if (rc < 0)
            sample_require(rc, "read");
        pirn_rwlock_read_unlock(&rwlock);
    }
}

static void write_pairs(void *arg)
{
    uint64_t count = *(const uint64_t *)arg;

    for (uint64_t i = 0; i < count; i++) {
        int rc = pirn_rwlock_write(&rwlock, PIRN_NEVER);

        if (rc < 0)
            sample_require(rc, "write");
        pirn_rwlock_write_unlock(&rwlock);
    }
}

static void measure_alone(const char *name, void (*pairs)(void *arg))
{
    uint64_t count = rig_scale(100000, 2000000);
    struct rig_row row = {
        .name = name,
        .operations = count,
        .fn = pairs,
        .arg = &count,
    };

    rig_time(&row);
}

/* Many fibers. */

static struct {
    struct tally left;
    uint64_t each;
    uint64_t counter; /* guarded by what is measured */
} crowd;

static int mutex_step(void)
{
    int rc = pirn_mutex_lock(&mutex, PIRN_NEVER);

    if (rc < 0)
        return rc;
    crowd.counter++;
    pirn_mutex_unlock(&mutex);
    return 0;
}

static int mutex_held_step(void)
{
    int rc = pirn_mutex_lock(&mutex, PIRN_NEVER);

    if (rc < 0)
        return rc;
    crowd.counter++;
    rc = pirn_yield();
    pirn_mutex_unlock(&mutex);
    return rc;
}

static int sem_step(void)
{
    int rc = pirn_sem_acquire(&sem, 1, PIRN_NEVER);

    if (rc < 0)
        return rc;
    crowd.counter++;
    pirn_sem_release(&sem, 1);
    return 0;
}

static int sem_held_step(void)
{
    int rc = pirn_sem_acquire(&sem, 1, PIRN_NEVER);

    if (rc < 0)
        return rc;
    crowd.counter++;
    rc = pirn_yield();
    pirn_sem_release(&sem, 1);
    return rc;
}

/* One of the crowd.  In place, as in the peers, so that no call is counted. */
static inline int repeat(int (*step)(void))
{
    for (uint64_t i = 0; i < crowd.each; i++) {
        int rc = step();

        if (rc < 0)
            sample_require(rc, "lock");
    }
    tally_hit(&crowd.left);
    return 0;
}

static int mutex_fiber(void *arg)
{
    (void)arg;
    return repeat(mutex_step);
}

static int mutex_held_fiber(void *arg)
{
    (void)arg;
    return repeat(mutex_held_step);
}

static int sem_fiber(void *arg)
{
    (void)arg;
    return repeat(sem_step);
}

static int sem_held_fiber(void *arg)
{
    (void)arg;
    return repeat(sem_held_step);
}

/* All of them; `arg` points to what each does. */
static void run_crowd(void *arg)
{
    pirn_fiber_fn *const *fiber = arg;

    crowd.counter = 0;
    tally_init(&crowd.left, FIBERS);
    for (int i = 0; i < FIBERS; i++)
        sample_require(pirn_go(*fiber, NULL), "pirn_go");
    tally_await(&crowd.left);
    if (crowd.counter != FIBERS * crowd.each)
        sample_require(-1, "a lock that let two in");
}

static void measure_crowd(const char *name, pirn_fiber_fn *fiber, uint64_t each)
{
    struct rig_row row = {
        .name = name,
        .operations = FIBERS * each,
        .fn = run_crowd,
        .arg = &fiber,
    };

    crowd.each = each;
    rig_time(&row);
}

int main(int argc, char **argv)
{
    rig_begin(argc, argv);
    measure_alone("mutex_lock", mutex_pairs);
    measure_alone("sem_lock", sem_pairs);
    measure_alone("rwlock_read", read_pairs);
    measure_alone("rwlock_write", write_pairs);
    measure_crowd("mutex_lock_16", mutex_fiber, rig_scale(5000, 60000));
    measure_crowd("mutex_lock_16_held", mutex_held_fiber, rig_scale(500, 5000));
    measure_crowd("sem_lock_16", sem_fiber, rig_scale(2000, 20000));
    measure_crowd("sem_lock_16_held", sem_held_fiber, rig_scale(500, 5000));
    rig_end();
    return 0;
}
