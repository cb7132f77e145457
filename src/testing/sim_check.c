/* SPDX-License-Identifier: MIT */
/* src/testing/sim_check.c - what must hold in every simulated run.
 *
 * A checker sees facts while a program runs and is asked at the end.  It knows
 * nothing of the program, nor of the other checkers.  Those of the user come
 * last.
 */
#include "testing/sim.h"

#include <errno.h>

struct checker {
    const char *name;
    void (*see)(enum pirn_sim_fact kind, uint64_t number);
    void (*end)(void); /* may be NULL */
};

/* Longest that a future which was woken is not polled while all are idle.  A nap
 * of the workers may come between, and late ends of waits. */
enum { WOKEN = 256, PATIENCE_NS = 30 * 1000 * 1000 };

struct numbers {
    uint64_t *items;
    size_t count, room;
};

static struct {
    struct {
        struct numbers alive;
        bool aborted; /* shutdown has said that it left some behind */
    } tasks;
    struct numbers polls; /* that are under way */
    struct {
        uint64_t numbers[WOKEN];
        uint64_t since_ns[WOKEN]; /* idle time */
        size_t count;
        uint64_t idle_ns;
    } wakes;
    int64_t wakers;      /* out */
    int64_t descriptors; /* open */
    struct {
        int64_t bytes;
        bool aborted;
    } memory;
} *seen;

/* The user's, and which of them is checking. */
static const pirn_sim_checker *users;
static size_t user_count;
static const char *speaker;

static void add(struct numbers *numbers, uint64_t number)
{
    if (numbers->count == numbers->room)
        numbers->items = pirn__sim_grow(numbers->items, &numbers->room,
                                        sizeof *numbers->items);
    numbers->items[numbers->count++] = number;
}

/* The newest first; false if it is not there. */
static bool take_out(struct numbers *numbers, uint64_t number)
{
    for (size_t i = numbers->count; i-- > 0;) {
        if (numbers->items[i] != number)
            continue;
        numbers->items[i] = numbers->items[--numbers->count];
        return true;
    }
    return false;
}

static void free_numbers(struct numbers *numbers)
{
    pirn__sim_give(numbers->items, numbers->room * sizeof *numbers->items);
}

/* No task lost: each that was spawned has ended, once. */

static void tasks_see(enum pirn_sim_fact kind, uint64_t number)
{
    if (kind == PIRN_SIM_TASK_SPAWNED)
        add(&seen->tasks.alive, number);
    else if (kind == PIRN_SIM_TASK_ENDED &&
             !take_out(&seen->tasks.alive, number))
        pirn__sim_blame("tasks", "a task has ended that was not alive");
    else if (kind == PIRN_SIM_TASK_ABORTED)
        seen->tasks.aborted = true;
}

static void tasks_end(void)
{
    if (seen->tasks.alive.count > 0 && !seen->tasks.aborted)
        pirn__sim_blame("tasks", "%zu tasks are lost", seen->tasks.alive.count);
}

/* No future polled twice at once. */

static void polls_begin(uint64_t number)
{
    bool is_inside = take_out(&seen->polls, number);

    if (is_inside) {
        pirn__sim_blame("polls", "a future is polled twice at once");
        add(&seen->polls, number);
    }
    add(&seen->polls, number);
}

static void polls_see(enum pirn_sim_fact kind, uint64_t number)
{
    if (kind == PIRN_SIM_FIBER_TWICE)
        pirn__sim_blame("polls", "a fiber runs on two threads at once");
    else if (kind == PIRN_SIM_POLL_BEGUN)
        polls_begin(number);
    else if (kind == PIRN_SIM_POLL_ENDED)
        (void)take_out(&seen->polls, number);
}

/* No wake lost: a future that was woken is polled, or dropped, before all have
 * been idle for long. */

static void wakes_forget(uint64_t number)
{
    for (size_t i = 0; i < seen->wakes.count; i++) {
        if (seen->wakes.numbers[i] != number)
            continue;
        seen->wakes.count--;
        seen->wakes.numbers[i] = seen->wakes.numbers[seen->wakes.count];
        seen->wakes.since_ns[i] = seen->wakes.since_ns[seen->wakes.count];
        return;
    }
}

static void wakes_note(uint64_t number)
{
    for (size_t i = 0; i < seen->wakes.count; i++) {
        if (seen->wakes.numbers[i] == number)
            return;
    }
    if (seen->wakes.count == WOKEN)
        return;
    seen->wakes.numbers[seen->wakes.count] = number;
    seen->wakes.since_ns[seen->wakes.count++] = seen->wakes.idle_ns;
}

/* What was woken before this idle time began. */
static void wakes_idle(uint64_t ns)
{
    for (size_t i = 0; i < seen->wakes.count; i++) {
        if (seen->wakes.idle_ns + ns - seen->wakes.since_ns[i] > PATIENCE_NS)
            pirn__sim_blame("wakes",
                            "future %llu was woken and is not polled while "
                            "all are idle",
                            (unsigned long long)seen->wakes.numbers[i]);
    }
    seen->wakes.idle_ns += ns;
}

static void wakes_see(enum pirn_sim_fact kind, uint64_t number)
{
    if (kind == PIRN_SIM_WOKEN)
        wakes_note(number);
    else if (kind == PIRN_SIM_POLL_BEGUN || kind == PIRN_SIM_FUTURE_GONE)
        wakes_forget(number);
    else if (kind == PIRN_SIM_IDLE)
        wakes_idle(number);
}

/* Every waker given back. */

static void wakers_see(enum pirn_sim_fact kind, uint64_t number)
{
    (void)number;
    if (kind == PIRN_SIM_WAKER_CLONED)
        seen->wakers++;
    else if (kind == PIRN_SIM_WAKER_GONE && --seen->wakers < 0)
        pirn__sim_blame("wakers", "a waker is given back twice");
}

static void wakers_end(void)
{
    if (seen->wakers > 0)
        pirn__sim_blame("wakers", "%lld wakers are not given back",
                        (long long)seen->wakers);
}

/* No timer early. */

static void timers_see(enum pirn_sim_fact kind, uint64_t number)
{
    if (kind == PIRN_SIM_TIME_CAME && pirn_sim_now_ns() < number)
        pirn__sim_blame("timers", "a timer has fired %llu ns early",
                        (unsigned long long)(number - pirn_sim_now_ns()));
}

/* Every descriptor closed. */

static void descriptors_see(enum pirn_sim_fact kind, uint64_t number)
{
    (void)number;
    if (kind == PIRN_SIM_FD_OPENED)
        seen->descriptors++;
    else if (kind == PIRN_SIM_FD_CLOSED)
        seen->descriptors--;
}

static void descriptors_end(void)
{
    if (seen->descriptors != 0)
        pirn__sim_blame("descriptors", "%lld descriptors are still open",
                        (long long)seen->descriptors);
}

/* All memory given back; unless a fiber had to be left behind with its
 * stack. */

static void memory_see(enum pirn_sim_fact kind, uint64_t number)
{
    if (kind == PIRN_SIM_MEMORY_TAKEN)
        seen->memory.bytes += (int64_t)number;
    else if (kind == PIRN_SIM_MEMORY_GIVEN)
        seen->memory.bytes -= (int64_t)number;
    else if (kind == PIRN_SIM_TASK_ABORTED)
        seen->memory.aborted = true;
}

static void memory_end(void)
{
    if (seen->memory.bytes != 0 && !seen->memory.aborted)
        pirn__sim_blame("memory", "%lld bytes are not given back",
                        (long long)seen->memory.bytes);
}

static const struct checker checkers[] = {
    {"tasks", tasks_see, tasks_end},
    {"polls", polls_see, NULL},
    {"wakes", wakes_see, NULL},
    {"wakers", wakers_see, wakers_end},
    {"timers", timers_see, NULL},
    {"descriptors", descriptors_see, descriptors_end},
    {"memory", memory_see, memory_end},
};

enum { CHECKERS = sizeof checkers / sizeof checkers[0] };

void pirn__sim_see(enum pirn_sim_fact fact, uint64_t number)
{
    if (!pirn__sim_is_on())
        return;
    for (size_t i = 0; i < CHECKERS; i++)
        checkers[i].see(fact, number);
    for (size_t i = 0; i < user_count; i++) {
        if (users[i].see == NULL)
            continue;
        speaker = users[i].name;
        users[i].see(users[i].arg, fact, number);
        speaker = NULL;
    }
}

int pirn__sim_checkers_begin(const pirn_sim_case *scenario)
{
    seen = pirn__sim_take(sizeof *seen);
    if (seen == NULL)
        return -ENOMEM;
    users = scenario->checkers;
    user_count = scenario->checker_count;
    for (size_t i = 0; i < user_count; i++) {
        speaker = users[i].name;
        if (users[i].begin != NULL)
            users[i].begin(users[i].arg);
    }
    speaker = NULL;
    return 0;
}

void pirn__sim_checkers_ask(void)
{
    for (size_t i = 0; i < CHECKERS; i++) {
        if (checkers[i].end != NULL)
            checkers[i].end();
    }
    for (size_t i = 0; i < user_count; i++) {
        speaker = users[i].name;
        if (users[i].end != NULL)
            users[i].end(users[i].arg);
    }
    speaker = NULL;
}

void pirn__sim_checkers_end(void)
{
    if (seen != NULL) {
        free_numbers(&seen->tasks.alive);
        free_numbers(&seen->polls);
    }
    pirn__sim_give(seen, sizeof *seen);
    seen = NULL;
    users = NULL;
    user_count = 0;
    speaker = NULL;
}

const char *pirn__sim_speaker(void)
{
    return speaker;
}
