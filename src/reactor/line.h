/* SPDX-License-Identifier: MIT */
/* src/reactor/line.h - those who wait for one direction of a descriptor, first
 * come first.
 *
 * The first is called up when there is readiness.  It leaves the line and is
 * then WOKEN: it tries its system call, and when its operation ends, or is
 * dropped, the next one is called up if readiness remains.  While one is WOKEN
 * nobody else is called, so nobody overtakes.
 *
 * The line has a front, one word, for the usual case: one task waits, alone.  It
 * enters, is called up and leaves without the lock:
 *
 *     0                   nobody
 *     task                a task waits; its waker's reference is in the word
 *     task | CALLED       it was called up, and has the reference back
 *     task | ENDED        the same, because its runtime has ended
 *     any of them | LISTED   the line behind it is in use
 *
 * Only who finds 0 there enters; who comes later stands in the list behind, under
 * the lock.  A task is called up by who changes `task` into `task | CALLED`: the
 * reference is then his to wake with, and he touches nothing of the waiter, which
 * may be gone.  The task stays in the word until it leaves, so that nobody else
 * is called meanwhile.
 *
 * No wake is lost.  Who enters, front or list, looks at the readiness again
 * afterwards; an event changes the readiness first and looks at the front
 * afterwards.  All four are seq_cst, and so is the end of a front, after which the
 * list may be called.
 *
 * Everything but the front is under the lock of the io.
 */
#ifndef PIRN_REACTOR_LINE_H
#define PIRN_REACTOR_LINE_H

#include <pirn/io.h>

#include "base/atomic.h"
#include "base/list.h"
#include "task/task.h"

/* Changed only under the lock; who finds its own waiter WOKEN without the lock
 * may rely on it, for nobody else takes that state away. */
enum pirn__waiter_state {
    PIRN__WAITER_OUT,    /* in no line */
    PIRN__WAITER_QUEUED, /* in line, or in a list that is being woken */
    PIRN__WAITER_WOKEN,  /* out of line; has to try or to pass on */
    PIRN__WAITER_ENDED,  /* its runtime has ended */
    PIRN__WAITER_FRONT,  /* see the word there */
};

enum {
    PIRN__FRONT_CALLED = 1,
    PIRN__FRONT_ENDED = 2,
    PIRN__FRONT_LISTED = 4,
    PIRN__FRONT_FLAGS = 7, /* all of them; tasks are aligned to 8 */
};

/* Not 0: somebody waits or is WOKEN.  Who has not waited looks at it as a hint:
 * would he overtake somebody?  Who misses one that has just come overtakes it, as
 * if he had been a little earlier. */
typedef PIRN_ATOMIC(uintptr_t) pirn__front;

struct pirn__line {
    pirn__front *front; /* constant: of this line */
    pirn_link waiters;  /* the list */
    uint32_t woken;     /* called up from the list and not back yet */
};

static inline uint8_t pirn__waiter_state(const pirn_io_waiter *waiter)
{
    /* relaxed: the lock orders it.  Who is found WOKEN without the lock may try,
     * if it sees the readiness, and touches nothing else before it locks. */
    return pirn__load(&waiter->state_, relaxed);
}

static inline void pirn__waiter_set_state(pirn_io_waiter *waiter, uint8_t state)
{
    /* relaxed: under the lock; see pirn__waiter_state(). */
    pirn__store(&waiter->state_, state, relaxed);
}

void pirn__line_init(struct pirn__line *line, pirn__front *front);

/* The front. */

static inline uintptr_t pirn__front_look(const pirn__front *front)
{
    /* seq_cst [line.front]: after a change of the readiness, against who enters
     * and looks at that; and what was done before a task was called is seen. */
    return pirn__load(front, seq_cst);
}

static inline bool pirn__front_step(pirn__front *front, uintptr_t *expected,
                                    uintptr_t desired)
{
    /* seq_cst [line.front]: see above; a failure only reloads. */
    return pirn__cas(front, expected, desired, seq_cst, relaxed);
}

static inline struct pirn__task *pirn__front_task(uintptr_t word)
{
    return (struct pirn__task *)(word & ~(uintptr_t)PIRN__FRONT_FLAGS);
}

/* True if a task waits there that has not been told anything yet. */
static inline bool pirn__front_waits(uintptr_t word)
{
    return pirn__front_task(word) != NULL &&
           (word & (PIRN__FRONT_CALLED | PIRN__FRONT_ENDED)) == 0;
}

/* Give `task`, of which the caller has a reference, the front; false if somebody
 * is there already.  Look at the readiness next. */
static inline bool pirn__front_enter(pirn__front *front,
                                     struct pirn__task *task)
{
    uintptr_t word = 0;

    return pirn__front_step(front, &word, (uintptr_t)task);
}

/* A task that was called up has what it wanted.  False: somebody stands behind,
 * or it has not been called up. */
static inline bool pirn__front_leave(pirn__front *front)
{
    uintptr_t word = pirn__front_look(front);

    return (word & (PIRN__FRONT_CALLED | PIRN__FRONT_LISTED)) ==
               PIRN__FRONT_CALLED &&
           pirn__front_step(front, &word, 0);
}

/* Call up the task that waits, for CALLED or ENDED; the empty waker if none
 * does. */
PIRN_MUST_CHECK static inline pirn_waker
pirn__front_call_up(pirn__front *front, uintptr_t flag)
{
    uintptr_t word = pirn__front_look(front);

    while (pirn__front_waits(word)) {
        if (pirn__front_step(front, &word, word | flag))
            return pirn__task_waker_borrowed(pirn__front_task(word));
    }
    return (pirn_waker){0};
}

/* No task is at the front from here on; `listed`: its waiter comes into the list
 * next.  Returns the word before. */
static inline uintptr_t pirn__front_clear_locked(pirn__front *front,
                                                 bool listed)
{
    uintptr_t kept = listed ? PIRN__FRONT_LISTED : 0;
    uintptr_t word = pirn__front_look(front);

    while (!pirn__front_step(front, &word, (word & PIRN__FRONT_LISTED) | kept))
        continue;
    return word;
}

/* The list. */

/* There is readiness: is it this waiter's turn?  If it was the first in line it
 * is WOKEN now. */
bool pirn__line_is_turn_of(struct pirn__line *line, pirn_io_waiter *waiter);

/* To the end of the line; who is in it stays where it is, and who was WOKEN and
 * found nothing is the first again. */
void pirn__line_enter(struct pirn__line *line, pirn_io_waiter *waiter);

/* From the front to the head of the list, WOKEN: to try, and then to wait
 * again. */
void pirn__line_return(struct pirn__line *line, pirn_io_waiter *waiter);

/* Out of the line, or of being WOKEN. */
void pirn__line_leave(struct pirn__line *line, pirn_io_waiter *waiter);

/* True if there is somebody in the list to call up. */
static inline bool pirn__line_can_call(const struct pirn__line *line)
{
    return line->woken == 0 && !pirn__list_empty(&line->waiters) &&
           pirn__front_task(pirn__front_look(line->front)) == NULL;
}

/* Call the first up; the waker is to be woken after unlock. */
PIRN_MUST_CHECK pirn_waker pirn__line_call_up(struct pirn__line *line);

/* Move all that wait in the list to `out`. */
void pirn__line_empty(struct pirn__line *line, pirn_link *out);

#endif /* PIRN_REACTOR_LINE_H */
