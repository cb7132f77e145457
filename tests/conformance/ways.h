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
#include "engine/world.h"

struct way;
typedef void story_fn(const struct way *way);

struct way {
    const char *name;
    uint32_t workers;
    void (*tell)(const struct way *way, story_fn *story);
    /* Await an operation: what pirn_await() says.  NULL: straight-line. */
    int (*await)(pirn_future *future, pirn_deadline deadline);
    enum pirn_pool_kind pool;
    bool fiber_partner; /* who takes part in the story is a fiber, no thread */
};

/* A call begins; true if it is to be the straight-line one. */
static bool is_straight(const struct way *way)
{
    world_pause();
    return way->await == NULL;
}

/* What the way's await says. */
static int way_await(const struct way *way, pirn_future *future,
                     pirn_deadline deadline)
{
    world_watch(future);
    return way->await(future, deadline);
}

static pirn_runtime *host; /* of the ways that enter one */

static pirn_runtime_options way_options(const struct way *way)
{
    return (pirn_runtime_options){.workers = way->workers, .pool = way->pool};
}

struct telling {
    const struct way *way;
    story_fn *story;
};

static int tell_in_fiber(void *arg)
{
    const struct telling *telling = arg;

    telling->story(telling->way);
    return 0;
}

static void tell_by_run(const struct way *way, story_fn *story)
{
    struct telling telling = {way, story};
    const pirn_runtime_options options = way_options(way);

    EXPECT_EQ(0, world_run(&options, tell_in_fiber, &telling));
}

/* On a plain thread, without a runtime. */
static void tell_alone(const struct way *way, story_fn *story)
{
    story(way);
}

/* On a plain thread that has entered a runtime. */
static void tell_entered(const struct way *way, story_fn *story)
{
    const pirn_runtime_options options = way_options(way);
    pirn_runtime *outer;

    host = world_runtime_new(&options);
    outer = pirn_runtime_enter(host);
    story(way);
    (void)pirn_runtime_enter(outer);
    world_runtime_end(host);
}

static int await_on_host(pirn_future *future, pirn_deadline deadline)
{
    return pirn_block_on(host, future, deadline);
}

/* A story in some ways. */
struct tale {
    const struct way *ways;
    story_fn *story;
};

static void tell_tale(void *arg, size_t index)
{
    const struct tale *tale = arg;
    const struct way *way = &tale->ways[index];
    int before = test_failures();

    way->tell(way, tale->story);
    if (test_failures() != before)
        test__fail(__FILE__, __LINE__, "told by way of '%s'", way->name);
}

/* Tell a story in every way; a failure says in which. */
static void tell_by_all(const char *test, const struct way *ways, size_t count,
                        story_fn *story)
{
    struct tale tale = {ways, story};

    world_tell(test, count, tell_tale, &tale);
}

#endif /* PIRN_CONFORMANCE_WAYS_H */
