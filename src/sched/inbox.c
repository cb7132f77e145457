/* SPDX-License-Identifier: MIT */
/* src/sched/inbox.c - see inbox.h. */
#include "sched/inbox.h"

void pirn__inbox_push(struct pirn__inbox *inbox, pirn_slink *link)
{
    /* relaxed: a guess that the swap below confirms. */
    pirn_slink *top = pirn__load(&inbox->top, relaxed);

    do {
        link->next_ = top;
        /* seq_cst [inbox.top]: publishes the task to whoever takes, and comes
         * before the caller's look at the owner's sleep, which the owner
         * announces before it looks here. */
    } while (!pirn__cas_weak(&inbox->top, &top, link, seq_cst, relaxed));
}

bool pirn__inbox_take(struct pirn__inbox *inbox, struct pirn__queue *queue)
{
    struct pirn__queue taken = {0};
    pirn_slink *link;

    /* relaxed: a hint that saves the swap; a push that it misses is found by
     * the look before the next sleep. */
    if (pirn__load(&inbox->top, relaxed) == NULL)
        return false;
    /* acquire [inbox.top]: sees the tasks as their pushers left them. */
    link = pirn__swap(&inbox->top, NULL, acquire);
    if (link == NULL)
        return false;
    /* The newest is on top: reverse. */
    taken.tail = link;
    while (link != NULL) {
        pirn_slink *older = link->next_;

        link->next_ = taken.head;
        taken.head = link;
        link = older;
    }
    pirn__queue_splice(queue, &taken);
    return true;
}
