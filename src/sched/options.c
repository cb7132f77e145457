/* SPDX-License-Identifier: MIT */
/* src/sched/options.c - see options.h. */
#include "sched/options.h"

#include <errno.h>
#include <string.h>

#include "sched/runtime.h"
#include "sys/cpu.h"
#include "sys/environment.h"
#include "sys/heap.h"
#include "task/state.h"

enum {
    OPTIONS_STACK_SIZE = 64 * 1024,
    OPTIONS_STACK_SIZE_MIN = 16 * 1024,
    OPTIONS_STACK_SIZE_MAX = 1 << 30,
    OPTIONS_WORKER_STACK_SIZE_MIN = 64 * 1024,
    OPTIONS_BLOCKING_THREADS = 64,
    OPTIONS_BLOCKING_THREADS_MAX = 4096,
    OPTIONS_BLOCKING_QUEUE = 1024,
    OPTIONS_SHARED_INTERVAL = 61,
    OPTIONS_INTERVAL_MAX = 1000000,
};

/* Left at its default, or in the range. */
static bool is_in(uint64_t value, uint64_t low, uint64_t high)
{
    return value == 0 || (value >= low && value <= high);
}

static bool is_worker_name(const char *name)
{
    size_t size = name == NULL ? 1 : strnlen(name, PIRN__WORKER_NAME_SIZE);

    return size > 0 && size < PIRN__WORKER_NAME_SIZE;
}

/* The name of an option that is wrong, or NULL. */
static const char *wrong_option(const pirn_runtime_options *given)
{
    const pirn_alloc *alloc = given->alloc;

    if (alloc != NULL && (alloc->take == NULL || alloc->give == NULL))
        return "alloc";
    if (!is_in(given->stack_size_bytes, OPTIONS_STACK_SIZE_MIN,
               OPTIONS_STACK_SIZE_MAX))
        return "stack_size_bytes";
    if (given->blocking_threads > OPTIONS_BLOCKING_THREADS_MAX)
        return "blocking_threads";
    if (given->workers != PIRN_WORKERS_AUTO &&
        given->workers > PIRN__HOME_LIMIT)
        return "workers";
    if ((unsigned)given->pool > PIRN_POOL_COMPUTATIONAL)
        return "pool";
    if (!is_worker_name(given->worker_name))
        return "worker_name";
    if (!is_in(given->worker_stack_size_bytes, OPTIONS_WORKER_STACK_SIZE_MIN,
               OPTIONS_STACK_SIZE_MAX))
        return "worker_stack_size_bytes";
    if (given->shared_interval > OPTIONS_INTERVAL_MAX)
        return "shared_interval";
    return given->event_interval > OPTIONS_INTERVAL_MAX ? "event_interval"
                                                        : NULL;
}

/* Where an option may come from besides the program. */
struct variable {
    const char *name;
    uint64_t low;
    uint64_t high;
};

enum variable_index {
    VARIABLE_STACK_SIZE,
    VARIABLE_BLOCKING_THREADS,
    VARIABLE_WORKERS,
    VARIABLE_SEED,
    VARIABLE_SHARED_INTERVAL,
    VARIABLE_EVENT_INTERVAL,
    VARIABLE_LIFO,
    VARIABLE_HISTOGRAMS,
    VARIABLE_COUNT,
};

static const struct variable variables[VARIABLE_COUNT] = {
    [VARIABLE_STACK_SIZE] = {"PIRN_STACK_SIZE", OPTIONS_STACK_SIZE_MIN,
                             OPTIONS_STACK_SIZE_MAX},
    [VARIABLE_BLOCKING_THREADS] = {"PIRN_BLOCKING_THREADS", 1,
                                   OPTIONS_BLOCKING_THREADS_MAX},
    [VARIABLE_WORKERS] = {"PIRN_WORKERS", 1, PIRN__HOME_LIMIT},
    [VARIABLE_SEED] = {"PIRN_SEED", 0, UINT64_MAX},
    [VARIABLE_SHARED_INTERVAL] = {"PIRN_SHARED_INTERVAL", 1,
                                  OPTIONS_INTERVAL_MAX},
    [VARIABLE_EVENT_INTERVAL] = {"PIRN_EVENT_INTERVAL", 1,
                                 OPTIONS_INTERVAL_MAX},
    [VARIABLE_LIFO] = {"PIRN_LIFO", 0, 1},
    [VARIABLE_HISTOGRAMS] = {"PIRN_HISTOGRAMS", 0, 1},
};

/* `value`, unless it is the default `unset`: then what the variable says, if it
 * says anything.  *wrong becomes the name of the first wrong one. */
static uint64_t or_variable(const char **wrong, uint64_t value, uint64_t unset,
                            enum variable_index index)
{
    const struct variable *variable = &variables[index];
    int rc = 0;

    if (value == unset)
        rc = pirn__environment_number(variable->name, variable->low,
                                      variable->high, &value);
    if (rc < 0 && *wrong == NULL)
        *wrong = variable->name;
    return value;
}

/* The same for the kind of the pool, of a runtime that has one. */
static void pool_or_variable(const char **wrong, pirn_runtime_options *set)
{
    static const char *const kinds[] = {
        [PIRN_POOL_STEALABLE] = "stealable",
        [PIRN_POOL_COMPUTATIONAL] = "computational",
    };
    uint32_t kind = PIRN_POOL_STEALABLE;

    if (set->workers == 0 || set->pool != PIRN_POOL_STEALABLE)
        return;
    if (pirn__environment_word("PIRN_POOL", kinds, 2, &kind) < 0 &&
        *wrong == NULL)
        *wrong = "PIRN_POOL";
    set->pool = (enum pirn_pool_kind)kind;
}

/* The name of a variable that is wrong, or NULL. */
static const char *apply_environment(pirn_runtime_options *set)
{
    const char *wrong = NULL;
    uint64_t lifo = set->lifo_off ? 0 : 1;

    set->stack_size_bytes = (size_t)or_variable(&wrong, set->stack_size_bytes,
                                                0, VARIABLE_STACK_SIZE);
    set->blocking_threads = (uint32_t)or_variable(
        &wrong, set->blocking_threads, 0, VARIABLE_BLOCKING_THREADS);
    set->workers = (uint32_t)or_variable(&wrong, set->workers,
                                         PIRN_WORKERS_AUTO, VARIABLE_WORKERS);
    pool_or_variable(&wrong, set);
    set->seed = or_variable(&wrong, set->seed, 0, VARIABLE_SEED);
    set->shared_interval = (uint32_t)or_variable(&wrong, set->shared_interval, 0,
                                                 VARIABLE_SHARED_INTERVAL);
    set->event_interval = (uint32_t)or_variable(&wrong, set->event_interval, 0,
                                                VARIABLE_EVENT_INTERVAL);
    set->lifo_off = or_variable(&wrong, lifo, 1, VARIABLE_LIFO) == 0;
    set->histograms =
        or_variable(&wrong, set->histograms, 0, VARIABLE_HISTOGRAMS) != 0;
    return wrong;
}

static const char *resolve_workers(pirn_runtime_options *set, bool was_auto)
{
    struct pirn__cpu_count count;

    if (set->workers == 0)
        return "";
    if (set->workers != PIRN_WORKERS_AUTO)
        return was_auto ? "environment" : "option";
    count = pirn__cpu_workers();
    set->workers = count.count;
    return count.source;
}

static void apply_defaults(pirn_runtime_options *set)
{
    if (set->alloc == NULL)
        set->alloc = &pirn__alloc_malloc;
    if (set->stack_size_bytes == 0)
        set->stack_size_bytes = OPTIONS_STACK_SIZE;
    if (set->blocking_threads == 0)
        set->blocking_threads = OPTIONS_BLOCKING_THREADS;
    if (set->blocking_queue == 0)
        set->blocking_queue = OPTIONS_BLOCKING_QUEUE;
    if (set->worker_name == NULL)
        set->worker_name = "pirn-worker";
    if (set->shared_interval == 0)
        set->shared_interval = set->workers == 0 ? PIRN__INBOX_INTERVAL
                                                 : OPTIONS_SHARED_INTERVAL;
    if (set->event_interval == 0)
        set->event_interval = PIRN__EVENT_INTERVAL;
}

int pirn__options_resolve(const pirn_runtime_options *given,
                          struct pirn__options *out, const char **field)
{
    static const pirn_runtime_options defaults;
    const char *wrong;
    bool was_auto;

    if (given == NULL)
        given = &defaults;
    *out = (struct pirn__options){.set = *given};
    if (given->workers == 0 && given->pool == PIRN_POOL_COMPUTATIONAL)
        out->set.workers = PIRN_WORKERS_AUTO;
    was_auto = out->set.workers == PIRN_WORKERS_AUTO;
    wrong = wrong_option(given);
    if (wrong == NULL)
        wrong = apply_environment(&out->set);
    if (field != NULL)
        *field = wrong;
    if (wrong != NULL)
        return -EINVAL;
    out->workers_source = resolve_workers(&out->set, was_auto);
    apply_defaults(&out->set);
    return 0;
}

int pirn_runtime_check(const pirn_runtime_options *options, const char **field)
{
    struct pirn__options resolved;

    return pirn__options_resolve(options, &resolved, field);
}
