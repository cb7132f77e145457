/* SPDX-License-Identifier: MIT */
/* src/sched/idle_model.c - the word that says who sleeps, naps and searches.
 *
 * The protocol alone, as worker.c follows it: a queue is a number of tasks, the
 * wake descriptor a bell.  Nobody wakes up by himself, not even from a nap, so a
 * wake that is lost shows as a deadlock.
 */
#include "sched/idle.h"

#include "engine/explore.h"
#include "sys/sys.h"

enum { WORKERS = 2 };

static struct pirn__idle idle;
static PIRN_ATOMIC(int) queue;   /* what workers push; a nap may go on */
static PIRN_ATOMIC(int) outside; /* what ends a nap */
static PIRN_ATOMIC(uint32_t) bell;
static PIRN_ATOMIC(uint32_t) runs; /* tasks that were begun */

/* The wake descriptor: who hears it owns that wake. */
static void ring_bell(void)
{
    pirn__store(&bell, 1, release);
    pirn__sys->futex_wake(&bell.v_, 1);
}

static void hear_bell(void)
{
    while (pirn__swap(&bell, 0, acquire) == 0)
        (void)pirn__sys->futex_wait(&bell.v_, 0, PIRN_NEVER);
}

static bool is_some(void)
{
    return pirn__load(&outside, seq_cst) > 0 || pirn__load(&queue, seq_cst) > 0;
}

/* Take a task.  The look before is only a hint, as in the queues. */
static bool take(void)
{
    int count = pirn__load(&outside, relaxed);

    while (count > 0) {
        if (pirn__cas_weak(&outside, &count, count - 1, acquire, relaxed))
            return true;
    }
    count = pirn__load(&queue, relaxed);
    while (count > 0) {
        if (pirn__cas_weak(&queue, &count, count - 1, acquire, relaxed))
            return true;
    }
    return false;
}

static void wake_one(void)
{
    if (pirn__idle_claim_wake(&idle))
        ring_bell();
}

static void wake_any(void)
{
    if (pirn__idle_claim_any(&idle))
        ring_bell();
}

static void push_inside(void)
{
    pirn__add(&queue, 1, seq_cst);
    wake_one();
}

static void push_outside(void)
{
    pirn__add(&outside, 1, seq_cst);
    wake_any();
}

/* A worker until it has a task: search, and sleep when there is nothing. */
static void find_task(bool searching)
{
    for (;;) {
        if (!searching)
            searching = pirn__idle_start_search(&idle, WORKERS);
        if (take())
            break;
        pirn__idle_enter_sleep(&idle, searching);
        searching = false;
        if (!is_some()) {
            hear_bell();
            searching = true;
        }
        (void)pirn__idle_leave_sleep(&idle);
    }
    if (searching && pirn__idle_stop_search(&idle) && is_some())
        wake_one();
}

/* A task that does not end before so many have begun. */
static void run_until(uint32_t count)
{
    uint32_t begun = pirn__add(&runs, 1, acq_rel) + 1;

    pirn__sys->futex_wake(&runs.v_, WORKERS);
    while (begun < count) {
        (void)pirn__sys->futex_wait(&runs.v_, begun, PIRN_NEVER);
        begun = pirn__load(&runs, acquire);
    }
}

static void work(void *arg)
{
    (void)arg;
    find_task(false);
    run_until(1);
}

/* A wake that nobody has heard is one searcher. */
static uint32_t final_word(void)
{
    return pirn__load(&idle.word, relaxed) - pirn__load(&bell, relaxed);
}

/* Goal: a push meets a worker at each step of its way to sleep. */
MODEL(idle_push_against_sleep, .preemptions = 4, .frozen = true)
{
    explore_thread(work, NULL);
    push_inside();
    explore_join();
    EXPLORE_CHECK(final_word() == 0);
}

static void work_until_both(void *arg)
{
    (void)arg;
    find_task(false);
    run_until(2);
}

/* Goal: two tasks that need two workers get them, though the second push finds
 * a searcher and wakes nobody: the last searcher looks again. */
MODEL(idle_last_searcher_wakes_the_next, .preemptions = 2, .frozen = true,
      .stale = 2)
{
    explore_thread(work_until_both, NULL);
    explore_thread(work_until_both, NULL);
    push_inside();
    push_inside();
    explore_join();
    EXPLORE_CHECK(final_word() == 0);
}

static void push_one(void *arg)
{
    (void)arg;
    push_inside();
}

/* Goal: of two wakers at once one wakes, and that is enough for both tasks. */
MODEL(idle_two_wakers_and_a_sleeper, .preemptions = 3, .frozen = true)
{
    pirn__idle_enter_sleep(&idle, false);
    explore_thread(push_one, NULL);
    explore_thread(push_one, NULL);
    hear_bell();
    (void)pirn__idle_leave_sleep(&idle);
    EXPLORE_CHECK(take());
    if (pirn__idle_stop_search(&idle) && is_some())
        wake_one();
    explore_join();
    /* The other one is seen by us, or its waker has woken us again. */
    EXPLORE_CHECK(take());
    EXPLORE_CHECK(final_word() == 0);
}

/* Nap for ever, unless woken; false: the other one is away. */
static bool nap(bool searching)
{
    if (!pirn__idle_enter_nap(&idle, WORKERS, searching))
        return false;
    if (pirn__load(&outside, seq_cst) == 0) {
        hear_bell();
        (void)pirn__idle_stop_search(&idle);
    }
    pirn__idle_leave_nap(&idle);
    return true;
}

static void search_and_nap(void *arg)
{
    bool searching = pirn__idle_start_search(&idle, WORKERS);

    (void)arg;
    while (!take()) {
        EXPLORE_CHECK(nap(searching));
        searching = false;
    }
    if (searching)
        (void)pirn__idle_stop_search(&idle);
}

/* Goal: what comes from outside ends a nap that has begun, or is about to. */
MODEL(idle_outside_push_against_a_nap, .preemptions = 4, .frozen = true)
{
    explore_thread(search_and_nap, NULL);
    push_outside();
    explore_join();
    EXPLORE_CHECK(final_word() == 0);
}

static PIRN_ATOMIC(int) refused; /* naps, as the other one was away */

/* Naps if it may, sleeps if not; then waits for a task of a worker. */
static void nap_or_work(void *arg)
{
    (void)arg;
    if (pirn__idle_enter_nap(&idle, WORKERS, false))
        return;
    pirn__add(&refused, 1, relaxed);
    work(NULL);
}

/* Goal: of two workers that would nap one stays, and gets what is pushed. */
MODEL(idle_two_do_not_nap_at_once, .preemptions = 3, .frozen = true)
{
    explore_thread(nap_or_work, NULL);
    explore_thread(nap_or_work, NULL);
    push_inside();
    explore_join();
    EXPLORE_CHECK(pirn__load(&refused, relaxed) == 1);
    EXPLORE_CHECK(final_word() == PIRN__IDLE_NAPPER);
}
