/* SPDX-License-Identifier: MIT */
/* pirn/sim.h - does your program survive a world at its worst?
 *
 * The simulated world runs a whole program, as it is, on one thread of the
 * system.  Its threads, those of Pirn's workers and blocking jobs among them, are
 * virtual, and a seed chooses at each system call which goes on; time is a number
 * that jumps when nobody can; connections, timers and wait sets are the world's.
 * The same seed makes the same run.
 *
 *     static int program(void *arg)
 *     {
 *         struct order order = {0};
 *         int rc = pirn_run(place_order, &order);     // server and client
 *
 *         (void)arg;
 *         pirn_sim_check(order.charged <= 1, "nobody pays twice");
 *         return rc;
 *     }
 *
 *     const pirn_sim_case orders = {.program = program};
 *     pirn_sim_result result;
 *     char text[PIRN_SIM_TEXT_SIZE];
 *
 *     int rc = pirn_sim_search(&orders, 1, 1000, &result);
 *
 *     pirn_sim_format(&result, text, sizeof text);
 *     if (rc < 0)
 *         fail(text);
 *
 * A run has two phases.  Until `fault_ms` the weather is bad: connections are
 * reset, cut off, refused, descriptors and threads run out, waits end for no
 * reason.  Then it is calm, and the program has to come to its end within
 * `live_s`.
 *
 * Besides what the program checks, the world finds a program that is stuck, late
 * or does not end, and has checkers of its own: no task lost, none polled twice at
 * once, no timer early, every descriptor closed, every waker and all memory given
 * back.
 *
 * Of a program in the world only what goes through Pirn is simulated.  What it
 * asks the system itself, the time, chance, files, names, it gets from the real
 * one, and with it runs that differ; locks of the C library would wait for ever.
 */
#ifndef PIRN_SIM_H
#define PIRN_SIM_H

#include <pirn/runtime.h>

PIRN_BEGIN_DECLS

#define PIRN_SIM_NONE UINT32_MAX

enum { PIRN_SIM_TEXT_SIZE = 1024 };

/* What the world is like.  Each is drawn from the seed if it is 0;
 * PIRN_SIM_NONE is none.  PIRN_SIM in the environment sets them by name, before
 * what the program wants: "workers=2 resets=none". */
typedef struct pirn_sim_options {
    uint32_t workers;       /* of runtimes that leave it to the system; none: one
                               worker; at most 64 */
    uint32_t computational; /* 1: that kind of pool, if left to the system */
    uint32_t latency_us;    /* of the network, about; at most 10 s */
    uint32_t buffer;        /* bytes under way in one direction; at most 16 MiB */
    uint32_t resets;        /* of 10000 transfers */
    uint32_t refusals;      /* of 1000 connects and thread starts, but for those
                               workers */
    uint32_t spurious;      /* of 1000 waits end for no reason */
    uint32_t weather_ms;    /* between two spells of bad weather; at most 1000 s */
    uint32_t preemptions;   /* of 1000 calls */
    uint32_t late_us;       /* how late waits end at most; at most 10 s */
    uint32_t fault_ms;      /* at most 10000 s */
    uint32_t live_s;        /* none: for ever; at most 1000000 */
} pirn_sim_options;

/* The whole program, on the first virtual thread.  A negative code is a check
 * that fails.  Threads that it does not wait for are waited for when it has
 * returned. */
typedef int pirn_sim_program_fn(void *arg);

/* What a checker sees.  With each goes a number. */
enum pirn_sim_fact {
    PIRN_SIM_TASK_SPAWNED, /* its id */
    PIRN_SIM_TASK_ENDED,   /* its id */
    PIRN_SIM_TASK_ABORTED, /* 0: shutdown may have left tasks behind */
    PIRN_SIM_FIBER_TWICE,  /* 0: a fiber runs on two threads at once */
    PIRN_SIM_POLL_BEGUN,   /* the number of a watched future */
    PIRN_SIM_POLL_ENDED,   /* likewise */
    PIRN_SIM_WOKEN,        /* of one that has to be polled */
    PIRN_SIM_FUTURE_GONE,  /* of one that is ready, or was dropped */
    PIRN_SIM_WAKER_CLONED, /* of a watched future */
    PIRN_SIM_WAKER_GONE,
    PIRN_SIM_TIME_CAME,    /* the time that was waited for, ns */
    PIRN_SIM_IDLE,         /* ns for which nobody had anything to do */
    PIRN_SIM_CALM,         /* 0: the weather is good from now on */
    PIRN_SIM_FD_OPENED,    /* the descriptor */
    PIRN_SIM_FD_CLOSED,
    PIRN_SIM_MEMORY_TAKEN, /* bytes, by a runtime */
    PIRN_SIM_MEMORY_GIVEN
};

/* A checker of your own, an object beside the program.  None of its functions
 * may wait or call the program; what they check counts under its name.  Any may
 * be NULL. */
typedef struct pirn_sim_checker {
    const char *name;
    void (*begin)(void *arg); /* before each run */
    void (*see)(void *arg, enum pirn_sim_fact fact, uint64_t number);
    void (*end)(void *arg); /* when the program is over and all threads ended */
    void *arg;
} pirn_sim_checker;

/* Zero is the default. */
typedef struct pirn_sim_case {
    pirn_sim_program_fn *program;
    void *arg;
    pirn_sim_options options;
    const pirn_sim_checker *checkers;
    size_t checker_count;
} pirn_sim_case;

enum pirn_sim_finding {
    PIRN_SIM_CLEAN,
    PIRN_SIM_CHECK_FAILED,
    PIRN_SIM_STUCK,    /* everybody waits for ever: a deadlock, a lost wake */
    PIRN_SIM_LATE,     /* it did not end in time after the faults had stopped */
    PIRN_SIM_LIVELOCK, /* it goes on for 3 million calls when it is calm, or
                          without a rest before; or 40 s of real time */
    PIRN_SIM_DIED      /* the process did: an assertion, a signal, an exit() */
};

/* What a run, or the last run of a search, has shown. */
typedef struct pirn_sim_result {
    enum pirn_sim_finding finding;
    uint64_t seed;
    pirn_sim_options options; /* all drawn; 0 is none */
    uint64_t hash;  /* of all that happened */
    uint64_t steps; /* system calls */
    uint64_t ns;    /* of virtual time */
    char checker[32];
    char text[160];
    /* Of all runs of the search. */
    uint64_t runs, all_hash, all_steps, all_ns;
} pirn_sim_result;

/* Run the program once, in this process, where a debugger sees it.  `result` may
 * be NULL.
 *
 * A run that ends as stuck, late or livelock is given up where it stands, with
 * all that it holds: afterwards this process can have no other.  No other thread
 * may use Pirn meanwhile.
 *
 * Thread    a plain thread outside any task
 * Suspends  blocks the thread
 * Errors    PIRN_EFAILED  the run was not clean; see the result
 *           -EINVAL       no case, no program, an option or the variable
 *                         PIRN_SIM out of its range, or a checker without a name
 *           -EDEADLK      called inside a task, a poll, a waker or a hook
 *           -EBUSY        a run is on, or one was given up in this process
 *           -ENOMEM       no memory for the world; if it ran out during the run,
 *                         that is given up, too
 */
PIRN_API PIRN_MUST_CHECK int pirn_sim_run(const pirn_sim_case *scenario,
                                          uint64_t seed,
                                          pirn_sim_result *result);

/* Run the program with the seeds from `first` on, so many, in a child process,
 * until a run is not clean.  `result` may be NULL; see pirn_sim_format().
 *
 * In the environment
 *     PIRN_SIM_SEEDS=N  so many instead
 *     PIRN_SIM_SEED=N   only this one, in this process, by pirn_sim_run()
 *     PIRN_SIM=...      options; see pirn_sim_options
 *     PIRN_SIM_TRACE=1  print each call on standard error, with its time and its
 *                       thread
 *
 * Thread    a plain thread outside any task
 * Suspends  blocks the thread
 * Errors    PIRN_EFAILED  the last run was not clean; see the result
 *           -EAGAIN       the system refuses a process
 *           -EINVAL, -EDEADLK, -EBUSY, -ENOMEM  as pirn_sim_run(), or a variable
 *                         is no number
 */
PIRN_API PIRN_MUST_CHECK int pirn_sim_search(const pirn_sim_case *scenario,
                                             uint64_t first, uint64_t count,
                                             pirn_sim_result *result);

/* Write a result as a few lines of text, with what to set to repeat the run;
 * returns the length without the NUL, which may be more than fits.
 *
 * Thread    any
 */
PIRN_API size_t pirn_sim_format(const pirn_sim_result *result, char *buf,
                                size_t size);

/* For programs and their checkers.  Outside a run they answer as the real world
 * does: it is calm, pirn_sim_check() says only what it was told. */

/* True in a run.
 *
 * Thread    any
 */
PIRN_API bool pirn_sim_is_on(void);

/* Note the first check that fails; the run goes on.  Returns `condition`.
 * pirn_sim_fail() is a check that has failed.
 *
 * Thread    any of the run
 */
PIRN_API bool pirn_sim_check(bool condition, const char *text);
PIRN_API void pirn_sim_fail(const char *format, ...) PIRN_PRINTF(1, 2);

/* Chance, from the seed: 64 bits; a number below `limit`, 0 if that is 0; true
 * so many times of a thousand.
 *
 * Thread    any of the run
 */
PIRN_API uint64_t pirn_sim_random(void);
PIRN_API uint32_t pirn_sim_below(uint32_t limit);
PIRN_API bool pirn_sim_chance(uint32_t per_thousand);

/* The time, which costs no step; whether the weather is good.
 *
 * Thread    any of the run
 */
PIRN_API uint64_t pirn_sim_now_ns(void);
PIRN_API bool pirn_sim_is_calm(void);

/* Let another thread go on here, perhaps, as a system call would: for code of
 * your own that shares memory.  `what` and `value` are part of the hash and of the
 * trace.
 *
 * Thread    any of the run
 */
PIRN_API void pirn_sim_pause(const char *what, uint64_t value);

/* Keep the thread busy for so long, as work or a slow system call does.
 *
 * Thread    any of the run
 * Suspends  blocks the thread, not only the task
 */
PIRN_API void pirn_sim_block(uint32_t ms);

/* Start fn(arg) on a virtual thread, a plain one, which ends when it returns.
 *
 * Thread    any of the run
 * Errors    -EINVAL  no fn
 *           -EPERM   outside a run
 *           -EAGAIN  there are 256 already
 *           -ENOMEM  no memory for its stack
 */
PIRN_API PIRN_MUST_CHECK int pirn_sim_thread(void (*fn)(void *arg), void *arg);

/* From now on each poll and each waker of this future, which must not have been
 * polled yet, is seen by the checkers.  Does nothing outside a run.
 *
 * Thread    any of the run
 */
PIRN_API void pirn_sim_watch(pirn_future *future);

/* pirn_await() and pirn_sleep() under the eyes of the checkers: that a future is
 * woken, polled and given up in order, and that the time has come.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    as pirn_await(): the future has been dropped; a sleep is over
 * Errors    those of pirn_await(); those of pirn_sleep()
 */
PIRN_API PIRN_MUST_CHECK int pirn_sim_await(pirn_future *future,
                                            pirn_deadline deadline);
PIRN_API PIRN_MUST_CHECK int pirn_sim_sleep(pirn_deadline until);

PIRN_END_DECLS

#endif /* PIRN_SIM_H */
