/* SPDX-License-Identifier: MIT */
/* src/task/local_test.c - what a thread knows about itself: the current
 * runtime, the running task, and what a waiting thread waits for. */
#include "task/lab_test.h"

#include <poll.h>
#include <pthread.h>

#include "base/assert.h"

static void *other_thread(void *arg)
{
    struct pirn__local *local = pirn__local();

    EXPECT(local != NULL);
    EXPECT(local != arg);
    EXPECT_PTR_EQ(local, pirn__local());
    EXPECT_PTR_EQ(NULL, pirn_runtime_current());
    return NULL;
}

/* Goal: each thread has one record, and a new one knows of no runtime.
 * Method: another thread, while this one has entered a runtime. */
TEST(local_is_one_record_a_thread)
{
    struct lab lab;
    pthread_t thread;

    lab_begin(&lab);
    lab.home.runtime = (pirn_runtime *)(void *)&lab;
    (void)pirn_runtime_enter(lab.home.runtime);
    REQUIRE(pthread_create(&thread, NULL, other_thread, pirn__local()) == 0);
    pthread_join(thread, NULL);
    EXPECT_PTR_EQ(lab.home.runtime, pirn_runtime_current());
    EXPECT_PTR_EQ(lab.home.runtime, pirn_runtime_enter(NULL));
    EXPECT_PTR_EQ(NULL, pirn_runtime_current());
    lab_finish(&lab);
}

static enum pirn_poll see_own_home(struct script *script, pirn_cx *cx)
{
    (void)cx;
    EXPECT_PTR_EQ(script->lab->home.runtime, pirn_runtime_current());
    return PIRN_READY;
}

/* Goal: inside a task its own runtime is current, whatever the thread entered;
 * entering nests.
 * Method: a task of one lab runs on a thread that entered another. */
TEST(local_runtime_of_a_task_is_its_own)
{
    struct script script = {.on_poll = see_own_home};
    struct lab lab, entered;

    lab_begin(&lab);
    lab_begin(&entered);
    lab.home.runtime = (pirn_runtime *)(void *)&lab;
    entered.home.runtime = (pirn_runtime *)(void *)&entered;
    EXPECT_PTR_EQ(NULL, pirn_runtime_enter(entered.home.runtime));
    (void)lab_spawn_loose(&lab, &script);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_PTR_EQ(entered.home.runtime, pirn_runtime_enter(lab.home.runtime));
    EXPECT_PTR_EQ(lab.home.runtime, pirn_runtime_enter(entered.home.runtime));
    EXPECT_PTR_EQ(entered.home.runtime, pirn_runtime_enter(NULL));
    lab_finish(&lab);
    lab_finish(&entered);
}

/* Goal: a waiting thread notes each descriptor once, with all directions, and
 * at most sixteen; inside a task nothing is noted.
 * Method: note more than fit. */
TEST(local_notes_descriptors_of_a_waiting_thread)
{
    struct pirn__parker *parker = pirn__parker_of(pirn__local());
    struct pirn__turn turn = {.parker = parker};
    pirn_cx cx = {.turn_ = &turn};

    pirn__parker_reset(parker);
    EXPECT_EQ(0, pirn__turn_note_fd(&cx, 5, POLLIN));
    EXPECT_EQ(0, pirn__turn_note_fd(&cx, 5, POLLOUT));
    EXPECT_EQ(1, parker->fd_count);
    EXPECT_EQ(POLLIN | POLLOUT, parker->fds[0].events);
    for (int fd = 6; fd < 21; fd++)
        EXPECT_EQ(0, pirn__turn_note_fd(&cx, fd, POLLIN));
    EXPECT_EQ(-ENOSPC, pirn__turn_note_fd(&cx, 21, POLLIN));
    EXPECT_EQ(0, pirn__turn_note_fd(&cx, 20, POLLOUT));
    EXPECT_EQ(PIRN__PARKER_FDS, parker->fd_count);

    turn.parker = NULL;
    EXPECT_EQ(0, pirn__turn_note_fd(&cx, 21, POLLIN));
    cx.turn_ = NULL;
    EXPECT_EQ(0, pirn__turn_note_fd(&cx, 21, POLLIN));
    pirn__turn_note_home(&cx, NULL);
    EXPECT_EQ(PIRN__PARKER_FDS, parker->fd_count);
    pirn__parker_reset(parker);
    EXPECT_EQ(0, parker->fd_count);
}

static enum pirn_poll break_rule(struct script *script, pirn_cx *cx)
{
    (void)script;
    (void)cx;
    PIRN_REQUIRE(false, "a rule of the test");
    return PIRN_READY;
}

static void break_rule_in_task(void *arg)
{
    struct script script = {.on_poll = break_rule};
    pirn_spawn_options options = {.name = arg};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_with(&lab, &script, &options, false);
    (void)lab_run(&lab);
}

/* Goal: the message of a broken rule names the task that runs, or its site.
 * Method: a task with a name and one without break one. */
TEST(local_names_the_task_in_a_last_message)
{
    static char name[] = "culprit";

    EXPECT_DEATH(break_rule_in_task, name, "culprit");
    EXPECT_DEATH(break_rule_in_task, NULL, "lab_test.h:");
}
