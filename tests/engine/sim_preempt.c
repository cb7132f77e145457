/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_preempt.c - threads that lose their processor anywhere.
 *
 * By itself the simulator switches threads where they call the system.  In the
 * library that tests/sim compiles with -finstrument-functions there is a call at
 * the beginning and at the end of each function, inlined ones too: so also before
 * and after a lock, an atomic step, a look at a list.  Now and then such a call
 * is a pause.  A program that is linked with the library as it is has none.
 */
#include "engine/sim_internal.h"

enum {
    /* Of so many calls about one is a pause, times a power of two. */
    SELDOM = 32,
    OFTEN = 1,
    DOUBLINGS = 8
};

static struct {
    uint32_t rate;
    uint32_t left; /* calls until the next pause; 0: there is none */
} preempt;

static void begin(uint32_t least)
{
    preempt.rate = least << sim_below(DOUBLINGS);
    preempt.left = preempt.rate;
}

void sim_preempt_begin(void)
{
    begin(SELDOM);
}

void sim_preempt_often(void)
{
    begin(OFTEN);
}

void sim_preempt_end(void)
{
    preempt.left = 0;
}

static void pass(void)
{
    if (preempt.left == 0 || --preempt.left > 0)
        return;
    preempt.left = 1 + sim_below(2 * preempt.rate);
    sim_pause("inside", 0);
}

/* Names and arguments are the compiler's. */
void __cyg_profile_func_enter(void *fn, void *site);
void __cyg_profile_func_exit(void *fn, void *site);

void __cyg_profile_func_enter(void *fn, void *site)
{
    (void)fn;
    (void)site;
    pass();
}

void __cyg_profile_func_exit(void *fn, void *site)
{
    (void)fn;
    (void)site;
    pass();
}
