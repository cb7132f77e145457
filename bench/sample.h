/* SPDX-License-Identifier: MIT */
/* bench/sample.h - what the benchmark programs share: a clock, the form in
 * which a measured value leaves the program, and one way to give up.
 *
 * A program prints one JSON object a line for each value; bench/run collects
 * them over several runs and makes the table.
 */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* Monotonic nanoseconds. */
uint64_t sample_now_ns(void);

/* Nanoseconds that this thread has run: for work that never waits, so that what
 * else the machine does stays out as far as it can.  A system call. */
uint64_t sample_cpu_ns(void);

/* Print one value: "task/yield_async_1", "ns", 12.5. */
void sample_print(const char *name, const char *unit, double value);

/* Print something that explains a value and has no target. */
void sample_note(const char *name, const char *text);

/* End the program with a message unless rc >= 0: a benchmark that could not do
 * its work must not leave a number behind. */
void sample_require(int rc, const char *what);

/* True if `word` is among the arguments of the program. */
bool sample_has_flag(int argc, char **argv, const char *word);

/* With `--only NAME` among the arguments of the program, sample_is_wanted() is
 * true for the row of that name alone; else for all. */
void sample_choose(int argc, char **argv);
bool sample_is_wanted(const char *name);

/* The number after `word` among the arguments, else `fallback`. */
uint64_t sample_get_number(int argc, char **argv, const char *word,
                           uint64_t fallback);

#endif /* BENCH_SAMPLE_H */
