/* SPDX-License-Identifier: MIT */
/* src/sched/driver_test.c - in which order tasks run, and for how long.
 *
 * Everything runs on one thread by turns of a host, on a paused clock where
 * time matters, so that the order written down is the only one.
 */
#include "sched/runtime.h"

#include "sched/runtime_test.h"

enum {
    BUDGET = 128,       /* units a poll may spend; design.md 4 */
    EVENTS_WITHIN = 300 /* polls after which events must have been looked at */
};

/* Two tasks that do nothing but wake each other, and one that counts. */
struct match {
    pirn_waker sides[2];
    uint64_t rallies;
    uint64_t limit;
    uint64_t counted;
    uint64_t last; /* the rally at which the counter last ran */
    uint64_t longest;
};

struct side {
    struct match *match;
    int index;
};

static enum pirn_poll step_side(struct probe *probe, pirn_cx *cx)
{
    struct side *side = probe->arg;
    struct match *match = side->match;
    pirn_waker *other = &match->sides[1 - side->index];

    pirn_waker_drop(pirn_waker_store(&match->sides[side->index], cx));
    if (match->rallies++ < match->limit) {
        pirn_waker_wake_by_ref(other);
        return PIRN_PENDING;
    }
    pirn_waker_wake(pirn_waker_take(other));
    return PIRN_READY;
}

static enum pirn_poll step_counter(struct probe *probe, pirn_cx *cx)
{
    struct match *match = probe->arg;
    uint64_t gap = match->rallies - match->last;

    match->counted++;
    match->last = match->rallies;
    if (gap > match->longest)
        match->longest = gap;
    if (match->rallies >= match->limit)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: two tasks that wake each other through the LIFO slot do not starve the
 * queue behind it.
 * Method: play 30,000 rallies beside a counting task; between two of its runs
 * there may be three from the slot and a few more around them. */
TEST(driver_ping_pong_does_not_starve_the_queue)
{
    pirn_runtime *rt = runtime_new();
    struct match match = {.limit = 30000};
    struct side sides[2] = {{&match, 0}, {&match, 1}};

    spawn_probe(rt, step_side, &sides[0], NULL);
    spawn_probe(rt, step_side, &sides[1], NULL);
    spawn_probe(rt, step_counter, &match, NULL);
    turn(rt);
    EXPECT_GE(match.rallies, match.limit);
    EXPECT_LE(match.longest, 8);
    EXPECT_GE(match.counted, match.limit / 8);
    for (int i = 0; i < 2; i++)
        pirn_waker_drop(pirn_waker_take(&match.sides[i]));
    runtime_end(rt);
}

/* Spend until there is nothing left; how often that worked. */
static uint64_t spend_all(pirn_cx *cx)
{
    uint64_t spent = 0;

    while (spent < 10 * BUDGET && pirn_coop_spend(cx))
        spent++;
    return spent;
}

struct purse {
    pirn_waker heir;
    uint64_t spent[3];
};

static enum pirn_poll step_heir(struct probe *probe, pirn_cx *cx)
{
    struct purse *purse = probe->arg;

    if (probe->polls == 0) {
        purse->heir = pirn_waker_clone(cx->waker);
        return PIRN_PENDING;
    }
    purse->spent[probe->polls] = spend_all(cx);
    return probe->polls == 2 ? PIRN_READY : PIRN_PENDING;
}

static enum pirn_poll step_spender(struct probe *probe, pirn_cx *cx)
{
    struct purse *purse = probe->arg;

    for (int i = 0; i < 100; i++)
        EXPECT(pirn_coop_spend(cx));
    pirn_waker_wake(pirn_waker_take(&purse->heir));
    return PIRN_READY;
}

/* Goal: a task in the LIFO slot inherits what the budget has left, and begins
 * with a full one when it comes back.
 * Method: the one before spends 100 of 128 and wakes it; a refused unit has
 * arranged the next poll. */
TEST(driver_lifo_task_inherits_the_budget)
{
    pirn_runtime *rt = runtime_new();
    struct purse purse = {.spent = {0}};

    spawn_probe(rt, step_heir, &purse, NULL);
    spawn_probe(rt, step_spender, &purse, NULL);
    turn(rt);
    EXPECT_EQ(BUDGET - 100, purse.spent[1]);
    EXPECT_EQ(BUDGET, purse.spent[2]);
    runtime_end(rt);
}

static enum pirn_poll step_spend(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    return pirn_coop_spend(cx) ? PIRN_READY : PIRN_PENDING;
}

/* Await what is always ready. */
static int await_many(void *arg)
{
    int *left = arg;

    while ((*left)-- > 0) {
        struct probe probe = probe_of(step_spend, NULL, NULL);

        EXPECT_EQ(0, pirn_await(&probe.future, PIRN_NEVER));
    }
    return 0;
}

static enum pirn_poll step_count_while(struct probe *probe, pirn_cx *cx)
{
    int *left = probe->arg;

    probe->outcome++;
    if (*left <= 0)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: a fiber whose operations are always ready lets others run.
 * Method: count the runs of another task while it awaits 12,800 of them. */
TEST(driver_always_ready_operations_use_up_the_budget)
{
    pirn_runtime *rt = runtime_new();
    pirn_runtime_info info;
    pirn_task *counter;
    int left = 100 * BUDGET;

    go(rt, await_many, &left);
    spawn_probe(rt, step_count_while, &left, &counter);
    turn(rt);
    EXPECT_GE(join_and_unref(counter), 99);
    pirn_runtime_get_info(rt, &info);
    EXPECT_GE(info.deferred, 99);
    runtime_end(rt);
}

/* What happened, in order: one letter each. */
struct diary {
    char text[64];
    size_t length;
    pirn_runtime *rt;
};

static void note(struct diary *diary, char letter)
{
    if (diary->length < sizeof diary->text - 1)
        diary->text[diary->length++] = letter;
}

struct writer {
    struct diary *diary;
    char letter;
};

static int write_and_yield(void *arg)
{
    struct writer *writer = arg;

    for (int i = 0; i < 3; i++) {
        note(writer->diary, writer->letter);
        EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

/* Goal: a yield lets every other ready task run once.
 * Method: three fibers write their letter and yield. */
TEST(driver_yield_lets_the_others_run)
{
    pirn_runtime *rt = runtime_new();
    struct diary diary = {.rt = rt};
    struct writer writers[3] = {{&diary, 'a'}, {&diary, 'b'}, {&diary, 'c'}};

    for (int i = 0; i < 3; i++)
        go(rt, write_and_yield, &writers[i]);
    turn(rt);
    EXPECT_STR_EQ("abcabcabc", diary.text);
    runtime_end(rt);
}

static int sleep_and_write(void *arg)
{
    struct writer *writer = arg;

    EXPECT_EQ(0, pirn_sleep(pirn_after_ms(1)));
    note(writer->diary, writer->letter);
    return 0;
}

static int advance_and_yield(void *arg)
{
    struct writer *writer = arg;

    EXPECT_EQ(0, pirn_runtime_clock_advance(writer->diary->rt, 1000000));
    note(writer->diary, writer->letter);
    EXPECT_EQ(0, pirn_yield());
    note(writer->diary, writer->letter);
    return 0;
}

/* Goal: who yielded comes back only after the driver has been served.
 * Method: a fiber makes another one's sleep due and yields; the sleeper must
 * come first. */
TEST(driver_yield_returns_after_due_events)
{
    pirn_runtime *rt = runtime_new();
    struct diary diary = {.rt = rt};
    struct writer sleeper = {&diary, 's'};
    struct writer yielder = {&diary, 'y'};

    EXPECT_EQ(0, pirn_runtime_clock_pause(rt));
    go(rt, sleep_and_write, &sleeper);
    turn(rt);
    go(rt, advance_and_yield, &yielder);
    turn(rt);
    EXPECT_STR_EQ("ysy", diary.text);
    runtime_end(rt);
}

/* A task that is always ready and counts its polls until something happens. */
struct busy {
    pirn_runtime *rt;
    tally happened;
    uint64_t waited;
    void (*trigger)(struct busy *busy);
};

static enum pirn_poll step_busy(struct probe *probe, pirn_cx *cx)
{
    struct busy *busy = probe->arg;

    if (probe->polls == 10)
        busy->trigger(busy);
    if (probe->polls >= 10 && tally_of(&busy->happened) > 0)
        return PIRN_READY;
    if (++busy->waited > 100 * EVENTS_WITHIN)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

static enum pirn_poll step_tell(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    tally_up(probe->arg);
    return PIRN_READY;
}

static void spawn_teller(void *arg, size_t index)
{
    struct busy *busy = arg;

    (void)index;
    spawn_probe(busy->rt, step_tell, &busy->happened, NULL);
}

static void trigger_foreign_spawn(struct busy *busy)
{
    on_another_thread(spawn_teller, busy);
}

/* Goal: the inbox is served although the runtime's own tasks never pause.
 * Method: another thread spawns while a task keeps waking itself. */
TEST(driver_busy_tasks_do_not_starve_the_inbox)
{
    pirn_runtime *rt = runtime_new();
    struct busy busy = {.rt = rt, .trigger = trigger_foreign_spawn};

    spawn_probe(rt, step_busy, &busy, NULL);
    turn(rt);
    EXPECT_EQ(1, tally_of(&busy.happened));
    EXPECT_LE(busy.waited, EVENTS_WITHIN);
    runtime_end(rt);
}

static int sleep_and_tell(void *arg)
{
    EXPECT_EQ(0, pirn_sleep(pirn_after_ms(1)));
    tally_up(arg);
    return 0;
}

static void trigger_time(struct busy *busy)
{
    EXPECT_EQ(0, pirn_runtime_clock_advance(busy->rt, 1000000));
}

/* Goal: timers fire although tasks never pause.
 * Method: make a sleep due while a task keeps waking itself. */
TEST(driver_busy_tasks_do_not_starve_timers)
{
    pirn_runtime *rt = runtime_new();
    struct busy busy = {.rt = rt, .trigger = trigger_time};

    EXPECT_EQ(0, pirn_runtime_clock_pause(rt));
    go(rt, sleep_and_tell, &busy.happened);
    turn(rt);
    spawn_probe(rt, step_busy, &busy, NULL);
    turn(rt);
    EXPECT_EQ(1, tally_of(&busy.happened));
    EXPECT_LE(busy.waited, EVENTS_WITHIN);
    runtime_end(rt);
}

static void wake_ten_times(void *arg, size_t index)
{
    (void)index;
    for (int i = 0; i < 10; i++)
        pirn_waker_wake_by_ref(arg);
}

static enum pirn_poll step_wake_storm(struct probe *probe, pirn_cx *cx)
{
    pirn_waker waker;

    tally_up(probe->arg);
    if (probe->polls > 0)
        return PIRN_PENDING;
    waker = pirn_waker_clone(cx->waker);
    wake_ten_times(&waker, 0);
    on_another_thread(wake_ten_times, &waker);
    pirn_waker_drop(waker);
    return PIRN_PENDING;
}

/* Goal: any number of wakes during a poll make exactly one further run.
 * Method: twenty, ten of them from another thread. */
TEST(driver_wakes_during_a_poll_make_one_run)
{
    pirn_runtime *rt = runtime_new();
    tally polls = {0};
    pirn_task *task;

    spawn_probe(rt, step_wake_storm, &polls, &task);
    EXPECT_EQ(2, turn(rt));
    EXPECT_EQ(2, tally_of(&polls));
    pirn_task_cancel(task);
    turn(rt);
    EXPECT_EQ(-ECANCELED, join_and_unref(task));
    runtime_end(rt);
}

static void call_driver(void *arg, size_t index)
{
    pirn_runtime *rt = arg;

    (void)index;
    pirn__driver_wake(&rt->home);
}

/* Goal: a driver that is called while it is awake does not go to sleep next,
 * although it finds nothing to do: the caller may have changed something that
 * only the driver's own caller looks at.
 * Method: call it between two turns, of which the second would sleep for ever;
 * the call is spent then, and one by the driver itself is none. */
TEST(driver_called_while_awake_does_not_sleep)
{
    pirn_runtime *rt = runtime_new();
    struct pirn__home *outer;
    pirn_runtime_info info;

    pirn__driver_enter(rt, &outer);
    EXPECT_EQ(0, pirn__driver_turn(rt, PIRN_EXPIRED));
    on_another_thread(call_driver, rt);
    EXPECT_EQ(0, pirn__driver_turn(rt, PIRN_NEVER));
    call_driver(rt, 0);
    EXPECT_EQ(0, pirn__driver_turn(rt, pirn_after_us(50)));
    pirn__driver_leave(rt, outer);
    pirn_runtime_get_info(rt, &info);
    EXPECT_EQ(0, info.wakes);
    runtime_end(rt);
}

static int yield_once(void *arg)
{
    (void)arg;
    return pirn_yield();
}

/* Goal: what get_info says is what happened.
 * Method: count three fibers that yield once. */
TEST(driver_counters_tell_what_happened)
{
    pirn_runtime *rt = runtime_new();
    pirn_runtime_info info;
    int polls;

    for (int i = 0; i < 3; i++)
        go(rt, yield_once, NULL);
    pirn_runtime_get_info(rt, &info);
    EXPECT_EQ(3, info.tasks);
    EXPECT_EQ(3, info.spawned);
    EXPECT_EQ(0, info.polls);
    polls = turn(rt);
    EXPECT_EQ(6, polls);
    pirn_runtime_get_info(rt, &info);
    EXPECT_EQ(0, info.tasks);
    EXPECT_EQ(3, info.spawned);
    EXPECT_EQ(polls, info.polls);
    EXPECT_EQ(3, info.deferred);
    EXPECT_GE(info.turns, 2);
    EXPECT_STR_EQ("epoll", info.backend);
    runtime_end(rt);
}

struct reading {
    pirn_runtime *rt;
    tally ended;
};

static void read_info(void *arg, size_t index)
{
    struct reading *reading = arg;
    uint64_t before = 0;

    (void)index;
    while (tally_of(&reading->ended) == 0) {
        pirn_runtime_info info;

        pirn_runtime_get_info(reading->rt, &info);
        EXPECT_GE(info.polls, before);
        before = info.polls;
    }
}

/* Goal: the counters may be read on any thread while the runtime is driven.
 * Method: read all the time; the thread sanitizer looks on. */
TEST(driver_counters_may_be_read_by_another_thread)
{
    pirn_runtime *rt = runtime_new();
    struct reading reading = {.rt = rt};
    struct crew crew;
    int left = 20 * BUDGET;

    crew_start(&crew, 1, read_info, &reading);
    go(rt, await_many, &left);
    turn(rt);
    tally_up(&reading.ended);
    crew_join(&crew);
    runtime_end(rt);
}
