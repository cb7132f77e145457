/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/barrier.h takes for granted. */
struct phase {
    pirn_barrier barrier;
};
extern struct phase *phase;
extern int rc;
extern void publish(struct phase *phase);
