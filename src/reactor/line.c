/* SPDX-License-Identifier: MIT */
/* src/reactor/line.c - see line.h. */
#include "reactor/line.h"

static pirn_io_waiter *waiter_of(pirn_link *link)
{
    return PIRN_CONTAINER_OF(link, pirn_io_waiter, link_);
}

/* After every change. */
static void publish_next(struct pirn__line *line)
{
    pirn_io_waiter *next = line->woken;

    if (next == NULL && !pirn__list_empty(&line->waiters))
        next = waiter_of(line->waiters.next_);
    /* relaxed: a hint for pirn__line_is_busy() and pirn__line_prefetch(). */
    pirn__store(&line->next, next, relaxed);
}

void pirn__line_init(struct pirn__line *line)
{
    pirn__list_init(&line->waiters);
    line->woken = NULL;
    pirn__init(&line->next, NULL);
}

bool pirn__line_is_turn_of(struct pirn__line *line, pirn_io_waiter *waiter)
{
    uint8_t state = pirn__waiter_state(waiter);

    if (state == PIRN__WAITER_WOKEN)
        return true;
    if (line->woken != NULL)
        return false;
    if (state == PIRN__WAITER_OUT)
        return pirn__list_empty(&line->waiters);
    if (pirn__list_first(&line->waiters) != &waiter->link_)
        return false;
    pirn__list_remove(&waiter->link_);
    pirn__waiter_set_state(waiter, PIRN__WAITER_WOKEN);
    line->woken = waiter;
    publish_next(line);
    return true;
}

void pirn__line_enter(struct pirn__line *line, pirn_io_waiter *waiter)
{
    uint8_t state = pirn__waiter_state(waiter);

    if (state == PIRN__WAITER_QUEUED)
        return;
    if (state == PIRN__WAITER_WOKEN) {
        line->woken = NULL;
        pirn__list_push_head(&line->waiters, &waiter->link_);
    } else {
        pirn__list_push_tail(&line->waiters, &waiter->link_);
    }
    pirn__waiter_set_state(waiter, PIRN__WAITER_QUEUED);
    publish_next(line);
}

void pirn__line_leave(struct pirn__line *line, pirn_io_waiter *waiter)
{
    uint8_t state = pirn__waiter_state(waiter);

    if (state == PIRN__WAITER_QUEUED)
        pirn__list_remove(&waiter->link_);
    else if (state == PIRN__WAITER_WOKEN)
        line->woken = NULL;
    pirn__waiter_set_state(waiter, PIRN__WAITER_OUT);
    publish_next(line);
}

pirn_waker pirn__line_call_up(struct pirn__line *line)
{
    pirn_io_waiter *waiter = waiter_of(line->waiters.next_);

    pirn__list_remove(&waiter->link_);
    pirn__waiter_set_state(waiter, PIRN__WAITER_WOKEN);
    line->woken = waiter;
    publish_next(line);
    return pirn_waker_take(&waiter->waker_);
}

void pirn__line_empty(struct pirn__line *line, pirn_link *out)
{
    pirn__list_splice_tail(out, &line->waiters);
    publish_next(line);
}
