/* SPDX-License-Identifier: MIT */
/* src/sys/child.c - see child.h. */
#define _GNU_SOURCE
#include "sys/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

PIRN_NORETURN static void be_child(void (*fn)(void *arg), void *arg, bool quiet,
                                   pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* It may have died before that. */
    if (getppid() != parent)
        _exit(1);
    signal(SIGALRM, SIG_DFL);
    if (quiet && freopen("/dev/null", "w", stderr) == NULL)
        _exit(1);
    fn(arg);
    fflush(NULL);
    _exit(0);
}

int pirn__child_run(void (*fn)(void *arg), void *arg, bool quiet, int *status)
{
    pid_t parent = getpid();
    pid_t child, ended;

    /* What is in the buffers would be written twice. */
    fflush(NULL);
    child = fork();
    if (child < 0)
        return -errno;
    if (child == 0)
        be_child(fn, arg, quiet, parent);
    do {
        ended = waitpid(child, status, 0);
    } while (ended < 0 && errno == EINTR);
    /* A process that ignores SIGCHLD is told of the end, not of its kind. */
    if (ended < 0)
        *status = 0;
    return 0;
}

void pirn__child_alarm(unsigned seconds)
{
    alarm(seconds);
}

bool pirn__child_is_alarmed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
}

void pirn__child_describe(int status, char *buf, size_t size)
{
    if (WIFSIGNALED(status))
        (void)snprintf(buf, size, "signal %d", WTERMSIG(status));
    else
        (void)snprintf(buf, size, "exit status %d", WEXITSTATUS(status));
}

void *pirn__child_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void pirn__child_unshare(void *memory, size_t size)
{
    munmap(memory, size);
}
