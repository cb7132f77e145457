/* SPDX-License-Identifier: MIT */
/* tools/pirn/signals.c - signalfd in few functions. */
#define _GNU_SOURCE

#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

static sigset_t both(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    return set;
}

int signals_block(void)
{
    sigset_t set = both();

    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

int signals_wait(pirn_fd *signals, pirn_deadline deadline)
{
    struct signalfd_siginfo info;
    ssize_t n = pirn_fd_read(signals, &info, sizeof info, deadline);

    if (n < 0)
        return (int)n;
    return (size_t)n == sizeof info ? (int)info.ssi_signo : -EIO;
}

void signals_unblock(void)
{
    sigset_t set = both();

    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
