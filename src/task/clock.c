/* SPDX-License-Identifier: MIT */
/* src/task/clock.c - the clock and deadlines of pirn/time.h.
 *
 * The time is that of the current runtime, which may have its clock paused.
 */
#include <pirn/time.h>

#include "base/checked.h"
#include "sys/sys.h"
#include "task/await.h"
#include "task/home.h"
#include "task/local.h"

uint64_t pirn_now_ns(void)
{
    struct pirn__home *home = pirn__local_home();

    return home != NULL ? home->ops->now(home) : pirn__sys->clock_ns();
}

pirn_deadline pirn_after_ns(uint64_t ns)
{
    uint64_t when;

    if (ns == UINT64_MAX)
        return PIRN_NEVER;
    when = pirn__saturating_add(pirn_now_ns(), ns);
    return (pirn_deadline){when == UINT64_MAX ? UINT64_MAX - 1 : when};
}

/* `count` units of `unit_ns` from now; the far end stays short of for ever. */
static pirn_deadline after_units(uint64_t count, uint64_t unit_ns)
{
    uint64_t ns = pirn__saturating_mul(count, unit_ns);

    if (count == UINT64_MAX)
        return PIRN_NEVER;
    return pirn_after_ns(ns == UINT64_MAX ? UINT64_MAX - 1 : ns);
}

pirn_deadline pirn_after_us(uint64_t us)
{
    return after_units(us, 1000);
}

pirn_deadline pirn_after_ms(uint64_t ms)
{
    return after_units(ms, 1000000);
}

pirn_deadline pirn_deadline_min(pirn_deadline a, pirn_deadline b)
{
    return a.ns < b.ns ? a : b;
}

bool pirn_deadline_expired(pirn_deadline deadline)
{
    if (deadline.ns == UINT64_MAX)
        return false;
    return deadline.ns == 0 || pirn_now_ns() >= deadline.ns;
}

pirn_deadline pirn__deadline_to_system(pirn_deadline deadline)
{
    struct pirn__home *home = pirn__local_home();
    uint64_t now;

    if (home == NULL || deadline.ns == 0 || deadline.ns == UINT64_MAX)
        return deadline;
    now = home->ops->now(home);
    if (deadline.ns <= now)
        return PIRN_EXPIRED;
    return (pirn_deadline){
        pirn__saturating_add(pirn__sys->clock_ns(), deadline.ns - now)};
}
