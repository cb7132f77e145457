# SPDX-License-Identifier: MIT
"""How the text looks."""
import re

MAX_WIDTH = 100

# Calls that record where they stand must be macros.
SPAWN_MACRO = re.compile(r"pirn_(go|spawn|run)(_\w+)?$")

LICENSED = (".c", ".h", ".cc", ".S", ".py", ".sh", ".cmake", ".in", ".txt")


def license_tag(tree):
    for source in tree.files:
        if source.path in ("src/exports.txt", "cmake/pirn.pc.in"):
            continue
        name = source.path.split("/")[-1]
        if name.endswith(LICENSED) or name == "Makefile" or (
                source.text.startswith("#!")):
            if "SPDX-License-Identifier: MIT" not in source.text[:200]:
                yield source.path, 1, "start with the SPDX tag"


def file_comment(tree):
    for source in tree.c_files():
        if len(source.comments) < 2 or source.comments[1].line > 3:
            yield (source.path, 2,
                   "say below the SPDX tag what the file is for")


def line_comments(tree):
    for source in tree.c_files():
        for line in source.line_comments:
            yield source.path, line, "write /* */"


def line_width(tree):
    for source in tree.files:
        if source.path.endswith((".md", ".json", ".svg", ".txt")):
            continue
        for number, line in enumerate(source.lines, 1):
            if len(line) > MAX_WIDTH:
                yield (source.path, number,
                       f"{len(line)} columns: break it, at 80 if it reads well")


def white_space(tree):
    for source in tree.files:
        if source.path.endswith(".md"):
            continue
        for number, line in enumerate(source.lines, 1):
            if line != line.rstrip():
                yield source.path, number, "space at the end of the line"
            if "\t" in line and source.is_c():
                yield source.path, number, "four spaces, no tab"
        if source.text and not source.text.endswith("\n"):
            yield source.path, len(source.lines), "no line end at the end"


def lower_case_macros(tree):
    for source in tree.c_files():
        # The calls of base, and what stands in for them in the model build.
        if source.path in ("src/base/atomic.h", "src/base/lock.h",
                           "tests/engine/explore_atomic.h"):
            continue
        if source.is_under("tests/headers"):
            continue
        for line, match in source.matches(
                r"(?m)^[ \t]*#[ \t]*define[ \t]+([a-z]\w*)"):
            if (source.is_under("include/pirn")
                    and SPAWN_MACRO.match(match[1])):
                continue
            yield source.path, line, f"{match[1]}: macros are upper case"


def include_guards(tree):
    for source in tree.c_files("include", "src", "tests"):
        if not source.path.endswith(".h") or source.is_under(
                "tests/headers/prelude"):
            continue
        if not re.search(r"#ifndef (PIRN_\w+)\n#define \1\n", source.text):
            yield source.path, 1, "guard the header: #ifndef PIRN_..._H"


def labels(tree):
    """goto goes forward, to a label named for what it releases."""
    for source in tree.c_files():
        for start, end in source.functions:
            body = source.code[start:end]
            for match in re.finditer(r"\bgoto\s+(\w+)\s*;", body):
                line = source.line_at(start + match.start())
                name = match[1]
                target = re.search(rf"(?m)^\s*{name}\s*:", body)
                if not re.fullmatch(r"fail_[a-z_]*[a-z]", name):
                    yield (source.path, line,
                           f"{name}: name the label fail_<what it releases>")
                if target and target.start() < match.start():
                    yield source.path, line, f"goto {name} goes backward"
