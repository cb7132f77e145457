# SPDX-License-Identifier: MIT
"""What the tree says about itself is true."""
import re

DOCUMENTS = ["README.md", "docs/architecture.md"]
ELSEWHERE = "tools/tidy.d/tested-elsewhere"
FUNCTION = re.compile(r"(?m)^(?!static\b|typedef\b)[A-Za-z_][^;{}()#=]*"
                      r"\b\w+\s*\([^;{}]*\)[^;{}()]*\n{")
PLACES = r"`((?:src|include|tests|tools|bench|examples|docs|scripts)/[\w./-]+)`"


def _documents(tree):
    for source in tree.files:
        if source.path in DOCUMENTS or (source.is_under("docs/guide")
                                        and source.path.endswith(".md")):
            yield source


def names_exist(tree):
    for source in _documents(tree):
        for line, match in source.matches(r"`(pirn_\w+)(\*?)(?:\(\))?`",
                                          source.text):
            name, star = match[1], match[2]
            is_known = (any(n.startswith(name) for n in tree.names) if star
                        else name in tree.names)
            if not is_known:
                yield source.path, line, f"{name}{star} does not exist"


def places_exist(tree):
    for source in _documents(tree):
        for line, match in source.matches(PLACES, source.text):
            if not tree.has(match[1]):
                yield source.path, line, f"{match[1]} does not exist"


def _elsewhere(tree):
    """{file: line} of the list; each line is `file: where it is tested`."""
    listed = {}
    for source in tree.files:
        if source.path == ELSEWHERE:
            for number, line in enumerate(source.lines, 1):
                match = re.match(r"([\w/.-]+):\s*\S", line)
                if match:
                    listed[match[1]] = number
    return listed


def tests_beside(tree):
    listed = _elsewhere(tree)
    for source in tree.library():
        if not source.path.endswith(".c"):
            continue
        has_test = tree.has(source.path[:-2] + "_test.c")
        if source.path in listed and has_test:
            yield (ELSEWHERE, listed[source.path],
                   f"{source.path} has a test beside it: take it off the list")
        elif (source.path not in listed and not has_test
              and FUNCTION.search(source.code)):
            yield (source.path, 1,
                   f"no {source.path.split('/')[-1][:-2]}_test.c beside it, "
                   f"and {ELSEWHERE} gives no reason")
    for path, number in listed.items():
        if not tree.has(path):
            yield ELSEWHERE, number, f"{path} does not exist"


def built(tree):
    """Each source and test stands in its folder's CMakeLists.txt."""
    lists = {s.path: s.text for s in tree.files
             if s.path.endswith("CMakeLists.txt")}
    for source in tree.files:
        if not (source.is_under("src") and source.path.endswith(".c")):
            continue
        folder, name = source.path.rsplit("/", 1)
        text = lists.get(folder + "/CMakeLists.txt")
        if text is None or name.startswith("switch_ucontext"):
            continue
        if not re.search(rf"(?<![\w.-]){re.escape(name)}\b", text):
            yield source.path, 1, f"not built: add it to {folder}"
