/* SPDX-License-Identifier: MIT */
/* src/task/home_test.c - references, memory and participants of a home. */
#include "task/lab_test.h"

/* Goal: the last reference ends a home, once.
 * Method: two references given up. */
TEST(home_ends_with_its_last_reference)
{
    struct lab lab;

    lab_begin(&lab);
    pirn__home_ref(&lab.home);
    pirn__home_unref(&lab.home);
    EXPECT_EQ(0, lab.frees);
    pirn__home_unref(&lab.home);
    EXPECT_EQ(1, lab.frees);
}

/* Goal: memory comes from the home's own hook, or from malloc without a home,
 * and may run out.
 * Method: take and give in both; let the hook refuse. */
TEST(home_memory_comes_from_its_hook)
{
    struct lab lab;
    void *memory;

    lab_begin(&lab);
    memory = pirn__home_take(&lab.home, 100);
    EXPECT(memory != NULL);
    EXPECT_EQ(0, (uintptr_t)memory % 16);
    EXPECT_EQ(1, lab.pieces);
    pirn__home_give(&lab.home, memory, 100);
    EXPECT_EQ(0, lab.pieces);
    pirn__home_give(&lab.home, NULL, 100);
    EXPECT_EQ(0, lab.pieces);
    lab.fail_at = lab.calls + 1;
    EXPECT_PTR_EQ(NULL, pirn__home_take(&lab.home, 100));

    memory = pirn__home_take(NULL, 100);
    EXPECT(memory != NULL);
    EXPECT_EQ(0, lab.pieces);
    pirn__home_give(NULL, memory, 100);
    lab_finish(&lab);
}

/* Goal: an object keeps its home, and the one whose memory is given back last
 * ends it; one without memory keeps nothing.
 * Method: an object and a refusal; the reference of the test goes before it. */
TEST(home_is_kept_by_an_object)
{
    struct lab lab;
    void *object;

    lab_begin(&lab);
    object = pirn__home_take_object(&lab.home, 100);
    EXPECT(object != NULL);
    lab.fail_at = lab.calls + 1;
    EXPECT_PTR_EQ(NULL, pirn__home_take_object(&lab.home, 100));
    pirn__home_unref(&lab.home);
    EXPECT_EQ(0, lab.frees);
    pirn__home_give_object(&lab.home, object, 100);
    EXPECT_EQ(0, lab.pieces);
    EXPECT_EQ(1, lab.frees);

    object = pirn__home_take_object(NULL, 100);
    EXPECT(object != NULL);
    pirn__home_give_object(NULL, object, 100);
}

/* Goal: participants are taken in until shutdown begins.
 * Method: one before, one after. */
TEST(home_takes_participants_until_it_is_closed)
{
    struct pirn__participant first, second;
    struct lab lab;

    lab_begin(&lab);
    EXPECT(pirn__home_add_participant(&lab.home, &first));
    EXPECT_PTR_EQ(&first.link, lab.home.participants.next_);
    lab.home.participants_closed = true;
    EXPECT(!pirn__home_add_participant(&lab.home, &second));
    EXPECT_PTR_EQ(&first.link, lab.home.participants.next_);
    pirn__list_remove(&first.link);
    lab_finish(&lab);
}

/* Goal: a spawn goes to the runtime it names, else to the current one.
 * Method: options with and without, entered and not. */
TEST(home_of_a_spawn_is_the_named_or_the_current)
{
    pirn_spawn_options options = {0};
    struct lab lab;
    pirn_runtime *rt = (pirn_runtime *)(void *)&lab;

    lab_begin(&lab);
    lab.home.runtime = rt;
    EXPECT_PTR_EQ(NULL, pirn__home_for(NULL));
    EXPECT_PTR_EQ(NULL, pirn__home_for(&options));
    options.runtime = rt;
    EXPECT_PTR_EQ(&lab.home, pirn__home_for(&options));
    EXPECT_PTR_EQ(NULL, pirn_runtime_enter(rt));
    options.runtime = NULL;
    EXPECT_PTR_EQ(&lab.home, pirn__home_for(&options));
    EXPECT_PTR_EQ(&lab.home, pirn__home_for(NULL));
    EXPECT_PTR_EQ(rt, pirn_runtime_enter(NULL));
    EXPECT_PTR_EQ(NULL, pirn__home_of(NULL));
    lab_finish(&lab);
}
