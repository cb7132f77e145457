/* SPDX-License-Identifier: MIT */
/* src/reactor/line.c - see line.h. */
#include "reactor/line.h"

_Static_assert((int)PIRN__SLAB_UNIT > (int)PIRN__FRONT_FLAGS,
               "the flags of a front stand below the address of a task");

/* After every change. */
static void publish_list(struct pirn__line *line)
{
    bool used = line->woken > 0 || !pirn__list_empty(&line->waiters);
    bool listed = (pirn__front_look(line->front) & PIRN__FRONT_LISTED) != 0;

    if (used == listed)
        return;
    if (used)
        /* seq_cst [line.front]: see line.h. */
        pirn__or(line->front, PIRN__FRONT_LISTED, seq_cst);
    else
        /* seq_cst [line.front]: see line.h. */
        pirn__and(line->front, ~(uintptr_t)PIRN__FRONT_LISTED, seq_cst);
}

void pirn__line_init(struct pirn__line *line, pirn__front *front)
{
    line->front = front;
    pirn__list_init(&line->waiters);
    line->woken = 0;
    pirn__init(front, 0);
}

bool pirn__line_is_turn_of(struct pirn__line *line, pirn_io_waiter *waiter)
{
    uint8_t state = pirn__waiter_state(waiter);

    if (state == PIRN__WAITER_WOKEN)
        return true;
    if (line->woken > 0 || pirn__front_task(pirn__front_look(line->front)) != NULL)
        return false;
    if (state == PIRN__WAITER_OUT)
        return pirn__list_empty(&line->waiters);
    if (pirn__list_first(&line->waiters) != &waiter->link_)
        return false;
    pirn__list_remove(&waiter->link_);
    pirn__waiter_set_state(waiter, PIRN__WAITER_WOKEN);
    line->woken++;
    publish_list(line);
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
    publish_list(line);
}

void pirn__line_return(struct pirn__line *line, pirn_io_waiter *waiter)
{
    pirn__waiter_set_state(waiter, PIRN__WAITER_WOKEN);
    line->woken++;
    publish_list(line);
}

void pirn__line_leave(struct pirn__line *line, pirn_io_waiter *waiter)
{
    uint8_t state = pirn__waiter_state(waiter);

    if (state == PIRN__WAITER_QUEUED)
        pirn__list_remove(&waiter->link_);
    else if (state == PIRN__WAITER_WOKEN)
        line->woken--;
    pirn__waiter_set_state(waiter, PIRN__WAITER_OUT);
    publish_list(line);
}

pirn_waker pirn__line_call_up(struct pirn__line *line)
{
    pirn_io_waiter *waiter = PIRN_CONTAINER_OF(
        pirn__list_pop_head(&line->waiters), pirn_io_waiter, link_);

    pirn__waiter_set_state(waiter, PIRN__WAITER_WOKEN);
    line->woken++;
    publish_list(line);
    return pirn_waker_take(&waiter->waker_);
}

void pirn__line_empty(struct pirn__line *line, pirn_link *out)
{
    pirn__list_splice_tail(out, &line->waiters);
    publish_list(line);
}
