/* SPDX-License-Identifier: MIT */
/* tests/regress/fork_child_waits.c - a child process that waits for what is its
 * parent's.
 *
 * A plain thread drives the runtime that it waits for, and so did the child: it
 * ran its copies of the parent's tasks and took events out of the wait set that
 * both share.
 */
#include <pirn/blocking.h>
#include <pirn/io.h>
#include <pirn/runtime.h>
#include <pirn/time.h>

#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/test.h"

enum { RESCUE_MS = 5000 };

static struct {
    int *runs; /* shared with the child */
    sem_t may_end;
    pirn_runtime *rt;
    pirn_task *task;
    pirn_job *job;
    pirn_fd *in;
    int pipe[2];
} scene;

static int count_run(void *arg)
{
    (void)arg;
    ++*scene.runs;
    return 5;
}

static int wait_for_end(void *arg)
{
    (void)arg;
    while (sem_wait(&scene.may_end) != 0)
        continue;
    return 6;
}

static void scene_begin(void)
{
    pirn_spawn_options options = {.name = "the parent's"};
    void *page = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    REQUIRE(page != MAP_FAILED);
    scene.runs = page;
    sem_init(&scene.may_end, 0, 0);
    REQUIRE(pirn_runtime_new(NULL, &scene.rt) == 0);
    options.runtime = scene.rt;
    REQUIRE(pirn_go_with(count_run, NULL, &options, &scene.task) == 0);
    REQUIRE(pirn_spawn_blocking(wait_for_end, NULL, &options, &scene.job) == 0);
    REQUIRE(pipe(scene.pipe) == 0);
    (void)pirn_runtime_enter(scene.rt);
    EXPECT_EQ(0, pirn_fd_adopt(scene.pipe[0], &scene.in));
    (void)pirn_runtime_enter(NULL);
}

static void wait_in_child(void)
{
    int outcome = 0;
    char byte;

    EXPECT_EQ(PIRN_EFORKED,
              pirn_task_join(scene.task, pirn_after_ms(RESCUE_MS), &outcome));
    EXPECT_EQ(PIRN_EFORKED,
              pirn_job_join(scene.job, pirn_after_ms(RESCUE_MS), &outcome));
    EXPECT_EQ(PIRN_EFORKED,
              pirn_fd_read(scene.in, &byte, 1, pirn_after_ms(RESCUE_MS)));
    pirn_task_cancel(scene.task);
    EXPECT_EQ(0, *scene.runs);
}

/* Goal: in a child, waiting for a task, a job or a descriptor of the parent's
 * runtime answers PIRN_EFORKED, and the parent notices nothing.
 * Method: each of them, then run all of it in the parent. */
TEST(fork_child_does_not_wait_for_the_parents_runtime)
{
    int status = -1, outcome = 0;
    pid_t child;

    scene_begin();
    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        wait_in_child();
        _exit(test_failures() != 0);
    }
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);

    EXPECT_EQ(0, pirn_task_join(scene.task, pirn_after_ms(RESCUE_MS),
                                &outcome));
    EXPECT_EQ(5, outcome);
    EXPECT_EQ(1, *scene.runs);
    sem_post(&scene.may_end);
    EXPECT_EQ(0, pirn_job_join(scene.job, pirn_after_ms(RESCUE_MS), &outcome));
    EXPECT_EQ(6, outcome);
    pirn_task_unref(scene.task);
    pirn_job_unref(scene.job);
    pirn_fd_close(scene.in);
    close(scene.pipe[1]);
    EXPECT_EQ(0, pirn_runtime_shutdown(scene.rt, pirn_after_ms(RESCUE_MS),
                                       NULL));
    pirn_runtime_unref(scene.rt);
    munmap(scene.runs, sizeof(int));
}
