/* SPDX-License-Identifier: MIT */
/* pirn/base.h - what every other header needs: version, attributes, error
 * codes and deadlines.
 *
 * A function that can fail returns 0 or a count on success and a negative code
 * on failure: the negated errno value where one exists, one of the PIRN_E...
 * codes below -4096 where none does.  Nothing is ever reported through errno,
 * whose value is undefined after any call that may suspend.
 *
 *     int rc = pirn_sleep(pirn_after_ms(50));
 *
 *     if (rc < 0 && pirn_err_category(rc) == PIRN_CATEGORY_CANCELLED)
 *         return rc;
 */
#ifndef PIRN_BASE_H
#define PIRN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PIRN_VERSION_MAJOR 0
#define PIRN_VERSION_MINOR 1
#define PIRN_VERSION_PATCH 0

#ifdef __cplusplus
#define PIRN_BEGIN_DECLS extern "C" {
#define PIRN_END_DECLS }
#else
#define PIRN_BEGIN_DECLS
#define PIRN_END_DECLS
#endif

#define PIRN_API __attribute__((visibility("default")))
#define PIRN_MUST_CHECK __attribute__((warn_unused_result))
#define PIRN_PRINTF(format_index, first) \
    __attribute__((format(printf, format_index, first)))
#define PIRN_NORETURN __attribute__((noreturn))

/* The struct of type `type` whose member `member` is at `pointer`. */
#define PIRN_CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

/* A value that several threads share.  The wrapper keeps a bare `x++` from
 * compiling; only the library touches `v_`. */
#define PIRN_ATOMIC(type) \
    struct { \
        type v_; \
    }

/* The place of a call, as one literal "file:line". */
#define PIRN__STRING(x) #x
#define PIRN__STRING_OF(x) PIRN__STRING(x)
#define PIRN_SITE __FILE__ ":" PIRN__STRING_OF(__LINE__)

PIRN_BEGIN_DECLS

/* The version of the library that runs, as "major.minor.patch".
 *
 * Thread    any
 */
PIRN_API const char *pirn_version(void);

/* Errors that errno has no name for.  All are below -4096, so that they never
 * collide with a negated errno value. */
enum {
    PIRN_ECLOSED = -4097,    /* the object was closed */
    PIRN_ESHUTDOWN = -4098,  /* the runtime is stopping or has stopped */
    PIRN_ENORUNTIME = -4099, /* the call needs a runtime and none is current */
    PIRN_EEOF = -4100,       /* the stream ended before the wanted count */
    PIRN_EABORTED = -4101,   /* the task was ended without its cooperation */
    PIRN_EPANIC = -4102,     /* the task ended by pirn_panic() */
    PIRN_EFAILED = -4103,    /* the task ended by pirn_cx_fail() */
    PIRN_EFORKED = -4104     /* this runtime belongs to the parent process */
};

/* What kind of thing went wrong; callers usually switch on this. */
enum pirn_category {
    PIRN_CATEGORY_NONE,      /* not an error: rc >= 0 */
    PIRN_CATEGORY_CANCELLED, /* somebody asked this task to stop */
    PIRN_CATEGORY_TIMED_OUT, /* the deadline passed first */
    PIRN_CATEGORY_CLOSED,    /* the peer or the object is gone */
    PIRN_CATEGORY_REFUSED,   /* the other side, or a policy, said no */
    PIRN_CATEGORY_RESOURCE,  /* out of memory, descriptors, queue places */
    PIRN_CATEGORY_USAGE,     /* the caller asked for what cannot be */
    PIRN_CATEGORY_SYSTEM,    /* the operating system reported it */
    PIRN_CATEGORY_INTERNAL   /* a task or the runtime itself failed */
};

/* The symbolic name of a result: "ETIMEDOUT", "PIRN_ECLOSED"; "OK" for 0 and
 * above, "UNKNOWN" for a code that is in no table.  The string is static.
 *
 * Thread    any
 */
PIRN_API const char *pirn_err_name(int rc);

/* A short English sentence for a result, without a full stop.  The string is
 * static.
 *
 * Thread    any
 */
PIRN_API const char *pirn_err_text(int rc);

/* The category of a result; PIRN_CATEGORY_NONE for 0 and above,
 * PIRN_CATEGORY_SYSTEM for a code that is in no table.
 *
 * Thread    any
 */
PIRN_API enum pirn_category pirn_err_category(int rc);

/* A process exit status for a result: 0 for 0 and above, 1 for a failure, 130
 * for a cancellation (what a shell shows after Ctrl-C).
 *
 * Thread    any
 */
PIRN_API int pirn_exit_code(int rc);

/* A point in time on the monotonic clock, in nanoseconds.  A struct, so that a
 * bare number of milliseconds does not compile where a deadline belongs. */
typedef struct pirn_deadline {
    uint64_t ns;
} pirn_deadline;

#ifdef __cplusplus
#define PIRN_NEVER (pirn_deadline{UINT64_MAX})
#define PIRN_EXPIRED (pirn_deadline{0})
#else
/* No deadline at all: an explicit state, not a time that could arrive. */
#define PIRN_NEVER ((pirn_deadline){UINT64_MAX})
/* Always in the past: try once, do not wait. */
#define PIRN_EXPIRED ((pirn_deadline){0})
#endif

PIRN_END_DECLS

#endif /* PIRN_BASE_H */
