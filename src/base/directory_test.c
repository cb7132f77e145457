/* SPDX-License-Identifier: MIT */
/* src/base/directory_test.c - indices and their generations; chunks are any
 * pointers here. */
#include "base/directory.h"

#include <sys/wait.h>
#include <unistd.h>

#include "engine/test.h"
#include "sys/fork.h"
#include "sys/heap.h"

enum { MANY = 2500 }; /* more than two blocks */

static int chunks[MANY];

/* Goal: an index finds its chunk while it is published, and only then.
 * Method: one index through its life. */
TEST(directory_enter_finds_only_published)
{
    uint32_t generation;
    uint32_t index;

    pirn__directory_set_alloc(&pirn__alloc_malloc);
    REQUIRE(pirn__directory_take(&index, &generation));
    EXPECT_EQ(1, generation);
    EXPECT_PTR_EQ(NULL, pirn__directory_enter(index));
    pirn__directory_publish(index, &chunks[0]);
    EXPECT_PTR_EQ(&chunks[0], pirn__directory_chunk(index));
    EXPECT_PTR_EQ(&chunks[0], pirn__directory_enter(index));
    pirn__directory_leave(index);
    pirn__directory_give(index, 5, false);
    EXPECT_PTR_EQ(NULL, pirn__directory_enter(index));
}

/* Goal: any 32 bits may be asked for.
 * Method: indices without a block, and beyond the last. */
TEST(directory_enter_of_any_index_is_safe)
{
    EXPECT_PTR_EQ(NULL, pirn__directory_enter(UINT32_MAX));
    EXPECT_PTR_EQ(NULL, pirn__directory_enter((1u << 22) - 1));
    EXPECT_PTR_EQ(NULL, pirn__directory_enter(1u << 22));
    EXPECT_PTR_EQ(NULL, pirn__directory_enter(5000));
}

/* Goal: a freed index comes back with the generation it was given back with.
 * Method: give with 9 and take again. */
TEST(directory_take_of_freed_index_continues_generations)
{
    uint32_t generation;
    uint32_t again;
    uint32_t index;

    REQUIRE(pirn__directory_take(&index, &generation));
    pirn__directory_give(index, 9, false);
    REQUIRE(pirn__directory_take(&again, &generation));
    EXPECT_EQ(index, again);
    EXPECT_EQ(9, generation);
    pirn__directory_give(again, 10, false);
}

/* Goal: an index that is used up never comes back.
 * Method: retire one and take many. */
TEST(directory_retired_index_stays_away)
{
    static uint32_t taken[MANY];
    uint32_t generation;
    uint32_t retired;

    REQUIRE(pirn__directory_take(&retired, &generation));
    pirn__directory_give(retired, PIRN__GENERATION_MAX, true);
    for (int i = 0; i < MANY; i++) {
        REQUIRE(pirn__directory_take(&taken[i], &generation));
        EXPECT_NE(retired, taken[i]);
        EXPECT(taken[i] < pirn__directory_limit());
    }
    for (int i = 0; i < MANY; i++)
        pirn__directory_give(taken[i], 1, false);
}

/* Goal: indices that are out together differ, across blocks.
 * Method: take many, publish a pointer each, and read all back. */
TEST(directory_indices_are_distinct)
{
    static uint32_t taken[MANY];
    uint32_t generation;

    for (int i = 0; i < MANY; i++) {
        REQUIRE(pirn__directory_take(&taken[i], &generation));
        pirn__directory_publish(taken[i], &chunks[i]);
    }
    for (int i = 0; i < MANY; i++)
        EXPECT_PTR_EQ(&chunks[i], pirn__directory_chunk(taken[i]));
    for (int i = 0; i < MANY; i++)
        pirn__directory_give(taken[i], 1, false);
}

static void *refuse(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    return NULL;
}

/* Goal: without memory for a block nothing is taken and nothing is lost.
 * Method: exhaust the blocks there are, refuse one, then allow it. */
TEST(directory_take_without_memory_fails_whole)
{
    static const pirn_alloc refusing = {.take = refuse};
    static uint32_t taken[MANY * 2];
    uint32_t generation;
    uint32_t limit;
    int count = 0;

    pirn__directory_set_alloc(&refusing);
    while (count < MANY * 2 && pirn__directory_take(&taken[count], &generation))
        count++;
    REQUIRE(count < MANY * 2);
    limit = pirn__directory_limit();
    EXPECT(!pirn__directory_take(&taken[count], &generation));
    EXPECT_EQ(limit, pirn__directory_limit());
    pirn__directory_set_alloc(&pirn__alloc_malloc);
    EXPECT(pirn__directory_take(&taken[count], &generation));
    EXPECT_EQ(limit, taken[count]);
    for (int i = 0; i <= count; i++)
        pirn__directory_give(taken[i], 1, false);
}

/* Goal: sorted, free indices are handed out from the lowest on, whatever the
 * order in which they came back.
 * Method: take some, give them back in two orders, and take them again. */
TEST(directory_sorted_hands_out_the_lowest_first)
{
    static const int orders[2][4] = {{2, 0, 3, 1}, {1, 3, 0, 2}};
    uint32_t taken[4];
    uint32_t generation;
    uint32_t again;

    for (int order = 0; order < 2; order++) {
        pirn__directory_sort_free();
        for (int i = 0; i < 4; i++)
            REQUIRE(pirn__directory_take(&taken[i], &generation));
        for (int i = 0; i < 4; i++)
            pirn__directory_give(taken[orders[order][i]], generation + 1,
                                 false);
        pirn__directory_sort_free();
        for (int i = 0; i < 4; i++) {
            REQUIRE(pirn__directory_take(&again, &generation));
            EXPECT_EQ(taken[i], again);
        }
        for (int i = 0; i < 4; i++)
            pirn__directory_give(taken[i], generation + 1, false);
    }
}

/* Goal: a child can use the directory although the parent held one of its
 * entries when it forked.
 * Method: fork inside enter; the child enters, takes and leaves by its exit
 * status, an alarm ends it if it hangs. */
TEST(directory_after_fork_is_unlocked)
{
    uint32_t parent_generation = pirn__fork_generation();
    uint32_t generation;
    uint32_t index;
    int status = 0;
    pid_t child;

    REQUIRE(pirn__directory_take(&index, &generation));
    pirn__directory_publish(index, &chunks[3]);
    REQUIRE(pirn__directory_enter(index) == &chunks[3]);
    child = fork();
    if (child == 0) {
        uint32_t other;

        alarm(20);
        if (pirn__fork_generation() == parent_generation)
            _exit(1);
        if (pirn__directory_enter(index) != &chunks[3])
            _exit(2);
        pirn__directory_leave(index);
        _exit(pirn__directory_take(&other, &generation) ? 0 : 3);
    }
    pirn__directory_leave(index);
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    pirn__directory_give(index, 1, false);
}
