# SPDX-License-Identifier: MIT
"""The tables beside this file: lines of text, `#` begins a comment."""


def lines_of(path):
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def read_models(top):
    """src/x/y.c: [folder/stem, ...]"""
    models = {}
    for line in lines_of(top / "tools/mutate.d/models"):
        path, _, names = line.partition(":")
        models[path] = names.split()
    return models


def read_looks(top):
    """[(path, text, replacement)]; the text stands once in the file."""
    lines = [line.strip() for line in lines_of(top / "tools/mutate.d/looks")]
    return list(zip(lines[0::3], lines[1::3], lines[2::3]))


def read_equivalent(top):
    """{name of a mutant: why it is equivalent}"""
    reasons = {}
    name = None
    for line in lines_of(top / "tools/mutate.d/equivalent"):
        if line.startswith(" "):
            reasons[name] += line.strip() + " "
        else:
            name = line.strip()
            reasons[name] = ""
    return reasons
