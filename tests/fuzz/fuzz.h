/* SPDX-License-Identifier: MIT */
/* tests/fuzz/fuzz.h - what the fuzzers share.
 *
 * Each is one function that is given some bytes and makes of them what a caller of
 * the parser could.  In the preset `fuzz` libFuzzer invents the bytes; elsewhere
 * replay.c gives it the files of the corpus.
 */
#ifndef PIRN_TESTS_FUZZ_FUZZ_H
#define PIRN_TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, \
                    #condition); \
            abort(); \
        } \
    } while (0)

/* A string of just this size, so that a sanitizer sees a byte too much. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL)
        abort();
    if (size != 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif /* PIRN_TESTS_FUZZ_FUZZ_H */
