/* SPDX-License-Identifier: MIT */
/* src/sys/fork_test.c - a child process sees another generation. */
#include "sys/fork.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "engine/test.h"
#include "sys/sys.h"

/* The exit status of a child: how often the number changed on the way down. */
static int count_changes(void)
{
    uint32_t parent = pirn__fork_generation();
    int status = 0;
    pid_t grandchild;

    grandchild = fork();
    if (grandchild == 0)
        _exit(pirn__fork_generation() != parent);
    waitpid(grandchild, &status, 0);
    return 1 + WEXITSTATUS(status);
}

/* Goal: child and grandchild differ from their parents; the parent does not
 * change.
 * Method: exit codes. */
TEST(fork_generation_changes_in_children_only)
{
    uint32_t before = pirn__fork_generation();
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(pirn__fork_generation() != before ? count_changes() : 0);
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(2, WEXITSTATUS(status));
    EXPECT_EQ(before, pirn__fork_generation());
}

static pirn_lock guarded;
static PIRN_ATOMIC(int) ends; /* 1: the thread shall end */

static void *hold_again_and_again(void *arg)
{
    (void)arg;
    /* relaxed: the word is the whole message. */
    while (pirn__load(&ends, relaxed) == 0) {
        pirn__lock(&guarded);
        sched_yield();
        pirn__unlock(&guarded);
    }
    return NULL;
}

/* 0 if the lock is free and works; an alarm ends who waits for ever. */
static int use_guarded(void)
{
    alarm(10);
    pirn__lock(&guarded);
    pirn__unlock(&guarded);
    return 0;
}

/* Goal: a guarded lock is free in the child, whoever held it in the parent, and
 * goes on there.
 * Method: a thread that holds it nearly always; fork often. */
TEST(fork_guarded_lock_is_free_in_the_child)
{
    size_t forks = test_size(20, 200, 5000);
    pthread_t thread;

    /* The table brings the futex operations into this program. */
    REQUIRE(pirn__sys != NULL);
    pirn__fork_guard(&guarded);
    REQUIRE(pthread_create(&thread, NULL, hold_again_and_again, NULL) == 0);
    for (size_t i = 0; i < forks; i++) {
        int status = -1;
        pid_t child = fork();

        if (child == 0)
            _exit(use_guarded());
        EXPECT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status);
    }
    /* relaxed: as above. */
    pirn__store(&ends, 1, relaxed);
    pthread_join(thread, NULL);
}
