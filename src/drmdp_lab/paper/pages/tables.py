"""The tables, in Markdown, each a function of the rows. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import methodcaller
from pathlib import Path

import numpy as np

from drmdp.io.files import write_whole
from drmdp_lab.paper.blocks import GARNETS
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.pages import (
    claims,
    errata,
    findings,
    paper_figures,
    peer_tables,
    provenance_table,
    tables_more,
)
from drmdp_lab.paper.pages.figure_parts import FAMILIES
from drmdp_lab.paper.pages.figures import COMPARED
from drmdp_lab.paper.pages.markdown import cell, markdown, size, spread
from drmdp_lab.paper.pages.select import panel, ratios, reached, short, slope, timed, where
from drmdp_lab.paper.pages.verdicts import RULES, WIDEST
from drmdp_lab.paper.records import Row

STUDIES = ("kernels", "states")
MARKS = (
    "*: some runs are extrapolated; †: some were cut off and count with their limit; "
    "‡: some were measured beside a load above .3"
)


def write(rows: list[Row], folder: str | Path) -> list[str]:
    """Write what the rows allow; return the names."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    done = []
    for name, make in TABLES.items():
        if text := make(rows):
            write_whole(target / f"{name}.md", methodcaller("write", text.encode()))
            done.append(name)
    return done


# ---------------------------------------------------------------------- what the standard run must
# show


def ratio_table(rows: list[Row]) -> list[list[str]]:
    """CPU time of each method over that of the exact engine, by domain and rule: median and
    extremes over instances.
    """
    body = []
    own = where(rows, study=STUDIES)
    for rule, label in RULES.items():
        chosen = panel(own, rule)
        for name in COMPARED[1:]:
            cells = []
            for family in FAMILIES:
                domain = where(chosen, family=family, method=(name, "exact"))
                found = ratios(
                    where(domain, status=("solved", "stopped", "extrapolated", "time_limit")), name
                )
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
                    chosen = where(
                        rows,
                        study=study,
                        family=family,
                        radius=radius,
                        method=name,
                        rule="duality-gap",
                    )
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
    head = (
        "in",
        "method",
        *(f"{title}, θ {radius}" for title in FAMILIES.values() for radius in ("paper", ".1")),
    )
    note = (
        "\nFitted slope in a log-log plot ± half width of the 95 % interval; wider than "
        f"± {WIDEST:g} it supports no verdict. *: with extrapolated runs.\n"
    )
    return markdown(head, body) + note if body else ""


def _behind(rows: list[Row]) -> str:
    """Instances on which some method was faster than the exact engine."""
    body = []
    own = where(
        rows,
        study=("kernels", "states", "radii", "pairs", "discounts", "baseline", "update", "nominal"),
    )
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
                times = f"{short(1 / min(ahead), 2)}×"
                body.append(
                    [
                        METHODS[name].label,
                        study,
                        FAMILIES[family],
                        f"{len(ahead)} of {len(found)}",
                        times,
                    ]
                )
    if not body:
        return "No method was faster than the exact engine on any instance.\n" if own else ""
    return markdown(
        ("method ahead of the exact engine", "study", "domain", "instances", "at most by"), body
    )


def _crossover(rows: list[Row]) -> str:
    """Algorithm 1 against value iteration with conic updates."""
    body = []
    for study, x, letter in (("kernels", "n_kernels", "N"), ("states", "n_states", "S")):
        for rule, label in RULES.items():
            for family, title in FAMILIES.items():
                own = where(panel(where(rows, study=study, radius="paper"), rule), family=family)
                cells = {}
                for n in sorted({row[x] for row in own}):
                    at = where(own, **{x: n})
                    if found := ratios(timed(at), "conic-vi", "algorithm-1"):
                        cells[n] = float(np.median(found))
                if cells:
                    ahead = next(
                        (
                            f"{letter} = {n}"
                            for n in cells
                            if all(cells[m] > 1 for m in cells if m >= n)
                        ),
                        "never",
                    )
                    shown = ", ".join(f"{n}: {short(value, 2)}" for n, value in cells.items())
                    body.append([title, label, letter, ahead, shown])
    head = (
        "domain",
        "rule",
        "against",
        "Algorithm 1 ahead from",
        "time of conic VI / time of Algorithm 1, median",
    )
    return markdown(head, body)


READINGS = ("S/A/N", "", "rewards, one certificate", "costs", "rewards, printed rules", "costs")


def reading_table(rows: list[Row]) -> list[list[str]]:
    """Garnet with rewards and with costs, side by side: medians over seeds, with extremes but for
    times.
    """
    body = []
    own = where(rows, study="readings")
    for S, A, N in sorted({(row["n_states"], row["n_actions"], row["n_kernels"]) for row in own}):
        at = where(own, n_states=S, n_actions=A, n_kernels=N)
        cells = [
            _reading(where(panel(at, rule), family=family)) for rule in RULES for family in GARNETS
        ]
        if all(cells):
            body += [[size(at), name, *(cell[name] for cell in cells)] for name in cells[0]]
    return body


def _reading(rows: list[Row]) -> dict[str, str]:
    """Steps, sweeps, CPU times and their ratios of one garnet under one rule."""
    by = {
        name: where(rows, method=name)
        for name in ("algorithm-1", "fast", "exact-vi", "exact", "conic-vi")
    }
    if not all(by.values()):
        return {}
    work = {
        "algorithm-1": "steps of Algorithm 1",
        "fast": "steps of the preset",
        "exact-vi": "sweeps of VI",
    }
    counts = {
        label: "n_iters" if name != "exact-vi" else "kernel_passes" for name, label in work.items()
    }
    done = {label: spread([row[counts[label]] for row in by[name]]) for name, label in work.items()}
    times = {
        METHODS[name].label + ", CPU time": cell(by[name])
        for name in ("algorithm-1", "fast", "exact", "conic-vi")
    }
    pairs = {
        "VI, conic updates / Algorithm 1": ("conic-vi", "algorithm-1"),
        "Algorithm 1 / preset": ("algorithm-1", "fast"),
    }
    return {
        **done,
        **times,
        **{label: spread(ratios(timed(rows), *pair), 2) for label, pair in pairs.items()},
    }


def _readings(rows: list[Row]) -> str:
    text = markdown(READINGS, reading_table(rows))
    return text + f"\n{MARKS}.\n" if text else ""


def _foresight(rows: list[Row]) -> str:
    """How well an extrapolation foresees a run that was then done in full."""
    body = []
    for family, title in FAMILIES.items():
        own = [
            row for row in reached(where(rows, family=family)) if row.get("foreseen_cpu_seconds")
        ]
        found = [row["foreseen_cpu_seconds"] / row["cpu_seconds"] for row in own]
        if found:
            body.append([title, len(found), spread(found)])
    return markdown(("domain", "runs", "foreseen / measured CPU time: median (extremes)"), body)


def _errata(kind: str, rows: list[Row]) -> str:
    return markdown(errata.HEADS[kind], errata.judge(rows, kind))


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "provenance": provenance_table.table,
    "paper-figures": paper_figures.table,
    "findings": findings.bullets,
    "claims": lambda rows: markdown(claims.HEAD, claims.judge(rows)),
    **{f"errata-{kind}": partial(_errata, kind) for kind in errata.KINDS},
    "ratios": _ratios,
    "exponents": _exponents,
    "behind": _behind,
    "crossover": _crossover,
    "readings": _readings,
    "foresight": _foresight,
    **tables_more.TABLES,
    **peer_tables.TABLES,
}
