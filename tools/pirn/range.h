/* SPDX-License-Identifier: MIT */
/* tools/pirn/range.h - the Range header of RFC 9110, as far as one range. */
#ifndef PIRN_TOOLS_RANGE_H
#define PIRN_TOOLS_RANGE_H

#include <stdint.h>

enum range_kind {
    RANGE_WHOLE,        /* none, several, another unit or nonsense: send all */
    RANGE_PART,         /* send a part */
    RANGE_UNSATISFIABLE /* it lies behind the end */
};

struct range {
    uint64_t offset;
    uint64_t count;
};

/* What "bytes=..." asks of a file of `size` bytes. */
enum range_kind range_parse(const char *text, uint64_t size, struct range *out);

#endif /* PIRN_TOOLS_RANGE_H */
