/* SPDX-License-Identifier: MIT */
/* tools/pirn/date.h - dates as HTTP writes them. */
#ifndef PIRN_TOOLS_DATE_H
#define PIRN_TOOLS_DATE_H

#include <stdbool.h>
#include <stdint.h>

enum { DATE_SIZE = 32 };

/* The text of the current second, made anew when the second has passed.  Not
 * for several tasks at once. */
struct date_cache {
    int64_t second; /* 0: empty */
    char text[DATE_SIZE];
};

/* "Sun, 06 Nov 1994 08:49:37 GMT" for seconds since 1970. */
void date_format(int64_t seconds, char buf[DATE_SIZE]);

/* Read that form, or one of the two older ones that HTTP still accepts. */
bool date_parse(const char *text, int64_t *seconds);

const char *date_now(struct date_cache *cache);

#endif /* PIRN_TOOLS_DATE_H */
