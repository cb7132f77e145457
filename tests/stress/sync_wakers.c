/* SPDX-License-Identifier: MIT */
/* tests/stress/sync_wakers.c - locks whose users act from inside their wakers.
 *
 * As channel_wakers.c: a waker is copied, woken and given up without a lock, so
 * it may do anything that does not wait.  Here one in three locks, unlocks, polls
 * or drops something, while others of its batch are yet to be woken.
 *
 * After each step nobody waits in vain, and nothing was given out twice or lost;
 * each test says what that means for its object.
 */
#include <errno.h>
#include <stdio.h>

#include <pirn/sync.h>

#include "engine/test.h"
#include "stress/actor.h"

enum {
    USERS = 40, /* more than are woken at a time */
    STEPS = 300,
};

struct user {
    bool live;
    struct actor actor;
    uint32_t count; /* what it asks for */
    union {
        pirn_future future;
        pirn_sem_acquire_op acquire;
        pirn_mutex_lock_op lock;
        pirn_once_begin_op begin;
        pirn_barrier_op meet;
        pirn_rwlock_op share;
    } op;
};

/* What the test of an object consists of. */
struct game {
    void (*open)(void);
    void (*prepare)(struct user *user); /* an operation */
    void (*won)(struct user *user);     /* it was READY */
    void (*move)(void);                 /* something without an operation */
    void (*check)(uint32_t waiting, uint32_t woken, uint32_t most);
    void (*close)(void);
};

static const struct game *game;
static struct user users[USERS];
/* Users. */

static void user_poll(struct user *user)
{
    pirn_waker waker = {&user->actor, &actor_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);

    user->actor.in_poll = true;
    user->actor.woken = false;
    if (pirn_future_poll(&user->op.future, &cx) == PIRN_READY) {
        user->live = false;
        game->won(user);
    }
    user->actor.in_poll = false;
}

static void user_drop(struct user *user)
{
    user->actor.in_poll = true;
    user->live = false;
    pirn_future_drop(&user->op.future);
    user->actor.in_poll = false;
}

static void user_begin(struct user *user)
{
    if (user->actor.wakers > 0) /* of what it did before: about to be woken */
        return;
    user->count = 1;
    game->prepare(user);
    user->live = true;
    user_poll(user);
}

/* Something. */
static void act(void)
{
    struct user *user = &users[dice(USERS)];
    uint32_t what = dice(10);

    if (what >= 6)
        game->move();
    else if (user->actor.in_poll)
        return;
    else if (!user->live)
        user_begin(user);
    else if (what == 0)
        user_drop(user);
    else
        user_poll(user);
}

static void check(void)
{
    uint32_t waiting = 0, woken = 0, most = 0;

    for (int i = 0; i < USERS; i++) {
        if (users[i].live && users[i].actor.woken) {
            woken += users[i].count;
        } else if (users[i].live) {
            waiting++;
            most = most < users[i].count ? users[i].count : most;
        }
    }
    game->check(waiting, woken, most);
}

static void play(uint64_t seed)
{
    pirn__prng_seed(&prng, seed);
    game->open();
    wakers_act = dice(4) != 0;
    for (int i = 0; i < STEPS; i++) {
        act();
        check();
    }
    wakers_act = false;
    for (int i = 0; i < USERS; i++) {
        if (users[i].live)
            user_drop(&users[i]);
        check();
    }
    game->close();
    for (int i = 0; i < USERS; i++)
        EXPECT_EQ(0, users[i].actor.wakers);
}

static void play_all(const struct game *which)
{
    uint64_t seed = test_seed();
    size_t rounds = test_size(100, 1000, 100000);

    game = which;
    for (size_t i = 0; i < rounds; i++) {
        play(seed + i);
        if (test_failures() > 0) {
            printf("it was round %zu, or --seed %llu\n", i,
                   (unsigned long long)(seed + i));
            return;
        }
    }
}

/* Semaphore. */

static pirn_sem sem;
static uint32_t permits; /* all there are */
static uint32_t held;

static void sem_open(void)
{
    permits = 1 + dice(30);
    held = 0;
    EXPECT_EQ(0, pirn_sem_init(&sem, permits));
}

static void sem_prepare(struct user *user)
{
    user->count = 1 + dice(permits);
    pirn_sem_acquire_init(&user->op.acquire, &sem, user->count);
}

static void sem_won(struct user *user)
{
    EXPECT_EQ(0, user->op.acquire.rc);
    if (dice(6) == 0)
        pirn_future_discard(&user->op.future);
    else
        held += user->count;
}

static void sem_move(void)
{
    uint32_t count = dice(permits) + 1;

    if (dice(3) == 0) {
        if (pirn_sem_try_acquire(&sem, count) == 0)
            held += count;
        return;
    }
    count = count < held ? count : held;
    held -= count;
    pirn_sem_release(&sem, count);
}

/* The first in line may be any of them, as wakers act. */
static void sem_check(uint32_t waiting, uint32_t woken, uint32_t most)
{
    uint32_t available = pirn_sem_available(&sem);

    EXPECT_EQ(permits, available + held + woken);
    EXPECT(waiting == 0 || available < most);
}

static void sem_close(void)
{
    EXPECT_EQ(permits, pirn_sem_available(&sem) + held);
    pirn_sem_deinit(&sem);
}

/* Goal: no permit is lost or given twice, and nobody waits for what is there. */
TEST(sem_wakers_act)
{
    static const struct game of_sem = {
        .open = sem_open,
        .prepare = sem_prepare,
        .won = sem_won,
        .move = sem_move,
        .check = sem_check,
        .close = sem_close,
    };

    play_all(&of_sem);
}

/* Mutex. */

static pirn_mutex mutex;
static uint32_t lockers;

static void mutex_open(void)
{
    lockers = 0;
    pirn_mutex_init(&mutex);
}

static void mutex_prepare(struct user *user)
{
    pirn_mutex_lock_init(&user->op.lock, &mutex);
}

static void mutex_won(struct user *user)
{
    EXPECT_EQ(0, lockers);
    if (dice(6) == 0)
        pirn_future_discard(&user->op.future);
    else
        lockers++;
}

static void mutex_move(void)
{
    if (lockers > 0) {
        lockers--;
        pirn_mutex_unlock(&mutex);
    } else if (pirn_mutex_try_lock(&mutex) == 0) {
        lockers++;
    }
}

static void mutex_check(uint32_t waiting, uint32_t woken, uint32_t most)
{
    (void)most;
    EXPECT_LE(lockers + woken, 1);
    EXPECT(waiting == 0 || lockers + woken == 1);
}

static void mutex_close(void)
{
    if (lockers == 0)
        EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    pirn_mutex_deinit(&mutex);
}

/* Goal: one at a time, and whoever waits waits for one that has it. */
TEST(mutex_wakers_act)
{
    static const struct game of_mutex = {
        .open = mutex_open,
        .prepare = mutex_prepare,
        .won = mutex_won,
        .move = mutex_move,
        .check = mutex_check,
        .close = mutex_close,
    };

    play_all(&of_mutex);
}

/* Lock of readers and writers. */

static pirn_rwlock rwlock;
static uint32_t readers_max, readers, writers;

static void rwlock_open(void)
{
    readers_max = 1 + dice(5);
    readers = 0;
    writers = 0;
    EXPECT_EQ(0, pirn_rwlock_init(&rwlock, readers_max));
}

static void rwlock_prepare(struct user *user)
{
    if (dice(2) == 0) {
        pirn_rwlock_read_init(&user->op.share, &rwlock);
        return;
    }
    user->count = readers_max + 1;
    pirn_rwlock_write_init(&user->op.share, &rwlock);
}

static void rwlock_won(struct user *user)
{
    EXPECT_EQ(0, writers);
    if (user->count == 1) {
        readers++;
        EXPECT_LE(readers, readers_max);
    } else {
        EXPECT_EQ(0, readers);
        writers++;
    }
}

static void leave_rwlock(void)
{
    if (writers > 0) {
        writers--;
        readers += dice(2);
        if (readers > 0)
            pirn_rwlock_downgrade(&rwlock);
        else
            pirn_rwlock_write_unlock(&rwlock);
    } else if (readers > 0) {
        readers--;
        pirn_rwlock_read_unlock(&rwlock);
    }
}

static void rwlock_move(void)
{
    if (dice(3) != 0)
        leave_rwlock();
    else if (dice(2) == 0)
        readers += pirn_rwlock_try_read(&rwlock) == 0;
    else
        writers += pirn_rwlock_try_write(&rwlock) == 0;
}

static void rwlock_check(uint32_t waiting, uint32_t woken, uint32_t most)
{
    (void)most;
    EXPECT(writers == 0 || (writers == 1 && readers == 0 && woken == 0));
    EXPECT(waiting == 0 || readers + writers + woken > 0);
}

static void rwlock_close(void)
{
    while (readers + writers > 0)
        leave_rwlock();
    pirn_rwlock_deinit(&rwlock);
}

/* Goal: readers or one writer, and whoever waits waits for somebody. */
TEST(rwlock_wakers_act)
{
    static const struct game of_rwlock = {
        .open = rwlock_open,
        .prepare = rwlock_prepare,
        .won = rwlock_won,
        .move = rwlock_move,
        .check = rwlock_check,
        .close = rwlock_close,
    };

    play_all(&of_rwlock);
}

/* Once. */

static pirn_once once;
static uint32_t makers;
static bool made;

static void once_open(void)
{
    makers = 0;
    made = false;
    pirn_once_init(&once);
}

static void once_prepare(struct user *user)
{
    pirn_once_begin_init(&user->op.begin, &once);
}

static void once_won(struct user *user)
{
    EXPECT(user->op.begin.must_make ? makers == 0 && !made : made);
    if (dice(6) == 0)
        pirn_future_discard(&user->op.future);
    else
        makers += user->op.begin.must_make;
}

static void once_move(void)
{
    if (makers == 0) {
        makers += pirn_once_try_begin(&once) == 1;
        return;
    }
    makers--;
    made = dice(100) == 0;
    if (made)
        pirn_once_finish(&once);
    else
        pirn_once_abandon(&once);
}

static void once_check(uint32_t waiting, uint32_t woken, uint32_t most)
{
    (void)most;
    EXPECT(waiting == 0 || (!made && makers + woken == 1));
}

static void once_close(void)
{
    if (makers > 0)
        pirn_once_abandon(&once);
    pirn_once_deinit(&once);
}

/* Goal: made by one at a time, and whoever waits waits for one that makes it. */
TEST(once_wakers_act)
{
    static const struct game of_once = {
        .open = once_open,
        .prepare = once_prepare,
        .won = once_won,
        .move = once_move,
        .check = once_check,
        .close = once_close,
    };

    play_all(&of_once);
}

/* Barrier. */

static pirn_barrier barrier;
static uint32_t barrier_count;

static void barrier_open(void)
{
    barrier_count = 1 + dice(25);
    EXPECT_EQ(0, pirn_barrier_init(&barrier, barrier_count));
}

static void barrier_prepare(struct user *user)
{
    pirn_barrier_wait_init(&user->op.meet, &barrier);
}

static void barrier_won(struct user *user)
{
    (void)user;
}

static void barrier_move(void)
{
}

static void barrier_check(uint32_t waiting, uint32_t woken, uint32_t most)
{
    (void)woken;
    (void)most;
    EXPECT_LE(waiting + 1, barrier_count);
}

static void barrier_close(void)
{
    pirn_barrier_deinit(&barrier);
}

/* Goal: as soon as there are enough nobody waits. */
TEST(barrier_wakers_act)
{
    static const struct game of_barrier = {
        .open = barrier_open,
        .prepare = barrier_prepare,
        .won = barrier_won,
        .move = barrier_move,
        .check = barrier_check,
        .close = barrier_close,
    };

    play_all(&of_barrier);
}
