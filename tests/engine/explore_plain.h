/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_plain.h - included by the compiler's command line into
 * each instrumented source of the model build: the C library's functions are
 * not instrumented, so those that move memory are replaced.
 */
#ifndef PIRN_TESTS_ENGINE_EXPLORE_PLAIN_H
#define PIRN_TESTS_ENGINE_EXPLORE_PLAIN_H

#include <string.h>

#include "engine/explore_atomic.h"

void *explore_memcpy(void *to, const void *from, size_t size,
                     struct explore_place place);
void *explore_memset(void *to, int byte, size_t size,
                     struct explore_place place);

#ifdef __SANITIZE_THREAD__
#define memcpy(to, from, size) explore_memcpy(to, from, size, EXPLORE_PLACE)
#define memset(to, byte, size) explore_memset(to, byte, size, EXPLORE_PLACE)
#endif

#endif /* PIRN_TESTS_ENGINE_EXPLORE_PLAIN_H */
