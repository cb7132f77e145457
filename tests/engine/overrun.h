/* SPDX-License-Identifier: MIT */
/* tests/engine/overrun.h - a recursion that overruns the stack it is called on.
 */
#ifndef PIRN_TESTS_ENGINE_OVERRUN_H
#define PIRN_TESTS_ENGINE_OVERRUN_H

#include <stdint.h>

/* ASan would put the blocks elsewhere. */
__attribute__((noinline, no_sanitize_address)) static int
overrun(volatile int *depth)
{
    volatile char block[512];

    block[0] = (char)*depth;
    if (++*depth == INT32_MAX)
        return 0;
    return overrun(depth) + block[0];
}

#endif /* PIRN_TESTS_ENGINE_OVERRUN_H */
