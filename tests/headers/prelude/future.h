/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/future.h takes for granted. */
struct once {
    pirn_future future;
    bool asked;
};
