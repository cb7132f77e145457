/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/streams.md take for granted. */
struct reading {
    int value;
};
void record(const struct reading *reading);
void record_of(uint64_t key, const struct reading *reading);
void store(const struct reading *readings, size_t count);
