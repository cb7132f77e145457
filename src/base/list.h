/* SPDX-License-Identifier: MIT */
/* src/base/list.h - intrusive lists.
 *
 * pirn__list: circular, doubly linked, O(1) removal from the middle.
 * pirn__queue: singly linked FIFO with a tail pointer; its links are one word.
 *
 * Neither allocates, locks or owns what it links.  The link types are public
 * because they are parts of caller-placed structs; see pirn/link.h.
 */
#ifndef PIRN_BASE_LIST_H
#define PIRN_BASE_LIST_H

#include <pirn/link.h>

static inline void pirn__list_init(pirn_link *head)
{
    head->next_ = head;
    head->prev_ = head;
}

static inline bool pirn__list_empty(const pirn_link *head)
{
    return head->next_ == head;
}

/* True if the link is in a list; valid only for links that were initialised by
 * pirn__list_init() and are removed by pirn__list_remove(). */
static inline bool pirn__list_linked(const pirn_link *link)
{
    return link->next_ != link;
}

static inline void pirn__list_push_tail(pirn_link *head, pirn_link *link)
{
    link->prev_ = head->prev_;
    link->next_ = head;
    head->prev_->next_ = link;
    head->prev_ = link;
}

static inline void pirn__list_push_head(pirn_link *head, pirn_link *link)
{
    pirn__list_push_tail(head->next_, link);
}

/* Unlink and leave the link as a list of its own. */
static inline void pirn__list_remove(pirn_link *link)
{
    link->prev_->next_ = link->next_;
    link->next_->prev_ = link->prev_;
    pirn__list_init(link);
}

/* The first link, or NULL. */
static inline pirn_link *pirn__list_first(const pirn_link *head)
{
    return pirn__list_empty(head) ? NULL : head->next_;
}

/* Unlink and return the first link, or NULL. */
static inline pirn_link *pirn__list_pop_head(pirn_link *head)
{
    pirn_link *link = pirn__list_first(head);

    if (link != NULL)
        pirn__list_remove(link);
    return link;
}

/* Move everything from `source` behind the tail of `target`. */
static inline void pirn__list_splice_tail(pirn_link *target, pirn_link *source)
{
    if (pirn__list_empty(source))
        return;
    source->next_->prev_ = target->prev_;
    target->prev_->next_ = source->next_;
    source->prev_->next_ = target;
    target->prev_ = source->prev_;
    pirn__list_init(source);
}

/* A FIFO of single links; the owner of the queue is its only user. */
struct pirn__queue {
    pirn_slink *head;
    pirn_slink *tail; /* meaningless while head is NULL */
};

static inline bool pirn__queue_empty(const struct pirn__queue *queue)
{
    return queue->head == NULL;
}

static inline void pirn__queue_push(struct pirn__queue *queue, pirn_slink *link)
{
    link->next_ = NULL;
    if (queue->head == NULL)
        queue->head = link;
    else
        queue->tail->next_ = link;
    queue->tail = link;
}

static inline pirn_slink *pirn__queue_pop(struct pirn__queue *queue)
{
    pirn_slink *link = queue->head;

    if (link != NULL)
        queue->head = link->next_;
    return link;
}

/* Append all of `source` to `target`, leaving `source` empty. */
static inline void pirn__queue_splice(struct pirn__queue *target,
                                      struct pirn__queue *source)
{
    if (source->head == NULL)
        return;
    if (target->head == NULL)
        target->head = source->head;
    else
        target->tail->next_ = source->head;
    target->tail = source->tail;
    source->head = NULL;
}

#endif /* PIRN_BASE_LIST_H */
