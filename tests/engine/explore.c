/* SPDX-License-Identifier: MIT */
/* tests/engine/explore.c - the search of the explorer.
 *
 * An execution is a path through choices: which thread makes the next visible
 * operation, and which store a load sees.  The path of the last execution is
 * kept; the next one repeats it up to the last choice that has an alternative
 * left, takes that, and goes on with first alternatives.
 *
 * A step of a thread is the operation that it has announced and all that
 * follows up to its next announcement.  A new thread runs to its first
 * announcement at once.  A thread that wants a lock which is held cannot run;
 * giving a lock back is part of the step before it.
 *
 * Preemptions.  Taking another thread although the running one could go on
 * costs one; a path may cost as much as the model allows.
 *
 * Sleep sets.  After alternative t has been explored at a choice, t sleeps in
 * the alternatives explored later, until an operation is made that depends on
 * the one t was about to make: every execution in which it would run before
 * that has an equivalent one that was explored.  With a bound that equivalent
 * must not cost more, or it may have been cut off.  Therefore t sleeps only if
 * taking it first and then switching costs no more than the alternative itself:
 * cost(t) + 1 <= cost(alternative).  That holds for the running thread (cost 0)
 * in every preempting alternative (cost 1): moving its operation in front of
 * independent ones saves the switch back and needs at most one switch away.
 * Without a bound costs do not matter and every earlier alternative sleeps.
 *
 * Time passes when nobody can go on: to the earliest time that somebody waits
 * for.  Now and then it passes before that, as a choice.
 *
 * Walks.  Where there are too many executions for all of them, each draws its
 * choices at random.  Nothing sleeps then, for nothing is known to be explored.
 */
#include "engine/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/assert.h"
#include "engine/explore_internal.h"
#include "sys/switch.h"

enum {
    MAX_CHOICES = 8192,
    MAX_EVENTS = 4096,
    STACK_SIZE = 256 * 1024,
    NOBODY = EXPLORE_THREADS,
    FIRST_TIME_NS = 1000000,
    DEFAULT_PREEMPTIONS = 2,
};

struct thread {
    struct pirn__context context;
    void *stack;
    void (*fn)(void *arg);
    void *arg;
    enum explore_block block;
    const void *blocked_on;
    uint64_t until_ns; /* of a wait */
    bool timed_out;
    struct explore_op op; /* what it is about to do */
    struct explore_clock clock;
    void *tls;
};

struct choice {
    uint8_t count;
    uint8_t index;
    uint8_t threads[EXPLORE_THREADS]; /* of a schedule */
    uint8_t costs[EXPLORE_THREADS];
    uint8_t sleeping; /* threads asleep before the choice, as bits */
};

static struct {
    bool active;
    bool prepared;
    struct explore_options options;
    void (*body)(void);
    struct pirn__context engine;
    struct thread threads[EXPLORE_THREADS];
    unsigned thread_count;
    unsigned self;
    bool alone;       /* the body has no threads, or none any more */
    unsigned starter; /* of the thread that runs to its first announcement */
    /* The path. */
    struct choice choices[MAX_CHOICES];
    unsigned depth; /* choices in the path */
    unsigned at;    /* choices made in this execution */
    bool replaying; /* a path from outside: only indices are known */
    /* The search. */
    uint64_t end_ns; /* of the time it may take; 0: all there is */
    bool late;       /* it took that, and was not through */
    bool walking;
    uint64_t random;
    unsigned rarity; /* a choice in so many is not the first one */
    /* This execution. */
    uint8_t sleeping;
    uint64_t now_ns;
    int preemptions;
    int spurious;
    int timeouts;
    int stale;
    int refusals;
    int steps;
    bool redundant;
    struct explore_result result;
    struct explore_place where;
    unsigned event_count;
    struct explore_event events[MAX_EVENTS];
    uint64_t outcomes[EXPLORE_OUTCOME_WORDS];
} x;

bool explore_active(void)
{
    return x.active;
}

unsigned explore_self(void)
{
    return x.self;
}

unsigned explore_thread_count(void)
{
    return x.thread_count;
}

bool explore_alone(void)
{
    return x.alone;
}

struct explore_clock *explore_my_clock(void)
{
    return &x.threads[x.self].clock;
}

void **explore_tls(void)
{
    return &x.threads[x.self].tls;
}

void explore_trace(const char *what, const void *address, uint64_t value,
                   struct explore_place place)
{
    if (!x.active || x.event_count == MAX_EVENTS)
        return;
    x.events[x.event_count++] = (struct explore_event){
        (uint8_t)x.self, what, address, value, place};
}

/* Leave the execution; the stacks are simply forgotten. */
__attribute__((noreturn)) static void leave(void)
{
    x.active = false;
    pirn__context_exit(&x.threads[x.self].context, &x.engine);
    abort();
}

void explore_fail(enum explore_finding finding, const char *text,
                  struct explore_place place)
{
    x.result.finding = finding;
    x.where = place;
    snprintf(x.result.text, sizeof x.result.text, "%s", text);
    leave();
}

void explore_check(bool condition, const char *text, struct explore_place place)
{
    if (!condition)
        explore_fail(EXPLORE_CHECK_FAILED, text, place);
}

/* ---- Choices. ---- */

static struct choice *next_choice(void)
{
    if (x.at == MAX_CHOICES)
        explore_fail(EXPLORE_TOO_LARGE, "too many choices", EXPLORE_PLACE);
    return &x.choices[x.at++];
}

/* The path and the program disagree: it does not do the same each time. */
static void require_same(bool same)
{
    if (!same)
        explore_fail(EXPLORE_TOO_LARGE, "an execution cannot be repeated",
                     EXPLORE_PLACE);
}

static unsigned draw(unsigned count)
{
    /* xorshift (G. Marsaglia, 2003); never zero. */
    x.random ^= x.random << 13;
    x.random ^= x.random >> 7;
    x.random ^= x.random << 17;
    return (unsigned)(x.random >> 32) % count;
}

/* What a choice begins with: the first alternative.  A walk takes another one
 * now and then, so that it gets far with few of them. */
static uint8_t first_index(unsigned count, unsigned rarity)
{
    if (!x.walking || draw(rarity) != 0)
        return 0;
    return (uint8_t)draw(count);
}

unsigned explore_choose(unsigned count)
{
    struct choice *choice;

    if (!x.active || count <= 1)
        return 0;
    choice = next_choice();
    if (x.at > x.depth) {
        *choice = (struct choice){.count = (uint8_t)count,
                                  .index = first_index(count, x.rarity)};
        x.depth = x.at;
    } else if (x.replaying) {
        choice->count = (uint8_t)count;
    }
    require_same(choice->count == count && choice->index < count);
    return choice->index;
}

/* Yes, while some are left. */
static bool take_one_of(int *left)
{
    if (!x.active || *left == 0 || explore_choose(2) == 0)
        return false;
    --*left;
    return true;
}

bool explore_spurious(void)
{
    return take_one_of(&x.spurious);
}

bool explore_refused(void)
{
    return take_one_of(&x.refusals);
}

bool explore_may_be_stale(void)
{
    return x.stale > 0;
}

void explore_was_stale(void)
{
    x.stale--;
}

/* ---- Time. ---- */

uint64_t explore_now(void)
{
    return x.now_ns;
}

static void set_time(uint64_t ns)
{
    if (x.now_ns < ns)
        x.now_ns = ns;
    /* Whoever reads the clock depends on it. */
    x.sleeping = 0;
    explore_sys_fire_timers();
}

bool explore_may_time_out(uint64_t until_ns)
{
    return until_ns != UINT64_MAX && until_ns > x.now_ns && x.timeouts > 0;
}

bool explore_times_out(uint64_t until_ns)
{
    if (!explore_may_time_out(until_ns) || !take_one_of(&x.timeouts))
        return false;
    set_time(until_ns);
    return true;
}

/* The thread whose wait ends first, if it does before `limit_ns`. */
static struct thread *first_to_time_out(uint64_t limit_ns)
{
    struct thread *first = NULL;

    for (unsigned i = 0; i < x.thread_count; i++) {
        struct thread *thread = &x.threads[i];

        if (thread->block == EXPLORE_BLOCK_WAIT &&
            thread->until_ns < limit_ns) {
            first = thread;
            limit_ns = thread->until_ns;
        }
    }
    return first;
}

/* Let the earliest wait end, or the earliest timer fire; false if there is
 * none. */
static bool pass_time(void)
{
    uint64_t timer_ns = explore_sys_next_timer();
    struct thread *first = first_to_time_out(timer_ns);

    if (x.options.frozen || (first == NULL && timer_ns == UINT64_MAX))
        return false;
    set_time(first != NULL ? first->until_ns : timer_ns);
    if (first != NULL) {
        first->block = EXPLORE_RUNNABLE;
        first->timed_out = true;
    }
    return true;
}

/* ---- Schedules. ---- */

/* Loads of one place commute.  Not so two seq_cst ones: what the first has
 * seen, the second may not fall behind. */
static bool dependent(const struct explore_op *a, const struct explore_op *b)
{
    if (a->time || b->time)
        return true;
    if (a->address >= b->address + b->size ||
        b->address >= a->address + a->size)
        return false;
    return a->write || b->write || (a->seq_cst && b->seq_cst);
}

/* Those of `sleeping` that stay asleep when `taken` makes its operation. */
static uint8_t still_sleeping(uint8_t sleeping, unsigned taken)
{
    uint8_t rest = 0;

    for (unsigned i = 0; i < x.thread_count; i++) {
        if ((sleeping >> i & 1) != 0 && i != taken &&
            !dependent(&x.threads[i].op, &x.threads[taken].op))
            rest |= (uint8_t)(1 << i);
    }
    return rest;
}

void explore_released(const void *address, size_t size)
{
    const struct explore_op op = {
        .address = (uintptr_t)address, .size = size, .write = true};

    for (unsigned i = 0; i < x.thread_count; i++) {
        if (dependent(&x.threads[i].op, &op))
            x.sleeping &= (uint8_t)~(1 << i);
    }
}

static bool is_runnable(unsigned thread)
{
    const struct explore_op *op = &x.threads[thread].op;

    return x.threads[thread].block == EXPLORE_RUNNABLE &&
           !(op->lock && explore_lock_is_held((void *)op->address));
}

static bool is_bounded(void)
{
    return x.options.preemptions < EXPLORE_UNBOUNDED;
}

/* Fill in who may go on; the running thread first. */
static void list_threads(struct choice *choice)
{
    bool free = !is_runnable(x.self);

    choice->sleeping = x.sleeping;
    for (unsigned i = 0; i < x.thread_count; i++) {
        unsigned thread = i == 0 ? x.self : i <= x.self ? i - 1 : i;
        uint8_t cost = thread == x.self || free ? 0 : 1;

        if (!is_runnable(thread) || (x.sleeping >> thread & 1) != 0)
            continue;
        if (is_bounded() && x.preemptions + cost > x.options.preemptions)
            continue;
        choice->threads[choice->count] = (uint8_t)thread;
        choice->costs[choice->count++] = cost;
    }
}

/* Who sleeps in the chosen alternative. */
static uint8_t sleepers(const struct choice *choice)
{
    uint8_t sleeping = choice->sleeping;

    if (x.options.every_order || x.walking)
        return 0;
    for (unsigned i = 0; i < choice->index; i++) {
        if (!is_bounded() ||
            choice->costs[i] + 1 <= choice->costs[choice->index])
            sleeping |= (uint8_t)(1 << choice->threads[i]);
    }
    return sleeping;
}

static bool any_runnable(void)
{
    for (unsigned i = 0; i < x.thread_count; i++) {
        if (is_runnable(i))
            return true;
    }
    return false;
}

/* A schedule with alternatives is a choice of the path. */
static const struct choice *choose_thread(struct choice *fresh)
{
    struct choice *choice;

    if (fresh->count == 1)
        return fresh;
    choice = next_choice();
    if (x.at > x.depth) {
        *choice = *fresh;
        /* Who follows one that cannot go on is open. */
        choice->index = first_index(
            choice->count, choice->costs[choice->count - 1] > 0 ? x.rarity : 1);
        x.depth = x.at;
    } else if (x.replaying) {
        fresh->index = choice->index;
        *choice = *fresh;
    }
    require_same(choice->count == fresh->count &&
                 choice->index < choice->count &&
                 memcmp(choice->threads, fresh->threads, fresh->count) == 0);
    return choice;
}

/* Decide who makes the next operation. */
static unsigned pick_thread(void)
{
    struct choice fresh = {0};
    const struct choice *choice;
    unsigned taken;

    /* Ends: each round takes a wait or a timer away. */
    while (!any_runnable()) {
        if (!pass_time())
            explore_fail(EXPLORE_DEADLOCK, "nobody can go on",
                         x.threads[x.self].op.place);
    }
    list_threads(&fresh);
    if (fresh.count == 0) {
        /* All sleep: whatever follows has been seen in another order. */
        x.redundant = true;
        leave();
    }
    choice = choose_thread(&fresh);
    taken = choice->threads[choice->index];
    x.preemptions += choice->costs[choice->index];
    x.sleeping = still_sleeping(sleepers(choice), taken);
    return taken;
}

/* Run another thread until it comes back to us. */
static void switch_to(unsigned thread)
{
    unsigned self = x.self;

    if (thread == self)
        return;
    x.self = thread;
    pirn__context_switch(&x.threads[self].context, &x.threads[thread].context);
}

/* What a thread does after others may have run is another tick. */
static void begin_tick(void)
{
    explore_my_clock()->at[x.self]++;
}

void explore_point(const struct explore_op *op)
{
    unsigned starter = x.starter;

    x.threads[x.self].op = *op;
    if (++x.steps > x.options.steps)
        explore_fail(EXPLORE_LIVELOCK, "it does not end", op->place);
    x.starter = NOBODY;
    switch_to(starter != NOBODY ? starter : pick_thread());
    begin_tick();
}

static void block(enum explore_block why, const void *address)
{
    struct thread *self = &x.threads[x.self];

    self->block = why;
    self->blocked_on = address;
    switch_to(pick_thread());
    begin_tick();
}

bool explore_wait(const void *address, uint64_t until_ns,
                  struct explore_place place)
{
    struct thread *self = &x.threads[x.self];

    self->until_ns = until_ns;
    self->timed_out = false;
    self->op.place = place;
    block(EXPLORE_BLOCK_WAIT, address);
    return self->timed_out;
}

/* One of those who wait on `address`; NULL without. */
static struct thread *choose_waiter(const void *address)
{
    struct thread *waiters[EXPLORE_THREADS];
    unsigned count = 0;

    for (unsigned i = 0; i < x.thread_count; i++) {
        struct thread *thread = &x.threads[i];

        if (thread->block == EXPLORE_BLOCK_WAIT &&
            thread->blocked_on == address)
            waiters[count++] = thread;
    }
    return count == 0 ? NULL : waiters[explore_choose(count)];
}

void explore_unblock(const void *address, int count)
{
    for (int i = 0; i < count; i++) {
        struct thread *thread = choose_waiter(address);

        if (thread == NULL)
            return;
        thread->block = EXPLORE_RUNNABLE;
    }
}

/* ---- Threads. ---- */

static bool others_are_done(void)
{
    for (unsigned i = 1; i < x.thread_count; i++) {
        if (x.threads[i].block != EXPLORE_DONE)
            return false;
    }
    return true;
}

static void end_thread(void)
{
    unsigned self = x.self;

    begin_tick();
    x.threads[self].block = EXPLORE_DONE;
    x.threads[self].op = (struct explore_op){0};
    if (others_are_done() && x.threads[0].block == EXPLORE_BLOCK_JOIN)
        x.threads[0].block = EXPLORE_RUNNABLE;
    x.self = x.starter != NOBODY ? x.starter : pick_thread();
    x.starter = NOBODY;
    pirn__context_exit(&x.threads[self].context, &x.threads[x.self].context);
}

static void thread_entry(void *arg)
{
    struct thread *self = arg;

    self->fn(self->arg);
    explore_tls_end();
    end_thread();
}

static void make_thread(unsigned index, void (*fn)(void *arg), void *arg)
{
    struct thread *thread = &x.threads[index];
    void *stack = thread->stack;

    if (stack == NULL)
        stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *thread = (struct thread){.stack = stack, .fn = fn, .arg = arg};
    pirn__context_make(&thread->context, stack, STACK_SIZE, thread_entry,
                       thread, false);
}

void explore_thread(void (*fn)(void *arg), void *arg)
{
    unsigned starter = x.starter;
    unsigned started = x.thread_count;

    if (started == EXPLORE_THREADS)
        explore_fail(EXPLORE_TOO_LARGE, "too many threads", EXPLORE_PLACE);
    make_thread(started, fn, arg);
    /* The start happens before all that the thread does. */
    begin_tick();
    x.threads[started].clock = *explore_my_clock();
    x.thread_count++;
    x.alone = false;
    x.starter = x.self;
    switch_to(started);
    x.starter = starter;
}

void explore_join(void)
{
    x.threads[x.self].op = (struct explore_op){.place = EXPLORE_PLACE};
    if (!others_are_done())
        block(EXPLORE_BLOCK_JOIN, NULL);
    /* All that the threads did happens before what follows. */
    for (unsigned i = 1; i < x.thread_count; i++)
        explore_clock_join(explore_my_clock(), &x.threads[i].clock);
    x.alone = true;
    x.sleeping = 0;
}

static void body_entry(void *arg)
{
    (void)arg;
    x.body();
    explore_join();
    explore_tls_end();
    if (!x.options.may_leak && explore_heap_out() > 0)
        explore_fail(EXPLORE_LEAK, "memory is still allocated", EXPLORE_PLACE);
    leave();
}

/* ---- Executions. ---- */

/* One execution along the path. */
static void execute(void)
{
    explore_snapshot_restore();
    explore_memory_reset();
    explore_plain_reset();
    explore_heap_reset();
    explore_sys_reset();
    x.at = 0;
    x.sleeping = 0;
    x.now_ns = FIRST_TIME_NS;
    x.preemptions = 0;
    x.spurious = x.options.spurious;
    x.timeouts = x.options.timeouts;
    x.stale = x.options.stale;
    x.refusals = x.options.refusals;
    x.steps = 0;
    x.redundant = false;
    x.event_count = 0;
    x.rarity = x.walking ? 2u << draw(5) : 1;
    make_thread(0, body_entry, NULL);
    x.thread_count = 1;
    x.self = 0;
    x.alone = true;
    x.starter = NOBODY;
    x.active = true;
    pirn__context_switch(&x.engine, &x.threads[0].context);
    if (x.redundant)
        x.result.redundant++;
    else
        x.result.executions++;
}

static uint64_t real_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Turn the path to the next alternative; false when all have been tried, or the
 * time is over. */
static bool advance(void)
{
    x.late = x.end_ns != 0 && real_ns() >= x.end_ns;
    if (x.late)
        return false;
    if (x.walking)
        x.depth = 0;
    /* An execution that was cut short leaves later choices of the path
     * unmade; they belong to it and are over. */
    if (x.depth > x.at)
        x.depth = x.at;
    while (x.depth > 0) {
        struct choice *last = &x.choices[x.depth - 1];

        if (last->index + 1 < last->count) {
            last->index++;
            return true;
        }
        x.depth--;
    }
    return x.walking;
}

static void print_trace(void)
{
    for (unsigned i = 0; i < x.event_count; i++)
        explore_print_event(&x.events[i]);
    fprintf(stderr, "%sPIRN_MODEL_PATH=\"%s",
            x.end_ns != 0 ? "PIRN_MODEL_SECONDS=1 " : "",
            x.walking ? "walk " : "");
    for (unsigned i = 0; i < x.at && i < x.depth; i++)
        fprintf(stderr, "%s%u", i > 0 ? " " : "", x.choices[i].index);
    fprintf(stderr, "\"\n");
}

static const char *finding_name(enum explore_finding finding)
{
    static const char *const names[] = {
        "clean",    "check failed", "data race",      "deadlock or lost wake",
        "livelock", "leak",         "use after free", "too large",
    };

    return names[finding];
}

static void print_finding(void)
{
    fprintf(stderr, "%s at ", finding_name(x.result.finding));
    explore_print_place(x.where);
    fprintf(stderr, ": %s, after %llu executions\n", x.result.text,
            (unsigned long long)x.result.executions);
    print_trace();
}

/* An assertion of the library ends the process: show how it came to that. */
static const char *show_trace_on_abort(void)
{
    if (x.active) {
        x.active = false;
        print_trace();
    }
    return NULL;
}

/* Zero stands for the default, -1 for none. */
static void set_default(int *option, int value)
{
    if (*option == 0)
        *option = value;
    else if (*option < 0)
        *option = 0;
}

static void set_defaults(struct explore_options *options)
{
    set_default(&options->preemptions, DEFAULT_PREEMPTIONS);
    set_default(&options->spurious, 1);
    set_default(&options->timeouts, 1);
    set_default(&options->stale, 1000);
    set_default(&options->steps, 2000);
    if (options->executions == 0)
        options->executions = 20000000;
}

/* PIRN_MODEL_PATH="0 1 0 2": only that execution. */
static bool load_path(void)
{
    const char *text = getenv("PIRN_MODEL_PATH");
    char *end;

    x.depth = 0;
    if (text != NULL && strncmp(text, "walk ", 5) == 0) {
        x.walking = true;
        text += 5;
    }
    while (text != NULL && *text != '\0' && x.depth < MAX_CHOICES) {
        unsigned long index = strtoul(text, &end, 10);

        if (end == text)
            break;
        x.choices[x.depth++].index = (uint8_t)index;
        text = end;
    }
    return x.depth > 0;
}

/* Once in the process. */
static void prepare(void)
{
    if (x.prepared)
        return;
    x.prepared = true;
    explore_snapshot_keep(&x, sizeof x);
    explore_memory_keep();
    explore_plain_keep();
    explore_heap_keep();
    pirn__abort_set_who(show_trace_on_abort);
}

struct explore_result explore_run(void (*body)(void),
                                  const struct explore_options *options,
                                  bool quiet)
{
    prepare();
    x.options = *options;
    set_defaults(&x.options);
    x.body = body;
    x.result = (struct explore_result){0};
    memset(x.outcomes, 0, sizeof x.outcomes);
    x.replaying = load_path();
    explore_sys_install();
    explore_snapshot_take();
    do {
        execute();
        if (x.result.executions + x.result.redundant > x.options.executions)
            x.result.finding = EXPLORE_TOO_LARGE;
    } while (x.result.finding == EXPLORE_CLEAN && !x.replaying && advance());
    explore_snapshot_restore();
    explore_sys_remove();
    if (x.result.finding != EXPLORE_CLEAN && !quiet)
        print_finding();
    return x.result;
}

void explore_outcome(unsigned outcome)
{
    x.outcomes[outcome / 64 % EXPLORE_OUTCOME_WORDS] |= UINT64_C(1)
                                                        << outcome % 64;
}

const uint64_t *explore_outcomes(void)
{
    return x.outcomes;
}

/* Go on until `seconds` from now. */
static struct explore_result search_for(double seconds, void (*body)(void),
                                        const struct explore_options *options,
                                        bool quiet)
{
    struct explore_result result;

    x.end_ns = real_ns() + (uint64_t)(seconds * 1e9);
    result = explore_run(body, options, quiet);
    x.end_ns = 0;
    return result;
}

static struct explore_result walk_for(double seconds, void (*body)(void),
                                      const struct explore_options *options,
                                      bool quiet)
{
    struct explore_result result;

    x.walking = true;
    x.random = test_seed() | 1;
    result = search_for(seconds, body, options, quiet);
    x.walking = false;
    return result;
}

static int one_more(int preemptions)
{
    if (preemptions == 0)
        return DEFAULT_PREEMPTIONS + 1;
    return preemptions < 0 ? 1 : preemptions + 1;
}

struct explore_result explore_beyond(void (*body)(void),
                                     const struct explore_options *options,
                                     double seconds, bool quiet)
{
    struct explore_options more = *options;
    struct explore_result result, walks;

    more.preemptions = one_more(options->preemptions);
    more.executions = UINT64_MAX;
    result = search_for(seconds / 2, body, &more, quiet);
    if (result.finding != EXPLORE_CLEAN || !x.late)
        return result;
    walks = walk_for(seconds / 2, body, &more, quiet);
    walks.walks = walks.executions;
    walks.executions += result.executions;
    walks.redundant += result.redundant;
    return walks;
}

static void expect_clean_beyond(const char *name, void (*body)(void),
                                const struct explore_options *options,
                                double seconds)
{
    struct explore_result result =
        explore_beyond(body, options, seconds, false);

    printf("%s: %llu executions beyond, %llu redundant, %llu walks, "
           "preemptions %d\n",
           name, (unsigned long long)result.executions,
           (unsigned long long)result.redundant,
           (unsigned long long)result.walks, x.options.preemptions);
    EXPECT_EQ(EXPLORE_CLEAN, result.finding);
}

void explore_expect_clean(const char *name, void (*body)(void),
                          const struct explore_options *options)
{
    const char *seconds = getenv("PIRN_MODEL_SECONDS");
    struct explore_result result;

    if (seconds != NULL) {
        expect_clean_beyond(name, body, options, strtod(seconds, NULL));
        return;
    }
    result = explore_run(body, options, false);
    printf("%s: %llu executions, %llu redundant, preemptions %d\n", name,
           (unsigned long long)result.executions,
           (unsigned long long)result.redundant, x.options.preemptions);
    EXPECT_EQ(EXPLORE_CLEAN, result.finding);
}
