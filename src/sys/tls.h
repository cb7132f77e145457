/* SPDX-License-Identifier: MIT */
/* src/sys/tls.h - the library's one thread-local pointer.
 *
 * The accessors are real calls on purpose: a compiler may keep the address of
 * a thread-local in a register across a context switch, and the fiber may go
 * on on another thread.  For the same reason nobody keeps what
 * pirn__tls_get() returned across a suspension.
 */
#ifndef PIRN_SYS_TLS_H
#define PIRN_SYS_TLS_H

#include <pirn/base.h>

#if defined(__GNUC__) && !defined(__clang__)
#define PIRN__REAL_CALL __attribute__((noinline, noipa))
#else
#define PIRN__REAL_CALL __attribute__((noinline))
#endif

PIRN__REAL_CALL void *pirn__tls_get(void);
PIRN__REAL_CALL void pirn__tls_set(void *value);

/* Have fn(value) called at the end of each thread whose value is not NULL; the
 * value still stands while fn runs and is NULL afterwards.  One function for
 * the whole process: the last call wins.  The main thread has no end of this
 * kind when main() returns, and a thread whose value was set before this call
 * takes part from its next pirn__tls_set() on. */
void pirn__tls_on_exit(void (*fn)(void *value));

#endif /* PIRN_SYS_TLS_H */
