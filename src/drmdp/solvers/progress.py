"""The progress bar: a callback that shows how many digits of the gap are done."""

from __future__ import annotations

import math
from types import TracebackType
from typing import TYPE_CHECKING

from drmdp.solution import Record
from drmdp.solvers.loop import Callback

if TYPE_CHECKING:
    from rich.console import Console


class ProgressBar:
    """Context manager; `then` gives the callback for the loop."""

    def __init__(self, tol: float, console: Console | None = None) -> None:
        from rich.console import Console  # slow to import, and wanted only here
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._tol = tol
        self._first = math.nan
        columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console or Console(stderr=True), transient=True)
        self._task = self._progress.add_task("starting", total=1.0)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def share(self, gap: float) -> float:
        """Share of the orders of magnitude from the first gap to the tolerance that is behind us."""
        if math.isnan(self._first):
            self._first = gap
        if gap <= self._tol:
            return 1.0
        if self._tol == 0 or self._first <= self._tol:
            return 0.0
        return max(0.0, math.log(self._first / gap) / math.log(self._first / self._tol))

    def then(self, callback: Callback | None) -> Callback:
        """Show a record, then pass it on."""

        def show(record: Record) -> object:
            text = f"iteration {record.iteration}, gap {record.gap:.2e}"
            self._progress.update(self._task, completed=self.share(record.gap), description=text)
            return None if callback is None else callback(record)

        return show
