# SPDX-License-Identifier: MIT
"""What can be made wrong in a source."""
import dataclasses
import re

OPERATION = re.compile(
    r"\bpirn__(load|store|swap|add|sub|or|and|cas|cas_weak)\(")

WEAKER = {
    "acquire": ["relaxed"],
    "release": ["relaxed"],
    "acq_rel": ["acquire", "release"],
}
WEAKER_THAN_SEQ_CST = {
    "load": ["acquire", "relaxed"],
    "store": ["release", "relaxed"],
}

WAKES = re.compile(
    r"^ +(?:\(void\))?(?:[\w.>-]*\b(?:wake|wake_one|submit|eventfd_signal|"
    r"futex_wake|earlier)|pirn_waker_wake(?:_by_ref)?|pirn__reactor_wake|"
    r"pirn__io_wake_list|pirn__task_submit|pirn__parker_unpark|"
    r"pirn__monitor_arm|pirn__alarm_arm|pirn__worker_set_alarm|set_own|"
    r"hand_ward_back|share_batch|"
    r"pirn__pool_wake_(?:one|any)|pirn__pinned_(?:wake|nudge)|"
    r"pirn__seat_wake_waiters|pirn__wakeset_wake|wake_(?:idler|driven|all)|"
    r"tell_(?:driver|owner|shutdown|sealed)|write_wake_locked|send_wake"
    r")\([^;]*\);",
    re.MULTILINE)

FUNCTION = re.compile(r"^(?!_Static)(?=\w)[^\n]*?\b(\w+)\(", re.MULTILINE)


@dataclasses.dataclass
class Mutant:
    name: str
    path: str
    text: str  # of the whole file


def end_of_call(text, start):
    """The index behind the parenthesis that closes the one before `start`."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    raise ValueError("unbalanced")


def blank_comments(text):
    """The same text with blanks for comments, so that indices stay."""
    return re.sub(r"/\*.*?\*/",
                  lambda match: re.sub(r"[^\n]", " ", match.group()),
                  text, flags=re.DOTALL)


def function_at(text, index):
    """The name of the function that `index` is in."""
    name = "?"
    for match in FUNCTION.finditer(text, 0, index):
        name = match.group(1)
    return name


def orders_in(call):
    """[(start, end)] of the orders among the arguments, relative to `call`."""
    return [match.span() for match in re.finditer(
        r"\b(relaxed|acquire|release|acq_rel|seq_cst)\b(?=\s*[,)])", call)]


def weaker(operation, order):
    if order == "seq_cst":
        return WEAKER_THAN_SEQ_CST.get(operation, ["acq_rel", "relaxed"])
    return WEAKER.get(order, [])


def weakened(code):
    """(index, what, changed code) for each order and each weaker one."""
    for match in OPERATION.finditer(code):
        start = match.start()
        end = end_of_call(code, match.end())
        for low, high in orders_in(code[start:end]):
            order = code[start + low:start + high]
            for instead in weaker(match.group(1), order):
                yield (start, f"{match.group(1)} {order}->{instead}",
                       (start + low, start + high, instead))


def without_wakes(code):
    for match in WAKES.finditer(code):
        text = match.group().strip()
        what = re.sub(r"\s+", " ", text.replace("(void)", ""))
        # A waker that is not woken is dropped, or only the leak would be seen.
        instead = (text.replace("pirn_waker_wake(", "pirn_waker_drop(", 1)
                   if text.startswith("pirn_waker_wake(") else "(void)0;")
        yield (match.start() + 1, f"without {what.split('(')[0]}",
               (match.end() - len(text), match.end(), instead))


def without_look(code, text, instead):
    if code.count(text) != 1:
        raise SystemExit(f"tools/mutate.d/looks: {text}: not once in its file")
    start = code.index(text)
    yield (start, f"without the look {text}",
           (start, start + len(text), instead))


def mutants_of(top, models, looks, only):
    """All mutants of the files that have models, whose names match `only`."""
    mutants = []
    seen = {}
    for path in models:
        text = (top / path).read_text()
        code = blank_comments(text)
        changes = [*weakened(code), *without_wakes(code)]
        for _, look, instead in (row for row in looks if row[0] == path):
            changes += without_look(text, look, instead)
        for index, what, (start, end, instead) in changes:
            name = f"{path} {function_at(code, index)}: {what}"
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name += f" #{seen[name]}"
            if re.search(only, name):
                mutants.append(
                    Mutant(name, path, text[:start] + instead + text[end:]))
    return mutants
