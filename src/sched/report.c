/* SPDX-License-Identifier: MIT */
/* src/sched/report.c - a shutdown report as text. */
#include <pirn/runtime.h>

#include <inttypes.h>

#include "base/lines.h"

static void add_task(struct pirn__lines *lines, const pirn_report_task *task)
{
    pirn__lines_add(lines, "  %s %s (%s)",
                    task->running ? "running" : "waiting",
                    task->name[0] != '\0' ? task->name : "-", task->site);
    if (task->waits_for[0] != '\0')
        pirn__lines_add(lines, ", for %s", task->waits_for);
    pirn__lines_add(lines, "\n");
}

size_t pirn_report_format(const pirn_report *report, char *buf, size_t size)
{
    struct pirn__lines lines = {buf, size, 0};

    if (size > 0)
        buf[0] = '\0';
    if (report == NULL)
        return 0;
    pirn__lines_add(&lines, "shutdown: %s\n",
                    report->in_time ? "in time" : "NOT in time");
    pirn__lines_add(
        &lines,
        "tasks: %" PRIu64 " spawned, %" PRIu64 " completed, %" PRIu64
        " failed, %" PRIu64 " cancelled, %" PRIu64 " aborted, %" PRIu64
        " still running, %" PRIu64 " quarantined\n",
        report->spawned, report->completed, report->failed, report->cancelled,
        report->aborted, report->still_running, report->quarantined);
    pirn__lines_add(&lines,
                    "blocking jobs: %" PRIu64 " completed, %" PRIu64
                    " refused, %" PRIu64 " still running\n",
                    report->jobs_completed, report->jobs_refused,
                    report->jobs_still_running);
    for (uint32_t i = 0; i < report->task_count; i++)
        add_task(&lines, &report->tasks[i]);
    return lines.len;
}
