/* SPDX-License-Identifier: MIT */
/* src/task/state_model.c - the state word under every interleaving.
 *
 * A task here is its word and a few cells.  "Submit" counts; a runner thread
 * stands for the runtime: it runs the task whenever it has been submitted.
 */
#include "task/state.h"

#include "engine/explore.h"
#include "engine/state_start.h"

static pirn__state state;
static PIRN_ATOMIC(uint32_t) submitted; /* owed runs */
static PIRN_SHARED(int) future; /* touched by the holder of RUNNING alone */
static int polls;
static int frees;

static void reset(bool handle, uint64_t flags)
{
    memset(&state, 0, sizeof state);
    pirn__state_open(&state, flags, handle);
    pirn__init(&submitted, 1);
    future.c_ = 0;
    polls = 0;
    frees = 0;
}

static void submit(enum pirn__wake wake)
{
    if (wake == PIRN__WAKE_SUBMIT)
        pirn__add(&submitted, 1, acq_rel);
}

static void unref(void)
{
    if (!pirn__state_unref(&state))
        return;
    /* The memory goes to the next, after everybody's last use. */
    pirn_cell_write(&future, 0);
    frees++;
}

/* Pop once; true if there was something to run. */
static bool pop(void)
{
    uint32_t owed = pirn__load(&submitted, acquire);

    while (owed > 0) {
        /* Two entries in queues at once would be two runs at once. */
        EXPLORE_CHECK(owed == 1);
        if (pirn__cas(&submitted, &owed, owed - 1, acq_rel, acquire))
            return true;
    }
    return false;
}

/* Run the task as the runtime does; `complete`: its poll says READY. */
static void run(bool complete)
{
    enum pirn__start start;

    if (!pop())
        return;
    start = state_start(&state, 0);
    if (start == PIRN__START_LEAVE)
        return;
    pirn_cell_write(&future, pirn_cell_read(&future) + 1);
    polls++;
    if (complete || start == PIRN__START_ABORT) {
        pirn__state_complete(&state, false);
        unref();
    } else {
        submit(pirn__state_end(&state, false, PIRN__LOAN));
    }
}

static void run_twice(void *arg)
{
    (void)arg;
    run(false);
    run(false);
}

static void drain(void)
{
    /* Ends: nobody wakes any more. */
    while (pirn__load(&submitted, acquire) > 0)
        run(false);
}

static void wake_only(void *arg)
{
    (void)arg;
    submit(pirn__state_wake(&state));
}

/* Goal: two runners never poll at once, and wakes during a poll make exactly
 * one further run. */
MODEL(state_one_poll_at_a_time, .preemptions = 3)
{
    reset(false, 0);
    explore_thread(run_twice, NULL);
    explore_thread(run_twice, NULL);
    explore_thread(wake_only, NULL);
    explore_join();
    drain();
    EXPLORE_CHECK(polls >= 1 && polls <= 2);
    EXPLORE_CHECK(frees == 0);
}

static PIRN_ATOMIC(uint32_t) flag_a;
static int saw_flag;

static void set_and_wake(void *arg)
{
    (void)arg;
    pirn__store(&flag_a, 1, relaxed);
    submit(pirn__state_wake(&state));
}

static void look_once(void)
{
    if (!pop())
        return;
    if (state_start(&state, 0) == PIRN__START_LEAVE)
        return;
    if (pirn__load(&flag_a, relaxed) == 1)
        saw_flag = 1;
    submit(pirn__state_end(&state, false, PIRN__LOAN));
}

static void look(void *arg)
{
    (void)arg;
    look_once();
    look_once();
}

/* Goal: no wake is lost even when the condition is a relaxed flag: a wake that
 * is merged orders the waker's writes before the merged run. */
MODEL(state_merged_wake_is_not_lost, .preemptions = EXPLORE_UNBOUNDED)
{
    reset(false, 0);
    pirn__init(&flag_a, 0);
    saw_flag = 0;
    explore_thread(look, NULL);
    explore_thread(set_and_wake, NULL);
    explore_join();
    while (pirn__load(&submitted, acquire) > 0)
        look_once();
    EXPLORE_CHECK(saw_flag == 1);
}

static void complete_once(void *arg)
{
    (void)arg;
    run(true);
}

static void wake_with_ref(void *arg)
{
    (void)arg;
    submit(pirn__state_wake(&state));
    unref();
}

/* Goal: the last reference frees, exactly once, after the end, whoever has
 * it; a wake after completion does nothing. */
MODEL(state_completion_against_a_waker, .preemptions = EXPLORE_UNBOUNDED)
{
    reset(false, 0);
    pirn__state_ref(&state); /* the waker's */
    explore_thread(complete_once, NULL);
    explore_thread(wake_with_ref, NULL);
    explore_join();
    EXPLORE_CHECK(pirn__load(&submitted, acquire) == 0);
    EXPLORE_CHECK(frees == 1);
}

static void cancel(void *arg)
{
    (void)arg;
    submit(pirn__state_cancel(&state));
}

static void abort_it(void *arg)
{
    (void)arg;
    submit(pirn__state_abort(&state));
}

static void suspend(void *arg)
{
    (void)arg;
    pirn__state_suspend(&state);
}

static int starts[4];

static void run_counting(void *arg)
{
    (void)arg;
    if (!pop())
        return;

    enum pirn__start start = state_start(&state, 0);

    starts[start]++;
    if (start != PIRN__START_LEAVE)
        submit(pirn__state_end(&state, false, PIRN__LOAN));
}

/* Goal: a cancel is never swallowed by a suspension, in any order. */
MODEL(state_cancel_overrides_suspend, .preemptions = EXPLORE_UNBOUNDED)
{
    reset(false, 0);
    memset(starts, 0, sizeof starts);
    explore_thread(run_counting, NULL);
    explore_thread(suspend, NULL);
    explore_thread(cancel, NULL);
    explore_join();
    run_counting(NULL);
    run_counting(NULL);
    EXPLORE_CHECK(starts[PIRN__START_CANCEL] >= 1);
}

/* Goal: the same for an abort that meets a cancel. */
MODEL(state_abort_against_cancel_settles_once, .preemptions = 3)
{
    reset(false, 0);
    explore_thread(run_twice, NULL);
    explore_thread(cancel, NULL);
    explore_thread(abort_it, NULL);
    explore_join();
    while (frees == 0)
        run(false);
    EXPLORE_CHECK(frees == 1);
    EXPLORE_CHECK(pirn__load(&submitted, acquire) == 0);
}

static void wake_by_id(void *arg)
{
    (void)arg;
    submit(pirn__state_wake_by_id(&state));
}

/* Goal: a suspended task remembers an ordinary wake and runs once it is woken
 * by id. */
MODEL(state_suspension_remembers_a_wake, .preemptions = EXPLORE_UNBOUNDED)
{
    reset(false, 0);
    memset(starts, 0, sizeof starts);
    run_counting(NULL); /* its first run */
    pirn__state_suspend(&state);
    explore_thread(wake_only, NULL);
    explore_thread(wake_by_id, NULL);
    explore_join();
    run_counting(NULL);
    EXPLORE_CHECK(starts[PIRN__START_POLL] == 2);
}

/* Handles, output and references. */

static int discards;

static void drop_handle(void *arg)
{
    (void)arg;

    unsigned dropped = pirn__state_drop_handle(&state);

    if ((dropped & PIRN__HANDLE_OUTPUT) != 0) {
        pirn_cell_write(&future, 0);
        discards++;
    }
    if ((dropped & PIRN__HANDLE_LAST) != 0)
        unref();
}

static void complete_with_output(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(pop());
    EXPLORE_CHECK(state_start(&state, 0) == PIRN__START_POLL);
    pirn_cell_write(&future, 1);
    if ((pirn__state_complete(&state, true) & PIRN__OUTPUT) == 0) {
        pirn_cell_write(&future, 0);
        discards++;
    }
    unref();
}

/* Goal: an output that nobody takes is discarded exactly once, by whoever of
 * completer and last handle comes second, and the cell is freed after that. */
MODEL(state_output_is_discarded_once, .preemptions = EXPLORE_UNBOUNDED)
{
    reset(true, PIRN__JOIN_STATE);
    discards = 0;
    pirn__state_add_handle(&state);
    explore_thread(complete_with_output, NULL);
    explore_thread(drop_handle, NULL);
    explore_thread(drop_handle, NULL);
    explore_join();
    EXPLORE_CHECK(discards == 1);
    EXPLORE_CHECK(frees == 1);
}

/* The join slot. */

static PIRN_SHARED(int) slot; /* 0 empty, 1 a waker */
static PIRN_SHARED(int) outcome;
static PIRN_ATOMIC(uint32_t) woken; /* the joiner was woken */
static int slot_drops;
static int joined;

static void complete_and_wake(void *arg)
{
    uint64_t word;

    (void)arg;
    EXPLORE_CHECK(pop());
    EXPLORE_CHECK(state_start(&state, 0) == PIRN__START_POLL);
    pirn_cell_write(&outcome, 5);
    word = pirn__state_complete(&state, false);
    if ((word & PIRN__JOIN_WAKER) != 0) {
        EXPLORE_CHECK(pirn_cell_read(&slot) == 1);
        pirn_cell_write(&slot, 0);
        pirn__add(&woken, 1, release);
    }
    unref();
}

static void clear_slot(void)
{
    EXPLORE_CHECK(pirn_cell_read(&slot) == 1);
    pirn_cell_write(&slot, 0);
    slot_drops++;
}

static void finish_join(void)
{
    EXPLORE_CHECK(pirn_cell_read(&outcome) == 5);
    joined = 1;
}

/* Claim, leave a waker, and then give up or poll again. */
static void join_then(bool give_up)
{
    enum pirn__join step = pirn__state_join_claim(&state);

    if (step == PIRN__JOIN_DONE) {
        finish_join();
        return;
    }
    EXPLORE_CHECK(step == PIRN__JOIN_OK);
    pirn_cell_write(&slot, 1);
    if (pirn__state_join_publish(&state) == PIRN__JOIN_DONE) {
        clear_slot();
        finish_join();
        return;
    }
    step = pirn__state_join_retract(&state);
    if (step == PIRN__JOIN_DONE) {
        /* The waker is the completer's now. */
        if (!give_up)
            finish_join();
        else
            pirn__state_join_unclaim(&state);
        return;
    }
    clear_slot();
    if (give_up)
        pirn__state_join_unclaim(&state);
}

static void join_and_give_up(void *arg)
{
    (void)arg;
    join_then(true);
}

static void join_and_look_again(void *arg)
{
    (void)arg;
    join_then(false);
}

static void reset_join(void)
{
    reset(true, PIRN__JOIN_STATE);
    slot.c_ = 0;
    outcome.c_ = 0;
    pirn__init(&woken, 0);
    slot_drops = 0;
    joined = 0;
}

/* Goal: the waker in the slot has one owner at every moment and is used up
 * exactly once, whether the waiter gives up or looks again. */
MODEL(state_join_slot_is_handed_over, .preemptions = EXPLORE_UNBOUNDED)
{
    reset_join();
    explore_thread(complete_and_wake, NULL);
    explore_thread(join_and_give_up, NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&slot) == 0);
    EXPLORE_CHECK(frees == 0); /* the handle is still there */
}

MODEL(state_join_sees_the_outcome, .preemptions = EXPLORE_UNBOUNDED)
{
    reset_join();
    explore_thread(complete_and_wake, NULL);
    explore_thread(join_and_look_again, NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&slot) == 0);
}

static int claims;

static void claim(void *arg)
{
    (void)arg;
    if (pirn__state_join_claim(&state) == PIRN__JOIN_OK) {
        claims++;
        pirn_cell_write(&slot, 1);
        pirn_cell_write(&slot, 0);
        pirn__state_join_unclaim(&state);
    }
}

/* Goal: the slot has one claimant at a time. */
MODEL(state_join_claim_is_exclusive, .preemptions = EXPLORE_UNBOUNDED)
{
    reset_join();
    claims = 0;
    explore_thread(claim, NULL);
    explore_thread(claim, NULL);
    explore_join();
    EXPLORE_CHECK(claims >= 1);
}

/* A look-up by id takes a reference only while there is one. */

static int looked_up;

static void look_up(void *arg)
{
    (void)arg;
    if (pirn__state_try_ref(&state)) {
        looked_up = 1;
        EXPLORE_CHECK(frees == 0);
        submit(pirn__state_wake(&state));
        unref();
    }
}

MODEL(state_look_up_against_the_last_reference,
      .preemptions = EXPLORE_UNBOUNDED)
{
    reset(false, 0);
    looked_up = 0;
    explore_thread(complete_once, NULL);
    explore_thread(look_up, NULL);
    explore_join();
    EXPLORE_CHECK(frees == 1);
}

/* A reference that the running task hands out of its loan. */

static PIRN_ATOMIC(uint32_t) handed;

static void run_and_hand_out(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(pop());
    EXPLORE_CHECK(state_start(&state, 0) == PIRN__START_POLL);
    pirn_cell_write(&future, pirn_cell_read(&future) + 1);
    pirn__store(&handed, 1, release);
    submit(pirn__state_end(&state, false, PIRN__LOAN - 1));
    run(true);
}

static void wake_with_what_was_handed(void *arg)
{
    enum pirn__wake wake;

    (void)arg;
    if (pirn__swap(&handed, 0, acq_rel) == 0)
        return;
    wake = pirn__state_wake_and_unref(&state);
    if (wake != PIRN__WAKE_FREE) {
        submit(wake);
        return;
    }
    pirn_cell_write(&future, 0);
    frees++;
}

/* Goal: it may be given up, with a wake in the same step, before the run that
 * handed it out is over: the task runs once more, and is freed once. */
MODEL(state_reference_of_a_loan_against_its_wake,
      .preemptions = EXPLORE_UNBOUNDED)
{
    reset(false, 0);
    pirn__init(&handed, 0);
    explore_thread(run_and_hand_out, NULL);
    explore_thread(wake_with_what_was_handed, NULL);
    explore_join();
    wake_with_what_was_handed(NULL);
    run(true);
    EXPLORE_CHECK(pirn__load(&submitted, acquire) == 0);
    EXPLORE_CHECK(frees == 1);
}
