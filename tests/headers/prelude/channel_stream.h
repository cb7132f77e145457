/* SPDX-License-Identifier: MIT */
/* What the fragments of pirn/channel_stream.h take for granted. */
struct job {
    int number;
} job;
void run(const struct job *job);
extern pirn_mpsc_receiver *receiver;
extern int rc;
