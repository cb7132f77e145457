/* SPDX-License-Identifier: MIT */
/* src/task/join_model.c - waiting for a task's end, with the real operation and
 * the real cell.
 */
#include <pirn/task.h>

#include "engine/model_home.h"

static struct model_home model;
static struct model_bell bells[2];
static pirn_task *handle;

/* A future with a result, and a count of who took care of it. */
struct product {
    pirn_future future;
    int value;
};

static PIRN_ATOMIC(int) discards;

static enum pirn_poll product_poll(pirn_future *self, pirn_cx *cx)
{
    (void)cx;
    PIRN_CONTAINER_OF(self, struct product, future)->value = 7;
    return PIRN_READY;
}

static void product_drop(pirn_future *self)
{
    (void)self;
}

static void product_discard(pirn_future *self)
{
    EXPLORE_CHECK(
        PIRN_CONTAINER_OF(self, struct product, future)->value == 7);
    pirn__add(&discards, 1, relaxed);
}

static void begin(void)
{
    static const pirn_future_ops ops = {
        .poll = product_poll,
        .drop = product_drop,
        .discard = product_discard,
    };
    struct product product = {{&ops}, 0};

    model_home_begin(&model);
    handle = (pirn_task *)model_home_spawn(&model, &product.future,
                                           sizeof product, true);
}

static void run(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(model_home_run(&model));
}

/* The last handle is gone: whoever came second threw the product away. */
static void end(int taken)
{
    explore_join();
    EXPLORE_CHECK(pirn__load(&discards, relaxed) + taken == 1);
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    EXPLORE_CHECK(model_bell_wakers(&bells[1]) == 0);
    model_home_finish(&model);
}

/* Poll once; true when the task has ended. */
static bool poll(pirn_join_op *op, struct model_bell *bell)
{
    if (model_bell_poll(bell, &op->future) == PIRN_PENDING)
        return false;
    EXPLORE_CHECK(op->rc == 0 && op->outcome == 0);
    return true;
}

static void join_and_change_waker(void *arg)
{
    pirn_join_op op;

    (void)arg;
    pirn_join_init(&op, handle);
    if (!poll(&op, &bells[0]) && !poll(&op, &bells[1]))
        pirn_future_drop(&op.future);
    pirn_task_unref(handle);
}

/* Goal: at each moment one side owns the waker: it is woken or dropped once,
 * while the waiter changes it and then gives up. */
MODEL(join_waker_is_replaced_and_withdrawn, .preemptions = 3, .stale = 2)
{
    begin();
    explore_thread(run, NULL);
    explore_thread(join_and_change_waker, NULL);
    end(0);
}

static PIRN_SHARED(int) took;

static void join_and_take(void *arg)
{
    struct product product;
    pirn_join_op op;

    (void)arg;
    pirn_join_init(&op, handle);
    /* A look that is not the last must ring. */
    while (!poll(&op, &bells[0])) {
        if (!model_bell_rang(&bells[0])) {
            pirn_future_drop(&op.future);
            pirn_task_unref(handle);
            return;
        }
    }
    EXPLORE_CHECK(pirn_task_take_output(handle, &product, sizeof product) ==
                  0);
    EXPLORE_CHECK(product.value == 7);
    pirn_cell_write(&took, 1);
    pirn_task_unref(handle);
}

/* Goal: who has joined may read what the task left, and takes it once. */
MODEL(join_then_take_the_output, .preemptions = 3, .stale = 2)
{
    begin();
    explore_thread(run, NULL);
    explore_thread(join_and_take, NULL);
    explore_join();
    end(pirn_cell_read(&took));
}

static void look_and_take(void *arg)
{
    struct product product;

    (void)arg;
    if (pirn_task_is_done(handle) &&
        pirn_task_take_output(handle, &product, sizeof product) == 0) {
        EXPLORE_CHECK(product.value == 7);
        pirn_cell_write(&took, 1);
    }
    pirn_task_unref(handle);
}

/* Goal: the same for who has only seen that it is done; of two who take, one
 * gets it. */
MODEL(join_two_takers_of_one_output, .preemptions = 2, .stale = 1)
{
    begin();
    (void)pirn_task_ref(handle);
    explore_thread(run, NULL);
    explore_thread(look_and_take, NULL);
    explore_thread(look_and_take, NULL);
    explore_join();
    end(pirn_cell_read(&took));
}

static PIRN_ATOMIC(int) refused;

static void join_beside_another(void *arg)
{
    struct model_bell *bell = arg;
    pirn_join_op op;

    pirn_join_init(&op, handle);
    if (model_bell_poll(bell, &op.future) == PIRN_PENDING)
        pirn_future_drop(&op.future);
    else if (op.rc < 0)
        pirn__add(&refused, 1, relaxed);
    pirn_task_unref(handle);
}

/* Goal: two waiters do not use the slot at once. */
MODEL(join_second_waiter_is_refused_or_alone, .preemptions = 2, .stale = 2)
{
    begin();
    (void)pirn_task_ref(handle);
    explore_thread(join_beside_another, &bells[0]);
    explore_thread(join_beside_another, &bells[1]);
    explore_join();
    EXPLORE_CHECK(pirn__load(&refused, relaxed) <= 1);
    run(NULL);
    end(0);
}

/* Goal: who waits is woken by the end. */
MODEL(join_waiter_is_woken, .preemptions = EXPLORE_UNBOUNDED, .stale = 2)
{
    pirn_join_op op;
    bool ready;

    begin();
    explore_thread(run, NULL);
    pirn_join_init(&op, handle);
    ready = poll(&op, &bells[0]);
    explore_join();
    EXPLORE_CHECK(ready || model_bell_rang(&bells[0]));
    EXPLORE_CHECK(ready || poll(&op, &bells[0]));
    pirn_task_unref(handle);
    end(0);
}
