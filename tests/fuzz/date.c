/* SPDX-License-Identifier: MIT */
/* tests/fuzz/date.c - the dates of HTTP: what is read and written once more is the
 * same second. */
#include "../../tools/pirn/date.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char again[DATE_SIZE];
    int64_t seconds = 0;
    int64_t copy = 0;

    if (date_parse(text, &seconds)) {
        date_format(seconds, again);
        FUZZ_EXPECT(date_parse(again, &copy));
        FUZZ_EXPECT(copy == seconds);
    }
    free(text);
    return 0;
}
