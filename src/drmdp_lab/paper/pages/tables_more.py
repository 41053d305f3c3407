"""Tables of the studies beside Figures 1 and 2, in Markdown, each a function of the rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.pages.figure_parts import FAMILIES
from drmdp_lab.paper.pages.judge_theory import LATE, tail_slope
from drmdp_lab.paper.pages.markdown import cell, markdown, seconds, size, spread
from drmdp_lab.paper.pages.select import short, slope, timed, where
from drmdp_lab.paper.records import Row


def rules(rows: list[Row]) -> str:
    """Stopping rules."""
    names = {"paper": "as printed", "puterman": "corrected", "certified": "certified"}
    body = []
    own = where(rows, study="rules")
    for family, title in FAMILIES.items():
        for discount in sorted({row["discount"] for row in own}):
            for rule, label in names.items():
                chosen = where(own, family=family, discount=discount, rule=rule)
                if chosen:
                    loss = [row["loss"] / row["tol"] for row in chosen]
                    kept = sum(value <= 1 for value in loss)
                    sweeps = spread([row["kernel_passes"] for row in chosen])
                    proved = spread([row["own_gap"] / row["tol"] for row in chosen], 2)
                    body.append(
                        [
                            title,
                            discount,
                            label,
                            sweeps,
                            spread(loss, 2),
                            f"{kept} of {len(chosen)}",
                            proved,
                        ]
                    )
    return markdown(
        (
            "domain",
            "λ",
            "rule",
            "sweeps",
            "true loss of the policy / ε",
            "ε-optimal",
            "certified gap / ε",
        ),
        body,
    )


def gaps(rows: list[Row]) -> str:
    """Figures 3 and 4."""
    body = []
    for study, x, letter in (("gap-kernels", "n_kernels", "N"), ("gap-states", "n_states", "S")):
        for metric, order in (("l2", 2), ("l1", 1)):
            for method in ("gap-exact", "gap-conic"):
                own = timed(where(rows, study=study, metric=metric, method=method))
                if own:
                    top = max(row[x] for row in own)
                    at = [row["cpu_seconds"] for row in where(own, **{x: top})]
                    label = METHODS[method].label
                    body.append(
                        [
                            letter,
                            f"({metric}, {order})",
                            label,
                            str(slope(own, x) or "–"),
                            f"{letter} = {top}",
                            seconds(float(np.median(at))),
                        ]
                    )
    return markdown(("against", "ball", "computed by", "exponent", "at", "median CPU time"), body)


def powers(rows: list[Row]) -> str:
    """Slopes of convergence curves."""
    body = []
    for row in where(rows, study="rates"):
        found = tail_slope(row)
        if found is not None:
            q = int(METHODS[row["method"]].label[-1])
            bound = f"−{q / (q + 1):.2f}" if " p=" in row["method"] else "–"
            cells = [FAMILIES[row["family"]], f"{row['radius']:.3g}", METHODS[row["method"]].label]
            late = tail_slope(row, LATE)
            slopes = (f"{found:.2f}", "–" if late is None else f"{late:.2f}")
            body.append(
                [*cells, *(text.replace("-", "−") for text in slopes), bound, row["curve"][-1][0]]
            )
    columns = ("slope of (DG) in T", f"over the last factor of {LATE:g}")
    return markdown(("domain", "radius", "method", *columns, "bound", "T"), sorted(body, key=str))


def maps(rows: list[Row]) -> str:
    """Evaluations of the (ℓ∞, 1) map."""
    body = []
    for accuracy in sorted({row["tol"] for row in where(rows, study="maps")}, reverse=True):
        own = where(rows, study="maps", tol=accuracy)
        counts = {name: where(own, method=name) for name in ("map-bisection", "map-newton")}
        if all(counts.values()):
            cells = (short(found[0]["n_iters"]) for found in counts.values())
            body.append([f"{accuracy:.0e}", size(own), *cells])
    head = (
        "accuracy ε",
        "S/A/N",
        "evaluations of a row, three nested bisections",
        "multipliers γ, Newton's method",
    )
    return markdown(head, body)


def starts(rows: list[Row]) -> str:
    """Algorithm 1 from v = 0, as in the experiments, and from a random v, as in the algorithm's
    first line.
    """
    body = []
    own = where(rows, study="starts")
    for family, title in FAMILIES.items():
        for N in sorted({row["n_kernels"] for row in own}):
            for name in ("algorithm-1", "algorithm-1 random v", "fast"):
                at = where(own, family=family, n_kernels=N, method=name)
                if at:
                    steps = spread([row["n_iters"] for row in at])
                    body.append([title, size(at), METHODS[name].label, steps, cell(at)])
    return markdown(("domain", "S/A/N", "method", "steps to (DG) ≤ .05", "median CPU time"), body)


def steps(rows: list[Row]) -> str:
    """What a step costs."""
    body = []
    for letter, x in (("N", "n_kernels"), ("S", "n_states"), ("A", "n_actions")):
        own = where(rows, study=f"step-{letter}")
        if found := slope(own, x):
            bound = "1" if letter != "S" else "2, and log S"
            body.append(
                [
                    letter,
                    str(found),
                    bound,
                    ", ".join(
                        f"{row[x]}: {seconds(row['cpu_seconds'])}"
                        for row in sorted(own, key=lambda r: r[x])
                    ),
                ]
            )
    return markdown(("in", "exponent of a step, all states", "paper's bound", "CPU time"), body)


def by_setting(study: str, setting: str, title: str) -> Callable[[list[Row]], str]:
    """Times of all methods against a setting."""

    def make(rows: list[Row]) -> str:
        own = where(rows, study=study)
        names = [name for name in METHODS if where(own, method=name)]
        body = []
        for family, label in FAMILIES.items():
            for value in sorted({row[setting] for row in own}):
                at = where(own, family=family, **{setting: value})
                if not at:
                    continue
                body.append(
                    [label, f"{value:g}", *(cell(where(at, method=name)) for name in names)]
                )
        return markdown(("domain", title, *(METHODS[name].label for name in names)), body)

    return make


def pairs(rows: list[Row]) -> str:
    """All balls."""
    own = where(rows, study=("pairs", "baseline"))
    names = [name for name in METHODS if where(own, method=name)]
    kinds = sorted(
        {(row["metric"], str(row["order"]), row["n_states"], row["n_kernels"]) for row in own}
    )
    body = []
    for family, label in FAMILIES.items():
        for metric, order, S, N in kinds:
            at = [
                row
                for row in where(own, family=family, metric=metric, n_states=S, n_kernels=N)
                if str(row["order"]) == order
            ]
            if at:
                size = f"{S}/{at[0]['n_actions']}/{N}"
                body.append(
                    [
                        label,
                        f"({metric}, {order.removesuffix('.0')})",
                        size,
                        *(cell(where(at, method=name)) for name in names),
                    ]
                )
    return markdown(("domain", "ball", "S/A/N", *(METHODS[name].label for name in names)), body)


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "rules": rules,
    "gap": gaps,
    "rates": powers,
    "maps": maps,
    "steps": steps,
    "starts": starts,
    "radii": by_setting("radii", "radius", "radius"),
    "discounts": by_setting("discounts", "discount", "λ"),
    "pairs": pairs,
}
