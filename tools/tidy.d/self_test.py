# SPDX-License-Identifier: MIT
"""Each rule finds what it is for, and leaves a good tree alone."""
import pathlib
import tempfile

from rules import findings, rules
from tree import Tree

HEAD = "/* SPDX-License-Identifier: MIT */\n/* What this is for. */\n"

GOOD_HEADER = HEAD + """\
#ifndef PIRN_GOOD_H
#define PIRN_GOOD_H

#include <stdint.h>

#include <pirn/base.h>

#define pirn_go(fn, arg) pirn_go_at((fn), (arg), PIRN_SITE)

/* Do it.
 *
 * Thread    any
 * Suspends  yes
 * Cancel    nothing is lost
 * Errors    -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_good_do(int x);
PIRN_API PIRN_MUST_CHECK int
pirn_good_do_two(int x);

/* As pirn_good_do(). */
PIRN_API PIRN_MUST_CHECK int pirn_good_do_three(int x);

/* Called with each. */
typedef bool pirn_good_fn(void *arg, const void *item);
typedef void pirn_good_frame_fn(pirn_frame *frame);

/* How full it is. */
typedef struct pirn_good_fill {
    int part; /* of the whole */
} pirn_good_fill;
PIRN_API pirn_good_fill pirn_good_get_fill(void);

/* Look at it. */
PIRN_API PIRN_MUST_CHECK bool pirn_good_is(void);

#endif /* PIRN_GOOD_H */
"""

GOOD_SOURCE = HEAD + """\
#include <errno.h>

#include "base/atomic.h"
#include "time/good.h"

/* A string with // in it, and one with errno: neither counts. */
static const char *text = "https://errno malloc(";

int pirn__good_find(struct good *good)
{
    /* acquire [good.head]: sees the node that push() published. */
    for (void *at = pirn__load(&good->head, acquire); at; at = next(at)) {
        if (matches(at))
            return 0;
    }
    if (good->closed)
        return -ENOENT;
    else
        /* relaxed: a statistic. */
        pirn__add(&good->misses, 1, relaxed);

    /* release [good.head]: publishes the node.  The answer says whether the
     * list was empty. */
    if (good->is_open &&
        pirn__swap(&good->head, good->spare, release) == NULL)
        goto fail_lock;
    do {
        next = spend(word);
        /* acq_rel: release [good.word] publishes what was spent, and acquire
         * [good.word] sees what others did. */
    } while (!pirn__cas_weak(&good->word, &word, next, acq_rel, relaxed));
    good->alloc->give(good, 1);
    /* relaxed: constant while we hold it. */
    return (struct id){pirn__load(&good->id, relaxed)};

fail_lock:
    unlock(good);
    return -EBUSY;
}
"""

GOOD = {
    "include/pirn/good.h": GOOD_HEADER,
    "src/time/good.c": GOOD_SOURCE,
    "src/time/good_test.c": HEAD + '#include <unistd.h>\n',
    "src/time/CMakeLists.txt": "# SPDX-License-Identifier: MIT\n"
                               "pirn_sources(good.c)\n"
                               "pirn_tests(good_test.c)\n",
    "README.md": "Start with `pirn_good_do()`, `pirn_good_*` and "
                 "`src/time/good.c`.\n",
}


def _source(body):
    return {"src/time/bad.c": HEAD + body}


def _body(statement):
    return _source("void pirn__bad_do(void)\n{\n" + statement + "\n}\n")


def _header(body):
    return {"include/pirn/bad.h": HEAD + "#ifndef PIRN_BAD_H\n"
            "#define PIRN_BAD_H\n\n" + body + "\n#endif\n"}


# For each rule the trees in which it must find something.
BAD = {
    "layer_includes": [_source('#include "net/tcp.h"\n'),
                       {"src/misplaced/bad.c": HEAD}],
    "include_paths": [_source('#include "bad.h"\n')],
    "public_includes": [_header("#include <stdio.h>\n"),
                        _header('#include "pirn/base.h"\n')],
    "users_includes": [{"examples/bad.c": HEAD + '#include "base/list.h"\n'}],
    "banned_includes": [_source("#include <stdatomic.h>\n"),
                        _source("#include <pthread.h>\n")],
    "no_grab_bags": [{"src/base/utils.c": HEAD}],
    "thread_locals": [_source("static _Thread_local int x;\n"),
                      _source("static __thread int x;\n")],
    "errno_only_in_sys": [_body("    rc = -errno;")],
    "bare_atomics": [_source("static _Atomic int x;\n"),
                     _body("    __atomic_fetch_add(&x, 1, 5);"),
                     {"tests/stress/bad.c": HEAD + "_Atomic int x;\n"}],
    "allocation_only_in_sys": [_body("    x = malloc(4);"),
                               _body("    free (x);")],
    "no_sleeping": [_body("    usleep(4);"),
                    {"src/time/bad_test.c": HEAD + "int x = sleep(1);\n"},
                    {"tests/regress/bad.c": HEAD + "int x = sleep(1);\n"}],
    "clocks_only_in_sys": [_body("    x = time(NULL);")],
    "gnu_source": [_source("#define _GNU_SOURCE\n")],
    "unfinished": [_source("/* TO" "DO: more. */\n"),
                   {"docs/bad.md": "FIX" "ME\n"}],
    "typedef_names": [_source("typedef struct bad bad_t;\n"),
                      _source("typedef struct { int x; } bad_t;\n"),
                      _source("typedef int (*bad_t)(void);\n")],
    "private_fields": [
        {"examples/bad.c": HEAD + "int f(void) { return task->state_; }\n"},
        {"bench/bad.c": HEAD + "int f(void) { return op.state_; }\n"},
        {"docs/guide/bad.md": "Then look at `task->state_`.\n"}],
    "order_comments": [
        _body("    pirn__store(&x, 1, relaxed);"),
        _body("    /* Now it is set. */\n    pirn__store(&x, 1, relaxed);"),
        _body("    /* relaxed: private. */\n\n"
              "    pirn__store(&x, 1, relaxed);"),
        _body("    /* relaxed: private. */\n    y = 1;\n"
              "    pirn__store(&x, 1, relaxed);"),
        _body("    /* relaxed: private. */\n    pirn__store(&x, 1, release);"),
        _body("    /* relaxed: private. */\n"
              "    pirn__cas(&x, &y, 1, acquire, relaxed2);")],
    "order_tags": [
        _body("    /* release: publishes. */\n    pirn__store(&x, 1, release);"),
        _body("    /* relaxed [bad.x]: private. */\n"
              "    pirn__store(&x, 1, relaxed);")],
    "pair_tags": [
        _body("    /* acq_rel [bad.x]: p. */\n    pirn__swap(&x, 1, acq_rel);"),
        _body("    /* release [bad.x]: p. */\n    pirn__store(&x, 1, release);\n"
              "    /* release [bad.x]: p. */\n    pirn__store(&x, 2, release);"),
        _body("    /* acquire [bad.x]: p. */\n    y = pirn__load(&x, acquire);\n"
              "    /* acquire [bad.x]: p. */\n    y = pirn__load(&x, acquire);")],
    "license_tag": [{"src/time/bad.c": "/* What this is for. */\n"},
                    {"scripts/bad": "#!/bin/sh\n"}],
    "file_comment": [{"src/time/bad.c": "/* SPDX-License-Identifier: MIT */\n"
                                        "int x;\n"}],
    "line_comments": [_source("int x; // why\n")],
    "line_width": [_source("int x" + "x" * 100 + ";\n")],
    "white_space": [_source("int x; \n"), _source("\tint x;\n"),
                    _source("int x;")],
    "lower_case_macros": [_source("#define min(a, b) a\n"),
                          _header("#define pirn_min(a, b) a\n")],
    "include_guards": [{"src/time/bad.h": HEAD + "int x;\n"}],
    "labels": [_body("    goto fail1;\nfail1:\n    y();"),
               _body("    goto out;\nout:\n    y();"),
               _body("fail_again:\n    y();\n    goto fail_again;")],
    "described": [_header("PIRN_API void pirn_bad(void);\n"),
                  _header("/* Far away. */\n\n"
                          "PIRN_API void pirn_bad(void);\n")],
    "error_lists": [
        _header("/* Do. */\nPIRN_API PIRN_MUST_CHECK int pirn_bad(void);\n"),
        _header("/* Do.\n *\n * Errors    -EIO  no\n */\n"
                "PIRN_API PIRN_MUST_CHECK int pirn_bad(void);\n\n/* Do. */\n"
                "PIRN_API PIRN_MUST_CHECK ssize_t\npirn_bad_two(void);\n")],
    "codes_are_checked": [
        _header("/* Do.\n *\n * Errors    -EIO  no\n */\n"
                "PIRN_API int pirn_bad(void);\n")],
    "label_order": [
        _header("/* Do.\n *\n * Errors    -EIO  no\n * Thread    any\n */\n"
                "PIRN_API PIRN_MUST_CHECK int pirn_bad(void);\n")],
    "cancel_lines": [
        _header("/* Do.\n *\n * Suspends  yes\n * Errors    -EIO  no\n */\n"
                "PIRN_API PIRN_MUST_CHECK int pirn_bad(void);\n"),
        _header("/* Do.\n *\n * Thread    any\n */\n"
                "PIRN_API void pirn_bad_init(pirn_bad_op *op);\n")],
    "callback_order": [
        _header("typedef int pirn_bad_fn(const void *item, void *arg);\n"),
        _header("typedef int\npirn_bad_fn(int x,\n            void *arg);\n"),
        _header("typedef void pirn_bad_fn(void *item, void *ctx);\n")],
    "header_size": [_header("int x;\n" * 401)],
    "names_exist": [{"README.md": "See `pirn_nothing()`.\n"},
                    {"docs/architecture.md": "See `pirn__nothing_*`.\n"}],
    "places_exist": [{"README.md": "See `src/nothing.c`.\n"}],
    "tests_beside": [
        _body("    y();"),
        {"tools/tidy.d/tested-elsewhere": "src/nothing.c: in the air\n"},
        {"tools/tidy.d/tested-elsewhere": "src/time/good.c: elsewhere\n"}],
    "built": [{"src/time/other.c": HEAD},
              {"src/time/other_test.c": HEAD}],
}


def _found(files, only=None):
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name, text in files.items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(findings(Tree(top), only))


def run():
    failures = [f"a good tree: {finding}" for finding in _found(GOOD)]
    names = [name for name, _ in rules()]
    for name in names:
        plants = BAD.get(name, [])
        if not plants:
            failures.append(f"{name}: no violation to try it with")
        for number, plant in enumerate(plants, 1):
            paths = {path for path, *_ in _found({**GOOD, **plant}, name)}
            if not paths:
                failures.append(f"{name}: violation {number} is not found")
    failures += [f"{name}: no such rule" for name in BAD if name not in names]
    for failure in failures:
        print(failure)
    print(f"{len(names)} rules, {len(failures)} failures")
    return 1 if failures else 0
