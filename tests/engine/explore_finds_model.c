/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_finds_model.c - the explorer finds planted bugs.
 *
 * For each kind of finding a small program with a bug of that kind, and the
 * same program without it.  An explorer that missed one would say nothing about
 * the library by being silent.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/slab.h"
#include "engine/explore.h"
#include "sys/sys.h"

static bool buggy;

static PIRN_ATOMIC(uint32_t) flag;
static PIRN_ATOMIC(uint32_t) word;
static PIRN_SHARED(int) data;
static pirn_lock first_lock;
static pirn_lock second_lock;

/* Explore a body with its bug and without; both have all schedules. */
static void expect_finding(enum explore_finding finding, void (*body)(void))
{
    const struct explore_options all = {.preemptions = EXPLORE_UNBOUNDED};

    buggy = true;
    EXPECT_EQ(finding, explore_run(body, &all, true).finding);
    buggy = false;
    EXPECT_EQ(EXPLORE_CLEAN, explore_run(body, &all, false).finding);
}

/* ---- A check that fails: two threads add, one of them in two steps. ---- */

static void add_torn(void *arg)
{
    (void)arg;
    if (buggy)
        pirn__store(&word, pirn__load(&word, relaxed) + 1, relaxed);
    else
        pirn__add(&word, 1, relaxed);
}

static void lose_an_increment(void)
{
    explore_thread(add_torn, NULL);
    explore_thread(add_torn, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&word, relaxed) == 2);
}

TEST(finds_failed_check_of_torn_increment)
{
    expect_finding(EXPLORE_CHECK_FAILED, lose_an_increment);
}

/* ---- Beyond the bound. ---- */

TEST(finds_beyond_the_bound_what_needs_one_preemption_more)
{
    const struct explore_options none = {.preemptions = -1, .stale = -1};

    buggy = true;
    EXPECT_EQ(EXPLORE_CLEAN,
              explore_run(lose_an_increment, &none, true).finding);
    EXPECT_EQ(EXPLORE_CHECK_FAILED,
              explore_beyond(lose_an_increment, &none, 10, true).finding);
    buggy = false;
    EXPECT_EQ(EXPLORE_CLEAN,
              explore_beyond(lose_an_increment, &none, 10, false).finding);
}

static PIRN_ATOMIC(uint32_t) places[10];

/* So much follows that the search never comes back to the beginning. */
static void add_and_go_on(void *arg)
{
    add_torn(arg);
    for (int i = 0; i < 40; i++)
        pirn__add(&places[i % 10], 1, acq_rel);
}

static void lose_an_increment_early(void)
{
    explore_thread(add_and_go_on, NULL);
    explore_thread(add_and_go_on, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&word, relaxed) == 2);
}

TEST(finds_by_walking_what_stands_too_early_for_the_search)
{
    const struct explore_options all = {.preemptions = EXPLORE_UNBOUNDED};
    struct explore_result result;

    buggy = true;
    EXPECT_EQ(
        EXPLORE_CHECK_FAILED,
        explore_beyond(lose_an_increment_early, &all, 2, true).finding);
    buggy = false;
    result = explore_beyond(lose_an_increment_early, &all, 0.2, false);
    EXPECT_EQ(EXPLORE_CLEAN, result.finding);
    EXPECT_GE(result.executions, result.walks);
    EXPECT_NE(0, result.walks);
}

/* ---- A race: data behind a flag that publishes nothing. ---- */

static void publish(void *arg)
{
    (void)arg;
    pirn_cell_write(&data, 1);
    if (buggy)
        pirn__store(&flag, 1, relaxed);
    else
        pirn__store(&flag, 1, release);
}

static void consume(void *arg)
{
    (void)arg;
    if (pirn__load(&flag, acquire) == 1)
        EXPLORE_CHECK(pirn_cell_read(&data) == 1);
}

static void hand_over(void)
{
    explore_thread(publish, NULL);
    explore_thread(consume, NULL);
    explore_join();
}

TEST(finds_race_behind_a_relaxed_flag)
{
    expect_finding(EXPLORE_RACE, hand_over);
}

/* ---- An old value: two flags that are both overlooked. ---- */

static PIRN_ATOMIC(uint32_t) entered;

static void enter(void *arg)
{
    bool is_first = arg == NULL;

    if (buggy && is_first)
        pirn__store(&flag, 1, release);
    else if (is_first)
        pirn__store(&flag, 1, seq_cst);
    else
        pirn__store(&word, 1, seq_cst);
    if ((is_first ? pirn__load(&word, seq_cst)
                  : pirn__load(&flag, seq_cst)) == 0)
        pirn__add(&entered, 1, relaxed);
}

static void enter_both(void)
{
    explore_thread(enter, NULL);
    explore_thread(enter, &flag);
    explore_join();
    EXPLORE_CHECK(pirn__load(&entered, relaxed) <= 1);
}

TEST(finds_two_threads_that_overlook_each_other)
{
    expect_finding(EXPLORE_CHECK_FAILED, enter_both);
}

/* ---- A lost wake-up: the sleeper looks before it announces itself. ---- */

static void sleep_until_flag(void *arg)
{
    (void)arg;
    if (!buggy)
        pirn__store(&word, 1, seq_cst);
    if (pirn__load(&flag, seq_cst) == 1)
        return;
    if (buggy)
        pirn__store(&word, 1, seq_cst);
    while (pirn__load(&word, acquire) == 1)
        (void)pirn__sys->futex_wait(&word.v_, 1, PIRN_NEVER);
}

static void set_flag_and_wake(void *arg)
{
    (void)arg;
    pirn__store(&flag, 1, seq_cst);
    if (pirn__swap(&word, 0, seq_cst) == 1)
        pirn__sys->futex_wake(&word.v_, 1);
}

static void sleep_and_wake(void)
{
    explore_thread(sleep_until_flag, NULL);
    explore_thread(set_flag_and_wake, NULL);
    explore_join();
}

TEST(finds_lost_wake_of_late_announcement)
{
    expect_finding(EXPLORE_DEADLOCK, sleep_and_wake);
}

/* ---- A lock cycle. ---- */

static void lock_both(void *arg)
{
    bool swapped = buggy && arg != NULL;

    pirn__lock(swapped ? &second_lock : &first_lock);
    pirn__lock(swapped ? &first_lock : &second_lock);
    pirn__unlock(&first_lock);
    pirn__unlock(&second_lock);
}

static void lock_in_some_order(void)
{
    explore_thread(lock_both, NULL);
    explore_thread(lock_both, &flag);
    explore_join();
}

TEST(finds_deadlock_of_lock_cycle)
{
    expect_finding(EXPLORE_DEADLOCK, lock_in_some_order);
}

/* ---- A livelock: each steps back when it sees the other. ---- */

static void be_polite(void *arg)
{
    bool is_first = arg == NULL;

    /* With the bug nobody ever sets the flag that both wait for. */
    while (pirn__load(&flag, acquire) == 0) {
        if (is_first && !buggy)
            pirn__store(&flag, 1, release);
        else
            pirn__add(&word, 1, relaxed);
        if (!is_first && !buggy)
            return;
    }
}

static void wait_for_each_other(void)
{
    explore_thread(be_polite, NULL);
    explore_thread(be_polite, &flag);
    explore_join();
}

TEST(finds_livelock_of_two_that_give_way)
{
    const struct explore_options few = {.preemptions = 1, .steps = 50};

    buggy = true;
    EXPECT_EQ(EXPLORE_LIVELOCK,
              explore_run(wait_for_each_other, &few, true).finding);
    buggy = false;
    EXPECT_EQ(EXPLORE_CLEAN,
              explore_run(wait_for_each_other, &few, false).finding);
}

/* ---- A leak, and use after free: the last reference. ---- */

static void *object;

static void free_object(void)
{
    explore_heap.give(NULL, object, 16, 16);
}

/* The bug: to look at the count and to change it are two steps. */
static void unref_torn(void *arg)
{
    bool is_last;

    (void)arg;
    if (buggy) {
        is_last = pirn__load(&word, acquire) == 1;
        pirn__sub(&word, 1, acq_rel);
    } else {
        is_last = pirn__sub(&word, 1, acq_rel) == 1;
    }
    if (is_last)
        free_object();
}

static void leak_an_object(void)
{
    object = explore_heap.take(NULL, 16, 16);
    pirn__init(&word, 2);
    explore_thread(unref_torn, NULL);
    explore_thread(unref_torn, NULL);
    explore_join();
}

TEST(finds_leak_of_torn_reference_count)
{
    expect_finding(EXPLORE_LEAK, leak_an_object);
}

/* The bug: a last use after one's own reference was given up. */
static void unref_and_use(void *arg)
{
    struct explore_place place = EXPLORE_PLACE;

    (void)arg;
    if (!buggy)
        explore_cell(object, 4, false, place);
    if (pirn__sub(&word, 1, acq_rel) == 1)
        free_object();
    else if (buggy)
        explore_cell(object, 4, false, place);
}

static void use_an_object(void)
{
    object = explore_heap.take(NULL, 16, 16);
    pirn__init(&word, 2);
    explore_thread(unref_and_use, NULL);
    explore_thread(unref_and_use, NULL);
    explore_join();
}

TEST(finds_use_after_the_last_reference)
{
    const struct explore_options all = {.preemptions = EXPLORE_UNBOUNDED};
    enum explore_finding finding;

    buggy = true;
    finding = explore_run(use_an_object, &all, true).finding;
    /* Whichever comes first in the search: the use may stand before or after
     * the free, which nothing orders. */
    EXPECT(finding == EXPLORE_RACE || finding == EXPLORE_USE_AFTER_FREE);
    buggy = false;
    EXPECT_EQ(EXPLORE_CLEAN, explore_run(use_an_object, &all, false).finding);
}

/* Alone with its mistake no race stands before it. */
static void free_and_use(void)
{
    object = explore_heap.take(NULL, 16, 16);
    free_object();
    if (buggy)
        explore_cell(object, 4, false, EXPLORE_PLACE);
}

TEST(finds_use_after_free)
{
    expect_finding(EXPLORE_USE_AFTER_FREE, free_and_use);
}

/* ---- A slab cell that was given back. ---- */

static struct pirn__slabs slabs;

static void slabs_are_empty(void *owner)
{
    (void)owner;
}

static void use_a_cell(void)
{
    struct pirn__cell *cell;

    pirn__slabs_init(&slabs, &explore_heap, slabs_are_empty, NULL);
    cell = pirn__slabs_take(&slabs, NULL, 64);
    explore_cell(cell + 1, 4, true, EXPLORE_PLACE);
    pirn__slabs_give(NULL, cell);
    if (buggy)
        explore_cell(cell + 1, 4, true, EXPLORE_PLACE);
    (void)pirn__slabs_retire(&slabs);
}

TEST(finds_use_of_a_slab_cell_that_was_given_back)
{
    expect_finding(EXPLORE_USE_AFTER_FREE, use_a_cell);
}

/* ---- A race in plain data of the library, which nobody has marked. ---- */

static struct pirn__slabs other_slabs;

static void make_slabs(void *arg)
{
    pirn__slabs_init(arg, &explore_heap, slabs_are_empty, NULL);
}

static void make_one_or_two(void)
{
    explore_thread(make_slabs, &slabs);
    explore_thread(make_slabs, buggy ? &slabs : &other_slabs);
    explore_join();
}

TEST(finds_race_in_plain_data_of_the_library)
{
    expect_finding(EXPLORE_RACE, make_one_or_two);
}

/* ---- A weak compare-and-swap that fails for no reason. ---- */

static void claim(void *arg)
{
    uint32_t zero = 0;

    (void)arg;
    if (buggy ? pirn__cas_weak(&word, &zero, 1, acq_rel, relaxed)
              : pirn__cas(&word, &zero, 1, acq_rel, relaxed))
        pirn__add(&entered, 1, relaxed);
}

static void claim_once(void)
{
    explore_thread(claim, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&entered, relaxed) == 1);
}

TEST(finds_weak_swap_taken_for_a_strong_one)
{
    expect_finding(EXPLORE_CHECK_FAILED, claim_once);
}

/* ---- A wait that ends for no reason, or at its time. ---- */

static void wait_for_flag(void *arg)
{
    pirn_deadline deadline = {arg != NULL ? 2000000 : UINT64_MAX};
    int rc = 0;

    /* The bug: to return from the wait means to have been woken. */
    do {
        if (pirn__load(&flag, acquire) == 1)
            return;
        rc = pirn__sys->futex_wait(&flag.v_, 0, deadline);
    } while (!buggy && rc == 0);
    if (buggy)
        EXPLORE_CHECK(pirn__load(&flag, acquire) == 1);
}

static void raise_flag(void *arg)
{
    (void)arg;
    pirn__store(&flag, 1, release);
    pirn__sys->futex_wake(&flag.v_, 1);
}

static void wait_once(void)
{
    explore_thread(wait_for_flag, NULL);
    explore_thread(raise_flag, NULL);
    explore_join();
}

static void wait_with_time(void)
{
    explore_thread(wait_for_flag, &flag);
    explore_thread(raise_flag, NULL);
    explore_join();
}

TEST(finds_spurious_return_taken_for_a_wake)
{
    expect_finding(EXPLORE_CHECK_FAILED, wait_once);
}

TEST(finds_timeout_taken_for_a_wake)
{
    const struct explore_options timeouts = {
        .preemptions = EXPLORE_UNBOUNDED, .spurious = -1, .stale = -1};

    buggy = true;
    EXPECT_EQ(EXPLORE_CHECK_FAILED,
              explore_run(wait_with_time, &timeouts, true).finding);
    buggy = false;
    EXPECT_EQ(EXPLORE_CLEAN,
              explore_run(wait_with_time, &timeouts, false).finding);
}

/* ---- An edge that comes late. ---- */

static int set_fd;
static int event_fd;

/* Two threads harvest one set.  The bug: whoever takes the edge keeps it to
 * itself, although the other may be the one that it was meant for. */
static void harvest(void *arg)
{
    struct epoll_event event;

    (void)arg;
    /* Ends when the flag is up; each wait follows a look. */
    while (pirn__load(&flag, seq_cst) < 2) {
        if (pirn__sys->epoll_wait(set_fd, &event, 1, PIRN_NEVER) != 1)
            continue;
        pirn__add(&flag, 1, seq_cst);
        if (!buggy)
            pirn__sys->eventfd_signal(event_fd);
    }
}

static void edge_for_two(void)
{
    set_fd = pirn__sys->epoll_create();
    event_fd = pirn__sys->eventfd();
    (void)pirn__sys->epoll_add(set_fd, event_fd, EPOLLIN | EPOLLET, NULL);
    pirn__sys->eventfd_signal(event_fd);
    explore_thread(harvest, NULL);
    explore_thread(harvest, NULL);
    explore_join();
}

TEST(finds_edge_that_another_has_taken)
{
    const struct explore_options two = {.preemptions = 2};

    buggy = true;
    EXPECT_EQ(EXPLORE_DEADLOCK,
              explore_run(edge_for_two, &two, true).finding);
    buggy = false;
    EXPECT_EQ(EXPLORE_CLEAN,
              explore_run(edge_for_two, &two, false).finding);
}

/* The signal comes before the descriptor is watched, or while nobody looks: an
 * edge is kept, a look that is made too early is not repeated by itself. */
static void watch_late(void *arg)
{
    struct epoll_event event;

    (void)arg;
    /* The bug: the edge may be an old one, which was there before the flag. */
    (void)pirn__sys->epoll_wait(set_fd, &event, 1, PIRN_NEVER);
    while (!buggy && pirn__load(&flag, acquire) == 0)
        (void)pirn__sys->epoll_wait(set_fd, &event, 1, PIRN_NEVER);
    EXPLORE_CHECK(pirn__load(&flag, acquire) == 1);
}

static void signal_twice(void *arg)
{
    (void)arg;
    pirn__sys->eventfd_signal(event_fd);
    pirn__store(&flag, 1, release);
    pirn__sys->eventfd_signal(event_fd);
}

static void edge_that_is_old(void)
{
    set_fd = pirn__sys->epoll_create();
    event_fd = pirn__sys->eventfd();
    (void)pirn__sys->epoll_add(set_fd, event_fd, EPOLLIN | EPOLLET, NULL);
    explore_thread(watch_late, NULL);
    explore_thread(signal_twice, NULL);
    explore_join();
}

TEST(finds_old_edge_taken_for_a_new_one)
{
    const struct explore_options no_luck = {
        .preemptions = EXPLORE_UNBOUNDED, .spurious = -1, .stale = -1};

    buggy = true;
    EXPECT_EQ(EXPLORE_CHECK_FAILED,
              explore_run(edge_that_is_old, &no_luck, true).finding);
    buggy = false;
    EXPECT_EQ(EXPLORE_CLEAN,
              explore_run(edge_that_is_old, &no_luck, false).finding);
}

/* ---- A thread that cannot be started. ---- */

static void start_one(void)
{
    int rc = pirn__sys->thread_start("x", 0, add_torn, NULL);

    if (buggy)
        EXPLORE_CHECK(rc == 0);
    explore_join();
    EXPLORE_CHECK(pirn__load(&word, relaxed) == (rc == 0));
}

TEST(finds_thread_that_was_taken_for_granted)
{
    const struct explore_options refusing = {.refusals = 1};

    buggy = true;
    EXPECT_EQ(EXPLORE_CHECK_FAILED,
              explore_run(start_one, &refusing, true).finding);
    buggy = false;
    EXPECT_EQ(EXPLORE_CLEAN, explore_run(start_one, &refusing, false).finding);
}
