/* SPDX-License-Identifier: MIT */
/* src/sched/report_test.c - a report as text. */
#include <pirn/runtime.h>

#include "engine/test.h"

static pirn_report full_report(void)
{
    pirn_report report = {
        .spawned = 101,
        .completed = 102,
        .failed = 103,
        .cancelled = 104,
        .aborted = 105,
        .quarantined = 106,
        .still_running = 107,
        .jobs_completed = 108,
        .jobs_refused = 109,
        .jobs_still_running = 110,
        .task_count = 2,
    };

    strcpy(report.tasks[0].name, "slow");
    strcpy(report.tasks[0].site, "main.c:12");
    strcpy(report.tasks[0].waits_for, "read 7");
    strcpy(report.tasks[1].site, "other.c:34");
    report.tasks[1].running = true;
    return report;
}

static void expect_word(const char *text, const char *word)
{
    if (strstr(text, word) == NULL)
        test__fail(__FILE__, __LINE__, "no \"%s\" in:\n%s", word, text);
}

/* Goal: every number, name, site and reason is in the text.
 * Method: give each a value that occurs once. */
TEST(report_text_says_everything)
{
    static const char *const words[] = {
        "101",       "102",    "103",        "104",     "105",    "106",
        "107",       "108",    "109",        "110",     "NOT",    "slow",
        "main.c:12", "read 7", "other.c:34", "running", "waiting"};
    pirn_report report = full_report();
    char text[2048];
    size_t length = pirn_report_format(&report, text, sizeof text);

    EXPECT_EQ(length, strlen(text));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        expect_word(text, words[i]);
    report.in_time = true;
    pirn_report_format(&report, text, sizeof text);
    EXPECT(strstr(text, "NOT") == NULL);
}

/* Goal: whatever the buffer's size, the text is cut, terminated, and its full
 * length returned; nothing beyond the buffer is touched.
 * Method: every size up to the full one and a little more. */
TEST(report_text_is_cut_to_any_buffer)
{
    pirn_report report = full_report();
    char text[2048];
    char part[2048];
    size_t length = pirn_report_format(&report, text, sizeof text);

    for (size_t size = 0; size < length + 3; size++) {
        size_t fits = size > length ? length : size - 1;

        memset(part, '#', sizeof part);
        EXPECT_EQ(length, pirn_report_format(&report, part, size));
        EXPECT_EQ('#', part[size]);
        if (size == 0)
            continue;
        EXPECT_EQ('\0', part[fits]);
        EXPECT(memcmp(text, part, fits) == 0);
    }
    EXPECT_EQ(length, pirn_report_format(&report, NULL, 0));
}

/* Goal: no report is no text.
 * Method: into a buffer that held something. */
TEST(report_text_of_nothing_is_empty)
{
    char text[4] = "old";

    EXPECT_EQ(0, pirn_report_format(NULL, text, sizeof text));
    EXPECT_STR_EQ("", text);
}

/* Goal: a full list of tasks with the longest names has a line for each.
 * Method: fill all sixteen and count. */
TEST(report_text_names_all_tasks)
{
    pirn_report report = {.task_count = PIRN_REPORT_TASKS};
    char text[16 * 1024];
    size_t lines = 0;

    for (int i = 0; i < PIRN_REPORT_TASKS; i++) {
        memset(report.tasks[i].name, 'n', PIRN_NAME_SIZE - 1);
        memset(report.tasks[i].site, 's', PIRN_WAIT_SIZE - 1);
        memset(report.tasks[i].waits_for, 'w', PIRN_WAIT_SIZE - 1);
    }
    EXPECT_LE(pirn_report_format(&report, text, sizeof text), sizeof text - 1);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    EXPECT_GE(lines, PIRN_REPORT_TASKS);
}
