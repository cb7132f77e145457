/* SPDX-License-Identifier: MIT */
/* src/sched/hooks_test.c - when the hooks are called, and with what. */
#include "sched/hooks.h"

#include <errno.h>
#include <pthread.h>

#include "engine/pool_fixture.h"

/* Counts sleeps, and what must not be. */
struct sentry {
    tally parks;
    tally unparks;
    tally mistakes;
};

static void note_park(void *arg, uint32_t worker)
{
    struct sentry *sentry = arg;

    if (worker != 0 || pirn_sleep(pirn_after_ms(1)) != -EDEADLK ||
        tally_of(&sentry->parks) != tally_of(&sentry->unparks))
        tally_up(&sentry->mistakes);
    tally_up(&sentry->parks);
}

static void note_unpark(void *arg, uint32_t worker)
{
    struct sentry *sentry = arg;

    if (worker != 0 ||
        tally_of(&sentry->parks) != tally_of(&sentry->unparks) + 1)
        tally_up(&sentry->mistakes);
    tally_up(&sentry->unparks);
}

static pirn_runtime *watched(struct sentry *sentry, uint32_t workers)
{
    const pirn_runtime_options options = {
        .workers = workers,
        .on_park = note_park,
        .on_unpark = note_unpark,
        .hook_arg = sentry,
    };
    pirn_runtime *rt = NULL;

    *sentry = (struct sentry){.parks = {0}};
    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    return rt;
}

/* Goal: the hooks around sleeps come in pairs and may not suspend; a wake that
 * comes during the first is not lost.
 * Method: one worker, woken a few times when it has gone to sleep. */
TEST(hooks_around_the_sleeps_of_a_worker)
{
    struct sentry sentry;
    pirn_runtime *rt;

    rt = watched(&sentry, 1);
    for (uint64_t i = 1; i <= 5; i++) {
        wait_for_tally(&sentry.parks, i);
        spawn_probe(rt, step_ready, NULL, NULL);
        wait_for_tally(&sentry.unparks, i);
    }
    runtime_end(rt);
    EXPECT_EQ(tally_of(&sentry.parks), tally_of(&sentry.unparks));
    EXPECT_EQ(0, tally_of(&sentry.mistakes));
}

static int nap(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ns(1));
}

/* Goal: a runtime without workers calls them where it waits.
 * Method: block_on for a fiber that sleeps. */
TEST(hooks_around_the_waits_of_a_driver)
{
    struct sentry sentry;
    pirn_runtime *rt;
    pirn_join_op join;
    pirn_task *task;

    rt = watched(&sentry, 0);
    task = go_task(rt, nap, NULL);
    pirn_join_init(&join, task);
    EXPECT_EQ(0, pirn_block_on(rt, &join.future, pirn_after_ms(RESCUE_MS)));
    EXPECT_EQ(0, join.rc);
    EXPECT_EQ(0, join.outcome);
    EXPECT_GE(tally_of(&sentry.parks), 1);
    EXPECT_EQ(tally_of(&sentry.parks), tally_of(&sentry.unparks));
    pirn_task_unref(task);
    runtime_end(rt);
    EXPECT_EQ(tally_of(&sentry.parks), tally_of(&sentry.unparks));
    EXPECT_EQ(0, tally_of(&sentry.mistakes));
}

/* What the task hooks have heard; several threads. */
struct gazette {
    pthread_mutex_t mutex;
    pirn_task_event spawns[8];
    pirn_task_event ends[8];
    uint32_t spawn_count;
    uint32_t end_count;
    uint32_t mistakes;
};

static void note_event(struct gazette *gazette, pirn_task_event *list,
                       uint32_t *count, const pirn_task_event *event)
{
    int rc = pirn_sleep(pirn_after_ms(1));

    pthread_mutex_lock(&gazette->mutex);
    if (rc != -EDEADLK || *count == 8)
        gazette->mistakes++;
    else
        list[(*count)++] = *event;
    pthread_mutex_unlock(&gazette->mutex);
}

static void note_spawn(void *arg, const pirn_task_event *event)
{
    struct gazette *gazette = arg;

    note_event(gazette, gazette->spawns, &gazette->spawn_count, event);
}

static void note_end(void *arg, const pirn_task_event *event)
{
    struct gazette *gazette = arg;

    note_event(gazette, gazette->ends, &gazette->end_count, event);
}

static int return_seven(void *arg)
{
    (void)arg;
    return 7;
}

static int wait_for_ever(void *arg)
{
    (void)arg;
    return pirn_sleep(PIRN_NEVER);
}

static const pirn_task_event *end_of(const struct gazette *gazette,
                                     pirn_task_id id)
{
    for (uint32_t i = 0; i < gazette->end_count; i++) {
        if (gazette->ends[i].id.value == id.value)
            return &gazette->ends[i];
    }
    return NULL;
}

/* One fiber that ends, one that is cancelled, one stackless task that shutdown
 * drops. */
static void run_gazette(uint32_t workers)
{
    static const int outcomes[] = {7, -ECANCELED, -ECANCELED};
    struct gazette gazette = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    const pirn_runtime_options options = {
        .workers = workers,
        .on_task_spawn = note_spawn,
        .on_task_end = note_end,
        .hook_arg = &gazette,
    };
    pirn_spawn_options spawn = {.name = "seven"};
    pirn_task *task;
    pirn_runtime *rt;

    REQUIRE(pirn_runtime_new(&options, &rt) == 0);
    spawn.runtime = rt;
    EXPECT_EQ(0, pirn_go_with(return_seven, NULL, &spawn, &task));
    EXPECT_EQ(7, join_and_unref(task));
    EXPECT_EQ(1, gazette.end_count);
    go(rt, wait_for_ever, NULL);
    spawn_probe(rt, step_never, NULL, NULL);
    runtime_end(rt);
    EXPECT_EQ(3, gazette.spawn_count);
    EXPECT_EQ(3, gazette.end_count);
    EXPECT_EQ(0, gazette.mistakes);
    EXPECT(gazette.spawns[0].name != NULL);
    EXPECT_PTR_EQ(NULL, gazette.spawns[1].name);
    for (uint32_t i = 0; i < 3; i++) {
        const pirn_task_event *end = end_of(&gazette, gazette.spawns[i].id);

        REQUIRE(end != NULL);
        EXPECT_EQ(0, gazette.spawns[i].outcome);
        EXPECT_EQ(outcomes[i], end->outcome);
        EXPECT_STR_EQ(gazette.spawns[i].site, end->site);
    }
}

/* Goal: each task's begin and end is told once, with its name, its site and its
 * outcome, on both kinds of runtime, before anybody who joins knows.
 * Method: tasks that end, are cancelled, are dropped. */
TEST(hooks_hear_of_each_task)
{
    run_gazette(0);
    run_gazette(2);
}

/* Goal: a refused spawn is no task, and nobody hears of it.
 * Method: refuse the memory of one; spawn into a runtime that has ended. */
TEST(hooks_are_silent_about_refused_spawns)
{
    struct gazette gazette = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct meter meter;
    struct probe probe = probe_of(step_ready, NULL, NULL);
    pirn_spawn_options spawn = {.name = "refused"};
    pirn_runtime *rt;

    meter_init(&meter);
    REQUIRE(pirn_runtime_new(
                &(pirn_runtime_options){.alloc = &meter.alloc,
                                        .on_task_spawn = note_spawn,
                                        .on_task_end = note_end,
                                        .hook_arg = &gazette},
                &rt) == 0);
    spawn.runtime = rt;
    meter_fail(&meter, 1, true);
    EXPECT_EQ(-ENOMEM, pirn_spawn(&probe.future, sizeof probe, &spawn, NULL));
    meter_fail(&meter, 0, false);
    pirn_runtime_ref(rt);
    runtime_end(rt);
    EXPECT_EQ(PIRN_ESHUTDOWN,
              pirn_spawn(&probe.future, sizeof probe, &spawn, NULL));
    EXPECT_EQ(0, gazette.spawn_count);
    EXPECT_EQ(0, gazette.end_count);
    pirn_runtime_unref(rt);
}

/* Who is told after the runtime has ended. */
struct epilogue {
    tally calls;
    struct hog hog;
};

static void note_worker(void *arg, uint32_t worker)
{
    struct epilogue *epilogue = arg;

    (void)worker;
    tally_up(&epilogue->calls);
}

static void note_task(void *arg, const pirn_task_event *event)
{
    struct epilogue *epilogue = arg;

    (void)event;
    tally_up(&epilogue->calls);
}

static void note_failure(void *arg, const pirn_failure *failure)
{
    struct epilogue *epilogue = arg;

    (void)failure;
    tally_up(&epilogue->calls);
}

static int hold_and_fail(void *arg)
{
    (void)hog_hold(arg);
    return -EIO;
}

static void drive_until_over(void *arg, size_t index)
{
    pirn_runtime *rt = arg;
    pirn_join_op join;
    pirn_task *task = go_task(rt, wait_for_ever, NULL);

    (void)index;
    pirn_join_init(&join, task);
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_block_on(rt, &join.future, PIRN_NEVER));
    pirn_task_unref(task);
}

static void end_before_the_hog(uint32_t workers)
{
    struct epilogue epilogue = {.calls = {0}};
    struct meter meter;
    struct crew crew = {.count = 0};
    pirn_runtime *rt;
    uint64_t calls;

    meter_init(&meter);
    REQUIRE(pirn_runtime_new(
                &(pirn_runtime_options){.workers = workers,
                                        .alloc = &meter.alloc,
                                        .on_thread_start = note_worker,
                                        .on_thread_stop = note_worker,
                                        .on_park = note_worker,
                                        .on_unpark = note_worker,
                                        .on_task_spawn = note_task,
                                        .on_task_end = note_task,
                                        .hook_arg = &epilogue,
                                        .on_failure = note_failure,
                                        .on_failure_arg = &epilogue},
                &rt) == 0);
    go(rt, hold_and_fail, &epilogue.hog);
    if (workers == 0)
        crew_start(&crew, 1, drive_until_over, rt);
    wait_for_tally(&epilogue.hog.holding, 1);
    spawn_probe(rt, step_never, NULL, NULL);
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL));
    calls = tally_of(&epilogue.calls);
    EXPECT_GE(calls, 1);
    pirn_runtime_unref(rt);
    tally_up(&epilogue.hog.let_go);
    crew_join(&crew);
    if (workers > 0)
        wait_for_tally(&meter.dones, 1);
    EXPECT_EQ(calls, tally_of(&epilogue.calls));
}

/* Goal: no hook is called once shutdown has returned, also not by a thread that
 * comes back later, whose task then fails, and who drops what it has left.
 * Method: a task that holds its worker, or the driver, beyond the deadline. */
TEST(hooks_are_silent_after_shutdown)
{
    end_before_the_hog(1);
    end_before_the_hog(2);
    end_before_the_hog(0);
}

/* A hook that is under way when the end comes. */
struct slow_hook {
    struct pirn__hook_gate gates[PIRN__HOOK_GATES];
    struct pirn__hooks hooks;
    tally entered;
    tally let_go;
    tally left;
};

static void leave_late(void *arg, uint32_t worker)
{
    struct slow_hook *slow = arg;

    (void)worker;
    tally_up(&slow->entered);
    wait_for_tally(&slow->let_go, 1);
    tally_up(&slow->left);
}

static void call_slow_hook(void *arg, size_t index)
{
    struct slow_hook *slow = arg;

    (void)index;
    pirn__hooks_tell(&slow->hooks, slow->hooks.on_park, 0);
}

static void let_slow_hook_go(void *arg, size_t index)
{
    struct slow_hook *slow = arg;

    (void)index;
    tally_up(&slow->let_go);
}

/* Goal: the end of the hooks waits for a call that is under way, up to its
 * deadline, and there is no further call.
 * Method: end them while a hook waits, until an expired deadline; call another;
 * then without a deadline, while a thread lets the first one go. */
TEST(hook_under_way_is_waited_for)
{
    static struct slow_hook slow;
    const pirn_runtime_options options = {.on_park = leave_late,
                                          .hook_arg = &slow};
    struct crew caller, helper;

    pirn__hooks_init(&slow.hooks, slow.gates, &options);
    crew_start(&caller, 1, call_slow_hook, &slow);
    wait_for_tally(&slow.entered, 1);
    pirn__hooks_end(&slow.hooks, PIRN_EXPIRED);
    EXPECT_EQ(0, tally_of(&slow.left));
    call_slow_hook(&slow, 0);
    EXPECT_EQ(1, tally_of(&slow.entered));
    crew_start(&helper, 1, let_slow_hook_go, &slow);
    pirn__hooks_end(&slow.hooks, PIRN_NEVER);
    EXPECT_EQ(1, tally_of(&slow.left));
    crew_join(&caller);
    crew_join(&helper);
}
