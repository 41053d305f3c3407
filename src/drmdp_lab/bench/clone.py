"""From a clone to the first answer, as a newcomer does it: `git clone` into an empty directory,
then `make demo`, stage by stage.

Packages are downloaded, unless pip has them in its cache: the network is part of the wall time.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drmdp.errors import InputError

STAGES = {
    "clone": ("git", "clone", "--quiet", "--no-hardlinks", "{source}", "clone"),
    "build the package": ("make", "-C", "clone", ".venv/.built", "PYTHON={python}"),
    "install its report": ("make", "-C", "clone", ".venv/.demo", "PYTHON={python}"),
    "run the demo": ("make", "-C", "clone", "demo", "PYTHON={python}"),
    "run it again": ("make", "-C", "clone", "demo", "PYTHON={python}"),
}
"""Commands in their order; each leaves what the next one needs."""


@dataclass(frozen=True)
class CloneRow:
    """One stage, and at last all until the first answer."""

    stage: str
    seconds: float  # wall
    cpu_seconds: float  # of the stage and what it starts


def clone(source: str | None = None) -> Iterator[CloneRow]:
    """The table; `source` is the repository that this code is in."""
    source = str(repository()) if source is None else source
    wall = cpu = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for stage, command in STAGES.items():
            words = [part.format(source=source, python=sys.executable) for part in command]
            row = CloneRow(stage, *run(words, folder))
            yield row
            if stage != "run it again":
                wall, cpu = wall + row.seconds, cpu + row.cpu_seconds
    yield CloneRow("clone to first answer", wall, cpu)


def run(words: list[str], folder: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command, whose output counts only where it fails."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    begin, before = time.perf_counter(), children()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return time.perf_counter() - begin, children() - before


def children() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def repository() -> Path:
    """The clone that this module was imported from."""
    for folder in Path(__file__).resolve().parents:
        if (folder / ".git").exists():
            return folder
    raise InputError("clone: this package was not imported from a clone")
