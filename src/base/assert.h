/* SPDX-License-Identifier: MIT */
/* src/base/assert.h - what stops the process, and with which words.
 *
 * PIRN_REQUIRE  the caller broke a memory rule (double close, moved object)
 * PIRN_ASSERT   we broke an invariant of our own
 * PIRN_DASSERT  the same, where checking costs; only with PIRN_DEBUG
 *
 * All three print file, line, the rule and the current task's name, and abort.
 * What a caller may legitimately get wrong is an error code instead.
 */
#ifndef PIRN_BASE_ASSERT_H
#define PIRN_BASE_ASSERT_H

#include <pirn/base.h>

PIRN_NORETURN void pirn__abort_at(const char *site, const char *kind,
                                  const char *rule);

/* Who is running, for the message above; registered by an upper layer.  May
 * return NULL. */
typedef const char *pirn__who_fn(void);
void pirn__abort_set_who(pirn__who_fn *who);

#define PIRN_REQUIRE(condition, rule) \
    (__builtin_expect(!(condition), 0) \
         ? pirn__abort_at(PIRN_SITE, "broken rule", (rule)) \
         : (void)0)
#define PIRN_ASSERT(condition) \
    (__builtin_expect(!(condition), 0) \
         ? pirn__abort_at(PIRN_SITE, "internal error", #condition) \
         : (void)0)
#ifdef PIRN_DEBUG
#define PIRN_DASSERT(condition) PIRN_ASSERT(condition)
#else
#define PIRN_DASSERT(condition) ((void)sizeof(condition))
#endif

#endif /* PIRN_BASE_ASSERT_H */
