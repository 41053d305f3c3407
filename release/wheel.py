"""Build a wheel with compiled kernels: `python release/wheel.py [SET]…`.

Each set is compiled for every level of `drmdp.core.shipped` that this processor has, in double and single precision. The wheel goes to `dist`; it is for the
Python and the system that built it. On a machine that has no such level the wheel is a pure one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from drmdp.core import shipped
from drmdp.core.kept import SUFFIX, settings, versions_shared

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src" / "drmdp" / "_kernels"


def compiled(level: str, sets: list[str], folder: Path) -> int:
    """Compile for a level; how many kernels there are."""
    own = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(folder)}
    for precision in ((), ("--float32",)):
        command = [sys.executable, "-m", "drmdp", "warm-up", *sets, *precision]
        subprocess.run(command, env=os.environ | own, check=True)
    files = sorted((folder / "drmdp").glob(f"*{SUFFIX}"))
    (KERNELS / level).mkdir(parents=True)
    for file in files:
        shutil.copy2(file, KERNELS / level)
    return len(files)


def main(sets: list[str]) -> None:
    """Compile, build, and leave the sources as they were."""
    shutil.rmtree(KERNELS, ignore_errors=True)
    try:
        for level in shipped.fitting():
            with tempfile.TemporaryDirectory() as folder:
                sys.stderr.write(f"{level}: {compiled(level, sets, Path(folder))} kernels\n")
        if KERNELS.is_dir():
            (KERNELS / shipped.MADE_FOR).write_text(f"{versions_shared()}\n{settings()}\n", "utf-8")
        command = [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(ROOT / "dist"),
            str(ROOT),
        ]
        subprocess.run(command, check=True)
    finally:
        shutil.rmtree(KERNELS, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
