/* SPDX-License-Identifier: MIT */
/* What the fragments of pirn/stream.h take for granted. */
struct reading {
    int value;
};
void record(const struct reading *reading);
extern pirn_stream *readings;
