/* SPDX-License-Identifier: MIT */
/* tests/engine/litmus_model.c - what the explorer's memory allows and forbids.
 *
 * The usual litmus tests.  Each asserts exactly which outcomes appear: one too
 * few and the explorer misses bugs, one too many and it reports bugs that no
 * machine has.  Outcomes are the values that were read, as bits.
 */
#include "base/atomic.h"
#include "base/lock.h"
#include "engine/explore.h"

static PIRN_ATOMIC(uint32_t) a;
static PIRN_ATOMIC(uint32_t) b;
static uint32_t seen[4];

static const struct explore_options all = {.preemptions = EXPLORE_UNBOUNDED};

static void reset(void)
{
    pirn__init(&a, 0);
    pirn__init(&b, 0);
    memset(seen, 0, sizeof seen);
}

static uint64_t outcomes_of(void (*body)(void))
{
    struct explore_result result = explore_run(body, &all, false);

    EXPECT_EQ(EXPLORE_CLEAN, result.finding);
    return explore_outcomes()[0];
}

#define BIT(n) (UINT64_C(1) << (n))

/* Store buffering: each thread writes its own and reads the other's. */

#define STORE_BUFFER(order) \
    static void sb_left_##order(void *arg) \
    { \
        (void)arg; \
        pirn__store(&a, 1, order); \
        seen[0] = SB_LOAD_##order(&b); \
    } \
    static void sb_right_##order(void *arg) \
    { \
        (void)arg; \
        pirn__store(&b, 1, order); \
        seen[1] = SB_LOAD_##order(&a); \
    } \
    static void sb_##order(void) \
    { \
        reset(); \
        explore_thread(sb_left_##order, NULL); \
        explore_thread(sb_right_##order, NULL); \
        explore_join(); \
        explore_outcome(seen[0] * 2 + seen[1]); \
    }
#define SB_LOAD_relaxed(x) pirn__load(x, relaxed)
#define SB_LOAD_release(x) pirn__load(x, acquire)
#define SB_LOAD_seq_cst(x) pirn__load(x, seq_cst)

STORE_BUFFER(relaxed)
STORE_BUFFER(release)
STORE_BUFFER(seq_cst)

TEST(litmus_store_buffering_both_may_miss_unless_seq_cst)
{
    EXPECT_EQ(BIT(0) | BIT(1) | BIT(2) | BIT(3), outcomes_of(sb_relaxed));
    EXPECT_EQ(BIT(0) | BIT(1) | BIT(2) | BIT(3), outcomes_of(sb_release));
    EXPECT_EQ(BIT(1) | BIT(2) | BIT(3), outcomes_of(sb_seq_cst));
}

/* Message passing: data, then a flag. */

#define MESSAGE(name, store_order, load_order) \
    static void mp_send_##name(void *arg) \
    { \
        (void)arg; \
        pirn__store(&a, 1, relaxed); \
        pirn__store(&b, 1, store_order); \
    } \
    static void mp_receive_##name(void *arg) \
    { \
        (void)arg; \
        seen[0] = pirn__load(&b, load_order); \
        seen[1] = pirn__load(&a, relaxed); \
    } \
    static void mp_##name(void) \
    { \
        reset(); \
        explore_thread(mp_send_##name, NULL); \
        explore_thread(mp_receive_##name, NULL); \
        explore_join(); \
        explore_outcome(seen[0] * 2 + seen[1]); \
    }

MESSAGE(relaxed, relaxed, relaxed)
MESSAGE(half, release, relaxed)
MESSAGE(other_half, relaxed, acquire)
MESSAGE(ordered, release, acquire)

TEST(litmus_message_passing_needs_both_halves)
{
    uint64_t any = BIT(0) | BIT(1) | BIT(2) | BIT(3);

    EXPECT_EQ(any, outcomes_of(mp_relaxed));
    EXPECT_EQ(any, outcomes_of(mp_half));
    EXPECT_EQ(any, outcomes_of(mp_other_half));
    EXPECT_EQ(BIT(0) | BIT(1) | BIT(3), outcomes_of(mp_ordered));
}

/* Independent reads of independent writes: do two readers agree? */

#define READERS(name, order, store_order) \
    static void iriw_write_a_##name(void *arg) \
    { \
        (void)arg; \
        pirn__store(&a, 1, store_order); \
    } \
    static void iriw_write_b_##name(void *arg) \
    { \
        (void)arg; \
        pirn__store(&b, 1, store_order); \
    } \
    static void iriw_read_ab_##name(void *arg) \
    { \
        (void)arg; \
        seen[0] = pirn__load(&a, order); \
        seen[1] = pirn__load(&b, order); \
    } \
    static void iriw_read_ba_##name(void *arg) \
    { \
        (void)arg; \
        seen[2] = pirn__load(&b, order); \
        seen[3] = pirn__load(&a, order); \
    } \
    static void iriw_##name(void) \
    { \
        reset(); \
        explore_thread(iriw_write_a_##name, NULL); \
        explore_thread(iriw_write_b_##name, NULL); \
        explore_thread(iriw_read_ab_##name, NULL); \
        explore_thread(iriw_read_ba_##name, NULL); \
        explore_join(); \
        explore_outcome(seen[0] * 8 + seen[1] * 4 + seen[2] * 2 + seen[3]); \
    }

READERS(acquire, acquire, release)
READERS(seq_cst, seq_cst, seq_cst)

TEST(litmus_iriw_readers_may_disagree_unless_seq_cst)
{
    /* a before b for one reader, b before a for the other. */
    uint64_t disagree = BIT(8 + 2);

    EXPECT_EQ(UINT64_C(0xffff), outcomes_of(iriw_acquire));
    EXPECT_EQ(UINT64_C(0xffff) & ~disagree, outcomes_of(iriw_seq_cst));
}

/* Coherence: two reads of one location do not go backward. */

static void corr_write(void *arg)
{
    (void)arg;
    pirn__store(&a, 1, relaxed);
    pirn__store(&a, 2, relaxed);
}

static void corr_read(void *arg)
{
    (void)arg;
    seen[0] = pirn__load(&a, relaxed);
    seen[1] = pirn__load(&a, relaxed);
}

static void corr(void)
{
    reset();
    explore_thread(corr_write, NULL);
    explore_thread(corr_read, NULL);
    explore_join();
    explore_outcome(seen[0] * 3 + seen[1]);
}

TEST(litmus_coherence_reads_never_go_backward)
{
    EXPECT_EQ(BIT(0) | BIT(1) | BIT(2) | BIT(4) | BIT(5) | BIT(8),
              outcomes_of(corr));
}

/* A read that happens before another one limits what that one may see. */

static void corr_pass(void *arg)
{
    (void)arg;
    seen[0] = pirn__load(&a, relaxed);
    pirn__store(&b, 1, release);
}

static void corr_late(void *arg)
{
    (void)arg;
    seen[1] = pirn__load(&b, acquire);
    seen[2] = pirn__load(&a, relaxed);
}

static void corr_write_once(void *arg)
{
    (void)arg;
    pirn__store(&a, 1, relaxed);
}

static void corr_across(void)
{
    reset();
    explore_thread(corr_write_once, NULL);
    explore_thread(corr_pass, NULL);
    explore_thread(corr_late, NULL);
    explore_join();
    explore_outcome(seen[0] * 4 + seen[1] * 2 + seen[2]);
}

TEST(litmus_coherence_holds_across_threads)
{
    /* First read new, then synchronised, then read old: never. */
    EXPECT_EQ(UINT64_C(0xff) & ~BIT(4 + 2), outcomes_of(corr_across));
}

/* A release sequence goes on through read-modify-writes of others. */

static void sequence_head(void *arg)
{
    (void)arg;
    pirn__store(&a, 1, relaxed);
    pirn__store(&b, 1, release);
}

static void sequence_link(void *arg)
{
    (void)arg;
    pirn__add(&b, 1, relaxed);
}

static void sequence_end(void *arg)
{
    (void)arg;
    seen[0] = pirn__load(&b, acquire);
    seen[1] = pirn__load(&a, relaxed);
}

static void sequence(void)
{
    reset();
    explore_thread(sequence_head, NULL);
    explore_thread(sequence_link, NULL);
    explore_thread(sequence_end, NULL);
    explore_join();
    /* Only when the link came second is b two. */
    if (seen[0] == 2)
        explore_outcome(seen[1]);
}

TEST(litmus_release_sequence_goes_through_rmw)
{
    EXPECT_EQ(BIT(1), outcomes_of(sequence));
}

/* Double-checked locking with a relaxed second look hands out garbage. */

static PIRN_SHARED(uint32_t) object;
static pirn_lock guard;

static void publish(void *arg)
{
    (void)arg;
    explore_lock(&guard, EXPLORE_PLACE);
    if (pirn__load(&a, relaxed) == 0) {
        pirn_cell_write(&object, 42);
        pirn__store(&a, 1, release);
    }
    explore_unlock(&guard, EXPLORE_PLACE);
}

static void use_relaxed(void *arg)
{
    (void)arg;
    if (pirn__load(&a, relaxed) == 1)
        EXPLORE_CHECK(pirn_cell_read(&object) == 42);
}

static void use_acquire(void *arg)
{
    (void)arg;
    if (pirn__load(&a, acquire) == 1)
        EXPLORE_CHECK(pirn_cell_read(&object) == 42);
}

static void double_checked(void (*use)(void *arg))
{
    reset();
    object.c_ = 0;
    explore_thread(publish, NULL);
    explore_thread(publish, NULL);
    explore_thread(use, NULL);
    explore_join();
}

static void double_checked_relaxed(void)
{
    double_checked(use_relaxed);
}

static void double_checked_acquire(void)
{
    double_checked(use_acquire);
}

TEST(litmus_double_checked_locking_needs_acquire)
{
    EXPECT_EQ(EXPLORE_RACE,
              explore_run(double_checked_relaxed, &all, true).finding);
    EXPECT_EQ(EXPLORE_CLEAN,
              explore_run(double_checked_acquire, &all, true).finding);
}

/* Two increments, atomic and not. */

static void add_one(void *arg)
{
    (void)arg;
    pirn__add(&a, 1, relaxed);
}

static void load_and_store(void *arg)
{
    uint32_t value = pirn__load(&a, relaxed);

    (void)arg;
    pirn__store(&a, value + 1, relaxed);
}

static void increments(void (*step)(void *arg))
{
    reset();
    explore_thread(step, NULL);
    explore_thread(step, NULL);
    explore_join();
    explore_outcome(pirn__load(&a, relaxed));
}

static void whole_increments(void)
{
    increments(add_one);
}

static void torn_increments(void)
{
    increments(load_and_store);
}

TEST(litmus_increments_are_lost_only_without_rmw)
{
    EXPECT_EQ(BIT(2), outcomes_of(whole_increments));
    EXPECT_EQ(BIT(1) | BIT(2), outcomes_of(torn_increments));
}

/* A compare-and-swap that fails is a load: it may see an old value, as long as
 * that is not the expected one. */

#define FAILED_SWAP(name, store_order, load_order) \
    static void swap_send_##name(void *arg) \
    { \
        (void)arg; \
        pirn__store(&a, 2, relaxed); \
        pirn__store(&b, 1, store_order); \
    } \
    static void swap_fail_##name(void *arg) \
    { \
        uint32_t expected = 7; \
        (void)arg; \
        seen[0] = pirn__load(&b, load_order); \
        (void)pirn__cas(&a, &expected, 9, acq_rel, relaxed); \
        seen[1] = expected / 2; \
    } \
    static void swap_##name(void) \
    { \
        reset(); \
        explore_thread(swap_send_##name, NULL); \
        explore_thread(swap_fail_##name, NULL); \
        explore_join(); \
        explore_outcome(seen[0] * 2 + seen[1]); \
    }

FAILED_SWAP(relaxed, relaxed, relaxed)
FAILED_SWAP(ordered, release, acquire)

TEST(litmus_failed_swap_may_see_an_old_value_unless_ordered)
{
    EXPECT_EQ(BIT(0) | BIT(1) | BIT(2) | BIT(3), outcomes_of(swap_relaxed));
    EXPECT_EQ(BIT(0) | BIT(1) | BIT(3), outcomes_of(swap_ordered));
}

/* A swap that succeeds has read the latest value: of two takers one gets it. */

static void take_one(void *arg)
{
    uint32_t *got = arg;

    *got = pirn__swap(&a, 0, relaxed);
}

static void two_takers(void)
{
    reset();
    pirn__init(&a, 1);
    explore_thread(take_one, &seen[0]);
    explore_thread(take_one, &seen[1]);
    explore_join();
    explore_outcome(seen[0] * 2 + seen[1]);
}

TEST(litmus_two_swaps_never_get_the_same)
{
    EXPECT_EQ(BIT(1) | BIT(2), outcomes_of(two_takers));
}

/* What a lock guards is seen by the next holder. */

static void locked_store(void *arg)
{
    (void)arg;
    explore_lock(&guard, EXPLORE_PLACE);
    pirn__store(&a, 1, relaxed);
    pirn__store(&b, 1, relaxed);
    explore_unlock(&guard, EXPLORE_PLACE);
}

static void locked_loads(void *arg)
{
    (void)arg;
    explore_lock(&guard, EXPLORE_PLACE);
    seen[0] = pirn__load(&a, relaxed);
    seen[1] = pirn__load(&b, relaxed);
    explore_unlock(&guard, EXPLORE_PLACE);
}

static void locked_pair(void)
{
    reset();
    explore_thread(locked_store, NULL);
    explore_thread(locked_loads, NULL);
    explore_join();
    explore_outcome(seen[0] * 2 + seen[1]);
}

TEST(litmus_lock_makes_one_of_two_steps)
{
    EXPECT_EQ(BIT(0) | BIT(3), outcomes_of(locked_pair));
}

/* After a join everything is seen. */

static void joined_body(void)
{
    reset();
    explore_thread(corr_write_once, NULL);
    explore_join();
    explore_outcome(pirn__load(&a, relaxed));
}

TEST(litmus_join_orders_everything)
{
    EXPECT_EQ(BIT(1), outcomes_of(joined_body));
}
