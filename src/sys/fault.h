/* SPDX-License-Identifier: MIT */
/* src/sys/fault.h - a word before a memory fault ends the process.
 *
 * Handlers for SIGSEGV and SIGBUS run on an alternate stack, ask `explain`
 * whether the address is known, print its words and let the process die of the
 * signal; everything else goes on to the handlers that were there before.
 */
#ifndef PIRN_SYS_FAULT_H
#define PIRN_SYS_FAULT_H

#include <pirn/base.h>

/* Write what is known about a fault at `address` into `buf`; false if nothing.
 * Called in a signal handler, on the thread of the fault. */
typedef bool pirn__explain_fn(const void *address, char *buf, size_t size);

/* Install the handlers (the first call) or count one more user. */
void pirn__fault_watch(pirn__explain_fn *explain);
/* One user fewer; the last restores what was there, if it is still ours. */
void pirn__fault_unwatch(void);

/* Give this thread an alternate stack unless it has one.  Kept until the thread
 * ends. */
void pirn__fault_watch_thread(void);

#endif /* PIRN_SYS_FAULT_H */
