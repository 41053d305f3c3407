"""The tables of docs/performance/tables, each a function of the rows of a bench run and of those of
the reproduction. Nothing is measured here; a table without rows says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from drmdp_lab.paper.pages.figure_parts import FAMILIES
from drmdp_lab.paper.pages.markdown import cell, markdown
from drmdp_lab.paper.pages.select import fit, ratios, short, where
from drmdp_lab.paper.quiet import BUSY
from drmdp_lab.paper.records import Row

EMPTY = "*Not measured yet.*\n"
SOLVES = ("(l1, 1)", "(l2, 2)", "(linf, inf)", "(l2, inf)", "(l1, inf)", "(linf, 1)")
COMPARED = {
    "conic-vi": "value iteration, Clarabel",
    "algorithm-1": "paper",
    "fast": "preset",
    "exact": "exact engine",
}


class Rows(NamedTuple):
    """What the pages are made of."""

    bench: list[Row]
    study: list[Row]  # of the reproduction

    def of(self, table: str, **settings: Any) -> list[Row]:
        """Rows of one table of the bench run."""
        return where(self.bench, table=table, **settings)


def digits(value: float | None, n: int = 2) -> str:
    """A number in so many digits, without the 0 before its point."""
    if value is None or not math.isfinite(value):
        return "–"
    text = short(value, n)
    return text[1:] if text.startswith("0.") else text


def pivot(
    rows: Iterable[Row],
    line: Callable[[Row], str],
    column: Callable[[Row], str],
    value: Callable[[list[Row]], str],
    head: str,
) -> str:
    """A Markdown table with a line and a column for each text, in the order in which they come."""
    cells: dict[str, dict[str, list[Row]]] = {}
    columns: dict[str, None] = {}
    for row in rows:
        columns[column(row)] = None
        cells.setdefault(line(row), {}).setdefault(column(row), []).append(row)
    body = [
        [name, *(value(own[key]) if key in own else "–" for key in columns)]
        for name, own in cells.items()
    ]
    return markdown((head, *columns), body)


def one(field: str, n: int = 2, factor: float = 1.0) -> Callable[[list[Row]], str]:
    """The field of a single row in so many digits."""
    return lambda rows: digits(factor * rows[0][field], n)


def both(rows: list[Row], field: str) -> str:
    """The field of two rows, or one, with a stroke between them."""
    return " / ".join(digits(row[field]) for row in rows)


# ---------------------------------------------------------------------- performance


def sweeps(rows: Rows) -> str:
    """Warm sweeps of the six balls at three radii, and the most sweeps of a solve."""
    own = [row for row in rows.of("sweeps") if row["instance"].startswith("garnet")]
    solved = rows.of("solves")
    if not own or not solved:
        return ""
    body = []
    for name in SOLVES:
        mine = where(own, set=name)
        cells = []
        for place in range(3):
            at = [
                sorted(where(mine, instance=i), key=lambda row: row["radius"])[place]
                for i in _instances(mine)
            ]
            cells.append(both(at, "warm"))
        cold = [max(row["cold"] for row in where(mine, instance=i)) for i in _instances(mine)]
        most = max(row["sweeps"]["1e-06"] for row in where(solved, set=name))
        body.append([name, *cells, " / ".join(map(digits, cold)), f"≤ {most:g}"])
    head = ("set", "warm, radius .1", "radius .5", "radius of the paper", "cold, at most")
    return markdown((*head, "sweeps to a certified 1e-6"), body)


def _instances(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["instance"] for row in rows))


def sets(rows: Rows) -> str:
    """Every other set at both sizes."""
    return pivot(
        rows.of("sets"),
        lambda row: row["set"],
        lambda row: f"{row['instance']}: warm, cold",
        lambda found: f"{digits(found[0]['warm'])}, {digits(found[0]['cold'])}",
        "set",
    )


def worst(rows: Rows) -> str:
    """Quantiles of warm and of cold sweeps."""
    own = rows.of("worst")
    levels = ("50", "90", "99", "100")
    body = [
        [
            row["instance"],
            row["set"],
            *(
                " / ".join(digits(row[f"{what}_{level}"]) for level in levels)
                for what in ("warm", "cold")
            ),
        ]
        for row in own
    ]
    return markdown(
        ("instances", "set", "warm: .5 / .9 / .99 / 1", "cold: .5 / .9 / .99 / 1"), body
    )


def growth(rows: Rows) -> str:
    """Exponents with their intervals."""
    own = [row for row in rows.of("growth") if row["size"] in ("S", "A", "N", "K")]
    return pivot(own, lambda row: row["set"], lambda row: row["size"], _exponent, "set")


def _exponent(found: list[Row]) -> str:
    return f"{found[0]['exponent']:.2f} ± {found[0]['half']:.2f}"


def sparse(rows: Rows) -> str:
    """Exponents in the stored numbers, and in the lists of transport."""
    own = [row for row in rows.of("growth") if row["size"] not in ("S", "A", "N", "K")]
    return pivot(
        own,
        lambda row: f"{row['set']}, {row['size']}",
        lambda row: "exponent",
        _exponent,
        "against",
    )


def certificate(rows: Rows) -> str:
    """The share in percent, and the whole solve."""
    return pivot(
        rows.of("certificate"),
        lambda row: row["set"],
        lambda row: row["instance"],
        lambda found: f"{100 * found[0]['share']:.0f} % of {digits(found[0]['solve_ms'])} ms",
        "set",
    )


def threads(rows: Rows) -> str:
    """Wall time with two threads over that with one."""
    own = rows.of("threads")
    return pivot(
        own, lambda row: row["instance"], lambda row: row["what"], one("two_over_one"), "model"
    )


def radii(rows: Rows) -> str:
    """Radii a second, and sweeps a radius."""
    return pivot(
        rows.of("radii"),
        lambda row: str(row["states"]),
        lambda row: f"{row['set']}: radii a second, sweeps a radius",
        lambda found: (
            f"{digits(found[0]['radii_a_second'])}, {digits(found[0]['sweeps_a_radius'])}"
        ),
        "states",
    )


def year(rows: Rows) -> str:
    """Seconds of each stage."""
    body = [
        [row["stage"], digits(row["seconds"]), digits(row["cpu_seconds"])]
        for row in rows.of("year")
    ]
    return markdown(("stage", "seconds", "CPU seconds"), body)


def clone(rows: Rows) -> str:
    """Seconds of each stage."""
    body = [
        [row["stage"], digits(row["seconds"]), digits(row["cpu_seconds"])]
        for row in rows.of("clone")
    ]
    return markdown(("stage", "seconds", "CPU seconds"), body)


def scale(rows: Rows) -> str:
    """Wall seconds and memory of large models."""
    return pivot(
        rows.of("scale"),
        lambda row: f"{row['set']}, {row['radius']:g}, {row['support']}",
        lambda row: f"{row['instance']}, S = {row['n_states']:,}",
        lambda found: f"{digits(found[0]['seconds'])} s, {digits(memory(found[0]))} of the model",
        "set, radius, support",
    )


def memory(row: Row) -> float:
    """Peak beyond the interpreter, in stored models."""
    return float(row["peak_gb"] / row["model_gb"])


def ordinary(rows: Rows) -> str:
    """CPU time of drmdp over that of each peer at radius 0: median and most."""
    own = where(rows.study, study="nominal", status=("solved", "stopped"))
    peers = sorted({row["method"] for row in own} - {"exact"})
    body = []
    for n in sorted({row["n_states"] for row in own}):
        cells = []
        for peer in peers:
            found = ratios(where(own, n_states=n), "exact", peer)
            cells.append(
                f"{digits(float(np.median(found)))} ({digits(max(found))})" if found else "–"
            )
        body.append([f"{n}", *cells])
    return markdown(("states", *peers), body)


# ---------------------------------------------------------------------- the first-order method


def variants(rows: Rows) -> str:
    """Iterations of each variant with N = 5."""
    own = [row for row in rows.of("variants") if row["set"] == "(l2, 2)"]
    return pivot(own, lambda row: row["variant"], _problem, _steps, "variant")


def entropy(rows: Rows) -> str:
    """Iterations and ms with the entropy for nature."""
    own = [row for row in rows.of("variants") if row["set"] != "(l2, 2)"]

    def text(found: list[Row]) -> str:
        return f"{_steps(found)}, {digits(found[0]['ms'])} ms"

    return pivot(own, _problem, lambda row: row["variant"], text, "iterations, time")


def _problem(row: Row) -> str:
    return f"{row['instance'].split()[0]}, θ = {digits(row['radius'], 3)}"


def _steps(found: list[Row]) -> str:
    return "> 4000" if found[0]["iterations"] is None else str(found[0]["iterations"])


def preset(rows: Rows) -> str:
    """Shares of the parts of a run."""
    return pivot(
        rows.of("preset"),
        lambda row: row["part"],
        lambda row: f"θ = {digits(row['radius'], 3)}",
        lambda found: f"{100 * found[0]['share']:.0f} %, {digits(found[0]['ms'])} ms",
        "part",
    )


def comparison(rows: Rows) -> str:
    """Four methods on the instances of figure 1 with N = 40."""
    own = where(
        rows.study, study="kernels", n_kernels=40, rule="duality-gap", method=tuple(COMPARED)
    )
    body = []
    for family in FAMILIES:
        for radius in sorted({row["radius"] for row in where(own, family=family)}):
            found = where(own, family=family, radius=radius)
            times = [cell(where(found, method=name)) for name in COMPARED]
            middles = []
            for pair, time in ((("algorithm-1", "fast"), times[1]), (("fast", "exact"), times[2])):
                part, more = ratios(found, *pair), "> " if time.startswith(">") else ""
                middles.append(more + digits(float(np.median(part))) if part else "–")
            body.append([FAMILIES[family], digits(radius, 3), *times, *middles])
    head = ("domain", "θ", *COMPARED.values(), "paper / preset", "preset / exact")
    return markdown(head, body)


def steps(rows: Rows) -> str:
    """Iterations of Algorithm 1 to (DG) <= .05 on garnet with costs, by N, for each seed."""
    own = where(
        rows.study, study="kernels", family="garnet-costs", method="algorithm-1", rule="duality-gap"
    )
    own = [row for row in where(own, radius="paper") if row["n_iters"]]
    body = []
    for n in sorted({row["n_kernels"] for row in own}):
        found = sorted(where(own, n_kernels=n), key=lambda row: row["seed"])
        body.append([n, ", ".join(str(row["n_iters"]) for row in found)])
    return markdown(("N", "iterations, seed by seed"), body)


def exponents(rows: Rows) -> str:
    """Exponents of a step of Algorithm 1 with their intervals."""
    body = []
    for letter, name in (("N", "n_kernels"), ("S", "n_states"), ("A", "n_actions")):
        own = where(rows.study, study=f"step-{letter}", status=("solved", "stopped"))
        if len({row[name] for row in own}) > 2:
            body.append([letter, str(fit([r[name] for r in own], [r["cpu_seconds"] for r in own]))])
    return markdown(("in", "exponent of a step"), body)


# ---------------------------------------------------------------------- where it is from


def provenance(rows: Rows) -> str:
    """Commit, machine, dates, load and hours of the bench run."""
    tables: dict[Any, Row] = {(row["table"], row.get("given")): row for row in rows.bench}
    if not tables:
        return ""
    loads = [row["load"] for row in tables.values() if row["load"] is not None]
    hours = sum(row["took_seconds"] for row in tables.values()) / 3600
    facts = {
        name: ", ".join(sorted({str(row[name]) for row in tables.values()}))
        for name in ("commit", "machine", "session", "versions")
    }
    if loads:
        busy = ": the machine did other work, trust ratios" if max(loads) > BUSY else ""
        middle = digits(float(np.median(loads)))
        facts["load beside the run"] = f"{middle}, at most {digits(max(loads))}{busy}"
    facts["rows, hours"] = f"{len(rows.bench):,}, {digits(hours)}"
    return markdown(("", ""), facts.items())


TABLES: dict[str, Callable[[Rows], str]] = {
    make.__name__: make
    for make in (
        sweeps, sets, worst, growth, sparse, certificate, threads, radii, year, clone, scale,
        ordinary, variants, entropy, preset, comparison, steps, exponents, provenance,
    )
}  # fmt: skip


def made(rows: Rows) -> dict[str, str]:
    """Every table by its name."""
    return {name: make(rows) or EMPTY for name, make in TABLES.items()}
