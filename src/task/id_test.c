/* SPDX-License-Identifier: MIT */
/* src/task/id_test.c - tasks reached by their id alone: found, woken, held,
 * cancelled, asked; and ids that name nothing any more. */
#include "task/lab_test.h"

#include <pthread.h>

static enum pirn_task_state state_of_id(pirn_task_id id)
{
    enum pirn_task_state state = PIRN_TASK_DONE;

    EXPECT_EQ(0, pirn_id_state(id, &state));
    return state;
}

/* Every call with an id that names no task. */
static void expect_stale(pirn_task_id id)
{
    enum pirn_task_state state;
    pirn_task *task = (pirn_task *)(void *)&state;

    EXPECT_EQ(-ESRCH, pirn_id_find(id, &task));
    EXPECT_PTR_EQ(NULL, task);
    EXPECT_EQ(-ESRCH, pirn_id_wake(id));
    EXPECT_EQ(-ESRCH, pirn_id_suspend(id));
    EXPECT_EQ(-ESRCH, pirn_id_cancel(id));
    EXPECT_EQ(-ESRCH, pirn_id_state(id, &state));
}

/* Goal: any 64 bits are a safe id, and a task's is stale for ever once the task
 * is gone.
 * Method: garbage; then end a task and spawn others in its place. */
TEST(id_that_names_nothing_is_refused)
{
    static const uint64_t garbage[] = {0, 1, UINT64_MAX, 1ull << 32, 1ull << 63,
                                       UINT32_MAX, 0xdeadbeefcafef00dull};
    struct script script = {0};
    struct lab lab;
    pirn_task_id id;

    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++)
        expect_stale((pirn_task_id){garbage[i]});
    lab_begin(&lab);
    id = lab_spawn_loose(&lab, &script);
    EXPECT_EQ(1, lab_run_all(&lab));
    expect_stale(id);
    for (int i = 0; i < 10; i++) {
        EXPECT_NE(id.value, lab_spawn_loose(&lab, &script).value);
        expect_stale(id);
        EXPECT_EQ(1, lab_run_all(&lab));
    }
    lab_finish(&lab);
}

/* Goal: nonsense for out is refused.
 * Method: NULL. */
TEST(id_calls_refuse_null)
{
    struct script script = {0};
    struct lab lab;
    pirn_task_id id;

    lab_begin(&lab);
    id = lab_spawn_loose(&lab, &script);
    EXPECT_EQ(-EINVAL, pirn_id_find(id, NULL));
    EXPECT_EQ(-EINVAL, pirn_id_state(id, NULL));
    EXPECT_EQ(1, lab_run_all(&lab));
    lab_finish(&lab);
}

static enum pirn_poll look_and_wait(struct script *script, pirn_cx *cx)
{
    EXPECT_EQ(PIRN_TASK_RUNNING, state_of_id(pirn_task_self()));
    return script_wait(script, cx);
}

/* Goal: the state is told for every moment of a life.
 * Method: ask in each. */
TEST(id_state_follows_the_task)
{
    struct script script = {.on_poll = look_and_wait};
    struct lab lab;
    pirn_task *task;
    pirn_task_id id;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    id = pirn_task_get_id(task);
    EXPECT_EQ(PIRN_TASK_QUEUED, state_of_id(id));
    EXPECT(lab_run(&lab));
    EXPECT_EQ(PIRN_TASK_IDLE, state_of_id(id));
    EXPECT_EQ(0, pirn_id_suspend(id));
    EXPECT_EQ(PIRN_TASK_SUSPENDED, state_of_id(id));
    EXPECT_EQ(0, pirn_id_wake(id));
    EXPECT_EQ(PIRN_TASK_QUEUED, state_of_id(id));
    EXPECT_EQ(0, pirn_id_cancel(id));
    EXPECT(lab_run(&lab));
    EXPECT_EQ(PIRN_TASK_DONE, state_of_id(id));
    EXPECT_EQ(-ECANCELED, lab_outcome(task));
    pirn_task_unref(task);
    expect_stale(id);
    lab_finish(&lab);
}

/* Goal: a task found by its id has a handle of its own, which keeps it.
 * Method: find it, end it, look; the id works while the handle is there. */
TEST(id_find_gives_a_handle)
{
    struct script script = {.outcome = 9};
    struct lab lab;
    pirn_task *task, *again;
    pirn_task_id id;

    lab_begin(&lab);
    id = lab_spawn_loose(&lab, &script);
    EXPECT_EQ(0, pirn_id_find(id, &task));
    EXPECT_EQ(id.value, pirn_task_get_id(task).value);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, script.discards);
    EXPECT_EQ(0, pirn_id_find(id, &again));
    EXPECT_PTR_EQ(task, again);
    pirn_task_unref(again);
    EXPECT_EQ(9, lab_outcome(task));
    pirn_task_unref(task);
    EXPECT_EQ(1, script.discards);
    expect_stale(id);
    lab_finish(&lab);
}

/* Goal: a suspended task does not run for ordinary wakes, which are remembered;
 * a wake by id ends the suspension and is one run.
 * Method: suspend a waiting task, wake it many times, then by id. */
TEST(id_suspended_task_runs_only_when_woken_by_id)
{
    struct script script = {.on_poll = script_wait};
    struct lab lab;
    pirn_task *task;
    pirn_task_id id;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    id = pirn_task_get_id(task);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, pirn_id_suspend(id));
    for (int i = 0; i < 5; i++)
        pirn_waker_wake_by_ref(&script.waker);
    EXPECT_EQ(0, lab_run_all(&lab));
    EXPECT_EQ(1, script.polls);
    EXPECT_EQ(0, pirn_id_wake(id));
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(2, script.polls);
    pirn_waker_wake_by_ref(&script.waker);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(3, script.polls);
    EXPECT_EQ(0, pirn_id_cancel(id));
    EXPECT_EQ(1, lab_run_all(&lab));
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* Goal: a task can be held before its first run.
 * Method: suspend it while queued; it is popped but not polled. */
TEST(id_suspended_before_its_first_run_is_not_polled)
{
    struct script script = {0};
    struct lab lab;
    pirn_task_id id;

    lab_begin(&lab);
    id = lab_spawn_loose(&lab, &script);
    EXPECT_EQ(0, pirn_id_suspend(id));
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(0, script.polls);
    EXPECT_EQ(0, pirn_id_wake(id));
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(1, script.polls);
    lab_finish(&lab);
}

static enum pirn_poll suspend_self(struct script *script, pirn_cx *cx)
{
    if (script->polls == 1)
        EXPECT_EQ(0, pirn_id_suspend(pirn_task_self()));
    pirn_waker_wake_by_ref(cx->waker);
    return script_wait(script, cx);
}

/* Goal: cancel and abort override a suspension, also one that came during a
 * poll with a wake still owed.
 * Method: a task that suspends itself, then each way out. */
TEST(id_suspended_task_can_be_cancelled_and_aborted)
{
    for (int i = 0; i < 2; i++) {
        struct script script = {.on_poll = suspend_self};
        struct lab lab;
        pirn_task *task;

        lab_begin(&lab);
        task = lab_spawn(&lab, &script);
        EXPECT_EQ(1, lab_run_all(&lab));
        if (i == 0)
            pirn_task_cancel(task);
        else
            pirn_task_abort(task);
        EXPECT_EQ(1, lab_run_all(&lab));
        EXPECT_EQ(1, script.polls);
        EXPECT_EQ(1, script.drops);
        EXPECT_EQ(i == 0 ? -ECANCELED : PIRN_EABORTED, lab_outcome(task));
        pirn_task_unref(task);
        lab_finish(&lab);
    }
}

/* Threads. */

struct seekers {
    pirn_task_id id;
    size_t rounds;
    PIRN_ATOMIC(int) stop;
};

/* Use an id that may become stale at any moment. */
static void *seek(void *arg)
{
    struct seekers *seekers = arg;
    enum pirn_task_state state;
    pirn_task *task;

    /* acquire [id_test.stop]: the end is enough.  Ends when the test has ended
     * its task. */
    while (pirn__load(&seekers->stop, acquire) == 0) {
        if (pirn_id_state(seekers->id, &state) < 0)
            EXPECT_EQ(-ESRCH, pirn_id_state(seekers->id, &state));
        if (pirn_id_find(seekers->id, &task) == 0) {
            (void)pirn_task_is_done(task);
            pirn_task_unref(task);
        }
    }
    EXPECT_EQ(-ESRCH, pirn_id_state(seekers->id, &state));
    return NULL;
}

/* Goal: looking a task up is safe while it ends and its cell is used again.
 * Method: one thread looks up by id, the other ends the task and spawns more.
 * The output is discarded once, by whoever is last. */
TEST(id_looked_up_while_the_task_ends_is_safe)
{
    size_t rounds = test_size(30, 200, 5000);

    for (size_t i = 0; i < rounds; i++) {
        struct script script = {0}, next = {0};
        struct seekers seekers = {0};
        struct lab lab;
        pthread_t thread;

        lab_begin(&lab);
        seekers.id = lab_spawn_loose(&lab, &script);
        script.lab = NULL; /* Its log is not for two threads. */
        REQUIRE(pthread_create(&thread, NULL, seek, &seekers) == 0);
        EXPECT(lab_run(&lab));
        (void)lab_spawn_loose(&lab, &next);
        EXPECT(lab_run(&lab));
        /* release [id_test.stop]: as above. */
        pirn__store(&seekers.stop, 1, release);
        pthread_join(thread, NULL);
        EXPECT_EQ(1, script.discards);
        lab_finish(&lab);
    }
}
