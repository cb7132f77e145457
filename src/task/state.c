/* SPDX-License-Identifier: MIT */
/* src/task/state.c - the transitions of a task's state word; see state.h. */
#include "task/state.h"

#include "base/assert.h"

void pirn__state_close(pirn__state *state)
{
    /* relaxed: nobody has a reference, and a look-up refuses a word without
     * references before and after. */
    pirn__store(state, 0, relaxed);
}

enum pirn__start pirn__state_start_any(pirn__state *state, uint32_t home)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next;

    do {
        PIRN_ASSERT((word & PIRN__QUEUED) != 0);
        PIRN_ASSERT((word & (PIRN__RUNNING | PIRN__COMPLETE)) == 0);
        next = word & ~(PIRN__QUEUED | PIRN__HOME_MASK);
        next |= (uint64_t)home << PIRN__HOME_SHIFT;
        if (pirn__state_is_held(word))
            next |= PIRN__NOTIFIED;
        else
            next = ((next | PIRN__RUNNING) & ~PIRN__NOTIFIED) +
                   PIRN__LOAN * PIRN__REF;
    } while (!pirn__state_step(state, &word, next));
    if ((next & PIRN__RUNNING) == 0)
        return PIRN__START_LEAVE;
    if ((word & PIRN__ABORTED) != 0)
        return PIRN__START_ABORT;
    return (word & PIRN__CANCELLED) != 0 ? PIRN__START_CANCEL
                                         : PIRN__START_POLL;
}

enum pirn__wake pirn__state_end_any(pirn__state *state, bool again,
                                    uint32_t loan)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next;

    do {
        PIRN_ASSERT((word & PIRN__RUNNING) != 0);
        next = (word & ~PIRN__RUNNING) - loan * PIRN__REF;
        if (again)
            next |= PIRN__NOTIFIED;
        if ((next & PIRN__NOTIFIED) != 0 && !pirn__state_is_held(next))
            next = (next & ~PIRN__NOTIFIED) | PIRN__QUEUED;
    } while (!pirn__state_step(state, &word, next));
    return pirn__state_submit_if_queued(word, next);
}

/* Set `flag`, clear `clear`, and wake if that changes whether it may run. */
static enum pirn__wake flag_and_wake(pirn__state *state, uint64_t flag,
                                     uint64_t clear)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next;

    do {
        if ((word & PIRN__COMPLETE) != 0)
            next = word;
        else
            next = pirn__state_woken((word | flag) & ~clear);
    } while (!pirn__state_step(state, &word, next));
    return pirn__state_submit_if_queued(word, next);
}

enum pirn__wake pirn__state_wake_by_id(pirn__state *state)
{
    return flag_and_wake(state, 0, PIRN__SUSPENDED);
}

enum pirn__wake pirn__state_cancel(pirn__state *state)
{
    return flag_and_wake(state, PIRN__CANCELLED, 0);
}

enum pirn__wake pirn__state_abort(pirn__state *state)
{
    return flag_and_wake(state, PIRN__ABORTED, 0);
}

void pirn__state_suspend(pirn__state *state)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next;

    do {
        next = (word & PIRN__COMPLETE) != 0 ? word : word | PIRN__SUSPENDED;
    } while (!pirn__state_step(state, &word, next));
}

uint64_t pirn__state_complete(pirn__state *state, bool output)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next;

    do {
        PIRN_ASSERT((word & PIRN__RUNNING) != 0);
        next = (word & ~(PIRN__RUNNING | PIRN__NOTIFIED)) | PIRN__COMPLETE;
        next -= PIRN__LOAN * PIRN__REF;
        /* Without a handle the caller sees to the outcome. */
        if ((word & PIRN__JOIN_INTEREST) == 0)
            next |= PIRN__JOIN_CLAIM;
        else if (output)
            next |= PIRN__OUTPUT;
    } while (!pirn__state_step(state, &word, next));
    return next;
}

bool pirn__state_try_ref(pirn__state *state)
{
    uint64_t word = pirn__state_guess(state);

    do {
        if ((word & PIRN__REFS_MASK) == 0)
            return false;
    } while (!pirn__state_step(state, &word, word + PIRN__REF));
    return true;
}

bool pirn__state_try_ref_live(pirn__state *state)
{
    uint64_t word = pirn__state_peek(state);

    do {
        if ((word & PIRN__REFS_MASK) == 0 || (word & PIRN__COMPLETE) != 0) {
            /* A failed step has only reloaded. */
            (void)pirn__state_peek(state);
            return false;
        }
    } while (!pirn__state_step(state, &word, word + PIRN__REF));
    return true;
}

void pirn__state_add_handle(pirn__state *state)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next;

    do {
        PIRN_REQUIRE((word & PIRN__HANDLES_MASK) != PIRN__HANDLES_MASK,
                     "too many handles of one task");
        next = word + PIRN__HANDLE;
        if ((word & PIRN__HANDLES_MASK) == 0)
            next = (next | PIRN__JOIN_INTEREST) + PIRN__REF;
    } while (!pirn__state_step(state, &word, next));
}

static unsigned last_handle_flags(uint64_t word)
{
    unsigned flags = PIRN__HANDLE_LAST;

    if ((word & PIRN__OUTPUT) != 0)
        flags |= PIRN__HANDLE_OUTPUT;
    if ((word & (PIRN__COMPLETE | PIRN__JOIN_CLAIM)) == PIRN__COMPLETE)
        flags |= PIRN__HANDLE_UNSEEN;
    return flags;
}

unsigned pirn__state_drop_handle(pirn__state *state)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next;
    bool last;

    do {
        PIRN_REQUIRE((word & PIRN__HANDLES_MASK) != 0,
                     "a task handle is given up once");
        last = (word & PIRN__HANDLES_MASK) == PIRN__HANDLE;
        next = word - PIRN__HANDLE;
        if (last)
            next &= ~(PIRN__JOIN_INTEREST | PIRN__OUTPUT);
        if (last && (word & PIRN__COMPLETE) != 0)
            next |= PIRN__JOIN_CLAIM;
    } while (!pirn__state_step(state, &word, next));
    return last ? last_handle_flags(word) : PIRN__HANDLE_OTHERS;
}

bool pirn__state_take_output(pirn__state *state)
{
    /* relaxed: the caller has found it COMPLETE and so sees the finished future;
     * of several takers one finds the bit. */
    return (pirn__and(state, ~PIRN__OUTPUT, relaxed) & PIRN__OUTPUT) != 0;
}

enum pirn__join pirn__state_join_claim(pirn__state *state)
{
    uint64_t word = pirn__state_guess(state);

    do {
        if ((word & (PIRN__COMPLETE | PIRN__JOIN_CLAIM)) == PIRN__JOIN_CLAIM)
            return PIRN__JOIN_BUSY;
    } while (!pirn__state_step(state, &word, word | PIRN__JOIN_CLAIM));
    return (word & PIRN__COMPLETE) != 0 ? PIRN__JOIN_DONE : PIRN__JOIN_OK;
}

void pirn__state_join_unclaim(pirn__state *state)
{
    /* release [state.word]: the next claimant sees the slot as we left it. */
    uint64_t before = pirn__and(state, ~PIRN__JOIN_CLAIM, release);

    PIRN_ASSERT((before & PIRN__JOIN_CLAIM) != 0);
}

/* Change JOIN_WAKER to `wanted` unless the task is COMPLETE. */
static enum pirn__join move_join_waker(pirn__state *state, uint64_t wanted)
{
    uint64_t word = pirn__state_guess(state);

    do {
        PIRN_ASSERT((word & PIRN__JOIN_CLAIM) != 0);
        if ((word & PIRN__COMPLETE) != 0) {
            /* The guess was relaxed; look again with acquire, so that the
             * outcome may be read. */
            PIRN_ASSERT((pirn__state_peek(state) & PIRN__COMPLETE) != 0);
            return PIRN__JOIN_DONE;
        }
    } while (!pirn__state_step(state, &word, (word & ~PIRN__JOIN_WAKER) | wanted));
    return PIRN__JOIN_OK;
}

enum pirn__join pirn__state_join_publish(pirn__state *state)
{
    return move_join_waker(state, PIRN__JOIN_WAKER);
}

enum pirn__join pirn__state_join_retract(pirn__state *state)
{
    return move_join_waker(state, 0);
}
