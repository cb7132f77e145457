/* SPDX-License-Identifier: MIT */
/* tools/pirn/signals.h - SIGINT and SIGTERM as something to read.
 *
 * Blocked in the whole process, they wait in a descriptor until a fiber asks
 * for them.
 */
#ifndef PIRN_TOOLS_SIGNALS_H
#define PIRN_TOOLS_SIGNALS_H

#include <pirn/pirn.h>

/* Block both signals and open the descriptor; it, or a negative code.  Before
 * the runtime starts, so that all its threads inherit the mask. */
int signals_block(void);

/* Wait for one.  Its number, or a negative code as pirn_fd_read(). */
int signals_wait(pirn_fd *signals, pirn_deadline deadline);

/* Let the next one end the process, should the way out take too long. */
void signals_unblock(void);

#endif /* PIRN_TOOLS_SIGNALS_H */
