/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/cond.h takes for granted. */
struct queue {
    pirn_mutex mutex;
    pirn_cond filled;
    int length;
};
extern struct queue *queue;
extern int rc;
extern pirn_deadline deadline;
extern void take(struct queue *queue);
