/* SPDX-License-Identifier: MIT */
/* tests/engine/sim.c - virtual threads and virtual time.
 *
 * One virtual thread runs until it waits or, now and then, until it makes a
 * system call; then the seed says who is next.  The library's thread-local is
 * exchanged at each switch.  A virtual thread may be switched away from while a
 * fiber runs on it: then what is saved is the fiber's stack.
 *
 * Each call takes a little time.  When nobody can go on, time jumps to the next
 * event or to the end of the earliest wait; without one, the program is stuck.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "base/prng.h"
#include "engine/sim_internal.h"
#include "sys/linux.h"
#include "sys/switch.h"
#include "task/local.h"

enum {
    THREADS = 256,
    STACK_SIZE = 256 * 1024,
    STEPS = 3000000, /* more are a livelock */
    CALL_NS = 400,   /* a system call takes less */
    NS_PER_US = 1000,
    NS_PER_MS = 1000 * 1000,
};

static const uint64_t first_ns = UINT64_C(5000000000);

enum state { UNUSED, RUNNABLE, WAITING, DONE };

struct thread {
    struct pirn__context context;
    void *stack;
    void (*fn)(void *arg);
    void *arg;
    enum state state;
    bool timed_out;
    const void *waits_for;
    uint64_t until_ns;
    void *local; /* the library's thread-local while it does not run */
};

struct event {
    uint64_t ns;
    uint64_t order; /* among those of one time */
    sim_event_fn *fn;
    void *object;
    uint64_t number;
};

static struct {
    bool active;
    sim_story_fn *story;
    struct sim_options options;
    struct pirn__prng prng;
    struct pirn__context engine;
    struct thread threads[THREADS];
    unsigned count; /* used so far */
    unsigned live;
    unsigned self;
    uint64_t now_ns;
    uint64_t next_until_ns; /* no wait ends before */
    bool calm;
    uint32_t planted; /* a bit for each bug that has been put in */
    struct event *events; /* a heap */
    size_t event_count, event_room;
    struct sim_result result;
} x;

bool sim_active(void)
{
    return x.active;
}

const struct sim_options *sim_options(void)
{
    return &x.options;
}

uint64_t sim_now_ns(void)
{
    return x.now_ns;
}

bool sim_is_calm(void)
{
    return x.calm;
}

/* Chance. */

uint64_t sim_random(void)
{
    return pirn__prng_next(&x.prng);
}

uint32_t sim_below(uint32_t limit)
{
    return pirn__prng_below(&x.prng, limit);
}

bool sim_chance(uint32_t per_thousand)
{
    return sim_below(1000) < per_thousand;
}

bool sim_fault(uint32_t per_thousand)
{
    return !x.calm && sim_chance(per_thousand);
}

bool sim_planted(enum sim_plant plant, uint32_t one_of)
{
    if (x.options.plant != plant || (x.planted & 1u << plant) != 0 ||
        sim_below(one_of) != 0)
        return false;
    x.planted |= 1u << plant;
    return true;
}

/* What happened, and what was found. */

static void mix(uint64_t value)
{
    x.result.hash = (x.result.hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    x.result.hash ^= x.result.hash >> 29;
}

static void trace(const char *what, uint64_t value)
{
    static int loud = -1;

    if (loud < 0)
        loud = getenv("PIRN_SIM_TRACE") != NULL;
    if (loud > 0)
        fprintf(stderr, "%12llu  thread %u  %s %llu\n",
                (unsigned long long)(x.now_ns - first_ns), x.self, what,
                (unsigned long long)value);
    for (const char *at = what; *at != '\0'; at++)
        mix((uint64_t)*at);
    mix(x.self);
    mix(x.now_ns);
    mix(value);
}

static void find(enum sim_finding finding, const char *checker,
                 const char *text)
{
    if (x.result.finding != SIM_CLEAN)
        return;
    x.result.finding = finding;
    snprintf(x.result.checker, sizeof x.result.checker, "%s", checker);
    snprintf(x.result.text, sizeof x.result.text, "%s", text);
}

void sim_fail(const char *checker, const char *format, ...)
{
    char text[sizeof x.result.text];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    find(SIM_CHECK_FAILED, checker, text);
}

void sim_check(bool condition, const char *text)
{
    if (!condition)
        sim_fail("story", "%s", text);
}

__attribute__((noreturn)) static void leave(void)
{
    struct thread *self = &x.threads[x.self];

    x.active = false;
    pirn__context_exit(&self->context, &x.engine);
    abort();
}

void sim_give_up(enum sim_finding finding, const char *text)
{
    /* What was found before has led to it, perhaps. */
    find(finding, "world", text);
    x.result.finding = finding;
    leave();
}

/* Events. */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->ns < b->ns || (a->ns == b->ns && a->order < b->order);
}

static void swap_events(size_t a, size_t b)
{
    struct event kept = x.events[a];

    x.events[a] = x.events[b];
    x.events[b] = kept;
}

void sim_at(uint64_t ns, sim_event_fn *fn, void *object, uint64_t number)
{
    size_t at = x.event_count;

    if (x.event_count == x.event_room) {
        x.event_room = x.event_room == 0 ? 256 : 2 * x.event_room;
        x.events = realloc(x.events, x.event_room * sizeof *x.events);
    }
    x.events[x.event_count++] =
        (struct event){ns, sim_random(), fn, object, number};
    for (; at > 0 && is_before(&x.events[at], &x.events[(at - 1) / 2]);
         at = (at - 1) / 2)
        swap_events(at, (at - 1) / 2);
}

static struct event take_event(void)
{
    struct event first = x.events[0];
    size_t at = 0;

    x.events[0] = x.events[--x.event_count];
    /* Ends at a leaf. */
    for (;;) {
        size_t least = at;

        for (size_t child = 2 * at + 1;
             child <= 2 * at + 2 && child < x.event_count; child++) {
            if (is_before(&x.events[child], &x.events[least]))
                least = child;
        }
        if (least == at)
            return first;
        swap_events(at, least);
        at = least;
    }
}

/* Time. */

uint64_t sim_latest(uint64_t ns)
{
    return ns == UINT64_MAX ? ns
                            : ns + sim_below(x.options.late_us + 1) * NS_PER_US;
}

static uint64_t calm_ns(void)
{
    return first_ns + (uint64_t)x.options.fault_ms * NS_PER_MS;
}

static void end_waits(void)
{
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < x.count; i++) {
        struct thread *thread = &x.threads[i];

        if (thread->state != WAITING)
            continue;
        if (thread->until_ns <= x.now_ns) {
            thread->state = RUNNABLE;
            thread->timed_out = true;
        } else if (thread->until_ns < next) {
            next = thread->until_ns;
        }
    }
    x.next_until_ns = next;
}

/* All that is due. */
static void deliver(void)
{
    while (x.event_count > 0 && x.events[0].ns <= x.now_ns) {
        struct event event = take_event();

        event.fn(event.object, event.number);
    }
    if (x.next_until_ns <= x.now_ns)
        end_waits();
}

static void jump(void)
{
    uint64_t to = x.next_until_ns;

    if (x.event_count > 0 && x.events[0].ns < to)
        to = x.events[0].ns;
    if (to == UINT64_MAX)
        sim_give_up(SIM_STUCK, "everybody waits for ever");
    if (to > calm_ns() + x.options.live_s * PIRN__NS_PER_S)
        sim_give_up(SIM_LATE, "it has not ended in time");
    if (x.now_ns < to) {
        sim_see(SIM_FACT_IDLE, to - x.now_ns);
        x.now_ns = to;
    }
    deliver();
}

/* Threads. */

static unsigned pick(void)
{
    unsigned runnable[THREADS];
    unsigned count = 0;

    /* Ends: it gives up when nothing is left to happen, or too late. */
    for (;;) {
        for (unsigned i = 0; i < x.count; i++) {
            if (x.threads[i].state == RUNNABLE)
                runnable[count++] = i;
        }
        if (count > 0)
            return runnable[count == 1 ? 0 : sim_below(count)];
        jump();
    }
}

/* A thread's own choices, for the order in which combinators poll, come from a
 * count of the process: ours must be the same in each run. */
static void seed_local(void)
{
    struct pirn__local *local = pirn__tls_get();

    if (local != NULL && local->prng.state == 0)
        pirn__prng_seed(&local->prng, sim_random());
}

static void switch_to(unsigned to)
{
    unsigned from = x.self;

    if (from == to)
        return;
    x.threads[from].local = pirn__tls_get();
    x.self = to;
    pirn__tls_set(x.threads[to].local);
    pirn__context_switch(&x.threads[from].context, &x.threads[to].context);
}

void sim_pause(const char *what, uint64_t value)
{
    if (!x.active)
        return;
    seed_local();
    trace(what, value);
    if (++x.result.steps > STEPS)
        sim_give_up(SIM_LIVELOCK, "it does not end");
    x.now_ns += 1 + sim_below(CALL_NS);
    deliver();
    if (x.live > 1 && sim_chance(x.options.preemptions))
        switch_to(pick());
}

bool sim_wait(const void *address, uint64_t until_ns)
{
    struct thread *self = &x.threads[x.self];

    self->state = WAITING;
    self->waits_for = address;
    self->until_ns = sim_latest(until_ns);
    self->timed_out = false;
    if (self->until_ns < x.next_until_ns)
        x.next_until_ns = self->until_ns;
    switch_to(pick());
    return self->timed_out;
}

void sim_wake(const void *address, int count)
{
    unsigned waiting[THREADS];
    unsigned waiters = 0;

    for (unsigned i = 0; i < x.count; i++) {
        if (x.threads[i].state == WAITING &&
            x.threads[i].waits_for == address)
            waiting[waiters++] = i;
    }
    for (; count > 0 && waiters > 0; count--) {
        unsigned at = waiters == 1 ? 0 : sim_below(waiters);

        x.threads[waiting[at]].state = RUNNABLE;
        waiting[at] = waiting[--waiters];
    }
}

/* What the C library does at the end of a thread. */
static void give_local_up(void)
{
    void *local = pirn__tls_get();

    if (local != NULL)
        pirn__local_disown(local);
    pirn__tls_set(NULL);
}

static void thread_entry(void *arg)
{
    struct thread *self = arg;
    unsigned next;

    self->fn(self->arg);
    give_local_up();
    self->state = DONE;
    self->local = NULL;
    x.live--;
    sim_wake(&x.live, THREADS);
    next = pick();
    x.self = next;
    pirn__tls_set(x.threads[next].local);
    pirn__context_exit(&self->context, &x.threads[next].context);
}

/* One that is free, or NULL. */
static struct thread *free_thread(void)
{
    for (unsigned i = 0; i < x.count; i++) {
        if (x.threads[i].state == DONE)
            return &x.threads[i];
    }
    return x.count == THREADS ? NULL : &x.threads[x.count++];
}

static void *stack_of(struct thread *thread)
{
    if (thread->stack != NULL)
        return thread->stack;
    thread->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)pirn__checker_stack_begin(thread->stack, STACK_SIZE);
    return thread->stack;
}

static struct thread *make_thread(pirn__context_fn *entry)
{
    struct thread *thread = free_thread();

    if (thread == NULL)
        return NULL;
    pirn__context_dispose(&thread->context);
    pirn__context_make(&thread->context, stack_of(thread), STACK_SIZE, entry,
                       thread, false);
    thread->state = RUNNABLE;
    thread->local = NULL;
    x.live++;
    return thread;
}

bool sim_spawn(void (*fn)(void *arg), void *arg)
{
    struct thread *thread = make_thread(thread_entry);

    if (thread == NULL)
        return false;
    thread->fn = fn;
    thread->arg = arg;
    return true;
}

void sim_thread(void (*fn)(void *arg), void *arg)
{
    sim_check(sim_spawn(fn, arg), "a thread could be started");
}

/* The run. */

static void story_entry(void *arg)
{
    (void)arg;
    x.story();
    /* Threads that the program does not join, as those of the blocking pool. */
    while (x.live > 1)
        (void)sim_wait(&x.live, UINT64_MAX);
    give_local_up();
    sim_checkers_end();
    leave();
}

static void become_calm(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    x.calm = true;
    sim_files_limit(UINT32_MAX);
}

static void wait_for_lock(uint32_t *word, uint32_t expected)
{
    if (!x.active)
        (void)pirn__linux_futex_wait(word, expected, PIRN_NEVER);
    else if (*word == expected)
        (void)sim_wait(word, UINT64_MAX);
}

static void wake_lock_waiter(uint32_t *word)
{
    if (!x.active)
        pirn__linux_futex_wake(word, 1);
    else
        sim_wake(word, 1);
}

static void install(void)
{
    static const struct pirn__lock_ops locks = {
        .wait = wait_for_lock, .wake_one = wake_lock_waiter};

    sim_sys_install();
    pirn__lock_set_ops(&locks);
}

static void prepare(sim_story_fn *story, const struct sim_options *options,
                    uint64_t seed)
{
    for (unsigned i = 0; i < x.count; i++)
        x.threads[i].state = DONE;
    pirn__prng_seed(&x.prng, seed);
    x.options = sim_options_draw(options);
    x.story = story;
    x.live = 0;
    x.now_ns = first_ns;
    x.next_until_ns = UINT64_MAX;
    x.calm = false;
    x.planted = 0;
    x.event_count = 0;
    x.result = (struct sim_result){.finding = SIM_CLEAN};
    sim_sys_reset();
    sim_checkers_reset();
    sim_story_reset();
    sim_at(calm_ns(), become_calm, NULL, 0);
    sim_net_weather();
}

struct sim_result sim_run(sim_story_fn *story,
                          const struct sim_options *options, uint64_t seed)
{
    void *outside = pirn__tls_get();
    struct thread *first;

    prepare(story, options, seed);
    first = make_thread(story_entry);
    install();
    pirn__tls_set(NULL);
    x.self = (unsigned)(first - x.threads);
    x.active = true;
    pirn__context_switch(&x.engine, &first->context);
    pirn__tls_set(outside);
    sim_sys_remove();
    x.result.ns = x.now_ns - first_ns;
    mix(x.now_ns);
    mix(x.result.steps);
    return x.result;
}
