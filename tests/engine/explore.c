/* SPDX-License-Identifier: MIT */
/* tests/engine/explore.c - the search of the explorer.
 *
 * An execution is a path through choices: which thread makes the next visible
 * operation, and which store a load sees.  The path of the last execution is
 * kept; the next one repeats it up to the last choice that has an alternative
 * left, takes that, and goes on with first alternatives.
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
 */
#include "engine/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "engine/explore_internal.h"
#include "sys/switch.h"

enum {
    MAX_CHOICES = 4096,
    MAX_TRACE = 4096,
    STACK_SIZE = 256 * 1024,
};

struct thread {
    struct pirn__context context;
    void *stack;
    void (*fn)(void *arg);
    void *arg;
    enum explore_block block;
    const void *blocked_on;
    struct explore_op op; /* what it is about to do */
    struct explore_clock clock;
    void *tls;
};

struct choice {
    uint8_t count;
    uint8_t index;
    bool schedule;
    uint8_t threads[EXPLORE_THREADS]; /* of a schedule */
    uint8_t costs[EXPLORE_THREADS];
    uint8_t sleeping; /* threads asleep before the choice, as bits */
};

struct event {
    uint8_t thread;
    const char *what;
    const void *address;
    uint64_t value;
    struct explore_place place;
};

static struct {
    bool active;
    struct explore_options options;
    void (*body)(void);
    struct pirn__context engine;
    struct thread threads[EXPLORE_THREADS];
    unsigned thread_count;
    unsigned self;
    /* The path. */
    struct choice choices[MAX_CHOICES];
    unsigned depth;  /* choices in the path */
    unsigned at;     /* choices made in this execution */
    /* This execution. */
    uint8_t sleeping;
    int preemptions;
    int spurious;
    int steps;
    bool redundant;
    bool replaying; /* a path from outside: only indices are known */
    struct explore_result result;
    struct explore_place where;
    unsigned event_count;
    struct event events[MAX_TRACE];
    uint64_t outcomes;
} x;

bool explore_active(void)
{
    return x.active;
}

unsigned explore_self(void)
{
    return x.self;
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
    if (!x.active || x.event_count == MAX_TRACE)
        return;
    x.events[x.event_count++] =
        (struct event){(uint8_t)x.self, what, address, value, place};
}

/* Leave the execution; the stacks are simply forgotten. */
__attribute__((noreturn)) static void leave(void)
{
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

/* Choices. */

static struct choice *next_choice(void)
{
    if (x.at == MAX_CHOICES)
        explore_fail(EXPLORE_TOO_LARGE, "too many choices", EXPLORE_PLACE);
    return &x.choices[x.at++];
}

unsigned explore_choose(unsigned count)
{
    struct choice *choice;

    if (!x.active || count <= 1)
        return 0;
    choice = next_choice();
    if (x.at > x.depth) {
        *choice = (struct choice){.count = (uint8_t)count};
        x.depth = x.at;
    }
    return choice->index;
}

bool explore_spurious(void)
{
    if (!x.active || x.spurious == 0 || explore_choose(2) == 0)
        return false;
    x.spurious--;
    return true;
}

static bool dependent(const struct explore_op *a, const struct explore_op *b)
{
    return (a->write || b->write) && a->address < b->address + b->size &&
           b->address < a->address + a->size;
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

static bool is_runnable(unsigned thread)
{
    return x.threads[thread].block == EXPLORE_RUNNABLE;
}

/* Fill in who may go on; the running thread first. */
static void list_threads(struct choice *choice)
{
    bool free = !is_runnable(x.self);
    bool bounded = x.options.preemptions < EXPLORE_UNBOUNDED;

    choice->schedule = true;
    choice->sleeping = x.sleeping;
    for (unsigned i = 0; i < x.thread_count; i++) {
        unsigned thread = i == 0 ? x.self : i <= x.self ? i - 1 : i;
        uint8_t cost = thread == x.self || free ? 0 : 1;

        if (!is_runnable(thread) || (x.sleeping >> thread & 1) != 0)
            continue;
        if (bounded && x.preemptions + cost > x.options.preemptions)
            continue;
        choice->threads[choice->count] = (uint8_t)thread;
        choice->costs[choice->count++] = cost;
    }
}

/* Who sleeps in the chosen alternative. */
static uint8_t sleepers(const struct choice *choice)
{
    bool bounded = x.options.preemptions < EXPLORE_UNBOUNDED;
    uint8_t sleeping = choice->sleeping;

    for (unsigned i = 0; i < choice->index; i++) {
        if (!bounded || choice->costs[i] + 1 <= choice->costs[choice->index])
            sleeping |= (uint8_t)(1 << choice->threads[i]);
    }
    return sleeping;
}

static bool all_done(void)
{
    for (unsigned i = 0; i < x.thread_count; i++) {
        if (x.threads[i].block != EXPLORE_DONE)
            return false;
    }
    return true;
}

static bool any_runnable(void)
{
    for (unsigned i = 0; i < x.thread_count; i++) {
        if (is_runnable(i))
            return true;
    }
    return false;
}

/* Decide who makes the next operation. */
static unsigned pick_thread(void)
{
    struct choice *choice;
    unsigned taken;

    if (!any_runnable())
        explore_fail(EXPLORE_DEADLOCK, "nobody can go on",
                     x.threads[x.self].op.place);
    choice = next_choice();
    if (x.at > x.depth || x.replaying) {
        uint8_t index = x.replaying ? choice->index : 0;

        *choice = (struct choice){.index = index};
        list_threads(choice);
        if (choice->count == 0) {
            /* All sleep: whatever follows has been seen in another order. */
            x.at--;
            x.redundant = true;
            leave();
        }
        if (x.depth < x.at)
            x.depth = x.at;
    }
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

void explore_point(const struct explore_op *op)
{
    x.threads[x.self].op = *op;
    if (++x.steps > x.options.steps)
        explore_fail(EXPLORE_LIVELOCK, "it does not end", op->place);
    switch_to(pick_thread());
}

void explore_block(enum explore_block why, const void *address,
                   struct explore_place place)
{
    struct thread *self = &x.threads[x.self];

    self->block = why;
    self->blocked_on = address;
    self->op.place = place;
    switch_to(pick_thread());
}

int explore_unblock(enum explore_block why, const void *address, int count)
{
    int done = 0;

    for (unsigned i = 0; i < x.thread_count && done < count; i++) {
        struct thread *thread = &x.threads[i];

        if (thread->block == why && thread->blocked_on == address) {
            thread->block = EXPLORE_RUNNABLE;
            done++;
        }
    }
    return done;
}

/* Threads. */

static void end_thread(void)
{
    bool alone = true;

    x.threads[x.self].block = EXPLORE_DONE;
    if (all_done())
        leave();
    for (unsigned i = 1; i < x.thread_count; i++)
        alone = alone && x.threads[i].block == EXPLORE_DONE;
    if (alone)
        explore_unblock(EXPLORE_BLOCK_JOIN, NULL, 1);
    unsigned next = pick_thread();
    unsigned self = x.self;

    x.self = next;
    pirn__context_exit(&x.threads[self].context, &x.threads[next].context);
}

static void thread_entry(void *arg)
{
    struct thread *self = arg;

    self->fn(self->arg);
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
    thread->op.place = EXPLORE_PLACE;
    pirn__context_make(&thread->context, stack, STACK_SIZE, thread_entry,
                       thread, false);
}

void explore_thread(void (*fn)(void *arg), void *arg)
{
    struct explore_clock *clock = explore_my_clock();

    if (x.thread_count == EXPLORE_THREADS)
        explore_fail(EXPLORE_TOO_LARGE, "too many threads", EXPLORE_PLACE);
    make_thread(x.thread_count, fn, arg);
    /* The start happens before all that the thread does. */
    clock->at[x.self]++;
    x.threads[x.thread_count].clock = *clock;
    x.thread_count++;
}

void explore_join(void)
{
    bool running = false;

    for (unsigned i = 1; i < x.thread_count; i++)
        running = running || x.threads[i].block != EXPLORE_DONE;
    if (running)
        explore_block(EXPLORE_BLOCK_JOIN, NULL, EXPLORE_PLACE);
    /* All that the threads did happens before what follows. */
    for (unsigned i = 1; i < x.thread_count; i++)
        explore_clock_join(explore_my_clock(), &x.threads[i].clock);
    x.sleeping = 0;
}

static void body_entry(void *arg)
{
    (void)arg;
    x.body();
    if (!x.options.may_leak && explore_heap_out() > 0)
        explore_fail(EXPLORE_LEAK, "memory is still allocated", EXPLORE_PLACE);
}

/* One execution along the path. */
static void execute(void)
{
    x.at = 0;
    x.sleeping = 0;
    x.preemptions = 0;
    x.spurious = x.options.spurious;
    x.steps = 0;
    x.redundant = false;
    x.event_count = 0;
    explore_memory_reset();
    explore_sys_reset();
    make_thread(0, body_entry, NULL);
    x.thread_count = 1;
    x.self = 0;
    x.active = true;
    pirn__context_switch(&x.engine, &x.threads[0].context);
    x.active = false;
    if (x.redundant)
        x.result.redundant++;
    else
        x.result.executions++;
}

/* Turn the path to the next alternative; false when all have been tried. */
static bool advance(void)
{
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
    return false;
}

/* Findings as text. */

static void print_event(const struct event *event)
{
    const char *file = strrchr(event->place.file, '/');

    fprintf(stderr, "  %u%*s %-12s %p = %#llx  %s:%d\n", event->thread,
            event->thread * 4, "", event->what, event->address,
            (unsigned long long)event->value,
            file != NULL ? file + 1 : event->place.file, event->place.line);
}

static void print_trace(void)
{
    for (unsigned i = 0; i < x.event_count; i++)
        print_event(&x.events[i]);
    fprintf(stderr, "path:");
    for (unsigned i = 0; i < x.at && i < x.depth; i++)
        fprintf(stderr, " %u", x.choices[i].index);
    fprintf(stderr, "\n");
}

/* An assertion of the library ends the process: show how it came to that. */
static const char *show_trace_on_abort(void)
{
    if (x.active)
        print_trace();
    return NULL;
}

static const char *finding_name(enum explore_finding finding)
{
    static const char *const names[] = {
        "clean",    "check failed", "data race",      "deadlock or lost wake",
        "livelock", "leak",         "use after free", "too large",
    };

    return names[finding];
}

static void set_defaults(struct explore_options *options)
{
    if (options->preemptions == 0)
        options->preemptions = 2;
    if (options->spurious == 0)
        options->spurious = 1;
    if (options->spurious < 0)
        options->spurious = 0;
    if (options->steps == 0)
        options->steps = 2000;
    if (options->executions == 0)
        options->executions = 20000000;
}

/* PIRN_MODEL_PATH="0 1 0 2": only that execution. */
static bool load_path(void)
{
    const char *text = getenv("PIRN_MODEL_PATH");
    char *end;

    x.depth = 0;
    while (text != NULL && *text != '\0' && x.depth < MAX_CHOICES) {
        unsigned long index = strtoul(text, &end, 10);

        if (end == text)
            break;
        x.choices[x.depth++].index = (uint8_t)index;
        text = end;
    }
    return x.depth > 0;
}

struct explore_result explore_run(void (*body)(void),
                                  const struct explore_options *options,
                                  bool quiet)
{
    x.options = *options;
    set_defaults(&x.options);
    x.body = body;
    x.result = (struct explore_result){0};
    x.outcomes = 0;
    x.replaying = load_path();
    explore_sys_install();
    pirn__abort_set_who(show_trace_on_abort);
    do {
        execute();
        if (x.result.executions + x.result.redundant > x.options.executions)
            x.result.finding = EXPLORE_TOO_LARGE;
    } while (x.result.finding == EXPLORE_CLEAN && !x.replaying && advance());
    explore_sys_remove();
    if (x.result.finding != EXPLORE_CLEAN && !quiet) {
        fprintf(stderr, "%s at %s:%d: %s, after %llu executions\n",
                finding_name(x.result.finding), x.where.file, x.where.line,
                x.result.text, (unsigned long long)x.result.executions);
        print_trace();
    }
    return x.result;
}

void explore_outcome(unsigned outcome)
{
    x.outcomes |= UINT64_C(1) << outcome;
}

uint64_t explore_outcomes(void)
{
    return x.outcomes;
}

void explore_expect_clean(const char *name, void (*body)(void),
                          const struct explore_options *options)
{
    struct explore_result result = explore_run(body, options, false);

    printf("%s: %llu executions, %llu redundant, preemptions %d\n", name,
           (unsigned long long)result.executions,
           (unsigned long long)result.redundant,
           options->preemptions == 0 ? 2 : options->preemptions);
    EXPECT_EQ(EXPLORE_CLEAN, result.finding);
}
