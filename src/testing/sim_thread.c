/* SPDX-License-Identifier: MIT */
/* src/testing/sim_thread.c - virtual threads and virtual time.
 *
 * One virtual thread runs until it waits or, now and then, until it makes a
 * system call; then the seed says who is next.  The library's thread-local is
 * exchanged at each switch.  A virtual thread may be switched away from while a
 * fiber runs on it: then what is saved is the fiber's stack.
 *
 * Each call takes a little time.  When nobody can go on, time jumps to the next
 * event or to the end of the earliest wait; without one, the program is stuck.
 *
 * A program that tries again and again in bad weather does what it should, and
 * may make millions of calls: that ends with the weather, which time takes care
 * of.  So a livelock is one that makes too many without a rest, or after that.
 */
#include "testing/sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/prng.h"
#include "sys/checker.h"
#include "sys/environment.h"
#include "sys/switch.h"
#include "task/local.h"

enum {
    THREADS = 256,
    STACK_SIZE = 1 << 20,
    PATIENCE = 3000000, /* calls; more are a livelock */
    CALL_NS = 400,      /* a system call takes less */
    EVENTS = 256,       /* of which there is room in the beginning */
    NS_PER_US = 1000,
    NS_PER_MS = 1000 * 1000,
    NS_PER_S = 1000 * 1000 * 1000,
};

static const uint64_t first_ns = UINT64_C(5000000000);

enum state { UNUSED, RUNNABLE, WAITING, DONE };

struct thread {
    struct pirn__context context;
    void *stack; /* with a guard at its lower end; NULL before the first use */
    uint32_t stack_id;
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
    pirn__sim_event_fn *fn;
    void *object;
    uint64_t number;
};

static struct {
    bool on;
    bool given_up;
    bool loud;
    struct pirn__context engine;
    struct thread *threads;
    unsigned count; /* used so far */
    unsigned live;
    unsigned self;
    uint64_t now_ns;
    uint64_t next_until_ns; /* no wait ends before */
    bool calm;
    struct event *events; /* a heap */
    size_t event_count, event_room;
    uint64_t hash, steps;
    uint32_t patience; /* calls until it is a livelock */
} x;

bool pirn__sim_is_on(void)
{
    return x.on;
}

/* From its first preparations on. */
static bool has_world(void)
{
    return x.threads != NULL;
}

uint64_t pirn_sim_now_ns(void)
{
    return has_world() ? x.now_ns : pirn__sys->clock_ns();
}

bool pirn_sim_is_calm(void)
{
    return !has_world() || x.calm;
}

/* What happened. */

static void mix(uint64_t value)
{
    x.hash = (x.hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    x.hash ^= x.hash >> 29;
}

static void print(const char *what, uint64_t value)
{
    char line[160];
    int len = snprintf(line, sizeof line, "%12llu  thread %u  %.80s %llu\n",
                       (unsigned long long)(x.now_ns - first_ns), x.self, what,
                       (unsigned long long)value);

    if (len > 0)
        (void)pirn__sys_linux.write(2, line, (size_t)len);
}

static void trace(const char *what, uint64_t value)
{
    if (x.loud)
        print(what, value);
    for (const char *at = what; *at != '\0'; at++)
        mix((uint64_t)*at);
    mix(x.self);
    mix(x.now_ns);
    mix(value);
}

void pirn__sim_tell(pirn_sim_result *result)
{
    mix(x.now_ns);
    mix(x.steps);
    result->hash = x.hash;
    result->steps = x.steps;
    result->ns = x.now_ns - first_ns;
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

void pirn__sim_at(uint64_t ns, pirn__sim_event_fn *fn, void *object,
                  uint64_t number)
{
    size_t at = x.event_count;

    if (x.event_count == x.event_room)
        x.events = pirn__sim_grow(x.events, &x.event_room, sizeof *x.events);
    x.events[x.event_count++] =
        (struct event){ns, pirn_sim_random(), fn, object, number};
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

uint64_t pirn__sim_latest(uint64_t ns)
{
    uint64_t late = pirn_sim_below(pirn__sim_options()->late_us + 1);

    return ns > UINT64_MAX - late * NS_PER_US ? ns : ns + late * NS_PER_US;
}

static uint64_t calm_ns(void)
{
    return first_ns + (uint64_t)pirn__sim_options()->fault_ms * NS_PER_MS;
}

static void become_calm(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    x.calm = true;
    x.patience = PATIENCE;
    pirn__sim_files_limit(UINT32_MAX);
    pirn__sim_see(PIRN_SIM_CALM, 0);
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

static bool is_too_late(uint64_t ns)
{
    uint64_t live_s = pirn__sim_options()->live_s;

    return live_s != 0 && ns > calm_ns() + live_s * NS_PER_S;
}

static void jump(void)
{
    uint64_t to = x.next_until_ns;

    if (x.event_count > 0 && x.events[0].ns < to)
        to = x.events[0].ns;
    if (to == UINT64_MAX)
        pirn__sim_give_up(PIRN_SIM_STUCK, "everybody waits for ever");
    if (is_too_late(to))
        pirn__sim_give_up(PIRN_SIM_LATE, "it has not ended in time");
    if (x.now_ns < to) {
        pirn__sim_see(PIRN_SIM_IDLE, to - x.now_ns);
        x.now_ns = to;
        if (!x.calm)
            x.patience = PATIENCE;
    }
    deliver();
}

/* Whose turn it is. */

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
            return runnable[count == 1 ? 0 : pirn_sim_below(count)];
        jump();
    }
}

/* A thread's own choices, for the order in which combinators poll, come from a
 * count of the process: ours must be the same in each run. */
static void seed_local(void)
{
    struct pirn__local *local = pirn__tls_get();

    if (local != NULL && local->prng.state == 0)
        pirn__prng_seed(&local->prng, pirn_sim_random());
}

static const void *fiber_of(void *local)
{
    return local == NULL ? NULL : ((struct pirn__local *)local)->fiber;
}

/* The thread that is left is in a fiber: nobody else may be. */
static void look_for_twins(unsigned from)
{
    const void *fiber = fiber_of(x.threads[from].local);

    for (unsigned i = 0; i < x.count && fiber != NULL; i++) {
        if (i != from && fiber_of(x.threads[i].local) == fiber)
            pirn__sim_see(PIRN_SIM_FIBER_TWICE, 0);
    }
}

static void switch_to(unsigned to)
{
    unsigned from = x.self;

    if (from == to)
        return;
    x.threads[from].local = pirn__tls_get();
    look_for_twins(from);
    x.self = to;
    pirn__tls_set(x.threads[to].local);
    x.threads[to].local = NULL;
    pirn__context_switch(&x.threads[from].context, &x.threads[to].context);
}

void pirn_sim_pause(const char *what, uint64_t value)
{
    if (!x.on || pirn__sim_speaker() != NULL)
        return;
    seed_local();
    trace(what == NULL ? "" : what, value);
    x.steps++;
    if (x.patience-- == 0)
        pirn__sim_give_up(PIRN_SIM_LIVELOCK, "it does not end");
    x.now_ns += 1 + pirn_sim_below(CALL_NS);
    deliver();
    if (x.live > 1 && pirn_sim_chance(pirn__sim_options()->preemptions))
        switch_to(pick());
}

bool pirn__sim_wait(const void *address, uint64_t until_ns)
{
    struct thread *self = &x.threads[x.self];

    self->state = WAITING;
    self->waits_for = address;
    self->until_ns = pirn__sim_latest(until_ns);
    self->timed_out = false;
    if (self->until_ns < x.next_until_ns)
        x.next_until_ns = self->until_ns;
    switch_to(pick());
    return self->timed_out;
}

void pirn__sim_wake(const void *address, int count)
{
    unsigned waiting[THREADS];
    unsigned waiters = 0;

    for (unsigned i = 0; i < x.count; i++) {
        if (x.threads[i].state == WAITING && x.threads[i].waits_for == address)
            waiting[waiters++] = i;
    }
    for (; count > 0 && waiters > 0; count--) {
        unsigned at = waiters == 1 ? 0 : pirn_sim_below(waiters);

        x.threads[waiting[at]].state = RUNNABLE;
        waiting[at] = waiting[--waiters];
    }
}

void pirn_sim_block(uint32_t ms)
{
    const pirn_deadline until = {pirn_sim_now_ns() + (uint64_t)ms * NS_PER_MS};
    uint32_t nothing = 0;

    /* Ends at that time; a wait may end early for no reason. */
    while (pirn_sim_now_ns() < until.ns)
        (void)pirn__sys->futex_wait(&nothing, 0, until);
}

/* The life of a thread. */

/* What the C library does at the end of a thread. */
static void give_local_up(void)
{
    void *local = pirn__tls_get();

    pirn__tls_set(NULL);
    if (local != NULL)
        pirn__local_disown(local);
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
    pirn__sim_wake(&x.live, THREADS);
    next = pick();
    x.self = next;
    pirn__tls_set(x.threads[next].local);
    x.threads[next].local = NULL;
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

static size_t guard_size(void)
{
    return pirn__sys_linux.page_size();
}

static int make_stack(struct thread *thread)
{
    void *base;
    int rc;

    if (thread->stack != NULL)
        return 0;
    rc = pirn__sys_linux.map(STACK_SIZE, &base);
    if (rc < 0)
        return rc;
    rc = pirn__sys_linux.protect_none(base, guard_size());
    if (rc < 0) {
        (void)pirn__sys_linux.unmap(base, STACK_SIZE);
        return rc;
    }
    thread->stack = base;
    thread->stack_id = pirn__checker_stack_begin((char *)base + guard_size(),
                                                 STACK_SIZE - guard_size());
    return 0;
}

static int make_thread(pirn__context_fn *entry, void (*fn)(void *arg),
                       void *arg, struct thread **out)
{
    struct thread *thread = free_thread();
    int rc;

    if (thread == NULL)
        return -EAGAIN;
    rc = make_stack(thread);
    if (rc < 0) {
        thread->state = DONE;
        return rc;
    }
    pirn__context_dispose(&thread->context);
    pirn__context_make(&thread->context, (char *)thread->stack + guard_size(),
                       STACK_SIZE - guard_size(), entry, thread, false);
    thread->fn = fn;
    thread->arg = arg;
    thread->state = RUNNABLE;
    thread->local = NULL;
    x.live++;
    *out = thread;
    return 0;
}

int pirn__sim_spawn(void (*fn)(void *arg), void *arg)
{
    struct thread *thread;

    return make_thread(thread_entry, fn, arg, &thread);
}

int pirn_sim_thread(void (*fn)(void *arg), void *arg)
{
    if (fn == NULL)
        return -EINVAL;
    return x.on ? pirn__sim_spawn(fn, arg) : -EPERM;
}

/* The run. */

int pirn__sim_threads_begin(void)
{
    uint64_t loud = 0;

    (void)!pirn__environment_number("PIRN_SIM_TRACE", 0, 1, &loud);
    memset(&x, 0, sizeof x);
    x.loud = loud != 0;
    x.now_ns = first_ns;
    x.next_until_ns = UINT64_MAX;
    x.patience = PATIENCE;
    x.event_room = EVENTS;
    x.events = pirn__sim_take(EVENTS * sizeof *x.events);
    x.threads = pirn__sim_take(THREADS * sizeof *x.threads);
    if (x.events == NULL || x.threads == NULL)
        return -ENOMEM;
    pirn__sim_at(calm_ns(), become_calm, NULL, 0);
    return 0;
}

static void first_entry(void *arg)
{
    struct thread *self = arg;

    self->fn(self->arg);
    pirn__sim_leave(false);
}

int pirn__sim_enter(void (*entry)(void *arg), void *arg)
{
    void *outside = pirn__tls_get();
    struct thread *first;
    int rc = make_thread(first_entry, entry, arg, &first);

    if (rc < 0)
        return rc;
    pirn__tls_set(NULL);
    x.self = (unsigned)(first - x.threads);
    x.on = true;
    pirn__context_of_thread(&x.engine);
    pirn__context_switch(&x.engine, &first->context);
    pirn__tls_set(outside);
    return 0;
}

void pirn__sim_wait_for_others(void)
{
    while (x.live > 1)
        (void)pirn__sim_wait(&x.live, UINT64_MAX);
    give_local_up();
}

void pirn__sim_leave(bool given_up)
{
    struct thread *self = &x.threads[x.self];

    x.on = false;
    x.given_up = given_up;
    pirn__context_exit(&self->context, &x.engine);
    __builtin_unreachable();
}

static void free_stack(struct thread *thread)
{
    char *stack = (char *)thread->stack + guard_size();

    /* What stands on the stack of a run that was given up is no leak. */
    if (x.given_up) {
        pirn__checker_stack_keep(stack, STACK_SIZE - guard_size());
        return;
    }
    pirn__context_dispose(&thread->context);
    pirn__checker_stack_end(thread->stack_id, stack, STACK_SIZE - guard_size());
    (void)pirn__sys_linux.unmap(thread->stack, STACK_SIZE);
}

void pirn__sim_threads_end(void)
{
    for (unsigned i = 0; i < x.count; i++) {
        if (x.threads[i].stack != NULL)
            free_stack(&x.threads[i]);
    }
    pirn__sim_give(x.events, x.event_room * sizeof *x.events);
    pirn__sim_give(x.threads, THREADS * sizeof *x.threads);
    memset(&x, 0, sizeof x);
}
