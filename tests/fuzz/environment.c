/* SPDX-License-Identifier: MIT */
/* tests/fuzz/environment.c - the variables of a runtime: any text is taken within
 * the bounds or refused with the variable's name. */
#include <pirn/runtime.h>

#include <errno.h>

#include "fuzz/fuzz.h"

static const char *const variables[] = {
    "PIRN_STACK_SIZE", "PIRN_POOL",       "PIRN_BLOCKING_THREADS",
    "PIRN_WORKERS",    "PIRN_SEED",       "PIRN_SHARED_INTERVAL",
    "PIRN_LIFO",       "PIRN_HISTOGRAMS", "PIRN_EVENT_INTERVAL"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t count = sizeof variables / sizeof variables[0];
    const pirn_runtime_options options = {.workers = PIRN_WORKERS_AUTO};
    const char *name;
    const char *field = NULL;
    char *text;
    int rc;

    if (size == 0)
        return 0;
    name = variables[data[0] % count];
    text = fuzz_text(data + 1, size - 1);
    setenv(name, text, 1);
    rc = pirn_runtime_check(&options, &field);
    FUZZ_EXPECT(rc == 0 || rc == -EINVAL);
    FUZZ_EXPECT(rc == 0 || (field != NULL && strcmp(field, name) == 0));
    unsetenv(name);
    free(text);
    return 0;
}
