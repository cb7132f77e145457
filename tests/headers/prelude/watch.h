/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/watch.h takes for granted. */
struct config {
    int level;
};
extern int rc;
extern pirn_watch_receiver *receiver;
void apply(const struct config *config);
