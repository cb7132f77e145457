/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/oneshot.h takes for granted. */
struct request {
    const char *name;
    pirn_oneshot_sender *reply;
};
struct page {
    char text[100];
};
extern int rc;
extern const char *name;
extern pirn_mpsc_sender *server;
extern const pirn_channel_options page_options;
extern pirn_deadline deadline;
