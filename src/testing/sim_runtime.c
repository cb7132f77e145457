/* SPDX-License-Identifier: MIT */
/* src/testing/sim_runtime.c - the runtimes of a simulated program.
 *
 * A program makes its runtimes as it always does.  Before one is made its options
 * are changed: what the program has left to the system is drawn from the seed, and
 * its allocator and its hooks get company that tells the checkers.
 *
 * The record of a runtime lives until its memory is back; that may be after the
 * run, or never, and then it stays behind with it.
 */
#include "testing/sim.h"

#include "sched/runtime.h"

struct guest {
    pirn_alloc alloc;     /* that the runtime knows */
    pirn_alloc own_alloc; /* that the program wants */
    pirn_runtime_options own;
    uint64_t bytes; /* that the runtime has */
    bool is_done;
    bool is_left; /* the run is over */
    struct guest *next;
};

static struct guest *guests;

static void free_guest(struct guest *guest)
{
    pirn__sim_give(guest, sizeof *guest);
}

/* Memory. */

static void *guest_take(void *ctx, size_t size, size_t align)
{
    struct guest *guest = ctx;
    void *memory;

    pirn_sim_pause("take", size);
    memory = guest->own_alloc.take(guest->own_alloc.ctx, size, align);
    if (memory == NULL)
        return NULL;
    guest->bytes += size;
    pirn__sim_see(PIRN_SIM_MEMORY_TAKEN, size);
    return memory;
}

static void guest_give(void *ctx, void *memory, size_t size, size_t align)
{
    struct guest *guest = ctx;

    pirn_sim_pause("give", size);
    guest->bytes -= size;
    pirn__sim_see(PIRN_SIM_MEMORY_GIVEN, size);
    guest->own_alloc.give(guest->own_alloc.ctx, memory, size, align);
}

static void guest_done(void *ctx)
{
    struct guest *guest = ctx;

    guest->is_done = true;
    if (guest->own_alloc.done != NULL)
        guest->own_alloc.done(guest->own_alloc.ctx);
    if (guest->is_left)
        free_guest(guest);
}

/* Hooks. */

static void on_thread(struct guest *guest, pirn_worker_fn *fn, const char *what,
                      uint32_t worker)
{
    pirn_sim_pause(what, worker);
    if (fn != NULL)
        fn(guest->own.hook_arg, worker);
}

static void on_thread_start(void *arg, uint32_t worker)
{
    struct guest *guest = arg;

    on_thread(guest, guest->own.on_thread_start, "worker starts", worker);
}

static void on_thread_stop(void *arg, uint32_t worker)
{
    struct guest *guest = arg;

    on_thread(guest, guest->own.on_thread_stop, "worker stops", worker);
}

static void on_park(void *arg, uint32_t worker)
{
    struct guest *guest = arg;

    on_thread(guest, guest->own.on_park, "worker parks", worker);
}

static void on_unpark(void *arg, uint32_t worker)
{
    struct guest *guest = arg;

    on_thread(guest, guest->own.on_unpark, "worker unparks", worker);
}

static void on_task_spawn(void *arg, const pirn_task_event *event)
{
    struct guest *guest = arg;

    pirn__sim_see(PIRN_SIM_TASK_SPAWNED, event->id.value);
    pirn_sim_pause("task spawned", 0);
    if (guest->own.on_task_spawn != NULL)
        guest->own.on_task_spawn(guest->own.hook_arg, event);
}

/* One that was ended by force, or has panicked, leaves its stack behind. */
static void on_task_end(void *arg, const pirn_task_event *event)
{
    struct guest *guest = arg;

    if (event->outcome == PIRN_EABORTED || event->outcome == PIRN_EPANIC)
        pirn__sim_see(PIRN_SIM_TASK_ABORTED, 0);
    pirn__sim_see(PIRN_SIM_TASK_ENDED, event->id.value);
    pirn_sim_pause("task ended", (uint64_t)event->outcome);
    if (guest->own.on_task_end != NULL)
        guest->own.on_task_end(guest->own.hook_arg, event);
}

/* Many runs would print many lines. */
static void on_failure(void *arg, const pirn_failure *failure)
{
    struct guest *guest = arg;

    pirn_sim_pause("failure", (uint64_t)failure->outcome);
    if (guest->own.on_failure != NULL)
        guest->own.on_failure(guest->own.on_failure_arg, failure);
}

/* Options. */

/* What the program has left to the system. */
static void draw(const pirn_runtime_options *given,
                 struct pirn__options *options)
{
    enum { SHARED_INTERVAL = 61, EVENT_INTERVAL = 128 };
    pirn_runtime_options *set = &options->set;
    bool is_auto = given->workers == PIRN_WORKERS_AUTO ||
                   (given->workers == 0 && set->workers != 0);

    if (is_auto)
        set->workers = pirn__sim_options()->workers;
    if (is_auto && set->workers == 0)
        set->workers = 1;
    /* Most programs end if they cannot begin, and that would be all. */
    if (is_auto)
        pirn__sim_spare_threads(set->workers);
    if (is_auto && given->pool == PIRN_POOL_STEALABLE)
        set->pool = pirn__sim_options()->computational != 0
                        ? PIRN_POOL_COMPUTATIONAL
                        : PIRN_POOL_STEALABLE;
    if (given->seed == 0)
        set->seed = 1 + pirn_sim_below(UINT32_MAX);
    if (given->shared_interval == 0)
        set->shared_interval = 1 + pirn_sim_below(SHARED_INTERVAL);
    if (given->event_interval == 0)
        set->event_interval = 1 + pirn_sim_below(EVENT_INTERVAL);
    if (!given->lifo_off)
        set->lifo_off = pirn_sim_chance(200);
}

static void adjust(const pirn_runtime_options *given,
                   struct pirn__options *options)
{
    static const pirn_runtime_options defaults;
    pirn_runtime_options *set = &options->set;
    struct guest *guest;

    if (!pirn__sim_is_on())
        return;
    guest = pirn__sim_take(sizeof *guest);
    guest->own = *set;
    guest->own_alloc = *set->alloc;
    guest->next = guests;
    guests = guest;
    draw(given != NULL ? given : &defaults, options);
    guest->alloc = (pirn_alloc){.take = guest_take,
                                .give = guest_give,
                                .done = guest_done,
                                .ctx = guest};
    set->alloc = &guest->alloc;
    set->on_thread_start = on_thread_start;
    set->on_thread_stop = on_thread_stop;
    set->on_park = on_park;
    set->on_unpark = on_unpark;
    set->on_task_spawn = on_task_spawn;
    set->on_task_end = on_task_end;
    set->hook_arg = guest;
    set->on_failure = on_failure;
    set->on_failure_arg = guest;
    /* The handler needs a stack for each thread of the system. */
    set->overflow_report = false;
}

void pirn__sim_runtimes_begin(void)
{
    pirn__runtime_set_adjust(adjust);
}

void pirn__sim_runtimes_end(void)
{
    pirn__runtime_set_adjust(NULL);
    /* Ends: each is taken out. */
    while (guests != NULL) {
        struct guest *guest = guests;

        guests = guest->next;
        guest->is_left = true;
        if (guest->is_done || guest->bytes == 0)
            free_guest(guest);
    }
}
