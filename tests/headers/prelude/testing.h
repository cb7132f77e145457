/* SPDX-License-Identifier: MIT */
/* tests/headers/prelude/testing.h - what the fragment of pirn/testing.h takes for
 * granted. */
#include <pirn/testing.h>

struct transfer {
    int from;
    int to;
};

static struct transfer t;

int move_money(void *arg);
void fail(const char *problem);
