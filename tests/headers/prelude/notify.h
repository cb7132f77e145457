/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/notify.h takes for granted. */
struct box {
    pirn_notify filled;
};
extern struct box *box;
extern bool box_is_full(struct box *box);
extern int box_use(struct box *box);
extern void box_fill(struct box *box);
