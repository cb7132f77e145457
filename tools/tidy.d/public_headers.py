# SPDX-License-Identifier: MIT
"""The headers are the reference: every public function is described."""
import re

LABELS = ["Thread", "Suspends", "Cancel", "Owns", "Errors"]
LABEL_LINE = re.compile(r"(?m)^(Thread|Suspends|Cancel|Owns|Errors)\s{2,}\S")

# "As pirn_fd_release()", "The same with options": the list stands there.
REFERENCE = re.compile(r"\b[Aa]s\s+pirn_\w+\(\)|^The same\b")

# What these return is no error code.
NO_CODE = re.compile(r"(\benum\b|\bbool\b|\*|\bpirn_waker\b|\bpirn_cx\b|"
                     r"\bpirn_deadline\b|\buint\d+_t\b|\bsize_t\b)")

MAX_LINES = 400


def _declarations(source):
    """(offset, text, comment) of each function declared PIRN_API.  The comment
    stands above, with other declarations between but no blank line."""
    outer = [c for c in source.comments if c.start == 0
             or source.text[c.start - 1] == "\n"]
    for match in re.finditer(r"(?m)^PIRN_API\b[^;]*;", source.code):
        above = None
        for comment in outer:
            if comment.end <= match.start():
                above = comment
        if above and "\n\n" in source.text[above.end:match.start()]:
            above = None
        yield match.start(), match.group(), above


def _name(declaration):
    match = re.search(r"\b(pirn_\w+)\s*\(", declaration)
    return match[1] if match else declaration.split()[-1].rstrip(";")


def _returns_code(declaration):
    head = declaration[:declaration.index(_name(declaration))]
    return "PIRN_MUST_CHECK" in head and not NO_CODE.search(head)


def described(tree):
    for source in tree.public_headers():
        for offset, declaration, comment in _declarations(source):
            if comment is None:
                yield (source.path, source.line_at(offset),
                       f"{_name(declaration)}: describe it directly above")


def error_lists(tree):
    for source in tree.public_headers():
        for offset, declaration, comment in _declarations(source):
            if comment is None or not _returns_code(declaration):
                continue
            if ("Errors" not in LABEL_LINE.findall(comment.text)
                    and not REFERENCE.search(comment.text)):
                yield (source.path, source.line_at(offset),
                       f"{_name(declaration)}: list what it returns under "
                       "'Errors'")


def codes_are_checked(tree):
    """A result that lists errors must not be dropped unseen."""
    for source in tree.public_headers():
        for offset, declaration, comment in _declarations(source):
            if comment is None or "(" not in declaration:
                continue
            head = declaration[:declaration.index(_name(declaration))]
            if (re.search(r"\b(int|ssize_t)\s*$", head)
                    and "PIRN_MUST_CHECK" not in head
                    and "Errors" in LABEL_LINE.findall(comment.text)
                    and not _is_result_getter(declaration, source)):
                yield (source.path, source.line_at(offset),
                       f"{_name(declaration)}: can fail, so PIRN_MUST_CHECK")


def _is_result_getter(declaration, source):
    """x_rc() and x_result() beside x_init() read what has happened already."""
    return re.search(r"\(\s*const ", declaration) is not None


def label_order(tree):
    for source in tree.public_headers():
        seen = set()
        for _, declaration, comment in _declarations(source):
            if comment is None or comment.start in seen:
                continue
            seen.add(comment.start)
            found = LABEL_LINE.findall(comment.text)
            if found != sorted(set(found), key=LABELS.index):
                yield (source.path, comment.line,
                       "labels once each, in the order " + ", ".join(LABELS))


def cancel_lines(tree):
    """What can be given up says what has happened then."""
    for source in tree.public_headers():
        for offset, declaration, comment in _declarations(source):
            if comment is None or comment.text.startswith("As pirn_"):
                continue
            waits = re.search(r"(?m)^Suspends\s+yes", comment.text)
            operation = re.search(r"\bpirn_\w+_init\(\s*pirn_\w+_op \*op\b",
                                  declaration)
            if ((waits or operation)
                    and "Cancel" not in LABEL_LINE.findall(comment.text)):
                yield (source.path, source.line_at(offset),
                       f"{_name(declaration)}: say under 'Cancel' what has "
                       "happened if it is given up")


def callback_order(tree):
    """A callback gets the user's `arg` first, like a method its object."""
    for source in tree.public_headers():
        for match in re.finditer(
                r"(?m)^typedef\b[^;{]*\b(pirn_\w+_fn)\(([^;]*)\);",
                source.code):
            parameters = [re.sub(r"\s+", " ", part).strip()
                          for part in match[2].split(",")]
            if "void *arg" in parameters[1:] or re.search(
                    r"\bvoid \*ctx$", match[2]):
                yield (source.path, source.line_at(match.start()),
                       f"{match[1]}: 'void *arg' is the first parameter")


def header_size(tree):
    for source in tree.public_headers():
        if len(source.lines) > MAX_LINES:
            yield (source.path, MAX_LINES,
                   f"{len(source.lines)} lines: one header per concept")
