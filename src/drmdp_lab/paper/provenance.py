"""Where a row comes from: machine, versions, commit, session; no names of hosts or folders."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from drmdp._version import __version__
from drmdp.errors import InputError
from drmdp.ui.text import count
from drmdp_lab.paper.records import Row

PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "clarabel",
    "highspy",
    "cvxpy-base",
    "scs",
    "quantecon",
    "mdpsolver",
    "pymdptoolbox",
    "stormpy",
)
SAME = ("machine", "versions", "commit")
"""What all rows of a file share."""


@cache
def here() -> dict[str, Any]:
    """Machine, versions, commit, and when this session began."""
    cores = count(os.cpu_count() or 1, "core")
    return {
        "machine": f"{_processor()}, {cores}, {platform.system()} {platform.machine()}",
        "versions": ", ".join(f"{name} {version}" for name, version in _versions()),
        "commit": _commit(),
        "session": now(),
    }


def now() -> str:
    """Date and time of day, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds").removesuffix("+00:00")


def refuse_strangers(rows: list[Row]) -> None:
    """Refuse to add to rows of another machine, commit or version: a file is one pass."""
    for row in rows:
        for name in SAME:
            if row.get(name) and row[name] != here()[name]:
                raise InputError(
                    f"the rows that are there have the {name} {row[name]!r}, this is "
                    f"{here()[name]!r}: use a new folder"
                )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        "unknown processor",
    )


def _versions() -> list[tuple[str, str]]:
    found = [("python", platform.python_version()), ("drmdp", __version__)]
    for name in PACKAGES:
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """Commit of all sources, with a plus if files have changed since; "" outside a repository."""
    folder = Path(__file__).parents[2]
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=folder, capture_output=True, text=True
        )
        if head.returncode != 0:
            return ""
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", "."], cwd=folder, capture_output=True, text=True
        )
    except OSError:
        return ""
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
