# SPDX-License-Identifier: MIT
"""The public headers taken apart: which comment describes what."""
import re

LABELS = ["Thread", "Suspends", "Cancel", "Owns", "Errors"]
LABEL = re.compile(rf"({'|'.join(LABELS)})\s{{2,}}(?=\S)")
TEXT_COLUMN = 10  # where the text of a label stands
CODE_COLUMN = 4   # from here on a line of prose is code

CODES = r"(?:-E[A-Z0-9]+|PIRN_E[A-Z]+)"
ERROR = re.compile(rf"({CODES}(?:,\s*{CODES})*),?(?:\s+(.*))?$")

# What starts a declaration that can have a page, and how it is named.
NAMES = [
    r"^PIRN_API\b[^;(]*?\b(pirn_\w+)\s*\(",
    r"^#define (\w+)",
    r"^typedef (?:struct|enum) \w+ \{[^}]*\} (\w+);",
    r"^typedef struct \w+ (\w+);",
    r"^typedef [\w\s*]*?\b(pirn_\w+_fn)\(",
    r"^(?:struct|enum) (\w+) \{",
]

# Speaks for itself, by what stands inside.
UNDESCRIBED = r"PIRN_API\b|typedef (struct|enum) \w+ \{|(struct|enum) \w+ \{"
ENUMERATOR = re.compile(r"(?m)^\s+(PIRN_\w+)\b")


class Comment:
    """Lines of a comment: prose, code, and what stands under each label."""

    def __init__(self, lines):
        self.prose = []   # ("text" | "code", lines)
        self.labels = {}  # label: lines
        label = None
        for line in lines:
            match = LABEL.match(line)
            if match:
                label = match[1]
                self.labels[label] = [line[match.end():]]
            elif label:
                self.labels[label].append(line[TEXT_COLUMN:])
            else:
                self._add_prose(line)
        self.labels = {k: _without_blanks(v) for k, v in self.labels.items()}
        self.prose = [(kind, _without_blanks(v)) for kind, v in self.prose]

    def _add_prose(self, line):
        if not line.strip():
            if self.prose and self.prose[-1][0] == "code":
                self.prose[-1][1].append("")
            elif self.prose:
                self.prose.append(("text", []))
            return
        is_code = line.startswith(" " * CODE_COLUMN)
        kind = "code" if is_code else "text"
        if not self.prose or self.prose[-1][0] != kind:
            self.prose.append((kind, []))
        self.prose[-1][1].append(line[CODE_COLUMN:] if is_code else line)

    def summary(self):
        """The first clause, for a list of names."""
        text = " ".join(self.prose[0][1]) if self.prose else ""
        text = re.split(r"[.;](?:\s|$)", text)[0].replace("`", "").strip()
        head, colon, _ = text.partition(": ")
        if colon and " " in head and head.count("(") == head.count(")"):
            text = head
        if re.match(r"[A-Z][a-z' ]", text):
            text = text[0].lower() + text[1:]
        return text

    def errors(self):
        """(codes, what they mean) of each line; no codes in a remark."""
        entries = []
        for line in self.labels.get("Errors", []):
            match = ERROR.match(line)
            if line.startswith(" ") and entries:
                entries[-1][1].append(line.strip())
            elif match and entries and entries[-1][0] and not entries[-1][1]:
                entries[-1][0].append(match[1])
                entries[-1][1].extend([match[2]] if match[2] else [])
            elif match:
                entries.append(([match[1]], [match[2]] if match[2] else []))
            elif entries and not entries[-1][0]:
                entries[-1][1].append(line.strip())
            else:
                entries.append(([], [line.strip()]))
        return [(", ".join(codes), " ".join(text)) for codes, text in entries]


class Entry:
    """A comment and the declarations it describes."""

    def __init__(self, header, lines):
        self.header = header
        self.comment_lines = lines
        self.comment = Comment(lines)
        self.declarations = []

    def continue_with(self, lines):
        """A comment of nothing but labels goes on with the one before."""
        self.comment_lines = self.comment_lines + [""] + lines
        self.comment = Comment(self.comment_lines)

    def summary(self):
        return self.comment.summary() or f"declared in pirn/{self.header}"

    def names(self):
        found = []
        for declaration in self.declarations:
            for pattern in NAMES:
                match = re.match(pattern, declaration, re.DOTALL)
                if match:
                    found.append(match[1])
            if declaration.startswith("enum {"):
                found += ENUMERATOR.findall(declaration)
        return [name for name in found
                if not name.endswith("_") and not name.startswith("PIRN__")]


def _without_blanks(lines):
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def strip_frame(raw):
    """The lines of a block comment without what makes it one."""
    body = raw.strip()[2:-2]
    return [re.sub(r"^ \* ?|^ $", "", line).rstrip()
            for line in body.strip(" ").split("\n")]


def _pieces(text):
    """("comment" | "code" | "gap", text) at file level, in order."""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        start = i
        if line.startswith("/*"):
            while "*/" not in lines[i]:
                i += 1
            yield "comment", "\n".join(lines[start:i + 1])
        elif not line.strip():
            yield "gap", ""
        elif re.match(r"#(if|else|endif|include|undef)|PIRN_(BEGIN|END)_", line):
            pass
        else:
            while not _is_complete("\n".join(lines[start:i + 1])):
                i += 1
            yield "code", "\n".join(lines[start:i + 1])
        i += 1


def _is_complete(code):
    if code.startswith("#"):
        return not code.endswith("\\")
    bare = re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)
    return (";" in bare and bare.count("{") == bare.count("}")
            and bare.count("(") == bare.count(")"))


def opening(path):
    """The comment with which a header begins."""
    text = path.read_text()
    start = text.index("/*", 2)
    return Comment(strip_frame(text[start:text.index("*/", start) + 2]))


def entries(path):
    """What a header describes."""
    text = path.read_text()
    guard = re.search(r"#define PIRN_\w+_H\n", text)
    current, found = None, []
    for kind, piece in _pieces(text[guard.end():]):
        if kind == "gap":
            current = None
        elif kind == "comment":
            lines = strip_frame(piece)
            if found and LABEL.match(lines[0]):
                current = found[-1]
                current.continue_with(lines)
                continue
            current = Entry(path.name, lines)
            found.append(current)
        elif current or re.match(UNDESCRIBED, piece):
            if not current:
                current = Entry(path.name, [])
                found.append(current)
            current.declarations.append(piece)
    return [entry for entry in found if entry.names()]


def error_table(path):
    """(name, sentence, category) of each row of the library's table."""
    text = path.read_text().replace("\\\n", " ")
    return re.findall(r'X\(\s*[-\w]+,\s*"(\w+)",\s*"([^"]*)",\s*(\w+)\)', text)
