/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_batch.c - options, batches of seeds, and what is printed.
 *
 * A batch runs in a child process and leaves what it has found in memory that
 * both share: so the seed of a run that ended the process is known, too.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/sim_internal.h"

/* How each option is drawn: `none_of_4` of four seeds have none. */
static const struct option {
    const char *name;
    size_t offset;
    uint32_t least, most;
    unsigned none_of_4;
    bool doubling; /* small numbers are as likely as large ones */
} options_table[] = {
#define OPTION(name, ...) \
    {#name, offsetof(struct sim_options, name), __VA_ARGS__}
    OPTION(workers, 1, 4, 1, false),
    OPTION(computational, 1, 1, 3, false),
    OPTION(latency_us, 10, 20000, 0, true),
    OPTION(buffer, 2, 16384, 0, true),
    OPTION(resets, 1, 200, 1, true),
    OPTION(refusals, 1, 300, 1, true),
    OPTION(spurious, 1, 100, 1, true),
    OPTION(weather_ms, 5, 500, 1, true),
    OPTION(preemptions, 1, 300, 0, true),
    OPTION(late_us, 1, 3000, 1, true),
    OPTION(fault_ms, 50, 2000, 0, true),
    OPTION(live_s, 120, 120, 0, false),
    OPTION(clients, 1, 6, 0, false),
    OPTION(requests, 1, 8, 0, false),
    OPTION(plant, 1, 1, 4, false),
#undef OPTION
};

enum {
    OPTIONS = sizeof options_table / sizeof options_table[0],
    LATENCY_OF_BYTE_US = 20,
    RUN_MAX_S = 40, /* of real time */
};

static uint32_t *value_of(struct sim_options *options, size_t option)
{
    return (uint32_t *)(void *)((char *)options +
                                options_table[option].offset);
}

static uint32_t draw(const struct option *option)
{
    uint32_t most = option->most;

    /* Always as many draws. */
    uint32_t none = sim_below(4);
    uint32_t halvings = sim_below(12);
    uint32_t value;

    if (option->doubling && most >> halvings > option->least)
        most >>= halvings;
    value = option->least + sim_below(most - option->least + 1);
    return none < option->none_of_4 ? SIM_NONE : value;
}

/* What the environment says: "name=number", apart by spaces. */
static uint32_t from_environment(const char *name)
{
    const char *at = getenv("PIRN_SIM");
    size_t len = strlen(name);

    for (; at != NULL && *at != '\0'; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return strncmp(at + len + 1, "none", 4) == 0
                       ? SIM_NONE
                       : (uint32_t)strtoul(at + len + 1, NULL, 0);
    }
    return 0;
}

struct sim_options sim_options_draw(const struct sim_options *wanted)
{
    struct sim_options options = {0};

    if (wanted != NULL)
        options = *wanted;
    for (size_t i = 0; i < OPTIONS; i++) {
        uint32_t drawn = draw(&options_table[i]);
        uint32_t told = from_environment(options_table[i].name);
        uint32_t *value = value_of(&options, i);

        if (told != 0)
            *value = told;
        if (*value == 0)
            *value = drawn;
        if (*value == SIM_NONE)
            *value = 0;
    }
    /* Few bytes at a time take many journeys: let them be short. */
    if (options.latency_us > LATENCY_OF_BYTE_US * options.buffer)
        options.latency_us = LATENCY_OF_BYTE_US * options.buffer;
    return options;
}

void sim_options_print(const struct sim_options *options, char *buf,
                       size_t size)
{
    struct sim_options copy = *options;
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < OPTIONS && len < size; i++) {
        uint32_t value = *value_of(&copy, i);
        int n = value == 0
                    ? snprintf(buf + len, size - len, "%s=none ",
                               options_table[i].name)
                    : snprintf(buf + len, size - len, "%s=%" PRIu32 " ",
                               options_table[i].name, value);

        len += (size_t)n;
    }
    if (len > 0 && len < size)
        buf[len - 1] = '\0';
}

/* Batches. */

struct shared {
    uint64_t seed; /* of the run that is on, or was the last */
    bool running;
    uint64_t runs, steps, ns;
    uint64_t hash, hash_before; /* of this batch, of the one before */
    struct sim_options options;
    struct sim_result result;
};

static void run_batch(struct shared *shared, sim_story_fn *story,
                      const struct sim_options *options, uint64_t seed,
                      size_t seeds)
{
    for (size_t i = 0; i < seeds; i++) {
        /* One that hangs without a system call ends the process. */
        alarm(RUN_MAX_S);
        shared->seed = seed + i;
        shared->running = true;
        shared->result = sim_run(story, options, seed + i);
        shared->running = false;
        shared->options = *sim_options();
        shared->runs++;
        shared->steps += shared->result.steps;
        shared->ns += shared->result.ns;
        shared->hash = shared->hash * 31 + shared->result.hash;
        if (shared->result.finding != SIM_CLEAN)
            return;
    }
}

static void *share(void)
{
    void *memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* `quiet` if what the child has to say is known. */
static void run_in_child(struct shared *shared, sim_story_fn *story,
                         const struct sim_options *options, uint64_t seed,
                         size_t seeds, bool quiet)
{
    int status = 0;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (quiet && freopen("/dev/null", "w", stderr) == NULL)
            _exit(1);
        run_batch(shared, story, options, seed, seeds);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    if (child < 0 || status != 0) {
        shared->result.finding = SIM_DIED;
        snprintf(shared->result.text, sizeof shared->result.text,
                 "the process ended with status %#x", (unsigned)status);
    }
}

struct sim_result sim_run_apart(sim_story_fn *story,
                                const struct sim_options *options,
                                uint64_t seed)
{
    struct shared *shared = share();
    struct sim_result result = {.finding = SIM_DIED};

    if (shared == NULL)
        return result;
    run_in_child(shared, story, options, seed, 1, true);
    result = shared->result;
    munmap(shared, sizeof *shared);
    return result;
}

static const char *finding_name(enum sim_finding finding)
{
    static const char *const names[] = {"clean", "check failed", "stuck",
                                        "late",  "livelock",     "died"};

    return names[finding];
}

static void print_finding(const char *name, const struct shared *shared)
{
    char options[512] = "";

    /* Those of a run that ended the process are lost with it. */
    if (shared->result.finding != SIM_DIED)
        sim_options_print(&shared->options, options, sizeof options);
    fprintf(stderr,
            "%s: %s (%s): %s, after %" PRIu64 " calls and %" PRIu64
            " ms\n"
            "repeat with: PIRN_SIM_SEEDS=1 %s %s --seed %" PRIu64 "\n"
            "options: %s\n",
            name, finding_name(shared->result.finding),
            shared->result.checker, shared->result.text,
            shared->result.steps, shared->result.ns / 1000000,
            program_invocation_name, name, shared->seed, options);
}

static size_t seeds_wanted(size_t seeds)
{
    const char *text = getenv("PIRN_SIM_SEEDS");

    return text == NULL ? seeds : (size_t)strtoull(text, NULL, 0);
}

void sim_expect_clean(const char *name, sim_story_fn *story,
                      const struct sim_options *options, size_t seeds)
{
    struct shared *shared = share();
    uint64_t seed = test_seed();

    REQUIRE(shared != NULL);
    run_in_child(shared, story, options, seed, seeds_wanted(seeds), false);
    if (shared->result.finding != SIM_CLEAN)
        print_finding(name, shared);
    EXPECT_EQ(SIM_CLEAN, shared->result.finding);
    printf("sim %s: %" PRIu64 " seeds, %" PRIu64 " calls, %" PRIu64
           " virtual seconds, hash %016" PRIx64 "\n",
           name, shared->runs, shared->steps, shared->ns / 1000000000,
           shared->hash);
    munmap(shared, sizeof *shared);
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
             "PIRN_SIM_SEEDS=%zu '%s' %s --seed %" PRIu64 " 2>/dev/null",
             seeds, program, name, seed);
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

/* The hash of the second of two batches in one child. */
static uint64_t hash_again(sim_story_fn *story, uint64_t seed, size_t seeds,
                           uint64_t *first)
{
    struct shared *shared = share();
    uint64_t second;

    REQUIRE_OR_RETURN(shared != NULL, 0);
    fflush(NULL);
    if (fork() == 0) {
        run_batch(shared, story, NULL, seed, seeds);
        shared->hash_before = shared->hash;
        shared->hash = 0;
        run_batch(shared, story, NULL, seed, seeds);
        _exit(0);
    }
    (void)wait(NULL);
    *first = shared->hash_before;
    second = shared->hash;
    munmap(shared, sizeof *shared);
    return second;
}

void sim_expect_repeatable(const char *name, sim_story_fn *story, size_t seeds)
{
    uint64_t seed = test_seed();
    uint64_t first = 0;
    uint64_t second = hash_again(story, seed, seeds, &first);

    EXPECT_NE(0, first);
    EXPECT_EQ(first, second);
    EXPECT_EQ(first, hash_elsewhere(name, seed, seeds));
}
