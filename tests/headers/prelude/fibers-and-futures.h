/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/fibers-and-futures.md take for granted. */
extern void *job;
extern int settings;
pirn_fiber_fn worker;

struct lookup {
    pirn_frame frame;
    int found;
};
void lookup_init(struct lookup *lookup, const char *key);
