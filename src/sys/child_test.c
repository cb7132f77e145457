/* SPDX-License-Identifier: MIT */
/* src/sys/child_test.c - a process of its own, and how it may end. */
#include "sys/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/test.h"

static void store_pid(void *arg)
{
    *(pid_t *)arg = getpid();
}

static void write_word(void *arg)
{
    (void)arg;
    fprintf(stderr, "this word must not be seen\n");
}

static void exit_with_three(void *arg)
{
    (void)arg;
    exit(3);
}

/* As if the time were over. */
static void be_alarmed(void *arg)
{
    (void)arg;
    pirn__child_alarm(1000);
    if (alarm(0) > 0)
        raise(SIGALRM);
}

static void die(void *arg)
{
    (void)arg;
    raise(SIGKILL);
}

/* Goal: the function runs in another process, which shares what was shared.
 * Method: it stores its number. */
TEST(child_runs_apart_and_shares_memory)
{
    pid_t *shared = pirn__child_share(sizeof *shared);
    pid_t own = getpid();
    int status = -1;

    REQUIRE(shared != NULL);
    EXPECT_EQ(0, *shared);
    EXPECT_EQ(0, pirn__child_run(store_pid, shared, false, &status));
    EXPECT_EQ(0, status);
    EXPECT_NE(0, *shared);
    EXPECT_NE(own, *shared);
    EXPECT_EQ(0, pirn__child_run(store_pid, &own, false, &status));
    EXPECT_EQ(getpid(), own);
    pirn__child_unshare(shared, sizeof *shared);
}

/* Goal: however it ends, the parent is told.  Method: each way once. */
TEST(child_tells_how_it_ended)
{
    static const struct {
        void (*fn)(void *arg);
        const char *words;
    } ends[] = {
        {write_word, "exit status 0"},
        {exit_with_three, "exit status 3"},
        {die, "signal 9"},
        {be_alarmed, "signal 14"},
    };
    char words[32];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        int status = -1;

        EXPECT_EQ(0, pirn__child_run(ends[i].fn, NULL, true, &status));
        pirn__child_describe(status, words, sizeof words);
        EXPECT_STR_EQ(ends[i].words, words);
        EXPECT_EQ(ends[i].fn == be_alarmed, pirn__child_is_alarmed(status));
    }
}
