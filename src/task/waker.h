/* SPDX-License-Identifier: MIT */
/* src/task/waker.h - storing the waker of a poll in a slot that a lock guards.
 *
 * To clone a foreign waker runs foreign code, which no lock of ours may be held
 * in; to clone a task's own is one addition.  So whoever finds under its lock
 * that a foreign waker is wanted releases the lock, clones, and looks again.
 */
#ifndef PIRN_TASK_WAKER_H
#define PIRN_TASK_WAKER_H

#include <pirn/future.h>

/* Under the lock.  True: the slot holds the waker of `cx`, and *spare is to be
 * dropped after unlock.  False, only while *spare is empty: unlock, put a clone
 * there, lock and try again. */
PIRN_MUST_CHECK bool pirn__waker_place(pirn_waker *slot, const pirn_cx *cx,
                                       pirn_waker *spare);

/* pirn_waker_wake() by a thread that works for `home`, which stays meanwhile. */
struct pirn__home;
void pirn__waker_wake_by_driver(pirn_waker waker,
                                const struct pirn__home *home);

/* The same in the poll of a task, whose turn it is. */
struct pirn__turn;
void pirn__waker_wake_in_turn(pirn_waker waker, struct pirn__turn *turn);

/* pirn_waker_clone() and pirn_waker_drop() that take a reference to the task in
 * whose poll we are from its loan, and give it back there. */
pirn_waker pirn__waker_get(const pirn_cx *cx);
void pirn__waker_give(pirn_waker waker);

#endif /* PIRN_TASK_WAKER_H */
