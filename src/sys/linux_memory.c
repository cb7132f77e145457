/* SPDX-License-Identifier: MIT */
/* src/sys/linux_memory.c - mappings: made, guarded, given back. */
#define _GNU_SOURCE

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys/linux.h"

/* Since Linux 6.13; older headers do not name it. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

size_t pirn__linux_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int pirn__linux_map(size_t size, void **out)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
                      -1, 0);

    *out = NULL;
    if (base == MAP_FAILED)
        return -errno;
    /* Kernels built without huge pages refuse, and need no asking. */
    (void)madvise(base, size, MADV_NOHUGEPAGE);
    *out = base;
    return 0;
}

int pirn__linux_unmap(void *base, size_t size)
{
    return pirn__linux_code(munmap(base, size));
}

int pirn__linux_protect_none(void *base, size_t size)
{
    return pirn__linux_code(mprotect(base, size, PROT_NONE));
}

int pirn__linux_guard_install(void *base, size_t size)
{
    return pirn__linux_code(madvise(base, size, MADV_GUARD_INSTALL));
}

int pirn__linux_discard(void *base, size_t size)
{
    return pirn__linux_code(madvise(base, size, MADV_DONTNEED));
}

int pirn__linux_resident(void *base, size_t size, unsigned char *pages)
{
    return pirn__linux_code(mincore(base, size, pages));
}

/* The number in the first `len` bytes of `text`; INT_MAX when it is larger. */
static int parse_number(const char *text, size_t len)
{
    int value = 0;

    for (size_t i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value))
            return INT_MAX;
    }
    return value;
}

int pirn__linux_mapping_limit(void)
{
    char text[32];
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = pirn__linux_read(fd, text, sizeof text);
    close(fd);
    if (n < 0)
        return (int)n;
    return parse_number(text, (size_t)n);
}
