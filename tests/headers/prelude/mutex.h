/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/mutex.h takes for granted. */
extern int rc;
extern int64_t amount;
extern struct account *account;
