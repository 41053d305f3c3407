"""Numbers as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable


def count(n: int, noun: str) -> str:
    """A number and its noun: "1 state", "2,000 states"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def measured(criterion: str, noun: str, timed: bool = False) -> str:
    """What values of a criterion are, of costs or rewards, where steps last 1 or as the model says."""
    if criterion == "reach":
        return "probability"
    often = "per unit of time" if timed else "a step"
    said = {"total": "until the end", "average": f"{often} in the long run"}.get(criterion, "")
    return f"{noun} {said}".strip()


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
"""How the note of an estimate begins that tells how long a step is."""
START = "start: "
"""How the note begins that tells where the process starts."""


def every(notes: Iterable[str]) -> str:
    """How often there is a step, if notes tell: "a month", "every 2 weeks"; otherwise "a step"."""
    found = (note.removeprefix(STEP) for note in notes if note.startswith(STEP))
    told = re.split(r"[,;(]", next(found, "1"))[0].strip()
    number, _, name = told.partition(" ")
    if not name:
        return "a step"
    return f"every {told}" if number != "1" else f"{'an' if name[0] in 'aeiou' or name == 'hour' else 'a'} {name}"


def some(names: object, most: int = 5) -> str:
    """The first names of a sequence, and how it goes on."""
    first = [str(name) for name in names[: most + 1]]  # type: ignore[index]
    return ", ".join(first[:most]) + (", …" if len(first) > most else "")


def column(values: Iterable[float]) -> list[str]:
    """Numbers of a column: thousands separators, and as many decimals for all as the largest has with six digits, or fewer if they are zeros."""
    own = [float(value) for value in values]
    top = max((abs(value) for value in own if math.isfinite(value)), default=0.0)
    if not 1e-3 <= top < 1e15:
        return [f"{value:,.6g}" for value in own]
    places = max(0, 5 - math.floor(math.log10(top)))
    while places and all(round(value, places) == round(value, places - 1) for value in own if math.isfinite(value)):
        places -= 1
    return [f"{round(value, places) + 0.0:,.{places}f}" for value in own]


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
