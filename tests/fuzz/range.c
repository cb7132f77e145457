/* SPDX-License-Identifier: MIT */
/* tests/fuzz/range.c - the Range header of `pirn serve`; a part lies within the
 * file.  The first eight bytes are the file's size. */
#include "../../tools/pirn/range.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct range part = {0};
    uint64_t file_size;
    char *text;

    if (size < sizeof file_size)
        return 0;
    memcpy(&file_size, data, sizeof file_size);
    file_size &= INT64_MAX; /* as files have it */
    text = fuzz_text(data + sizeof file_size, size - sizeof file_size);
    if (range_parse(text, file_size, &part) == RANGE_PART) {
        FUZZ_EXPECT(part.count > 0);
        FUZZ_EXPECT(part.offset < file_size);
        FUZZ_EXPECT(part.count <= file_size - part.offset);
    }
    free(text);
    return 0;
}
