/* SPDX-License-Identifier: MIT */
/* tests/cross/planted_addresses.c - what tests/cross/tls_addresses must find.
 *
 * Compiled alone into a library with hidden names, each time with one of these:
 *
 *   PLANT_NONE     nothing wrong
 *   PLANT_ERRNO    errno is looked up once and used after a suspension
 *   PLANT_VALUE    a thread-local beside the accessor
 *   PLANT_INLINED  an accessor that its caller has swallowed
 */
#include <errno.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

void pirn__switch_raw(void *from, void *to);
void *pirn__tls_get(void);
void pirn__tls_set(void *value);
EXPORTED void end_thread(void *value);
EXPORTED int read_twice(void *from, void *to);

static _Thread_local void *value_of_thread
    __attribute__((tls_model("initial-exec")));

#ifdef PLANT_INLINED
#define REAL_CALL __attribute__((always_inline)) inline
#else
#define REAL_CALL __attribute__((noinline))
#endif

#ifdef __clang__
#define HIDDEN_BODY __attribute__((noinline))
#else
#define HIDDEN_BODY __attribute__((noipa))
#endif

/* The compiler sees no more of it than of the real one, which is assembly. */
HIDDEN_BODY void pirn__switch_raw(void *from, void *to)
{
    __asm__ volatile("" : : "r"(from), "r"(to) : "memory");
}

REAL_CALL void *pirn__tls_get(void)
{
    return value_of_thread;
}

__attribute__((noinline)) void pirn__tls_set(void *value)
{
    value_of_thread = value;
}

void end_thread(void *value)
{
    pirn__tls_set(value);
}

int read_twice(void *from, void *to)
{
    int before = 0;
    int after = 0;

#ifdef PLANT_ERRNO
    before = errno;
#endif
#ifdef PLANT_VALUE
    before = value_of_thread != NULL;
#endif
    pirn__switch_raw(from, to);
#ifdef PLANT_ERRNO
    after = errno;
#endif
    return before + after + (pirn__tls_get() != NULL);
}
