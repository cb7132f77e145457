/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_refused.c - a pool for which something cannot be had: a
 * thread, memory, a descriptor.  The call says so, and nothing stays behind.
 */
#include <dirent.h>

#include "engine/pool_fixture.h"
#include "sys/sys.h"

enum { WORKERS = 3 };

/* A world in which the kth call of one kind fails. */
static struct pirn__sys world;
static uint64_t calls;
static uint64_t fails_at;

static bool refuses(void)
{
    return ++calls == fails_at;
}

static int start_or_fail(const char *name, size_t stack_size,
                         void (*fn)(void *arg), void *arg)
{
    return refuses() ? -EAGAIN
                     : pirn__sys_linux.thread_start(name, stack_size, fn, arg);
}

static int eventfd_or_fail(void)
{
    return refuses() ? -EMFILE : pirn__sys_linux.eventfd();
}

static int timerfd_or_fail(void)
{
    return refuses() ? -ENFILE : pirn__sys_linux.timerfd();
}

static int epoll_create_or_fail(void)
{
    return refuses() ? -EMFILE : pirn__sys_linux.epoll_create();
}

static int epoll_add_or_fail(int epoll_fd, int fd, uint32_t events, void *data)
{
    return refuses() ? -ENOSPC
                     : pirn__sys_linux.epoll_add(epoll_fd, fd, events, data);
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    REQUIRE_OR_RETURN(dir != NULL, -1);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* A thread is still there for a moment after it has ended; the engine watches the
 * time. */
static void wait_for_threads(int count)
{
    while (count_entries("/proc/self/task") > count)
        sched_yield();
}

static void do_nothing(void *arg, size_t index)
{
    (void)arg;
    (void)index;
}

/* A sanitizer adds a thread of its own to the first that is started, and one that
 * was joined is still there for a moment. */
static int count_threads(void)
{
    int least;

    on_another_thread(do_nothing, NULL);
    least = count_entries("/proc/self/task");
    for (int i = 0; i < 100; i++) {
        int count = count_entries("/proc/self/task");

        least = count < least ? count : least;
        sched_yield();
    }
    return least;
}

static tally starts, stops;

static void note_start(void *arg, uint32_t worker)
{
    (void)arg;
    (void)worker;
    tally_up(&starts);
}

static void note_stop(void *arg, uint32_t worker)
{
    (void)arg;
    (void)worker;
    tally_up(&stops);
}

static int make(struct meter *meter, pirn_runtime **rt)
{
    const pirn_runtime_options options = {.workers = WORKERS,
                                          .alloc = &meter->alloc,
                                          .on_thread_start = note_start,
                                          .on_thread_stop = note_stop};

    *rt = (pirn_runtime *)(void *)meter;
    return pirn_runtime_new(&options, rt);
}

static void expect_nothing_left(struct meter *meter, int fds, int threads)
{
    EXPECT_EQ(0, tally_of(&meter->pieces));
    EXPECT_EQ(0, tally_of(&meter->dones));
    EXPECT_EQ(fds, count_entries("/proc/self/fd"));
    EXPECT_EQ(tally_of(&starts), tally_of(&stops));
    wait_for_threads(threads);
}

/* Fail the first call, the second, until none fails. */
static void sweep(int error)
{
    int fds = count_entries("/proc/self/fd");
    int threads = count_threads();
    bool failed = true;

    for (fails_at = 1; failed && fails_at < 100; fails_at++) {
        struct meter meter;
        pirn_runtime *rt;
        int rc;

        meter_init(&meter);
        calls = 0;
        rc = make(&meter, &rt);
        failed = calls >= fails_at;
        EXPECT_EQ(failed ? error : 0, rc);
        if (rc == 0) {
            runtime_end(rt);
            wait_for_tally(&meter.dones, 1);
            continue;
        }
        EXPECT_PTR_EQ(NULL, rt);
        expect_nothing_left(&meter, fds, threads);
    }
    EXPECT(!failed);
    EXPECT_GE(fails_at, 3);
    pirn__sys = &pirn__sys_linux;
}

static void begin_world(void)
{
    world = pirn__sys_linux;
    pirn__sys = &world;
}

/* Goal: a pool whose kth thread cannot be started is not made; the threads that
 * were started have ended when the call returns.
 * Method: a copied table of system calls. */
TEST(pool_refused_threads)
{
    begin_world();
    world.thread_start = start_or_fail;
    sweep(-EAGAIN);
}

/* Goal: nor one without descriptors.
 * Method: each kind in turn. */
TEST(pool_refused_descriptors)
{
    begin_world();
    world.eventfd = eventfd_or_fail;
    sweep(-EMFILE);
    begin_world();
    world.timerfd = timerfd_or_fail;
    sweep(-ENFILE);
    begin_world();
    world.epoll_add = epoll_add_or_fail;
    sweep(-ENOSPC);
    begin_world();
    world.epoll_create = epoll_create_or_fail;
    sweep(-EMFILE);
}

/* Goal: nor one without memory.
 * Method: the kth request is refused, or all from there on. */
TEST(pool_refused_memory)
{
    int fds = count_entries("/proc/self/fd");
    int threads = count_threads();

    for (int onwards = 0; onwards < 2; onwards++) {
        bool failed = true;

        for (uint64_t kth = 1; failed && kth < 100; kth++) {
            struct meter meter;
            pirn_runtime *rt;
            int rc;

            meter_init(&meter);
            meter_fail(&meter, kth, onwards != 0);
            rc = make(&meter, &rt);
            failed = meter_has_failed(&meter);
            meter.fails_at = 0;
            EXPECT_EQ(failed ? -ENOMEM : 0, rc);
            if (rc == 0) {
                runtime_end(rt);
                wait_for_tally(&meter.dones, 1);
                continue;
            }
            EXPECT_PTR_EQ(NULL, rt);
            expect_nothing_left(&meter, fds, threads);
        }
        EXPECT(!failed);
    }
}

static int count_run(void *arg)
{
    tally_up(arg);
    return 0;
}

/* Spawn both kinds, some refused. */
static int spawn_some(void *arg)
{
    tally *counts = arg; /* spawned, run */
    struct probe probe = probe_of(step_ready, NULL, NULL);

    for (int i = 0; i < 10; i++) {
        int rc = pirn_go(count_run, &counts[1]);

        EXPECT(rc == 0 || rc == -ENOMEM);
        if (rc == 0)
            tally_up(&counts[0]);
        rc = pirn_spawn(&probe.future, sizeof probe, NULL, NULL);
        EXPECT(rc == 0 || rc == -ENOMEM);
    }
    return 0;
}

/* Goal: a spawn on a pool that finds no memory says so, and nothing is lost.
 * Method: from outside and inside, the kth request refused. */
TEST(pool_refused_memory_for_spawns)
{
    for (int onwards = 0; onwards < 2; onwards++) {
        bool failed = true;

        for (uint64_t kth = 1; failed && kth < 200; kth++) {
            tally counts[2] = {{0}};
            struct meter meter;
            pirn_runtime *rt;
            pirn_task *task;
            int rc;

            meter_init(&meter);
            rt = pool_on(&meter, 2);
            meter_fail(&meter, kth, onwards != 0);
            rc = pirn_go_with(spawn_some, counts,
                              &(pirn_spawn_options){.runtime = rt}, &task);
            EXPECT(rc == 0 || rc == -ENOMEM);
            if (rc == 0)
                EXPECT_EQ(0, join_and_unref(task));
            failed = meter_has_failed(&meter);
            wait_for_tally(&counts[1], tally_of(&counts[0]));
            runtime_end(rt);
            wait_for_tally(&meter.dones, 1);
            EXPECT_EQ(0, tally_of(&meter.pieces));
        }
        EXPECT(!failed);
    }
}
