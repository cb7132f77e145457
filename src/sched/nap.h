/* SPDX-License-Identifier: MIT */
/* src/sched/nap.h - a worker whose hunts are not worth it naps between them.
 *
 * To wake a worker and to move tasks to it costs more than a few short tasks are
 * worth, above all to the one they are taken from.  How long tasks are is known
 * only afterwards: so a worker whose last hunt was not worth it does not count as
 * a sleeper for a moment, longer after each such hunt, and then looks again by
 * itself.
 *
 * A hunt begins when it is woken to search, or has stolen something; it ends when
 * it would search again, or has searched in vain.
 *
 * What other workers have spawned, woken or taken over waits for the end of a
 * nap; nothing else does.  What comes from outside ends it: its waker looks for nappers after
 * the push, and who naps looks for such work after it has said so.  One worker at
 * least is awake or can be woken meanwhile.  An idle runtime ends its naps: after
 * one there is no other before the next hunt.
 */
#ifndef PIRN_SCHED_NAP_H
#define PIRN_SCHED_NAP_H

#include "sched/worker.h"

/* Owner, all of them. */

/* It has stolen so many tasks; 0: it was woken. */
void pirn__nap_begin_hunt(struct pirn__worker *worker, uint32_t tasks);

/* What it was woken for has come from outside. */
void pirn__nap_forget_wake(struct pirn__worker *worker);

/* The hunt is over: how long to nap before the next one; 0: not at all. */
uint64_t pirn__nap_plan(struct pirn__worker *worker);

/* Nap as a sleep; false, at once, where all others nap or sleep.  `searching`
 * ends. */
bool pirn__nap_try(struct pirn__worker *worker, bool searching,
                   uint64_t nap_ns);

#endif /* PIRN_SCHED_NAP_H */
