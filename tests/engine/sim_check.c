/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_check.c - what must hold in every simulated run.
 *
 * A checker sees facts while a story runs and is asked at the end.  It knows
 * nothing of the story, nor of the other checkers.
 */
#include <stdlib.h>

#include "engine/sim_internal.h"

struct checker {
    const char *name;
    void (*reset)(void);
    void (*see)(enum sim_fact_kind kind, uint64_t number);
    void (*end)(void); /* may be NULL */
};

/* No task lost: each that was spawned has ended, once. */

enum { TASKS = 4096 };

static struct {
    uint64_t ids[TASKS]; /* alive */
    size_t count;
    bool aborted; /* shutdown has said that it left some behind */
} tasks;

static void tasks_reset(void)
{
    tasks.count = 0;
    tasks.aborted = false;
}

static void task_ended(uint64_t id)
{
    for (size_t i = 0; i < tasks.count; i++) {
        if (tasks.ids[i] == id) {
            tasks.ids[i] = tasks.ids[--tasks.count];
            return;
        }
    }
    sim_fail("tasks", "a task has ended that was not alive");
}

static void tasks_see(enum sim_fact_kind kind, uint64_t number)
{
    if (kind == SIM_FACT_TASK_SPAWNED && tasks.count < TASKS)
        tasks.ids[tasks.count++] = number;
    else if (kind == SIM_FACT_TASK_ENDED)
        task_ended(number);
    else if (kind == SIM_FACT_ABORTED)
        tasks.aborted = true;
}

static void tasks_end(void)
{
    if (tasks.count > 0 && !tasks.aborted)
        sim_fail("tasks", "%zu tasks are lost", tasks.count);
}

/* No future polled twice at once. */

enum { WATCHES = 8192 };

static struct {
    unsigned char inside[WATCHES];
} polls;

static void polls_reset(void)
{
    memset(&polls, 0, sizeof polls);
}

static void polls_see(enum sim_fact_kind kind, uint64_t number)
{
    if (kind == SIM_FACT_POLL_BEGUN && polls.inside[number % WATCHES]++ != 0)
        sim_fail("polls", "a future is polled twice at once");
    else if (kind == SIM_FACT_POLL_ENDED)
        polls.inside[number % WATCHES]--;
}

/* No wake lost: a future that was woken is polled, or dropped, before all have
 * been idle for long.  A nap of the workers may come between, and late ends of
 * waits. */

enum { WOKEN = 256, PATIENCE_NS = 30 * 1000 * 1000 };

static struct {
    uint64_t numbers[WOKEN];
    uint64_t since_ns[WOKEN]; /* idle time */
    size_t count;
    uint64_t idle_ns;
} wakes;

static void wakes_reset(void)
{
    wakes.count = 0;
    wakes.idle_ns = 0;
}

static void wakes_forget(uint64_t number)
{
    for (size_t i = 0; i < wakes.count; i++) {
        if (wakes.numbers[i] != number)
            continue;
        wakes.count--;
        wakes.numbers[i] = wakes.numbers[wakes.count];
        wakes.since_ns[i] = wakes.since_ns[wakes.count];
        return;
    }
}

static void wakes_note(uint64_t number)
{
    for (size_t i = 0; i < wakes.count; i++) {
        if (wakes.numbers[i] == number)
            return;
    }
    if (wakes.count == WOKEN)
        return;
    wakes.numbers[wakes.count] = number;
    wakes.since_ns[wakes.count++] = wakes.idle_ns;
}

/* What was woken before this idle time began. */
static void wakes_idle(uint64_t ns)
{
    for (size_t i = 0; i < wakes.count; i++) {
        if (wakes.idle_ns + ns - wakes.since_ns[i] > PATIENCE_NS)
            sim_fail("wakes", "future %llu was woken and is not polled while "
                              "all are idle",
                     (unsigned long long)wakes.numbers[i]);
    }
    wakes.idle_ns += ns;
}

static void wakes_see(enum sim_fact_kind kind, uint64_t number)
{
    if (kind == SIM_FACT_WOKEN)
        wakes_note(number);
    else if (kind == SIM_FACT_POLL_BEGUN || kind == SIM_FACT_FUTURE_GONE)
        wakes_forget(number);
    else if (kind == SIM_FACT_IDLE)
        wakes_idle(number);
}

/* Every waker given back. */

static struct {
    int64_t out;
} wakers;

static void wakers_reset(void)
{
    wakers.out = 0;
}

static void wakers_see(enum sim_fact_kind kind, uint64_t number)
{
    (void)number;
    if (kind == SIM_FACT_WAKER_CLONED)
        wakers.out++;
    else if (kind == SIM_FACT_WAKER_GONE && --wakers.out < 0)
        sim_fail("wakers", "a waker is given back twice");
}

static void wakers_end(void)
{
    if (wakers.out > 0)
        sim_fail("wakers", "%lld wakers are not given back",
                 (long long)wakers.out);
}

/* No timer early. */

static void timers_reset(void)
{
}

static void timers_see(enum sim_fact_kind kind, uint64_t number)
{
    if (kind == SIM_FACT_TIME_CAME && sim_now_ns() < number)
        sim_fail("timers", "a timer has fired %llu ns early",
                 (unsigned long long)(number - sim_now_ns()));
}

/* Every descriptor closed. */

static struct {
    int64_t open;
} descriptors;

static void descriptors_reset(void)
{
    descriptors.open = 0;
}

static void descriptors_see(enum sim_fact_kind kind, uint64_t number)
{
    (void)number;
    if (kind == SIM_FACT_FD_OPENED)
        descriptors.open++;
    else if (kind == SIM_FACT_FD_CLOSED)
        descriptors.open--;
}

static void descriptors_end(void)
{
    if (descriptors.open != 0)
        sim_fail("descriptors", "%lld descriptors are still open",
                 (long long)descriptors.open);
}

/* All memory given back; unless a fiber had to be left behind with its
 * stack. */

static struct {
    int64_t bytes;
    bool aborted;
} memory;

static void memory_reset(void)
{
    memory.bytes = 0;
    memory.aborted = false;
}

static void memory_see(enum sim_fact_kind kind, uint64_t number)
{
    if (kind == SIM_FACT_MEMORY_TAKEN)
        memory.bytes += (int64_t)number;
    else if (kind == SIM_FACT_MEMORY_GIVEN)
        memory.bytes -= (int64_t)number;
    else if (kind == SIM_FACT_ABORTED)
        memory.aborted = true;
}

static void memory_end(void)
{
    if (memory.bytes != 0 && !memory.aborted)
        sim_fail("memory", "%lld bytes are not given back",
                 (long long)memory.bytes);
}

static const struct checker checkers[] = {
    {"tasks", tasks_reset, tasks_see, tasks_end},
    {"polls", polls_reset, polls_see, NULL},
    {"wakes", wakes_reset, wakes_see, NULL},
    {"wakers", wakers_reset, wakers_see, wakers_end},
    {"timers", timers_reset, timers_see, NULL},
    {"descriptors", descriptors_reset, descriptors_see, descriptors_end},
    {"memory", memory_reset, memory_see, memory_end},
};

enum { CHECKERS = sizeof checkers / sizeof checkers[0] };

void sim_see(enum sim_fact_kind kind, uint64_t number)
{
    for (size_t i = 0; i < CHECKERS; i++)
        checkers[i].see(kind, number);
}

void sim_checkers_reset(void)
{
    for (size_t i = 0; i < CHECKERS; i++)
        checkers[i].reset();
}

void sim_checkers_end(void)
{
    for (size_t i = 0; i < CHECKERS; i++) {
        if (checkers[i].end != NULL)
            checkers[i].end();
    }
}
