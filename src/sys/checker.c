/* SPDX-License-Identifier: MIT */
/* src/sys/checker.c - what the memory checkers must be told about stacks. */
#include "sys/checker.h"

#if PIRN__WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

/* The header is macros only and the requests are a few no-ops outside
 * Valgrind, so they are compiled in wherever the header is found. */
#if defined(__has_include) && !defined(PIRN_NO_VALGRIND)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define WITH_VALGRIND 1
#endif
#endif
#ifndef WITH_VALGRIND
#define WITH_VALGRIND 0
#endif

#if WITH_VALGRIND

static bool valgrind_active(void)
{
    return RUNNING_ON_VALGRIND != 0;
}

/* What an earlier user has left is garbage to the next one, and nobody's in
 * between.  (The very first stack has the number 0, too, and is not looked after
 * in this way.) */
static uint32_t valgrind_begin(void *base, size_t size)
{
    uint32_t id =
        (uint32_t)VALGRIND_STACK_REGISTER(base, (char *)base + size);

    if (id != 0)
        (void)VALGRIND_MAKE_MEM_UNDEFINED(base, size);
    return id;
}

static void valgrind_end(uint32_t id, void *base, size_t size)
{
    VALGRIND_STACK_DEREGISTER(id);
    if (id != 0)
        (void)VALGRIND_MAKE_MEM_NOACCESS(base, size);
}

#else

static bool valgrind_active(void)
{
    return false;
}

static uint32_t valgrind_begin(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

static void valgrind_end(uint32_t id, void *base, size_t size)
{
    (void)id;
    (void)base;
    (void)size;
}

#endif

#if PIRN__WITH_ASAN

/* Frames that were left by a switch and never returned to are still poisoned
 * and would be found by the next user of the memory. */
static void asan_end(void *base, size_t size)
{
    ASAN_UNPOISON_MEMORY_REGION(base, size);
}

static void asan_keep(void *base, size_t size)
{
    __lsan_register_root_region(base, size);
}

#else

static void asan_end(void *base, size_t size)
{
    (void)base;
    (void)size;
}

static void asan_keep(void *base, size_t size)
{
    (void)base;
    (void)size;
}

#endif

bool pirn__checker_active(void)
{
    return PIRN__WITH_ASAN || PIRN__WITH_TSAN || valgrind_active();
}

uint32_t pirn__checker_stack_begin(void *base, size_t size)
{
    return valgrind_begin(base, size);
}

void pirn__checker_stack_end(uint32_t id, void *base, size_t size)
{
    valgrind_end(id, base, size);
    asan_end(base, size);
}

void pirn__checker_stack_keep(void *base, size_t size)
{
    asan_keep(base, size);
}
