# SPDX-License-Identifier: MIT
"""Who may include what."""
import re

# Lowest first: a file includes from its own folder and those before it.
LAYERS = ["base", "sys", "task", "time", "reactor", "sched", "fiber", "sync", "channel",
          "scope", "stream", "blocking", "net", "io", "fs", "process", "signal",
          "service", "observe", "testing"]

PUBLIC_MAY_INCLUDE = {"stdint.h", "stddef.h", "stdbool.h", "sys/types.h"}

NOWHERE = {"stdatomic.h", "threads.h", "alloca.h", "setjmp.h"}
ONLY_IN_SYS = {"pthread.h", "unistd.h", "semaphore.h", "sys/syscall.h",
               "sched.h", "sys/mman.h", "sys/eventfd.h", "sys/timerfd.h"}

GRAB_BAGS = re.compile(r"^(common|utils?|misc|helpers?|internal|pirn)\.[ch]$")


def _includes(source):
    for number, line in enumerate(source.lines, 1):
        match = re.match(r'\s*#\s*include\s+(["<])([^">]+)', line)
        if match:
            yield number, match[1] == '"', match[2]


def layer_includes(tree):
    for source in tree.library():
        layer = source.path.split("/")[1]
        if layer not in LAYERS:
            yield source.path, 1, f"unknown layer '{layer}'"
            continue
        below = LAYERS[:LAYERS.index(layer) + 1]
        for number, is_quoted, name in _includes(source):
            # The one door through which the model build swaps the atomics.
            if (source.path, name) == ("src/base/atomic.h",
                                       "engine/explore_atomic.h"):
                continue
            if is_quoted and name.split("/")[0] not in below:
                yield (source.path, number,
                       f'{layer} may not include "{name}"; only from '
                       + ", ".join(below))


def include_paths(tree):
    """Quoted includes start at src/ and name the folder."""
    for source in tree.c_files("src"):
        for number, is_quoted, name in _includes(source):
            if is_quoted and "/" not in name:
                yield (source.path, number,
                       f'write the folder too: "folder/{name}"')


def public_includes(tree):
    for source in tree.public_headers():
        for number, is_quoted, name in _includes(source):
            if is_quoted:
                yield source.path, number, f"include <{name}> instead"
            elif (not name.startswith("pirn/")
                  and name not in PUBLIC_MAY_INCLUDE):
                yield (source.path, number,
                       f"<{name}> is not for public headers; declare forward")


def users_includes(tree):
    """Programs use the library as everybody does."""
    for source in tree.c_files("examples", "tools"):
        for number, is_quoted, name in _includes(source):
            if is_quoted and name.split("/")[0] in LAYERS:
                yield (source.path, number,
                       f'"{name}" is internal; use what <pirn/...> offers')


def banned_includes(tree):
    for source in tree.c_files("src", "include"):
        for number, _, name in _includes(source):
            if name in NOWHERE:
                yield source.path, number, f"<{name}> is not used here"
            elif (name in ONLY_IN_SYS and not source.is_test()
                  and not source.is_under("src/sys")):
                yield source.path, number, f"<{name}> is for src/sys only"


def no_grab_bags(tree):
    """A helper lives with its noun."""
    for source in tree.c_files("src"):
        if GRAB_BAGS.match(source.path.split("/")[-1]):
            yield source.path, 1, "give the file a noun of its own"
