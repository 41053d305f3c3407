"""Names of states, actions and kernels: which there are, and which look like one name written
twice.

Two labels look alike if they differ only in capitals, accents' encoding, blanks, hyphens or
underscores, or are the same number ("7" and "007"). They also do if they are one letter apart
(changed, missing, added, or two swapped), both have three or more characters, the letters are no
digits, and one is rare: seen twice at most or a tenth as often as the other, and at most half as
often.

Labels that were not in use at the same time are those of a scale that changed, such as words until
2019 and numbers from 2020 on: several states that appear together, late, and are frequent from then
on were hardly possible before. Told are two or more states that are all first seen within
`TOGETHER` of the time that the log covers, from a date on that has `EARLY` of that time before it,
if the share that they have of the rows from then on would make `MISSED` of the rows before.
"""

from __future__ import annotations

import contextlib
import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from drmdp.core.names import natural
from drmdp.core.validation import Names, lookup
from drmdp.errors import InputError, shown
from drmdp.estimation.log.findings import LIMIT, Finding, Place, refuse
from drmdp.estimation.log.neighbours import shown_time
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.table import LogTable, spoken
from drmdp.ui.text import first_names

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")
MANY = 5_000
"""Beyond so many labels only those of the same spelling are compared."""


@dataclass(frozen=True)
class GivenNames:
    """Names given by the user; `typed` ones are text that may mean integers."""

    names: Names | None = None
    typed: bool = False


def split(text: str | None) -> list[str] | None:
    """Names from a command line, separated by commas; quotes protect commas."""
    if text is None:
        return None
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def codes(table: LogTable, role: str, columns: list[Any], names: GivenNames) -> tuple[Any, ...]:
    """Names of the labels in some columns, and each column as numbers of names."""
    unique = pl.concat([series.unique() for series in columns]).unique()
    labels = _labels(table, role, unique)
    fixed = names.names
    if fixed is not None and names.typed:
        integers = all(INTEGER.fullmatch(str(name)) for name in fixed)
        fixed, labels = ([_typed(name, integers) for name in values] for values in (fixed, labels))
    if fixed is None:
        fixed = sorted(labels, key=natural)
    index = lookup(fixed)
    _check_known(table, role, [label for label in labels if label not in index], fixed)
    numbers = pl.Series([index[label] for label in labels], dtype=pl.Int64)
    return (fixed, *(series.replace_strict(unique, numbers).to_numpy() for series in columns))


def _typed(label: Any, integers: bool) -> Any:
    return int(label) if integers and INTEGER.fullmatch(str(label)) else str(label)


def _labels(table: LogTable, role: str, unique: Any) -> list[Any]:
    """Labels as Python integers or strings."""
    values = unique.to_list()
    if unique.dtype.is_float():
        for value in (value for value in values if not value.is_integer()):
            what = f"labels are strings or integers, got {shown(value)}"
            raise InputError(f"{table.name}: `{spoken(role)}`: {what}")
        return [int(value) for value in values]
    if unique.dtype == pl.String and all(map(INTEGER.fullmatch, values)):
        return [int(value) for value in values]
    return list(values)


def _places(table: LogTable, role: str, labels: dict[Any, str]) -> tuple[Place, ...]:
    """The first rows of the first few labels, each with a sentence about it."""
    chosen = dict(list(labels.items())[:LIMIT])
    names, first = [str(label) for label in chosen], dict[str, tuple[int, str]]()
    for column in (role, "next_state") if role == "state" else (role,):
        if column in table.wanted:
            real = table.frame.collect_schema()[column].is_float()
            label = pl.col(column).cast(pl.Int64, strict=False) if real else pl.col(column)
            rows = table.frame.select("_row", label=label.cast(pl.String))
            rows = rows.filter(pl.col("label").is_in(names)).group_by("label")
            for name, row in table.query(rows.agg(pl.col("_row").min())).rows():
                first[name] = min(first.get(name, (row, column)), (row, column), key=itemgetter(0))
    places = []
    for label, what in chosen.items():
        row, role_there = first.get(str(label), (None, None))
        places.append(([] if row is None else [row], what, role_there, label))
    return table.places(places)


def _check_known(table: LogTable, role: str, unknown: list[Any], names: Names) -> None:
    """Refuse labels that are none of the names given."""
    if unknown:
        reason = f"is none of those given: {first_names([repr(name) for name in names], 10)}"
        near = look_alikes(dict.fromkeys(unknown, 1) | dict.fromkeys(names, 100))
        same = {rare: name for rare, name, _ in near if rare in unknown and name in names}
        meant = {label: f" (did you mean {name!r}?)" for label, name in same.items()}
        said = {
            label: f"the {role} {label!r} {reason}{meant.get(label, '')}"
            for label in sorted(unknown, key=str)
        }
        places = _places(table, role, said)
        cure = f"`rename={dict(list(same.items())[:LIMIT])!r}` if so" if same else ""
        refuse(table.name, [Finding("unknown label", True, len(unknown), "labels", places, cure)])


# ---------------------------------------------------------------------- look-alikes


def look_alikes(counts: Mapping[Any, int]) -> list[tuple[str, str, str]]:
    """Find (rarer label, commoner label, difference) among labels with their counts."""
    texts = {label: n for label, n in counts.items() if isinstance(label, str)}
    order = sorted(texts, key=lambda label: (-texts[label], label))
    alike: dict[str, tuple[str, str, str]] = {}
    spelled: dict[str, str] = {}
    for label in order:
        first = spelled.setdefault(_spelling(label), label)
        if first != label:
            alike[label] = (label, first, _difference(label, first))
    if len(texts) <= MANY:
        for rare, common in _neighbours(order):
            n, m = texts[rare], texts[common]
            if rare not in alike and 2 * n <= m and (n <= 2 or 10 * n <= m):
                alike[rare] = (rare, common, "one letter apart")
    return [alike[label] for label in order if label in alike]


def _spelling(label: str) -> str:
    """A label without capitals, blanks and marks; numbers by value."""
    text = unicodedata.normalize("NFKC", label).casefold()
    text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    try:
        return repr(float(text))
    except ValueError:
        return re.sub(r"[\s_\-–—.]+", "", text) or text


def _difference(a: str, b: str) -> str:
    with contextlib.suppress(ValueError):
        float(a)
        return "the same number"
    capitals = a.casefold() == b.casefold()
    return f"the same but for {'capitals' if capitals else 'blanks or marks'}"


def _neighbours(labels: list[str]) -> Iterable[tuple[str, str]]:
    """Pairs (later, earlier) of labels that are one letter apart."""
    holes = defaultdict(list)  # labels with one letter taken out meet here
    for k, label in enumerate(labels):
        if len(label) >= 3:
            for hole in {label[:i] + label[i + 1 :] for i in range(len(label))} | {label}:
                holes[hole].append(k)
    pairs = {(b, a) for met in holes.values() for i, a in enumerate(met) for b in met[i + 1 :]}
    return [(labels[b], labels[a]) for b, a in sorted(pairs) if _one_letter(labels[a], labels[b])]


def _one_letter(a: str, b: str) -> bool:
    """Whether a change of one letter, no digit, makes one of the other."""
    if len(a) < len(b):
        a, b = b, a
    i = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(b))
    if len(a) > len(b):
        return a[:i] + a[i + 1 :] == b and not a[i].isdigit()
    if a[i + 1 :] == b[i + 1 :]:
        return not (a[i].isdigit() and b[i].isdigit())
    swapped = a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]
    return swapped and not a[i : i + 2].isdigit()


def label_findings(table: LogTable, role: str, counts: Mapping[Any, int]) -> list[Finding]:
    """Labels of a role that look alike."""
    alike = look_alikes(counts)
    if not alike:
        return []
    often = {label: f"{label!r} ({_times(n)})" for label, n in counts.items()}
    sentences = {a: f"{often[a]} looks like {often[b]}: {why}" for a, b, why in alike}
    same = {rare: common for rare, common, _ in alike[:LIMIT]}
    both = f"; `{role}s` if all are meant" if role in ("state", "action") else ""
    cure = f"`rename={same!r}` if they are the same{both}" if role != "episode" else ""
    places = _places(table, role, sentences)
    return [Finding("look-alike", False, len(alike), "labels", places, cure)]


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def check_rename(table: LogTable, rename: Mapping[Any, Any]) -> None:
    """Refuse to rename what is not there, or is a state as well as an action."""
    roles = [role for role in ("state", "next_state", "action", "unit") if role in table.wanted]
    pairs = [(k, str(old), role) for k, old in enumerate(rename) for role in roles]
    asked = {f"{k} {role}": (pl.col(f"_was_{role}") == old).sum() for k, old, role in pairs}
    counts = table.totals(table.frame, asked)
    for k, old in enumerate(rename):
        kinds = {role.removeprefix("next_") for role in roles if counts[f"{k} {role}"]}
        if not kinds:
            raise InputError(f"{table.name}: `rename`: the label {old!r} was never seen")
        if {"state", "action"} <= kinds:
            what = f"{old!r} is a state and an action; rename it in the file"
            raise InputError(f"{table.name}: `rename`: {what}")


# ---------------------------------------------------------------------- scales


EARLY, TOGETHER, MISSED = 0.2, 0.1, 20


def scale_findings(table: LogTable) -> list[Finding]:
    """States that appear together, where the times are dates."""
    if "time" not in table.wanted or not table.frame.collect_schema()["time"].is_temporal():
        return []
    time = pl.col("time")
    query = table.frame.group_by("state").agg(first=time.min(), last=time.max(), rows=pl.len())
    states = table.query(query).drop_nulls().with_columns(pl.col("state").cast(pl.String))
    if states.height < 3:
        return []
    begin = states["first"].min()
    span = states["last"].max() - begin
    after = pl.col("first").is_between(pl.col("at"), pl.col("at") + TOGETHER * span)
    starts = states.select(at="first").unique().filter(pl.col("at") >= begin + EARLY * span)
    groups = starts.join(states, how="cross").filter(after).group_by("at")
    groups = groups.agg(pl.col("rows").sum(), pl.len())
    groups = groups.filter(pl.col("len") >= 2).sort("rows", -pl.col("at").to_physical())
    if not groups.height:
        return []
    at, rows = groups["at"][-1], groups["rows"][-1]
    counts = {"before": (time < at).sum(), "after": (time >= at).sum()}
    row = {"row": pl.col("_row").filter(time == at).min()}
    before, from_then, row = table.totals(table.frame, counts | row).values()
    if rows / from_then * before < MISSED:
        return []
    new = states.filter(pl.col("first").is_between(at, at + TOGETHER * span))
    return [_finding(table, states, new, at, before, row)]


def _finding(table: LogTable, states: Any, new: Any, at: Any, before: int, row: int) -> Finding:
    gone = states.filter(pl.col("last") < at)
    names, old = (first_names(sorted(group["state"], key=natural), 10) for group in (new, gone))
    what = f"the states {names} first appear from {shown_time(at)} on"
    what += f", after {before:,} rows without them"
    if gone.height:
        what += f", the last rows with {old} being of {shown_time(gone['last'].max())}"
    cure = (
        "if the scale changed then, estimate from the rows of one scale, or `rename` labels "
        "that mean the same; `states` if all are meant"
    )
    places = table.places([([row], what, "state", None)])
    return Finding("scale", False, new.height, "states", places, cure)
