/* SPDX-License-Identifier: MIT */
/* tests/stress/actor.h - users who act from inside their wakers.
 *
 * A waker is copied, woken and given up without a lock, so it may do anything
 * that does not wait.  Here one in three acts: act() of the program that
 * includes this, which does something to any of its users.
 */
#ifndef PIRN_TESTS_STRESS_ACTOR_H
#define PIRN_TESTS_STRESS_ACTOR_H

#include <pirn/future.h>

#include "base/prng.h"

enum { ACTOR_DEPTH = 4 /* of wakers inside wakers */ };

struct actor {
    bool in_poll; /* or in a drop: not to be touched */
    bool woken;
    int wakers; /* copies that are held somewhere */
};

static struct pirn__prng prng;
static bool wakers_act;
static int depth;

static uint32_t dice(size_t sides)
{
    return pirn__prng_below(&prng, (uint32_t)sides);
}

static void act(void);

static void act_perhaps(void)
{
    if (!wakers_act || depth == ACTOR_DEPTH || dice(3) != 0)
        return;
    depth++;
    act();
    depth--;
}

static pirn_waker actor_clone(const pirn_waker *self)
{
    ((struct actor *)self->data)->wakers++;
    act_perhaps();
    return *self;
}

static void actor_wake_by_ref(const pirn_waker *self)
{
    ((struct actor *)self->data)->woken = true;
    act_perhaps();
}

static void actor_drop(pirn_waker self)
{
    ((struct actor *)self.data)->wakers--;
    act_perhaps();
}

static void actor_wake(pirn_waker self)
{
    actor_wake_by_ref(&self);
    actor_drop(self);
}

static const pirn_waker_ops actor_ops = {
    .clone = actor_clone,
    .wake = actor_wake,
    .wake_by_ref = actor_wake_by_ref,
    .drop = actor_drop,
};

#endif /* PIRN_TESTS_STRESS_ACTOR_H */
