/* SPDX-License-Identifier: MIT */
/* src/reactor/line.c - see line.h. */
#include "reactor/line.h"

/* After every change. */
static void publish_length(struct pirn__line *line)
{
    uint32_t length = line->woken + !pirn__list_empty(&line->waiters);

    /* relaxed: a hint for pirn__line_is_busy(). */
    pirn__store(&line->length, length, relaxed);
}

void pirn__line_init(struct pirn__line *line)
{
    pirn__list_init(&line->waiters);
    line->woken = 0;
    pirn__init(&line->length, 0);
}

bool pirn__line_is_turn_of(struct pirn__line *line, pirn_io_waiter *waiter)
{
    uint8_t state = pirn__waiter_state(waiter);

    if (state == PIRN__WAITER_WOKEN)
        return true;
    if (line->woken > 0)
        return false;
    if (state == PIRN__WAITER_OUT)
        return pirn__list_empty(&line->waiters);
    if (pirn__list_first(&line->waiters) != &waiter->link_)
        return false;
    pirn__list_remove(&waiter->link_);
    pirn__waiter_set_state(waiter, PIRN__WAITER_WOKEN);
    line->woken++;
    publish_length(line);
    return true;
}

void pirn__line_enter(struct pirn__line *line, pirn_io_waiter *waiter)
{
    uint8_t state = pirn__waiter_state(waiter);

    if (state == PIRN__WAITER_QUEUED)
        return;
    if (state == PIRN__WAITER_WOKEN) {
        line->woken--;
        pirn__list_push_head(&line->waiters, &waiter->link_);
    } else {
        pirn__list_push_tail(&line->waiters, &waiter->link_);
    }
    pirn__waiter_set_state(waiter, PIRN__WAITER_QUEUED);
    publish_length(line);
}

void pirn__line_leave(struct pirn__line *line, pirn_io_waiter *waiter)
{
    uint8_t state = pirn__waiter_state(waiter);

    if (state == PIRN__WAITER_QUEUED)
        pirn__list_remove(&waiter->link_);
    else if (state == PIRN__WAITER_WOKEN)
        line->woken--;
    pirn__waiter_set_state(waiter, PIRN__WAITER_OUT);
    publish_length(line);
}

pirn_waker pirn__line_call_up(struct pirn__line *line)
{
    pirn_io_waiter *waiter = PIRN_CONTAINER_OF(
        pirn__list_pop_head(&line->waiters), pirn_io_waiter, link_);

    pirn__waiter_set_state(waiter, PIRN__WAITER_WOKEN);
    line->woken++;
    publish_length(line);
    return pirn_waker_take(&waiter->waker_);
}

void pirn__line_empty(struct pirn__line *line, pirn_link *out)
{
    pirn__list_splice_tail(out, &line->waiters);
    publish_length(line);
}
