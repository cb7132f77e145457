/* SPDX-License-Identifier: MIT */
/* tests/regress/thread_record_refused.c - no memory for the record of a thread.
 *
 * The record belongs to the process and comes from malloc(), which the linker
 * has wrapped here.  Without memory a worker cannot be started, which is an
 * error of whoever starts it; but a runtime can always be ended.
 */
#include <pirn/blocking.h>

#include "sched/runtime_test.h"
#include "task/local.h"

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

/* Requests of a record's size: how many are granted before all are refused; or
 * negative: all are granted. */
static PIRN_ATOMIC(int) granted;

void *__wrap_malloc(size_t size)
{
    /* relaxed: the threads of a test take their records one after the other. */
    if (size == sizeof(struct pirn__local) &&
        pirn__load(&granted, relaxed) >= 0 &&
        /* relaxed: as above. */
        pirn__sub(&granted, 1, relaxed) <= 0) {
        /* relaxed: as above. */
        pirn__store(&granted, 0, relaxed);
        return NULL;
    }
    return __real_malloc(size);
}

static void grant(int count)
{
    /* relaxed: as above. */
    pirn__store(&granted, count, relaxed);
}

/* Goal: a runtime whose nth worker gets no record is not made, and nothing of it
 * stays.
 * Method: three workers, with memory for none, one, two and all of their
 * records. */
TEST(workers_without_a_record_are_an_error_of_the_start)
{
    (void)pirn__local();
    for (int count = 0; count <= 3; count++) {
        struct meter meter;
        pirn_runtime_options options = {.workers = 3};
        pirn_runtime *rt = NULL;

        meter_init(&meter);
        options.alloc = &meter.alloc;
        grant(count);
        EXPECT_EQ(count < 3 ? -ENOMEM : 0, pirn_runtime_new(&options, &rt));
        grant(-1);
        if (count == 3) {
            (void)runtime_end(rt);
            wait_for_tally(&meter.dones, 1);
        } else {
            EXPECT_PTR_EQ(NULL, rt);
        }
        EXPECT_EQ(0, tally_of(&meter.pieces));
    }
}

static int never_called(void *arg)
{
    (void)arg;
    EXPECT(false);
    return 0;
}

static int block_without_record(void *arg)
{
    (void)arg;
    grant(0);
    EXPECT_EQ(-ENOMEM, pirn_block_in_place(never_called, NULL));
    grant(-1);
    EXPECT_EQ(0, pirn_yield());
    return 7;
}

/* Goal: blocking in place without memory for another thread's record is refused,
 * and the worker goes on.
 * Method: refuse it in a fiber, which then yields. */
TEST(block_in_place_without_a_record_is_refused)
{
    const pirn_runtime_options options = {.workers = 1};

    EXPECT_EQ(7, pirn_run_with(block_without_record, NULL, &options, NULL));
}

static int sleep_long(void *arg)
{
    (void)arg;
    return pirn_sleep(PIRN_NEVER);
}

struct ending {
    pirn_runtime *rt;
    bool orderly;
    int rc;
};

/* On a thread without a record, which gets none. */
static void *end_without_record(void *arg)
{
    struct ending *ending = arg;
    pirn_report report = {0};

    grant(0);
    if (ending->orderly) {
        ending->rc = pirn_runtime_shutdown(ending->rt, PIRN_NEVER, &report);
        EXPECT_EQ(1, report.cancelled);
    }
    pirn_runtime_unref(ending->rt);
    grant(-1);
    return NULL;
}

/* Goal: a runtime can be ended on a thread that has no memory for a record.
 * Method: with and without workers, by a shutdown and by the last reference,
 * while a fiber sleeps. */
TEST(runtime_is_ended_without_a_record)
{
    for (int turn = 0; turn < 4; turn++) {
        struct ending ending = {.orderly = turn % 2 == 0, .rc = 0};
        pirn_runtime_options options = {.workers = turn < 2 ? 2 : 0};
        pirn_spawn_options spawn = {0};
        struct meter meter;
        pthread_t thread;

        meter_init(&meter);
        options.alloc = &meter.alloc;
        REQUIRE(pirn_runtime_new(&options, &ending.rt) == 0);
        spawn.runtime = ending.rt;
        EXPECT_EQ(0, pirn_go_with(sleep_long, NULL, &spawn, NULL));
        REQUIRE(pthread_create(&thread, NULL, end_without_record, &ending) ==
                0);
        pthread_join(thread, NULL);
        EXPECT_EQ(0, ending.rc);
        wait_for_tally(&meter.dones, 1);
    }
}
