/* SPDX-License-Identifier: MIT */
/* tests/conformance/sync.c - what locks and their kin promise, on every kind of
 * runtime, for players of every kind:
 *
 *   fiber    straight-line calls in a fiber
 *   future   operations awaited one by one in a fiber
 *   thread   straight-line calls on a plain thread
 *   mixed    all three at once, on the same objects
 *
 * The promises are those that the documentation of Tokio and Go makes for
 * primitives of these names, as far as the headers of Pirn make them, too.
 *
 * In the simulated world (tests/sim) each seed chooses the kind of player and of
 * runtime.
 */
#include <pirn/async.h>
#include <pirn/sync.h>

#include "base/prng.h"
#include "engine/world.h"
#include "sched/runtime_test.h"

enum player_kind { FIBER, FUTURE, THREAD, MIXED };

enum { PLAYERS_MAX = 12 };

struct player;
typedef void player_fn(struct player *player);

struct player {
    enum player_kind kind; /* never MIXED */
    uint64_t index;
    player_fn *fn;
    pirn_task *task;            /* of a fiber */
    struct world_thread thread; /* of a thread */
};

/* The calls of the stories. */

/* A call begins; true if it is to be the straight-line one. */
static bool is_straight(const struct player *player)
{
    world_pause();
    return player->kind != FUTURE;
}

static int await(pirn_future *future, pirn_deadline deadline)
{
    world_watch(future);
    return pirn_await(future, deadline);
}

static int play_lock(const struct player *player, pirn_mutex *mutex,
                     pirn_deadline deadline)
{
    pirn_mutex_lock_op op;

    if (is_straight(player))
        return pirn_mutex_lock(mutex, deadline);
    pirn_mutex_lock_init(&op, mutex);
    return await(&op.future, deadline);
}

static int play_acquire(const struct player *player, pirn_sem *sem,
                        uint32_t permits, pirn_deadline deadline)
{
    pirn_sem_acquire_op op;
    int rc;

    if (is_straight(player))
        return pirn_sem_acquire(sem, permits, deadline);
    pirn_sem_acquire_init(&op, sem, permits);
    rc = await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

static int play_read(const struct player *player, pirn_rwlock *lock)
{
    pirn_rwlock_op op;

    if (is_straight(player))
        return pirn_rwlock_read(lock, PIRN_NEVER);
    pirn_rwlock_read_init(&op, lock);
    return await(&op.future, PIRN_NEVER);
}

static int play_write(const struct player *player, pirn_rwlock *lock)
{
    pirn_rwlock_op op;

    if (is_straight(player))
        return pirn_rwlock_write(lock, PIRN_NEVER);
    pirn_rwlock_write_init(&op, lock);
    return await(&op.future, PIRN_NEVER);
}

static int play_notified(const struct player *player, pirn_notify *notify)
{
    pirn_notify_op op;

    if (is_straight(player))
        return pirn_notify_wait(notify, PIRN_NEVER);
    pirn_notify_wait_init(&op, notify);
    return await(&op.future, PIRN_NEVER);
}

static int play_meet(const struct player *player, pirn_barrier *barrier)
{
    pirn_barrier_op op;
    int rc;

    if (is_straight(player))
        return pirn_barrier_wait(barrier, PIRN_NEVER);
    pirn_barrier_wait_init(&op, barrier);
    rc = await(&op.future, PIRN_NEVER);
    return rc < 0 ? rc : pirn_future_outcome(&op.future);
}

static int play_wait(const struct player *player, pirn_cond *cond,
                     pirn_mutex *mutex)
{
    pirn_cond_wait_op op;

    if (is_straight(player))
        return pirn_cond_wait(cond, mutex, PIRN_NEVER);
    pirn_cond_wait_init(&op, cond, mutex);
    return await(&op.future, PIRN_NEVER);
}

/* The stage. */

static int play_in_fiber(void *arg)
{
    struct player *player = arg;

    player->fn(player);
    return 0;
}

static void play_on_thread(void *arg)
{
    struct player *player = arg;

    player->fn(player);
}

static void start_player(struct player *player, pirn_runtime *rt)
{
    if (player->kind == THREAD)
        world_thread_start(&player->thread, play_on_thread, player);
    else
        player->task = go_task(rt, play_in_fiber, player);
}

static void join_player(struct player *player)
{
    if (player->kind == THREAD)
        world_thread_join(&player->thread);
    else
        EXPECT_EQ(0, join_and_unref(player->task));
}

/* Run `fn` in so many players of a kind to their ends.  Threads are joined
 * last: while this thread joins a fiber it drives a runtime without workers. */
static void play(pirn_runtime *rt, enum player_kind kind, size_t count,
                 player_fn *fn)
{
    struct player players[PLAYERS_MAX];

    for (size_t i = 0; i < count; i++) {
        players[i] = (struct player){
            .kind = kind == MIXED ? (enum player_kind)(i % 3) : kind,
            .index = i,
            .fn = fn,
        };
        start_player(&players[i], rt);
    }
    for (size_t i = 0; i < count; i++)
        if (players[i].kind != THREAD)
            join_player(&players[i]);
    for (size_t i = 0; i < count; i++)
        if (players[i].kind == THREAD)
            join_player(&players[i]);
}

struct stage {
    const char *name;
    uint32_t workers;
    enum pirn_pool_kind pool;
};

static const struct stage stages[] = {
    {"one thread", 0, 0},
    {"2 workers", 2, 0},
    {"4 workers", 4, 0},
    {"3 slots", 3, PIRN_POOL_COMPUTATIONAL},
};

static const char *const kind_names[] = {"fiber", "future", "thread", "mixed"};

enum {
    STAGES = sizeof stages / sizeof stages[0],
    KINDS = sizeof kind_names / sizeof kind_names[0]
};

/* A story is told with each kind on each stage. */
typedef void story_fn(pirn_runtime *rt, enum player_kind kind);

struct tale {
    story_fn *story;
};

static void tell_tale(void *arg, size_t way)
{
    const struct tale *tale = arg;
    const struct stage *stage = &stages[way / KINDS];
    const pirn_runtime_options options = {.workers = stage->workers,
                                          .pool = stage->pool};
    pirn_runtime *rt = world_runtime_new(&options);
    int before = test_failures();

    tale->story(rt, (enum player_kind)(way % KINDS));
    if (test_failures() != before)
        test__fail(__FILE__, __LINE__, "told by '%s' on %s",
                   kind_names[way % KINDS], stage->name);
    world_runtime_end(rt);
}

static void tell(const char *test, story_fn *story)
{
    struct tale tale = {story};

    world_tell(test, STAGES * KINDS, tell_tale, &tale);
}

static size_t rounds(void)
{
    return world_size(test_size(20, 200, 5000), 20);
}

/* Give others a chance in the middle of something. */
static void pause_now_and_then(uint64_t i)
{
    world_pause();
    if (i % 3 == 0)
        EXPECT_EQ(0, pirn_yield());
}

static void let_others_run(const struct player *player)
{
    world_pause();
    EXPECT_EQ(0, pirn_yield());
    if (player->kind == THREAD)
        world_yield();
}

/* Mutex. */

static pirn_mutex mutex;
static uint64_t guarded;

static void count_under_mutex(struct player *player)
{
    for (size_t i = 0; i < rounds(); i++) {
        uint64_t seen;

        EXPECT_EQ(0, play_lock(player, &mutex, PIRN_NEVER));
        seen = guarded;
        pause_now_and_then(i);
        guarded = seen + 1;
        pirn_mutex_unlock(&mutex);
    }
}

static void count_together(pirn_runtime *rt, enum player_kind kind)
{
    guarded = 0;
    pirn_mutex_init(&mutex);
    play(rt, kind, 6, count_under_mutex);
    EXPECT_EQ(6 * rounds(), guarded);
    pirn_mutex_deinit(&mutex);
}

/* Goal: one holder at a time, also across suspensions, and nobody is forgotten.
 * Method: six players count, with yields inside. */
TEST(mutex_counts_are_not_lost)
{
    tell(__func__, count_together);
}

static uint64_t turns[2];
static tally has_gone; /* players that have had enough */

/* Greedy or modest: the modest one must get its turns meanwhile. */
static void be_greedy_or_modest(struct player *player)
{
    bool is_modest = player->index == 1;

    do {
        EXPECT_EQ(0, play_lock(player, &mutex, PIRN_NEVER));
        turns[player->index]++;
        if (!is_modest)
            let_others_run(player);
        pirn_mutex_unlock(&mutex);
    } while (is_modest ? turns[1] < rounds() : tally_of(&has_gone) == 0);
    tally_up(&has_gone);
}

static void share_fairly(pirn_runtime *rt, enum player_kind kind)
{
    turns[0] = turns[1] = 0;
    tally_set(&has_gone, 0);
    pirn_mutex_init(&mutex);
    play(rt, kind, 2, be_greedy_or_modest);
    EXPECT_EQ(rounds(), turns[1]);
    pirn_mutex_deinit(&mutex);
}

/* Goal: one that unlocks and locks at once does not starve another that waits.
 * Method: a greedy player goes on until the modest one has had its turns. */
TEST(mutex_greedy_holder_does_not_starve_a_waiter)
{
    tell(__func__, share_fairly);
}

/* Semaphore. */

enum { PERMITS = 4 };

static pirn_sem sem;
static tally in_use;

static void use_permits(struct player *player)
{
    struct pirn__prng prng;

    pirn__prng_seed(&prng, player->index);
    for (size_t i = 0; i < rounds(); i++) {
        uint32_t count = 1 + (uint32_t)pirn__prng_below(&prng, PERMITS);

        EXPECT_EQ(0, play_acquire(player, &sem, count, PIRN_NEVER));
        for (uint32_t k = 0; k < count; k++)
            EXPECT_LE(tally_up(&in_use) + 1, PERMITS);
        pause_now_and_then(i);
        for (uint32_t k = 0; k < count; k++)
            tally_down(&in_use);
        pirn_sem_release(&sem, count);
    }
}

static void share_permits(pirn_runtime *rt, enum player_kind kind)
{
    tally_set(&in_use, 0);
    EXPECT_EQ(0, pirn_sem_init(&sem, PERMITS));
    play(rt, kind, 6, use_permits);
    EXPECT_EQ(PERMITS, pirn_sem_available(&sem));
    pirn_sem_deinit(&sem);
}

/* Goal: never more permits in use than there are, and all come back.
 * Method: six players take one to four of four. */
TEST(sem_permits_are_kept)
{
    tell(__func__, share_permits);
}

/* One wants all permits, as often as there are rounds; the others one each, for
 * ever, so that all are seldom free by themselves. */
static void want_all_or_one(struct player *player)
{
    bool wants_all = player->index == 0;
    uint32_t count = wants_all ? PERMITS : 1;

    do {
        EXPECT_EQ(0, play_acquire(player, &sem, count, PIRN_NEVER));
        if (wants_all)
            turns[0]++;
        else
            let_others_run(player);
        pirn_sem_release(&sem, count);
    } while (wants_all ? turns[0] < rounds() : tally_of(&has_gone) == 0);
    tally_up(&has_gone);
}

static void serve_the_large_one(pirn_runtime *rt, enum player_kind kind)
{
    turns[0] = 0;
    tally_set(&has_gone, 0);
    EXPECT_EQ(0, pirn_sem_init(&sem, PERMITS));
    play(rt, kind, PERMITS + 2, want_all_or_one);
    EXPECT_EQ(rounds(), turns[0]);
    EXPECT_EQ(PERMITS, pirn_sem_available(&sem));
    pirn_sem_deinit(&sem);
}

/* Goal: a large request is not passed by small ones for ever.
 * Method: more players that want one permit than there are permits. */
TEST(sem_large_request_does_not_starve)
{
    tell(__func__, serve_the_large_one);
}

static tally told;

static void wait_for_the_end(struct player *player)
{
    if (player->index == 0) {
        EXPECT_EQ(0, pirn_yield());
        pirn_sem_close(&sem);
        return;
    }
    EXPECT_EQ(PIRN_ECLOSED, play_acquire(player, &sem, 1, PIRN_NEVER));
    tally_up(&told);
}

static void close_sem(pirn_runtime *rt, enum player_kind kind)
{
    tally_set(&told, 0);
    EXPECT_EQ(0, pirn_sem_init(&sem, 0));
    play(rt, kind, 5, wait_for_the_end);
    EXPECT_EQ(4, tally_of(&told));
    pirn_sem_deinit(&sem);
}

/* Goal: a close reaches everybody, who waits and who comes. */
TEST(sem_close_reaches_everybody)
{
    tell(__func__, close_sem);
}

/* Readers and writers. */

static pirn_rwlock rwlock;
static uint64_t twins[2];

static void read_or_write_twins(struct player *player)
{
    for (size_t i = 0; i < rounds(); i++) {
        if ((i + player->index) % 4 == 0) {
            EXPECT_EQ(0, play_write(player, &rwlock));
            twins[0]++;
            pause_now_and_then(i);
            twins[1]++;
            if (i % 2 == 0) {
                pirn_rwlock_write_unlock(&rwlock);
                continue;
            }
            pirn_rwlock_downgrade(&rwlock);
        } else {
            EXPECT_EQ(0, play_read(player, &rwlock));
        }
        EXPECT_EQ(twins[0], twins[1]);
        pause_now_and_then(i);
        EXPECT_EQ(twins[0], twins[1]);
        pirn_rwlock_read_unlock(&rwlock);
    }
}

static void read_and_write(pirn_runtime *rt, enum player_kind kind)
{
    EXPECT_EQ(0, pirn_rwlock_init(&rwlock, 3));
    play(rt, kind, 6, read_or_write_twins);
    pirn_rwlock_deinit(&rwlock);
}

/* Goal: readers never see a writer's work half done, also after a downgrade.
 * Method: two numbers that are equal outside of writes; at most three readers.
 */
TEST(rwlock_writes_are_seen_whole)
{
    tell(__func__, read_and_write);
}

/* Notify. */

static pirn_notify pings[2];

static void ping_pong(struct player *player)
{
    for (size_t i = 0; i < rounds(); i++) {
        if (player->index == 0)
            pirn_notify_one(&pings[1]);
        EXPECT_EQ(0, play_notified(player, &pings[player->index]));
        if (player->index == 1)
            pirn_notify_one(&pings[0]);
    }
}

static void play_ping_pong(pirn_runtime *rt, enum player_kind kind)
{
    for (int i = 0; i < 2; i++)
        pirn_notify_init(&pings[i]);
    play(rt, kind, 2, ping_pong);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(-EAGAIN, pirn_notify_try_wait(&pings[i]));
        pirn_notify_deinit(&pings[i]);
    }
}

/* Goal: no notification is lost between a look and a wait, none is doubled. */
TEST(notify_ping_pong_ends)
{
    tell(__func__, play_ping_pong);
}

static pirn_notify start;
static tally prepared;

static void wait_for_start(struct player *player)
{
    pirn_notify_op op;

    if (player->index == 0) {
        while (tally_of(&prepared) < 5)
            let_others_run(player);
        pirn_notify_all(&start);
        return;
    }
    pirn_notify_wait_init(&op, &start);
    tally_up(&prepared);
    pause_now_and_then(player->index);
    EXPECT_EQ(0, await(&op.future, PIRN_NEVER));
}

static void start_all(pirn_runtime *rt, enum player_kind kind)
{
    pirn_notify_init(&start);
    tally_set(&prepared, 0);
    play(rt, kind, 6, wait_for_start);
    pirn_notify_deinit(&start);
}

/* Goal: whoever has prepared is reached by all, polled or not. */
TEST(notify_all_reaches_all_who_prepared)
{
    tell(__func__, start_all);
}

/* Barrier. */

static pirn_barrier barrier;
static tally leaders;
static tally arrivals;

static void meet_again_and_again(struct player *player)
{
    for (size_t i = 0; i < rounds(); i++) {
        int rc;

        tally_up(&arrivals);
        rc = play_meet(player, &barrier);
        EXPECT_GE(rc, 0);
        if (rc == 1)
            tally_up(&leaders);
        EXPECT_GE(tally_of(&arrivals), 4 * (i + 1));
        rc = play_meet(player, &barrier);
        EXPECT_GE(rc, 0);
        EXPECT_EQ(i + 1, tally_of(&leaders));
        EXPECT_GE(play_meet(player, &barrier), 0);
    }
}

static void meet(pirn_runtime *rt, enum player_kind kind)
{
    EXPECT_EQ(0, pirn_barrier_init(&barrier, 4));
    tally_set(&leaders, 0);
    tally_set(&arrivals, 0);
    play(rt, kind, 4, meet_again_and_again);
    pirn_barrier_deinit(&barrier);
}

/* Goal: nobody goes on before all have come, and one of them leads. */
TEST(barrier_all_meet_and_one_leads)
{
    tell(__func__, meet);
}

/* Once. */

static pirn_once once;
static tally tries;
static uint64_t product;

static int make_at_third_try(void *arg)
{
    (void)arg;
    EXPECT_EQ(0, pirn_yield());
    if (tally_up(&tries) < 2)
        return -EIO;
    product = 42;
    return 0;
}

static void use_product(struct player *player)
{
    int rc;

    (void)player;
    do {
        rc = pirn_once_call(&once, make_at_third_try, NULL, PIRN_NEVER);
    } while (rc == -EIO);
    EXPECT_EQ(0, rc);
    EXPECT_EQ(42, product);
}

static void make_once(pirn_runtime *rt, enum player_kind kind)
{
    pirn_once_init(&once);
    tally_set(&tries, 0);
    product = 0;
    play(rt, kind, 8, use_product);
    EXPECT_EQ(3, tally_of(&tries));
    pirn_once_deinit(&once);
}

/* Goal: after failures the next one makes it, once, and all see it. */
TEST(once_made_after_failures_by_those_who_wait)
{
    tell(__func__, make_once);
}

/* Condition. */

enum { SHELF = 3 };

static pirn_cond not_full, not_empty;
static uint64_t on_shelf, made, taken;

static void put_one(const struct player *player)
{
    EXPECT_EQ(0, play_lock(player, &mutex, PIRN_NEVER));
    while (on_shelf == SHELF)
        EXPECT_EQ(0, play_wait(player, &not_full, &mutex));
    on_shelf++;
    made++;
    pirn_cond_signal(&not_empty);
    pirn_mutex_unlock(&mutex);
}

static void take_one(const struct player *player)
{
    EXPECT_EQ(0, play_lock(player, &mutex, PIRN_NEVER));
    while (on_shelf == 0)
        EXPECT_EQ(0, play_wait(player, &not_empty, &mutex));
    on_shelf--;
    taken++;
    pirn_cond_signal(&not_full);
    pirn_mutex_unlock(&mutex);
}

static void put_or_take(struct player *player)
{
    for (size_t i = 0; i < rounds(); i++) {
        if (player->index % 2 == 0)
            put_one(player);
        else
            take_one(player);
    }
}

static void trade(pirn_runtime *rt, enum player_kind kind)
{
    pirn_mutex_init(&mutex);
    pirn_cond_init(&not_full);
    pirn_cond_init(&not_empty);
    on_shelf = made = taken = 0;
    play(rt, kind, 6, put_or_take);
    EXPECT_EQ(3 * rounds(), made);
    EXPECT_EQ(made, taken);
    pirn_cond_deinit(&not_empty);
    pirn_cond_deinit(&not_full);
    pirn_mutex_deinit(&mutex);
}

/* Goal: a shelf for three, with producers and consumers who wait for each
 * other, loses and doubles nothing. */
TEST(cond_shelf_of_three)
{
    tell(__func__, trade);
}

/* Deadlines. */

static void wait_in_vain(struct player *player)
{
    uint64_t begin = pirn_now_ns();

    EXPECT_EQ(-ETIMEDOUT, play_lock(player, &mutex, pirn_after_us(500)));
    EXPECT_GE(pirn_now_ns(), begin + 500000);
    EXPECT_EQ(-ETIMEDOUT, play_acquire(player, &sem, 2, PIRN_EXPIRED));
    /* What is there beats a deadline that has passed. */
    EXPECT_EQ(0, play_acquire(player, &sem, 1, PIRN_EXPIRED));
    pirn_sem_release(&sem, 1);
}

static void expire(pirn_runtime *rt, enum player_kind kind)
{
    pirn_mutex_init(&mutex);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    EXPECT_EQ(0, pirn_sem_init(&sem, 1));
    play(rt, kind, 1, wait_in_vain);
    pirn_sem_deinit(&sem);
    pirn_mutex_unlock(&mutex);
    pirn_mutex_deinit(&mutex);
}

/* Goal: a deadline ends a wait, not before its time, and success beats it. */
TEST(sync_deadlines)
{
    tell(__func__, expire);
}

/* Cancellation: fibers only. */

static int lock_and_tell(void *arg)
{
    int rc = pirn_mutex_lock(&mutex, PIRN_NEVER);

    (void)arg;
    /* Refused although it is free by now; shielded, it is not. */
    pirn_mutex_unlock(&mutex);
    EXPECT_EQ(-ECANCELED, pirn_mutex_lock(&mutex, PIRN_NEVER));
    pirn_fiber_shield_begin();
    EXPECT_EQ(0, pirn_mutex_lock(&mutex, PIRN_NEVER));
    pirn_fiber_shield_end();
    pirn_mutex_unlock(&mutex);
    return rc;
}

static int wait_and_keep_mutex(void *arg)
{
    int rc;

    (void)arg;
    EXPECT_EQ(0, pirn_mutex_lock(&mutex, PIRN_NEVER));
    tally_set(&told, 1);
    rc = pirn_cond_wait(&not_empty, &mutex, PIRN_NEVER);
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    /* Refused at once, it has never been given up. */
    EXPECT_EQ(-ECANCELED, pirn_cond_wait(&not_empty, &mutex, PIRN_NEVER));
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    return rc;
}

static void cancel_waits(pirn_runtime *rt, enum player_kind kind)
{
    pirn_task *task;

    if (kind != FIBER)
        return;
    pirn_mutex_init(&mutex);
    pirn_cond_init(&not_empty);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    task = go_task(rt, lock_and_tell, NULL);
    pirn_task_cancel(task);
    /* Cancelled before it runs, or in the wait: it has not locked.  It unlocks
     * for us. */
    EXPECT_EQ(-ECANCELED, join_and_unref(task));
    tally_set(&told, 0);
    task = go_task(rt, wait_and_keep_mutex, NULL);
    /* It waits once it has had the mutex, which is free again. */
    do {
        EXPECT_EQ(-ETIMEDOUT,
                  pirn_task_join(task, pirn_after_ms(1), &(int){0}));
    } while (tally_of(&told) == 0 || pirn_mutex_try_lock(&mutex) < 0);
    pirn_mutex_unlock(&mutex);
    pirn_task_cancel(task);
    EXPECT_EQ(-ECANCELED, join_and_unref(task));
    pirn_cond_deinit(&not_empty);
    pirn_mutex_deinit(&mutex);
}

/* Goal: a cancelled lock has not locked; a cancelled wait for a condition has
 * the mutex; on entry cancellation is answered first, except under a shield. */
TEST(sync_cancelled_waits)
{
    tell(__func__, cancel_waits);
}

static enum pirn_poll call_inside(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    (void)cx;
    EXPECT_EQ(-EDEADLK, pirn_mutex_lock(&mutex, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, pirn_sem_acquire(&sem, 1, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, pirn_rwlock_read(&rwlock, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, pirn_notify_wait(&start, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, pirn_barrier_wait(&barrier, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, pirn_once_begin(&once, PIRN_NEVER));
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    EXPECT_EQ(-EDEADLK, pirn_cond_wait(&not_empty, &mutex, PIRN_NEVER));
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    return PIRN_READY;
}

static void call_in_poll(pirn_runtime *rt, enum player_kind kind)
{
    pirn_task *task;

    if (kind != FIBER)
        return;
    pirn_mutex_init(&mutex);
    pirn_cond_init(&not_empty);
    pirn_notify_init(&start);
    pirn_once_init(&once);
    EXPECT_EQ(0, pirn_sem_init(&sem, 1));
    EXPECT_EQ(0, pirn_rwlock_init(&rwlock, 0));
    EXPECT_EQ(0, pirn_barrier_init(&barrier, 1));
    spawn_probe(rt, call_inside, NULL, &task);
    EXPECT_EQ(0, join_and_unref(task));
    EXPECT_EQ(1, pirn_sem_available(&sem));
    pirn_rwlock_deinit(&rwlock);
    pirn_mutex_deinit(&mutex);
}

/* Goal: inside a poll no straight-line call waits or takes anything, but try_
 * works. */
TEST(sync_calls_inside_a_poll_are_refused)
{
    tell(__func__, call_in_poll);
}

/* Operations as tasks of their own. */

static void spawn_locks(pirn_runtime *rt, enum player_kind kind)
{
    const pirn_spawn_options options = {.runtime = rt};
    enum { TASKS = 20 };
    pirn_task *tasks[TASKS];
    pirn_runtime *outer;

    if (kind != FIBER)
        return;
    pirn_mutex_init(&mutex);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    for (int i = 0; i < TASKS; i++) {
        pirn_mutex_lock_op op;

        pirn_mutex_lock_init(&op, &mutex);
        EXPECT_EQ(0, pirn_spawn(&op.future, sizeof op, &options, &tasks[i]));
    }
    EXPECT_EQ(-ETIMEDOUT,
              pirn_task_join(tasks[0], pirn_after_ms(1), &(int){0}));
    for (int i = 0; i < TASKS; i++) {
        if (i % 3 == 0)
            pirn_task_cancel(tasks[i]);
        pirn_task_unref(tasks[i]);
    }
    pirn_mutex_unlock(&mutex);
    /* So that this thread drives a runtime without workers while it waits. */
    outer = pirn_runtime_enter(rt);
    EXPECT_EQ(0, pirn_mutex_lock(&mutex, pirn_after_ms(RESCUE_MS)));
    (void)pirn_runtime_enter(outer);
    pirn_mutex_unlock(&mutex);
}

/* Goal: an operation is a task like any other future; dropped or discarded, it
 * passes on what it got.
 * Method: twenty tasks each of which is a lock that nobody takes the result of,
 * some of them cancelled in line.  Then it is our turn. */
TEST(sync_operations_as_tasks)
{
    tell(__func__, spawn_locks);
    pirn_mutex_deinit(&mutex);
}

/* Stackless tasks. */

struct worker {
    pirn_frame frame;
    union {
        pirn_mutex_lock_op lock;
        pirn_barrier_op meet;
    } op;
    pirn_sem_acquire_op acquire;
    size_t done;
    uint64_t seen;
};

static enum pirn_poll worker_poll(pirn_future *self, pirn_cx *cx)
{
    struct worker *w = PIRN_FRAME_OF(self, struct worker, frame);

    PIRN_ASYNC_BEGIN(&w->frame, cx);
    while (w->done++ < rounds()) {
        pirn_mutex_lock_init(&w->op.lock, &mutex);
        PIRN_AWAIT(&w->op.lock.future);
        w->seen = guarded;
        pirn_sem_acquire_init(&w->acquire, &sem, 1);
        PIRN_AWAIT(&w->acquire.future);
        guarded = w->seen + 1;
        pirn_mutex_unlock(&mutex);
        pirn_sem_release(&sem, 1);
        pirn_barrier_wait_init(&w->op.meet, &barrier);
        PIRN_AWAIT(&w->op.meet.future);
    }
    PIRN_ASYNC_END();
}

static void work_stackless(pirn_runtime *rt, enum player_kind kind)
{
    static const pirn_async_ops ops = PIRN_ASYNC_OPS(worker_poll, NULL);
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *tasks[4];

    if (kind != FIBER)
        return;
    guarded = 0;
    pirn_mutex_init(&mutex);
    EXPECT_EQ(0, pirn_sem_init(&sem, 1));
    EXPECT_EQ(0, pirn_barrier_init(&barrier, 4));
    for (int i = 0; i < 4; i++) {
        struct worker w = {.done = 0};

        pirn_frame_init(&w.frame, &ops);
        EXPECT_EQ(0,
                  pirn_spawn(&w.frame.future, sizeof w, &options, &tasks[i]));
    }
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(0, join_and_unref(tasks[i]));
    EXPECT_EQ(4 * rounds(), guarded);
    pirn_barrier_deinit(&barrier);
    pirn_sem_deinit(&sem);
    pirn_mutex_deinit(&mutex);
}

/* Goal: the operations in stackless tasks, one inside the other.
 * Method: four count under a mutex, with a semaphore inside, and meet after
 * each step. */
TEST(sync_stackless_tasks)
{
    tell(__func__, work_stackless);
}

struct sleeper {
    pirn_frame frame;
    pirn_cond_wait_op wait;
    pirn_timeout_op timeout;
    pirn_mutex_lock_op lock;
};

static enum pirn_poll sleeper_poll(pirn_future *self, pirn_cx *cx)
{
    struct sleeper *s = PIRN_FRAME_OF(self, struct sleeper, frame);

    PIRN_ASYNC_BEGIN(&s->frame, cx);
    pirn_mutex_lock_init(&s->lock, &mutex);
    PIRN_AWAIT(&s->lock.future);
    pirn_cond_wait_init(&s->wait, &not_empty, &mutex);
    PIRN_AWAIT_UNTIL(&s->timeout, &s->wait.future, pirn_after_us(300));
    EXPECT_EQ(-ETIMEDOUT, s->timeout.rc);
    EXPECT(!s->wait.locked);
    tally_set(&told, 1);
    pirn_mutex_lock_init(&s->lock, &mutex);
    PIRN_AWAIT(&s->lock.future);
    pirn_cond_wait_init(&s->wait, &not_empty, &mutex);
    PIRN_AWAIT_UNTIL(&s->timeout, &s->wait.future, PIRN_NEVER);
    EXPECT_EQ(0, s->timeout.rc);
    EXPECT(s->wait.locked);
    pirn_mutex_unlock(&mutex);
    PIRN_ASYNC_END();
}

static void expire_stackless(pirn_runtime *rt, enum player_kind kind)
{
    static const pirn_async_ops ops = PIRN_ASYNC_OPS(sleeper_poll, NULL);
    const pirn_spawn_options options = {.runtime = rt};
    struct sleeper sleeper = {.frame = {.rc = 0}};
    pirn_task *task;
    int outcome = -1;

    if (kind != FIBER)
        return;
    tally_set(&told, 0);
    pirn_mutex_init(&mutex);
    pirn_cond_init(&not_empty);
    pirn_frame_init(&sleeper.frame, &ops);
    EXPECT_EQ(
        0, pirn_spawn(&sleeper.frame.future, sizeof sleeper, &options, &task));
    while (pirn_task_join(task, pirn_after_ms(1), &outcome) == -ETIMEDOUT)
        if (tally_of(&told) == 1)
            pirn_cond_signal(&not_empty);
    EXPECT_EQ(0, outcome);
    pirn_task_unref(task);
    pirn_cond_deinit(&not_empty);
    pirn_mutex_deinit(&mutex);
}

/* Goal: in a stackless task a wait for a condition that is dropped leaves the
 * mutex unlocked and says so; one that ends has it.
 * Method: no signal comes before the first wait's deadline has passed. */
TEST(cond_in_a_stackless_task)
{
    tell(__func__, expire_stackless);
}
