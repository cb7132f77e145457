/* SPDX-License-Identifier: MIT */
/* src/sched/report.c - a shutdown report as text. */
#include <pirn/runtime.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* A text that counts on when the buffer is full, as snprintf does. */
struct lines {
    char *buf;
    size_t size;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct lines *lines,
                                                      const char *format, ...)
{
    size_t used = lines->len < lines->size ? lines->len : lines->size;
    va_list args;
    int added;

    va_start(args, format);
    added = vsnprintf(lines->size > used ? lines->buf + used : NULL,
                      lines->size - used, format, args);
    va_end(args);
    if (added > 0)
        lines->len += (size_t)added;
}

static void add_task(struct lines *lines, const pirn_report_task *task)
{
    add(lines, "  %s %s (%s)", task->running ? "running" : "waiting",
        task->name[0] != '\0' ? task->name : "-", task->site);
    if (task->waits_for[0] != '\0')
        add(lines, ", for %s", task->waits_for);
    add(lines, "\n");
}

size_t pirn_report_format(const pirn_report *report, char *buf, size_t size)
{
    struct lines lines = {buf, size, 0};

    if (size > 0)
        buf[0] = '\0';
    if (report == NULL)
        return 0;
    add(&lines, "shutdown: %s\n",
        report->in_time ? "in time" : "NOT in time");
    add(&lines,
        "tasks: %" PRIu64 " spawned, %" PRIu64 " completed, %" PRIu64
        " failed, %" PRIu64 " cancelled, %" PRIu64 " aborted, %" PRIu64
        " still running, %" PRIu64 " quarantined\n",
        report->spawned, report->completed, report->failed, report->cancelled,
        report->aborted, report->still_running, report->quarantined);
    add(&lines,
        "blocking jobs: %" PRIu64 " completed, %" PRIu64 " refused, %" PRIu64
        " still running\n",
        report->jobs_completed, report->jobs_refused,
        report->jobs_still_running);
    for (uint32_t i = 0; i < report->task_count; i++)
        add_task(&lines, &report->tasks[i]);
    return lines.len;
}
