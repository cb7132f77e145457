/* SPDX-License-Identifier: MIT */
/* src/base/assert_test.c - each case dies in a child process. */
#include "base/assert.h"

#include <pirn/future.h>

#include "engine/test.h"

static const char *name_of_task(void)
{
    return "reader-7";
}

static void break_rule(void *arg)
{
    (void)arg;
    PIRN_REQUIRE(1 + 1 == 3, "close a thing once");
}

static void break_invariant(void *arg)
{
    (void)arg;
    PIRN_ASSERT(1 + 1 == 3);
}

static void break_rule_in_task(void *arg)
{
    pirn__abort_set_who(name_of_task);
    break_rule(arg);
}

static void say_too_much(void *arg)
{
    char rule[4096];

    (void)arg;
    memset(rule, 'x', sizeof rule - 1);
    rule[sizeof rule - 1] = '\0';
    PIRN_REQUIRE(false, rule);
}

/* Goal: the words name the place and the rule that was broken.
 * Method: break one rule of each kind and read what the child printed. */
TEST(abort_of_each_kind_names_place_and_rule)
{
    EXPECT_DEATH(break_rule, NULL, "assert_test.c:");
    EXPECT_DEATH(break_rule, NULL, ": broken rule: close a thing once\n");
    EXPECT_DEATH(break_invariant, NULL, ": internal error: 1 + 1 == 3\n");
}

/* Goal: the current task is named where somebody can name it.
 * Method: register a function that does. */
TEST(abort_in_task_names_it)
{
    EXPECT_DEATH(break_rule_in_task, NULL, "once (task reader-7)\n");
}

/* Goal: a message beyond the buffer is cut and the process still stops.
 * Method: a rule of 4 KiB. */
TEST(abort_with_long_rule_is_cut)
{
    EXPECT_DEATH(say_too_much, NULL, "xxxx\n");
}

/* Goal: a condition that holds costs nothing visible.
 * Method: all three kinds, true. */
TEST(abort_not_called_when_all_holds)
{
    int evaluated = 0;

    PIRN_REQUIRE(++evaluated == 1, "first");
    PIRN_ASSERT(++evaluated == 2);
    PIRN_DASSERT(evaluated == 2);
    EXPECT_EQ(2, evaluated);
}
