# SPDX-License-Identifier: MIT
"""All rules, gathered from the modules beside this one."""
import inspect

import atomics
import documents
import layers
import public_headers
import style
import words

MODULES = [layers, words, atomics, style, public_headers, documents]


def rules():
    """Name and function of each rule: the public generators of a module."""
    for module in MODULES:
        for name, function in vars(module).items():
            if (inspect.isgeneratorfunction(function)
                    and function.__module__ == module.__name__
                    and not name.startswith("_")):
                yield name, function


def findings(tree, only=None):
    for name, rule in rules():
        if only in (None, name):
            for path, line, advice in rule(tree):
                yield path, line, name, advice
