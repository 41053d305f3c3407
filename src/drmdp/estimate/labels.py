"""Names of states, actions and kernels: which there are, and which look like one name written twice.

Two labels look alike if they differ only in capitals, accents' encoding, blanks, hyphens or underscores, or are the same
number ("7" and "007"). They also do if they are one letter apart (changed, missing, added, or two swapped), both have
three or more characters, the letters are no digits, and one is rare: seen twice at most or a tenth as often as the
other, and at most half as often.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp.core.names import natural
from drmdp.core.validation import Names, lookup
from drmdp.errors import InputError, shown
from drmdp.estimate.findings import LIMIT, Finding, Place, refuse
from drmdp.estimate.source import polars
from drmdp.estimate.table import Table, shown_names, spoken

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")
MANY = 5_000
"""Beyond so many labels only those of the same spelling are compared."""


@dataclass(frozen=True)
class Named:
    """Names given by the user; `typed` ones are text that may mean integers."""

    names: Names | None = None
    typed: bool = False


NONE = Named()


def split(text: str | None) -> list[str] | None:
    """Names from a command line, separated by commas; quotes protect commas."""
    if text is None:
        return None
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def codes(table: Table, role: str, given: list[Any], names: Named = NONE) -> tuple[Any, ...]:
    """Names of the labels in some columns, and each column as numbers of names."""
    pl = polars()
    unique = pl.concat([series.unique() for series in given]).unique()
    labels = _labels(table, role, unique)
    fixed = names.names
    if fixed is not None and names.typed:
        whole = all(INTEGER.fullmatch(str(name)) for name in fixed)
        fixed, labels = ([_typed(name, whole) for name in some] for some in (fixed, labels))
    if fixed is None:
        fixed = sorted(labels, key=natural)
    index = lookup(fixed)
    _check_known(table, role, [label for label in labels if label not in index], fixed)
    numbers = pl.Series([index[label] for label in labels], dtype=pl.Int64)
    return (fixed, *(series.replace_strict(unique, numbers).to_numpy() for series in given))


def _typed(label: Any, whole: bool) -> Any:
    return int(label) if whole and INTEGER.fullmatch(str(label)) else str(label)


def _labels(table: Table, role: str, unique: Any) -> list[Any]:
    """Labels as Python integers or strings."""
    values = unique.to_list()
    if unique.dtype.is_float():
        for value in values:
            if not (np.isfinite(value) and value == int(value)):
                raise InputError(f"{table.name}: `{spoken(role)}`: labels are strings or integers, got {shown(value)}")
        return [int(value) for value in values]
    if unique.dtype == polars().String and all(INTEGER.fullmatch(value) for value in values):
        return [int(value) for value in values]
    return list(values)


def _first(table: Table, role: str, labels: list[Any]) -> dict[str, tuple[int, str]]:
    """The first row of each label, and the role it has there."""
    pl = polars()
    found: dict[str, tuple[int, str]] = {}
    for own in (role, "next_state") if role == "state" else (role,):
        if own in table.wanted:
            real = table.frame.collect_schema()[own].is_float()
            text = pl.col(own).cast(pl.Int64, strict=False).cast(pl.String) if real else pl.col(own).cast(pl.String)
            rows = table.frame.select("_row", label=text).filter(pl.col("label").is_in([str(x) for x in labels]))
            for label, row in table.collect(rows.group_by("label").agg(pl.col("_row").min()))[0].rows():
                found[label] = min(found.get(label, (row, own)), (row, own), key=lambda place: place[0])
    return found


def _places(table: Table, role: str, labels: dict[Any, str]) -> tuple[Place, ...]:
    """Where labels are seen first, each with what there is to say of it; the first few."""
    some = dict(list(labels.items())[:LIMIT])
    first = _first(table, role, list(some))
    found = []
    for label, what in some.items():
        row, own = first.get(str(label), (None, None))
        found.append(([] if row is None else [row], what, own, label))
    return table.places(found)


def _check_known(table: Table, role: str, unknown: list[Any], names: Names) -> None:
    """Refuse labels that are none of the names given."""
    if unknown:
        given = f"is none of those given: {shown_names(map(repr, names))}"
        places = _places(table, role, {label: f"the {role} {label!r} {given}" for label in sorted(unknown, key=str)})
        refuse(table.name, [Finding("unknown label", True, len(unknown), "labels", places)])


# ---------------------------------------------------------------------- look-alikes


def look_alikes(counts: Mapping[Any, int]) -> list[tuple[str, str, str]]:
    """Find (rarer label, commoner label, difference) among labels with their counts."""
    texts = {label: n for label, n in counts.items() if isinstance(label, str)}
    order = sorted(texts, key=lambda label: (-texts[label], label))
    found: dict[str, tuple[str, str, str]] = {}
    spelled: dict[str, str] = {}
    for label in order:
        first = spelled.setdefault(_spelling(label), label)
        if first != label:
            found[label] = (label, first, _difference(label, first))
    if len(texts) <= MANY:
        for rare, common in _neighbours(order):
            n, m = texts[rare], texts[common]
            if rare not in found and 2 * n <= m and (n <= 2 or 10 * n <= m):
                found[rare] = (rare, common, "one letter apart")
    return [found[label] for label in order if label in found]


def _spelling(label: str) -> str:
    """What is left of a label without capitals, blanks and marks; numbers by value."""
    text = unicodedata.normalize("NFKC", label).casefold()
    text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    try:
        return repr(float(text))
    except ValueError:
        return re.sub(r"[\s_\-–—.]+", "", text) or text


def _difference(a: str, b: str) -> str:
    try:
        float(a)
        return "the same number"
    except ValueError:
        return "the same but for capitals" if a.casefold() == b.casefold() else "the same but for blanks or marks"


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


def label_findings(table: Table, role: str, counts: Mapping[Any, int]) -> list[Finding]:
    """Labels of a role that look alike."""
    alike = look_alikes(counts)
    if not alike:
        return []
    seen = {
        rare: f"{rare!r} ({_times(counts[rare])}) looks like {common!r} ({_times(counts[common])}): {why}"
        for rare, common, why in alike
    }
    same = {rare: common for rare, common, _ in alike[:LIMIT]}
    both = f"; `{role}s` if all are meant" if role in ("state", "action") else ""
    cure = f"`rename={same!r}` if they are the same{both}" if role != "episode" else ""
    return [Finding("look-alike", False, len(alike), "labels", _places(table, role, seen), cure)]


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def check_rename(table: Table, rename: Mapping[Any, Any]) -> None:
    """Refuse to rename what is not there, or is a state as well as an action."""
    pl = polars()
    roles = [role for role in ("state", "next_state", "action", "unit") if role in table.wanted]
    asked = [
        (pl.col(f"_was_{role}") == str(old)).sum().alias(f"{k} {role}")
        for k, old in enumerate(rename)
        for role in roles
    ]
    found = table.collect(table.frame.select(asked))[0].row(0, named=True) if asked else {}
    for k, old in enumerate(rename):
        kinds = {"state" if role == "next_state" else role for role in roles if found[f"{k} {role}"]}
        if not kinds:
            raise InputError(f"{table.name}: `rename`: the label {old!r} was never seen")
        if {"state", "action"} <= kinds:
            raise InputError(f"{table.name}: `rename`: {old!r} is a state and an action; rename it in the file")
