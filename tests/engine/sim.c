/* SPDX-License-Identifier: MIT */
/* tests/engine/sim.c - stories are run, and what is found is printed.
 *
 * What belongs to a story, its own options drawn, is in memory that a child
 * shares, so that they are known of a run that ended the process.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/sim_internal.h"
#include "sys/child.h"

_Static_assert(offsetof(struct sim_options, clients) ==
                   sizeof(pirn_sim_options),
               "a story's options begin as every program's do");

struct telling {
    sim_story_fn *story;
    struct sim_options wanted;
    struct sim_options drawn;
    pirn_sim_case scenario;
    pirn_sim_result result;
    uint64_t hash_before; /* of the batch before */
    uint64_t seed, seeds;
};

static struct telling *told; /* what runs, or ran last */

const struct sim_options *sim_options(void)
{
    return &told->drawn;
}

/* Drawn always, so that the other choices are the same. */
static uint32_t draw(const char *name, uint32_t wanted, uint32_t most)
{
    uint32_t drawn = 1 + sim_below(most);
    uint32_t value = pirn__sim_told(name);

    if (value == 0)
        value = wanted;
    if (value == 0)
        value = drawn;
    return value == SIM_NONE ? 0 : value;
}

static int tell(void *arg)
{
    enum { CLIENTS = 6, REQUESTS = 8 };
    struct sim_options *drawn = &told->drawn;

    (void)arg;
    memcpy(drawn, pirn__sim_options(), sizeof(pirn_sim_options));
    drawn->clients = draw("clients", told->wanted.clients, CLIENTS);
    drawn->requests = draw("requests", told->wanted.requests, REQUESTS);
    drawn->plant = told->wanted.plant;
    sim_plant_begin();
    sim_preempt_begin();
    told->story();
    sim_preempt_end();
    return 0;
}

/* NULL, and a failure of the test, without memory. */
static struct telling *begin_telling(sim_story_fn *story,
                                     const struct sim_options *options)
{
    struct telling *telling = pirn__child_share(sizeof *telling);

    REQUIRE_OR_RETURN(telling != NULL, NULL);
    telling->story = story;
    if (options != NULL)
        telling->wanted = *options;
    telling->scenario.program = tell;
    memcpy(&telling->scenario.options, &telling->wanted,
           sizeof telling->scenario.options);
    told = telling;
    return telling;
}

static struct sim_result result_of(const struct telling *telling, int rc)
{
    const pirn_sim_result *from = &telling->result;
    struct sim_result result = {
        .finding = (enum sim_finding)from->finding,
        .hash = from->hash,
        .steps = from->steps,
        .ns = from->ns,
    };

    EXPECT(rc == 0 || rc == PIRN_EFAILED);
    memcpy(result.checker, from->checker, sizeof result.checker);
    memcpy(result.text, from->text, sizeof result.text);
    return result;
}

struct sim_result sim_run(sim_story_fn *story,
                          const struct sim_options *options, uint64_t seed)
{
    struct telling *telling = begin_telling(story, options);
    struct sim_result none = {.finding = SIM_DIED};

    if (telling == NULL)
        return none;
    return result_of(telling,
                     pirn_sim_run(&telling->scenario, seed, &telling->result));
}

struct sim_result sim_run_apart(sim_story_fn *story,
                                const struct sim_options *options,
                                uint64_t seed)
{
    struct telling *telling = begin_telling(story, options);
    struct sim_result result = {.finding = SIM_DIED};

    if (telling == NULL)
        return result;
    result = result_of(telling, pirn__sim_search(&telling->scenario, seed, 1,
                                                 true, &telling->result));
    pirn__child_unshare(telling, sizeof *telling);
    return result;
}

static void print_finding(const char *name, const struct telling *telling)
{
    const pirn_sim_result *result = &telling->result;
    char options[512] = "";

    pirn__sim_options_print(&result->options, options, sizeof options);
    fprintf(stderr,
            "%s: %s (%s): %s, after %" PRIu64 " calls and %" PRIu64 " ms\n"
            "repeat with: PIRN_SIM_SEEDS=1 %s %s --seed %" PRIu64 "\n"
            "options: %s clients=%" PRIu32 " requests=%" PRIu32 "\n",
            name, pirn__sim_finding_name(result->finding), result->checker,
            result->text, result->steps, result->ns / 1000000,
            program_invocation_name, name, result->seed, options,
            telling->drawn.clients, telling->drawn.requests);
}

static uint64_t seeds_wanted(size_t seeds)
{
    const char *text = getenv("PIRN_SIM_SEEDS");

    return text == NULL ? seeds : strtoull(text, NULL, 0);
}

void sim_expect_clean(const char *name, sim_story_fn *story,
                      const struct sim_options *options, size_t seeds)
{
    struct telling *telling = begin_telling(story, options);
    const pirn_sim_result *result;
    int rc;

    if (telling == NULL)
        return;
    result = &telling->result;
    rc = pirn__sim_search(&telling->scenario, test_seed(), seeds_wanted(seeds),
                          false, &telling->result);
    if (result->finding != PIRN_SIM_CLEAN)
        print_finding(name, telling);
    EXPECT_EQ(SIM_CLEAN, result->finding);
    EXPECT(rc == 0 || rc == PIRN_EFAILED);
    printf("sim %s: %" PRIu64 " seeds, %" PRIu64 " calls, %" PRIu64
           " virtual seconds, hash %016" PRIx64 "\n",
           name, result->runs, result->all_steps, result->all_ns / 1000000000,
           result->all_hash);
    pirn__child_unshare(telling, sizeof *telling);
}

/* The hash that this test program prints for the same batch. */
static uint64_t hash_elsewhere(const char *name, uint64_t seed, size_t seeds)
{
    char program[4096], command[4300], line[512];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    uint64_t hash = 0;
    FILE *output;

    if (len < 0)
        return 0;
    program[len] = '\0';
    snprintf(command, sizeof command,
             "PIRN_SIM_SEEDS=%zu '%s' %s --seed %" PRIu64 " 2>/dev/null", seeds,
             program, name, seed);
    output = popen(command, "r");
    while (output != NULL && fgets(line, sizeof line, output) != NULL) {
        const char *at = strstr(line, ", hash ");

        if (at != NULL)
            hash = strtoull(at + 7, NULL, 16);
    }
    if (output != NULL)
        pclose(output);
    return hash;
}

/* Two batches in one process. */
static void tell_twice(void *arg)
{
    struct telling *telling = arg;
    pirn_sim_result *result = &telling->result;
    int rc = 0;

    for (int batch = 0; batch < 2; batch++) {
        telling->hash_before = result->all_hash;
        result->all_hash = 0;
        for (uint64_t i = 0; i < telling->seeds && rc == 0; i++)
            rc = pirn__sim_run(&telling->scenario, telling->seed + i, result);
    }
}

void sim_expect_repeatable(const char *name, sim_story_fn *story, size_t seeds)
{
    struct telling *telling = begin_telling(story, NULL);
    int status = -1;

    if (telling == NULL)
        return;
    telling->seed = test_seed();
    telling->seeds = seeds;
    EXPECT_EQ(0, pirn__child_run(tell_twice, telling, true, &status));
    EXPECT_EQ(0, status);
    EXPECT_NE(0, telling->hash_before);
    EXPECT_EQ(telling->hash_before, telling->result.all_hash);
    EXPECT_EQ(telling->hash_before, hash_elsewhere(name, telling->seed, seeds));
    pirn__child_unshare(telling, sizeof *telling);
}

/* What stories ask. */

uint64_t sim_random(void)
{
    return pirn_sim_random();
}

uint32_t sim_below(uint32_t limit)
{
    return pirn_sim_below(limit);
}

bool sim_chance(uint32_t per_thousand)
{
    return pirn_sim_chance(per_thousand);
}

uint64_t sim_now_ns(void)
{
    return pirn_sim_now_ns();
}

bool sim_is_calm(void)
{
    return pirn_sim_is_calm();
}

void sim_pause(const char *what, uint64_t value)
{
    pirn_sim_pause(what, value);
}

void sim_check(bool condition, const char *text)
{
    if (!condition)
        pirn__sim_blame("story", "%s", text);
}

void sim_fail(const char *checker, const char *format, ...)
{
    char text[sizeof told->result.text];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pirn__sim_blame(checker, "%s", text);
}

void sim_thread(void (*fn)(void *arg), void *arg)
{
    sim_check(pirn_sim_thread(fn, arg) == 0, "a thread could be started");
}

void sim_block_ms(uint32_t ms)
{
    pirn_sim_block(ms);
}

void sim_watch(pirn_future *future)
{
    pirn_sim_watch(future);
}
