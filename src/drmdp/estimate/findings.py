"""What is odd in a table: each kind once, with how often it occurs, where first, and the cure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from drmdp.core.text import count
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.estimate.summary import Summary

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
        """What is odd, without the cure."""
        return f"{self.places[0]}{self._more}"

    @property
    def _more(self) -> str:
        return f", one of {self.count:,} such {self.noun}" if self.count > 1 else ""

    def as_dict(self) -> dict[str, Any]:
        """All fields, as JSON takes them."""
        return asdict(self)


class RefusedError(InputError):
    """What keeps an estimate from being made; the message names the first place."""

    def __init__(self, name: str, findings: list[Finding]) -> None:
        others = len(findings) - 1
        more = f"; {others} more problem{'s' if others > 1 else ''}, which `check_log` lists" if others else ""
        super().__init__(f"{name}: {findings[0]}{more}")
        self.findings = findings


def refuse(name: str, findings: list[Finding]) -> None:
    """Raise if some finding is refused."""
    refused = [finding for finding in findings if finding.refused]
    if refused:
        raise RefusedError(name, refused)


@dataclass(frozen=True)
class LogCheck:
    """What is odd in a log, and a summary of the rest; it is true if nothing is odd.

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
        """All there is, as JSON takes it."""
        findings = [finding.as_dict() for finding in self.findings]
        summary = None if self.summary is None else self.summary.as_dict()
        return {"table": self.table, "refused": self.refused, "findings": findings, "summary": summary}

    def __str__(self) -> str:
        return "\n".join([f"{self.table}: {self.verdict}", *(line for own in self.findings for line in listed(own))])

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
    lines = [f"{finding.kind}, {count(finding.count, 'place')}{', refused' if finding.refused else ''}"]
    lines += [f"  {place}" for place in finding.places]
    if finding.count > len(finding.places):
        lines.append(f"  … {finding.count - len(finding.places):,} more")
    return [*lines, *([f"  cure: {finding.cure}"] if finding.cure else [])]
