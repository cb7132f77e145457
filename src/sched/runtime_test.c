/* SPDX-License-Identifier: MIT */
/* src/sched/runtime_test.c - a runtime is made, counted, measured and given
 * back. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pirn/runtime.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/pool_fixture.h"
#include "sched/runtime_test.h"

static void expect_refused(const pirn_runtime_options *options)
{
    pirn_runtime *rt = (pirn_runtime *)(void *)&rt;

    EXPECT_EQ(-EINVAL, pirn_runtime_new(options, &rt));
    EXPECT_PTR_EQ(NULL, rt);
}

/* Goal: an option out of its range is refused, and what is just in is not.
 * Method: each option at both sides of each end. */
TEST(runtime_options_out_of_range_are_refused)
{
    struct meter meter;
    pirn_alloc half;
    pirn_runtime *rt;

    EXPECT_EQ(-EINVAL, pirn_runtime_new(NULL, NULL));
    meter_init(&meter);
    half = meter.alloc;
    half.take = NULL;
    expect_refused(&(pirn_runtime_options){.alloc = &half});
    half = meter.alloc;
    half.give = NULL;
    expect_refused(&(pirn_runtime_options){.alloc = &half});
    expect_refused(&(pirn_runtime_options){.stack_size_bytes = 1});
    expect_refused(&(pirn_runtime_options){.stack_size_bytes = 16 * 1024 - 1});
    expect_refused(
        &(pirn_runtime_options){.stack_size_bytes = ((size_t)1 << 30) + 1});
    expect_refused(&(pirn_runtime_options){.blocking_threads = 4097});

    EXPECT_EQ(0, pirn_runtime_new(
                     &(pirn_runtime_options){.stack_size_bytes = 16 * 1024,
                                             .blocking_threads = 4096},
                     &rt));
    runtime_end(rt);
    EXPECT_EQ(0, pirn_runtime_new(&(pirn_runtime_options){.stack_size_bytes =
                                                              (size_t)1 << 30},
                                  &rt));
    runtime_end(rt);
}

/* The lowest descriptor number that is free. */
static int next_descriptor(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

/* Goal: without descriptors a runtime is not made, and whatever it had opened
 * or allocated by then is given back.
 * Method: lower the limit so that 0, 1, 2... descriptors are left. */
TEST(runtime_without_descriptors_is_not_made)
{
    int first = next_descriptor();
    struct rlimit before;
    pirn_runtime *rt = NULL;
    int rc = -EMFILE;
    int left;

    EXPECT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
    for (left = 0; rc == -EMFILE && left < 16; left++) {
        struct rlimit low = before;
        struct meter meter;

        meter_init(&meter);
        low.rlim_cur = (rlim_t)(first + left);
        EXPECT_EQ(0, setrlimit(RLIMIT_NOFILE, &low));
        rc = pirn_runtime_new(&(pirn_runtime_options){.alloc = &meter.alloc},
                              &rt);
        EXPECT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
        if (rc == 0)
            runtime_end(rt);
        else
            EXPECT_PTR_EQ(NULL, rt);
        EXPECT_EQ(0, tally_of(&meter.pieces));
        EXPECT_EQ(first, next_descriptor());
    }
    EXPECT_EQ(0, rc);
    EXPECT_GE(left, 2);
}

/* Goal: all memory comes from the hook and is back when the last reference has
 * gone; `done` is called once, after that.
 * Method: count; two references, and tasks of both kinds. */
TEST(runtime_memory_comes_from_the_hook_and_goes_back)
{
    struct meter meter;
    pirn_runtime *rt;

    meter_init(&meter);
    rt = runtime_on(&meter);
    EXPECT_PTR_EQ(rt, pirn_runtime_ref(rt));
    EXPECT_PTR_EQ(NULL, pirn_runtime_ref(NULL));
    EXPECT_GE(tally_of(&meter.pieces), 1);
    spawn_probe(rt, step_ready, NULL, NULL);
    spawn_probe(rt, step_never, NULL, NULL);
    turn(rt);
    pirn_runtime_unref(NULL);
    pirn_runtime_unref(rt);
    EXPECT_EQ(0, tally_of(&meter.dones));
    EXPECT_EQ(1, runtime_end(rt).cancelled);
    EXPECT_EQ(1, tally_of(&meter.dones));
    EXPECT_EQ(0, tally_of(&meter.pieces));
}

static enum pirn_poll step_keep_waker(struct probe *probe, pirn_cx *cx)
{
    pirn_waker *kept = probe->arg;

    if (kept->ops == NULL)
        *kept = pirn_waker_clone(cx->waker);
    return PIRN_PENDING;
}

/* Goal: wakers and handles may outlive the runtime; they do nothing, and the
 * memory goes with the last of them.
 * Method: keep one of each; use and give up one after the other. */
TEST(runtime_memory_outlives_it_for_wakers_and_handles)
{
    struct meter meter;
    pirn_runtime *rt;
    pirn_waker waker = {0};
    pirn_task *task;

    meter_init(&meter);
    rt = runtime_on(&meter);
    spawn_probe(rt, step_keep_waker, &waker, &task);
    turn(rt);
    EXPECT_EQ(1, runtime_end(rt).cancelled);
    EXPECT_EQ(0, tally_of(&meter.dones));
    pirn_waker_wake_by_ref(&waker);
    pirn_task_cancel(task);
    pirn_task_abort(task);
    EXPECT(pirn_task_is_done(task));
    EXPECT_EQ(-ECANCELED, join_and_unref(task));
    EXPECT_EQ(0, tally_of(&meter.dones));
    pirn_waker_wake(waker);
    EXPECT_EQ(1, tally_of(&meter.dones));
}

/* Goal: the last unref shuts down a runtime that nobody did: what can be
 * dropped is dropped.
 * Method: tasks that wait, one that has not run, and one whose handle lives. */
TEST(runtime_unref_without_shutdown_drops_everything)
{
    struct meter meter;
    tally drops = {0};
    struct probe probe = probe_of(step_never, NULL, &drops);
    pirn_task *task = NULL;
    pirn_runtime *rt;
    pirn_spawn_options options;

    meter_init(&meter);
    rt = runtime_on(&meter);
    options = (pirn_spawn_options){.runtime = rt};
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    turn(rt);
    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, &task));
    pirn_runtime_unref(rt);
    EXPECT_EQ(1001, tally_of(&drops));
    EXPECT_EQ(-ECANCELED, join_and_unref(task));
    EXPECT_EQ(1, tally_of(&meter.dones));
}

static int unref_inside(void *arg)
{
    pirn_runtime_unref(arg);
    return 0;
}

static void unref_in_a_task(void *arg)
{
    pirn_runtime *rt = runtime_new();

    (void)arg;
    go(rt, unref_inside, rt);
    turn(rt);
}

/* Goal: a task that gives up the last reference to its own runtime breaks a
 * rule, and the message names it.
 * Method: a death test. */
TEST(runtime_last_unref_inside_its_task_is_fatal)
{
    EXPECT_DEATH(unref_in_a_task, NULL, "last reference to a runtime");
}

/* Goal: the test clock answers nonsense with a code, stands still when paused,
 * moves when told, and never goes backward.
 * Method: look at the time inside the entered runtime. */
TEST(runtime_clock_pauses_advances_and_resumes)
{
    pirn_runtime *rt = runtime_new();
    uint64_t paused;

    EXPECT_EQ(-EINVAL, pirn_runtime_clock_pause(NULL));
    EXPECT_EQ(-EINVAL, pirn_runtime_clock_advance(NULL, 1));
    EXPECT_EQ(-EINVAL, pirn_runtime_clock_resume(NULL));
    EXPECT_EQ(-EINVAL, pirn_runtime_clock_advance(rt, 1));
    pirn_runtime_enter(rt);
    EXPECT_EQ(0, pirn_runtime_clock_pause(rt));
    paused = pirn_now_ns();
    EXPECT_EQ(0, pirn_runtime_clock_pause(rt));
    EXPECT_EQ(paused, pirn_now_ns());
    EXPECT_EQ(0, pirn_runtime_clock_advance(rt, 12345));
    EXPECT_EQ(paused + 12345, pirn_now_ns());
    EXPECT_EQ(0, pirn_runtime_clock_resume(rt));
    EXPECT_GE(pirn_now_ns(), paused + 12345);
    EXPECT_EQ(0, pirn_runtime_clock_resume(rt));
    pirn_runtime_enter(NULL);
    runtime_end(rt);
}

struct complaint {
    int count;
    pirn_failure last;
    char name[PIRN_NAME_SIZE];
    char message[128];
};

static void complain(void *arg, const pirn_failure *failure)
{
    struct complaint *complaint = arg;

    complaint->count++;
    complaint->last = *failure;
    if (failure->name != NULL)
        (void)snprintf(complaint->name, sizeof complaint->name, "%s",
                       failure->name);
    (void)snprintf(complaint->message, sizeof complaint->message, "%s",
                   failure->message);
}

static int fail(void *arg)
{
    return *(int *)arg;
}

static enum pirn_poll step_fail(struct probe *probe, pirn_cx *cx)
{
    pirn_cx_fail(cx, "no %s in %d", (char *)probe->arg, 7);
    return PIRN_READY;
}

/* Goal: a bad outcome that nobody joins reaches the hook and the counter, once;
 * a joined one, a cancellation and success do not.
 * Method: one task of each kind. */
TEST(runtime_failures_without_a_joiner_reach_the_hook)
{
    struct complaint complaint = {0};
    const pirn_runtime_options options = {.on_failure = complain,
                                          .on_failure_arg = &complaint};
    pirn_spawn_options named = {.name = "sad"};
    pirn_runtime *rt;
    pirn_runtime_info info;
    int outcomes[3] = {-EIO, 5, -ECANCELED};
    char word[] = "luck";

    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    EXPECT_EQ(-EIO, join_and_unref(go_task(rt, fail, &outcomes[0])));
    go(rt, fail, &outcomes[1]);
    go(rt, fail, &outcomes[2]);
    turn(rt);
    EXPECT_EQ(0, complaint.count);

    named.runtime = rt;
    EXPECT_EQ(0, pirn_go_with(fail, &outcomes[0], &named, NULL));
    turn(rt);
    EXPECT_EQ(1, complaint.count);
    EXPECT_EQ(-EIO, complaint.last.outcome);
    EXPECT_STR_EQ("sad", complaint.name);
    EXPECT_STR_EQ("", complaint.message);
    EXPECT(strstr(complaint.last.site, "runtime_test.c:") != NULL);

    spawn_probe(rt, step_fail, word, NULL);
    turn(rt);
    EXPECT_EQ(2, complaint.count);
    EXPECT_EQ(PIRN_EFAILED, complaint.last.outcome);
    EXPECT_STR_EQ("no luck in 7", complaint.message);

    /* Nobody asked before the last handle went. */
    pirn_task_unref(go_task(rt, fail, &outcomes[0]));
    turn(rt);
    EXPECT_EQ(3, complaint.count);
    pirn_runtime_get_info(rt, &info);
    EXPECT_EQ(3, info.failures);
    EXPECT_EQ(4, runtime_end(rt).failed);
}

/* Goal: facts of an idle runtime, and nothing for no runtime.
 * Method: look. */
TEST(runtime_info_of_an_idle_runtime)
{
    pirn_runtime *rt = runtime_new();
    pirn_runtime_info info = {.tasks = 7};

    pirn_runtime_get_info(rt, NULL);
    pirn_runtime_get_info(NULL, &info);
    EXPECT_EQ(0, info.tasks);
    pirn_runtime_get_info(rt, &info);
    EXPECT_EQ(0, info.tasks);
    EXPECT_EQ(0, info.timers);
    EXPECT_STR_EQ("epoll", info.backend);
    EXPECT_EQ(-EINVAL, pirn_runtime_fd(NULL));
    EXPECT_GE(pirn_runtime_fd(rt), 0);
    EXPECT_EQ(UINT64_MAX, pirn_runtime_next_deadline(NULL).ns);
    runtime_end(rt);
}

/* A task that waits for one wake. */
static enum pirn_poll step_wait_once(struct probe *probe, pirn_cx *cx)
{
    pirn_waker *slot = probe->arg;

    if (probe->polls > 0)
        return PIRN_READY;
    *slot = pirn_waker_clone(cx->waker);
    return PIRN_PENDING;
}

static void expect_depths(struct rig *rig, uint64_t injected, uint64_t inbox,
                          uint32_t queued)
{
    pirn_runtime_info info;
    pirn_worker_info worker;

    pirn_runtime_get_info(rig->rt, &info);
    EXPECT_EQ(0, pirn_runtime_get_worker(rig->rt, 0, &worker));
    EXPECT_EQ(injected, info.injected);
    EXPECT_EQ(inbox, worker.inbox);
    EXPECT_EQ(queued, worker.queued);
}

/* Goal: how many tasks wait in each queue can be read: in the one for all, in a
 * worker's inbox, in its ring.
 * Method: four tasks go from one to the next by hand; part of them by way of
 * the monitor's rescue. */
TEST(runtime_info_of_the_queues)
{
    enum { TASKS = 4 };
    const struct pirn__taskpool_ops *tasks = &pirn__stealable_ops;
    struct pirn__worker *worker;
    struct pirn__task *task;
    pirn_waker wakers[TASKS];
    struct rig rig;

    rig_init(&rig, 2);
    worker = rig_worker(&rig, 0);
    for (size_t i = 0; i < TASKS; i++)
        spawn_probe(rig.rt, step_wait_once, &wakers[i], NULL);
    expect_depths(&rig, TASKS, 0, 0);
    rig_become(&rig, 0);
    while ((task = tasks->pop_shared(worker)) != NULL ||
           (task = tasks->pop(worker)) != NULL)
        rig_run(worker, task);
    rig_leave();
    expect_depths(&rig, 0, 0, 0);
    pirn_waker_wake(wakers[0]);
    pirn_waker_wake(wakers[1]);
    expect_depths(&rig, 0, 2, 0);
    EXPECT_EQ(2, tasks->rescue(worker));
    expect_depths(&rig, 2, 0, 0);
    pirn_waker_wake(wakers[2]);
    pirn_waker_wake(wakers[3]);
    expect_depths(&rig, 2, 2, 0);
    rig_become(&rig, 0);
    pirn__init(&worker->counters.polls, 1);
    task = tasks->pop(worker);
    expect_depths(&rig, 2, 0, 1);
    do {
        rig_run(worker, task);
        task = tasks->pop(worker);
    } while (task != NULL || (task = tasks->pop_shared(worker)) != NULL);
    rig_leave();
    expect_depths(&rig, 0, 0, 0);
    rig_deinit(&rig);
}
