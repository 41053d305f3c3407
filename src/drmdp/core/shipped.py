"""Kernels that a wheel brings along, so that nothing is compiled at first use.

They lie in `_kernels/<level>`, as `drmdp.core.kept` keeps them, and were compiled for a level of x86-64 instead of the processor of one machine. In
their keys the level stands for the processor. A level fits where the processor has all its features; the highest that fits is used, before anything
that was compiled here, so that bits depend on the wheel and the level only. Everything else in a key is as always: with another Python, NumPy or
Numba nothing is found, and kernels are compiled as in a clone. `why_not` says why; it compares what `MADE_FOR` in the folder says.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from llvmlite import binding  # type: ignore[import-untyped]
from numba.core import config

FOLDER = Path(__file__).parent.parent / "_kernels"
MADE_FOR = "made_for"
"""A file: the versions that the kernels were compiled with in a line, the settings of Numba in another."""
LEVELS = {
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "ssse3"),
    "x86-64-v2": ("cx16", "popcnt", "sse4.2", "ssse3"),
}
"""Features that a processor has at least, highest level first."""


def machine(triple: str, level: str) -> tuple[str, str, str]:
    """What a key says of the processor; Numba says the same of itself where NUMBA_CPU_NAME is the level and NUMBA_CPU_FEATURES is empty."""
    return triple, level, ""


def fitting() -> list[str]:
    """Levels that the processor of this machine has, highest first."""
    features = binding.get_host_cpu_features()
    return [level for level, needed in LEVELS.items() if all(features.get(name) for name in needed)]


@cache
def level() -> str | None:
    """The level whose kernels are used, if there are any; none where somebody chose a processor."""
    own: object = getattr(config, "CPU_NAME", None)
    if own is not None or not FOLDER.is_dir():
        return None
    return next((level for level in fitting() if (FOLDER / level).is_dir()), None)


def why_not(versions: str, settings: str) -> str | None:
    """Why no kernel of the wheel can be used here; None if one can, or if there are none."""
    if not FOLDER.is_dir():
        return None
    own: object = getattr(config, "CPU_NAME", None)
    if own is not None:
        return f"NUMBA_CPU_NAME asks for {own}"
    if level() is None:
        there = ", ".join(sorted(path.name for path in FOLDER.iterdir() if path.is_dir()))
        return f"they are for {there}, which this processor is not"
    try:
        their_versions, their_settings = (FOLDER / MADE_FOR).read_text("utf-8").splitlines()
        pairs = [pair for pair in zip(_named(their_versions), _named(versions), strict=True) if pair[0] != pair[1]]
    except (OSError, ValueError):
        return f"{FOLDER / MADE_FOR} does not say what they are for"
    if pairs:
        theirs, ours = (", ".join(side) for side in zip(*pairs, strict=True))
        return f"they are for {theirs}, and this is {ours}"
    return None if settings == their_settings else "settings of Numba differ from theirs"


def _named(versions: str) -> list[str]:
    """What a key says of versions, with the name of each."""
    python, number, *others = versions.split()
    return [f"{python} {number}", *map(" ".join, zip(("Numba", "llvmlite", "NumPy"), others, strict=True))]
