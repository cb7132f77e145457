/* SPDX-License-Identifier: MIT */
/* src/fiber/rig_test.h - a runtime for the tests of this folder: driven by hand
 * on a clock that stands still, over an allocator that counts, with a hook that
 * remembers the last failure; and a future that does what a test tells it.
 */
#ifndef PIRN_FIBER_RIG_TEST_H
#define PIRN_FIBER_RIG_TEST_H

#include <errno.h>
#include <stdlib.h>

#include <pirn/async.h>
#include <pirn/runtime.h>
#include <pirn/time.h>

#include "base/atomic.h"
#include "engine/test.h"

struct rig {
    pirn_runtime *rt;
    pirn_alloc alloc;
    PIRN_ATOMIC(int) pieces; /* allocations that are out */
    PIRN_ATOMIC(int) dones;
    int calls;   /* allocations so far */
    int fail_at; /* this one fails; 0: none does */
    int fails;   /* reports to the failure hook */
    int fail_outcome;
    char fail_name[32];
    char fail_message[128];
    pirn_report report; /* once it has ended */
};

static inline void *rig_take(void *ctx, size_t size, size_t align)
{
    struct rig *rig = ctx;

    if (++rig->calls == rig->fail_at)
        return NULL;
    /* relaxed: a count. */
    (void)pirn__add(&rig->pieces, 1, relaxed);
    size = (size + align - 1) / align * align;
    return align <= 16 ? malloc(size) : aligned_alloc(align, size);
}

static inline void rig_give(void *ctx, void *memory, size_t size, size_t align)
{
    struct rig *rig = ctx;

    (void)size;
    (void)align;
    /* relaxed: a count. */
    (void)pirn__sub(&rig->pieces, 1, relaxed);
    free(memory);
}

static inline void rig_done(void *ctx)
{
    struct rig *rig = ctx;

    /* relaxed: a count. */
    (void)pirn__add(&rig->dones, 1, relaxed);
}

static inline int rig_pieces(struct rig *rig)
{
    /* relaxed: a count, read when all is quiet. */
    return pirn__load(&rig->pieces, relaxed);
}

static inline int rig_dones(struct rig *rig)
{
    /* relaxed: as above. */
    return pirn__load(&rig->dones, relaxed);
}

static inline void rig_failed(void *arg, const pirn_failure *failure)
{
    struct rig *rig = arg;
    const char *name = failure->name != NULL ? failure->name : "";

    rig->fails++;
    rig->fail_outcome = failure->outcome;
    strncpy(rig->fail_name, name, sizeof rig->fail_name - 1);
    strncpy(rig->fail_message, failure->message,
            sizeof rig->fail_message - 1);
}

/* Make the runtime, stop its clock and enter it. */
static inline void rig_begin(struct rig *rig)
{
    *rig = (struct rig){
        .alloc = {.take = rig_take, .give = rig_give, .done = rig_done},
    };
    rig->alloc.ctx = rig;
    const pirn_runtime_options options = {
        .alloc = &rig->alloc,
        .on_failure = rig_failed,
        .on_failure_arg = rig,
    };

    EXPECT_EQ(0, pirn_runtime_new(&options, &rig->rt));
    EXPECT_EQ(0, pirn_runtime_clock_pause(rig->rt));
    EXPECT_PTR_EQ(NULL, pirn_runtime_enter(rig->rt));
}

/* Run all that is ready, and what a deadline that has passed makes ready. */
static inline void rig_turn(struct rig *rig)
{
    do {
        EXPECT_LE(0, pirn_runtime_turn(rig->rt, PIRN_NEVER));
    } while (pirn_runtime_next_deadline(rig->rt).ns == PIRN_EXPIRED.ns);
}

/* Let time pass and run what became ready. */
static inline void rig_pass_ns(struct rig *rig, uint64_t ns)
{
    EXPECT_EQ(0, pirn_runtime_clock_advance(rig->rt, ns));
    rig_turn(rig);
}

static inline void rig_pass_ms(struct rig *rig, uint64_t ms)
{
    rig_pass_ns(rig, ms * 1000000);
}

static inline pirn_runtime_info rig_info(struct rig *rig)
{
    pirn_runtime_info info;

    pirn_runtime_get_info(rig->rt, &info);
    return info;
}

/* Shut down by force and leave; the answer of the shutdown. */
static inline int rig_stop(struct rig *rig)
{
    int rc = pirn_runtime_shutdown(rig->rt, PIRN_EXPIRED, &rig->report);

    EXPECT_PTR_EQ(rig->rt, pirn_runtime_enter(NULL));
    pirn_runtime_unref(rig->rt);
    return rc;
}

/* The end in order: everything has been given back. */
static inline void rig_end(struct rig *rig)
{
    EXPECT_EQ(0, rig_stop(rig));
    EXPECT_EQ(0, rig->report.quarantined);
    EXPECT_EQ(1, rig_dones(rig));
    EXPECT_EQ(0, rig_pieces(rig));
}

/* The end of a test that quarantined `count` fibers on purpose. */
static inline void rig_end_quarantined(struct rig *rig, uint64_t count)
{
    (void)rig_stop(rig);
    EXPECT_EQ(count, rig->report.quarantined);
    EXPECT_EQ(0, rig_dones(rig));
}

/* Start a fiber with a handle. */
static inline pirn_task *rig_go(pirn_fiber_fn *fn, void *arg)
{
    pirn_task *task = NULL;

    EXPECT_EQ(0, pirn_go_with(fn, arg, NULL, &task));
    return task;
}

/* The outcome of a task that has ended; gives its handle up. */
static inline int rig_outcome(pirn_task *task)
{
    int outcome = -EINPROGRESS;

    EXPECT(pirn_task_is_done(task));
    EXPECT_EQ(0, pirn_task_join(task, PIRN_EXPIRED, &outcome));
    pirn_task_unref(task);
    return outcome;
}

/* A future that waits until the test says that it is done. */
struct gate {
    pirn_future future;
    bool open;
    bool spends; /* one coop unit a poll */
    int polls;
    int drops;
    pirn_waker waker;
    void (*on_drop)(struct gate *gate);
    int (*on_poll)(struct gate *gate); /* what it answers is noted in `rc` */
    int rc;
};

static inline struct gate *gate_of(pirn_future *future)
{
    return PIRN_CONTAINER_OF(future, struct gate, future);
}

static inline enum pirn_poll gate_poll(pirn_future *self, pirn_cx *cx)
{
    struct gate *gate = gate_of(self);

    if (gate->spends && !pirn_coop_spend(cx))
        return PIRN_PENDING;
    gate->polls++;
    if (gate->on_poll != NULL)
        gate->rc = gate->on_poll(gate);
    if (gate->open) {
        pirn_waker_drop(pirn_waker_take(&gate->waker));
        return PIRN_READY;
    }
    pirn_waker_drop(pirn_waker_store(&gate->waker, cx));
    return PIRN_PENDING;
}

static inline void gate_drop(pirn_future *self)
{
    struct gate *gate = gate_of(self);

    gate->drops++;
    pirn_waker_drop(pirn_waker_take(&gate->waker));
    if (gate->on_drop != NULL)
        gate->on_drop(gate);
}

static inline void gate_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "gate");
}

static const pirn_future_ops gate_ops = {
    .poll = gate_poll,
    .drop = gate_drop,
    .describe = gate_describe,
};

#define GATE {.future = {&gate_ops}}
#define OPEN_GATE {.future = {&gate_ops}, .open = true}

/* Let it be ready and wake who waits. */
static inline void gate_open(struct gate *gate)
{
    gate->open = true;
    pirn_waker_wake(pirn_waker_take(&gate->waker));
}

/* Make a gate wait again for the next use. */
static inline void gate_reset(struct gate *gate)
{
    *gate = (struct gate)GATE;
}

#endif /* PIRN_FIBER_RIG_TEST_H */
