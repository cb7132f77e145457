/* SPDX-License-Identifier: MIT */
/* tests/fuzz/addr.c - pirn_addr_parse(): what it takes, it also writes. */
#include <pirn/net.h>

#include <errno.h>

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char again[PIRN_ADDR_SIZE];
    pirn_addr addr;
    pirn_addr copy;
    int rc = pirn_addr_parse(text, &addr);

    FUZZ_EXPECT(rc == 0 || rc == -EINVAL);
    if (rc == 0) {
        pirn_addr_format(&addr, again, sizeof again);
        FUZZ_EXPECT(pirn_addr_parse(again, &copy) == 0);
        FUZZ_EXPECT(pirn_addr_equal(&addr, &copy));
    }
    free(text);
    return 0;
}
