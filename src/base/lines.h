/* SPDX-License-Identifier: MIT */
/* src/base/lines.h - a text of several lines in the caller's buffer, for those
 * who are told how long it would have been, as by snprintf(). */
#ifndef PIRN_BASE_LINES_H
#define PIRN_BASE_LINES_H

#include <stddef.h>

struct pirn__lines {
    char *buf; /* may be NULL if size is 0 */
    size_t size;
    size_t len; /* of the whole text, also of what had no room */
};

/* Append; what fits ends with a NUL. */
__attribute__((format(printf, 2, 3))) void
pirn__lines_add(struct pirn__lines *lines, const char *format, ...);

#endif /* PIRN_BASE_LINES_H */
