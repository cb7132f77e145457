/* SPDX-License-Identifier: MIT */
/* src/sched/runtime_test.h - what the tests of a whole runtime share: counters,
 * crews of threads, an allocator that counts and can fail, futures made of a
 * function, and a bell that any thread can ring.
 */
#ifndef PIRN_SCHED_RUNTIME_TEST_H
#define PIRN_SCHED_RUNTIME_TEST_H

#include <pirn/fiber.h>
#include <pirn/runtime.h>
#include <pirn/time.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "engine/test.h"

enum {
    CREW_MAX = 16,
    RESCUE_MS = 30 * 1000, /* longer than any wait of a test that passes */
};

/* A count that several threads share. */
typedef PIRN_ATOMIC(uint64_t) tally;

static inline uint64_t tally_of(tally *count)
{
    /* acquire [test.tally]: sees what was done before it was counted. */
    return pirn__load(count, acquire);
}

/* Returns the count before. */
static inline uint64_t tally_up(tally *count)
{
    /* acq_rel [test.tally]: publishes what was done before. */
    return pirn__add(count, 1, acq_rel);
}

static inline uint64_t tally_down(tally *count)
{
    /* acq_rel [test.tally]: as above. */
    return pirn__sub(count, 1, acq_rel);
}

static inline void tally_set(tally *count, uint64_t value)
{
    /* release [test.tally]: publishes what was done before. */
    pirn__store(count, value, release);
}

/* Ends with the progress of other threads; the engine watches the time. */
static inline void wait_for_tally(tally *count, uint64_t value)
{
    while (tally_of(count) < value)
        sched_yield();
}

/* Threads that run fn(arg, index). */
typedef void crew_fn(void *arg, size_t index);

struct crew_member {
    pthread_t thread;
    crew_fn *fn;
    void *arg;
    size_t index;
};

struct crew {
    size_t count;
    struct crew_member members[CREW_MAX];
};

static inline void *crew_member_run(void *arg)
{
    struct crew_member *member = arg;

    member->fn(member->arg, member->index);
    return NULL;
}

static inline void crew_start(struct crew *crew, size_t count, crew_fn *fn,
                              void *arg)
{
    crew->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct crew_member *member = &crew->members[i];

        *member = (struct crew_member){.fn = fn, .arg = arg, .index = i};
        REQUIRE(pthread_create(&member->thread, NULL, crew_member_run,
                               member) == 0);
        crew->count++;
    }
}

static inline void crew_join(struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++)
        pthread_join(crew->members[i].thread, NULL);
}

/* One thread, to its end. */
static inline void on_another_thread(crew_fn *fn, void *arg)
{
    struct crew crew;

    crew_start(&crew, 1, fn, arg);
    crew_join(&crew);
}

/* Memory that is counted.  The `fails_at`th request from now is refused, and
 * with `onwards` all later ones; 0: none. */
struct meter {
    pirn_alloc alloc;
    tally pieces; /* that are out */
    tally requests;
    tally dones;
    uint64_t fails_at;
    bool onwards;
};

static inline bool meter_refuses(const struct meter *meter, uint64_t request)
{
    if (meter->fails_at == 0)
        return false;
    return meter->onwards ? request >= meter->fails_at
                          : request == meter->fails_at;
}

static inline void *meter_take(void *ctx, size_t size, size_t align)
{
    struct meter *meter = ctx;

    if (meter_refuses(meter, tally_up(&meter->requests) + 1))
        return NULL;
    tally_up(&meter->pieces);
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static inline void meter_give(void *ctx, void *memory, size_t size,
                              size_t align)
{
    struct meter *meter = ctx;

    (void)size;
    (void)align;
    free(memory);
    tally_down(&meter->pieces);
}

static inline void meter_done(void *ctx)
{
    struct meter *meter = ctx;

    EXPECT_EQ(0, tally_of(&meter->pieces));
    tally_up(&meter->dones);
}

static inline void meter_init(struct meter *meter)
{
    *meter = (struct meter){
        .alloc = {.take = meter_take, .give = meter_give, .done = meter_done},
    };
    meter->alloc.ctx = meter;
}

/* Refuse the kth request from now. */
static inline void meter_fail(struct meter *meter, uint64_t kth, bool onwards)
{
    tally_set(&meter->requests, 0);
    meter->fails_at = kth;
    meter->onwards = onwards;
}

/* True if a refusal has been met since meter_fail(). */
static inline bool meter_has_failed(struct meter *meter)
{
    return meter->fails_at != 0 &&
           tally_of(&meter->requests) >= meter->fails_at;
}

static inline pirn_runtime *runtime_on(struct meter *meter)
{
    const pirn_runtime_options options = {.alloc = &meter->alloc};
    pirn_runtime *rt = NULL;

    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    return rt;
}

static inline pirn_runtime *runtime_new(void)
{
    pirn_runtime *rt = NULL;

    EXPECT_EQ(0, pirn_runtime_new(NULL, &rt));
    return rt;
}

/* Everything ends in order. */
static inline pirn_report runtime_end(pirn_runtime *rt)
{
    pirn_report report;

    EXPECT_EQ(0, pirn_runtime_shutdown(rt, pirn_after_ms(RESCUE_MS), &report));
    EXPECT(report.in_time);
    EXPECT_EQ(0, report.aborted);
    EXPECT_EQ(0, report.quarantined);
    EXPECT_EQ(0, report.still_running);
    pirn_runtime_unref(rt);
    return report;
}

/* Run what is ready; returns the number of polls. */
static inline int turn(pirn_runtime *rt)
{
    int polls = pirn_runtime_turn(rt, PIRN_NEVER);

    EXPECT_GE(polls, 0);
    return polls;
}

static inline void go(pirn_runtime *rt, pirn_fiber_fn *fn, void *arg)
{
    const pirn_spawn_options options = {.runtime = rt};

    EXPECT_EQ(0, pirn_go_with(fn, arg, &options, NULL));
}

static inline pirn_task *go_task(pirn_runtime *rt, pirn_fiber_fn *fn, void *arg)
{
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task = NULL;

    EXPECT_EQ(0, pirn_go_with(fn, arg, &options, &task));
    return task;
}

/* The outcome of a task that ends; gives the handle up. */
static inline int join_and_unref(pirn_task *task)
{
    int outcome = INT32_MIN;

    EXPECT_EQ(0, pirn_task_join(task, pirn_after_ms(RESCUE_MS), &outcome));
    pirn_task_unref(task);
    return outcome;
}

/* A future made of a function. */
struct probe;
typedef enum pirn_poll probe_step(struct probe *probe, pirn_cx *cx);

struct probe {
    pirn_future future;
    probe_step *step;
    void *arg;
    uint64_t polls; /* before this one */
    tally *drops;   /* counted there, if not NULL */
    int outcome;
};

static inline enum pirn_poll probe_poll(pirn_future *self, pirn_cx *cx)
{
    struct probe *probe = PIRN_CONTAINER_OF(self, struct probe, future);
    enum pirn_poll poll = probe->step(probe, cx);

    probe->polls++;
    return poll;
}

static inline void probe_drop(pirn_future *self)
{
    struct probe *probe = PIRN_CONTAINER_OF(self, struct probe, future);

    if (probe->drops != NULL)
        tally_up(probe->drops);
}

static inline int probe_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const struct probe, future)->outcome;
}

static inline void probe_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "a probe");
}

static inline struct probe probe_of(probe_step *step, void *arg, tally *drops)
{
    static const pirn_future_ops ops = {
        .poll = probe_poll,
        .drop = probe_drop,
        .describe = probe_describe,
        .outcome = probe_outcome,
    };

    return (struct probe){
        .future = {&ops}, .step = step, .arg = arg, .drops = drops};
}

static inline enum pirn_poll step_never(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    (void)cx;
    return PIRN_PENDING;
}

static inline enum pirn_poll step_ready(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    (void)cx;
    return PIRN_READY;
}

/* Spawn a probe; `out` may be NULL. */
static inline void spawn_probe(pirn_runtime *rt, probe_step *step, void *arg,
                               pirn_task **out)
{
    const pirn_spawn_options options = {.runtime = rt};
    struct probe probe = probe_of(step, arg, NULL);

    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, out));
}

/* Something that any thread can announce once to one waiter. */
struct bell {
    pthread_mutex_t mutex;
    pirn_waker waker; /* mutex */
    bool rung;        /* mutex */
    tally waiting;    /* polls that had to wait */
    tally drops;
};

struct bell_wait {
    pirn_future future;
    struct bell *bell;
};

static inline void bell_init(struct bell *bell)
{
    *bell = (struct bell){.rung = false};
    pthread_mutex_init(&bell->mutex, NULL);
}

/* May be rung again once its waiter has seen it. */
static inline void bell_ring(struct bell *bell)
{
    pirn_waker waker;

    pthread_mutex_lock(&bell->mutex);
    bell->rung = true;
    waker = pirn_waker_take(&bell->waker);
    pthread_mutex_unlock(&bell->mutex);
    pirn_waker_wake(waker);
}

static inline enum pirn_poll bell_poll(pirn_future *self, pirn_cx *cx)
{
    struct bell *bell = PIRN_CONTAINER_OF(self, struct bell_wait, future)->bell;
    pirn_waker old = {0};
    bool rung;

    pthread_mutex_lock(&bell->mutex);
    rung = bell->rung;
    bell->rung = false;
    if (!rung)
        old = pirn_waker_store(&bell->waker, cx);
    pthread_mutex_unlock(&bell->mutex);
    pirn_waker_drop(old);
    if (!rung)
        tally_up(&bell->waiting);
    return rung ? PIRN_READY : PIRN_PENDING;
}

static inline void bell_drop(pirn_future *self)
{
    struct bell *bell = PIRN_CONTAINER_OF(self, struct bell_wait, future)->bell;
    pirn_waker waker;

    pthread_mutex_lock(&bell->mutex);
    waker = pirn_waker_take(&bell->waker);
    pthread_mutex_unlock(&bell->mutex);
    pirn_waker_drop(waker);
    tally_up(&bell->drops);
}

static inline void bell_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "the bell");
}

static inline struct bell_wait bell_wait_of(struct bell *bell)
{
    static const pirn_future_ops ops = {
        .poll = bell_poll, .drop = bell_drop, .describe = bell_describe};

    return (struct bell_wait){{&ops}, bell};
}

/* A fiber that waits for the bell. */
static inline int hear_bell(void *arg)
{
    struct bell_wait wait = bell_wait_of(arg);

    return pirn_await(&wait.future, PIRN_NEVER);
}

static inline int bell_block_on(pirn_runtime *rt, struct bell *bell,
                                pirn_deadline deadline)
{
    struct bell_wait wait = bell_wait_of(bell);

    return pirn_block_on(rt, &wait.future, deadline);
}

#endif /* PIRN_SCHED_RUNTIME_TEST_H */
