/* SPDX-License-Identifier: MIT */
/* tests/engine/engine_test.c - a failed expectation is seen.
 *
 * What must fail is run in a child process, which aborts if the failure was
 * counted; the words it printed are compared here.
 */
#include "engine/test.h"

#include <pthread.h>
#include <stdlib.h>

static void abort_after(int failures)
{
    if (test_failures() == failures)
        abort();
}

static void compare_integers(void *arg)
{
    (void)arg;
    EXPECT_EQ(1, 1);
    EXPECT_EQ(1, 2);
    abort_after(1);
}

static void compare_signs(void *arg)
{
    (void)arg;
    EXPECT_LE(UINT64_MAX, -1);
    EXPECT_GE(-1, UINT64_MAX);
    EXPECT_NE(-1, -1);
    abort_after(3);
}

static void compare_strings(void *arg)
{
    EXPECT_STR_EQ("left", "right");
    EXPECT_STR_EQ("left", arg);
    abort_after(2);
}

static void compare_pointers(void *arg)
{
    EXPECT_PTR_EQ(arg, &arg);
    abort_after(1);
}

static void leave_early(void)
{
    REQUIRE(1 > 2);
    exit(1);
}

static void require(void *arg)
{
    (void)arg;
    leave_early();
    abort_after(1);
}

static void *fail_on_thread(void *arg)
{
    EXPECT(arg != NULL);
    return NULL;
}

static void use_thread(void *arg)
{
    pthread_t thread;

    (void)arg;
    if (pthread_create(&thread, NULL, fail_on_thread, NULL) != 0)
        exit(1);
    pthread_join(thread, NULL);
    abort_after(1);
}

/* Survives, and so does not die as expected. */
static void survive(void *arg)
{
    (void)arg;
}

static void expect_death_of_survivor(void *arg)
{
    (void)arg;
    EXPECT_DEATH(survive, NULL, "");
    abort_after(1);
}

/* Goal: every kind of check reports what it found, and the test goes on.
 * Method: each in a child that aborts only if the failures were counted. */
TEST(engine_failed_check_is_reported_and_counted)
{
    EXPECT_DEATH(compare_integers, NULL, "expected: 1 == 2, but 1 and 2");
    EXPECT_DEATH(compare_signs, NULL, "but 18446744073709551615 and -1");
    EXPECT_DEATH(compare_strings, NULL, "expected \"left\", but \"(null)\"");
    EXPECT_DEATH(compare_pointers, NULL, "&arg: expected (nil), but 0x");
}

/* Goal: REQUIRE leaves its function.
 * Method: the next statement would end the child in another way. */
TEST(engine_failed_require_returns)
{
    EXPECT_DEATH(require, NULL, "required: 1 > 2");
}

/* Goal: a check on another thread counts.
 * Method: a thread fails one; the main thread aborts if it is counted. */
TEST(engine_failure_on_thread_is_counted)
{
    EXPECT_DEATH(use_thread, NULL, "expected: arg != NULL");
}

/* Goal: a death that does not happen is a failure.
 * Method: a death test inside a death test. */
TEST(engine_survivor_fails_the_death_test)
{
    EXPECT_DEATH(expect_death_of_survivor, NULL,
                 "expected death by signal 6, but exit status 0");
}

/* Goal: integers of all kinds compare by value.
 * Method: pairs that C's own conversions would get wrong. */
TEST(engine_integers_compare_by_value)
{
    EXPECT_LE(-1, UINT64_MAX);
    EXPECT_GE(0U, -1);
    EXPECT_LE(INT64_MIN, INT64_MAX);
    EXPECT_NE(UINT32_MAX, -1);
    EXPECT_EQ(true, 1 == 1);
    EXPECT_EQ(UINT64_MAX, UINT64_MAX);
}
