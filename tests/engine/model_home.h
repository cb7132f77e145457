/* SPDX-License-Identifier: MIT */
/* tests/engine/model_home.h - what stands for a runtime in model tests: a home
 * over the explorer's heap, whose queue any thread may push to and run; and
 * wakers that count.
 */
#ifndef PIRN_TESTS_ENGINE_MODEL_HOME_H
#define PIRN_TESTS_ENGINE_MODEL_HOME_H

#include "base/list.h"
#include "base/lock.h"
#include "engine/explore.h"
#include "sys/sys.h"
#include "task/group.h"
#include "task/home.h"
#include "task/local.h"
#include "task/task.h"

struct model_home {
    struct pirn__home home; /* first */
    struct pirn__slabs slabs;
    struct pirn__group group;
    pirn_lock lock;
    struct pirn__queue queue; /* lock */
    PIRN_ATOMIC(uint32_t) wakes; /* of the driver */
    PIRN_ATOMIC(int) frees;
};

static inline struct model_home *model_home_of(struct pirn__home *home)
{
    return (struct model_home *)(void *)home;
}

static inline void model_home_submit(struct pirn__home *home,
                                     struct pirn__task *task,
                                     enum pirn__origin origin)
{
    struct model_home *model = model_home_of(home);

    (void)origin;
    pirn__lock(&model->lock);
    pirn__queue_push(&model->queue, &task->cell.link);
    pirn__unlock(&model->lock);
}

static inline void model_home_wake(struct pirn__home *home)
{
    struct model_home *model = model_home_of(home);

    /* release: as a driver that is woken sees why. */
    pirn__add(&model->wakes, 1, release);
    pirn__sys->futex_wake(&model->wakes.v_, 1);
}

/* How often the driver has been woken; wait for more than that. */
static inline uint32_t model_home_wakes(struct model_home *model)
{
    return pirn__load(&model->wakes, acquire);
}

static inline void model_home_wait(struct model_home *model, uint32_t seen)
{
    (void)pirn__sys->futex_wait(&model->wakes.v_, seen, PIRN_NEVER);
}

/* A plain thread never drives here. */
static inline void model_home_park(struct pirn__home *home,
                                   struct pirn__parker *parker,
                                   pirn_deadline deadline)
{
    (void)home;
    pirn__parker_park(parker, deadline);
}

static inline uint64_t model_home_now(struct pirn__home *home)
{
    (void)home;
    return 1000000;
}

static inline void model_home_failed(struct pirn__home *home,
                                     const pirn_failure *failure)
{
    (void)home;
    (void)failure;
}

static inline void model_home_free(struct pirn__home *home)
{
    pirn__add(&model_home_of(home)->frees, 1, relaxed);
}

static inline void model_home_begin(struct model_home *model)
{
    static const struct pirn__home_ops ops = {
        .submit = model_home_submit,
        .wake = model_home_wake,
        .drive_or_park = model_home_park,
        .now = model_home_now,
        .failed = model_home_failed,
        .free = model_home_free,
    };

    *model = (struct model_home){
        .home.ops = &ops,
        .home.alloc = &explore_heap,
        .home.blocking_threads = 1,
        .home.blocking_queue = 2,
    };
    pirn__init(&model->home.refs, 1);
    pirn__list_init(&model->home.participants);
    pirn__slabs_init(&model->slabs, &explore_heap, NULL, &model->home);
    pirn__group_init(&model->group, &model->home, &model->slabs);
}

/* After the join: every task has ended and nobody holds a cell. */
static inline void model_home_finish(struct model_home *model)
{
    EXPLORE_CHECK(pirn__group_read(&model->group).live == 0);
    EXPLORE_CHECK(pirn__slabs_retire(&model->slabs));
}

/* Run one queued task; false if there is none. */
static inline bool model_home_run(struct model_home *model)
{
    struct pirn__turn turn = {.home = &model->home,
                              .budget = PIRN__COOP_BUDGET};
    struct pirn__task *task;
    pirn_slink *link;

    pirn__lock(&model->lock);
    link = pirn__queue_pop(&model->queue);
    pirn__unlock(&model->lock);
    if (link == NULL)
        return false;
    task = pirn__task_of_link(link);
    if (pirn__task_run(task, &turn, NULL) == PIRN__WAKE_SUBMIT)
        model_home_submit(&model->home, task, PIRN__ORIGIN_WAKE);
    return true;
}

/* Run what is queued; ends when nothing is. */
static inline void model_home_drain(struct model_home *model)
{
    while (model_home_run(model))
        continue;
}

/* Move a future into a task; NULL when the gate is shut. */
static inline struct pirn__task *
model_home_spawn(struct model_home *model, const pirn_future *future,
                 size_t size, bool handle)
{
    struct pirn__task_plan plan = {
        .ops = &pirn__stackless_ops,
        .home = &model->home,
        .slabs = &model->slabs,
        .future = future,
        .size = size,
        .site = PIRN_SITE,
        .handle = handle,
    };
    struct pirn__task *task = pirn__task_new(&plan);

    EXPLORE_CHECK(task != NULL);
    if (pirn__group_admit(&model->group, NULL, task, &plan) < 0) {
        pirn__task_discard_new(task, &plan);
        return NULL;
    }
    model_home_submit(&model->home, task, PIRN__ORIGIN_SPAWN);
    return task;
}

/* Who is woken: counts its wakers that are out, and its rings. */
struct model_bell {
    PIRN_ATOMIC(int) wakers;
    PIRN_ATOMIC(int) rings;
};

static inline pirn_waker model_bell_clone(const pirn_waker *self)
{
    struct model_bell *bell = self->data;

    pirn__add(&bell->wakers, 1, relaxed);
    return *self;
}

static inline void model_bell_wake_by_ref(const pirn_waker *self)
{
    struct model_bell *bell = self->data;

    /* release: who finds itself woken sees why. */
    pirn__add(&bell->rings, 1, release);
}

static inline void model_bell_drop(pirn_waker self)
{
    struct model_bell *bell = self.data;

    pirn__sub(&bell->wakers, 1, relaxed);
}

static inline void model_bell_wake(pirn_waker self)
{
    model_bell_wake_by_ref(&self);
    model_bell_drop(self);
}

/* A waker that does not count. */
static inline pirn_waker model_bell_waker(struct model_bell *bell)
{
    static const pirn_waker_ops ops = {
        .clone = model_bell_clone,
        .wake = model_bell_wake,
        .wake_by_ref = model_bell_wake_by_ref,
        .drop = model_bell_drop,
    };

    return (pirn_waker){.data = bell, .ops = &ops};
}

/* Poll with the bell's waker. */
static inline enum pirn_poll model_bell_poll(struct model_bell *bell,
                                             pirn_future *future)
{
    const pirn_waker waker = model_bell_waker(bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    return pirn_future_poll(future, &cx);
}

/* True after a ring; then what the ringer did before is seen. */
static inline bool model_bell_rang(struct model_bell *bell)
{
    return pirn__load(&bell->rings, acquire) > 0;
}

static inline int model_bell_wakers(struct model_bell *bell)
{
    return pirn__load(&bell->wakers, relaxed);
}

#endif /* PIRN_TESTS_ENGINE_MODEL_HOME_H */
