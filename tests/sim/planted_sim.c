/* SPDX-License-Identifier: MIT */
/* tests/sim/planted_sim.c - bugs that the simulator has to find.
 *
 * Each is put in on purpose: by a system call that does not do what it should,
 * by a runtime that forgets a task, or by the story.  A few seeds must be
 * enough.
 */
#include <stdio.h>

#include "sim/echo_story.h"

enum { TRIES = 300, CLEAN_RUNS = 40 };

/* Bugs of the story. */

static void leak_handle(void)
{
    struct sim_program program = sim_program_begin();
    pirn_task *task;
    int rc = pirn_go_with(sim_nap, &(uint32_t){5}, NULL, &task);

    sim_check(rc == 0, "a task starts");
    sim_check(sim_program_run(&program, sim_nap, &(uint32_t){20}) == 0,
              "a nap ends well");
    sim_program_shutdown(&program, 20000);
    sim_program_end(&program);
}

/* A future that clones the waker of its poll, and is ready. */
struct keeper {
    pirn_future future;
    pirn_waker kept;
};

static enum pirn_poll keeper_poll(pirn_future *self, pirn_cx *cx)
{
    struct keeper *keeper = PIRN_CONTAINER_OF(self, struct keeper, future);

    keeper->kept = pirn_waker_clone(cx->waker);
    return PIRN_READY;
}

static void keeper_drop(pirn_future *self)
{
    (void)self;
}

static const pirn_future_ops keeper_ops = {.poll = keeper_poll,
                                           .drop = keeper_drop};

static int keep_waker(void *arg)
{
    struct keeper keeper = {.future = {&keeper_ops}};

    (void)arg;
    return sim_await(&keeper.future, PIRN_NEVER);
}

static void leak_waker(void)
{
    struct sim_program program = sim_program_begin();

    sim_check(sim_program_run(&program, keep_waker, NULL) == 0,
              "the future is ready");
    sim_program_shutdown(&program, 20000);
    sim_program_end(&program);
}

static void poll_it(void *arg)
{
    pirn_future *future = arg;
    const pirn_waker nobody = {0};
    pirn_cx cx = pirn_cx_of_waker(&nobody);

    for (int i = 0; i < 20; i++)
        sim_check(pirn_future_poll(future, &cx) == PIRN_READY, "it is ready");
}

/* Two threads that both think that it is theirs. */
static void poll_twice(void)
{
    static struct keeper keeper;

    keeper = (struct keeper){.future = {&keeper_ops}};
    sim_watch(&keeper.future);
    sim_thread(poll_it, &keeper.future);
    sim_thread(poll_it, &keeper.future);
}

/* Each bug, by how it must be found. */
static const struct plant {
    const char *name;
    sim_story_fn *story;
    struct sim_options options;
    enum sim_finding finding;
    const char *checker;
} plants[] = {
    {"lost wake", echo_story,
     {.plant = SIM_PLANT_LOST_WAKE, .workers = 2, .clients = 4}, SIM_STUCK,
     "world"},
    {"leaked descriptor", echo_story, {.plant = SIM_PLANT_LEAKED_FD},
     SIM_CHECK_FAILED, "descriptors"},
    {"early timer", echo_story, {.plant = SIM_PLANT_EARLY_TIMER},
     SIM_CHECK_FAILED, "timers"},
    {"task dropped at shutdown", echo_story,
     {.plant = SIM_PLANT_DROPPED_TASK}, SIM_CHECK_FAILED, "story"},
    {"leaked waker", leak_waker, {0}, SIM_CHECK_FAILED, "wakers"},
    {"future polled twice", poll_twice, {.preemptions = 200},
     SIM_CHECK_FAILED, "polls"},
    {"leaked handle", leak_handle, {0}, SIM_CHECK_FAILED, "memory"},
};

static bool is_found(const struct plant *plant, uint64_t seed)
{
    struct sim_result result =
        sim_run_apart(plant->story, &plant->options, seed);

    return result.finding == plant->finding &&
           strcmp(result.checker, plant->checker) == 0;
}

/* Goal: what is planted is found, and by the checker whose business it is.
 * Method: run seeds until it is, a few at most. */
TEST(planted_bugs_are_found)
{
    uint64_t seed = test_seed();

    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        int tries = 1;

        while (tries <= TRIES && !is_found(&plants[i], seed + (uint64_t)tries))
            tries++;
        printf("sim: %s: found by seed %d\n", plants[i].name, tries);
        EXPECT_LE(tries, TRIES);
    }
}

/* Goal: the same stories without the bugs are clean, or the test above means
 * nothing.  Method: a few seeds of the one that they share. */
TEST(without_bugs_nothing_is_found)
{
    sim_expect_clean("without_bugs_nothing_is_found", echo_story, NULL,
                     CLEAN_RUNS);
}
