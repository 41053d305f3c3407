"""Findings of a table: each kind once, with how often it occurs, where first, and the cure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from drmdp.errors import InputError
from drmdp.ui.text import count

if TYPE_CHECKING:
    from drmdp.estimation.summary import Summary

LIMIT = 10
"""Places that are listed of each kind."""


@dataclass(frozen=True)
class Place:
    """One oddity, in one line of the table or between several."""

    what: str
    lines: tuple[int, ...] = ()
    column: str | None = None
    value: Any = None
    word: str = "line"

    def __str__(self) -> str:
        plural = "s" if len(self.lines) > 1 else ""
        where = [f"{self.word}{plural} {' and '.join(map(str, self.lines))}"] if self.lines else []
        where += [f"column {self.column!r}"] if self.column is not None else []
        return ": ".join(filter(None, (", ".join(where), self.what)))


@dataclass(frozen=True)
class Finding:
    """One kind of oddity."""

    kind: str
    refused: bool  # whether it keeps an estimate with these settings from being made
    count: int
    noun: str  # what is counted, in the plural
    places: tuple[Place, ...]  # the first of them
    cure: str = ""

    def __str__(self) -> str:
        return self.note + (f"; {self.cure}" if self.cure else "")

    @property
    def note(self) -> str:
        """The finding without its cure."""
        more = f", one of {self.count:,} such {self.noun}" if self.count > 1 else ""
        return f"{self.places[0]}{more}"


class RefusedError(InputError):
    """Findings that keep an estimate from being made; the message names the first place."""

    def __init__(self, name: str, findings: list[Finding]) -> None:
        others = len(findings) - 1
        more = f"; {others} more problem{'s' if others > 1 else ''}, which `check_log` lists"
        super().__init__(f"{name}: {findings[0]}{more if others else ''}")
        self.findings = findings


def refuse(name: str, findings: list[Finding]) -> None:
    """Raise if some finding is refused."""
    refused = [finding for finding in findings if finding.refused]
    if refused:
        raise RefusedError(name, refused)


@dataclass(frozen=True)
class LogCheck:
    """Findings of a log, and a summary of the rest; it is true if nothing is odd.

    Attributes
    ----------
    table : str
        What was checked.
    findings : tuple
        What is odd, each with its places.
    summary : Summary or None
        Counts and assumptions; None if no transition could be made.
    """

    table: str
    findings: tuple[Finding, ...]
    summary: Summary | None

    def __bool__(self) -> bool:
        return not self.findings

    @property
    def refused(self) -> bool:
        """Whether an estimate with the same settings would be refused."""
        return self.summary is None or any(finding.refused for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """All fields, as JSON takes them."""
        record = {"table": self.table, "refused": self.refused, **asdict(self)}
        return {**record, "findings": list(record["findings"])}

    def __str__(self) -> str:
        lines = (line for finding in self.findings for line in listed(finding))
        return "\n".join([f"{self.table}: {self.verdict}", *lines])

    __repr__ = __str__

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self:
            return "nothing is odd"
        would = "is refused" if self.refused else "is made, with warnings"
        return f"{count(len(self.findings), 'thing')} odd; an estimate {would}"


def listed(finding: Finding) -> list[str]:
    """A finding in lines: what, the first places, the cure."""
    refused, others = ", refused" * finding.refused, finding.count - len(finding.places)
    lines = [f"{finding.kind}, {count(finding.count, 'place')}{refused}"]
    lines += [f"  {place}" for place in finding.places]
    lines += [f"  … {others:,} more"] if others > 0 else []
    return lines + ([f"  cure: {finding.cure}"] if finding.cure else [])
