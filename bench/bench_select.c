/* SPDX-License-Identifier: MIT */
/* bench/bench_select.c - what waiting for many futures costs, without a
 * scheduler: the operations are polled by hand.
 *
 *   select_ready  one of N is ready at the first poll; a call from init to end,
 *                 the dropping of the others included
 *   select_wait   none is ready; one is woken, polled again, and wins
 *   join_wake     a join of N, whose children are woken one after the other,
 *                 each followed by a poll; the figure is one child
 *   merge_item    N streams, of which one after the other gets an item; the
 *                 figure is one item
 */
#include "sample.h"

#include <stdio.h>
#include <string.h>

#include <pirn/pirn.h>

#include "base/lock.h"

enum { SAMPLES = 9, MOST = 1024 };

static size_t calls = 200 * 1000; /* of a sample with one branch */

/* What a child waits for, as the library's own operations do it. */
struct gate {
    pirn_future future; /* or: */
    pirn_stream stream;
    pirn_lock lock;
    bool open;
    pirn_waker waker;
};

static struct gate gates[MOST];
static pirn_branch branches[MOST];
static pirn_stream_slot slots[MOST];

static bool pass(struct gate *gate, pirn_cx *cx)
{
    pirn_waker old;
    bool open;

    pirn__lock(&gate->lock);
    open = gate->open;
    gate->open = false;
    old = open ? pirn_waker_take(&gate->waker)
               : pirn_waker_store(&gate->waker, cx);
    pirn__unlock(&gate->lock);
    pirn_waker_drop(old);
    return open;
}

static enum pirn_poll gate_poll(pirn_future *self, pirn_cx *cx)
{
    return pass(PIRN_CONTAINER_OF(self, struct gate, future), cx)
               ? PIRN_READY
               : PIRN_PENDING;
}

static enum pirn_poll gate_poll_next(pirn_stream *self, pirn_cx *cx, void *item,
                                     int *rc)
{
    *(int *)item = 0;
    *rc = 1;
    return pass(PIRN_CONTAINER_OF(self, struct gate, stream), cx)
               ? PIRN_READY
               : PIRN_PENDING;
}

static void close_gate(struct gate *gate)
{
    pirn_waker old;

    pirn__lock(&gate->lock);
    old = pirn_waker_take(&gate->waker);
    pirn__unlock(&gate->lock);
    pirn_waker_drop(old);
}

static void gate_drop(pirn_future *self)
{
    close_gate(PIRN_CONTAINER_OF(self, struct gate, future));
}

static void gate_drop_stream(pirn_stream *self)
{
    close_gate(PIRN_CONTAINER_OF(self, struct gate, stream));
}

static const pirn_future_ops gate_ops = {.poll = gate_poll, .drop = gate_drop};
static const pirn_stream_ops stream_ops = {.poll_next = gate_poll_next,
                                           .drop = gate_drop_stream};

static void open_gate(struct gate *gate)
{
    pirn_waker waker;

    pirn__lock(&gate->lock);
    gate->open = true;
    waker = pirn_waker_take(&gate->waker);
    pirn__unlock(&gate->lock);
    pirn_waker_wake(waker);
}

static void set_branches(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gates[i].future.ops = &gate_ops;
        branches[i] = (pirn_branch)PIRN_BRANCH(&gates[i]);
    }
}

/* Whom all this is for: nobody. */
static pirn_waker nobody_clone(const pirn_waker *self)
{
    return *self;
}

static void nobody_wake(pirn_waker self)
{
    (void)self;
}

static void nobody_wake_by_ref(const pirn_waker *self)
{
    (void)self;
}

static const pirn_waker_ops nobody_ops = {
    .clone = nobody_clone,
    .wake = nobody_wake,
    .wake_by_ref = nobody_wake_by_ref,
    .drop = nobody_wake,
};

static const pirn_waker nobody = {&gates, &nobody_ops};

static void expect(enum pirn_poll expected, pirn_future *future)
{
    pirn_cx cx = pirn_cx_of_waker(&nobody);

    sample_require(pirn_future_poll(future, &cx) == expected ? 0 : -1, "poll");
}

static void select_ready(size_t count, size_t pass_number)
{
    pirn_select_op op;

    set_branches(count);
    gates[pass_number % count].open = true;
    pirn_select_init(&op, branches, count);
    expect(PIRN_READY, &op.future);
}

static void select_wait(size_t count, size_t pass_number)
{
    pirn_select_op op;

    set_branches(count);
    pirn_select_init(&op, branches, count);
    expect(PIRN_PENDING, &op.future);
    open_gate(&gates[pass_number % count]);
    expect(PIRN_READY, &op.future);
}

static void join_wake(size_t count, size_t pass_number)
{
    pirn_join_all_op op;

    (void)pass_number;
    set_branches(count);
    pirn_join_all_init(&op, branches, count);
    expect(PIRN_PENDING, &op.future);
    for (size_t i = 0; i < count; i++) {
        open_gate(&gates[i]);
        expect(i + 1 < count ? PIRN_PENDING : PIRN_READY, &op.future);
    }
}

static void merge_item(size_t count, size_t pass_number)
{
    pirn_merge_stream merge;
    pirn_next_op op;
    int item;

    (void)pass_number;
    for (size_t i = 0; i < count; i++) {
        gates[i].stream.ops = &stream_ops;
        slots[i] = (pirn_stream_slot){&gates[i].stream, i};
    }
    pirn_merge_init(&merge, slots, count);
    for (size_t i = 0; i < count; i++) {
        pirn_next_init(&op, &merge.stream, &item);
        expect(PIRN_PENDING, &op.future);
        open_gate(&gates[i]);
        expect(PIRN_READY, &op.future);
    }
    pirn_stream_drop(&merge.stream);
}

/* `each`: a pass is `count` of what is measured. */
static void measure(const char *name, void (*pass_once)(size_t, size_t),
                    size_t count, bool each)
{
    size_t passes = calls / count / (each ? count : 1) + 1;
    char row[64];

    snprintf(row, sizeof row, "select/%s_%zu", name, count);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t begin_ns = sample_cpu_ns();

        for (size_t k = 0; k < passes; k++)
            pass_once(count, k);
        sample_print(row, "ns",
                     (double)(sample_cpu_ns() - begin_ns) /
                         (double)(passes * (each ? count : 1)));
    }
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {2, 8, 32, 64, 256, MOST};

    if (sample_has_flag(argc, argv, "--quick"))
        calls /= 10;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        measure("select_ready", select_ready, counts[i], false);
        measure("select_wait", select_wait, counts[i], false);
        measure("join_wake", join_wake, counts[i], true);
        measure("merge_item", merge_item, counts[i], true);
    }
    return 0;
}
