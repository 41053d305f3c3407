"""Large sparse interval models beside Storm, in one run: CPU seconds of a certified answer, and of
value iteration, which certifies nothing.

    python -m drmdp_lab.large KIND STATES [PYTHON] [QUESTION ...]     PYTHON has stormpy; "-" or none: drmdp alone

KIND is a grid (four ways, moves slip sideways, one cell in ten is a trap), a queue (two queues in a
row; serve the first, the second or both slowly), which is overloaded in the worst case, such a
queue under a light load, or a maze (a tree of corridors, moves may fail); QUESTION one of those
below. Storm reads a file and is timed without that, at 1e-6 relative, its default, by the method
that it takes itself and by plain value iteration; drmdp is timed from the arrays on, to a certified
gap of 1e-6. Storm has no averages of interval models.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

QUESTIONS = {
    "max": 'Pmax=? [!"avoid" U "target"]',
    "min": 'Pmin=? [!"avoid" U "target"]',
    "total": 'R{"cost"}min=? [F "end"]',
    "average": None,
}
QUESTIONS |= {f"{name} helped": text for name, text in QUESTIONS.items()}
"""By name; nature is against the agent, or helps."""
KINDS = ("grid", "queue", "light", "maze")
DOUBT = 0.05
"""What a probability may be off by."""


class World(NamedTuple):
    """One problem: bounds, sparse (S·A, S), costs (S, A), and states (S,) that are reached,
    avoided, and where a total ends.
    """

    lower: Any
    upper: Any
    costs: Any
    target: Any
    avoid: Any
    end: Any


def world(kind: str, n_states: int) -> World:
    """The problem of a kind with about so many states."""
    import numpy as np

    n = round(n_states**0.5)
    S, rng = n * n, np.random.default_rng(7)
    x, y = np.divmod(np.arange(S), n)
    flag = np.zeros(S, dtype=bool)
    target, avoid, end = flag.copy(), flag.copy(), flag.copy()
    ways = ((1, 0), (0, 1), (-1, 0), (0, -1))

    def beside(dx: int, dy: int) -> Any:
        return np.clip(x + dx, 0, n - 1) * n + np.clip(y + dy, 0, n - 1)

    if kind in ("queue", "light"):  # a service of the first leads to the second
        rate = 0.3 if kind == "queue" else 0.15
        more, on, off = beside(1, 0), np.where(x > 0, beside(-1, 1), np.arange(S)), beside(0, -1)
        moves = [
            [(more, rate), (on, a), (off, b), (np.arange(S), 1 - rate - a - b)]
            for a, b in ((0.5, 0.1), (0.1, 0.5), (0.3, 0.3))
        ]
        target, avoid = y == n - 1, (x + y) == 0
        end = avoid
        costs = np.stack([1.0 + x + y] * 3, axis=1) / n
    else:
        go = [beside(*way) for way in ways]
        if kind == "maze":
            free = _tree(n, rng)
            go = [np.where(free[k], go[k], np.arange(S)) for k in range(4)]
            moves = [[(go[k], 0.8), (np.arange(S), 0.1), (go[(k + 1) % 4], 0.1)] for k in range(4)]
        else:
            moves = [[(go[k], 0.8), (go[(k + 1) % 4], 0.1), (go[k - 1], 0.1)] for k in range(4)]
            avoid = rng.random(S) < 0.1
            avoid[[0, -1]] = False
        target[-1] = end[-1] = True
        if kind == "maze":
            avoid[S // 2] = True
        costs = 1.0 + rng.integers(0, 3, (S, 4))
    A = len(moves)
    rows = np.concatenate([np.arange(S) * A + a for a in range(A) for _ in moves[a]])
    columns = np.concatenate([there for own in moves for there, _ in own])
    mass = np.concatenate([np.full(S, p) for own in moves for _, p in own])
    from scipy import sparse

    mean = sparse.coo_array((mass, (rows, columns)), shape=(S * A, S)).tocsr()
    lower, upper = mean.copy(), mean.copy()
    sure = mean.data > 1 - 1e-9
    lower.data = np.where(sure, 1.0, np.maximum(mean.data - DOUBT, 0.01))
    upper.data = np.where(sure, 1.0, np.minimum(mean.data + DOUBT, 1.0))
    return World(lower, upper, costs, target, avoid, end)


def _tree(n: int, rng: Any) -> Any:
    """Open doors, (4, S), of a random spanning tree of the cells."""
    import numpy as np
    from scipy import sparse
    from scipy.sparse.csgraph import minimum_spanning_tree

    S = n * n
    cell = np.arange(S).reshape(n, n)
    pairs = np.concatenate(
        [
            np.stack([cell[:-1].ravel(), cell[1:].ravel()]),
            np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()]),
        ],
        axis=1,
    )
    weights = sparse.csr_array((rng.random(pairs.shape[1]) + 1, (pairs[0], pairs[1])), shape=(S, S))
    tree = minimum_spanning_tree(weights).tocoo()
    free = np.zeros((4, S), dtype=bool)
    down = tree.col == tree.row + n
    free[0, tree.row[down]] = free[2, tree.col[down]] = True
    free[1, tree.row[~down]] = free[3, tree.col[~down]] = True
    return free


def write(path: Path, asked: World, ends: Any) -> None:
    """A problem in Storm's format; states of `ends` (S,) keep what they are."""
    S, A = asked.costs.shape
    lines = [
        "@type: MDP",
        "@value_type: double-interval",
        "@parameters",
        "",
        "@reward_models",
        "cost",
        "@nr_states",
        str(S),
    ]
    lines += ["@nr_choices", str(int((~ends).sum()) * A + int(ends.sum())), "@model"]
    indptr, indices = asked.lower.indptr.tolist(), asked.lower.indices.tolist()
    low, high, costs = asked.lower.data.tolist(), asked.upper.data.tolist(), asked.costs.tolist()
    named = {
        "target": asked.target.tolist(),
        "avoid": asked.avoid.tolist(),
        "end": asked.end.tolist(),
    }
    with path.open("w") as file:
        file.write("\n".join(lines) + "\n")
        for s, over in enumerate(ends.tolist()):
            labels = "".join(f" {name}" for name, own in named.items() if own[s])
            text = f"state {s} [0]{' init' if s == 0 else ''}{labels}\n"
            if over:
                text += f"\taction 0 [0]\n\t\t{s} : [1, 1]\n"
            for a in range(0 if over else A):
                own = range(indptr[s * A + a], indptr[s * A + a + 1])
                text += f"\taction {a} [{costs[s][a]!r}]\n" + "".join(
                    f"\t\t{indices[e]} : [{low[e]!r}, {high[e]!r}]\n" for e in own
                )
            file.write(text)


def ask(folder: Path, questions: list[str]) -> None:
    """Have Storm answer; a line of JSON for each."""
    import stormpy  # type: ignore[import-not-found]

    for question in questions:
        text, path = (
            QUESTIONS[question],
            folder / ("total.drn" if "total" in question else "reach.drn"),
        )
        mode = stormpy.UncertaintyResolutionMode
        if text is None:
            continue
        model = stormpy.build_model_from_drn[stormpy.Interval](str(path))
        for how in ("default", "value iteration"):
            settings = stormpy.Environment()
            rule = settings.solver().min_max()
            rule.maximal_number_of_iterations = 10_000_000
            if how != "default":
                rule.method = stormpy.environments.MinMaxMethod.VALUE_ITERATION
                rule.precision, rule.relative_termination_criterion = (
                    stormpy.Rational("1/1000000"),
                    True,
                )
            begin = time.process_time()
            try:
                said = stormpy.model_checking(
                    model,
                    stormpy.parse_properties(text)[0],
                    environment=settings,
                    uncertainty_resolution_mode=mode.COOPERATIVE
                    if "helped" in question
                    else mode.ROBUST,
                )
                value: Any = said.get_value(0)
            except Exception as refused:  # what it says is the row
                value = str(refused)[:100]
            _tell(f"Storm, {how}", question, begin, value=value)


def solve(asked: World, questions: list[str]) -> None:
    """The same, certified."""
    import numpy as np

    import drmdp

    room = asked.upper.data - asked.lower.data
    short, wide = (np.asarray(m.sum(axis=1)) for m in (asked.lower, asked.upper - asked.lower))
    mean = asked.lower.copy()
    mean.data = mean.data + room * np.repeat(
        (1 - short) / np.maximum(wide, 1e-300), np.diff(mean.indptr)
    )
    ambiguity = drmdp.Intervals(asked.lower, asked.upper)
    for question in questions:
        name, *helped = question.split()
        ends = {"terminal": asked.end} if name == "total" else {}
        rest: Any = {"threads": 1, "nature": "cooperative" if helped else "adversarial"}
        model = drmdp.Model([mean], costs=asked.costs, discount=1.0, normalize=True, **ends)
        begin = time.process_time()
        found: Any
        if name in ("total", "average"):
            found = drmdp.solve(model, ambiguity, criterion=name, **rest)
        else:
            found = drmdp.reach(
                model, ambiguity, asked.target, asked.avoid, minimise=name == "min", **rest
            )
        counts = {
            "sweeps": len(found.history),
            "gap": found.gap / found.scale,
            "status": found.status.value,
        }
        _tell(
            "drmdp", question, begin, value=[float(found.lower[0]), float(found.upper[0])], **counts
        )


def _tell(who: str, question: str, begin: float, **more: Any) -> None:
    used = {"seconds": round(time.process_time() - begin, 2)}
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    sys.stdout.write(
        json.dumps({"question": question, "who": who, **used, "peak_gb": peak, **more}) + "\n"
    )
    sys.stdout.flush()


def main(kind: str, n_states: int, python: str = "-", *questions: str) -> None:
    """Both, one after the other, each in a process of its own."""
    asked = world(kind, n_states)
    if python != "-":
        with tempfile.TemporaryDirectory() as folder:
            for name, ends in (("reach", asked.target | asked.avoid), ("total", asked.end)):
                if not questions or any((name == "total") == ("total" in own) for own in questions):
                    write(Path(folder) / f"{name}.drn", asked, ends)
            subprocess.run([python, __file__, "ask", folder, *(questions or QUESTIONS)], check=True)
    solve(asked, list(questions or QUESTIONS))


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        ask(Path(sys.argv[2]), sys.argv[3:])
    else:
        main(sys.argv[1], int(float(sys.argv[2])), *sys.argv[3:])
