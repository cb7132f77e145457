# SPDX-License-Identifier: MIT
"""Every atomic operation says why its order is right.

The comment directly above the statement starts with the order.  What
synchronises carries a [file.what] tag, which its other half carries too.
"""
import bisect
import collections
import functools
import re

CALL = re.compile(r"\bpirn__(load|store|swap|add|sub|or|and|cas|cas_weak)\s*\(")
ORDER = r"(relaxed|acquire|release|acq_rel|seq_cst)"
TAG = r"\[[a-z0-9_]+\.[a-z0-9_.]+\]"
HEAD = re.compile(rf"{ORDER}\b((?:[\s,]*{TAG})*)")
TAGGED = re.compile(rf"\b{ORDER}(?:\s+on\s+failure)?((?:[\s,]*{TAG})+)")

SIDES = {"acquire": {"acquire"}, "release": {"release"}, "relaxed": set(),
         "acq_rel": {"acquire", "release"}, "seq_cst": {"acquire", "release"}}


@functools.lru_cache(maxsize=None)
def _boundaries(source):
    """Offsets after which a statement can start: ; { } outside parentheses and
    initialisers.  The end of a do block belongs to its `while`."""
    cuts, depth, braces = [0], 0, []
    for match in re.finditer(r"[(){};]", source.code):
        char, place = match.group(), match.start()
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif char == "{":
            is_value = _opens_value(source.code, place, braces)
            braces.append(is_value)
            if depth == 0 and not is_value:
                cuts.append(match.end())
        elif char == "}":
            was_value = braces.pop() if braces else False
            is_do = re.match(r"}[ \t]*while\b", source.code[place:])
            if depth == 0 and not was_value and not is_do:
                cuts.append(match.end())
        elif depth == 0:
            cuts.append(match.end())
    cuts.append(len(source.code))
    return cuts


def _opens_value(code, place, braces):
    """Whether a brace opens an initialiser or a compound literal, which the
    layout writes as `(type){`."""
    if code[:place].endswith(")"):
        return True
    before = code[max(0, place - 80):place].rstrip()
    return before.endswith(("=", ",", "(")) or bool(
        braces and braces[-1] and before.endswith("{"))


def _closing(code, start):
    """The offset of the parenthesis that closes the one before `start`."""
    depth = 1
    for match in re.compile(r"[()]").finditer(code, start):
        depth += 1 if match.group() == "(" else -1
        if depth == 0:
            return match.start()
    return len(code)


def _order_of(source, match):
    """The first order among the last arguments of a call."""
    arguments = source.code[match.end():_closing(source.code, match.end())]
    tail = arguments.split(",")
    count = 2 if match[1].startswith("cas") else 1
    for argument in tail[-count:]:
        word = argument.strip()
        if word in SIDES:
            return word
    return None


def _statements(source):
    """The atomic calls of each statement: {(start, end): [(call, order)]}."""
    cuts = _boundaries(source)
    found = collections.OrderedDict()
    for match in CALL.finditer(source.code):
        line_start = source.code.rfind("\n", 0, match.start()) + 1
        if source.code[line_start:match.start()].lstrip().startswith("#"):
            continue
        i = bisect.bisect_right(cuts, match.start())
        found.setdefault((cuts[i - 1], cuts[i]), []).append(
            (match, _order_of(source, match)))
    return found


def _comments_above(source, start, call_start):
    """Comments between the last statement and the call, with nothing but one
    line end between them and the code below."""
    for comment in source.comments:
        if start <= comment.start and comment.end <= call_start:
            gap = re.match(r"\s*", source.text[comment.end:]).group()
            if gap.count("\n") <= 1:
                yield comment


def _sources(tree):
    for source in tree.library():
        if source.path != "src/base/atomic.h":
            yield source


def order_comments(tree):
    for source in _sources(tree):
        for (start, _), calls in _statements(source).items():
            orders = {order for _, order in calls}
            first = calls[0][0]
            heads = [HEAD.match(comment.text) for comment in
                     _comments_above(source, start, first.start())]
            heads = [head for head in heads if head]
            line = source.line_at(first.start())
            if not heads:
                yield (source.path, line,
                       "say directly above why "
                       f"{'/'.join(sorted(map(str, orders)))} is right: "
                       "/* <order> [file.what]: why */")
            elif not any(head[1] in orders for head in heads):
                yield (source.path, line,
                       f"the comment says {heads[-1][1]}, the code "
                       + "/".join(sorted(map(str, orders))))


def order_tags(tree):
    """What synchronises names its pair; what is relaxed has none."""
    for source in _sources(tree):
        for (start, _), calls in _statements(source).items():
            first = calls[0][0]
            for comment in _comments_above(source, start, first.start()):
                head = HEAD.match(comment.text)
                if not head:
                    continue
                line = source.line_at(first.start())
                if head[1] == "relaxed" and head[2]:
                    yield (source.path, line,
                           "relaxed orders nothing: take the tag away")
                elif head[1] != "relaxed" and not TAGGED.search(comment.text):
                    yield (source.path, line,
                           f"{head[1]} needs a [file.what] tag that its other "
                           "half carries too")


def pair_tags(tree):
    places = collections.defaultdict(list)
    for source in _sources(tree):
        for comment in source.comments:
            for match in TAGGED.finditer(comment.text):
                for tag in re.findall(TAG, match[2]):
                    places[tag].append((source.path, comment.line, match[1]))
    for tag, uses in places.items():
        path, line, _ = uses[0]
        sides = set().union(*(SIDES[order] for _, _, order in uses))
        if len(uses) < 2:
            yield path, line, f"{tag} stands here only: tag its other half"
            continue
        for side in sorted({"acquire", "release"} - sides):
            yield path, line, f"{tag} has no {side} side"
