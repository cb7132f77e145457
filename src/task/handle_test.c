/* SPDX-License-Identifier: MIT */
/* src/task/handle_test.c - what a handle is good for: references, cancel and
 * abort, the output, and facts about the task. */
#include "task/lab_test.h"

#include <pthread.h>
#include <sched.h>

#include "base/lock.h"

/* Goal: a task whose handle is given up runs on, to its end.
 * Method: unref before the first run and while it waits. */
TEST(handle_given_up_leaves_the_task_running)
{
    struct script script = {.on_poll = script_wait_once};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    EXPECT_PTR_EQ(task, pirn_task_ref(task));
    pirn_task_unref(task);
    EXPECT(lab_run(&lab));
    pirn_task_unref(task);
    EXPECT_EQ(1, script.polls);
    script_wake(&script);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(2, script.polls);
    EXPECT_EQ(1, script.discards);
    EXPECT_EQ(0, script.drops);
    pirn_task_unref(NULL);
    lab_finish(&lab);
}

/* Goal: an output nobody can want is discarded at completion, before the
 * handle's time as well as after it.
 * Method: without a handle; with one that went before the end. */
TEST(output_without_a_handle_is_discarded_at_the_end)
{
    struct script loose = {0}, late = {.on_poll = script_wait_once};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &loose);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(1, loose.discards);

    task = lab_spawn(&lab, &late);
    EXPECT(lab_run(&lab));
    pirn_task_unref(task);
    EXPECT_EQ(0, late.discards);
    script_wake(&late);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(1, late.discards);
    lab_finish(&lab);
}

/* Goal: an output that was not taken is discarded with the last handle, once.
 * Method: two handles, given up after the end. */
TEST(output_not_taken_is_discarded_with_the_last_handle)
{
    struct script script = {0};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    pirn_task_ref(task);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, lab_outcome(task));
    EXPECT_EQ(0, script.discards);
    pirn_task_unref(task);
    EXPECT_EQ(0, script.discards);
    pirn_task_unref(task);
    EXPECT_EQ(1, script.discards);
    lab_finish(&lab);
}

/* Goal: an output is moved out once, with its result, and not discarded.
 * Method: take it too early, with wrong sizes, rightly, and again. */
TEST(output_is_moved_out_once)
{
    struct script script = {.on_poll = script_wait_once};
    struct step output = {0};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    EXPECT_EQ(-EAGAIN, pirn_task_take_output(task, &output, sizeof output));
    EXPECT(lab_run(&lab));
    EXPECT_EQ(-EAGAIN, pirn_task_take_output(task, &output, sizeof output));
    script_wake(&script);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(-EINVAL, pirn_task_take_output(task, &output, sizeof output - 8));
    EXPECT_EQ(-EINVAL, pirn_task_take_output(task, &output, sizeof output + 8));
    EXPECT_EQ(-EINVAL, pirn_task_take_output(task, NULL, sizeof output));
    EXPECT_EQ(-EINVAL, pirn_task_take_output(NULL, &output, sizeof output));
    EXPECT_EQ(0, output.value);
    EXPECT_EQ(0, pirn_task_take_output(task, &output, sizeof output));
    EXPECT_EQ(42, output.value);
    EXPECT_PTR_EQ(&script, output.script);
    EXPECT_EQ(-ENOENT, pirn_task_take_output(task, &output, sizeof output));
    pirn_task_unref(task);
    EXPECT_EQ(0, script.discards);
    pirn_future_discard(&output.future);
    EXPECT_EQ(1, script.discards);
    lab_finish(&lab);
}

/* Goal: a future's size need not be a multiple of anything.
 * Method: a step with a tail of odd length, spawned, ended and taken out. */
TEST(output_of_odd_size_comes_out_whole)
{
    enum { TAIL = 13, SIZE = sizeof(struct step) + TAIL };
    union {
        struct step step;
        char bytes[SIZE];
    } in = {0}, out = {0};
    struct script script = {0};
    struct lab lab;
    struct pirn__task_plan plan = {
        .ops = &pirn__stackless_ops,
        .home = &lab.home,
        .slabs = &lab.slabs,
        .future = &in.step.future,
        .size = SIZE,
        .site = "odd",
        .handle = true,
    };
    struct pirn__task *task;

    lab_begin(&lab);
    in.step = step_of(&script);
    memset(in.bytes + sizeof in.step, 'o', TAIL);
    task = pirn__task_new(&plan);
    REQUIRE(task != NULL);
    EXPECT_EQ(0, pirn__group_admit(&lab.group, NULL, task, &plan));
    lab_submit(&lab.home, task, PIRN__ORIGIN_SPAWN);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, pirn_task_take_output((pirn_task *)task, &out, SIZE));
    EXPECT_EQ(0, memcmp(out.bytes + sizeof in.step, in.bytes + sizeof in.step,
                        TAIL));
    EXPECT_EQ(0, lab_outcome((pirn_task *)task));
    pirn_task_unref((pirn_task *)task);
    lab_finish(&lab);
}

/* Goal: a task that was dropped, or ended before it had a handle, has no
 * output.
 * Method: cancel one, abort one; find one by id after its end. */
TEST(output_of_a_task_without_result_is_not_there)
{
    struct script cancelled = {0}, aborted = {0};
    struct script loose = {.on_poll = script_wait_once};
    struct step output;
    struct lab lab;
    pirn_task *first, *second, *found;
    pirn_task_id id;
    pirn_waker keeper;

    lab_begin(&lab);
    first = lab_spawn(&lab, &cancelled);
    second = lab_spawn(&lab, &aborted);
    id = lab_spawn_loose(&lab, &loose);
    pirn_task_cancel(first);
    pirn_task_abort(second);
    EXPECT_EQ(3, lab_run_all(&lab));
    EXPECT_EQ(-ECANCELED, lab_outcome(first));
    EXPECT_EQ(PIRN_EABORTED, lab_outcome(second));
    EXPECT_EQ(-ENOENT, pirn_task_take_output(first, &output, sizeof output));
    EXPECT_EQ(-ENOENT, pirn_task_take_output(second, &output, sizeof output));
    pirn_task_unref(first);
    pirn_task_unref(second);

    keeper = pirn_waker_clone(&loose.waker);
    script_wake(&loose);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(1, loose.discards);
    EXPECT_EQ(0, pirn_id_find(id, &found));
    EXPECT_EQ(-ENOENT, pirn_task_take_output(found, &output, sizeof output));
    pirn_task_unref(found);
    EXPECT_EQ(1, loose.discards);
    pirn_waker_drop(keeper);
    lab_finish(&lab);
}

/* Goal: cancelling ends a stackless task by dropping it: once, before its first
 * poll or in a wait; repeating it changes nothing.
 * Method: two tasks, cancelled twice each, and again when they have ended. */
TEST(cancelled_task_is_dropped_once)
{
    struct script fresh = {0}, waiting = {.on_poll = script_wait};
    struct lab lab;
    pirn_task *first, *second;

    lab_begin(&lab);
    second = lab_spawn(&lab, &waiting);
    EXPECT(lab_run(&lab));
    first = lab_spawn(&lab, &fresh);
    for (int i = 0; i < 2; i++) {
        pirn_task_cancel(first);
        pirn_task_cancel(second);
    }
    EXPECT_EQ(0, fresh.drops + waiting.drops);
    EXPECT_EQ(2, lab_run_all(&lab));
    EXPECT_EQ(0, fresh.polls);
    EXPECT_EQ(1, fresh.drops);
    EXPECT_EQ(1, waiting.polls);
    EXPECT_EQ(1, waiting.drops);
    EXPECT_EQ(-ECANCELED, lab_outcome(first));
    EXPECT_EQ(-ECANCELED, lab_outcome(second));
    pirn_task_cancel(first);
    pirn_task_abort(first);
    EXPECT_EQ(0, lab_run_all(&lab));
    EXPECT_EQ(-ECANCELED, lab_outcome(first));
    EXPECT_EQ(0, fresh.discards + waiting.discards);
    EXPECT_EQ(2, pirn__group_read(&lab.group).cancelled);
    pirn_task_unref(first);
    pirn_task_unref(second);
    pirn_task_cancel(NULL);
    pirn_task_abort(NULL);
    lab_finish(&lab);
}

/* Goal: abort never drops on the caller's thread but queues the task.
 * Method: abort a waiting task; it is dropped only when it is popped. */
TEST(aborted_task_is_dropped_by_its_runtime)
{
    struct script script = {.on_poll = script_wait};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    EXPECT(lab_run(&lab));
    pirn_task_abort(task);
    EXPECT_EQ(0, script.drops);
    EXPECT(!pirn_task_is_done(task));
    EXPECT(lab_run(&lab));
    EXPECT_EQ(1, script.drops);
    EXPECT_EQ(PIRN_EABORTED, lab_outcome(task));
    EXPECT_EQ(1, pirn__group_read(&lab.group).aborted);
    EXPECT_EQ(0, lab.fails);
    pirn_task_unref(task);
    lab_finish(&lab);
}

static enum pirn_poll cancel_self(struct script *script, pirn_cx *cx)
{
    pirn_task_cancel(script->arg);
    EXPECT(pirn_task_cancelled());
    return script->polls == 1 ? script_wait(script, cx) : PIRN_READY;
}

/* Goal: a task that is cancelled during its own poll is dropped at its next
 * turn, and its own outcome counts if it ends in that poll.
 * Method: one that goes on waiting; one that is ready at once. */
TEST(task_cancelled_in_its_poll_may_still_end_by_itself)
{
    struct script waits = {.on_poll = cancel_self};
    struct script ends = {.on_poll = cancel_self, .polls = 1, .outcome = 7};
    struct lab lab;
    pirn_task *first, *second;

    lab_begin(&lab);
    first = lab_spawn(&lab, &waits);
    waits.arg = first;
    EXPECT_EQ(2, lab_run_all(&lab));
    EXPECT_EQ(1, waits.polls);
    EXPECT_EQ(-ECANCELED, lab_outcome(first));
    second = lab_spawn(&lab, &ends);
    ends.arg = second;
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(7, lab_outcome(second));
    pirn_task_unref(first);
    pirn_task_unref(second);
    lab_finish(&lab);
}

static enum pirn_poll look_at_self(struct script *script, pirn_cx *cx)
{
    (void)cx;
    EXPECT_EQ(pirn_task_get_id(script->arg).value, pirn_task_self().value);
    EXPECT_STR_EQ("context", pirn_task_context());
    EXPECT(!pirn_task_cancelled());
    return PIRN_READY;
}

/* Goal: name, context, site and id are what the spawn said; the name is cut.
 * Method: with all of them; without any; ask inside and outside the task. */
TEST(task_knows_its_name_site_and_context)
{
    static char context[] = "context";
    const pirn_spawn_options options = {
        .name = "a name of more than thirty-one letters",
        .context = context,
    };
    struct script named = {.on_poll = look_at_self}, plain = {0};
    struct lab lab;
    pirn_task *first, *second;

    lab_begin(&lab);
    first = (pirn_task *)lab_spawn_with(&lab, &named, &options, true);
    second = lab_spawn(&lab, &plain);
    named.arg = first;
    EXPECT_STR_EQ("a name of more than thirty-one ", pirn_task_name(first));
    EXPECT(strstr(pirn_task_site(first), "lab_test.h:") != NULL);
    EXPECT_PTR_EQ(NULL, pirn_task_name(second));
    EXPECT(strstr(pirn_task_site(second), "lab_test.h:") != NULL);
    EXPECT_NE(0, pirn_task_get_id(first).value);
    EXPECT_NE(pirn_task_get_id(first).value, pirn_task_get_id(second).value);
    EXPECT_EQ(2, lab_run_all(&lab));

    EXPECT_EQ(0, pirn_task_self().value);
    EXPECT_PTR_EQ(NULL, pirn_task_context());
    EXPECT(!pirn_task_cancelled());
    EXPECT_EQ(0, lab_outcome(first));
    EXPECT_EQ(0, lab_outcome(second));
    pirn_task_unref(first);
    pirn_task_unref(second);
    lab_finish(&lab);
}

/* Goal: a bad outcome reaches a joiner or the hook, never neither and never
 * both.
 * Method: joined; handle given up before and after the end; cancelled. */
TEST(task_bad_outcome_reaches_joiner_or_hook)
{
    struct script joined = {.outcome = -EIO}, unseen = {.outcome = -EIO};
    struct script loose = {.outcome = -EPIPE};
    struct script cancelled = {.on_poll = script_wait};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &joined);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(-EIO, lab_outcome(task));
    pirn_task_unref(task);
    EXPECT_EQ(0, lab.fails);

    task = lab_spawn(&lab, &unseen);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, lab.fails);
    pirn_task_unref(task);
    EXPECT_EQ(1, lab.fails);
    EXPECT_EQ(-EIO, lab.fail_outcome);

    (void)lab_spawn_loose(&lab, &loose);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(2, lab.fails);
    EXPECT_EQ(-EPIPE, lab.fail_outcome);

    EXPECT_EQ(0, pirn_id_cancel(lab_spawn_loose(&lab, &cancelled)));
    EXPECT(lab_run(&lab));
    EXPECT_EQ(1, cancelled.drops);
    EXPECT_EQ(2, lab.fails);
    lab_finish(&lab);
}

/* A task that fails with words, but has a code of its own as its outcome. */
static enum pirn_poll fail_with_words(struct script *script, pirn_cx *cx)
{
    script->waker = pirn_waker_clone(cx->waker);
    pirn_cx_fail(cx, "page %d is gone", 7);
    return PIRN_READY;
}

/* Goal: the words of a failure reach the hook whenever it is told, and the
 * outcome is PIRN_EFAILED whatever the future says.
 * Method: joined; without a handle; the handle given up after the end, after
 * another task has failed on the same thread. */
TEST(task_failure_keeps_its_words_for_the_last_handle)
{
    struct script joined = {.on_poll = fail_with_words, .outcome = -EIO};
    struct script loose = joined, unseen = joined;
    struct script other = {.outcome = -EPIPE};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &joined);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(PIRN_EFAILED, lab_outcome(task));
    pirn_task_unref(task);
    EXPECT_EQ(0, lab.fails);

    (void)lab_spawn_loose(&lab, &loose);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(1, lab.fails);
    EXPECT_EQ(PIRN_EFAILED, lab.fail_outcome);
    EXPECT_STR_EQ("page 7 is gone", lab.fail_message);

    task = lab_spawn(&lab, &unseen);
    EXPECT(lab_run(&lab));
    (void)lab_spawn_loose(&lab, &other);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(2, lab.fails);
    EXPECT_STR_EQ("", lab.fail_message);
    pirn_task_unref(task);
    EXPECT_EQ(3, lab.fails);
    EXPECT_EQ(PIRN_EFAILED, lab.fail_outcome);
    EXPECT_STR_EQ("page 7 is gone", lab.fail_message);

    pirn_waker_drop(joined.waker);
    pirn_waker_drop(loose.waker);
    pirn_waker_drop(unseen.waker);
    lab_finish(&lab);
}

/* Goal: without memory for its words a failure is told all the same.
 * Method: the allocation of the copy fails. */
TEST(task_failure_without_memory_is_told_without_words)
{
    struct script script = {.on_poll = fail_with_words};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    lab.fail_at = lab.calls + 1;
    EXPECT(lab_run(&lab));
    lab.fail_at = 0;
    pirn_task_unref(task);
    EXPECT_EQ(1, lab.fails);
    EXPECT_EQ(PIRN_EFAILED, lab.fail_outcome);
    EXPECT_STR_EQ("", lab.fail_message);
    pirn_waker_drop(script.waker);
    lab_finish(&lab);
}

/* Goal: the hook is told of a failure once.
 * Method: after it was told, with the end and with the last handle, new handles
 * are found by the id and given up. */
TEST(task_failure_is_told_once)
{
    struct script loose = {.on_poll = fail_with_words}, unseen = loose;
    struct lab lab;
    pirn_task *task;
    pirn_task_id id;

    lab_begin(&lab);
    id = lab_spawn_loose(&lab, &loose);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(1, lab.fails);
    EXPECT_EQ(0, pirn_id_find(id, &task));
    EXPECT_EQ(PIRN_EFAILED, lab_outcome(task));
    pirn_task_unref(task);
    EXPECT_EQ(0, pirn_id_find(id, &task));
    pirn_task_unref(task);
    EXPECT_EQ(1, lab.fails);

    task = lab_spawn(&lab, &unseen);
    id = pirn_task_get_id(task);
    EXPECT(lab_run(&lab));
    pirn_task_unref(task);
    EXPECT_EQ(2, lab.fails);
    EXPECT_EQ(0, pirn_id_find(id, &task));
    pirn_task_unref(task);
    EXPECT_EQ(2, lab.fails);

    pirn_waker_drop(loose.waker);
    pirn_waker_drop(unseen.waker);
    lab_finish(&lab);
}

/* Somebody who holds the group's lock until the settlement waits for it, gives
 * the last handle up and lets go. */
struct hinderer {
    struct lab *lab;
    pirn_task *task;
    PIRN_ATOMIC(int) locked;
};

static void *hinder(void *arg)
{
    struct hinderer *hinderer = arg;
    pirn_lock *lock = &hinderer->lab->group.lock;

    pirn__lock(lock);
    /* release [handle_test.locked]: the task may run. */
    pirn__store(&hinderer->locked, 1, release);
    /* relaxed: only whether somebody waits.  Ends: the settlement comes. */
    while (pirn__load(&lock->word_, relaxed) != 2)
        sched_yield();
    pirn_task_unref(hinderer->task);
    pirn__unlock(lock);
    return NULL;
}

/* Goal: an output is discarded once, also when its last handle goes after the
 * settlement has seen it and before the end is published.
 * Method: hold the settlement up in its group and give the handle up. */
TEST(output_is_discarded_when_the_handle_goes_in_the_settlement)
{
    struct script script = {.outcome = -EIO};
    struct lab lab;
    struct hinderer hinderer = {.lab = &lab};
    pthread_t thread;

    lab_begin(&lab);
    hinderer.task = lab_spawn(&lab, &script);
    REQUIRE(pthread_create(&thread, NULL, hinder, &hinderer) == 0);
    /* acquire [handle_test.locked]: pairs with the thread.  Ends: it comes
     * there. */
    while (pirn__load(&hinderer.locked, acquire) == 0)
        sched_yield();
    EXPECT(lab_run(&lab));
    pthread_join(thread, NULL);
    EXPECT_EQ(1, script.discards);
    EXPECT_EQ(1, lab.fails);
    lab_finish(&lab);
}

static void unref_twice(void *arg)
{
    struct script script = {.on_poll = script_wait};
    static struct lab lab;
    pirn_task *task;

    (void)arg;
    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    pirn_task_unref(task);
    pirn_task_unref(task);
}

/* Goal: a handle given up twice is noticed while its task still lives.
 * Method: a child process does it. */
TEST(handle_given_up_twice_aborts)
{
    EXPECT_DEATH(unref_twice, NULL, "a task handle is given up once");
}
