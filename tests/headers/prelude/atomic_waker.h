/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/atomic_waker.h takes for granted. */
struct done {
    pirn_future future;
    pirn_atomic_waker waker;
};
extern struct done *done;
extern bool done_is_set(struct done *done);
extern void done_set(struct done *done);
