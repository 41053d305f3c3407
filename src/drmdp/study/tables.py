"""The tables, in Markdown, each a function of the rows. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.study import claims, errata, findings
from drmdp.study.figures import COMPARED, FAMILIES
from drmdp.study.judge_theory import tail_slope
from drmdp.study.methods import METHODS
from drmdp.study.rows import Row
from drmdp.study.select import panel, ratios, reached, short, slope, timed, where

STUDIES = ("kernels", "states")
MARKS = "*: some runs are extrapolated; †: some were cut off and count with their limit"
RULES = {"duality-gap": "same certificate", "printed": "printed rules"}


def write(rows: list[Row], folder: str | Path) -> list[str]:
    """Write what the rows allow; return the names."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    done = []
    for name, make in TABLES.items():
        if text := make(rows):
            (target / f"{name}.md").write_text(text, encoding="utf-8")
            done.append(name)
    return done


def markdown(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; "" without a body."""
    lines = [" | ".join(cell.replace("|", "∣") for cell in map(str, row)) for row in body]
    if not lines:
        return ""
    return "\n".join(f"| {line} |" for line in (" | ".join(head), " | ".join("---" for _ in head), *lines)) + "\n"


def seconds(value: float) -> str:
    """Seconds in a unit that suits them."""
    for unit, size in (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        if value < 1000 * size or unit == "s":
            return f"{value / size:.3g} {unit}"
    raise AssertionError


def spread(values: list[float], digits: int = 3) -> str:
    """Median and extremes."""
    low, middle, high = min(values), float(np.median(values)), max(values)
    return f"{short(middle, digits)} ({short(low, digits)} – {short(high, digits)})"


# ---------------------------------------------------------------------- what the standard run must show


def ratio_table(rows: list[Row]) -> list[list[str]]:
    """CPU time of each method over that of the exact engine, by domain and rule: median and extremes over instances."""
    body = []
    own = where(rows, study=STUDIES)
    for rule, label in RULES.items():
        chosen = panel(own, rule)
        for name in COMPARED[1:]:
            cells = []
            for family in FAMILIES:
                domain = where(chosen, family=family, method=(name, "exact"))
                found = ratios(where(domain, status=("solved", "stopped", "extrapolated", "time_limit")), name)
                cells.append(spread(found) + _marks(where(domain, method=name)) if found else "–")
            if any(cell != "–" for cell in cells):
                body.append([label, METHODS[name].label, *cells])
    return body


def _marks(rows: list[Row]) -> str:
    statuses = {row["status"] for row in rows}
    return "*" * ("extrapolated" in statuses) + "†" * ("time_limit" in statuses)


def _ratios(rows: list[Row]) -> str:
    text = markdown(("rule", "method", *FAMILIES.values()), ratio_table(rows))
    return text + f"\n{MARKS}.\n" if text else ""


def _exponents(rows: list[Row]) -> str:
    body = []
    for study, x, letter in (("kernels", "n_kernels", "N"), ("states", "n_states", "S")):
        for name in COMPARED:
            cells = []
            for family in FAMILIES:
                for radius in ("paper", 0.1):
                    chosen = where(rows, study=study, family=family, radius=radius, method=name, rule="duality-gap")
                    cells.append(str(slope(chosen, x) or "–"))
            if any(cell != "–" for cell in cells):
                body.append([letter, METHODS[name].label, *cells])
    large = [
        str(slope(where(rows, study="growth", family=family, radius=theta), "n_kernels") or "–")
        for family in FAMILIES
        for theta in ("paper", 0.1)
    ]
    if any(cell != "–" for cell in large):
        body.append(["N, large", METHODS["exact"].label, *large])
    head = ("in", "method", *(f"{title}, θ {radius}" for title in FAMILIES.values() for radius in ("paper", ".1")))
    note = "\nFitted slope in a log-log plot ± half width of the 95 % interval. *: with extrapolated runs.\n"
    return markdown(head, body) + note if body else ""


def _behind(rows: list[Row]) -> str:
    """Instances on which some method was faster than the exact engine."""
    body = []
    own = where(rows, study=("kernels", "states", "radii", "pairs", "discounts", "baseline", "update", "nominal"))
    own = [row for row in timed(own) if row["rule"] == "duality-gap"]
    for name in sorted({row["method"] for row in own} - {"exact"}):
        by: dict[tuple[str, str], list[float]] = {}
        for study in sorted({row["study"] for row in own}):
            for family in FAMILIES:
                found = ratios(where(own, study=study, family=family), name)
                if found:
                    by[study, family] = found
        for (study, family), found in by.items():
            ahead = [value for value in found if value < 1]
            if ahead:
                times = f"{1 / min(ahead):.2g}×"
                body.append([METHODS[name].label, study, FAMILIES[family], f"{len(ahead)} of {len(found)}", times])
    if not body:
        return "No method was faster than the exact engine on any instance.\n" if own else ""
    return markdown(("method ahead of the exact engine", "study", "domain", "instances", "at most by"), body)


def _crossover(rows: list[Row]) -> str:
    """Algorithm 1 against value iteration with conic updates."""
    body = []
    for study, x, letter in (("kernels", "n_kernels", "N"), ("states", "n_states", "S")):
        for rule, label in RULES.items():
            for family, title in FAMILIES.items():
                own = where(panel(where(rows, study=study, radius="paper"), rule), family=family)
                cells = {}
                for size in sorted({row[x] for row in own}):
                    at = where(own, **{x: size})
                    if found := ratios(timed(at), "conic-vi", "algorithm-1"):
                        cells[size] = float(np.median(found))
                if cells:
                    ahead = next(
                        (f"{letter} = {n}" for n in cells if all(cells[m] > 1 for m in cells if m >= n)), "never"
                    )
                    shown = ", ".join(f"{n}: {value:.2g}" for n, value in cells.items())
                    body.append([title, label, letter, ahead, shown])
    head = ("domain", "rule", "against", "Algorithm 1 ahead from", "time of conic VI / time of Algorithm 1, median")
    return markdown(head, body)


def _foresight(rows: list[Row]) -> str:
    """How well an extrapolation foresees a run that was then done in full."""
    body = []
    for family, title in FAMILIES.items():
        own = [row for row in reached(where(rows, family=family)) if row.get("foreseen_cpu_seconds")]
        found = [row["foreseen_cpu_seconds"] / row["cpu_seconds"] for row in own]
        if found:
            body.append([title, len(found), spread(found)])
    return markdown(("domain", "runs", "foreseen / measured CPU time: median (extremes)"), body)


# ---------------------------------------------------------------------- the other studies


def _rules(rows: list[Row]) -> str:
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
                    body.append([title, discount, label, sweeps, spread(loss, 2), f"{kept} of {len(chosen)}", proved])
    return markdown(
        ("domain", "λ", "rule", "sweeps", "true loss of the policy / ε", "ε-optimal", "certified gap / ε"), body
    )


def _gaps(rows: list[Row]) -> str:
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


def _powers(rows: list[Row]) -> str:
    body = []
    for row in where(rows, study="rates"):
        found = tail_slope(row)
        if found is not None:
            q = int(METHODS[row["method"]].label[-1])
            cells = [FAMILIES[row["family"]], f"{row['radius']:.3g}", METHODS[row["method"]].label]
            body.append([*cells, f"{found:.2f}", f"−{q / (q + 1):.2f}", row["curve"][-1][0]])
    return markdown(("domain", "radius", "method", "slope of (DG) in T", "theorem", "T"), sorted(body, key=str))


def _starts(rows: list[Row]) -> str:
    """Algorithm 1 from v = 0, as in the experiments, and from a random v, as in the algorithm's first line."""
    body = []
    own = where(rows, study="starts")
    for family, title in FAMILIES.items():
        for N in sorted({row["n_kernels"] for row in own}):
            for name in ("algorithm-1", "algorithm-1 random v", "fast"):
                at = where(own, family=family, n_kernels=N, method=name)
                if at:
                    steps = spread([row["n_iters"] for row in at])
                    body.append([title, _size(at), METHODS[name].label, steps, _cell(at)])
    return markdown(("domain", "S/A/N", "method", "steps to (DG) ≤ .05", "median CPU time"), body)


def _size(rows: list[Row]) -> str:
    return f"{rows[0]['n_states']}/{rows[0]['n_actions']}/{rows[0]['n_kernels']}"


def _steps(rows: list[Row]) -> str:
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
                    ", ".join(f"{row[x]}: {seconds(row['cpu_seconds'])}" for row in sorted(own, key=lambda r: r[x])),
                ]
            )
    return markdown(("in", "exponent of a step, all states", "paper's bound", "CPU time"), body)


def _by_setting(study: str, setting: str, title: str) -> Callable[[list[Row]], str]:
    def make(rows: list[Row]) -> str:
        own = where(rows, study=study)
        names = [name for name in METHODS if where(own, method=name)]
        body = []
        for family, label in FAMILIES.items():
            for value in sorted({row[setting] for row in own}):
                at = where(own, family=family, **{setting: value})
                body.append([label, f"{value:g}", *(_cell(where(at, method=name)) for name in names)])
        return markdown(("domain", title, *(METHODS[name].label for name in names)), body)

    return make


def _cell(rows: list[Row]) -> str:
    """Median time, with what happened."""
    own = [row for row in rows if row.get("cpu_seconds") is not None]
    if not own:
        return "missing" if any(row["status"] == "missing" for row in rows) else "–"
    text = seconds(float(np.median([row["cpu_seconds"] for row in own])))
    statuses = {row["status"] for row in own}
    if "extrapolated" in statuses:
        return text + "*"
    return f"> {text}" if "time_limit" in statuses else f"{text} (diverged)" if "diverged" in statuses else text


def _pairs(rows: list[Row]) -> str:
    own = where(rows, study=("pairs", "baseline"))
    names = [name for name in METHODS if where(own, method=name)]
    kinds = sorted({(row["metric"], str(row["order"]), row["n_states"], row["n_kernels"]) for row in own})
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
                        *(_cell(where(at, method=name)) for name in names),
                    ]
                )
    return markdown(("domain", "ball", "S/A/N", *(METHODS[name].label for name in names)), body)


def _peers(rows: list[Row]) -> str:
    body = []
    for study in ("nominal", "update"):
        own = where(rows, study=study)
        for row in sorted(own, key=lambda r: (r["family"], r["n_states"], r["method"], r["seed"])):
            if row["seed"] == 0:
                gap = "–" if row.get("gap") is None else f"{row['gap']:.1g}"
                error = f"{row['update_error']:.1g}" if row.get("update_error") is not None else "–"
                size = f"{row['n_states']}/{row['n_actions']}/{row['n_kernels']}"
                body.append(
                    [
                        FAMILIES[row["family"]],
                        size,
                        f"{row['radius']:g}",
                        METHODS[row["method"]].label,
                        row["status"],
                        _cell([row]),
                        gap,
                        error,
                    ]
                )
    return markdown(
        ("domain", "S/A/N", "radius", "method", "status", "CPU time", "certified gap", "error of an update"), body
    )


def _provenance(rows: list[Row]) -> str:
    """Where the rows come from."""
    lines: list[list[Any]] = []
    for name in ("machine", "versions", "commit", "date"):
        lines.extend([name, value] for value in sorted({str(row[name]) for row in rows if row.get(name)}))
    lines.append(["rows", len(rows)])
    statuses = sorted({row["status"] for row in rows})
    lines.append(["status", ", ".join(f"{status} {len(where(rows, status=status))}" for status in statuses)])
    total = sum(row["seconds"] for row in rows if row.get("seconds") and row["status"] != "extrapolated")
    lines.append(["time in solves", f"{total / 60:.1f} minutes"])
    return markdown(("", "this run"), lines)


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "provenance": _provenance,
    "findings": findings.bullets,
    "claims": lambda rows: markdown(claims.HEAD, claims.judge(rows)),
    "errata": lambda rows: markdown(errata.HEAD, errata.judge(rows)),
    "ratios": _ratios,
    "exponents": _exponents,
    "behind": _behind,
    "crossover": _crossover,
    "foresight": _foresight,
    "rules": _rules,
    "gap": _gaps,
    "rates": _powers,
    "steps": _steps,
    "starts": _starts,
    "radii": _by_setting("radii", "radius", "radius"),
    "discounts": _by_setting("discounts", "discount", "λ"),
    "pairs": _pairs,
    "peers": _peers,
}
