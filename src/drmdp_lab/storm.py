"""Random interval problems that Storm solves too: probabilities of reaching a target and expected
costs until it, both ways, with and against nature.

    python -m drmdp_lab.storm make FOLDER          writes the problems as .drn files, with drmdp
    PYTHON src/drmdp_lab/storm.py ask FOLDER FILE  asks Storm, with a Python that has stormpy, and writes its answers as JSON

Storm's answers are those of its value iteration with precision 1e-12, which bounds nothing; they
are compared with certified bounds in the tests. Storm wants every transition to stay possible, so
lower bounds are positive. Numbers have few bits, so that files are exact.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COUNT = 30
"""Problems of each kind; each is asked in four ways."""
WAYS = {"max": "maximise", "min": "minimise"}
MODES = {"robust": "adversarial", "cooperative": "cooperative"}


def problem(kind: str, seed: int) -> tuple[Any, Any, Any]:
    """Bounds (S, A, S) and costs (S, A) of a problem: the last state is the target, and of "reach"
    the one before a trap.
    """
    import numpy as np

    rng = np.random.default_rng([seed, kind == "cost"])
    S, A = int(rng.integers(6, 13)), int(rng.integers(1, 4))
    lower, upper = np.zeros((2, S, A, S))
    for s in range(S - 2 if kind == "reach" else S - 1):
        for a in range(A):
            if (
                kind == "reach" and rng.random() < 0.25
            ):  # surely somewhere, perhaps where it is: to go round in circles
                to = s if rng.random() < 0.4 else int(rng.integers(S - 2))
                lower[s, a, to] = upper[s, a, to] = 1.0
                continue
            near = np.unique(np.clip(s + rng.integers(-4, 5, 4), 0, S - 1))
            near = near if kind == "reach" else np.unique(np.append(near, S - 1))
            p = rng.dirichlet(np.ones(near.size))
            low = np.maximum(p - 0.15 * rng.random(near.size), np.minimum(p, 2.0**-6) / 2)
            high = np.minimum(p + 0.15 * rng.random(near.size), 1)
            lower[s, a, near] = np.floor(low * 2**12) / 2**12 + 2.0**-14
            upper[s, a, near] = np.minimum(np.ceil(high * 2**12) / 2**12 + 2.0**-12, 1)
    ends = slice(S - 2, S) if kind == "reach" else slice(S - 1, S)
    for s in range(S)[ends]:
        lower[s, :, s] = upper[s, :, s] = 1.0
    return lower, upper, rng.integers(1, 10, (S, A)) * 1.0


def write(path: Path, lower: Any, upper: Any, costs: Any) -> None:
    """A problem in Storm's format."""
    S, A, _ = lower.shape
    lines = [
        "@type: MDP",
        "@value_type: double-interval",
        "@parameters",
        "",
        "@reward_models",
        "cost",
        "@nr_states",
        str(S),
        "@nr_choices",
        str((S - 1) * A + 1),
        "@model",
    ]
    for s in range(S):
        end = s == S - 1
        lines.append(f"state {s} [0]{' init' if s == 0 else ''}{' target' if end else ''}")
        for a in range(1 if end else A):
            lines.append(f"\taction {a} [{0.0 if end else float(costs[s, a])!r}]")
            lines += [
                f"\t\t{t} : [{float(lower[s, a, t])!r}, {float(upper[s, a, t])!r}]"
                for t in upper[s, a].nonzero()[0]
            ]
    path.write_text("\n".join(lines) + "\n")


def make(folder: Path) -> None:
    """Write all problems."""
    folder.mkdir(exist_ok=True)
    for kind in ("reach", "cost"):
        for seed in range(COUNT):
            write(folder / f"{kind}{seed:02d}.drn", *problem(kind, seed))


def ask(folder: Path, answers: Path) -> None:
    """Have Storm solve them."""
    import stormpy  # type: ignore[import-not-found]

    settings = stormpy.Environment()
    rule = settings.solver().min_max()
    rule.method = stormpy.environments.MinMaxMethod.VALUE_ITERATION
    rule.precision, rule.maximal_number_of_iterations = (
        stormpy.Rational("1/1000000000000"),
        10_000_000,
    )
    found: dict[str, list[float]] = {}
    for path in sorted(folder.glob("*.drn")):
        model = stormpy.build_model_from_drn[stormpy.Interval](str(path))
        for way in WAYS:
            text = (
                f'P{way}=? [F "target"]'
                if path.stem.startswith("reach")
                else f'R{{"cost"}}{way}=? [F "target"]'
            )
            for mode in MODES:
                how = getattr(stormpy.UncertaintyResolutionMode, mode.upper())
                said = stormpy.model_checking(
                    model,
                    stormpy.parse_properties(text)[0],
                    uncertainty_resolution_mode=how,
                    environment=settings,
                )
                values = (float(said.get_value(s)) for s in range(model.nr_states))
                found[f"{path.stem} {way} {mode}"] = [float(f"{value:.12g}") for value in values]
    answers.write_text(
        "{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(own)}" for name, own in found.items())
        + "\n}\n"
    )


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        ask(Path(sys.argv[2]), Path(sys.argv[3]))
