# SPDX-License-Identifier: MIT
"""tests/cross/addresses.py OBJDUMP LIBRARY - no function of the library keeps
the address of a thread-local, for the fiber may go on on another thread.

Read from the disassembly, for the compiler decides it:

- the library's own thread-local is touched by its accessors only, and these
  are functions that somebody calls;
- who asks where errno is and keeps the answer in a place that survives a call
  calls nothing but the C library, so nothing that may suspend.

Prints what is wrong, one line for each, and exits with 1.  A kept address is
followed in the order of the text, not around branches backwards, until the
next call.
"""
import re
import subprocess
import sys

ACCESSORS = {"pirn__tls_get", "pirn__tls_set", "end_thread"}
MUST_BE_CALLED = {"pirn__tls_get", "pirn__tls_set"}

# The word at %fs:0x28 is the stack protector's, and the same in all threads.
THREAD_POINTER = re.compile(
    r"%fs:(?!0x28\b)|tpidr_el0|__tls_get_addr|tlsdesc", re.IGNORECASE)
KEPT_X86 = {"%" + name for name in "rbx rbp r12 r13 r14 r15".split()}
KEPT_ARM = {f"x{number}" for number in range(19, 30)}


def functions(objdump, library):
    """Yield (name, [(operation, operands)]) of each function."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", library],
                          check=True, capture_output=True, text=True).stdout
    name, body = None, []
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.+)>:$", line)
        if head:
            if name is not None:
                yield name, body
            name, body = head.group(1), []
            continue
        fields = line.split("\t")
        if name is not None and len(fields) >= 2:
            words = "\t".join(fields[1:]).split(None, 1)
            if words:
                body.append((words[0], words[1] if len(words) > 1 else ""))
    if name is not None:
        yield name, body


def is_call(operation, operands, name):
    """A call, or a jump out of the function."""
    if operation in ("call", "callq", "bl", "blr"):
        return True
    if operation in ("jmp", "b", "br"):
        target = re.search(r"<([^>+]+)(\+[^>]*)?>", operands)
        return target is None or target.group(1) != name
    return False


def is_foreign(target):
    """A function of the C library, which never comes back to ours here."""
    return target.endswith("@plt") and not target.startswith("pirn")


def called(operands):
    """The name that is called; None if it is in a register or in memory."""
    target = re.search(r"<([^>+]+)(?:\+[^>]*)?>", operands)
    return None if target is None or "*" in operands else target.group(1)


def parts(operands):
    """Source and destination of a move; both None for anything else."""
    operands = re.split(r"\s+(?://|#)", operands)[0]
    fields = re.match(r"^([^,(]+|[^,]*\([^)]*\)),\s*(.+)$", operands)
    return (fields.group(1).strip(), fields.group(2).strip()) if fields \
        else (None, None)


def keeps(body, start):
    """Is what the call before `start` returned kept across another call?"""
    on_x86 = any("%r" in operands for _, operands in body)
    held = {"%rax"} if on_x86 else {"x0"}
    for operation, operands in body[start:]:
        if operation.startswith(("call", "ret")) or operation in (
                "bl", "blr", "br"):
            return False
        first, second = parts(operands)
        if on_x86:
            source, target = first, second
        elif operation.startswith(("str", "stp")):
            source, target = first, second
        else:
            source, target = second, first
        if operation in ("mov", "movq", "str", "stp") and source in held:
            if "(" in target or "[" in target:
                return True
            if target in KEPT_X86 | KEPT_ARM:
                return True
            held.add(target)
        elif target in held:
            held.discard(target)
        if not held:
            return False
    return False


class Function:
    """What the text of one function says about it."""

    def __init__(self, name, body):
        self.raw = name
        # What link-time optimisation appends to the names of copies.
        self.name = re.sub(
            r"\.(?:lto_priv|constprop|part|isra|llvm)?\.?\d+$", "", name)
        self.touches = [f"{operation} {operands}"
                        for operation, operands in body
                        if THREAD_POINTER.search(operands)]
        self.calls = []
        self.keeps_errno = False
        for at, (operation, operands) in enumerate(body):
            if not is_call(operation, operands, name):
                continue
            self.calls.append(called(operands))
            if (self.calls[-1] or "").startswith("__errno_location"):
                self.keeps_errno |= keeps(body, at + 1)


def harmless(everything):
    """Names of the functions that call the C library and each other only."""
    names = {f.raw for f in everything}
    names.discard("pirn__switch_raw")

    # Two functions of two files may have one name; then both must be harmless.
    def is_known(target):
        return target is not None and (is_foreign(target) or target in names)

    while True:
        wrong = {f.raw for f in everything if f.raw in names
                 and not all(is_known(target) for target in f.calls)}
        if not wrong:
            return names
        names -= wrong


def problems(everything):
    kind = harmless(everything)
    present = {f.name for f in everything}
    called_by_others = {target for f in everything for target in f.calls}
    for f in everything:
        if f.name not in ACCESSORS and not f.raw.endswith("@plt"):
            for touch in f.touches:
                yield f"{f.name} touches a thread-local: {touch}"
        risky = {target or "something indirect" for target in f.calls
                 if target is None
                 or not (is_foreign(target) or target in kind)}
        if f.keeps_errno and risky:
            yield (f"{f.name} keeps the address of errno and calls "
                   + ", ".join(sorted(risky)))
    for name in sorted(ACCESSORS - present):
        yield f"{name} is no function: it was inlined"
    for name in sorted(MUST_BE_CALLED & present - called_by_others):
        yield f"{name} is called by nobody: it was inlined"


def main():
    objdump, library = sys.argv[1:]
    found = list(problems([Function(name, body) for name, body
                           in functions(objdump, library)]))
    for problem in found:
        print(f"{library}: {problem}")
    return 1 if found else 0


sys.exit(main())
