/* SPDX-License-Identifier: MIT */
/* tests/regress/processes_limited.c - the system really refuses threads, to a user
 * who may have only so many.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pirn/blocking.h>

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/pool_fixture.h"

enum { NOBODY_ELSE = 64999, WORKERS = 4 };

static int answer(void *arg)
{
    (void)arg;
    return 7;
}

static int ask_blocking_pool(void *arg)
{
    *(int *)arg = pirn_blocking_run(answer, NULL);
    return 0;
}

/* One more thread than the process has now is one too many for a pool. */
static void make_runtimes(void)
{
    pirn_runtime *rt = NULL;
    int rc = 0;

    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(-EAGAIN,
                  pirn_runtime_new(
                      &(pirn_runtime_options){.workers = WORKERS}, &rt));
        EXPECT_PTR_EQ(NULL, rt);
    }
    rt = runtime_new();
    EXPECT_EQ(0, join_and_unref(go_task(rt, ask_blocking_pool, &rc)));
    EXPECT_EQ(-EAGAIN, rc);
    runtime_end(rt);
}

static void become_limited(void)
{
    const struct rlimit one = {1, 1};

    if (setgid(NOBODY_ELSE) != 0 || setuid(NOBODY_ELSE) != 0 ||
        setrlimit(RLIMIT_NPROC, &one) != 0)
        _exit(2);
}

/* Goal: without threads a pool and a blocking call are refused, and all that
 * needs none works.
 * Method: a child that is a user of its own, who may have one process; a user
 * who is no root cannot become one, and skips. */
TEST(processes_limited_to_one_are_enough_for_one_thread)
{
    int status = -1;
    pid_t child;

    if (getuid() != 0)
        SKIP("only root may become another user");
    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        become_limited();
        make_runtimes();
        _exit(test_failures() != 0);
    }
    EXPECT_GE(child, 1);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(0, WEXITSTATUS(status));
}
