/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/promise.h takes for granted. */
extern int rc;
extern int answer;
extern pirn_promise *promise;
