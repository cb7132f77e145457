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

#endif /* PIRN_TASK_WAKER_H */
