/* SPDX-License-Identifier: MIT */
/* src/task/state_test.c - every row of the table in state.h, on a bare word;
 * the last tests race real threads over it. */
#include "task/state.h"

#include <pthread.h>

#include "engine/state_start.h"
#include "engine/test.h"

/* What the table speaks of.  HELD is SUSPENDED without a queue or a poll. */
enum shape { IDLE, QUEUED, RUNNING, NOTIFIED, HELD, HELD_NOTIFIED, COMPLETE };

enum { SHAPES = 7 };

/* The bits that say what the task does now. */
static uint64_t doing(const pirn__state *state)
{
    return pirn__state_peek(state) &
           (PIRN__RUNNING | PIRN__QUEUED | PIRN__NOTIFIED | PIRN__COMPLETE |
            PIRN__SUSPENDED | PIRN__CANCELLED | PIRN__ABORTED);
}

static void make_running(pirn__state *state)
{
    pirn__state_open(state, 0, false);
    EXPECT_EQ(PIRN__START_POLL, state_start(state, 0));
}

static void make_idle(pirn__state *state)
{
    make_running(state);
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_end(state, false, PIRN__LOAN));
}

/* Bring a fresh word into a shape, by transitions only. */
static void make(pirn__state *state, enum shape shape)
{
    switch (shape) {
    case IDLE:
        make_idle(state);
        break;
    case QUEUED:
        pirn__state_open(state, 0, false);
        break;
    case RUNNING:
        make_running(state);
        break;
    case NOTIFIED:
        make_running(state);
        EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_wake(state));
        break;
    case HELD:
        make_idle(state);
        pirn__state_suspend(state);
        break;
    case HELD_NOTIFIED:
        make_idle(state);
        pirn__state_suspend(state);
        EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_wake(state));
        break;
    case COMPLETE:
        make_running(state);
        (void)pirn__state_complete(state, false);
        break;
    }
}

/* One cell of the table: what the event answers and leaves. */
struct row {
    enum pirn__wake answer;
    uint64_t after;
};

/* True if the event has started what did not run: then there is a loan. */
static bool starts(const pirn__state *state, enum shape shape)
{
    return (pirn__state_peek(state) & PIRN__RUNNING) != 0 && shape != RUNNING &&
           shape != NOTIFIED;
}

static void expect_rows(enum pirn__wake (*event)(pirn__state *state),
                        const struct row rows[SHAPES])
{
    for (int shape = 0; shape < SHAPES; shape++) {
        pirn__state state;
        uint64_t refs;

        make(&state, (enum shape)shape);
        refs = pirn__state_peek(&state) & PIRN__REFS_MASK;
        EXPECT_EQ(rows[shape].answer, event(&state));
        EXPECT_EQ(rows[shape].after, doing(&state));
        if (starts(&state, (enum shape)shape))
            refs += PIRN__LOAN * PIRN__REF;
        EXPECT_EQ(refs, pirn__state_peek(&state) & PIRN__REFS_MASK);
    }
}

/* Goal: the row of `wake`.
 * Method: from each shape. */
TEST(state_wake_queues_only_who_is_idle)
{
    static const struct row rows[SHAPES] = {
        [IDLE] = {PIRN__WAKE_SUBMIT, PIRN__QUEUED},
        [QUEUED] = {PIRN__WAKE_NONE, PIRN__QUEUED},
        [RUNNING] = {PIRN__WAKE_NONE, PIRN__RUNNING | PIRN__NOTIFIED},
        [NOTIFIED] = {PIRN__WAKE_NONE, PIRN__RUNNING | PIRN__NOTIFIED},
        [HELD] = {PIRN__WAKE_NONE, PIRN__SUSPENDED | PIRN__NOTIFIED},
        [HELD_NOTIFIED] = {PIRN__WAKE_NONE, PIRN__SUSPENDED | PIRN__NOTIFIED},
        [COMPLETE] = {PIRN__WAKE_NONE, PIRN__COMPLETE},
    };

    expect_rows(pirn__state_wake, rows);
}

/* Only what decides whether it runs: a wake that is owed may stay noted beside
 * QUEUED, for start() clears it. */
static enum pirn__wake wake_by_id_plain(pirn__state *state)
{
    enum pirn__wake answer = pirn__state_wake_by_id(state);

    if ((pirn__state_peek(state) & PIRN__QUEUED) != 0) {
        EXPECT_EQ(PIRN__START_POLL, state_start(state, 0));
        EXPECT_EQ(PIRN__RUNNING, doing(state));
    }
    return answer;
}

/* Goal: the row of `wake by id`: it also ends a suspension.
 * Method: from each shape; what was queued is popped at once. */
TEST(state_wake_by_id_ends_a_suspension)
{
    static const struct row rows[SHAPES] = {
        [IDLE] = {PIRN__WAKE_SUBMIT, PIRN__RUNNING},
        [QUEUED] = {PIRN__WAKE_NONE, PIRN__RUNNING},
        [RUNNING] = {PIRN__WAKE_NONE, PIRN__RUNNING | PIRN__NOTIFIED},
        [NOTIFIED] = {PIRN__WAKE_NONE, PIRN__RUNNING | PIRN__NOTIFIED},
        [HELD] = {PIRN__WAKE_SUBMIT, PIRN__RUNNING},
        [HELD_NOTIFIED] = {PIRN__WAKE_SUBMIT, PIRN__RUNNING},
        [COMPLETE] = {PIRN__WAKE_NONE, PIRN__COMPLETE},
    };

    expect_rows(wake_by_id_plain, rows);
}

/* Pop what a cancel or abort queued, and fold the answer of start into the
 * word's shape: it must be the claim that `flag` asks for. */
static void expect_flagged(enum pirn__wake (*event)(pirn__state *state),
                           uint64_t flag, enum pirn__start claim)
{
    static const bool queued[SHAPES] = {
        [IDLE] = true, [QUEUED] = true, [HELD] = true, [HELD_NOTIFIED] = true};

    for (int shape = 0; shape < SHAPES; shape++) {
        pirn__state state;
        enum pirn__wake answer;

        make(&state, (enum shape)shape);
        answer = event(&state);
        EXPECT_EQ(queued[shape] && shape != QUEUED ? PIRN__WAKE_SUBMIT
                                                   : PIRN__WAKE_NONE,
                  answer);
        if (shape == COMPLETE) {
            EXPECT_EQ(PIRN__COMPLETE, doing(&state));
            continue;
        }
        EXPECT((doing(&state) & flag) != 0);
        EXPECT_EQ(PIRN__WAKE_NONE, event(&state));
        if (!queued[shape])
            EXPECT_EQ(PIRN__WAKE_SUBMIT,
                      pirn__state_end(&state, false, PIRN__LOAN));
        EXPECT_EQ(claim, state_start(&state, 0));
    }
}

/* Goal: the row of `cancel`: it overrides a suspension and is told to the next
 * run, also to a run that is owed because it came in the middle of one.
 * Method: from each shape; repeat it; pop. */
TEST(state_cancel_is_told_to_the_next_run)
{
    expect_flagged(pirn__state_cancel, PIRN__CANCELLED, PIRN__START_CANCEL);
}

/* Goal: the row of `abort`, as above.
 * Method: as above. */
TEST(state_abort_is_told_to_the_next_run)
{
    expect_flagged(pirn__state_abort, PIRN__ABORTED, PIRN__START_ABORT);
}

/* Goal: of a cancel and an abort the abort counts.
 * Method: both orders. */
TEST(state_abort_beats_cancel)
{
    pirn__state state;

    make(&state, IDLE);
    EXPECT_EQ(PIRN__WAKE_SUBMIT, pirn__state_cancel(&state));
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_abort(&state));
    EXPECT_EQ(PIRN__START_ABORT, state_start(&state, 0));
    make(&state, HELD);
    EXPECT_EQ(PIRN__WAKE_SUBMIT, pirn__state_abort(&state));
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_cancel(&state));
    EXPECT_EQ(PIRN__START_ABORT, state_start(&state, 0));
}

/* Goal: the row of `suspend`: only a flag, which a finished task ignores.
 * Method: from each shape. */
TEST(state_suspend_only_sets_a_flag)
{
    for (int shape = 0; shape < SHAPES; shape++) {
        pirn__state state;
        uint64_t before;

        make(&state, (enum shape)shape);
        before = doing(&state);
        pirn__state_suspend(&state);
        EXPECT_EQ(shape == COMPLETE ? before : before | PIRN__SUSPENDED,
                  doing(&state));
    }
}

/* Goal: a suspended task that is popped is left alone, keeps its wake, and runs
 * once when the suspension ends.
 * Method: suspend while queued, pop, wake it both ways. */
TEST(state_suspended_task_that_is_popped_is_left_alone)
{
    pirn__state state;

    make(&state, QUEUED);
    pirn__state_suspend(&state);
    EXPECT_EQ(PIRN__START_LEAVE, state_start(&state, 0));
    EXPECT_EQ(PIRN__SUSPENDED | PIRN__NOTIFIED, doing(&state));
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_wake(&state));
    EXPECT_EQ(PIRN__WAKE_SUBMIT, pirn__state_wake_by_id(&state));
    EXPECT_EQ(PIRN__START_POLL, state_start(&state, 0));
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_end(&state, false, PIRN__LOAN));
    EXPECT_EQ(0, doing(&state));
}

/* Goal: a task that is suspended during its poll does not run again for the
 * wakes it has got, until it is woken by id or cancelled.
 * Method: suspend and wake while RUNNING, then end; once each way out. */
TEST(state_suspended_during_a_poll_keeps_the_wake_for_later)
{
    for (int way = 0; way < 2; way++) {
        pirn__state state;

        make(&state, NOTIFIED);
        pirn__state_suspend(&state);
        EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_end(&state, false, PIRN__LOAN));
        EXPECT_EQ(PIRN__SUSPENDED | PIRN__NOTIFIED, doing(&state));
        EXPECT_EQ(PIRN__WAKE_SUBMIT, way == 0 ? pirn__state_wake_by_id(&state)
                                              : pirn__state_cancel(&state));
        EXPECT_EQ(way == 0 ? PIRN__START_POLL : PIRN__START_CANCEL,
                  state_start(&state, 0));
        EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_end(&state, false, PIRN__LOAN));
    }
}

/* Goal: a task that wanted another turn and was suspended meanwhile gets it
 * when the suspension ends.
 * Method: end with `again` while SUSPENDED. */
TEST(state_suspended_task_that_wants_a_turn_waits_for_it)
{
    pirn__state state;

    make(&state, RUNNING);
    pirn__state_suspend(&state);
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_end(&state, true, PIRN__LOAN));
    EXPECT_EQ(PIRN__SUSPENDED | PIRN__NOTIFIED, doing(&state));
    EXPECT_EQ(PIRN__WAKE_SUBMIT, pirn__state_wake_by_id(&state));
}

/* Goal: the row of `end`.
 * Method: without a wake, with `again`, with a wake, with both. */
TEST(state_end_queues_who_was_woken_or_wants_a_turn)
{
    for (int woken = 0; woken < 2; woken++) {
        for (int again = 0; again < 2; again++) {
            bool queued = woken != 0 || again != 0;
            pirn__state state;

            make(&state, woken != 0 ? NOTIFIED : RUNNING);
            EXPECT_EQ(queued ? PIRN__WAKE_SUBMIT : PIRN__WAKE_NONE,
                      pirn__state_end(&state, again != 0, PIRN__LOAN));
            EXPECT_EQ(queued ? PIRN__QUEUED : 0, doing(&state));
        }
    }
}

/* Goal: any number of wakes during a poll make exactly one further run.
 * Method: a thousand wakes of every kind while RUNNING. */
TEST(state_many_wakes_during_a_poll_make_one_run)
{
    pirn__state state;

    make(&state, RUNNING);
    for (int i = 0; i < 1000; i++) {
        EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_wake(&state));
        EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_wake_by_id(&state));
    }
    EXPECT_EQ(PIRN__WAKE_SUBMIT, pirn__state_end(&state, true, PIRN__LOAN));
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_wake(&state));
    EXPECT_EQ(PIRN__START_POLL, state_start(&state, 0));
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_end(&state, false, PIRN__LOAN));
    EXPECT_EQ(0, doing(&state));
}

/* Goal: completion clears the claim and the wakes, and stands in the same step
 * that decides about output and join waker.
 * Method: complete with and without handle, output, flags. */
TEST(state_complete_keeps_output_only_for_a_handle)
{
    for (int handle = 0; handle < 2; handle++) {
        for (int output = 0; output < 2; output++) {
            pirn__state state;
            uint64_t word;

            pirn__state_open(&state, PIRN__JOIN_STATE, handle != 0);
            (void)state_start(&state, 0);
            (void)pirn__state_wake(&state);
            word = pirn__state_complete(&state, output != 0);
            EXPECT_EQ(word, pirn__state_peek(&state));
            EXPECT_EQ(PIRN__COMPLETE, doing(&state));
            EXPECT_EQ(handle != 0 && output != 0, (word & PIRN__OUTPUT) != 0);
            EXPECT_EQ(handle != 0, (word & PIRN__JOIN_INTEREST) != 0);
            EXPECT_EQ(0, word & PIRN__JOIN_WAKER);
        }
    }
}

/* Goal: a new word is QUEUED, with one reference of the group and one of all
 * handles, and keeps the flags it was given.
 * Method: open with and without a handle; give the references up. */
TEST(state_opens_queued_with_its_references)
{
    const uint64_t flags = PIRN__EXTRAS | PIRN__JOIN_STATE | PIRN__PINNED |
                           (uint64_t)2 << PIRN__CLASS_SHIFT |
                           (uint64_t)77 << PIRN__HOME_SHIFT;
    pirn__state state;

    pirn__state_open(&state, flags, false);
    EXPECT_EQ(flags | PIRN__QUEUED | PIRN__REF, pirn__state_peek(&state));
    EXPECT(pirn__state_unref(&state));

    pirn__state_open(&state, flags, true);
    EXPECT_EQ(2 * PIRN__REF, pirn__state_peek(&state) & PIRN__REFS_MASK);
    EXPECT_EQ(PIRN__HANDLE, pirn__state_peek(&state) & PIRN__HANDLES_MASK);
    EXPECT(!pirn__state_unref(&state));
    EXPECT_EQ(PIRN__HANDLE_LAST, pirn__state_drop_handle(&state));
    EXPECT(pirn__state_unref(&state));
}

/* Goal: the last reference is told apart, and a cell without any is refused.
 * Method: count up and down. */
TEST(state_references_tell_the_last_one)
{
    pirn__state state;

    make(&state, COMPLETE);
    pirn__state_ref(&state);
    EXPECT(pirn__state_try_ref(&state));
    EXPECT(!pirn__state_unref(&state));
    EXPECT(!pirn__state_unref(&state));
    EXPECT(pirn__state_unref(&state));
    EXPECT(!pirn__state_try_ref(&state));
    pirn__state_close(&state);
    EXPECT_EQ(0, pirn__state_peek(&state));
    EXPECT(!pirn__state_try_ref(&state));
}

/* Goal: the wake that gives its reference up says what a wake says, and tells the
 * last reference apart.
 * Method: from each shape with a second reference; then, ended, with the last. */
TEST(state_wake_gives_the_reference_up)
{
    for (int shape = 0; shape < SHAPES; shape++) {
        pirn__state state, same;

        make(&state, (enum shape)shape);
        make(&same, (enum shape)shape);
        pirn__state_ref(&state);
        EXPECT_EQ(pirn__state_wake(&same), pirn__state_wake_and_unref(&state));
        EXPECT_EQ(pirn__state_peek(&same), pirn__state_peek(&state));
        if (shape == COMPLETE)
            EXPECT_EQ(PIRN__WAKE_FREE, pirn__state_wake_and_unref(&state));
    }
}

/* Goal: of a loan comes back what was not handed out, and all of it at the end.
 * Method: hand out three in one run, none in the next, and end in the third. */
TEST(state_loan_leaves_what_was_handed_out)
{
    pirn__state state;

    make_running(&state);
    EXPECT_EQ((1 + PIRN__LOAN) * PIRN__REF,
              pirn__state_peek(&state) & PIRN__REFS_MASK);
    EXPECT_EQ(PIRN__WAKE_NONE, pirn__state_end(&state, false, PIRN__LOAN - 3));
    EXPECT_EQ(4 * PIRN__REF, pirn__state_peek(&state) & PIRN__REFS_MASK);
    for (int run = 0; run < 2; run++) {
        EXPECT_EQ(PIRN__WAKE_SUBMIT, pirn__state_wake(&state));
        EXPECT_EQ(PIRN__START_POLL, state_start(&state, 0));
        if (run == 0)
            EXPECT_EQ(PIRN__WAKE_NONE,
                      pirn__state_end(&state, false, PIRN__LOAN));
    }
    (void)pirn__state_complete(&state, false);
    EXPECT_EQ(4 * PIRN__REF, pirn__state_peek(&state) & PIRN__REFS_MASK);
}

/* Goal: all handles together hold one reference, which comes with the first.
 * Method: from no handle to two and back. */
TEST(state_handles_hold_one_reference_together)
{
    pirn__state state;

    make(&state, IDLE);
    pirn__state_add_handle(&state);
    EXPECT_EQ(2 * PIRN__REF, pirn__state_peek(&state) & PIRN__REFS_MASK);
    EXPECT((pirn__state_peek(&state) & PIRN__JOIN_INTEREST) != 0);
    pirn__state_add_handle(&state);
    EXPECT_EQ(2 * PIRN__REF, pirn__state_peek(&state) & PIRN__REFS_MASK);
    EXPECT_EQ(PIRN__HANDLE_OTHERS, pirn__state_drop_handle(&state));
    EXPECT((pirn__state_peek(&state) & PIRN__JOIN_INTEREST) != 0);
    EXPECT_EQ(PIRN__HANDLE_LAST, pirn__state_drop_handle(&state));
    EXPECT_EQ(0, pirn__state_peek(&state) & PIRN__JOIN_INTEREST);
    EXPECT(!pirn__state_unref(&state));
}

/* Goal: the last handle learns whether an output is its to discard, and whether
 * the end of the task was seen by nobody.
 * Method: every combination of kept, taken and joined. */
TEST(state_last_handle_learns_what_goes_with_it)
{
    for (int output = 0; output < 2; output++) {
        for (int joined = 0; joined < 2; joined++) {
            unsigned expected = PIRN__HANDLE_LAST;
            pirn__state state;

            pirn__state_open(&state, PIRN__JOIN_STATE, true);
            (void)state_start(&state, 0);
            (void)pirn__state_complete(&state, output != 0);
            if (joined != 0)
                EXPECT_EQ(PIRN__JOIN_DONE, pirn__state_join_claim(&state));
            if (output != 0)
                expected |= PIRN__HANDLE_OUTPUT;
            if (joined == 0)
                expected |= PIRN__HANDLE_UNSEEN;
            EXPECT_EQ(expected, pirn__state_drop_handle(&state));
            EXPECT_EQ(0, pirn__state_peek(&state) & PIRN__OUTPUT);
        }
    }
}

/* Goal: an output is taken once, and is then no longer there to discard.
 * Method: take twice, then drop the handle. */
TEST(state_output_is_taken_once)
{
    pirn__state state;

    pirn__state_open(&state, PIRN__JOIN_STATE, true);
    (void)state_start(&state, 0);
    EXPECT(!pirn__state_take_output(&state));
    (void)pirn__state_complete(&state, true);
    EXPECT(pirn__state_take_output(&state));
    EXPECT(!pirn__state_take_output(&state));
    EXPECT_EQ(PIRN__HANDLE_LAST | PIRN__HANDLE_UNSEEN,
              pirn__state_drop_handle(&state));
}

static void drop_once_too_often(void *arg)
{
    pirn__state state;

    (void)arg;
    pirn__state_open(&state, 0, false);
    (void)pirn__state_drop_handle(&state);
}

static void add_too_many_handles(void *arg)
{
    pirn__state state;

    (void)arg;
    pirn__state_open(&state, 0, false);
    for (int i = 0; i < 32768; i++)
        pirn__state_add_handle(&state);
}

/* Goal: broken rules about handles stop the process with their words.
 * Method: one drop too many, one handle too many. */
TEST(state_broken_handle_rules_abort)
{
    EXPECT_DEATH(drop_once_too_often, NULL, "a task handle is given up once");
    EXPECT_DEATH(add_too_many_handles, NULL, "too many handles of one task");
}

/* The join slot. */

/* A word that is RUNNING and has a join slot. */
static void make_joinable(pirn__state *state)
{
    pirn__state_open(state, PIRN__JOIN_STATE, true);
    EXPECT_EQ(PIRN__START_POLL, state_start(state, 0));
}

/* Goal: one waiter at a time, the next after it has gone.
 * Method: claim twice, unclaim, claim. */
TEST(state_join_is_claimed_by_one)
{
    pirn__state state;

    make_joinable(&state);
    EXPECT_EQ(PIRN__JOIN_OK, pirn__state_join_claim(&state));
    EXPECT_EQ(PIRN__JOIN_BUSY, pirn__state_join_claim(&state));
    pirn__state_join_unclaim(&state);
    EXPECT_EQ(PIRN__JOIN_OK, pirn__state_join_claim(&state));
    (void)pirn__state_complete(&state, false);
    /* After the end nobody is kept out by an earlier claim. */
    EXPECT_EQ(PIRN__JOIN_DONE, pirn__state_join_claim(&state));
    EXPECT_EQ(PIRN__JOIN_DONE, pirn__state_join_claim(&state));
}

/* Goal: who owns the slot is certain whenever the end comes.
 * Method: put the completion before and after each step of a waiter. */
TEST(state_join_slot_has_one_owner_wherever_the_end_comes)
{
    /* The end comes after this many steps of: claim, publish, retract,
     * publish. */
    for (int end = 0; end <= 4; end++) {
        pirn__state state;
        bool published = end == 2 || end == 4;

        make_joinable(&state);
        if (end > 0)
            EXPECT_EQ(PIRN__JOIN_OK, pirn__state_join_claim(&state));
        if (end > 1)
            EXPECT_EQ(PIRN__JOIN_OK, pirn__state_join_publish(&state));
        if (end > 2)
            EXPECT_EQ(PIRN__JOIN_OK, pirn__state_join_retract(&state));
        if (end > 3)
            EXPECT_EQ(PIRN__JOIN_OK, pirn__state_join_publish(&state));
        EXPECT_EQ(published ? PIRN__JOIN_WAKER : 0,
                  pirn__state_complete(&state, false) & PIRN__JOIN_WAKER);
        switch (end) {
        case 0:
            EXPECT_EQ(PIRN__JOIN_DONE, pirn__state_join_claim(&state));
            break;
        case 1:
        case 3:
            EXPECT_EQ(PIRN__JOIN_DONE, pirn__state_join_publish(&state));
            break;
        default:
            EXPECT_EQ(PIRN__JOIN_DONE, pirn__state_join_retract(&state));
            break;
        }
        /* The completer's view never changes afterwards. */
        EXPECT_EQ(published ? PIRN__JOIN_WAKER : 0,
                  pirn__state_peek(&state) & PIRN__JOIN_WAKER);
    }
}

/* Goal: a waiter may go after the end as well as before.
 * Method: unclaim in both; the last handle then counts as unseen. */
TEST(state_join_unclaimed_after_the_end_is_unseen)
{
    pirn__state state;

    make_joinable(&state);
    EXPECT_EQ(PIRN__JOIN_OK, pirn__state_join_claim(&state));
    (void)pirn__state_complete(&state, false);
    pirn__state_join_unclaim(&state);
    EXPECT_EQ(PIRN__HANDLE_LAST | PIRN__HANDLE_UNSEEN,
              pirn__state_drop_handle(&state));
}

/* Threads. */

enum { WAKERS = 3 };

struct race {
    pirn__state state;
    PIRN_ATOMIC(size_t) submits; /* how often somebody had to queue it */
    PIRN_ATOMIC(int) go;
    PIRN_ATOMIC(int) winners;
    size_t rounds;
    size_t payload; /* plain: written before a wake, read by a run */
};

static void submit(struct race *race, enum pirn__wake wake)
{
    if (wake == PIRN__WAKE_SUBMIT) {
        /* release [state_test.submits]: the runner pops what was queued. */
        (void)pirn__add(&race->submits, 1, release);
    }
}

static void *wake_many(void *arg)
{
    struct race *race = arg;

    for (size_t i = 0; i < race->rounds; i++)
        submit(race, i % 3 == 0 ? pirn__state_wake_by_id(&race->state)
                                : pirn__state_wake(&race->state));
    return NULL;
}

/* Pop and run once if it is queued. */
static bool run_once(struct race *race)
{
    /* acquire [state_test.submits]: pairs with submit(). */
    if (pirn__load(&race->submits, acquire) == 0)
        return false;
    /* relaxed: only this thread takes away. */
    EXPECT_EQ(1, pirn__sub(&race->submits, 1, relaxed));
    EXPECT_EQ(PIRN__START_POLL, state_start(&race->state, 0));
    submit(race, pirn__state_end(&race->state, false, PIRN__LOAN));
    return true;
}

/* Goal: however many threads wake, the task is queued at most once at any time
 * and every wake is followed by a run.
 * Method: three threads wake, one runs; every submission is popped and run, and
 * at the end nothing is owed. */
TEST(state_wakes_from_many_threads_queue_it_once)
{
    struct race race = {.rounds = test_size(2000, 50000, 2000000)};
    pthread_t threads[WAKERS];

    make(&race.state, IDLE);
    for (int i = 0; i < WAKERS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, wake_many, &race) == 0);
    for (size_t i = 0; i < race.rounds; i++)
        (void)run_once(&race);
    for (int i = 0; i < WAKERS; i++)
        pthread_join(threads[i], NULL);
    while (run_once(&race))
        continue;
    EXPECT_EQ(0, doing(&race.state));
}

/* Wait for the start, so that both sides meet. */
static void meet(struct race *race)
{
    /* acq_rel [state_test.go]: the preparation is seen by both. */
    (void)pirn__add(&race->go, 1, acq_rel);
    /* acquire [state_test.go]: as above.  Ends: the other one comes. */
    while (pirn__load(&race->go, acquire) < 2)
        pirn__spin_hint();
}

static void *retract_once(void *arg)
{
    struct race *race = arg;

    meet(race);
    if (pirn__state_join_retract(&race->state) == PIRN__JOIN_OK) {
        race->payload++;
        /* relaxed: the join of the thread orders. */
        (void)pirn__add(&race->winners, 1, relaxed);
    }
    return NULL;
}

/* Goal: of a waiter that takes its waker back and a task that completes, one
 * owns the slot.
 * Method: two threads, again and again; `payload` stands for the slot and is
 * not atomic, so that TSan sees two owners. */
TEST(state_join_slot_raced_for_has_one_owner)
{
    size_t rounds = test_size(50, 300, 20000);

    for (size_t i = 0; i < rounds; i++) {
        struct race race = {0};
        pthread_t thread;

        make_joinable(&race.state);
        (void)pirn__state_join_claim(&race.state);
        (void)pirn__state_join_publish(&race.state);
        REQUIRE(pthread_create(&thread, NULL, retract_once, &race) == 0);
        meet(&race);
        if ((pirn__state_complete(&race.state, false) & PIRN__JOIN_WAKER) !=
            0) {
            race.payload++;
            /* relaxed: the join of the thread orders. */
            (void)pirn__add(&race.winners, 1, relaxed);
        }
        pthread_join(thread, NULL);
        /* relaxed: the thread has ended. */
        EXPECT_EQ(1, pirn__load(&race.winners, relaxed));
    }
}

static void *drop_handle_once(void *arg)
{
    struct race *race = arg;

    meet(race);
    if ((pirn__state_drop_handle(&race->state) & PIRN__HANDLE_OUTPUT) != 0)
        race->payload++;
    return NULL;
}

/* Goal: an output is discarded once when the last handle goes while the task
 * ends.
 * Method: two threads; exactly one of them finds the output its own. */
TEST(state_output_raced_for_is_discarded_once)
{
    size_t rounds = test_size(50, 300, 20000);

    for (size_t i = 0; i < rounds; i++) {
        struct race race = {0};
        pthread_t thread;
        uint64_t word;

        make_joinable(&race.state);
        REQUIRE(pthread_create(&thread, NULL, drop_handle_once, &race) == 0);
        meet(&race);
        word = pirn__state_complete(&race.state, true);
        pthread_join(thread, NULL);
        EXPECT_EQ((word & PIRN__OUTPUT) != 0 ? 1 : 0, race.payload);
        EXPECT_EQ(0, pirn__state_peek(&race.state) & PIRN__OUTPUT);
    }
}
