/* SPDX-License-Identifier: MIT */
/* src/sched/inbox.h - tasks handed over by other threads.
 *
 * A push-only stack that is taken whole by one swap (R. K. Treiber, "Systems
 * Programming: Coping with Parallelism", 1986, without its pop and so without
 * its ABA problem).  Any thread pushes; whoever takes gets everything at once,
 * so a producer that was preempted in the middle of a push holds nobody up.
 */
#ifndef PIRN_SCHED_INBOX_H
#define PIRN_SCHED_INBOX_H

#include "base/atomic.h"
#include "base/list.h"

struct pirn__inbox {
    PIRN_ATOMIC(pirn_slink *) top; /* the newest */
};

/* Put `link` in; it belongs to the inbox until it is taken.  The push is
 * seq_cst: after it, a look at whether the owner sleeps is reliable. */
void pirn__inbox_push(struct pirn__inbox *inbox, pirn_slink *link);

/* Append everything to `queue`, oldest first; false if there was nothing. */
bool pirn__inbox_take(struct pirn__inbox *inbox, struct pirn__queue *queue);

/* True if something is in; reliable after the owner has announced its sleep
 * with a seq_cst store. */
static inline bool pirn__inbox_has_some(struct pirn__inbox *inbox)
{
    /* seq_cst [inbox.top]: after the owner's announcement that it sleeps. */
    return pirn__load(&inbox->top, seq_cst) != NULL;
}

#endif /* PIRN_SCHED_INBOX_H */
