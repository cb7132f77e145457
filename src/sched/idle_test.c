/* SPDX-License-Identifier: MIT */
/* src/sched/idle_test.c - the counts of sleepers and searchers, step by step. */
#include "sched/idle.h"

#include "engine/test.h"

/* Goal: at most half of the workers search, but one always may.
 * Method: pools of 1 to 5; count how many are let in. */
TEST(idle_half_of_the_workers_may_search)
{
    static const uint32_t allowed[] = {0, 1, 1, 2, 2, 3};

    for (uint32_t workers = 1; workers <= 5; workers++) {
        struct pirn__idle idle = {{0}};
        uint32_t searchers = 0;

        while (searchers <= workers &&
               pirn__idle_start_search(&idle, workers))
            searchers++;
        EXPECT_EQ(allowed[workers], searchers);
        while (searchers > 0)
            EXPECT_EQ(--searchers == 0, pirn__idle_stop_search(&idle));
        EXPECT(pirn__idle_start_search(&idle, workers));
    }
}

/* Goal: a sleeper is woken only if there is one and nobody searches; the wake
 * itself then counts as a searcher, so one is under way at a time.
 * Method: all four cases, then the woken one stops searching. */
TEST(idle_one_wake_at_a_time)
{
    struct pirn__idle idle = {{0}};

    EXPECT(!pirn__idle_claim_wake(&idle));
    pirn__idle_enter_sleep(&idle, false);
    pirn__idle_enter_sleep(&idle, false);
    EXPECT_EQ(2, pirn__idle_sleepers(&idle));

    EXPECT(pirn__idle_start_search(&idle, 4));
    EXPECT(!pirn__idle_claim_wake(&idle));
    EXPECT(pirn__idle_stop_search(&idle));

    EXPECT(pirn__idle_claim_wake(&idle));
    EXPECT(!pirn__idle_claim_wake(&idle));
    pirn__idle_leave_sleep(&idle);
    EXPECT_EQ(1, pirn__idle_sleepers(&idle));
    EXPECT(!pirn__idle_claim_wake(&idle));
    EXPECT(pirn__idle_stop_search(&idle));

    EXPECT(pirn__idle_claim_wake(&idle));
    pirn__idle_leave_sleep(&idle);
    EXPECT(pirn__idle_stop_search(&idle));
    EXPECT(!pirn__idle_claim_wake(&idle));
    EXPECT_EQ(0, pirn__idle_sleepers(&idle));
}

/* Goal: a searcher that goes to sleep stops searching in the same step, so that
 * no waker counts on it.
 * Method: the only searcher does. */
TEST(idle_sleep_ends_the_search)
{
    struct pirn__idle idle = {{0}};

    EXPECT(pirn__idle_start_search(&idle, 2));
    pirn__idle_enter_sleep(&idle, true);
    EXPECT_EQ(1, pirn__idle_sleepers(&idle));
    EXPECT(pirn__idle_claim_wake(&idle));
}

/* Goal: one may nap while somebody else neither naps nor sleeps; its search ends
 * in the same step.
 * Method: pools of 1 to 3. */
TEST(idle_nap_needs_one_who_stays)
{
    struct pirn__idle idle = {{0}};

    EXPECT(!pirn__idle_enter_nap(&idle, 1, false));
    EXPECT(pirn__idle_start_search(&idle, 2));
    EXPECT(pirn__idle_enter_nap(&idle, 2, true));
    EXPECT(!pirn__idle_enter_nap(&idle, 2, false));
    EXPECT(pirn__idle_enter_nap(&idle, 3, false));
    pirn__idle_leave_nap(&idle);
    pirn__idle_enter_sleep(&idle, false);
    EXPECT(!pirn__idle_enter_nap(&idle, 3, false));
    (void)pirn__idle_leave_sleep(&idle);
    pirn__idle_leave_nap(&idle);
    EXPECT(pirn__idle_start_search(&idle, 1));
}

/* Goal: who naps is no sleeper, and is woken only for what ends a nap.
 * Method: both claims, with one who naps and then with a sleeper besides. */
TEST(idle_nap_ends_only_for_some_work)
{
    struct pirn__idle idle = {{0}};

    EXPECT(!pirn__idle_claim_any(&idle));
    EXPECT(pirn__idle_enter_nap(&idle, 3, false));
    EXPECT_EQ(0, pirn__idle_sleepers(&idle));
    EXPECT(!pirn__idle_claim_wake(&idle));
    EXPECT(pirn__idle_claim_any(&idle));
    EXPECT(!pirn__idle_claim_any(&idle));
    EXPECT(pirn__idle_stop_search(&idle));
    pirn__idle_enter_sleep(&idle, false);
    EXPECT(pirn__idle_claim_wake(&idle));
    EXPECT(pirn__idle_stop_search(&idle));
    EXPECT(pirn__idle_claim_any(&idle));
    EXPECT(pirn__idle_stop_search(&idle));
}

/* Goal: the counts do not run into each other.
 * Method: the most workers that a pool may have, all asleep, then all awake. */
TEST(idle_counts_all_workers)
{
    struct pirn__idle idle = {{0}};
    enum { MOST = 512 };

    for (int i = 0; i < MOST; i++)
        pirn__idle_enter_sleep(&idle, false);
    EXPECT_EQ(MOST, pirn__idle_sleepers(&idle));
    EXPECT(pirn__idle_claim_wake(&idle));
    for (int i = 0; i < MOST; i++)
        pirn__idle_leave_sleep(&idle);
    EXPECT_EQ(0, pirn__idle_sleepers(&idle));
    for (int i = 1; i < MOST / 2; i++)
        EXPECT(pirn__idle_start_search(&idle, MOST));
    EXPECT(!pirn__idle_start_search(&idle, MOST));
    for (int i = 1; i < MOST; i++)
        EXPECT(pirn__idle_enter_nap(&idle, MOST, false));
    EXPECT(!pirn__idle_enter_nap(&idle, MOST, false));
    EXPECT_EQ(0, pirn__idle_sleepers(&idle));
    for (int i = 1; i < MOST; i++)
        pirn__idle_leave_nap(&idle);
    EXPECT_EQ(MOST / 2, pirn__load(&idle.word, relaxed));
}

static void stop_without_search(void *arg)
{
    struct pirn__idle idle = {{0}};

    (void)arg;
    (void)pirn__idle_stop_search(&idle);
}

static void wake_without_sleep(void *arg)
{
    struct pirn__idle idle = {{0}};

    (void)arg;
    pirn__idle_leave_sleep(&idle);
}

/* Goal: a count that would fall below nothing ends the process.
 * Method: each once, in a child. */
TEST(idle_counts_never_fall_below_nothing)
{
    EXPECT_DEATH(stop_without_search, NULL, "idle.c");
    EXPECT_DEATH(wake_without_sleep, NULL, "idle.c");
}
