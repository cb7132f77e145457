/* SPDX-License-Identifier: MIT */
/* src/base/version.c - the version of the library that runs, which need not be
 * that of the headers a program was built with. */
#include <pirn/base.h>

const char *pirn_version(void)
{
    return PIRN__STRING_OF(PIRN_VERSION_MAJOR) "." PIRN__STRING_OF(
        PIRN_VERSION_MINOR) "." PIRN__STRING_OF(PIRN_VERSION_PATCH);
}
