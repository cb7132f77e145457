# SPDX-License-Identifier: MIT
"""Words that may stand only in certain files."""
import re

ALLOCATION = (r"(?<![\w.>])(malloc|calloc|realloc|reallocarray|free|strdup|"
              r"strndup|aligned_alloc|posix_memalign)\s*\(")
SLEEPING = r"(?<![\w.>])(sleep|usleep|nanosleep|clock_nanosleep)\s*\("
CLOCKS = r"(?<![\w.>])(time|clock_gettime|gettimeofday|clock)\s*\("


def thread_locals(tree):
    for source in tree.c_files("src", "include"):
        if source.path != "src/sys/tls.c" and not source.is_test():
            for line, match in source.matches(
                    r"\b(_Thread_local|__thread|thread_local)\b"):
                yield (source.path, line,
                       f"{match[1]}: the one thread-local is in src/sys/tls.c")


def errno_only_in_sys(tree):
    for source in tree.library():
        if not source.is_under("src/sys"):
            for line, _ in source.matches(r"\berrno\b(?!\.h)"):
                yield (source.path, line,
                       "errno is read in src/sys only; pass the code on")


def bare_atomics(tree):
    for source in tree.c_files("src", "include", "tests"):
        if source.path == "src/base/atomic.h":
            continue
        for line, match in source.matches(r"\b_Atomic\b|\batomic_\w+\s*\("):
            yield (source.path, line,
                   f"{match[0]}: use PIRN_ATOMIC and base/atomic.h")
        if not source.is_test():
            for line, match in source.matches(r"\b__(atomic|sync)_\w+"):
                yield (source.path, line,
                       f"{match[0]}: atomics are in base/atomic.h only")


def allocation_only_in_sys(tree):
    for source in tree.library():
        if not source.is_under("src/sys"):
            for line, match in source.matches(ALLOCATION):
                yield (source.path, line,
                       f"{match[1]}(): use the allocator of the runtime")


def no_sleeping(tree):
    for source in tree.c_files("src", "tests"):
        if not source.is_under("tests/stress", "tests/engine"):
            for line, match in source.matches(SLEEPING):
                yield (source.path, line,
                       f"{match[1]}(): only tests/stress may wait for real "
                       "time; take the time as an argument")


def clocks_only_in_sys(tree):
    for source in tree.library():
        if not source.is_under("src/sys"):
            for line, match in source.matches(CLOCKS):
                yield (source.path, line,
                       f"{match[1]}(): the clock is in pirn__sys")


def gnu_source(tree):
    for source in tree.c_files():
        if (source.is_under("src/sys", "tests", "tools", "bench", "examples")
                or source.is_test()):
            continue
        for line, _ in source.matches(r"\b_GNU_SOURCE\b"):
            yield source.path, line, "_GNU_SOURCE is for src/sys only"


def unfinished(tree):
    pattern = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    for source in tree.files:
        for number, line in enumerate(source.lines, 1):
            match = pattern.search(line)
            if match and not source.is_under("tools/tidy.d"):
                yield source.path, number, f"{match[1]}: do it, or file it"


def typedef_names(tree):
    """POSIX owns the names that end in _t."""
    for source in tree.c_files():
        for line, match in source.matches(
                r"\btypedef\b[^;{}]*?\b(\w+_t)\s*(?:;|\)\s*\()"):
            yield source.path, line, f"{match[1]}: no _t at the end"
        for line, match in source.matches(r"}\s*(\w+_t)\s*;"):
            yield source.path, line, f"{match[1]}: no _t at the end"


def private_fields(tree):
    """A trailing underscore says: the library's."""
    for source in tree.files:
        if not (source.is_under("tools", "examples", "bench", "docs")
                or source.path == "README.md"):
            continue
        if source.is_c():
            text, pattern = source.code, r"(?:->|\.)\s*([a-z]\w*_)\b"
        elif source.path.endswith(".md"):
            text, pattern = source.text, r"->([a-z]\w*_)\b"
        else:
            continue
        for line, match in source.matches(pattern, text):
            yield (source.path, line,
                   f"{match[1]} is the library's; use a function")
