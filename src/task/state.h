/* SPDX-License-Identifier: MIT */
/* src/task/state.h - the state word of a task and every legal transition.
 *
 * One 64-bit word says everything that several threads must agree on.  Nothing
 * else touches it.  Each transition is one function of state.c, or, where every
 * wake and every poll makes it, of state_hot.h; it changes the word in a single
 * atomic step and says what the caller must now do.
 *
 *     bit  0     RUNNING        somebody polls or settles it: the claim
 *          1     QUEUED         its link is in a queue
 *          2     NOTIFIED       a wake is owed: poll once more
 *          3     COMPLETE       it has ended; for ever
 *          4     CANCELLED      somebody asked it to stop
 *          5     ABORTED        it is to end without its cooperation
 *          6     SUSPENDED      held from outside; wakes are only remembered
 *          7     JOIN_INTEREST  at least one handle exists
 *          8     JOIN_WAKER     the join slot holds a waker (see below)
 *          9     PINNED         runs only on its home worker
 *         10     EXTRAS         `info` points to an extras record, not a site
 *         11-12  CLASS          priority class
 *         13-21  HOME           home worker or shard
 *         22     JOIN_STATE     the cell has a join slot
 *         23     OUTPUT         a finished future is kept for whoever takes it
 *         24-38  HANDLES        how many pirn_task handles exist
 *         39     JOIN_CLAIM     a waiter uses the join slot; after the end:
 *                               somebody has seen to the outcome
 *         40-63  REFS           who keeps the cell: the group until settlement,
 *                               all handles together, and each waker
 *
 *   event        idle       QUEUED      RUNNING      SUSPENDED    COMPLETE
 *   wake         ->QUEUED*  merged      ->NOTIFIED   ->NOTIFIED   nothing
 *   wake by id   ->QUEUED*  un-suspend  ->NOTIFIED   ->QUEUED*    nothing
 *   cancel,abort ->QUEUED*  flag        ->NOTIFIED   ->QUEUED*    nothing
 *   suspend      flag       flag        flag         -            nothing
 *   start (pop)  -          ->RUNNING, or, suspended and neither cancelled nor
 *                           aborted, ->NOTIFIED and left alone
 *   end (poll)   -          -           ->idle, or ->QUEUED* if NOTIFIED
 *   complete     -          -           ->COMPLETE
 *   (* the caller must submit it to its runtime)
 *
 * Join slot: a waker in the cell.  While JOIN_WAKER is clear it belongs to the
 * holder of JOIN_CLAIM.  Setting JOIN_WAKER hands it to the completer; clearing
 * it takes it back, which works only until COMPLETE.  After COMPLETE with
 * JOIN_WAKER set it is the completer's alone.
 *
 * Loan: start() adds PIRN__LOAN references, and end() takes back what is left of
 * them, each in the step that it makes anyway.  So the holder of RUNNING hands
 * out references to itself, one for each wait, without touching the word.
 *
 * Orders: every transition but those of references, of the output and of the end
 * of a claim is one acq_rel read-modify-write, also when it changes nothing, so
 * that what a waker wrote before a merged wake is seen by the poll that the wake
 * was merged into.
 */
#ifndef PIRN_TASK_STATE_H
#define PIRN_TASK_STATE_H

#include <pirn/base.h>

#include "base/atomic.h"
#include "base/hint.h"

#define PIRN__STATE_BIT(n) ((uint64_t)1 << (n))

#define PIRN__RUNNING PIRN__STATE_BIT(0)
#define PIRN__QUEUED PIRN__STATE_BIT(1)
#define PIRN__NOTIFIED PIRN__STATE_BIT(2)
#define PIRN__COMPLETE PIRN__STATE_BIT(3)
#define PIRN__CANCELLED PIRN__STATE_BIT(4)
#define PIRN__ABORTED PIRN__STATE_BIT(5)
#define PIRN__SUSPENDED PIRN__STATE_BIT(6)
#define PIRN__JOIN_INTEREST PIRN__STATE_BIT(7)
#define PIRN__JOIN_WAKER PIRN__STATE_BIT(8)
#define PIRN__PINNED PIRN__STATE_BIT(9)
#define PIRN__EXTRAS PIRN__STATE_BIT(10)
#define PIRN__CLASS_SHIFT 11
#define PIRN__CLASS_MASK (PIRN__STATE_BIT(13) - PIRN__STATE_BIT(11))
#define PIRN__HOME_SHIFT 13
#define PIRN__HOME_MASK (PIRN__STATE_BIT(22) - PIRN__STATE_BIT(13))
#define PIRN__HOME_LIMIT 512
#define PIRN__JOIN_STATE PIRN__STATE_BIT(22)
#define PIRN__OUTPUT PIRN__STATE_BIT(23)
#define PIRN__HANDLE PIRN__STATE_BIT(24)
#define PIRN__HANDLES_MASK (PIRN__STATE_BIT(39) - PIRN__STATE_BIT(24))
#define PIRN__JOIN_CLAIM PIRN__STATE_BIT(39)
#define PIRN__REF PIRN__STATE_BIT(40)
#define PIRN__REFS_MASK (~(PIRN__STATE_BIT(40) - 1))

/* What decides on the next turn of a task. */
#define PIRN__TURN_MASK \
    (PIRN__RUNNING | PIRN__QUEUED | PIRN__NOTIFIED | PIRN__COMPLETE | \
     PIRN__CANCELLED | PIRN__ABORTED | PIRN__SUSPENDED)

/* References that the holder of RUNNING may hand out; see above. */
#define PIRN__LOAN UINT32_C(64)

typedef PIRN_ATOMIC(uint64_t) pirn__state;

/* The first content of the word: QUEUED, one reference of the group, and with
 * `handle` one handle and its reference.  `flags` may hold EXTRAS, PINNED,
 * JOIN_STATE, a class and a home. */
static inline void pirn__state_open(pirn__state *state, uint64_t flags,
                                    bool handle);

/* A glance, stale at once. */
static inline uint64_t pirn__state_peek(const pirn__state *state);

/* What a wake-up asks of its caller. */
enum pirn__wake {
    PIRN__WAKE_NONE,
    PIRN__WAKE_SUBMIT, /* it has just become QUEUED: submit it */
    PIRN__WAKE_FREE,   /* the reference was the last: free the cell */
};

static inline enum pirn__wake pirn__state_wake(pirn__state *state);
/* The same, and a reference is given up in the same step.  With SUBMIT the cell
 * stays until it has been submitted: only then can it be popped, and settled. */
static inline enum pirn__wake pirn__state_wake_and_unref(pirn__state *state);
enum pirn__wake pirn__state_wake_by_id(pirn__state *state);
enum pirn__wake pirn__state_cancel(pirn__state *state);
enum pirn__wake pirn__state_abort(pirn__state *state);
void pirn__state_suspend(pirn__state *state);

/* What to do with a popped task. */
enum pirn__start {
    PIRN__START_POLL,   /* claimed: poll it */
    PIRN__START_CANCEL, /* claimed: it was cancelled; see its kind */
    PIRN__START_ABORT,  /* claimed: drop it */
    PIRN__START_LEAVE,  /* suspended: not claimed, leave it alone */
};

/* What a worker adds to the words of the tasks that it pops, whose home it is from
 * then on. */
static inline uint64_t pirn__state_claim(uint32_t home);
/* The usual start, which only claims; false, and nothing done, if there is more to
 * it: then pirn__state_start_any(). */
static inline bool pirn__state_start_usually(pirn__state *state, uint64_t claim);

/* True if only its home worker may run it. */
static inline bool pirn__state_is_pinned(const pirn__state *state);

/* Its priority class, constant. */
static inline uint32_t pirn__state_class(const pirn__state *state);

/* Where it last ran; a hint. */
static inline uint32_t pirn__state_home(const pirn__state *state);

/* After a poll that returned PENDING; `again`: the task wants another turn;
 * `loan`: what is left of it. */
static inline enum pirn__wake pirn__state_end(pirn__state *state, bool again,
                                              uint32_t loan);

/* End it.  With `output` the finished future is kept if a handle exists.  The
 * whole loan goes back.  Returns the word as it was stored. */
uint64_t pirn__state_complete(pirn__state *state, bool output);

/* End it, give the group's reference up and close the word, in one step; false,
 * and nothing done, if anybody else has a reference. */
static inline bool pirn__state_finish(pirn__state *state);

/* The same in two steps: whether it may be done to a word, of a task without
 * extras; and do it, false if the word is another one meanwhile. */
static inline bool pirn__state_may_finish(uint64_t word);
static inline bool pirn__state_finish_from(pirn__state *state, uint64_t word);

/* The cell goes back to its slab: the word becomes 0. */
void pirn__state_close(pirn__state *state);

/* References.  drop returns true when the last one is gone and the cell is the
 * caller's to give back.  try_ref refuses a cell without any. */
static inline void pirn__state_ref(pirn__state *state);
static inline void pirn__state_ref_many(pirn__state *state, uint32_t count);
bool pirn__state_try_ref(pirn__state *state);
/* The same, which also refuses one that is COMPLETE; who is refused sees what
 * was done before that. */
bool pirn__state_try_ref_live(pirn__state *state);
static inline bool pirn__state_unref(pirn__state *state);

/* Handles.  drop says what went with the last one. */
enum pirn__handle_drop {
    PIRN__HANDLE_OTHERS = 0,
    PIRN__HANDLE_LAST = 1,    /* flag: that was the last handle */
    PIRN__HANDLE_OUTPUT = 2,  /* flag: its output is the caller's to discard */
    PIRN__HANDLE_UNSEEN = 4,  /* flag: it has ended and nobody has seen how */
};

void pirn__state_add_handle(pirn__state *state);
/* From a plain reference, which stays. */
unsigned pirn__state_drop_handle(pirn__state *state);

/* True if the caller, who has found COMPLETE, may now take the output out;
 * once. */
bool pirn__state_take_output(pirn__state *state);

/* The join slot. */
enum pirn__join {
    PIRN__JOIN_OK,   /* done as asked */
    PIRN__JOIN_DONE, /* the task is COMPLETE */
    PIRN__JOIN_BUSY, /* another waiter uses the slot */
};

enum pirn__join pirn__state_join_claim(pirn__state *state);
void pirn__state_join_unclaim(pirn__state *state);
/* Hand the slot's waker to the completer.  DONE: it stays the caller's. */
enum pirn__join pirn__state_join_publish(pirn__state *state);
/* Take it back.  DONE: it is the completer's now. */
enum pirn__join pirn__state_join_retract(pirn__state *state);

/* The inline ones. */
#include "task/state_hot.h"

#endif /* PIRN_TASK_STATE_H */
