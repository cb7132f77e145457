/* SPDX-License-Identifier: MIT */
/* tests/regress/blocking_threads_refused.c - the system refuses threads.
 *
 * Shipped elsewhere: a job was accepted, the thread for it could not be
 * started, and nobody ever ran it.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pirn/blocking.h>
#include <pirn/runtime.h>

#include "base/atomic.h"
#include "engine/test.h"

enum { JOBS = 100, NOBODY = 65534 };

static PIRN_ATOMIC(int) runs;

static int count_run(void *arg)
{
    (void)arg;
    /* relaxed: a count; the joins below order it. */
    (void)pirn__add(&runs, 1, relaxed);
    return 0;
}

/* Give jobs to a runtime; returns how many were accepted, all of which have
 * been joined, or -1. */
static int give_jobs(pirn_runtime *rt)
{
    const pirn_spawn_options options = {.runtime = rt};
    pirn_job *jobs[JOBS];
    int accepted = 0;
    int outcome;

    for (int i = 0; i < JOBS; i++) {
        int rc =
            pirn_spawn_blocking(count_run, NULL, &options, &jobs[accepted]);

        if (rc == 0)
            accepted++;
        else if (rc != -EAGAIN || jobs[accepted] != NULL)
            return -1;
    }
    for (int i = 0; i < accepted; i++) {
        if (pirn_job_join(jobs[i], PIRN_NEVER, &outcome) != 0 || outcome != 0)
            return -1;
        pirn_job_unref(jobs[i]);
    }
    return accepted;
}

/* The body of the child: become somebody whom the limit binds. */
static int run_limited(rlim_t limit)
{
    const struct rlimit processes = {limit, limit};
    pirn_runtime *rt;
    int accepted;

    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 ||
        setrlimit(RLIMIT_NPROC, &processes) != 0)
        return 2;
    if (pirn_runtime_new(NULL, &rt) != 0)
        return 3;
    accepted = give_jobs(rt);
    /* relaxed: every accepted job has been joined. */
    if (accepted != pirn__load(&runs, relaxed))
        return 4;
    /* The limit counts this process, so with 1 there is no room for a thread. */
    if (limit == 1 && accepted != 0)
        return 5;
    if (pirn_runtime_shutdown(rt, PIRN_NEVER, NULL) != 0)
        return 6;
    pirn_runtime_unref(rt);
    return 0;
}

static void expect_clean_child(rlim_t limit)
{
    int status = -1;
    pid_t child = fork();

    REQUIRE(child >= 0);
    if (child == 0)
        _exit(run_limited(limit));
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(0, WEXITSTATUS(status));
}

/* Goal: each job runs or is refused, however many threads the system allows.
 * Method: a child of another user, allowed no thread, one, and a few; joining
 * an accepted job that nobody runs would hang.  Root is exempt from the limit,
 * hence the other user, and only root can become one. */
TEST(blocking_jobs_under_a_process_limit_run_or_are_refused)
{
    if (geteuid() != 0)
        SKIP("only root can become a user whom the limit binds");
    for (rlim_t limit = 1; limit <= 5; limit += 2)
        expect_clean_child(limit);
}
