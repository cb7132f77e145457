/* SPDX-License-Identifier: MIT */
/* bench/cost.c - run a program and say what it has cost.
 *
 *     cost COMMAND [ARGUMENT...]
 *
 * When the command has ended, one JSON object follows its own output: peak
 * resident memory, processor seconds, context switches.  A small program does
 * this because the peak of a child begins with what its parent had at the fork.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void report(const struct rusage *usage)
{
    printf("{\"cost\": {\"peak_rss_bytes\": %ld, \"cpu_s\": %.6f, "
           "\"context_switches\": %ld}}\n",
           usage->ru_maxrss * 1024,
           seconds(usage->ru_utime) + seconds(usage->ru_stime),
           usage->ru_nvcsw + usage->ru_nivcsw);
}

int main(int argc, char **argv)
{
    struct rusage usage;
    int status;
    pid_t child;

    if (argc < 2) {
        fprintf(stderr, "usage: cost COMMAND [ARGUMENT...]\n");
        return 2;
    }
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
        perror("cost");
        return 1;
    }
    report(&usage);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
