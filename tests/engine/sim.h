/* SPDX-License-Identifier: MIT */
/* tests/engine/sim.h - stories for the simulated world of pirn/sim.h.
 *
 * A story is a program: it makes a runtime, current-thread or with workers, and
 * does something over the network.  The same seed makes the same run, to the
 * byte.
 *
 *     static void echo(void)
 *     {
 *         struct sim_program program = sim_program_begin();
 *         ...
 *         sim_program_end(&program);
 *     }
 *
 *     TEST(echo_survives) { sim_expect_clean("echo", echo, NULL, 250); }
 *
 * To what every program may use a story adds: clients and requests, which are
 * drawn as the other options are; a runtime as these want it; and bugs that are
 * put in on purpose, to see whether they are found.  sim.c runs stories,
 * sim_story.c is for them, sim_plant.c has the bugs.
 */
#ifndef PIRN_TESTS_ENGINE_SIM_H
#define PIRN_TESTS_ENGINE_SIM_H

#include <pirn/pirn.h>

#include "engine/test.h"

/* Bugs that are put in on purpose, to see whether they are found. */
enum sim_plant {
    SIM_PLANT_NONE,
    SIM_PLANT_LOST_WAKE,     /* a signal to an eventfd does not arrive */
    SIM_PLANT_LEAKED_FD,     /* a connection is not closed */
    SIM_PLANT_EARLY_TIMER,   /* the clock runs ahead */
    SIM_PLANT_DROPPED_TASK,  /* at shutdown a woken task is forgotten */
    SIM_PLANT_LEAKED_WAKER,  /* a waker is not dropped */
    SIM_PLANT_DOUBLE_POLL,   /* a future is polled by two threads at once */
    SIM_PLANT_LEAKED_MEMORY, /* a handle is not given up */
};

/* Those of pirn_sim_options, in its order, and the story's own.  Each is drawn
 * from the seed if it is 0; SIM_NONE is none.  PIRN_SIM in the environment sets
 * them by name: "workers=2 resets=none". */
enum { SIM_NONE = UINT32_MAX };

struct sim_options {
    uint32_t workers;       /* none: a current-thread runtime */
    uint32_t computational; /* 1: that kind of pool */
    uint32_t latency_us;    /* of the network, about */
    uint32_t buffer;        /* bytes under way in one direction */
    uint32_t resets;        /* of 10000 transfers */
    uint32_t refusals;      /* of 1000 connects and thread starts */
    uint32_t spurious;      /* of 1000 waits end for no reason */
    uint32_t weather_ms;    /* between two spells of bad weather */
    uint32_t preemptions;   /* of 1000 calls */
    uint32_t late_us;       /* how late waits end at most */
    uint32_t fault_ms;
    uint32_t live_s;
    uint32_t clients; /* of the story */
    uint32_t requests;
    uint32_t plant; /* enum sim_plant */
};

enum sim_finding {
    SIM_CLEAN = PIRN_SIM_CLEAN,
    SIM_CHECK_FAILED = PIRN_SIM_CHECK_FAILED,
    SIM_STUCK = PIRN_SIM_STUCK,
    SIM_LATE = PIRN_SIM_LATE,
    SIM_LIVELOCK = PIRN_SIM_LIVELOCK,
    SIM_DIED = PIRN_SIM_DIED,
};

struct sim_result {
    enum sim_finding finding;
    uint64_t hash;  /* of all that happened */
    uint64_t steps; /* system calls */
    uint64_t ns;    /* virtual time it took */
    char checker[32];
    char text[160];
};

typedef void sim_story_fn(void);

/* One run in this process.  Unless it was clean, or a check has failed, nothing
 * more can be run here. */
struct sim_result sim_run(sim_story_fn *story,
                          const struct sim_options *options, uint64_t seed);

/* One run in a child process. */
struct sim_result sim_run_apart(sim_story_fn *story,
                                const struct sim_options *options,
                                uint64_t seed);

/* Run seeds, each with options of its own, until one fails; that one is a
 * failure of the test, with the command that repeats it.  Options may be NULL.
 * PIRN_SIM_SEEDS in the environment says how many. */
void sim_expect_clean(const char *name, sim_story_fn *story,
                      const struct sim_options *options, size_t seeds);

/* The same batch, run twice in one process and once in another one by the test
 * `name`, has the same hash. */
void sim_expect_repeatable(const char *name, sim_story_fn *story,
                           size_t seeds);

/* For stories. */

/* The options of this run, all drawn. */
const struct sim_options *sim_options(void);

uint64_t sim_random(void);
uint32_t sim_below(uint32_t limit);
bool sim_chance(uint32_t per_thousand);

/* The virtual time, as it is; not as a broken clock shows it. */
uint64_t sim_now_ns(void);
bool sim_is_calm(void);

/* Let others run, perhaps. */
void sim_pause(const char *what, uint64_t value);

/* For a short story: let threads lose their processor inside the library's
 * functions more often than is good for a long one. */
void sim_preempt_often(void);

/* Note the first check that fails; the run goes on. */
void sim_check(bool condition, const char *text);
void sim_fail(const char *checker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Start a virtual thread of the program. */
void sim_thread(void (*fn)(void *arg), void *arg);

/* Block the virtual thread, as a system call does. */
void sim_block_ms(uint32_t ms);

/* pirn_sleep() and pirn_await() under the eyes of the checkers. */
int sim_sleep_ms(uint32_t ms);
int sim_nap(void *ms); /* a fiber that sleeps so many, a uint32_t */
int sim_await(pirn_future *future, pirn_deadline deadline);

/* From now on each poll and each waker of this future is seen. */
void sim_watch(pirn_future *future);

/* A runtime as the options want it, entered on this thread. */
struct sim_program {
    pirn_runtime *rt;
    bool by_turns; /* a loop of the program's own drives it */
    pirn_report report;
};

struct sim_program sim_program_begin(void);

/* Run fn(arg) as a fiber until it has ended, and return its outcome; a code of
 * the join if that fails. */
int sim_program_run(struct sim_program *program, pirn_fiber_fn *fn, void *arg);

/* Shut down with so much time (0: none), and look at the report. */
void sim_program_shutdown(struct sim_program *program, uint32_t ms);
void sim_program_end(struct sim_program *program);

#endif /* PIRN_TESTS_ENGINE_SIM_H */
