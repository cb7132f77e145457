/* SPDX-License-Identifier: MIT */
/* src/base/hint.h - what the compiler cannot know about how often code runs.
 *
 * With many connections the system pushes our code out of the nearer caches
 * between two requests, so what counts is how many lines of it a request runs
 * through.  A branch that ends in a cold function is taken for a rare one, and is
 * laid out of the way of the usual one.
 */
#ifndef PIRN_BASE_HINT_H
#define PIRN_BASE_HINT_H

/* A function that is called seldom. */
#define PIRN__COLD __attribute__((cold, noinline))

/* A function that is called where every task passes, from more places than the
 * compiler likes to repeat it in. */
#define PIRN__HOT_INLINE inline __attribute__((always_inline))

#endif /* PIRN_BASE_HINT_H */
