# SPDX-License-Identifier: MIT
"""Manual pages in man(7) macros."""
import re

from headers import opening

MANUAL = "Pirn Manual"
WIDTH = 72

SECTIONS = {
    "Thread": "CALLED FROM",
    "Suspends": "SUSPENSION",
    "Cancel": "CANCELLATION",
    "Owns": "OWNERSHIP",
}

INTRODUCTION = """\
Pirn runs many tasks on one thread. A task is a \\fIfiber\\fR, a function on a
small stack of its own, or a \\fIstackless task\\fR, a struct with a poll
function. Where an ordinary program would block its thread, a task is set
aside and another one runs.
.PP
.EX
#include <pirn/pirn.h>

cc program.c $(pkg-config \\-\\-cflags \\-\\-libs pirn)
.EE
.PP
Every page says, where it applies, which threads may call a function, whether
the call can suspend its task, what has happened to data when it is cancelled,
what passes to the callee, and the complete list of errors.
.PP
A function that can fail returns 0 or a count, or a negative code; nothing is
reported through
.IR errno .
Fields of structs whose names end in an underscore belong to the library.
"""

CATEGORIES = """\
The names without a prefix are negated
.I errno
values, so that a call returns
.BR \\-ETIMEDOUT .
The category is what
.BR pirn_err_category (3)
says.
"""


def escape(text):
    """Text as roff takes it, without font changes."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def inline(text):
    """A line of prose: names of functions bold, code in italics."""
    text = escape(text)
    text = re.sub(r"`([^`]*)`", r"\\fI\1\\fR", text)
    return re.sub(r"\b(pirn_\w+)\(\)", r"\\fB\1\\fR()", text)


def prose(blocks):
    out = []
    for kind, lines in blocks:
        if not lines:
            continue
        if kind == "code":
            out += [".PP", ".RS 4", ".EX", *map(escape, lines), ".EE", ".RE"]
        else:
            out += [".PP", *map(inline, lines)]
    return out


def declaration(text):
    """A declaration as a user reads it."""
    if not text.startswith("PIRN_API"):
        return text.split("\n")
    text = re.sub(r"PIRN_(API|MUST_CHECK|NORETURN)\s+", "", text)
    text = re.sub(r"\s*PIRN_PRINTF\([^)]*\)", "", text)
    text = re.sub(r"\s+", " ", text)
    lines, line = [], ""
    for word in re.split(r"(?<=,) ", text):
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = "    " + word
        else:
            line = f"{line} {word}" if line else word
    return lines + [line]


def synopsis(entry):
    out = [".SH SYNOPSIS", ".EX", f"#include <pirn/{entry.header}>", ""]
    for text in entry.declarations:
        out += ["\\fB" + escape(line) + "\\fR" if line.strip() else ""
                for line in declaration(text)]
    return out + [".EE"]


def errors(entry):
    out = []
    for codes, text in entry.comment.errors():
        if codes:
            codes = ", ".join("\\%" + escape(code)
                              for code in re.split(r",\s*", codes))
            out += [".TP", f'.B "{codes}"', inline(text)]
        else:
            out += [".PP", inline(text)]
    return [".SH ERRORS", *out] if out else []


def see_also(entry, known):
    """Pages named in the comment, and the overview."""
    own = entry.names()
    mentioned = []
    for name in re.findall(r"\bpirn_\w+", "\n".join(entry.comment_lines)):
        if name in known and name not in own + mentioned:
            mentioned.append(name)
    return [".SH SEE ALSO", *(f".BR {name} (3),"
                              for name in sorted(mentioned)),
            ".BR pirn (7)"]


def title(name, section, version):
    return [f'.TH {name} {section} "" "Pirn {version}" "{MANUAL}"',
            ".ad l"]


def page(entry, version, known):
    names = entry.names()
    out = title(names[0], 3, version)
    out += [".SH NAME", ", ".join(names) + " \\- "
            + escape(entry.summary())]
    out += synopsis(entry)
    if entry.comment.prose:
        out += [".SH DESCRIPTION", *prose(entry.comment.prose)]
    for label, section in SECTIONS.items():
        if label in entry.comment.labels:
            lines = entry.comment.labels[label]
            first = re.sub(r"^any(?=$|;)", "any thread", lines[0])
            out += [f".SH {section}", *map(inline, [first, *lines[1:]])]
    out += errors(entry) + see_also(entry, known)
    return "\n".join(line.rstrip() for line in out) + "\n"


def alias(name):
    """The page of a name that another page describes."""
    return f".so man3/{name}.3\n"


def header_section(path, found):
    """What a header is for, and what it declares."""
    comment = opening(path)
    first = comment.prose[0][1]
    match = re.match(r"pirn/\w+\.h - (.*)", first[0])
    first[0] = match[1][0].upper() + match[1][1:]
    out = [f".SS <pirn/{path.name}>", *prose(comment.prose), ".PP"]
    for entry in found:
        names = ", ".join(f"\\fB\\%{name}\\fR(3)" for name in entry.names())
        out += [".TP", names, escape(entry.summary())]
    return out


def overview(headers, table, version):
    """pirn.7: `headers` is a list of (path, its entries)."""
    out = title("pirn", 7, version)
    out += [".SH NAME", "pirn \\- asynchronous runtime for C on Linux",
            ".SH DESCRIPTION", INTRODUCTION.rstrip(), ".SH HEADERS"]
    for path, found in headers:
        out += header_section(path, found)
    out += [".SH ERRORS", CATEGORIES.rstrip()]
    for name, sentence, category in table:
        category = category.lower().replace("_", " ")
        out += [".TP", f".B {name}", escape(f"{sentence} ({category})")]
    return "\n".join(line.rstrip() for line in out) + "\n"
