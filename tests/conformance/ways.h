/* SPDX-License-Identifier: MIT */
/* tests/conformance/ways.h - the ways in which a story is told.
 *
 * A story is a function that makes calls through its way, and expects the same
 * whatever the way is: in which place it is told, and whether a call is the
 * straight-line one or awaits the operation.
 */
#ifndef PIRN_CONFORMANCE_WAYS_H
#define PIRN_CONFORMANCE_WAYS_H

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/test.h"

struct way {
    const char *name;
    uint32_t workers;
    void (*tell)(const struct way *way, void (*story)(const struct way *way));
    /* Await an operation: what pirn_await() says.  NULL: straight-line. */
    int (*await)(pirn_future *future, pirn_deadline deadline);
    enum pirn_pool_kind pool;
    bool fiber_partner; /* who takes part in the story is a fiber, no thread */
};

static pirn_runtime *host; /* of the ways that enter one */

struct telling {
    const struct way *way;
    void (*story)(const struct way *way);
};

static int tell_in_fiber(void *arg)
{
    const struct telling *telling = arg;

    telling->story(telling->way);
    return 0;
}

static void tell_by_run(const struct way *way,
                        void (*story)(const struct way *way))
{
    struct telling telling = {way, story};
    const pirn_runtime_options options = {.workers = way->workers,
                                          .pool = way->pool};

    EXPECT_EQ(0, pirn_run_with(tell_in_fiber, &telling, &options, NULL));
}

/* On a plain thread, without a runtime. */
static void tell_alone(const struct way *way,
                       void (*story)(const struct way *way))
{
    story(way);
}

/* On a plain thread that has entered a runtime. */
static void tell_entered(const struct way *way,
                         void (*story)(const struct way *way))
{
    const pirn_runtime_options options = {.workers = way->workers,
                                          .pool = way->pool};
    pirn_runtime *outer;

    EXPECT_EQ(0, pirn_runtime_new(&options, &host));
    outer = pirn_runtime_enter(host);
    story(way);
    (void)pirn_runtime_enter(outer);
    EXPECT_EQ(0, pirn_runtime_shutdown(host, PIRN_NEVER, NULL));
    pirn_runtime_unref(host);
}

static int await_on_host(pirn_future *future, pirn_deadline deadline)
{
    return pirn_block_on(host, future, deadline);
}

/* Tell a story in every way; a failure says in which. */
static void tell_by_all(const struct way *ways, size_t count,
                        void (*story)(const struct way *way))
{
    for (size_t i = 0; i < count; i++) {
        int before = test_failures();

        ways[i].tell(&ways[i], story);
        if (test_failures() != before)
            test__fail(__FILE__, __LINE__, "told by way of '%s'", ways[i].name);
    }
}

#endif /* PIRN_CONFORMANCE_WAYS_H */
