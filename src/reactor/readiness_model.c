/* SPDX-License-Identifier: MIT */
/* src/reactor/readiness_model.c - the two words of a descriptor: what is
 * believed about it, and who is inside.
 */
#include "reactor/readiness.h"

#include "engine/explore.h"
#include "reactor/gate.h"

static struct pirn__readiness readiness;
static struct pirn__gate gate;

/* What the kernel has.  Relaxed on purpose: the order must come from the
 * readiness, for an event may reach another thread than the one that reads. */
static PIRN_ATOMIC(int) bytes;

static void arrive(void *arg)
{
    (void)arg;
    pirn__add(&bytes, 1, relaxed);
    pirn__readiness_add(&readiness, PIRN__READY_READ);
}

static void arrive_twice(void *arg)
{
    arrive(arg);
    arrive(arg);
}

/* A call that takes everything; false if it would block. */
static bool read_all(void)
{
    if (pirn__load(&bytes, relaxed) == 0)
        return false;
    pirn__swap(&bytes, 0, relaxed);
    return true;
}

/* As an operation does it: only if worth a try, and told when not. */
static void try_to_read(void)
{
    uint64_t seen = pirn__readiness_get(&readiness);

    if (pirn__readiness_has(seen, PIRN__READY_READ) && !read_all())
        pirn__readiness_clear(&readiness, seen, PIRN__READY_READ);
}

static void read_twice(void *arg)
{
    (void)arg;
    try_to_read();
    try_to_read();
}

static void begin(unsigned bits)
{
    pirn__init(&readiness.word, bits);
    pirn__init(&gate.word, 0);
    pirn__init(&bytes, 0);
}

/* Goal: a clear that comes late does not erase a fresh event: what arrived
 * after the last look is still announced. */
MODEL(readiness_late_clear_keeps_a_fresh_event,
      .preemptions = EXPLORE_UNBOUNDED)
{
    begin(PIRN__READY_READ);
    explore_thread(arrive_twice, NULL);
    explore_thread(read_twice, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&bytes, relaxed) == 0 ||
                  pirn__readiness_has(pirn__readiness_get(&readiness),
                                      PIRN__READY_READ));
}

/* Goal: the same with two who read at once. */
MODEL(readiness_two_clears_against_an_event, .preemptions = 3)
{
    begin(PIRN__READY_READ);
    explore_thread(arrive, NULL);
    explore_thread(read_twice, NULL);
    explore_thread(read_twice, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&bytes, relaxed) == 0 ||
                  pirn__readiness_has(pirn__readiness_get(&readiness),
                                      PIRN__READY_READ));
}

static void mark_and_unmark(void *arg)
{
    (void)arg;
    pirn__readiness_mark(&readiness, PIRN__READY_HELD);
    pirn__readiness_unmark(&readiness, PIRN__READY_HELD);
}

/* Goal: a hold takes nothing away from an event that comes meanwhile. */
MODEL(readiness_hold_against_an_event, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(0);
    explore_thread(arrive, NULL);
    explore_thread(mark_and_unmark, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__readiness_has(pirn__readiness_get(&readiness),
                                      PIRN__READY_READ));
}

/* The gate. */

static PIRN_SHARED(int) descriptor; /* 1: closed */
static PIRN_SHARED(int) reason;     /* written before the seal */
static PIRN_ATOMIC(int) closes;

static void close_descriptor(void)
{
    EXPLORE_CHECK(pirn_cell_read(&descriptor) == 0);
    pirn_cell_write(&descriptor, 1);
    pirn__add(&closes, 1, relaxed);
}

static void call(void *arg)
{
    (void)arg;
    if (!pirn__gate_enter(&gate)) {
        if (pirn__gate_is_sealed(&gate))
            EXPLORE_CHECK(pirn_cell_read(&reason) == 1);
        return;
    }
    EXPLORE_CHECK(pirn_cell_read(&descriptor) == 0);
    if (pirn__gate_leave(&gate))
        close_descriptor();
}

static void seal(void *arg)
{
    (void)arg;
    pirn_cell_write(&reason, 1);
    if (pirn__gate_seal(&gate) == PIRN__GATE_EMPTY)
        close_descriptor();
}

/* Goal: the descriptor is closed once, and nobody uses it then or later. */
MODEL(gate_close_comes_after_the_last_call, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(0);
    explore_thread(call, NULL);
    explore_thread(call, NULL);
    explore_thread(seal, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&closes, relaxed) == 1);
    EXPLORE_CHECK(!pirn__gate_enter(&gate));
}

/* Released: the descriptor goes elsewhere, if nobody is inside. */
static void release(void *arg)
{
    (void)arg;
    if (pirn__gate_try_seal(&gate) == PIRN__GATE_EMPTY)
        close_descriptor();
}

static void seal_without_reason(void *arg)
{
    (void)arg;
    if (pirn__gate_seal(&gate) == PIRN__GATE_EMPTY)
        close_descriptor();
}

static void call_only(void *arg)
{
    (void)arg;
    if (!pirn__gate_enter(&gate))
        return;
    EXPLORE_CHECK(pirn_cell_read(&descriptor) == 0);
    if (pirn__gate_leave(&gate))
        close_descriptor();
}

/* Goal: of a release and a close one gets it. */
MODEL(gate_release_against_close_and_a_call, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(0);
    explore_thread(call_only, NULL);
    explore_thread(release, NULL);
    explore_thread(seal_without_reason, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&closes, relaxed) == 1);
}

static void release_with_a_reason(void *arg)
{
    pirn_cell_write(&reason, 1);
    release(arg);
}

/* Goal: who finds the gate shut by a release sees what was done before it. */
MODEL(gate_release_against_a_call, .preemptions = EXPLORE_UNBOUNDED)
{
    begin(0);
    explore_thread(call, NULL);
    explore_thread(release_with_a_reason, NULL);
    explore_join();
}
