/* SPDX-License-Identifier: MIT */
/* examples/blocking.c - code that blocks, on a thread of its own.
 *
 * Reading a file may wait for a disk and would hold up every other fiber; on
 * the blocking pool it holds up nobody. */
#include <errno.h>
#include <pirn/pirn.h>
#include <stdio.h>
#include <time.h>

/* One file and what is found out about it. */
struct file_size {
    const char *path;
    long bytes;
};

/* Runs on a pool thread: here everything may block. */
static int measure_file(void *arg)
{
    struct file_size *file = arg;
    FILE *stream = fopen(file->path, "re");

    if (stream == NULL)
        return -ENOENT;
    file->bytes = 0;
    while (fgetc(stream) != EOF)
        file->bytes++;
    (void)fclose(stream);
    return 0;
}

/* Stands for any slow call. */
static int think(void *arg)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 50 * 1000 * 1000};

    (void)arg;
    (void)nanosleep(&pause, NULL);
    return 42;
}

/* Shows that fibers go on meanwhile.  It may run at the same time as start(), on
 * another worker, so *ticks is this fiber's alone until it has ended. */
static int count_ticks(void *arg)
{
    int *ticks = arg;
    int rc;

    while ((rc = pirn_sleep(pirn_after_ms(5))) == 0)
        (*ticks)++;
    return rc;
}

static int start(void *arg)
{
    struct file_size file = {.path = arg};
    pirn_task *counter;
    pirn_job *job;
    int ticks = 0;
    int answer = 0;
    int outcome;

    /* Wait for it right here; the struct may be on this stack. */
    int rc = pirn_blocking_run(measure_file, &file);
    if (rc < 0)
        return rc;
    (void)printf("%s has %ld bytes\n", file.path, file.bytes);

    /* Or start it, do something else, and collect it later. */
    rc = pirn_spawn_blocking(think, NULL, NULL, &job);
    if (rc < 0)
        return rc;
    rc = pirn_go_with(count_ticks, &ticks, NULL, &counter);
    if (rc == 0) {
        rc = pirn_job_join(job, pirn_after_ms(5000), &answer);
        pirn_task_cancel(counter);
        /* After the join all that the fiber did is seen here. */
        (void)!pirn_task_join(counter, PIRN_NEVER, &outcome);
        pirn_task_unref(counter);
    }
    pirn_job_unref(job);
    (void)printf("the job said %d; %d ticks went by\n", answer, ticks);
    if (rc == 0 && (answer != 42 || ticks == 0))
        rc = -EBADMSG;
    return rc;
}

int main(int argc, char **argv)
{
    int rc = pirn_run(start, argv[argc > 1 ? 1 : 0]);

    if (rc < 0)
        (void)fprintf(stderr, "blocking: %s\n", pirn_err_text(rc));
    return pirn_exit_code(rc);
}
