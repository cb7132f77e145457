/* SPDX-License-Identifier: MIT */
/* src/sync/sem_test.c - the semaphore, polled by hand; and its straight-line
 * calls where they need not wait.  How it behaves in tasks and between threads
 * is told in tests/conformance/sync.c.
 */
#include <pirn/sem.h>

#include <errno.h>
#include <string.h>

#include <pirn/fiber.h>
#include <pirn/time.h>

#include "engine/one_thread.h"
#include "engine/poller.h"
#include "sync/waitlist.h"

static poller acquire(pirn_sem_acquire_op *op, pirn_sem *sem, uint32_t permits)
{
    pirn_sem_acquire_init(op, sem, permits);
    return (poller){.fut = &op->future};
}

/* Goal: an initialiser and an init make the same. */
TEST(sem_initialiser_and_init_agree)
{
    pirn_sem by_init, by_macro = PIRN_SEM_INIT(3);

    EXPECT_EQ(0, pirn_sem_init(&by_init, 3));
    EXPECT_EQ(3, pirn_sem_available(&by_init));
    EXPECT_EQ(3, pirn_sem_available(&by_macro));
    EXPECT_EQ(0, pirn_sem_try_acquire(&by_macro, 3));
    EXPECT_EQ(-EAGAIN, pirn_sem_try_acquire(&by_macro, 1));
    pirn_sem_deinit(&by_macro);
    pirn_sem_deinit(&by_init);
}

/* Goal: numbers beyond the limit are refused, those at it are not. */
TEST(sem_limit_of_permits)
{
    pirn_sem_acquire_op op;
    pirn_sem sem;
    poller a;

    EXPECT_EQ(-EINVAL, pirn_sem_init(&sem, PIRN_SEM_MAX + 1));
    EXPECT_EQ(0, pirn_sem_init(&sem, PIRN_SEM_MAX));
    EXPECT_EQ(-EINVAL, pirn_sem_try_acquire(&sem, PIRN_SEM_MAX + 1));
    EXPECT_EQ(-EINVAL, pirn_sem_acquire(&sem, PIRN_SEM_MAX + 1, PIRN_NEVER));
    a = acquire(&op, &sem, PIRN_SEM_MAX + 1);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(-EINVAL, op.rc);
    EXPECT_EQ(-EINVAL, pirn_future_outcome(&op.future));
    EXPECT_EQ(0, pirn_sem_acquire(&sem, PIRN_SEM_MAX, PIRN_NEVER));
    EXPECT_EQ(0, pirn_sem_available(&sem));
}

static void release_one_more(void *arg)
{
    pirn_sem_release(arg, 1);
}

/* Goal: more permits than fit are a broken rule. */
TEST(sem_release_beyond_the_limit_aborts)
{
    pirn_sem sem = PIRN_SEM_INIT(PIRN_SEM_MAX);

    EXPECT_DEATH(release_one_more, &sem, "PIRN_SEM_MAX permits");
}

static void deinit_sem(void *arg)
{
    pirn_sem_deinit(arg);
}

/* Goal: a semaphore for which somebody waits does not end. */
TEST(sem_deinit_with_waiter_aborts)
{
    pirn_sem sem = PIRN_SEM_INIT(0);
    pirn_sem_acquire_op op;
    poller a = acquire(&op, &sem, 1);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_DEATH(deinit_sem, &sem, "nobody waits");
    poller_drop(&a);
}

/* Goal: a permit granted to a future that is then dropped is not lost.
 * Method: B and C wait.  A release grants B, which is dropped before it looks.
 * C must be woken once and get the permit. */
TEST(sem_drop_after_grant_passes_permit_on)
{
    pirn_sem sem = PIRN_SEM_INIT(0);
    pirn_sem_acquire_op b_op, c_op;
    poller b = acquire(&b_op, &sem, 1);
    poller c = acquire(&c_op, &sem, 1);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&c));
    pirn_sem_release(&sem, 1);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(0, c.wakes);
    poller_drop(&b);
    EXPECT_EQ(1, c.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&c));
    EXPECT_EQ(0, c_op.rc);
    EXPECT_EQ(0, pirn_sem_available(&sem));
    pirn_sem_deinit(&sem);
}

/* Goal: the same with nobody behind: the permits are free again. */
TEST(sem_drop_after_grant_without_others_frees)
{
    pirn_sem sem = PIRN_SEM_INIT(0);
    pirn_sem_acquire_op op;
    poller a = acquire(&op, &sem, 2);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    pirn_sem_release(&sem, 2);
    EXPECT_EQ(0, pirn_sem_available(&sem));
    poller_drop(&a);
    EXPECT_EQ(2, pirn_sem_available(&sem));
    EXPECT_EQ(0, pirn_sem_try_acquire(&sem, 2));
}

/* Goal: a large request at the head is not passed.
 * Method: A wants 3 of 2; neither B, who wants 1 and stands behind, nor a
 * newcomer gets one of the two; then all are served in order. */
TEST(sem_large_request_at_the_head_is_not_passed)
{
    pirn_sem sem = PIRN_SEM_INIT(2);
    pirn_sem_acquire_op a_op, b_op;
    poller a = acquire(&a_op, &sem, 3);
    poller b = acquire(&b_op, &sem, 1);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    EXPECT_EQ(-EAGAIN, pirn_sem_try_acquire(&sem, 1));
    EXPECT_EQ(0, pirn_sem_try_acquire(&sem, 0));
    pirn_sem_release(&sem, 1);
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(0, b.wakes);
    pirn_sem_release(&sem, 1);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, pirn_sem_available(&sem));
}

/* Goal: when the head gives up, those behind it for whom there is enough go on.
 * Method: A wants 4 of 3, B and C one each, D three. */
TEST(sem_head_that_gives_up_lets_others_go)
{
    pirn_sem sem = PIRN_SEM_INIT(3);
    pirn_sem_acquire_op ops[4];
    poller a = acquire(&ops[0], &sem, 4);
    poller b = acquire(&ops[1], &sem, 1);
    poller c = acquire(&ops[2], &sem, 1);
    poller d = acquire(&ops[3], &sem, 3);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&c));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&d));
    poller_drop(&a);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    EXPECT_EQ(PIRN_READY, poller_poll(&c));
    EXPECT_EQ(0, d.wakes);
    EXPECT_EQ(1, pirn_sem_available(&sem));
    poller_drop(&d);
    EXPECT_EQ(0, pirn_sem_try_acquire(&sem, 1));
    pirn_sem_deinit(&sem);
}

/* Goal: one release serves as many as it reaches, in any number.
 * Method: more than two batches. */
TEST(sem_release_of_many_serves_many)
{
    enum { CROWD = 2 * PIRN__WAKE_BATCH + 3 };
    static pirn_sem_acquire_op ops[CROWD];
    static poller pollers[CROWD];
    pirn_sem sem = PIRN_SEM_INIT(0);

    for (int i = 0; i < CROWD; i++) {
        pollers[i] = acquire(&ops[i], &sem, 1);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&pollers[i]));
    }
    pirn_sem_release(&sem, CROWD + 2);
    for (int i = 0; i < CROWD; i++) {
        EXPECT_EQ(1, pollers[i].wakes);
        EXPECT_EQ(PIRN_READY, poller_poll(&pollers[i]));
        EXPECT_EQ(0, ops[i].rc);
    }
    EXPECT_EQ(2, pirn_sem_available(&sem));
    pirn_sem_deinit(&sem);
}

/* Goal: closing wakes everybody once and refuses from then on, but a grant that
 * came before stands.
 * Method: A is granted and has not looked, B waits. */
TEST(sem_close_wakes_all_once_and_keeps_grants)
{
    pirn_sem sem = PIRN_SEM_INIT(0);
    pirn_sem_acquire_op a_op, b_op, c_op;
    poller a = acquire(&a_op, &sem, 1);
    poller b = acquire(&b_op, &sem, 1);
    poller c = acquire(&c_op, &sem, 0);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    pirn_sem_release(&sem, 1);
    EXPECT(!pirn_sem_is_closed(&sem));
    pirn_sem_close(&sem);
    pirn_sem_close(&sem);
    EXPECT(pirn_sem_is_closed(&sem));
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, a_op.rc);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    EXPECT_EQ(PIRN_ECLOSED, b_op.rc);
    EXPECT_EQ(PIRN_READY, poller_poll(&c));
    EXPECT_EQ(PIRN_ECLOSED, c_op.rc);
    pirn_sem_release(&sem, 1);
    EXPECT_EQ(1, pirn_sem_available(&sem));
    EXPECT_EQ(PIRN_ECLOSED, pirn_sem_try_acquire(&sem, 1));
    EXPECT_EQ(PIRN_ECLOSED, pirn_sem_acquire(&sem, 1, PIRN_NEVER));
    pirn_sem_deinit(&sem);
}

/* Goal: one dropped after the close loses and wakes nothing. */
TEST(sem_drop_after_close)
{
    pirn_sem sem = PIRN_SEM_INIT(1);
    pirn_sem_acquire_op op;
    poller a = acquire(&op, &sem, 2);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    pirn_sem_close(&sem);
    poller_drop(&a);
    EXPECT_EQ(1, pirn_sem_available(&sem));
}

/* Goal: the result nobody wants goes back. */
TEST(sem_discard_releases)
{
    pirn_sem sem = PIRN_SEM_INIT(2);
    pirn_sem_acquire_op op;
    poller a = acquire(&op, &sem, 2);

    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, pirn_sem_available(&sem));
    pirn_future_discard(&op.future);
    EXPECT_EQ(2, pirn_sem_available(&sem));
    pirn_sem_close(&sem);
    a = acquire(&op, &sem, 2);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    pirn_future_discard(&op.future); /* nothing was taken */
    EXPECT_EQ(2, pirn_sem_available(&sem));
}

/* Goal: permits are removed as far as they are free, and never from under those
 * who wait. */
TEST(sem_remove_takes_what_is_free)
{
    pirn_sem sem = PIRN_SEM_INIT(5);
    pirn_sem_acquire_op op;
    poller a = acquire(&op, &sem, 4);

    EXPECT_EQ(2, pirn_sem_remove(&sem, 2));
    EXPECT_EQ(3, pirn_sem_available(&sem));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(0, pirn_sem_remove(&sem, 1));
    poller_drop(&a);
    EXPECT_EQ(3, pirn_sem_remove(&sem, 10));
    EXPECT_EQ(0, pirn_sem_available(&sem));
}

/* Goal: each acquire costs one unit of budget, and without any it says PENDING
 * and has not tried. */
TEST(sem_acquire_spends_budget)
{
    struct pirn__turn turn = {.budget = 1};
    pirn_sem sem = PIRN_SEM_INIT(2);
    pirn_sem_acquire_op op;
    poller a = acquire(&op, &sem, 1);

    a.turn = &turn;
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, turn.budget);
    a = acquire(&op, &sem, 1);
    a.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT(turn.deferred);
    EXPECT_EQ(1, pirn_sem_available(&sem));
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, pirn_sem_available(&sem));
}

/* Goal: it says what it waits for. */
TEST(sem_acquire_describes_itself)
{
    char buf[64];
    pirn_text text = {buf, sizeof buf, 0};
    pirn_sem sem = PIRN_SEM_INIT(0);
    pirn_sem_acquire_op op;

    pirn_sem_acquire_init(&op, &sem, 7);
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "acquire 7 of semaphore") != NULL);
}

/* Goal: without waiting, straight-line calls say how it stands.
 * Method: on this plain thread. */
TEST(sem_straight_line_calls_that_do_not_wait)
{
    pirn_sem sem = PIRN_SEM_INIT(1);

    EXPECT_EQ(0, pirn_sem_acquire(&sem, 1, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, pirn_sem_acquire(&sem, 1, PIRN_EXPIRED));
    EXPECT_EQ(0, pirn_sem_acquire(&sem, 0, PIRN_EXPIRED));
    pirn_sem_release(&sem, 0);
    EXPECT_EQ(0, pirn_sem_available(&sem));
    pirn_sem_deinit(&sem);
}

/* In a runtime. */

enum { TURNS = 30 };

static struct {
    pirn_sem sem;
    int holders;
    int done;
    int turns;
    int turns_with_line; /* in which somebody stood in line */
} play;

static int acquire_again_and_again(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        EXPECT_EQ(0, pirn_sem_acquire(&play.sem, 1, PIRN_NEVER));
        EXPECT_EQ(1, ++play.holders);
        /* The first holder suspends, and all others come to stand in line. */
        if (play.turns++ == 0)
            EXPECT_EQ(0, pirn_yield());
        if (!pirn__waitlist_empty(&play.sem.waiters_))
            play.turns_with_line++;
        play.holders--;
        pirn_sem_release(&play.sem, 1);
    }
    play.done++;
    return 0;
}

static int start_and_wait(void *arg)
{
    (void)arg;
    EXPECT_EQ(0, pirn_sem_init(&play.sem, 1));
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(0, pirn_go(acquire_again_and_again, NULL));
    while (play.done < 4)
        EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(4 * TURNS, play.turns);
    EXPECT_GE(play.turns_with_line, 3);
    EXPECT_LE(play.turns_with_line, 8);
    pirn_sem_deinit(&play.sem);
    return 0;
}

/* Goal: tasks that acquire again and again, and were in line together once, do
 * not stay in line for ever.
 * Method: four fibers on one thread.  Somebody is in line at the beginning, and
 * hardly ever afterwards. */
TEST(sem_line_of_tasks_that_come_back_dissolves)
{
    play.done = play.turns = play.turns_with_line = 0;
    EXPECT_EQ(0, run_on_one_thread(start_and_wait, NULL));
}

static int acquire_and_give_away(void *arg)
{
    pirn_sem_acquire_op op;
    poller other;

    (void)arg;
    EXPECT_EQ(0, pirn_sem_init(&play.sem, 1));
    EXPECT_EQ(0, pirn_sem_acquire(&play.sem, 1, PIRN_NEVER));
    other = acquire(&op, &play.sem, 1);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&other));
    pirn_sem_release(&play.sem, 1);
    /* Given to the other, who does not run: one turn, then in line. */
    EXPECT_EQ(-ETIMEDOUT, pirn_sem_acquire(&play.sem, 1, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, pirn_sem_acquire(&play.sem, 1, pirn_after_us(100)));
    EXPECT_EQ(PIRN_READY, poller_poll(&other));
    pirn_sem_release(&play.sem, 1);
    EXPECT_EQ(0, pirn_sem_acquire(&play.sem, 1, PIRN_NEVER));
    pirn_sem_release(&play.sem, 1);
    pirn_sem_deinit(&play.sem);
    return 0;
}

/* Goal: who gives way stands in line after a turn, and meets its deadline. */
TEST(sem_that_was_given_away_is_waited_for)
{
    EXPECT_EQ(0, run_on_one_thread(acquire_and_give_away, NULL));
}

static int come_after_a_turn(void *arg)
{
    pirn_sem_acquire_op op;
    poller late = acquire(&op, &play.sem, 1);

    (void)arg;
    EXPECT(pirn__waitlist_empty(&play.sem.waiters_));
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(0, pirn_yield());
    EXPECT(!pirn__waitlist_empty(&play.sem.waiters_));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&late));
    pirn_sem_release(&play.sem, 1);
    EXPECT_EQ(0, late.wakes);
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(1, play.done);
    EXPECT_EQ(PIRN_READY, poller_poll(&late));
    return 0;
}

static int give_way_once(void *arg)
{
    pirn_sem_acquire_op op;
    poller other;

    (void)arg;
    EXPECT_EQ(0, pirn_sem_init(&play.sem, 1));
    EXPECT_EQ(0, pirn_sem_acquire(&play.sem, 1, PIRN_NEVER));
    other = acquire(&op, &play.sem, 1);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&other));
    pirn_sem_release(&play.sem, 1);
    EXPECT_EQ(PIRN_READY, poller_poll(&other));
    EXPECT_EQ(0, pirn_go(come_after_a_turn, NULL));
    EXPECT_EQ(0, pirn_sem_acquire(&play.sem, 1, PIRN_NEVER));
    play.done++;
    pirn_sem_release(&play.sem, 1);
    EXPECT_EQ(0, pirn_yield());
    pirn_sem_deinit(&play.sem);
    return 0;
}

/* Goal: who gives way does so for a turn and no longer; then it stands in line,
 * and nobody passes it.
 * Method: the permit is handed to one that keeps it; another task looks at the
 * line, stands in it, and gives the permit back. */
TEST(sem_who_gives_way_stands_in_line_after_a_turn)
{
    play.done = 0;
    EXPECT_EQ(0, run_on_one_thread(give_way_once, NULL));
}

/* Permits as a value. */

/* Goal: permits are split, merged, handed over, forgotten and released, and
 * each is somewhere exactly once. */
TEST(permit_split_merge_take_forget_release)
{
    pirn_sem sem = PIRN_SEM_INIT(10);
    pirn_permit all, part, handed = {0};

    EXPECT_EQ(0, pirn_sem_try_acquire(&sem, 10));
    all = pirn_permit_of(&sem, 10);
    EXPECT_EQ(0, pirn_permit_split(&all, 4, &part));
    EXPECT_EQ(6, pirn_permit_count(&all));
    EXPECT_EQ(4, pirn_permit_count(&part));
    EXPECT_EQ(-EINVAL, pirn_permit_split(&all, 7, &handed));
    EXPECT_EQ(0, pirn_permit_count(&handed));
    EXPECT_EQ(6, pirn_permit_count(&all));
    handed = pirn_permit_take(&part);
    EXPECT_EQ(0, pirn_permit_count(&part));
    EXPECT_EQ(4, pirn_permit_count(&handed));
    EXPECT_EQ(0, pirn_permit_merge(&all, &handed));
    EXPECT_EQ(10, pirn_permit_count(&all));
    EXPECT_EQ(0, pirn_permit_count(&handed));
    EXPECT_EQ(0, pirn_permit_split(&all, 3, &part));
    EXPECT_EQ(3, pirn_permit_forget(&part));
    pirn_permit_release(&part); /* empty: nothing */
    pirn_permit_release(&all);
    EXPECT_EQ(7, pirn_sem_available(&sem));
}

/* Goal: permits of different semaphores do not merge, but an empty value takes
 * any, and an empty one may be merged into any. */
TEST(permit_merge_of_different_semaphores_is_refused)
{
    pirn_sem one = PIRN_SEM_INIT(0), other = PIRN_SEM_INIT(0);
    pirn_permit a = pirn_permit_of(&one, 1), b = pirn_permit_of(&other, 2);
    pirn_permit empty = {0};

    EXPECT_EQ(-EINVAL, pirn_permit_merge(&a, &b));
    EXPECT_EQ(1, pirn_permit_count(&a));
    EXPECT_EQ(2, pirn_permit_count(&b));
    EXPECT_EQ(0, pirn_permit_merge(&a, &empty));
    EXPECT_EQ(0, pirn_permit_merge(&empty, &b));
    pirn_permit_release(&empty);
    EXPECT_EQ(2, pirn_sem_available(&other));
    pirn_permit_release(&a);
    EXPECT_EQ(1, pirn_sem_available(&one));
}
