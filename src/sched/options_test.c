/* SPDX-License-Identifier: MIT */
/* src/sched/options_test.c - what is refused, what is filled in and from where,
 * and that a runtime does what its options say.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "sched/options.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sched/runtime_test.h"

static const char *const variables[] = {
    "PIRN_STACK_SIZE", "PIRN_BLOCKING_THREADS", "PIRN_WORKERS",
    "PIRN_SEED",       "PIRN_SHARED_INTERVAL",  "PIRN_EVENT_INTERVAL",
    "PIRN_LIFO",       "PIRN_HISTOGRAMS",       "PIRN_POOL",
};

static void clear_environment(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        EXPECT_EQ(0, unsetenv(variables[i]));
}

static void set_variable(const char *name, const char *value)
{
    EXPECT_EQ(0, setenv(name, value, 1));
}

/* Both calls refuse, and `field` is to blame. */
static void expect_refused(const pirn_runtime_options *options,
                           const char *field)
{
    pirn_runtime *rt = (pirn_runtime *)(void *)&rt;
    const char *found = NULL;

    EXPECT_EQ(-EINVAL, pirn_runtime_check(options, &found));
    EXPECT_STR_EQ(field, found != NULL ? found : "nothing");
    EXPECT_EQ(-EINVAL, pirn_runtime_check(options, NULL));
    EXPECT_EQ(-EINVAL, pirn_runtime_new(options, &rt));
    EXPECT_PTR_EQ(NULL, rt);
}

static void expect_accepted(const pirn_runtime_options *options)
{
    const char *found = "something";

    EXPECT_EQ(0, pirn_runtime_check(options, &found));
    EXPECT_PTR_EQ(NULL, found);
    EXPECT_EQ(0, pirn_runtime_check(options, NULL));
}

#define REFUSED(field, ...) \
    expect_refused(&(pirn_runtime_options){__VA_ARGS__}, field)
#define ACCEPTED(...) expect_accepted(&(pirn_runtime_options){__VA_ARGS__})

static const char *resolved_source(const pirn_runtime_options *given,
                                   pirn_runtime_options *set)
{
    struct pirn__options options;

    EXPECT_EQ(0, pirn__options_resolve(given, &options, NULL));
    *set = options.set;
    return options.workers_source;
}

/* Goal: each option out of its range is refused by name, and what is just in is
 * not.
 * Method: both sides of each end. */
TEST(options_out_of_range_are_named)
{
    static const pirn_alloc nothing = {.ctx = NULL};

    clear_environment();
    expect_accepted(NULL);
    REFUSED("alloc", .alloc = &nothing);
    REFUSED("stack_size_bytes", .stack_size_bytes = 16 * 1024 - 1);
    ACCEPTED(.stack_size_bytes = 16 * 1024);
    ACCEPTED(.stack_size_bytes = (size_t)1 << 30);
    REFUSED("stack_size_bytes", .stack_size_bytes = ((size_t)1 << 30) + 1);
    ACCEPTED(.blocking_threads = 4096);
    REFUSED("blocking_threads", .blocking_threads = 4097);
    ACCEPTED(.workers = 512);
    ACCEPTED(.workers = PIRN_WORKERS_AUTO);
    REFUSED("workers", .workers = 513);
    REFUSED("workers", .workers = UINT32_MAX);
    ACCEPTED(.pool = PIRN_POOL_COMPUTATIONAL);
    ACCEPTED(.workers = 2, .pool = PIRN_POOL_STEALABLE);
    REFUSED("pool", .workers = 2, .pool = (enum pirn_pool_kind)2);
    REFUSED("pool", .pool = (enum pirn_pool_kind)-1);
    REFUSED("worker_name", .worker_name = "");
    ACCEPTED(.worker_name = "x");
    ACCEPTED(.worker_name = "eleven-char");
    REFUSED("worker_name", .worker_name = "twelve-chars");
    REFUSED("worker_stack_size_bytes", .worker_stack_size_bytes = 65535);
    ACCEPTED(.worker_stack_size_bytes = 65536);
    ACCEPTED(.worker_stack_size_bytes = (size_t)1 << 30);
    REFUSED("worker_stack_size_bytes",
            .worker_stack_size_bytes = ((size_t)1 << 30) + 1);
    ACCEPTED(.shared_interval = 1000000, .event_interval = 1000000);
    ACCEPTED(.shared_interval = 1, .event_interval = 1);
    REFUSED("shared_interval", .shared_interval = 1000001);
    REFUSED("event_interval", .event_interval = 1000001);
}

/* Goal: a wrong value in the environment is refused and names the variable.
 * Method: one variable at a time, each with values that it cannot have. */
TEST(options_wrong_variable_is_named)
{
    static const pirn_runtime_options many = {.workers = PIRN_WORKERS_AUTO};
    static const char *const wrong[][2] = {
        {"PIRN_STACK_SIZE", "16383"},    {"PIRN_STACK_SIZE", "64K"},
        {"PIRN_BLOCKING_THREADS", "0"},  {"PIRN_BLOCKING_THREADS", "4097"},
        {"PIRN_WORKERS", "0"},           {"PIRN_WORKERS", "513"},
        {"PIRN_WORKERS", "auto"},        {"PIRN_WORKERS", "-1"},
        {"PIRN_SEED", "one"},            {"PIRN_SEED", "0x"},
        {"PIRN_SHARED_INTERVAL", "0"},   {"PIRN_SHARED_INTERVAL", "1000001"},
        {"PIRN_EVENT_INTERVAL", "0"},    {"PIRN_EVENT_INTERVAL", "1 "},
        {"PIRN_LIFO", "2"},              {"PIRN_LIFO", "off"},
        {"PIRN_HISTOGRAMS", "yes"},      {"PIRN_POOL", "1"},
        {"PIRN_POOL", "Stealable"},      {"PIRN_POOL", "computational "},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        clear_environment();
        set_variable(wrong[i][0], wrong[i][1]);
        expect_refused(&many, wrong[i][0]);
    }
    clear_environment();
    expect_accepted(&many);
}

/* Goal: without options and variables, the documented defaults.
 * Method: resolve nothing. */
TEST(options_have_their_defaults)
{
    pirn_runtime_options set;

    clear_environment();
    EXPECT_STR_EQ("", resolved_source(NULL, &set));
    EXPECT_EQ(64 * 1024, set.stack_size_bytes);
    EXPECT_EQ(64, set.blocking_threads);
    EXPECT_EQ(1024, set.blocking_queue);
    EXPECT_EQ(0, set.workers);
    EXPECT_STR_EQ("pirn-worker", set.worker_name);
    EXPECT_EQ(0, set.worker_stack_size_bytes);
    EXPECT_EQ(31, set.shared_interval);
    EXPECT_EQ(128, set.event_interval);
    EXPECT(!set.lifo_off);
    EXPECT(!set.histograms);
    EXPECT_EQ(PIRN_POOL_STEALABLE, set.pool);
    EXPECT_STR_EQ("option",
                  resolved_source(&(pirn_runtime_options){.workers = 3}, &set));
    EXPECT_EQ(3, set.workers);
    EXPECT_EQ(61, set.shared_interval);
}

static void set_all_variables(void)
{
    set_variable("PIRN_STACK_SIZE", "131072");
    set_variable("PIRN_BLOCKING_THREADS", "7");
    set_variable("PIRN_WORKERS", "5");
    set_variable("PIRN_SEED", "18446744073709551615");
    set_variable("PIRN_SHARED_INTERVAL", "11");
    set_variable("PIRN_EVENT_INTERVAL", "13");
    set_variable("PIRN_LIFO", "0");
    set_variable("PIRN_HISTOGRAMS", "1");
    set_variable("PIRN_POOL", "computational");
}

/* Goal: variables replace what was left at its default; without PIRN_WORKERS_AUTO
 * theirs is not a default.
 * Method: all of them. */
TEST(options_variables_replace_defaults)
{
    pirn_runtime_options set;

    clear_environment();
    set_all_variables();
    EXPECT_STR_EQ("environment",
                  resolved_source(
                      &(pirn_runtime_options){.workers = PIRN_WORKERS_AUTO},
                      &set));
    EXPECT_EQ(131072, set.stack_size_bytes);
    EXPECT_EQ(7, set.blocking_threads);
    EXPECT_EQ(5, set.workers);
    EXPECT(set.seed == UINT64_MAX);
    EXPECT_EQ(11, set.shared_interval);
    EXPECT_EQ(13, set.event_interval);
    EXPECT(set.lifo_off);
    EXPECT(set.histograms);
    EXPECT_EQ(PIRN_POOL_COMPUTATIONAL, set.pool);
    EXPECT_STR_EQ("", resolved_source(NULL, &set));
    EXPECT_EQ(0, set.workers);
    EXPECT_EQ(PIRN_POOL_STEALABLE, set.pool);
    set_variable("PIRN_LIFO", "1");
    set_variable("PIRN_HISTOGRAMS", "0");
    (void)resolved_source(NULL, &set);
    EXPECT(!set.lifo_off);
    EXPECT(!set.histograms);
    clear_environment();
}

/* Goal: what the program chose stands, whatever the variables say, right or
 * wrong; an empty one says nothing.
 * Method: everything chosen, against good and against bad variables. */
TEST(options_choice_beats_the_environment)
{
    static const pirn_runtime_options chosen = {
        .stack_size_bytes = 32 * 1024,
        .blocking_threads = 2,
        .workers = 2,
        .seed = 3,
        .shared_interval = 4,
        .event_interval = 5,
        .lifo_off = true,
        .histograms = true,
        .pool = PIRN_POOL_COMPUTATIONAL,
    };
    pirn_runtime_options set;

    clear_environment();
    set_all_variables();
    set_variable("PIRN_LIFO", "1");
    set_variable("PIRN_HISTOGRAMS", "0");
    EXPECT_STR_EQ("option", resolved_source(&chosen, &set));
    EXPECT_EQ(32 * 1024, set.stack_size_bytes);
    EXPECT_EQ(2, set.blocking_threads);
    EXPECT_EQ(2, set.workers);
    EXPECT_EQ(3, set.seed);
    EXPECT_EQ(4, set.shared_interval);
    EXPECT_EQ(5, set.event_interval);
    EXPECT(set.lifo_off);
    EXPECT(set.histograms);
    EXPECT_EQ(PIRN_POOL_COMPUTATIONAL, set.pool);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        set_variable(variables[i], "nonsense");
    expect_accepted(&chosen);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        set_variable(variables[i], "");
    expect_accepted(NULL);
    clear_environment();
}

/* Goal: the number of workers and where it is from can be read.
 * Method: by option, by variable, by the system, and without workers. */
TEST(options_source_of_the_workers_is_shown)
{
    static const struct {
        uint32_t workers;
        const char *variable;
        const char *source; /* NULL: one of the system's */
        uint32_t count;
    } cases[] = {
        {0, "3", "", 0},
        {2, "3", "option", 2},
        {PIRN_WORKERS_AUTO, "3", "environment", 3},
        {PIRN_WORKERS_AUTO, "", NULL, 0},
    };

    clear_environment();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pirn_runtime_options options = {.workers = cases[i].workers};
        pirn_runtime_info info;
        pirn_runtime *rt;

        set_variable("PIRN_WORKERS", cases[i].variable);
        REQUIRE(pirn_runtime_new(&options, &rt) == 0);
        pirn_runtime_get_info(rt, &info);
        if (cases[i].source != NULL) {
            EXPECT_STR_EQ(cases[i].source, info.workers_source);
            EXPECT_EQ(cases[i].count, info.workers);
        } else {
            EXPECT(strcmp(info.workers_source, "affinity") == 0 ||
                   strncmp(info.workers_source, "cgroup v", 8) == 0);
            EXPECT_GE(info.workers, 1);
        }
        runtime_end(rt);
    }
    clear_environment();
}

/* Goal: a computational pool has a worker for each processor unless told
 * otherwise, and a runtime without workers gets none by a variable.
 * Method: what is made, with the pool by option and by variable. */
TEST(options_pool_and_its_workers)
{
    static const struct {
        pirn_runtime_options options;
        const char *variable;
        const char *pool;
        uint32_t workers; /* 0: as the variable PIRN_WORKERS says */
    } cases[] = {
        {{.pool = PIRN_POOL_COMPUTATIONAL}, "", "computational", 0},
        {{.pool = PIRN_POOL_COMPUTATIONAL, .workers = 2}, "stealable",
         "computational", 2},
        {{.workers = PIRN_WORKERS_AUTO}, "computational", "computational", 0},
        {{.workers = 2}, "stealable", "stealable", 2},
        {{.workers = 2}, "", "stealable", 2},
    };

    clear_environment();
    set_variable("PIRN_WORKERS", "3");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pirn_runtime_info info;
        pirn_runtime *rt;

        set_variable("PIRN_POOL", cases[i].variable);
        REQUIRE(pirn_runtime_new(&cases[i].options, &rt) == 0);
        pirn_runtime_get_info(rt, &info);
        EXPECT_STR_EQ(cases[i].pool, info.pool);
        EXPECT_EQ(cases[i].workers == 0 ? 3 : cases[i].workers, info.workers);
        EXPECT_STR_EQ(cases[i].workers == 0 ? "environment" : "option",
                      info.workers_source);
        runtime_end(rt);
    }
    set_variable("PIRN_POOL", "nonsense");
    expect_accepted(NULL);
    clear_environment();
}

/* What the threads of a pool say of themselves. */
struct muster {
    char names[4][16];
    size_t stack_sizes[4];
    tally started;
    tally stopped;
};

static void note_thread(void *arg, uint32_t worker)
{
    struct muster *muster = arg;
    pthread_attr_t attributes;

    pthread_getname_np(pthread_self(), muster->names[worker],
                       sizeof muster->names[worker]);
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &muster->stack_sizes[worker]);
        pthread_attr_destroy(&attributes);
    }
    tally_up(&muster->started);
}

static void note_stop(void *arg, uint32_t worker)
{
    struct muster *muster = arg;

    (void)worker;
    tally_up(&muster->stopped);
}

/* Goal: the threads of the workers have the name and the stack that were asked
 * for; the name may go once the runtime is made.
 * Method: ask them in the start hook.  The stack is larger than usual: the C
 * library gives an old one to whoever asks for less. */
TEST(options_name_and_stack_of_the_workers)
{
    struct muster muster = {.started = {0}};
    char name[] = "spinner";
    const pirn_runtime_options options = {
        .workers = 2,
        .worker_name = name,
        .worker_stack_size_bytes = 24 << 20,
        .on_thread_start = note_thread,
        .on_thread_stop = note_stop,
        .hook_arg = &muster,
    };
    pirn_runtime *rt;

    clear_environment();
    REQUIRE(pirn_runtime_new(&options, &rt) == 0);
    memset(name, 'x', sizeof name - 1);
    wait_for_tally(&muster.started, 2);
    runtime_end(rt);
    EXPECT_EQ(2, tally_of(&muster.stopped));
    for (uint32_t i = 0; i < 2; i++) {
        char expected[16];

        (void)snprintf(expected, sizeof expected, "spinner-%u", i);
        EXPECT_STR_EQ(expected, muster.names[i]);
        EXPECT_GE(muster.stack_sizes[i], 24 << 20);
        EXPECT_LE(muster.stack_sizes[i], 25 << 20);
    }
}

/* The order in which tasks run. */
struct order {
    char trace[16];
    size_t traced;
    pirn_waker sleeper;
};

static enum pirn_poll step_sleeper(struct probe *probe, pirn_cx *cx)
{
    struct order *order = probe->arg;

    if (probe->polls == 0) {
        order->sleeper = pirn_waker_clone(cx->waker);
        return PIRN_PENDING;
    }
    order->trace[order->traced++] = 's';
    return PIRN_READY;
}

static enum pirn_poll step_wake_sleeper(struct probe *probe, pirn_cx *cx)
{
    struct order *order = probe->arg;

    (void)cx;
    pirn_waker_wake(pirn_waker_take(&order->sleeper));
    order->trace[order->traced++] = 'w';
    return PIRN_READY;
}

static enum pirn_poll step_other(struct probe *probe, pirn_cx *cx)
{
    struct order *order = probe->arg;

    (void)cx;
    order->trace[order->traced++] = 'o';
    return PIRN_READY;
}

/* The order in which a task that wakes another, a third one and the woken one
 * run. */
static void run_order(bool lifo_off, struct order *order)
{
    pirn_runtime *rt;

    *order = (struct order){.traced = 0};
    REQUIRE(pirn_runtime_new(&(pirn_runtime_options){.lifo_off = lifo_off},
                             &rt) == 0);
    spawn_probe(rt, step_sleeper, order, NULL);
    turn(rt);
    spawn_probe(rt, step_wake_sleeper, order, NULL);
    spawn_probe(rt, step_other, order, NULL);
    turn(rt);
    runtime_end(rt);
}

/* Goal: without the LIFO slot a woken task waits in line.
 * Method: the same three tasks with and without it. */
TEST(options_lifo_off_keeps_the_line)
{
    struct order order;

    clear_environment();
    run_order(false, &order);
    EXPECT_STR_EQ("wso", order.trace);
    run_order(true, &order);
    EXPECT_STR_EQ("wos", order.trace);
    set_variable("PIRN_LIFO", "0");
    run_order(false, &order);
    EXPECT_STR_EQ("wos", order.trace);
    clear_environment();
}

/* A task that never lets the driver rest, and what comes from outside. */
struct crowd {
    pirn_runtime *rt;
    uint64_t polls;
    uint64_t seen_at; /* how many polls had been made when the other ran */
};

static enum pirn_poll step_newcomer(struct probe *probe, pirn_cx *cx)
{
    struct crowd *crowd = probe->arg;

    (void)cx;
    crowd->seen_at = crowd->polls;
    return PIRN_READY;
}

static void spawn_newcomer(void *arg, size_t index)
{
    struct crowd *crowd = arg;

    (void)index;
    spawn_probe(crowd->rt, step_newcomer, crowd, NULL);
}

static enum pirn_poll step_crowd(struct probe *probe, pirn_cx *cx)
{
    struct crowd *crowd = probe->arg;

    if (++crowd->polls == 1)
        on_another_thread(spawn_newcomer, crowd);
    if (crowd->seen_at != 0)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: the shared interval is how long what other threads put may wait.
 * Method: without workers, so that all polls are counted: one task that is
 * always ready, and one that another thread spawns during its first poll. */
TEST(options_shared_interval_bounds_the_wait)
{
    static const uint32_t intervals[] = {1, 2, 7, 100};

    clear_environment();
    for (size_t i = 0; i < sizeof intervals / sizeof intervals[0]; i++) {
        struct crowd crowd = {.polls = 0};
        const pirn_runtime_options options = {.shared_interval = intervals[i]};

        REQUIRE(pirn_runtime_new(&options, &crowd.rt) == 0);
        spawn_probe(crowd.rt, step_crowd, &crowd, NULL);
        turn(crowd.rt);
        EXPECT_GE(crowd.seen_at + 2, intervals[i]);
        EXPECT_LE(crowd.seen_at, intervals[i] + 1);
        runtime_end(crowd.rt);
    }
}

static enum pirn_poll step_count_down(struct probe *probe, pirn_cx *cx)
{
    if (probe->polls == 99)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: the event interval is how many polls there are between two looks.
 * Method: a hundred polls of one task; how often the driver looked. */
TEST(options_event_interval_bounds_the_polls)
{
    static const uint32_t intervals[] = {1, 10, 100};

    clear_environment();
    for (size_t i = 0; i < sizeof intervals / sizeof intervals[0]; i++) {
        const pirn_runtime_options options = {.event_interval = intervals[i]};
        pirn_runtime_info info;
        pirn_runtime *rt;

        REQUIRE(pirn_runtime_new(&options, &rt) == 0);
        spawn_probe(rt, step_count_down, NULL, NULL);
        EXPECT_EQ(100, turn(rt));
        pirn_runtime_get_info(rt, &info);
        EXPECT_GE(info.turns, 100 / intervals[i]);
        EXPECT_LE(info.turns, 100 / intervals[i] + 1);
        runtime_end(rt);
    }
}
