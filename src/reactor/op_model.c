/* SPDX-License-Identifier: MIT */
/* src/reactor/op_model.c - the two sides of an operation's record. */
#include "reactor/op.h"

#include "engine/model_home.h"
#include "sys/sys.h"

static struct pirn__op *op;
static struct model_bell bells[2];
static PIRN_ATOMIC(int) discards;
static PIRN_SHARED(int) note; /* the owner's, read by whoever discards */

static void op_free(struct pirn__op *self)
{
    explore_heap.give(NULL, self, sizeof *self, 16);
}

static void op_discard(struct pirn__op *self)
{
    EXPLORE_CHECK(pirn__op_result(self) == 5);
    EXPLORE_CHECK(pirn_cell_read(&note) == 1);
    pirn__add(&discards, 1, relaxed);
}

static void begin(void)
{
    static const struct pirn__op_ops ops = {.free = op_free,
                                            .discard = op_discard};

    op = explore_heap.take(NULL, sizeof *op, 16);
    pirn__op_init(op, &ops);
}

static void end(int taken)
{
    EXPLORE_CHECK(pirn__load(&discards, relaxed) + taken == 1);
    for (int i = 0; i < 2; i++)
        EXPLORE_CHECK(model_bell_wakers(&bells[i]) == 0);
}

static void complete(void *arg)
{
    (void)arg;
    pirn__op_complete(op, 5);
}

static enum pirn_poll poll(struct model_bell *bell)
{
    const pirn_waker waker = model_bell_waker(bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    return pirn__op_poll(op, &cx);
}

static void take(void)
{
    EXPLORE_CHECK(pirn__op_result(op) == 5);
    pirn__op_release(op);
}

static PIRN_SHARED(int) taken;

/* Poll with one waker, then another, then leave. */
static void wait_and_detach(void *arg)
{
    (void)arg;
    pirn_cell_write(&note, 1);
    if (poll(&bells[0]) == PIRN_READY || poll(&bells[1]) == PIRN_READY) {
        take();
        pirn_cell_write(&taken, 1);
        return;
    }
    pirn__op_detach(op);
}

/* Goal: the result is taken or discarded, once; each waker is woken or dropped,
 * once; the record is freed by whoever is last. */
MODEL(op_completion_against_new_waker_and_detach,
      .preemptions = EXPLORE_UNBOUNDED)
{
    begin();
    explore_thread(complete, NULL);
    explore_thread(wait_and_detach, NULL);
    explore_join();
    end(pirn_cell_read(&taken));
}

static void detach_at_once(void *arg)
{
    (void)arg;
    pirn_cell_write(&note, 1);
    pirn__op_detach(op);
}

/* Goal: the back end that discards sees what the owner did before it went. */
MODEL(op_completion_against_detach, .preemptions = EXPLORE_UNBOUNDED)
{
    begin();
    explore_thread(complete, NULL);
    explore_thread(detach_at_once, NULL);
    explore_join();
    end(0);
}

/* Poll, take the waker back, and poll again. */
static void withdraw_and_wait_again(void *arg)
{
    (void)arg;
    pirn_cell_write(&note, 1);
    if (poll(&bells[0]) == PIRN_PENDING) {
        pirn__op_withdraw(op);
        if (poll(&bells[1]) == PIRN_PENDING) {
            pirn__op_detach(op);
            return;
        }
    }
    take();
    pirn_cell_write(&taken, 1);
}

/* Goal: the same when the owner stops waiting in between. */
MODEL(op_completion_against_withdrawal, .preemptions = EXPLORE_UNBOUNDED)
{
    begin();
    explore_thread(complete, NULL);
    explore_thread(withdraw_and_wait_again, NULL);
    explore_join();
    end(pirn_cell_read(&taken));
}

static PIRN_ATOMIC(uint32_t) sleeping;

static void ring_futex(const pirn_waker *self)
{
    (void)self;
    if (pirn__swap(&sleeping, 0, release) == 1)
        pirn__sys->futex_wake(&sleeping.v_, 1);
}

static pirn_waker sleeper_clone(const pirn_waker *self)
{
    return *self;
}

static void sleeper_wake(pirn_waker self)
{
    ring_futex(&self);
}

static void sleeper_drop(pirn_waker self)
{
    (void)self;
}

static void wait_until_complete(void *arg)
{
    static const pirn_waker_ops ops = {
        .clone = sleeper_clone,
        .wake = sleeper_wake,
        .wake_by_ref = ring_futex,
        .drop = sleeper_drop,
    };
    const pirn_waker waker = {.data = &sleeping, .ops = &ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);

    (void)arg;
    pirn_cell_write(&note, 1);
    pirn__store(&sleeping, 1, relaxed);
    while (pirn__op_poll(op, &cx) == PIRN_PENDING) {
        while (pirn__load(&sleeping, acquire) == 1)
            (void)pirn__sys->futex_wait(&sleeping.v_, 1, PIRN_NEVER);
        pirn__store(&sleeping, 1, relaxed);
    }
    take();
    pirn_cell_write(&taken, 1);
}

/* Goal: an owner that waits is woken. */
MODEL(op_completion_wakes_the_owner, .preemptions = EXPLORE_UNBOUNDED)
{
    begin();
    explore_thread(complete, NULL);
    explore_thread(wait_until_complete, NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&taken) == 1);
    end(1);
}

static void look_from_outside(void *arg)
{
    (void)arg;
    if (pirn__op_is_complete(op))
        EXPLORE_CHECK(pirn__op_result(op) == 5);
    pirn__op_unref(op);
}

/* Goal: who has a reference of its own may look while both sides go. */
MODEL(op_look_while_both_sides_go, .preemptions = 3)
{
    begin();
    pirn__op_ref(op);
    explore_thread(complete, NULL);
    explore_thread(wait_and_detach, NULL);
    explore_thread(look_from_outside, NULL);
    explore_join();
    end(pirn_cell_read(&taken));
}
