/* SPDX-License-Identifier: MIT */
/* src/sys/child.h - work in a process of its own, so that whatever happens to it
 * leaves nothing behind.
 */
#ifndef PIRN_SYS_CHILD_H
#define PIRN_SYS_CHILD_H

#include <pirn/base.h>

/* Run fn(arg) in a child process, which has a copy of this one's memory and of
 * its threads only the caller, and wait for its end.  It ends when fn returns,
 * and with the parent.  `quiet`: it has no standard error.  *status is what
 * wait(2) says, 0 of one that ended well.
 *
 * Errors    -EAGAIN, -ENOMEM  the system refuses a process
 */
int pirn__child_run(void (*fn)(void *arg), void *arg, bool quiet, int *status);

/* In a child: have SIGALRM end it in so many seconds, unless this is called again
 * before. */
void pirn__child_alarm(unsigned seconds);

/* True if that did end it. */
bool pirn__child_is_alarmed(int status);

/* Say how a process ended: "signal 6", "exit status 1". */
void pirn__child_describe(int status, char *buf, size_t size);

/* Zeroed memory that children share, of at least `size` bytes; NULL without. */
void *pirn__child_share(size_t size);
void pirn__child_unshare(void *memory, size_t size);

#endif /* PIRN_SYS_CHILD_H */
