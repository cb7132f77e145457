/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/mpsc.h takes for granted. */
struct job {
    void *what;
};
extern int rc;
extern pirn_mpsc_receiver *receiver;
void run(const struct job *job);
