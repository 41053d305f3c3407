"""Whoever uses the package gets its types: a small program is checked from outside, against the
package as it is installed.

mypy takes ten seconds for it, so it runs apart (`make walk`).
"""

import subprocess
import sys

import pytest

RIGHT = """
import numpy as np

import drmdp

model: drmdp.Model = drmdp.instances.reservoir(n_kernels=3, seed=1)
ball = drmdp.Wasserstein(0.1, "l2", 2)
solution: drmdp.Solution = drmdp.solve(model, ball, max_iters=100)
worst: float = drmdp.evaluate(model, ball, solution).upper.max().item()
again = drmdp.certify(model, ball, solution, solution.kernel)
sure: bool = again.gap <= 1e-3 and solution.status == "solved"
chosen: float = drmdp.radius.cross_validate(model, drmdp.Wasserstein(0.0), np.linspace(0, 1, 3)).radius
plan: drmdp.HorizonSolution = drmdp.finite_horizon(model, ball, stages=3)
fast: drmdp.FirstOrder = drmdp.FirstOrder.fast()
moved = drmdp.bellman(model, ball, np.zeros(model.n_states))
"""
WRONG = {
    'drmdp.solve(model, ball, max_iters="many")': "arg-type",
    "drmdp.solve(model)": "call-arg",
    "drmdp.sovle(model, ball)": "attr-defined",
    "name: str = drmdp.solve(model, ball)": "assignment",
    "drmdp.Wasserstein(0.1, [2])": "arg-type",
}


def checked(folder, text):
    """What mypy says of a program in an empty folder."""
    (folder / "program.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(folder / "cache"),
        "program.py",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.walk
def test_a_program_of_somebody_else_is_checked(tmp_path):
    lines = len(RIGHT.splitlines()) + 1
    said = checked(tmp_path, "\n".join([RIGHT, *WRONG]))
    found = [line for line in said.splitlines() if ": error:" in line]
    expected = [f"program.py:{lines + k + 1}" for k in range(len(WRONG))]
    assert [line.split(": ")[0] for line in found] == expected, said
    assert all(f"[{code}]" in line for line, code in zip(found, WRONG.values(), strict=True)), said
