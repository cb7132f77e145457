/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/channel.h takes for granted. */
struct job {
    void *what;
};
extern int rc;
