"""Numbers as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable


def count(n: int, noun: str) -> str:
    """A number and its noun: "1 state", "2,000 states"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def measured(criterion: str, noun: str, timed: bool = False) -> str:
    """The values of a criterion in words, of costs or rewards; `timed`: steps have lengths."""
    if criterion == "reach":
        return "probability"
    often = "per unit of time" if timed else "a step"
    period = {"total": "until the end", "average": f"{often} in the long run"}.get(criterion, "")
    return f"{noun} {period}".strip()


FAINT = 1e-12
"""Probabilities below are the rounding of bounds."""


def digits(value: float, criterion: str = "") -> str:
    """A value in six digits, without what is rounding of a probability."""
    return f"{round(value, 12) + 0.0 if criterion == 'reach' else value:.6g}"


def memory(n: float) -> str:
    """Bytes in the largest unit that leaves at least one: "1.5 MB"."""
    size, unit = float(n), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"


def discount(value: float) -> str:
    """A discount with as many digits as 1 − discount needs: 0.9999999 is not 1."""
    for digits in range(6, 17):
        text = f"{value:.{digits}g}"
        if abs(float(text) - value) <= 0.001 * (1 - value):
            return text
    return repr(value)


STEP = "time step: "
"""Beginning of the note of an estimate on the length of a step."""
UNCHANGED = ", and nature cannot change that within observed next states"
"""In notes on pairs, for sets that move mass to what was seen under the same action only."""
START = "start: "
"""Beginning of the note on the start distribution."""


def every(notes: Iterable[str]) -> str:
    """The length of a step, if notes tell it: "a month", "every 2 weeks"; otherwise "a step"."""
    steps = (note.removeprefix(STEP) for note in notes if note.startswith(STEP))
    length = re.split(r"[,;(]", next(steps, "1"))[0].strip()
    number, _, unit = length.partition(" ")
    if not unit:
        return "a step"
    article = "an" if unit[0] in "aeiou" or unit == "hour" else "a"
    return f"every {length}" if number != "1" else f"{article} {unit}"


def first_names(names: object, most: int = 5) -> str:
    """The first names of a sequence, with an ellipsis if there are more."""
    first = [str(name) for name in names[: most + 1]]  # type: ignore[index]
    return ", ".join(first[:most]) + (", …" if len(first) > most else "")


def column(values: Iterable[float]) -> list[str]:
    """Numbers of a column: thousands separators, and as many decimals for all as the largest has
    with six digits, or fewer if they are zeros.
    """
    numbers = [float(value) for value in values]
    finite = [x for x in numbers if math.isfinite(x)]
    top = max(map(abs, finite), default=0.0)
    if not 1e-3 <= top < 1e15:
        return [f"{x:,.6g}" for x in numbers]
    places = max(0, 5 - math.floor(math.log10(top)))
    while places and all(round(x, places) == round(x, places - 1) for x in finite):
        places -= 1
    return [f"{round(x, places) + 0.0:,.{places}f}" for x in numbers]


def amount(value: float, unit: str = "") -> str:
    """An amount with thousands separators, no more digits than people read, and its unit."""
    size = abs(value)
    if size >= 1000:
        text = f"{value:,.0f}"
    elif size >= 100:
        text = f"{value:,.1f}".removesuffix(".0")
    else:
        text = f"{value:.3g}" if 0 < size < 1e-3 else f"{value + 0.0:.4g}"
    return f"{text}\u00a0{unit}".rstrip()  # the two stay on one line
