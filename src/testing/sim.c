/* SPDX-License-Identifier: MIT */
/* src/testing/sim.c - a run in the simulated world, and what programs ask.
 *
 * The process has one world at a time.  Who takes its state from IDLE to ON may
 * touch everything behind sim.h until it is IDLE again.  A run that was given up
 * leaves virtual threads behind, in the middle of anything, with locks of the
 * process in their hands: then the state stays GIVEN_UP.
 */
#include "testing/sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/directory.h"
#include "base/prng.h"
#include "sys/heap.h"
#include "task/local.h"

enum { IDLE, ON, GIVEN_UP };

static PIRN_ATOMIC(uint32_t) state;

static struct {
    struct pirn__prng prng;
    pirn_sim_options options;
    pirn_sim_result *result;
    bool without_memory;
} run;

const pirn_sim_options *pirn__sim_options(void)
{
    return &run.options;
}

bool pirn_sim_is_on(void)
{
    return pirn__sim_is_on();
}

/* Chance. */

uint64_t pirn_sim_random(void)
{
    return run.result != NULL ? pirn__prng_next(&run.prng)
                              : pirn__sys->random();
}

uint32_t pirn_sim_below(uint32_t limit)
{
    return (uint32_t)((pirn_sim_random() >> 32) * limit >> 32);
}

bool pirn_sim_chance(uint32_t per_thousand)
{
    return pirn_sim_below(1000) < per_thousand;
}

bool pirn__sim_fault(uint32_t per_thousand)
{
    return !pirn_sim_is_calm() && pirn_sim_chance(per_thousand);
}

/* Findings. */

void pirn__sim_find(enum pirn_sim_finding finding, const char *checker,
                    const char *text)
{
    pirn_sim_result *result = run.result;

    if (result == NULL || result->finding != PIRN_SIM_CLEAN)
        return;
    result->finding = finding;
    (void)snprintf(result->checker, sizeof result->checker, "%s", checker);
    (void)snprintf(result->text, sizeof result->text, "%s", text);
}

static void blame(const char *checker, const char *format, va_list args)
{
    char text[sizeof run.result->text];

    (void)vsnprintf(text, sizeof text, format, args);
    pirn__sim_find(PIRN_SIM_CHECK_FAILED, checker, text);
}

void pirn__sim_blame(const char *checker, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    blame(checker, format, args);
    va_end(args);
}

static const char *who_checks(void)
{
    const char *speaker = pirn__sim_speaker();

    return speaker != NULL ? speaker : "program";
}

void pirn_sim_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (format != NULL)
        blame(who_checks(), format, args);
    va_end(args);
}

bool pirn_sim_check(bool condition, const char *text)
{
    if (!condition)
        pirn__sim_find(PIRN_SIM_CHECK_FAILED, who_checks(),
                       text != NULL ? text : "");
    return condition;
}

void pirn__sim_give_up(enum pirn_sim_finding finding, const char *text)
{
    /* What was found before has led to it, perhaps. */
    pirn__sim_find(finding, "world", text);
    run.result->finding = finding;
    pirn__sim_leave(true);
}

/* Memory. */

static void *take(size_t size)
{
    const pirn_alloc *alloc = &pirn__alloc_malloc;
    void *memory = alloc->take(alloc->ctx, size, _Alignof(max_align_t));

    if (memory != NULL)
        memset(memory, 0, size);
    return memory;
}

void *pirn__sim_take(size_t size)
{
    void *memory = take(size);

    if (memory != NULL || !pirn__sim_is_on())
        return memory;
    run.without_memory = true;
    pirn__sim_leave(true);
}

void pirn__sim_give(void *memory, size_t size)
{
    const pirn_alloc *alloc = &pirn__alloc_malloc;

    if (memory != NULL)
        alloc->give(alloc->ctx, memory, size, _Alignof(max_align_t));
}

void *pirn__sim_grow(void *items, size_t *room, size_t size)
{
    enum { LEAST = 16 };
    size_t before = *room * size;
    size_t after = before == 0 ? LEAST * size : 2 * before;
    void *moved = pirn__sim_take(after);

    if (before > 0)
        memcpy(moved, items, before);
    pirn__sim_give(items, before);
    *room = after / size;
    return moved;
}

/* The run. */

static int check_case(const pirn_sim_case *scenario)
{
    if (scenario == NULL || scenario->program == NULL ||
        !pirn__sim_options_are_right(&scenario->options))
        return -EINVAL;
    if (scenario->checkers == NULL && scenario->checker_count > 0)
        return -EINVAL;
    for (size_t i = 0; i < scenario->checker_count; i++) {
        if (scenario->checkers[i].name == NULL)
            return -EINVAL;
    }
    return 0;
}

int pirn__sim_may_begin(const pirn_sim_case *scenario)
{
    struct pirn__local *local = pirn__local();
    int rc = check_case(scenario);

    if (rc < 0)
        return rc;
    if (local == NULL)
        return -ENOMEM;
    if (local->turn != NULL || local->no_suspend > 0)
        return -EDEADLK;
    /* relaxed: a look; whoever begins takes it. */
    return pirn__load(&state, relaxed) == IDLE ? 0 : -EBUSY;
}

static void run_program(void *arg)
{
    const pirn_sim_case *scenario = arg;
    int rc = scenario->program(scenario->arg);

    if (rc < 0)
        pirn__sim_blame("program", "it returns %s", pirn_err_name(rc));
    pirn__sim_wait_for_others();
    pirn__sim_checkers_ask();
}

/* What each part needs; those that need no memory can be ended anyway. */
static int begin(const pirn_sim_case *scenario)
{
    int rc = pirn__sim_threads_begin();

    if (rc == 0)
        rc = pirn__sim_files_begin();
    if (rc == 0)
        rc = pirn__sim_checkers_begin(scenario);
    if (rc < 0)
        return rc;
    pirn__sim_net_begin();
    pirn__sim_runtimes_begin();
    return 0;
}

static void end(void)
{
    pirn__sim_runtimes_end();
    pirn__sim_watches_end();
    pirn__sim_checkers_end();
    pirn__sim_net_end();
    pirn__sim_files_end();
    pirn__sim_threads_end();
}

static int run_once(const pirn_sim_case *scenario)
{
    int rc = begin(scenario);

    if (rc == 0) {
        pirn__sim_sys_install();
        rc = pirn__sim_enter(run_program, (void *)scenario);
        pirn__sim_sys_remove();
        pirn__sim_tell(run.result);
    }
    end();
    if (run.without_memory)
        return -ENOMEM;
    if (rc < 0)
        return rc;
    return run.result->finding == PIRN_SIM_CLEAN ? 0 : PIRN_EFAILED;
}

static bool is_given_up(const pirn_sim_result *result)
{
    return run.without_memory || result->finding > PIRN_SIM_CHECK_FAILED;
}

static void add_up(pirn_sim_result *result)
{
    result->runs++;
    result->all_steps += result->steps;
    result->all_ns += result->ns;
    result->all_hash = result->all_hash * 31 + result->hash;
}

/* Everything but the sums. */
static void clear(pirn_sim_result *result, uint64_t seed)
{
    result->finding = PIRN_SIM_CLEAN;
    result->seed = seed;
    result->hash = 0;
    result->steps = 0;
    result->ns = 0;
    result->checker[0] = '\0';
    result->text[0] = '\0';
}

int pirn__sim_run(const pirn_sim_case *scenario, uint64_t seed,
                  pirn_sim_result *result)
{
    uint32_t idle = IDLE;
    int rc;

    /* acquire [sim.state]: what the last run left is ours to use. */
    if (!pirn__cas(&state, &idle, ON, acquire, relaxed))
        return -EBUSY;
    clear(result, seed);
    memset(&run, 0, sizeof run);
    run.result = result;
    pirn__directory_sort_free();
    pirn__prng_seed(&run.prng, seed);
    run.options = scenario->options;
    pirn__sim_options_draw(&run.options);
    result->options = run.options;
    rc = run_once(scenario);
    add_up(result);
    run.result = NULL;
    /* release [sim.state]: what we leave is the next one's to use. */
    pirn__store(&state, is_given_up(result) ? GIVEN_UP : IDLE, release);
    return rc;
}

int pirn_sim_run(const pirn_sim_case *scenario, uint64_t seed,
                 pirn_sim_result *result)
{
    pirn_sim_result own;
    int rc = pirn__sim_may_begin(scenario);

    if (rc < 0)
        return rc;
    if (result == NULL)
        result = &own;
    *result = (pirn_sim_result){.finding = PIRN_SIM_CLEAN};
    return pirn__sim_run(scenario, seed, result);
}
