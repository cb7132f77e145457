/* SPDX-License-Identifier: MIT */
/* pirn/sync.h - everything with which tasks wait for each other, but channels.
 *
 * - pirn/mutex.h: one at a time
 * - pirn/rwlock.h: many readers or one writer
 * - pirn/sem.h: so many at a time
 * - pirn/notify.h: "look again"
 * - pirn/cond.h: a condition under a mutex
 * - pirn/barrier.h: all together
 * - pirn/once.h: the first time only
 * - pirn/atomic_waker.h: for futures of your own
 * - pirn/waker_set.h: the same, with several who wait
 *
 * What they have in common: each lies where the program puts it, takes no
 * memory, and has init and deinit (or an initialiser) that cannot fail.  Each
 * wait exists as a straight-line call with a deadline, as a future, and, where
 * there is something to take, as a try_ that never waits.  They work from
 * fibers, from stackless tasks, from plain threads without any runtime, and
 * between all of these.  A wait that is cancelled or runs out has taken
 * nothing, and what was granted to it in that moment goes to the next.  Each wait
 * costs coop budget, also one that ends at once; without any left it begins a
 * turn later.
 */
#ifndef PIRN_SYNC_H
#define PIRN_SYNC_H

#include <pirn/atomic_waker.h>
#include <pirn/barrier.h>
#include <pirn/cond.h>
#include <pirn/mutex.h>
#include <pirn/notify.h>
#include <pirn/once.h>
#include <pirn/rwlock.h>
#include <pirn/sem.h>
#include <pirn/waker_set.h>

#endif /* PIRN_SYNC_H */
