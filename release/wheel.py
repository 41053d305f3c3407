"""Build a wheel with compiled kernels: `python release/wheel.py [--quick] [--out DIR] [SET]…`.

Each set is compiled for every level of `drmdp.core.shipped` that this processor has, in double and single precision; with `--quick`, to try things out, for the
highest level in double precision. The wheel goes to `dist`; it is for the Python and the system that built it. On a machine that has no such level the wheel is
a pure one.

What was compiled stays in `build/kernels`, by what it is made of: a build that was cut short goes on, and the next one compiles what changed. All sets
take some 40 CPU minutes from nothing; cores share them, a set each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from drmdp.core import shipped
from drmdp.core.kept import SUFFIX, settings, versions_shared

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src" / "drmdp" / "_kernels"
KEPT = ROOT / "build" / "kernels"


def compiled(level: str, precisions: list[list[str]], sets: list[str]) -> int:
    """Compile for a level; how many kernels go into the wheel: those that a second process loads, for the others are inside them."""
    folder = KEPT / level
    folder.mkdir(parents=True, exist_ok=True)
    own = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(folder)}

    def warm_up() -> list[Path]:
        for precision in precisions:
            command = [sys.executable, "-m", "drmdp", "warm-up", *sets, *precision]
            subprocess.run(command, env=os.environ | own, check=True)
        return sorted((folder / "drmdp").glob(f"*{SUFFIX}"))

    files = warm_up()
    for file in files:
        os.utime(file, (0, 0))
    assert warm_up() == files, "a second process compiled what the first did not"
    used = [file for file in files if file.stat().st_mtime > 0]
    (KERNELS / level).mkdir(parents=True)
    for file in used:
        shutil.copy2(file, KERNELS / level)
    return len(used)


def main() -> None:
    """Compile, build, and leave the sources as they were."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default=str(ROOT / "dist"))
    given = parser.parse_args()
    quick = 1 if given.quick else None
    shutil.rmtree(KERNELS, ignore_errors=True)
    try:
        for level in shipped.fitting()[:quick]:
            sys.stderr.write(f"{level}: {compiled(level, [[], ['--float32']][:quick], given.sets)} kernels\n")
        if KERNELS.is_dir():
            (KERNELS / shipped.MADE_FOR).write_text(f"{versions_shared()}\n{settings()}\n", "utf-8")
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", given.out, str(ROOT)]
        subprocess.run(command, check=True)
    finally:
        shutil.rmtree(KERNELS, ignore_errors=True)


if __name__ == "__main__":
    main()
