/* SPDX-License-Identifier: MIT */
/* src/testing/sim_test.c - a run in the simulated world, and what it finds. */
#include "testing/sim_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sys/checker.h"
#include "sys/child.h"

static void expect_finding(pirn_sim_program_fn *program,
                           enum pirn_sim_finding finding, const char *checker,
                           const char *words)
{
    pirn_sim_result result = run_apart(program, NULL, kind);

    EXPECT_EQ(finding, result.finding);
    EXPECT_STR_EQ(checker, result.checker);
    EXPECT_STR_EQ(words, result.text);
}

/* Goal: a program that is right is clean in any world.  Method: a few seeds,
 * whose options are all drawn. */
TEST(sim_right_program_is_clean)
{
    const pirn_sim_case scenario = {.program = conversation};
    pirn_sim_result result;
    char text[PIRN_SIM_TEXT_SIZE];
    int rc = pirn_sim_search(&scenario, 1, test_size(20, 200, 2000), &result);

    pirn_sim_format(&result, text, sizeof text);
    if (rc < 0)
        puts(text);
    EXPECT_EQ(0, rc);
    EXPECT_EQ(test_size(20, 200, 2000), result.runs);
    EXPECT_LE(result.runs, result.all_steps);
    EXPECT(strstr(text, "runs, ") != NULL);
}

/* Goal: bad weather does what it is for: connections break though no transfer
 * is reset by chance.  Method: with and without it. */
TEST(sim_bad_weather_breaks_connections)
{
    uint32_t *failures = pirn__child_share(sizeof *failures);
    pirn_sim_options bad = kind;
    pirn_sim_result result;

    REQUIRE(failures != NULL);
    result = run_apart(conversation, failures, kind);
    EXPECT_EQ(PIRN_SIM_CLEAN, result.finding);
    EXPECT_EQ(0, *failures);
    bad.weather_ms = 5;
    bad.fault_ms = 2000;
    result = run_apart(conversation, failures, bad);
    EXPECT_EQ(PIRN_SIM_CLEAN, result.finding);
    EXPECT_NE(0, *failures);
    pirn__child_unshare(failures, sizeof *failures);
}

/* Findings. */

static int wait_for_nobody(void *arg)
{
    pirn_sem sem;
    int rc;

    (void)arg;
    rc = pirn_sem_init(&sem, 0);
    if (rc < 0)
        return rc;
    rc = pirn_sem_acquire(&sem, 1, PIRN_NEVER);
    pirn_sem_deinit(&sem);
    return rc;
}

static int be_stuck(void *arg)
{
    return pirn_run(wait_for_nobody, arg);
}

static int oversleep(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ms(24 * 3600 * 1000));
}

static int spin(void *arg)
{
    (void)arg;
    /* Ends when it is given up: time that is looked at passes, but not that
     * fast. */
    while (pirn_now_ns() != 0)
        continue;
    return 0;
}

static int die(void *arg)
{
    (void)arg;
    abort();
}

static int leave(void *arg)
{
    (void)arg;
    _exit(3);
}

/* Goal: each way to go wrong is found and has its words.  Method: a program for
 * each. */
TEST(sim_wrong_programs_are_found)
{
    expect_finding(object, PIRN_SIM_CHECK_FAILED, "program", "this is wrong");
    expect_finding(return_error, PIRN_SIM_CHECK_FAILED, "program",
                   "it returns EBADMSG");
    expect_finding(be_stuck, PIRN_SIM_STUCK, "world",
                   "everybody waits for ever");
    expect_finding(oversleep, PIRN_SIM_LATE, "world",
                   "it has not ended in time");
    expect_finding(spin, PIRN_SIM_LIVELOCK, "world", "it does not end");
    expect_finding(die, PIRN_SIM_DIED, "world",
                   "the process ended with signal 6");
    expect_finding(leave, PIRN_SIM_DIED, "world",
                   "the process ended with exit status 3");
}

/* Some work, and a short rest, until it is calm or for ever. */
static int toil(void *forever)
{
    enum { CALLS = 5000 };

    /* Ends when it is calm, or given up. */
    while (forever != NULL || !pirn_sim_is_calm()) {
        int rc;

        for (int i = 0; i < CALLS; i++)
            (void)pirn_now_ns();
        rc = pirn_sleep(pirn_after_us(100));
        if (rc < 0)
            return rc;
    }
    return 0;
}

enum { PATIENCE = 3000000 /* calls; more are a livelock */ };

/* More calls than that, without a rest. */
static int hurry(void *arg)
{
    (void)arg;
    for (int i = 0; i < PATIENCE + PATIENCE / 3; i++)
        (void)pirn_now_ns();
    return 0;
}

/* In weather that stays bad for so long. */
static pirn_sim_result run_in_bad(pirn_sim_program_fn *program, void *arg,
                                  uint32_t fault_ms)
{
    pirn_sim_options bad = kind;

    bad.fault_ms = fault_ms;
    bad.live_s = PIRN_SIM_NONE;
    return run_apart(program, arg, bad);
}

/* Goal: bad weather may cost a program any number of calls, and does not count
 * when it is over.  Method: one that rests now and then before it is calm, one
 * that makes its calls half before and half after. */
TEST(sim_calls_in_bad_weather_are_no_livelock)
{
    pirn_sim_result result = run_in_bad(toil, NULL, 1000);

    EXPECT_EQ(PIRN_SIM_CLEAN, result.finding);
    EXPECT_LE(PATIENCE + 1, result.steps);
    result = run_in_bad(hurry, NULL, 400);
    EXPECT_EQ(PIRN_SIM_CLEAN, result.finding);
    EXPECT_LE(PATIENCE + 1, result.steps);
}

/* Goal: what goes on and on is found by its calls.  Method: one that rests now
 * and then, after it is calm; one that never does, before. */
TEST(sim_calls_without_end_are_livelock)
{
    int forever = 0;
    pirn_sim_result result = run_in_bad(toil, &forever, 50);

    EXPECT_EQ(PIRN_SIM_LIVELOCK, result.finding);
    EXPECT_STR_EQ("it does not end", result.text);
    result = run_in_bad(spin, NULL, 10000000);
    EXPECT_EQ(PIRN_SIM_LIVELOCK, result.finding);
    EXPECT_STR_EQ("it does not end", result.text);
}

static int end_in_a_second(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ms(1000));
}

/* A fiber that is asleep when everything ends; its handle is kept. */
static int forget_handle(void *arg)
{
    pirn_task *task;

    return pirn_go_with(end_in_a_second, arg, NULL, &task);
}

static int leak_memory(void *arg)
{
    return pirn_run(forget_handle, arg);
}

static int leak_connection(void *arg)
{
    pirn_listener *listener;

    (void)arg;
    return pirn_listener_open("127.0.0.1:0", NULL, &listener);
}

static int leak_listener(void *arg)
{
    return pirn_run(leak_connection, arg);
}

/* Goal: what a program does not give back is found.  Method: a handle and a
 * listener. */
TEST(sim_what_is_kept_is_found)
{
    pirn_sim_result result = run_apart(leak_memory, NULL, kind);

    EXPECT_EQ(PIRN_SIM_CHECK_FAILED, result.finding);
    EXPECT_STR_EQ("memory", result.checker);
    result = run_apart(leak_listener, NULL, kind);
    EXPECT_EQ(PIRN_SIM_CHECK_FAILED, result.finding);
    EXPECT(strcmp(result.checker, "descriptors") == 0 ||
           strcmp(result.checker, "memory") == 0);
}

/* Goal: the same seed makes the same run, here and in a child, and another seed
 * another one.  Method: compare hashes. */
TEST(sim_same_seed_makes_same_run)
{
    const pirn_sim_case scenario = {.program = conversation};
    pirn_sim_result here, again, apart, other;

    EXPECT_EQ(0, pirn_sim_run(&scenario, 5, &here));
    EXPECT_EQ(0, pirn_sim_run(&scenario, 5, &again));
    EXPECT_EQ(0, pirn_sim_search(&scenario, 5, 1, &apart));
    EXPECT_EQ(0, pirn_sim_run(&scenario, 6, &other));
    EXPECT_EQ(here.hash, again.hash);
    EXPECT_EQ(here.hash, apart.hash);
    EXPECT_EQ(here.steps, apart.steps);
    EXPECT_EQ(here.ns, apart.ns);
    EXPECT(memcmp(&here.options, &apart.options, sizeof here.options) == 0);
    EXPECT_NE(here.hash, other.hash);
}

/* Checkers. */

/* A checker that wants each descriptor closed before the next is opened. */
struct turnstile {
    int begun, ended;
    uint32_t open, opened, spawned;
};

static void turnstile_begin(void *arg)
{
    struct turnstile *turnstile = arg;

    turnstile->begun++;
    turnstile->open = 0;
}

static void turnstile_see(void *arg, enum pirn_sim_fact fact, uint64_t number)
{
    struct turnstile *turnstile = arg;

    (void)number;
    if (fact == PIRN_SIM_FD_OPENED) {
        turnstile->opened++;
        pirn_sim_check(turnstile->open++ == 0, "one at a time");
    } else if (fact == PIRN_SIM_FD_CLOSED) {
        turnstile->open--;
    } else if (fact == PIRN_SIM_TASK_SPAWNED) {
        turnstile->spawned++;
    }
}

static void turnstile_end(void *arg)
{
    struct turnstile *turnstile = arg;

    turnstile->ended++;
    if (turnstile->open > 0)
        pirn_sim_fail("%u are open", turnstile->open);
}

/* Goal: a checker of the user sees what happens, is asked at the end, and what
 * it finds bears its name.  Method: a program without descriptors is fine, one
 * with many is not. */
TEST(sim_checker_of_the_user_is_asked)
{
    struct turnstile turnstile = {0};
    const pirn_sim_checker checkers[] = {
        {.name = "idle"},
        {.name = "turnstile",
         .begin = turnstile_begin,
         .see = turnstile_see,
         .end = turnstile_end,
         .arg = &turnstile},
    };
    pirn_sim_case scenario = {
        .program = end_at_once, .checkers = checkers, .checker_count = 2};
    pirn_sim_result result;

    EXPECT_EQ(0, pirn_sim_run(&scenario, 1, &result));
    EXPECT_EQ(1, turnstile.begun);
    EXPECT_EQ(1, turnstile.ended);
    EXPECT_EQ(0, turnstile.opened);
    scenario.program = conversation;
    EXPECT_EQ(PIRN_EFAILED, pirn_sim_run(&scenario, 1, &result));
    EXPECT_EQ(2, turnstile.begun);
    EXPECT_EQ(2, turnstile.ended);
    EXPECT_NE(0, turnstile.opened);
    EXPECT_LE(2, turnstile.spawned);
    EXPECT_STR_EQ("turnstile", result.checker);
    EXPECT_STR_EQ("one at a time", result.text);
}

/* What must not be. */

static int run_inside(void *arg)
{
    const pirn_sim_case scenario = {.program = end_at_once};

    (void)arg;
    EXPECT(pirn_sim_is_on());
    EXPECT_EQ(-EBUSY, pirn_sim_run(&scenario, 1, NULL));
    EXPECT_EQ(-EBUSY, pirn_sim_search(&scenario, 1, 1, NULL));
    return 0;
}

static int run_in_task(void *arg)
{
    const pirn_sim_case scenario = {.program = end_at_once};

    (void)arg;
    EXPECT_EQ(-EDEADLK, pirn_sim_run(&scenario, 1, NULL));
    EXPECT_EQ(-EDEADLK, pirn_sim_search(&scenario, 1, 1, NULL));
    return 0;
}

/* In a child: a run that is given up, and another one. */
static void run_after_given_up(void *arg)
{
    const pirn_sim_case stuck = {.program = be_stuck, .options = kind};
    const pirn_sim_case fine = {.program = end_at_once};
    int *rcs = arg;

    rcs[0] = pirn_sim_run(&stuck, 1, NULL);
    rcs[1] = pirn_sim_run(&fine, 1, NULL);
    rcs[2] = pirn_sim_search(&fine, 1, 1, NULL);
}

/* Goal: one world at a time, none inside a task, and none after one that was
 * given up.  Method: try. */
TEST(sim_second_world_is_refused)
{
    const pirn_sim_case inside = {.program = run_inside};
    int *rcs = pirn__child_share(3 * sizeof *rcs);
    int status = -1;

    EXPECT_EQ(0, pirn_sim_run(&inside, 1, NULL));
    EXPECT_EQ(0, pirn_run(run_in_task, NULL));
    REQUIRE(rcs != NULL);
    EXPECT_EQ(0, pirn__child_run(run_after_given_up, rcs, false, &status));
    /* What is left behind is a leak to Valgrind. */
    EXPECT(status == 0 || pirn__checker_active());
    EXPECT_EQ(PIRN_EFAILED, rcs[0]);
    EXPECT_EQ(-EBUSY, rcs[1]);
    EXPECT_EQ(-EBUSY, rcs[2]);
    pirn__child_unshare(rcs, 3 * sizeof *rcs);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

/* Goal: outside a run all that programs ask has an answer.  Method: ask. */
TEST(sim_outside_a_run_the_world_is_real)
{
    pirn_sleep_op op;
    uint64_t now;

    EXPECT(!pirn_sim_is_on());
    EXPECT(pirn_sim_is_calm());
    EXPECT(pirn_sim_check(true, "right"));
    EXPECT(!pirn_sim_check(false, "wrong"));
    EXPECT(!pirn_sim_check(false, NULL));
    pirn_sim_fail("nothing %d", 1);
    EXPECT_NE(pirn_sim_random(), pirn_sim_random());
    EXPECT_EQ(0, pirn_sim_below(0));
    EXPECT_EQ(0, pirn_sim_below(1));
    EXPECT(!pirn_sim_chance(0));
    EXPECT(pirn_sim_chance(1000));
    pirn_sim_pause("here", 1);
    pirn_sim_pause(NULL, 1);
    now = pirn_now_ns();
    pirn_sim_block(1);
    EXPECT_LE(now + 1000000, pirn_sim_now_ns());
    EXPECT_EQ(-EPERM, pirn_sim_thread(do_nothing, NULL));
    pirn_sim_watch(NULL);
    pirn_sleep_init(&op, PIRN_EXPIRED);
    pirn_sim_watch(&op.future);
    EXPECT_EQ(0, pirn_sim_await(&op.future, PIRN_NEVER));
    EXPECT_EQ(0, pirn_sim_sleep(PIRN_EXPIRED));
}

/* Memory. */

struct shortage {
    rlim_t more; /* bytes of address space */
    int rc;
};

/* In a child. */
static void run_short(void *arg)
{
    const pirn_sim_case scenario = {.program = conversation, .options = kind};
    struct shortage *shortage = arg;
    struct rlimit limit = {0};
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");

    shortage->rc = 1;
    if (statm == NULL || fscanf(statm, "%lu", &pages) != 1)
        return;
    fclose(statm);
    limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + shortage->more;
    limit.rlim_max = limit.rlim_cur;
    /* What malloc has kept of earlier tests would be no shortage. */
    if (setrlimit(RLIMIT_AS, &limit) == 0)
        shortage->rc = pirn_sim_run(&scenario, 1, NULL);
}

/* Goal: want of memory is an error, wherever it meets the world, or the program
 * is told.  Method: let a child have ever more address space until it has
 * enough. */
TEST(sim_without_memory_is_an_error)
{
    struct shortage *shortage = pirn__child_share(sizeof *shortage);
    int refusals = 0;
    int status = -1;

    REQUIRE(shortage != NULL);
    if (pirn__checker_active())
        SKIP("the checker takes address space of its own");
    shortage->rc = -ENOMEM;
    for (int i = 0; i < 400 && shortage->rc != 0; i++) {
        shortage->more = (rlim_t)i * (64 << 10);
        EXPECT_EQ(0, pirn__child_run(run_short, shortage, true, &status));
        EXPECT_EQ(0, status);
        EXPECT(shortage->rc == 0 || shortage->rc == -ENOMEM ||
               shortage->rc == PIRN_EFAILED);
        refusals += shortage->rc == -ENOMEM;
    }
    EXPECT_EQ(0, shortage->rc);
    EXPECT_LE(2, refusals);
    pirn__child_unshare(shortage, sizeof *shortage);
}
