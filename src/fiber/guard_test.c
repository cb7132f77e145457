/* SPDX-License-Identifier: MIT */
/* src/fiber/guard_test.c - which guards work here, on systems that lie or
 * refuse: each test installs a system table of its own, so that it is probed
 * anew.  That guards do guard is in stack_test.c. */
#include "fiber/guard.h"

#include <errno.h>

#include "engine/test.h"
#include "sys/sys.h"

static struct pirn__sys table;
static int maps_out;
static bool refuses_map, refuses_eventfd;

static int counted_map(size_t size, void **out)
{
    int rc = refuses_map ? -ENOMEM : pirn__sys_linux.map(size, out);

    maps_out += rc == 0;
    return rc;
}

static int counted_unmap(void *base, size_t size)
{
    maps_out--;
    return pirn__sys_linux.unmap(base, size);
}

static int some_eventfd(void)
{
    return refuses_eventfd ? -EMFILE : pirn__sys_linux.eventfd();
}

static int pretend_guard_install(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

static int refuse_guard_install(void *base, size_t size)
{
    (void)base;
    (void)size;
    return -EINVAL;
}

static int no_memory(void *base, size_t size)
{
    (void)base;
    (void)size;
    return -ENOMEM;
}

static int hidden_limit(void)
{
    return -ENOENT;
}

/* What the real system answers, asked behind the library's back. */
static enum pirn__guard_kind real_kind(void)
{
    pirn__sys = &pirn__sys_linux;
    return pirn__guard_probe(pirn__sys->page_size());
}

static void begin(void)
{
    table = pirn__sys_linux;
    table.map = counted_map;
    table.unmap = counted_unmap;
    table.eventfd = some_eventfd;
    refuses_map = refuses_eventfd = false;
    pirn__sys = &table;
}

static void end(void)
{
    EXPECT_EQ(0, maps_out);
    pirn__sys = &pirn__sys_linux;
}

static enum pirn__guard_kind probe(void)
{
    return pirn__guard_probe(pirn__sys->page_size());
}

/* Goal: a kernel that accepts the request and does nothing is seen through.
 * Method: guard_install that only says yes, as emulators do. */
TEST(guard_probe_believes_effects_only)
{
    (void)real_kind(); /* what is remembered now is not this table's answer */
    begin();
    table.guard_install = pretend_guard_install;
    EXPECT_EQ(PIRN__GUARD_PROTECT, probe());
    end();
}

/* Goal: a kernel without guard regions is no error.
 * Method: guard_install that says -EINVAL. */
TEST(guard_probe_takes_no_for_an_answer)
{
    (void)real_kind();
    begin();
    table.guard_install = refuse_guard_install;
    EXPECT_EQ(PIRN__GUARD_PROTECT, probe());
    end();
}

/* Goal: a probe that could not be made is repeated.
 * Method: the mapping, then the descriptor, is refused once. */
TEST(guard_probe_failure_is_not_remembered)
{
    enum pirn__guard_kind expected = real_kind();

    begin();
    refuses_map = true;
    EXPECT_EQ(PIRN__GUARD_PROTECT, probe());
    refuses_map = false;
    refuses_eventfd = true;
    EXPECT_EQ(PIRN__GUARD_PROTECT, probe());
    refuses_eventfd = false;
    EXPECT_EQ(expected, probe());
    refuses_map = true; /* the answer is remembered now */
    EXPECT_EQ(expected, probe());
    end();
}

/* Goal: the limit leaves mappings to others, and is there when the system
 * hides its own.
 * Method: the real one, and a system that says nothing. */
TEST(guard_limit_is_below_half_of_the_mappings)
{
    size_t limit = pirn__guard_limit();

    EXPECT_LE(1, limit);
    EXPECT_LE(2 * limit, pirn__sys->mapping_limit());
    begin();
    table.mapping_limit = hidden_limit;
    EXPECT_EQ(29488, pirn__guard_limit());
    end();
}

/* Goal: the guard that was refused is not counted, the one that was put is.
 * Method: a limit of one. */
TEST(guard_install_counts_what_it_protects)
{
    const size_t size = pirn__sys->page_size();
    void *page;

    begin();
    REQUIRE(pirn__sys->map(size, &page) == 0);
    table.protect_none = no_memory;
    EXPECT_EQ(-ENOMEM,
              pirn__guard_install(PIRN__GUARD_PROTECT, 1, page, size));
    table.protect_none = pirn__sys_linux.protect_none;
    EXPECT_EQ(PIRN__GUARD_PROTECT,
              pirn__guard_install(PIRN__GUARD_PROTECT, 1, page, size));
    EXPECT_EQ(-ENOMEM,
              pirn__guard_install(PIRN__GUARD_PROTECT, 1, page, size));
    pirn__guard_forget(1);
    table.guard_install = no_memory;
    EXPECT_EQ(-ENOMEM,
              pirn__guard_install(PIRN__GUARD_REGION, 1, page, size));
    table.guard_install = refuse_guard_install;
    EXPECT_EQ(PIRN__GUARD_PROTECT,
              pirn__guard_install(PIRN__GUARD_REGION, 1, page, size));
    pirn__guard_forget(1);
    EXPECT_EQ(0, pirn__sys->unmap(page, size));
    end();
}
