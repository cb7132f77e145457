/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/mpmc.h takes for granted. */
struct job {
    void *what;
};
extern int rc;
extern struct job job;
extern pirn_mpmc_receiver *receiver;
void run(const struct job *job);
