"""Numbers as people write them: a decimal point or comma, marks between thousands, a unit that all
cells share, a dash for nothing.

A mark with exactly three digits after it has two readings: "5.204" may be 5.204 or 5204. A column
is *ambiguous* if that is so of every cell with the mark and no other cell is above 999. Then
nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from drmdp.errors import InputError
from drmdp.estimation.log.source import Reading, pl

SAMPLE = 1000
"""Cells that units are looked for in."""
DASHES = ("-", "–", "—", "−")
GROUPS = {"'": "['’]", " ": "[ \u00a0\u202f]", ".": r"\.", ",": ","}
"""Marks between thousands, as patterns."""
NUMBER = re.compile(r"[+-]?(?:\d[\d.,'’ \u00a0\u202f]*|[.,]\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Writing:
    """The form of the numbers of a column: marks and unit."""

    decimal: str = "."
    thousands: str | None = None
    before: str = ""  # a unit
    after: str = ""

    @property
    def unit(self) -> str:
        """The unit that is removed from each cell, if any."""
        return self.before or self.after

    def core(self, text: Any) -> Any:
        """Cells without their unit, as expressions of Polars; null where it is missing."""
        if not self.unit:
            return text
        pattern = rf"^([+-]?)\s*{re.escape(self.before)}\s*(.*?)\s*{re.escape(self.after)}$"
        return pl.when(text.str.contains(pattern)).then(text.str.replace(pattern, "${1}${2}"))

    def read(self, text: Any) -> Any:
        """The numbers that texts are, or null, as expressions of Polars."""
        text = self.core(text)
        if self.thousands is not None:
            mark = GROUPS[self.thousands]
            text = pl.when(text.str.contains(self._pattern)).then(text.str.replace_all(mark, ""))
        if self.decimal == ",":  # a point would be one of thousands, or a mistake
            point = text.str.replace(",", ".", literal=True)
            text = pl.when(~text.str.contains(".", literal=True)).then(point)
        return text.cast(pl.Float64, strict=False)

    @property
    def _pattern(self) -> str:
        """Numbers with marks between all thousands, or none."""
        mark = GROUPS.get(self.thousands or "")
        mark = "" if mark is None else f"|[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+"
        return rf"^[+-]?(?:[0-9]*{mark})(?:{re.escape(self.decimal)}[0-9]*)?(?:[eE][+-]?[0-9]+)?$"

    def fits(self, cells: Iterable[str]) -> bool:
        """Whether it reads all of some cells, which have no unit."""
        pattern = re.compile(self._pattern)
        return all(pattern.match(cell) for cell in cells)

    def value(self, cell: str) -> float:
        """The number that a cell is."""
        bare = cell if self.thousands is None else re.sub(GROUPS[self.thousands], "", cell)
        return float(bare.replace(self.decimal, "."))


def writing(reading: Reading) -> Writing:
    """The form that the settings say."""
    decimal = _decimal(reading, reading.thousands)
    if decimal not in (".", ","):
        raise InputError(f"`decimal`: expected '.' or ',', got {reading.decimal!r}")
    if reading.thousands is not None and reading.thousands not in GROUPS:
        known = ", ".join(map(repr, GROUPS))
        raise InputError(f"`thousands`: expected one of {known}, got {reading.thousands!r}")
    if reading.thousands == decimal:
        raise InputError(f"`thousands` and `decimal` are both {decimal!r}")
    return Writing(decimal, reading.thousands)


def _decimal(reading: Reading, thousands: str | None) -> str:
    """The decimal mark that was said, or follows from that between thousands."""
    return reading.decimal or ("," if thousands == "." else ".")


def units(cells: Iterable[str]) -> Counter[tuple[str, str]]:
    """Texts before and after the numbers in cells, and how many cells have them."""
    pairs: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        match = NUMBER.search(cell)
        if match is not None:
            before = cell[: match.start()]
            sign = before[:1] if before[:1] in ("+", "-") else ""
            pairs[before.removeprefix(sign).strip(), cell[match.end() :].strip()] += 1
    return pairs


def with_usual_unit(how: Writing, cells: Iterable[str]) -> Writing:
    """The form with the unit that more than half of the cells have, if they have one."""
    pairs = units(cells)
    usual = max(pairs, key=pairs.__getitem__, default=("", ""))
    if 2 * pairs[usual] > pairs.total() and all(map(is_unit, usual)):
        return replace(how, before=usual[0], after=usual[1])
    return how


def is_unit(text: str) -> bool:
    """Whether a text may be a unit: letters, signs of currencies, per cent, and what joins them."""
    return all(x.isalpha() or x in "%‰°/. " or unicodedata.category(x) == "Sc" for x in text)


def bare(cells: Iterable[str]) -> list[str]:
    """The numbers in some cells, as written."""
    return [match[0].rstrip() for match in map(NUMBER.search, cells) if match is not None]


def grouped(mark: str) -> str:
    """Cells whose only mark may be one between thousands."""
    return rf"^[+-]?[1-9][0-9]{{0,2}}{re.escape(mark)}[0-9]{{3}}$"


def may_be_ambiguous(cells: Iterable[str], mark: str) -> bool:
    """Whether a sample of numbers leaves it open."""
    pattern = re.compile(grouped(mark))
    short = (pattern.match(x) if mark in x else len(x.lstrip("+-")) <= 3 for x in cells)
    return all(short)


def ambiguity(text: Any, mark: str) -> dict[str, Any]:
    """Figures that decide it for a column: cells with the mark, those where it is no mark between
    thousands, and the largest of the others.
    """
    marked = text.str.contains(mark, literal=True)
    return {
        "marked": marked.sum(),
        "certain": (marked & ~text.str.contains(grouped(mark))).sum(),
        "largest": pl.when(~marked).then(text.cast(pl.Float64, strict=False).abs()).max(),
    }


def cure(cells: list[str], reading: Reading) -> str:
    """A cure for cells of which not all could be read: one unit for all of them, or options, and
    what each makes of a cell; cells without the usual unit are told elsewhere.
    """
    said = with_usual_unit(writing(reading), cells)
    pairs: list[Any] = sorted(units(cells))
    if len(pairs) > 1 and not said.unit:
        names = (f"with {x or y!r}" if x or y else "without a unit" for x, y in pairs)
        listed = " and ".join(islice(names, 3))
        return f"all cells need the same unit, or none; there are cells {listed}"
    usual = (said.before, said.after)
    cells = bare(cell for cell in cells if not said.unit or usual in units([cell]))
    odd = next((cell for cell in cells if not said.fits([cell])), None)
    if odd is None:
        return ""
    ways: dict[tuple[float, ...], Writing] = {}
    for way in _fitting(cells):
        ways.setdefault(tuple(map(way.value, cells)), way)
    read = ((_options(way, reading), way.value(odd)) for way in ways.values())
    return "; ".join(f"with {options} {odd!r} is {value:.12g}" for options, value in read)


def _fitting(cells: list[str]) -> list[Writing]:
    """The ways of writing numbers that read all of some cells, one for each decimal mark."""
    fits: list[Writing] = []
    for decimal in ".,":
        ways = (Writing(decimal, mark) for mark in (None, *GROUPS) if mark != decimal)
        best = [way for way in ways if way.fits(cells)][:1]
        if best and decimal == "," and may_be_ambiguous(cells, ","):
            best = [Writing(",", ".")]
        fits += best
    return fits


def likely(cells: list[str], reading: Reading) -> Reading:
    """With the marks that read some cells: those given, or else the first that fit."""
    fits = [] if writing(reading).fits(cells) else _fitting(cells)
    marks: Any = {"decimal": fits[0].decimal, "thousands": fits[0].thousands} if fits else {}
    return replace(reading, **marks)


def _options(way: Writing, reading: Reading) -> str:
    """The options that say how numbers are written, but for those that were given."""
    options = []
    if way.decimal != _decimal(reading, way.thousands):
        options.append(f"`decimal={way.decimal!r}`")
    if way.thousands is not None and way.thousands != reading.thousands:
        options.append(f"`thousands={way.thousands!r}`")
    return " and ".join(options)
