/* SPDX-License-Identifier: MIT */
/* src/fiber/guard.c - the pages below a stack that nobody may touch. */
#include "fiber/guard.h"

#include <errno.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "sys/sys.h"

enum {
    /* Linux's default, for systems that hide theirs. */
    MAPPINGS_DEFAULT = 65530,
    /* Guards per hundred mappings, at two mappings each: a tenth is left to
     * the rest of the process. */
    PROTECTED_PERCENT = 45
};

/* Guards by protection, in the whole process. */
static PIRN_ATOMIC(size_t) protected_total;

/* The last answer of the probe: the system table it was given by, with the
 * kind in the lowest bit.  Tables are replaced in tests. */
static PIRN_ATOMIC(uintptr_t) probe_answer;

/* 1 if guard regions work, 0 if not, negative if that could not be found out.
 * Emulators accept the request and do nothing, so only the effect counts: the
 * kernel itself must fail to write there. */
static int try_region(size_t page_size)
{
    void *page;
    int rc, fd;

    rc = pirn__sys->map(page_size, &page);
    if (rc < 0)
        return rc;
    if (pirn__sys->guard_install(page, page_size) < 0)
        goto fail_page;
    fd = pirn__sys->eventfd();
    rc = fd;
    if (fd < 0)
        goto fail_page;
    rc = pirn__sys->eventfd_signal(fd);
    if (rc == 0)
        rc = pirn__sys->read(fd, page, sizeof(uint64_t)) == -EFAULT;
    pirn__sys->close(fd);
fail_page:
    (void)pirn__sys->unmap(page, page_size);
    return rc;
}

enum pirn__guard_kind pirn__guard_probe(size_t page_size)
{
    uintptr_t table = (uintptr_t)pirn__sys;
    enum pirn__guard_kind kind;
    uintptr_t answer;
    int rc;

    /* relaxed: the word is the whole message. */
    answer = pirn__load(&probe_answer, relaxed);
    if ((answer & ~(uintptr_t)1) == table)
        return (enum pirn__guard_kind)(answer & 1);
    rc = try_region(page_size);
    kind = rc == 1 ? PIRN__GUARD_REGION : PIRN__GUARD_PROTECT;
    /* A shortage may pass: the next pool asks again. */
    if (rc < 0)
        return kind;
    /* relaxed: as above; threads that race find the same. */
    pirn__store(&probe_answer, table | (uintptr_t)kind, relaxed);
    return kind;
}

size_t pirn__guard_limit(void)
{
    int mappings = pirn__sys->mapping_limit();

    if (mappings < 0)
        mappings = MAPPINGS_DEFAULT;
    return (size_t)mappings * PROTECTED_PERCENT / 100;
}

void pirn__guard_forget(size_t protected_count)
{
    /* relaxed: a count that orders nothing. */
    pirn__sub(&protected_total, protected_count, relaxed);
}

static int protect(size_t limit, void *base, size_t size)
{
    int rc = -ENOMEM;

    /* relaxed: a count that orders nothing. */
    if (pirn__add(&protected_total, 1, relaxed) < limit)
        rc = pirn__sys->protect_none(base, size);
    if (rc < 0) {
        pirn__guard_forget(1);
        return rc;
    }
    return PIRN__GUARD_PROTECT;
}

int pirn__guard_install(enum pirn__guard_kind kind, size_t limit, void *base,
                        size_t size)
{
    int rc;

    if (kind == PIRN__GUARD_PROTECT)
        return protect(limit, base, size);
    rc = pirn__sys->guard_install(base, size);
    if (rc == 0)
        return PIRN__GUARD_REGION;
    /* A program that locks its memory after the probe is refused. */
    return rc == -ENOMEM ? rc : protect(limit, base, size);
}

size_t pirn__guard_span(size_t page_size)
{
    return page_size / sizeof(uint64_t) * page_size;
}

enum pirn__guard_kind pirn__guard_beside(void *base, size_t size)
{
    int rc = pirn__sys->guard_beside(base, size);

    if (rc == 0)
        return PIRN__GUARD_REGION;
    rc = protect(SIZE_MAX, base, size);
    PIRN_REQUIRE(rc >= 0, "memory is locked before many fibers are started");
    return (enum pirn__guard_kind)rc;
}
