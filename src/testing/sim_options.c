/* SPDX-License-Identifier: MIT */
/* src/testing/sim_options.c - what a simulated world is like: how each option is
 * drawn from the seed, read from the environment, and written.
 */
#include "testing/sim.h"

#include <inttypes.h>
#include <string.h>

#include "base/lines.h"
#include "sys/environment.h"

/* How each option is drawn: `none_of_4` of four seeds have none. */
static const struct option {
    const char *name;
    size_t offset;
    uint32_t limit; /* of what the program may ask for */
    uint32_t least, most;
    unsigned none_of_4;
    bool doubling; /* small numbers are as likely as large ones */
} options_table[] = {
#define OPTION(name, ...) \
    { \
#name, offsetof(struct pirn_sim_options, name), __VA_ARGS__ \
    }
    OPTION(workers, 64, 1, 4, 1, false),
    OPTION(computational, 1, 1, 1, 3, false),
    OPTION(latency_us, 10000000, 10, 20000, 0, true),
    OPTION(buffer, 1 << 24, 2, 16384, 0, true),
    OPTION(resets, 10000, 1, 200, 1, true),
    OPTION(refusals, 1000, 1, 300, 1, true),
    OPTION(spurious, 1000, 1, 100, 1, true),
    OPTION(weather_ms, 1000000, 5, 500, 1, true),
    OPTION(preemptions, 1000, 1, 300, 0, true),
    OPTION(late_us, 10000000, 1, 3000, 1, true),
    OPTION(fault_ms, 10000000, 50, 2000, 0, true),
    OPTION(live_s, 1000000, 120, 120, 0, false),
#undef OPTION
};

enum {
    OPTIONS = sizeof options_table / sizeof options_table[0],
    LATENCY_OF_BYTE_US = 20,
};

_Static_assert(OPTIONS * sizeof(uint32_t) == sizeof(pirn_sim_options),
               "each option is in the table");

static uint32_t value_of(const pirn_sim_options *options,
                         const struct option *option)
{
    uint32_t value;

    memcpy(&value, (const char *)options + option->offset, sizeof value);
    return value;
}

static void set_value(pirn_sim_options *options, const struct option *option,
                      uint32_t value)
{
    memcpy((char *)options + option->offset, &value, sizeof value);
}

/* The environment: "name=number", apart by spaces. */

/* A number, or "none", up to a space or the end; more is PIRN_SIM_NONE - 1,
 * which is out of every range, as what is no number. */
static uint32_t parse(const char *text)
{
    size_t len = strcspn(text, " ");
    uint32_t value = 0;

    if (len == 4 && strncmp(text, "none", 4) == 0)
        return PIRN_SIM_NONE;
    if (len == 0 || len > 9)
        return PIRN_SIM_NONE - 1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return PIRN_SIM_NONE - 1;
        value = value * 10 + (uint32_t)(text[i] - '0');
    }
    return value;
}

uint32_t pirn__sim_told(const char *name)
{
    const char *at = pirn__environment_text("PIRN_SIM");
    size_t len = strlen(name);

    for (; at != NULL && *at != '\0'; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return parse(at + len + 1);
    }
    return 0;
}

static bool is_right(const struct option *option, uint32_t value)
{
    return value == PIRN_SIM_NONE || value <= option->limit;
}

bool pirn__sim_options_are_right(const pirn_sim_options *options)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *option = &options_table[i];

        if (!is_right(option, value_of(options, option)) ||
            !is_right(option, pirn__sim_told(option->name)))
            return false;
    }
    return true;
}

/* Drawing. */

static uint32_t draw(const struct option *option)
{
    uint32_t most = option->most;

    /* Always as many draws. */
    uint32_t none = pirn_sim_below(4);
    uint32_t halvings = pirn_sim_below(12);
    uint32_t value;

    if (option->doubling && most >> halvings > option->least)
        most >>= halvings;
    value = option->least + pirn_sim_below(most - option->least + 1);
    return none < option->none_of_4 ? PIRN_SIM_NONE : value;
}

void pirn__sim_options_draw(pirn_sim_options *options)
{
    uint64_t latency_max_us;

    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *option = &options_table[i];
        uint32_t drawn = draw(option);
        uint32_t value = pirn__sim_told(option->name);

        if (value == 0)
            value = value_of(options, option);
        if (value == 0)
            value = drawn;
        set_value(options, option, value == PIRN_SIM_NONE ? 0 : value);
    }
    /* Few bytes at a time take many journeys: let them be short. */
    latency_max_us = (uint64_t)LATENCY_OF_BYTE_US * options->buffer;
    if (options->latency_us > latency_max_us)
        options->latency_us = (uint32_t)latency_max_us;
}

/* Words. */

static void add_options(struct pirn__lines *lines,
                        const pirn_sim_options *options)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        uint32_t value = value_of(options, &options_table[i]);

        pirn__lines_add(lines, "%s%s=", i == 0 ? "" : " ",
                        options_table[i].name);
        if (value == 0)
            pirn__lines_add(lines, "none");
        else
            pirn__lines_add(lines, "%" PRIu32, value);
    }
}

void pirn__sim_options_print(const pirn_sim_options *options, char *buf,
                             size_t size)
{
    struct pirn__lines lines = {buf, size, 0};

    add_options(&lines, options);
}

const char *pirn__sim_finding_name(enum pirn_sim_finding finding)
{
    static const char *const names[] = {"clean", "check failed", "stuck",
                                        "late",  "livelock",     "died"};

    return (unsigned)finding <= PIRN_SIM_DIED ? names[finding] : "unknown";
}

static void add_finding(struct pirn__lines *lines,
                        const pirn_sim_result *result)
{
    pirn__lines_add(lines,
                    "seed %" PRIu64 ": %s (%s): %s, after %" PRIu64
                    " calls and %" PRIu64 " ms\n",
                    result->seed, pirn__sim_finding_name(result->finding),
                    result->checker, result->text, result->steps,
                    result->ns / 1000000);
    pirn__lines_add(
        lines,
        "repeat with: PIRN_SIM_SEED=%" PRIu64
        " in the environment, and PIRN_SIM_TRACE=1 to see each call\n",
        result->seed);
    pirn__lines_add(lines, "options: ");
    add_options(lines, &result->options);
    pirn__lines_add(lines, "\n");
}

size_t pirn_sim_format(const pirn_sim_result *result, char *buf, size_t size)
{
    struct pirn__lines lines = {buf, buf == NULL ? 0 : size, 0};

    if (lines.size > 0)
        buf[0] = '\0';
    if (result == NULL)
        return 0;
    if (result->finding != PIRN_SIM_CLEAN)
        add_finding(&lines, result);
    pirn__lines_add(&lines,
                    "%" PRIu64 " runs, %" PRIu64 " calls, %" PRIu64
                    " virtual seconds, hash %016" PRIx64 "\n",
                    result->runs, result->all_steps,
                    result->all_ns / 1000000000, result->all_hash);
    return lines.len;
}
