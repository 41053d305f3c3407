"""What a page about a solution costs: CPU seconds and bytes, of a small model and of a large one."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drmdp import Wasserstein, instances, solve
from drmdp.model import Model


@dataclass(frozen=True)
class ReportRow:
    """A solve, and the second page about it: the first loads what draws."""

    problem: str
    S: int
    solve_seconds: float
    page_seconds: float
    page_kilobytes: float


def problems() -> Iterator[tuple[str, Model, Wasserstein, float | None]]:
    """Name, model, set, tolerance."""
    yield "machine", instances.perturb(instances.machine(10), 20), Wasserstein(0.5, support="all"), None
    large = instances.garnet(10_000, 5, branching=5, discount=0.9, sparse=True)
    yield "garnet", instances.perturb(large, 2, same_support=True), Wasserstein(0.3, support="observed"), 1e-2


def reports() -> Iterator[ReportRow]:
    """A row for each problem."""
    for name, model, ball, tol in problems():
        with tempfile.TemporaryDirectory() as folder:
            page, clock = Path(folder) / "page.html", [time.process_time()]
            solution = solve(model, ball, tol=tol)
            for _ in range(2):
                clock.append(time.process_time())
                solution.report(page)
            clock.append(time.process_time())
            size = page.stat().st_size
        yield ReportRow(name, model.n_states, clock[1] - clock[0], clock[3] - clock[2], size / 1e3)
