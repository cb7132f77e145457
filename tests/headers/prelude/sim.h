/* SPDX-License-Identifier: MIT */
/* tests/headers/prelude/sim.h - what the fragment of pirn/sim.h takes for
 * granted. */
#include <pirn/sim.h>

struct order {
    int charged;
};

int place_order(void *arg);
void fail(const char *problem);
