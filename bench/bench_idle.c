/* SPDX-License-Identifier: MIT */
/* bench/bench_idle.c - what a runtime does while there is nothing to do.
 *
 * A child process holds a runtime of --workers N (4) with 500 stackless tasks and
 * 500 fibers that sleep for an hour.  The parent waits until it has gone quiet, reads the
 * context switches of each of its threads from /proc, waits ten seconds
 * (--seconds N), and reads them again.  Nothing may have moved.  The CPU time
 * of the child over the same time is printed too.
 */
#define _GNU_SOURCE
#include "plain.h"
#include "sample.h"

#include <pirn/pirn.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLEEPERS_EACH = 500, SETTLE_MS = 500 };

static pirn_deadline far_away;

static int sleep_fiber(void *arg)
{
    (void)arg;
    return pirn_sleep(far_away);
}

/* The first fiber of the child: start everything, tell the parent, sleep. */
static int idle_fiber(void *arg)
{
    int ready_fd = *(int *)arg;
    pirn_sleep_op sleep;

    far_away = pirn_after_ms(3600 * 1000);
    for (int i = 0; i < SLEEPERS_EACH; i++) {
        sample_require(pirn_go(sleep_fiber, NULL), "pirn_go");
        pirn_sleep_init(&sleep, far_away);
        sample_require(pirn_spawn(&sleep.future, sizeof sleep, NULL, NULL),
                       "pirn_spawn");
    }
    sample_require(write(ready_fd, "r", 1) == 1 ? 0 : -EPIPE, "write");
    return pirn_sleep(far_away);
}

struct activity {
    unsigned threads;
    unsigned long long switches; /* voluntary and involuntary, all threads */
    uint64_t cpu_ns;
};

static unsigned long long read_switches(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[256];
    unsigned long long sum = 0;

    sample_require(file == NULL ? -ENOENT : 0, path);
    while (fgets(line, sizeof line, file) != NULL) {
        char *counter = strstr(line, "voluntary_ctxt_switches:");

        if (counter != NULL)
            sum += strtoull(strchr(counter, ':') + 1, NULL, 10);
    }
    fclose(file);
    return sum;
}

static uint64_t read_cpu_ns(pid_t pid)
{
    clockid_t clock;

    sample_require(-clock_getcpuclockid(pid, &clock), "clock_getcpuclockid");
    return plain_clock_ns(clock);
}

static struct activity read_activity(pid_t pid)
{
    struct activity activity = {.cpu_ns = read_cpu_ns(pid)};
    char path[300];
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    folder = opendir(path);
    sample_require(folder == NULL ? -ENOENT : 0, path);
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid,
                 entry->d_name);
        activity.threads++;
        activity.switches += read_switches(path);
    }
    closedir(folder);
    return activity;
}

static void wait_ms(uint64_t ms)
{
    struct timespec time = {
        .tv_sec = (time_t)(ms / 1000),
        .tv_nsec = (long)(ms % 1000 * 1000000),
    };

    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        continue;
}

static void watch(pid_t child, int ready_fd, uint64_t idle_ms)
{
    char byte;

    sample_require(read(ready_fd, &byte, 1) == 1 ? 0 : -EPIPE,
                   "the child did not get ready");
    wait_ms(SETTLE_MS);

    struct activity before = read_activity(child);

    wait_ms(idle_ms);

    struct activity after = read_activity(child);

    sample_require(after.threads == before.threads ? 0 : -EINVAL,
                   "the number of threads changed");
    sample_print("idle/context_switches", "switches",
                 (double)(after.switches - before.switches));
    sample_print("idle/cpu", "ns", (double)(after.cpu_ns - before.cpu_ns));
    sample_print("idle/threads", "threads", after.threads);
}

int main(int argc, char **argv)
{
    bool quick = sample_has_flag(argc, argv, "--quick");
    uint64_t seconds =
        sample_get_number(argc, argv, "--seconds", quick ? 2 : 10);
    pirn_runtime_options options = {
        .workers = (uint32_t)sample_get_number(argc, argv, "--workers", 4),
    };
    int ready[2];
    pid_t child;

    sample_require(pipe(ready) < 0 ? -errno : 0, "pipe");
    child = fork();
    sample_require(child < 0 ? -errno : 0, "fork");
    if (child == 0) {
        /* No child may be left behind if a check below ends the parent. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ready[0]);
        _exit(pirn_exit_code(
            pirn_run_with(idle_fiber, &ready[1], &options, NULL)));
    }
    close(ready[1]);
    watch(child, ready[0], seconds * 1000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
