# SPDX-License-Identifier: MIT
"""The files of a tree, and C sources taken apart into code and comments."""
import bisect
import functools
import re

FOLDERS = ["include", "src", "tests", "tools", "bench", "examples", "docs",
           "scripts", "cmake", ".ci"]
TOP_FILES = ["README.md", "CMakeLists.txt", "Makefile"]

TOKEN = re.compile(r"//[^\n]*"
                   r"|/\*.*?\*/"
                   r'|"(?:\\.|[^"\\\n])*"'
                   r"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


class Comment:
    """A block comment: its text without the frame, and where it stands."""

    def __init__(self, source, start, end):
        self.start, self.end = start, end
        self.line = source.line_at(start)
        raw = source.text[start:end]
        if raw.startswith("/*"):
            raw = raw[2:-2]
        self.text = re.sub(r"(?m)^\s*\* ?", "", raw).strip()


class Source:
    """One file.  `code` is the text with comments and literals blanked, so that
    offsets and lines are the same in both."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = text.splitlines()
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]

    def line_at(self, offset):
        return bisect.bisect_right(self.starts, offset)

    def is_c(self):
        return self.path.endswith((".c", ".h"))

    def is_test(self):
        return (self.path.startswith("tests/") or re.search(
            r"_(test|model|fuzz)\.[ch]$|/test_\w+\.h$", self.path) is not None)

    def is_under(self, *folders):
        return self.path.startswith(tuple(f"{f}/" for f in folders))

    @functools.cached_property
    def _tokens(self):
        return list(TOKEN.finditer(self.text))

    @functools.cached_property
    def code(self):
        pieces, last = [], 0
        for token in self._tokens:
            blank = re.sub(r"[^\n]", " ", token.group())
            if blank and token.group()[0] in "\"'":
                blank = token.group()[0] + blank[1:-1] + token.group()[0]
            pieces += [self.text[last:token.start()], blank]
            last = token.end()
        return "".join(pieces) + self.text[last:]

    @functools.cached_property
    def comments(self):
        return [Comment(self, t.start(), t.end()) for t in self._tokens
                if t.group().startswith("/*")]

    @functools.cached_property
    def line_comments(self):
        return [self.line_at(t.start()) for t in self._tokens
                if t.group().startswith("//")]

    def matches(self, pattern, text=None):
        """(line, match) for each place in the code."""
        for match in re.finditer(pattern, self.code if text is None else text):
            yield self.line_at(match.start()), match

    @functools.cached_property
    def functions(self):
        """(start, end) of each body that stands at file level."""
        bodies, depth, start = [], 0, 0
        for match in re.finditer(r"[{}]", self.code):
            if match.group() == "{":
                if depth == 0:
                    start = match.start()
                depth += 1
            else:
                depth -= 1
                if depth == 0:
                    bodies.append((start, match.end()))
        return bodies


class Tree:
    def __init__(self, top):
        self.top = top
        self.files = []
        paths = [top / name for name in TOP_FILES]
        for folder in FOLDERS:
            paths += sorted((top / folder).rglob("*"))
        for path in paths:
            # Inputs of fuzzers are just the bytes that they are.
            if path.is_file() and not {"__pycache__", "corpus"} & set(
                    path.parts):
                self._add(path)

    def _add(self, path):
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            return      # an image in the documentation, not a source
        self.files.append(Source(str(path.relative_to(self.top)), text))

    def c_files(self, *folders):
        for source in self.files:
            if source.is_c() and (not folders or source.is_under(*folders)):
                yield source

    def library(self):
        """The C sources of the library itself, without their tests."""
        for source in self.c_files("src"):
            if not source.is_test():
                yield source

    def public_headers(self):
        return self.c_files("include/pirn")

    def has(self, path):
        return (self.top / path).exists()

    @functools.cached_property
    def names(self):
        """Every identifier of the library and its headers."""
        words = set()
        for source in self.c_files("include", "src"):
            words.update(re.findall(r"\bpirn_\w+", source.code))
        return words
