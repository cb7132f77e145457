/* SPDX-License-Identifier: MIT */
/* src/fiber/run_test.c - a whole program in one call. */
#include "fiber/rig_test.h"

static int return_arg(void *arg)
{
    return *(int *)arg;
}

/* Goal: the first fiber's outcome is the call's, and makes an exit status.
 * Method: success, a count, a failure, a cancellation. */
TEST(run_returns_the_outcome_of_the_first_fiber)
{
    static const struct {
        int outcome;
        int status;
    } tries[] = {{0, 0}, {7, 0}, {-EIO, 1}, {-ECANCELED, 130},
                 {PIRN_ECLOSED, 1}};

    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        int outcome = tries[i].outcome;
        int rc = pirn_run(return_arg, &outcome);

        EXPECT_EQ(tries[i].outcome, rc);
        EXPECT_EQ(tries[i].status, pirn_exit_code(rc));
    }
}

/* Goal: nonsense is refused and the report then says nothing.
 * Method: no function; an option out of range. */
TEST(run_of_nonsense_is_refused)
{
    const pirn_runtime_options options = {.stack_size_bytes = 1};
    pirn_report report = {.spawned = 99};
    int zero = 0;

    EXPECT_EQ(-EINVAL, pirn_run(NULL, NULL));
    EXPECT_EQ(-EINVAL, pirn_run_with(NULL, NULL, NULL, &report));
    EXPECT_EQ(0, report.spawned);
    report.spawned = 99;
    EXPECT_EQ(-EINVAL, pirn_run_with(return_arg, &zero, &options, &report));
    EXPECT_EQ(0, report.spawned);
}


static int run_inside(void *arg)
{
    int zero = 0;

    (void)arg;
    EXPECT_EQ(-EDEADLK, pirn_run(return_arg, &zero));
    EXPECT_STR_EQ("main", (const char *)arg);
    return 0;
}

/* Goal: a run inside a task is refused.
 * Method: the first fiber tries. */
TEST(run_inside_a_run_is_a_deadlock)
{
    static char words[] = "main";

    EXPECT_EQ(0, pirn_run(run_inside, words));
    EXPECT_PTR_EQ(NULL, pirn_runtime_current());
}

static int look_at_site(void *arg)
{
    pirn_task *self;

    (void)arg;
    REQUIRE_OR_RETURN(pirn_id_find(pirn_task_self(), &self) == 0, -EIO);
    EXPECT_STR_EQ("pirn_run", pirn_task_site(self));
    pirn_task_unref(self);
    return 0;
}

/* Goal: reports do not name a line of the library as the spawn of the first
 * fiber. */
TEST(run_is_the_site_of_the_first_fiber)
{
    EXPECT_EQ(0, pirn_run(look_at_site, NULL));
}

typedef PIRN_ATOMIC(int) count;

static int sleep_long(void *arg)
{
    count *cancelled = arg;
    int rc = pirn_sleep(PIRN_NEVER);

    /* relaxed: read when all is over. */
    pirn__add(cancelled, rc == -ECANCELED, relaxed);
    return rc;
}

static int leave_others_behind(void *arg)
{
    pirn_task *self;

    for (int i = 0; i < 5; i++)
        EXPECT_EQ(0, pirn_go(sleep_long, arg));
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(0, pirn_id_find(pirn_task_self(), &self));
    EXPECT_STR_EQ("main", pirn_task_name(self));
    pirn_task_unref(self);
    return 3;
}

/* Goal: when the first fiber has returned the others are cancelled and leave by
 * their own way, and the report says so.
 * Method: five sleepers. */
TEST(run_cancels_what_the_first_fiber_left)
{
    pirn_report report;
    count cancelled;

    pirn__init(&cancelled, 0);
    EXPECT_EQ(3, pirn_run_with(leave_others_behind, &cancelled, NULL, &report));
    /* relaxed: all is over. */
    EXPECT_EQ(5, pirn__load(&cancelled, relaxed));
    EXPECT_EQ(6, report.spawned);
    EXPECT_EQ(1, report.completed);
    EXPECT_EQ(5, report.cancelled);
    EXPECT_EQ(0, report.failed + report.aborted + report.quarantined);
    EXPECT(report.in_time);
}

static void count_failure(void *arg, const pirn_failure *failure)
{
    (void)failure;
    ++*(int *)arg;
}

static int panic_now(void *arg)
{
    pirn_panic("arg %p", arg);
}

/* Goal: the first fiber is joined by the call, so that its failure is not
 * reported twice; a panic is an outcome like another.
 * Method: a failure and a panic, with a hook that counts. */
TEST(run_joins_the_first_fiber)
{
    int hooks = 0, eio = -EIO;
    const pirn_runtime_options options = {.on_failure = count_failure,
                                          .on_failure_arg = &hooks};
    pirn_report report;

    EXPECT_EQ(-EIO, pirn_run_with(return_arg, &eio, &options, &report));
    EXPECT_EQ(1, report.failed);
    EXPECT_EQ(PIRN_EPANIC, pirn_run_with(panic_now, NULL, &options, &report));
    EXPECT_EQ(1, report.failed);
    EXPECT_EQ(1, report.quarantined);
    EXPECT_EQ(0, hooks);
}

/* Goal: memory that runs out anywhere in the making is reported, the function
 * has not run, and nothing is lost.
 * Method: fail the first allocation, the second, ... until the run succeeds. */
TEST(run_without_memory_gives_everything_back)
{
    bool ran = false;

    for (int nth = 1; !ran; nth++) {
        struct rig rig = {
            .alloc = {.take = rig_take, .give = rig_give, .done = rig_done},
            .fail_at = nth,
        };
        const pirn_runtime_options options = {.alloc = &rig.alloc};
        int seven = 7;
        int rc;

        REQUIRE(nth < 50);
        rig.alloc.ctx = &rig;
        rc = pirn_run_with(return_arg, &seven, &options, NULL);
        ran = rc == 7;
        if (!ran)
            EXPECT_EQ(-ENOMEM, rc);
        EXPECT_EQ(0, rig_pieces(&rig));
        if (ran)
            EXPECT_EQ(1, rig_dones(&rig));
    }
}
