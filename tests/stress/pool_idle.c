/* SPDX-License-Identifier: MIT */
/* tests/stress/pool_idle.c - a pool that has nothing to do does nothing, and
 * threads that wait for it do not either.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <stdio.h>
#include <time.h>

#include "engine/pool_fixture.h"

enum { THREADS_MAX = 32 };

/* The context switches of each thread of the process. */
struct census {
    size_t count;
    struct {
        long thread;
        long switches;
    } threads[THREADS_MAX];
};

/* The sum of the two lines of its status, or -1. */
static long switches_of(long thread)
{
    char path[64];
    char line[256];
    long sum = -1;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/status", thread);
    file = fopen(path, "r");
    if (file == NULL)
        return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');

        if (value != NULL && strstr(line, "ctxt_switches") != NULL)
            sum += strtol(value + 1, NULL, 10) + (sum < 0);
    }
    (void)fclose(file);
    return sum;
}

/* Threads that were there before: the main one, which sleeps and counts, and
 * those of a sanitizer. */
static struct census before_all;

static bool is_older(long thread)
{
    for (size_t i = 0; i < before_all.count; i++)
        if (before_all.threads[i].thread == thread)
            return true;
    return false;
}

static void do_nothing(void *arg, size_t index)
{
    (void)arg;
    (void)index;
}

static void census_take(struct census *census)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;

    census->count = 0;
    REQUIRE(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        long thread = strtol(entry->d_name, NULL, 10);

        if (thread == 0 || is_older(thread))
            continue;
        REQUIRE(census->count < THREADS_MAX);
        census->threads[census->count].thread = thread;
        census->threads[census->count++].switches = switches_of(thread);
    }
    closedir(dir);
}

/* A sanitizer adds a thread of its own to the first that is started. */
static void note_older(void)
{
    on_another_thread(do_nothing, NULL);
    before_all = (struct census){.count = 0};
    census_take(&before_all);
}

static void sleep_ms(int ms)
{
    struct timespec time = {.tv_sec = ms / 1000,
                            .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&time, &time) != 0)
        continue;
}

/* No thread is switched to or from while the main one sleeps. */
static void expect_silence(size_t threads, int ms)
{
    static struct census before, after;

    /* What has just run goes to sleep first; the monitor looks once more. */
    sleep_ms(200);
    census_take(&before);
    sleep_ms(ms);
    census_take(&after);
    EXPECT_EQ(threads, before.count);
    EXPECT_EQ(threads, after.count);
    for (size_t i = 0; i < before.count; i++) {
        EXPECT_EQ(before.threads[i].thread, after.threads[i].thread);
        EXPECT_EQ(before.threads[i].switches, after.threads[i].switches);
    }
}

static int sleep_an_hour(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ms(3600 * 1000));
}

static int nap(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ms(1));
}

/* Goal: no thread of an idle pool wakes up: not at the start, not after work, not
 * with tasks that wait.
 * Method: context switches of each thread during two seconds, ten in the long
 * size. */
TEST(pool_idle_threads_do_not_wake_up)
{
    int ms = (int)test_size(500, 2000, 10000);
    struct bell bell;
    pirn_runtime *rt;

    note_older();
    rt = pool_new(4);
    expect_silence(4, ms);
    bell_init(&bell);
    go(rt, hear_bell, &bell);
    for (int i = 0; i < 50; i++) {
        go(rt, sleep_an_hour, NULL);
        EXPECT_EQ(0, join_and_unref(go_task(rt, nap, NULL)));
    }
    expect_silence(4, ms);
    EXPECT_EQ(51, runtime_end(rt).cancelled);
}

struct waiting {
    pirn_runtime *rt;
    struct bell bells[CREW_MAX];
    pirn_task *task;
};

static void wait_one_way(void *arg, size_t index)
{
    struct waiting *waiting = arg;
    pirn_runtime *outer;
    pirn_task *task;

    switch (index % 3) {
    case 0:
        EXPECT_EQ(0, bell_block_on(waiting->rt, &waiting->bells[index],
                                   PIRN_NEVER));
        break;
    case 1:
        task = go_task(waiting->rt, hear_bell, &waiting->bells[index]);
        EXPECT_EQ(0, join_and_unref(task));
        break;
    default:
        outer = pirn_runtime_enter(waiting->rt);
        EXPECT_EQ(0, hear_bell(&waiting->bells[index]));
        (void)pirn_runtime_enter(outer);
        break;
    }
}

/* Goal: plain threads that wait for things of a pool sleep, also after one of
 * them has left.
 * Method: several in each way; one leaves; count the switches of all. */
TEST(pool_idle_waiters_do_not_wake_each_other)
{
    enum { WAITERS = 9 };
    struct waiting waiting = {.rt = NULL};
    struct crew crew;

    note_older();
    waiting.rt = pool_new(2);
    for (int i = 0; i < WAITERS; i++)
        bell_init(&waiting.bells[i]);
    crew_start(&crew, WAITERS, wait_one_way, &waiting);
    for (int i = 0; i < WAITERS; i++)
        wait_for_tally(&waiting.bells[i].waiting, 1);
    for (int i = 0; i < 3; i++)
        bell_ring(&waiting.bells[i]);
    expect_silence(2 + WAITERS - 3, (int)test_size(300, 1000, 5000));
    for (int i = 3; i < WAITERS; i++)
        bell_ring(&waiting.bells[i]);
    crew_join(&crew);
    runtime_end(waiting.rt);
}

struct ending {
    pirn_runtime *rt;
    struct hog hog;
    pirn_task *task;
    tally joined;
};

static void join_it(void *arg, size_t index)
{
    struct ending *ending = arg;
    int outcome;

    (void)index;
    EXPECT_EQ(0, pirn_task_join(ending->task, PIRN_NEVER, &outcome));
    tally_up(&ending->joined);
}

static int outlast(void *arg)
{
    struct ending *ending = arg;

    pirn_fiber_shield_begin();
    EXPECT_EQ(0, pirn_sleep(pirn_after_ms(1000)));
    pirn_fiber_shield_end();
    tally_up(&ending->hog.holding);
    return 0;
}

static void shut_down(void *arg, size_t index)
{
    struct ending *ending = arg;

    (void)index;
    EXPECT_EQ(0, pirn_runtime_shutdown(ending->rt, pirn_after_ms(RESCUE_MS),
                                       NULL));
}

static uint64_t process_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Goal: nor does anybody spin while a shutdown waits for a task.
 * Method: the task takes a second to clean up; a joiner and the shutdown wait
 * for it; the processor time of the whole process. */
TEST(pool_idle_while_shutdown_waits)
{
    struct ending ending = {.rt = pool_new(2)};
    struct crew joiner, ender;
    uint64_t before;

    ending.task = go_task(ending.rt, outlast, &ending);
    crew_start(&joiner, 1, join_it, &ending);
    sleep_ms(50);
    before = process_cpu_ns();
    crew_start(&ender, 1, shut_down, &ending);
    crew_join(&ender);
    crew_join(&joiner);
    EXPECT_EQ(1, tally_of(&ending.joined));
    EXPECT_LE(process_cpu_ns() - before, 200 * 1000000);
    pirn_task_unref(ending.task);
    pirn_runtime_unref(ending.rt);
}
