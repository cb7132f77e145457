/* SPDX-License-Identifier: MIT */
/* tools/pirn/date.c - dates as HTTP writes them.
 *
 * The names of days and months come from the C locale, which the command never
 * leaves. */
#define _GNU_SOURCE

#include "date.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

void date_format(int64_t seconds, char buf[DATE_SIZE])
{
    time_t time = (time_t)seconds;
    struct tm parts;

    if (gmtime_r(&time, &parts) == NULL ||
        strftime(buf, DATE_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &parts) == 0)
        buf[0] = '\0';
}

bool date_parse(const char *text, int64_t *seconds)
{
    static const char *const forms[] = {
        "%a, %d %b %Y %H:%M:%S GMT",
        "%A, %d-%b-%y %H:%M:%S GMT",
        "%a %b %e %H:%M:%S %Y",
    };

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct tm parts;

        memset(&parts, 0, sizeof parts);
        const char *end = strptime(text, forms[i], &parts);
        if (end != NULL && *end == '\0') {
            *seconds = (int64_t)timegm(&parts);
            return true;
        }
    }
    return false;
}

const char *date_now(struct date_cache *cache)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (cache->second != (int64_t)now.tv_sec) {
        cache->second = (int64_t)now.tv_sec;
        date_format(cache->second, cache->text);
    }
    return cache->text;
}
