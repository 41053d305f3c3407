"""Write every measured figure into the pages: `python docs/figures.py`.

Tables are made whole, by `drmdp_lab.bench.pages`. A figure in a sentence is listed below with the
sentence around it, where it is written {}, and what computes it from the rows. A figure that no row
has is written …. `tests/lab/test_figures.py` refuses others.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drmdp_lab.bench import saved
from drmdp_lab.bench.pages import Rows, digits, made, memory
from drmdp_lab.paper import records
from drmdp_lab.paper.pages.select import ratios, timed, where

DOCS = Path(__file__).parent
TABLES = DOCS / "performance" / "tables"
MISSING = "…"
PAGES = ("first_order.md", "performance.md", "large.md", "methods.md", "../README.md")
NUMBER = r"((?:\d[\d,]*)?\.?\d+|…|–)"
FIGURE = re.compile(
    r"(?<![\w.^])(?:\d[\d,]*(?: \d{3})*(?:\.\d+)?|\.\d+)"
    r"(?: ?(?:ms|µs|s|%(?! interval)|×(?!\s*\d))(?!\w)"
    r"| (?:CPU |wall )?(?:seconds|minutes|hours)| times\b| of (?:our|its) )"
)
"""A number with a unit of time, or a ratio."""


class Quote(NamedTuple):
    """A piece of a sentence of a page, and its figures; none where there are no rows."""

    page: str
    text: str
    figures: Callable[[Rows], list[float]]
    digits: int = 2

    @property
    def pattern(self) -> re.Pattern[str]:
        """The sentence with any figures, over any lines."""
        words = [re.escape(word).replace(r"\{\}", NUMBER) for word in self.text.split()]
        return re.compile(r"\s+".join(words))

    def written(self, rows: Rows) -> list[str]:
        """The figures as they are printed."""
        found = [digits(value, self.digits) for value in self.figures(rows)]
        return found or [MISSING] * self.text.count("{}")


def spread(values):
    """The least and the most, or nothing."""
    return [min(values), max(values)] if values else []


def medians(rows, *fields):
    """The median of each field, or nothing."""
    return [float(np.median([row[name] for row in rows])) for name in fields] if rows else []


def conic(rows):
    """Exact engine in ms, value iteration with Clarabel in s, on one instance."""
    own = where(rows.study, study="kernels", family="garnet-rewards", n_kernels=40, radius=0.1)
    own = timed(where(own, rule="duality-gap", seed=0))
    exact, slow = (medians(where(own, method=m), "cpu_seconds") for m in ("exact", "conic-vi"))
    return [1e3 * exact[0], slow[0]] if exact and slow else []


def most_sweeps(rows):
    """Sweeps of a solve to 1e-6, at most."""
    return [max(row["sweeps"]["1e-06"] for row in own)] if (own := rows.of("solves")) else []


def nominal(rows, method, over, n_states=None):
    """Quotients of the CPU times of two programs on ordinary MDPs."""
    own = where(rows.study, study="nominal", **({} if n_states is None else {"n_states": n_states}))
    return ratios(own, method, over)


def mdpsolver(rows):
    """Its time over ours for 30 and for 300 states."""
    found = [nominal(rows, "mdpsolver", "exact", n) for n in (30, 300)]
    return [float(np.median(own)) for own in found] if all(found) else []


def ahead(rows):
    """How many times a peer was faster, at most."""
    found = [nominal(rows, "exact", name) for name in ("mdpsolver", "quantecon")]
    return [max(own) for own in found] if all(found) else []


def large(rows):
    """Wall seconds of (l2, 2) with 100 000 states, least and most."""
    own = rows.of("scale", set="(l2, 2)")
    return spread([row["seconds"] for row in own if 90_000 < row["n_states"] < 110_000])


def most_memory(rows):
    """Peak over the stored model, at most, with 100 000 states."""
    return [max(map(memory, own))] if (own := rows.of("scale")) else []


def suite(rows):
    """Seconds of all problems: ours, and those that were published."""
    own = rows.of("robust-mdps", instance="all")
    return [own[0]["seconds"], own[0]["published"]] if own and own[0]["published"] else []


def first(rows):
    """Milliseconds of the first and of a second solution, and the import in seconds: medians."""
    names = ("first_seconds", "second_seconds", "import_seconds")
    first, second, load = medians(rows.of("starts"), *names) or [0, 0, 0]
    return [1e3 * first, 1e3 * second, load] if load else []


def behind(rows):
    """Time of the preset over that of the exact engine: median, least and most."""
    own = where(rows.study, study=("kernels", "states"), rule="duality-gap")
    found = ratios(where(own, status=("solved", "stopped")), "fast")
    return [float(np.median(found)), min(found), max(found)] if found else []


def levels(rows):
    """Steps of Algorithm 1 on garnet with rewards over those with costs, seed by seed."""
    asked = {"study": "readings", "method": "algorithm-1", "n_states": 30, "n_kernels": 30}
    steps: dict[str, dict[int, int]] = {"garnet-rewards": {}, "garnet-costs": {}}
    for row in where(rows.study, **asked):
        steps[row["family"]][row["seed"]] = row["n_iters"]
    with_rewards, with_costs = steps.values()
    return spread([with_rewards[k] / with_costs[k] for k in with_rewards if k in with_costs])


def counts(rows):
    """Passes of the exact engine and steps of the preset, least and most."""
    own = where(rows.study, study=("kernels", "states"), rule="duality-gap")
    own = where(own, status=("solved", "stopped"))
    exact = [row["kernel_passes"] for row in where(own, method="exact")]
    return spread(exact) + spread([row["n_iters"] for row in where(own, method="fast")])


def gained(rows):
    """Time of value iteration with Clarabel over that of the preset, and of the paper's variant."""
    own = timed(where(rows.study, study="kernels", rule="duality-gap", n_kernels=40))
    found = [ratios(own, "conic-vi", name) for name in ("fast", "algorithm-1")]
    return [end for part in found for end in spread(part)] if all(found) else []


def tried(rows):
    """Multipliers without a guess, and later, but for (linf, 1)."""
    own = [row for row in rows.of("trials") if row["set"] != "(linf, 1)" and row["first"]]
    return spread([row["first"] for row in own]) + spread([r["later"] for r in own if r["later"]])


def tried_linf(rows):
    """The same for (linf, 1)."""
    own = [row for row in rows.of("trials", set="(linf, 1)") if row["first"]]
    return spread([row["first"] for row in own]) + spread([r["later"] for r in own if r["later"]])


def copies(rows):
    """Percent of the preset's time in the answer and its proof, at the paper's radius."""
    own = [row for row in rows.of("preset") if row["radius"] > 2]
    parts = [100 * row["share"] for row in own if row["part"] in ("answer", "proof")]
    return [*parts, own[0]["ms"]] if len(parts) == 2 else []


PERFORMANCE, FIRST_ORDER, README = "performance.md", "first_order.md", "../README.md"
QUOTES = (
    Quote(README, "needs up to {} of them for a certified 1e-6", most_sweeps),
    Quote(README, "takes {} to {} s on two threads", large),
    Quote(README, "mdpsolver takes {} of our time for 30 states and {} for 300", mdpsolver),
    Quote(
        PERFORMANCE,
        "The default method took {} ms where value iteration with Clarabel updates would take {} s",
        conic,
    ),
    Quote(PERFORMANCE, "was ahead by up to {} times, QuantEcon by up to {} times", ahead),
    Quote(
        PERFORMANCE,
        "all 180 problems are certified to 1e-4 in {} CPU seconds",
        lambda rows: suite(rows)[:1],
    ),
    Quote(PERFORMANCE, "Published are {} s", lambda rows: suite(rows)[1:], 4),
    Quote(PERFORMANCE, "takes {} ms of CPU time, the second {} ms, and the import {} s", first),
    Quote("large.md", "at most {} times the memory of the stored model", most_memory),
    Quote(FIRST_ORDER, "by {} times in the median ({} to {} times)", behind),
    Quote(FIRST_ORDER, "takes {} to {} times the steps with rewards", levels),
    Quote(FIRST_ORDER, "needed {} to {} of them, and the preset {} to {} steps", counts),
    Quote(
        FIRST_ORDER,
        "preset is {} to {} times faster than conic updates, the paper's variant {} to {} times",
        gained,
    ),
    Quote(
        FIRST_ORDER,
        "{} to {} trials without a guess, since one kernel alone tells the multiplier of all, "
        "and later on {} to {}.",
        tried,
    ),
    Quote(FIRST_ORDER, "needs {} to {} without a guess and later on {} to {}", tried_linf),
    Quote(
        FIRST_ORDER,
        "{} % go into the N kernels of the answer and {} % into their proof, of {} ms",
        copies,
    ),
)


def read() -> Rows:
    """The rows of both runs."""
    bench = DOCS / "performance" / "rows.jsonl"
    study = DOCS / "reproduction" / records.NAME
    return Rows(saved.read(bench) if bench.exists() else [], records.read(study))


def filled(page: str, text: str, rows: Rows) -> str:
    """The page with the figures of the rows; every sentence stands there once."""
    for quote in QUOTES:
        if quote.page == page:
            found = list(quote.pattern.finditer(text))
            assert len(found) == 1, f"{page}: {quote.text!r} is there {len(found)} times"
            for k, figure in reversed(list(enumerate(quote.written(rows), 1))):
                text = text[: found[0].start(k)] + figure + text[found[0].end(k) :]
    return text


def unbacked(page: str, text: str) -> list[str]:
    """Figures of a page in no sentence that is listed, code and links left out."""
    for quote in QUOTES:
        if quote.page == page:
            text = quote.pattern.sub(" ", text)
    text = re.sub(r"^```.*?^```$", " ", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text)
    if page == README:  # what the other sections say is held by tests of their own
        text = text.partition("## Performance")[2].partition("\n## ")[0]
    return [found[0] for found in FIGURE.finditer(text)]


def main() -> None:
    """Write tables and sentences."""
    rows = read()
    TABLES.mkdir(parents=True, exist_ok=True)
    for name, text in made(rows).items():
        (TABLES / f"{name}.md").write_text(text, encoding="utf-8")
    for page in PAGES:
        path = DOCS / page
        path.write_text(filled(page, path.read_text("utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
