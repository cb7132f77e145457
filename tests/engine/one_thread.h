/* SPDX-License-Identifier: MIT */
/* tests/engine/one_thread.h - a fiber as a whole program whose tasks all run on
 * the calling thread: in the order that the test means, and with nobody else to
 * see what it puts into pirn__sys.
 */
#ifndef PIRN_TESTS_ENGINE_ONE_THREAD_H
#define PIRN_TESTS_ENGINE_ONE_THREAD_H

#include <pirn/runtime.h>

static inline int run_on_one_thread(pirn_fiber_fn *fn, void *arg)
{
    const pirn_runtime_options options = {.workers = 0};

    return pirn_run_with(fn, arg, &options, NULL);
}

#endif /* PIRN_TESTS_ENGINE_ONE_THREAD_H */
