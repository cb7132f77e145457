/* SPDX-License-Identifier: MIT */
/* src/task/waker_model.c - a task's own waker against the task's life. */
#include <errno.h>

#include "engine/model_home.h"

static struct model_home model;

/* The condition that a future waits for, and where it keeps its waker: as every
 * operation does it, under a lock. */
static pirn_lock lock;
static pirn_waker slot; /* lock */
static bool ready;      /* lock */
static PIRN_SHARED(int) news; /* written before `ready`, read after the wait */

struct waiting {
    pirn_future future;
};

static enum pirn_poll waiting_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_waker old = {0};
    bool done;

    (void)self;
    pirn__lock(&lock);
    done = ready;
    if (!done)
        old = pirn_waker_store(&slot, cx);
    pirn__unlock(&lock);
    pirn_waker_drop(old);
    if (done)
        EXPLORE_CHECK(pirn_cell_read(&news) == 1);
    return done ? PIRN_READY : PIRN_PENDING;
}

static void waiting_drop(pirn_future *self)
{
    pirn_waker old;

    (void)self;
    pirn__lock(&lock);
    old = pirn_waker_take(&slot);
    pirn__unlock(&lock);
    pirn_waker_drop(old);
}

static struct waiting waiting(void)
{
    static const pirn_future_ops ops = {.poll = waiting_poll,
                                        .drop = waiting_drop};

    return (struct waiting){{&ops}};
}

static void fulfil(void *arg)
{
    pirn_waker waker;

    (void)arg;
    pirn_cell_write(&news, 1);
    pirn__lock(&lock);
    ready = true;
    waker = pirn_waker_take(&slot);
    pirn__unlock(&lock);
    pirn_waker_wake(waker);
}

static void run_some(void *arg)
{
    (void)arg;
    (void)model_home_run(&model);
    (void)model_home_run(&model);
}

static struct pirn__task *begin(bool handle)
{
    struct waiting future = waiting();

    model_home_begin(&model);
    slot = (pirn_waker){0};
    return model_home_spawn(&model, &future.future, sizeof future, handle);
}

/* Goal: the wake is not lost, the task ends, and the last of waker, group and
 * poller frees its cell.
 * Method: the explorer's heap sees a leak and a use after free. */
MODEL(waker_of_a_task_outlives_it, .preemptions = EXPLORE_UNBOUNDED)
{
    (void)begin(false);
    explore_thread(run_some, NULL);
    explore_thread(fulfil, NULL);
    explore_join();
    model_home_drain(&model);
    EXPLORE_CHECK(slot.ops == NULL);
    model_home_finish(&model);
}

static void spawn_one(void *arg)
{
    struct waiting future = waiting();

    (void)arg;
    (void)model_home_spawn(&model, &future.future, sizeof future, false);
}

static void look_up(void *arg)
{
    pirn_task *task;

    /* The first slot there ever was, first generation. */
    (void)arg;
    if (pirn_id_find((pirn_task_id){UINT64_C(1) << 32}, &task) < 0)
        return;
    EXPLORE_CHECK(pirn_task_site(task) != NULL);
    pirn_task_cancel(task);
    pirn_task_unref(task);
}

/* Goal: a task that is just being made is found whole or not at all, also by an
 * id that was guessed, and can be cancelled from then on. */
MODEL(waker_look_up_against_a_spawn, .preemptions = EXPLORE_UNBOUNDED,
      .stale = 3)
{
    model_home_begin(&model);
    slot = (pirn_waker){0};
    explore_thread(spawn_one, NULL);
    explore_thread(look_up, NULL);
    explore_join();
    fulfil(NULL);
    model_home_drain(&model);
    model_home_finish(&model);
}

static void cancel_by_id(void *arg)
{
    pirn_task_id *id = arg;
    int rc = pirn_id_cancel(*id);

    EXPLORE_CHECK(rc == 0 || rc == -ESRCH);
}

/* Goal: the same while the task is cancelled by its id, which may be stale
 * when it is used. */
MODEL(waker_against_a_cancel_by_id, .preemptions = 2)
{
    static pirn_task_id id;

    id = pirn_task_get_id((pirn_task *)begin(false));
    explore_thread(run_some, NULL);
    explore_thread(fulfil, NULL);
    explore_thread(cancel_by_id, &id);
    explore_join();
    model_home_drain(&model);
    EXPLORE_CHECK(slot.ops == NULL);
    EXPLORE_CHECK(pirn_id_cancel(id) == -ESRCH);
    model_home_finish(&model);
}
