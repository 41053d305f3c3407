"""The verbs of the command line about experiments: `drmdp bench` prints the tables behind the
figures we quote, `drmdp reproduce` runs those of the paper.

What they run is imported when they are called.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli import screen as cli_screen
from drmdp.cli.option_groups import OUTPUT, flag, option
from drmdp.cli.options import LIMIT, WARNED, check_outputs, command, paths
from drmdp.cli.screen import piped, say
from drmdp.cli.show import print_json
from drmdp.errors import InputError, imported

if TYPE_CHECKING:
    from drmdp_lab.paper.records import Row

STEPS = ("step-S", "step-A", "step-N")
FIGURES = ("kernels", "states", "growth", "gap-kernels", "gap-states", "rates", *STEPS, "maps")
OTHERS = ("readings", "starts", "rules", "radii", "discounts", "pairs", "baseline", "update")
STUDIES = (*FIGURES, *OTHERS, "nominal", "intervals")
"""Those of `drmdp_lab.paper.specification`."""
EXTRA = "study"
"""What runs need is in this extra."""


@command(
    [click.Argument(["tables"], nargs=-1, metavar="[TABLES]... [DIR]"), "progress"],
    n_states=option(
        "Size of the tables scale, cluster and events-large.", "--states", default=100_000
    ),
    save=option(
        "Append the rows to a file, with machine, commit, date and the load beside the run; tables "
        "that it holds are not run again.",
        metavar="FILE",
    ),
    check=flag(
        "Compare with the rows of --against; exit code 4 if a cost is more than 1.5 of what it was."
    ),
    against=option(
        "Rows of an earlier run.", default="docs/performance/rows.jsonl", metavar="FILE"
    ),
    as_json="Print a JSON object a row, with machine and date.",
)
def bench(asked: Any) -> int:
    """Measure this machine.

    TABLES are sweeps, sets, worst, solves, certificate, growth, threads, radii, year, variants,
    trials, preset, starts and scale, all of them by default, and clone, cluster, events,
    events-large and robust-mdps. Times are CPU times of one thread and compare only within one run;
    scale and events-large use all threads and give wall seconds too. robust-mdps may be followed by
    a directory with the instances of arXiv:2602.05591 and the seconds published there; without one,
    instances whose rules are public are made. --check compares times in units of a plain product
    that is measured beside each table, and measures what fell behind up to three times.
    """
    from drmdp_lab import bench as measure
    from drmdp_lab.bench import saved
    from drmdp_lab.paper.provenance import here

    n_states, save, check, as_json = asked.n_states, asked.save, asked.check, asked.as_json
    names, folder = _split(asked.tables, measure.TABLES)
    if n_states < 100:
        raise InputError(f"--states: expected at least 100, got {n_states}")
    imported("numba", EXTRA)
    given: dict[str, tuple[Any, ...]] = {"states": (n_states,), "folder": (folder,), "": ()}
    then = saved.read(asked.against) if check else []
    known = {row["table"] for row in then}
    by_default = known if check else {n for n, of in measure.TABLES.items() if not of.on_demand}
    done = set() if save is None else saved.held(Path(save))
    if not as_json:
        say(", ".join(f"{key} {value}" for key, value in here().items()))
    late = []
    for name in names or [name for name in measure.TABLES if name in by_default]:
        own = given[measure.TABLES[name].takes]
        if (name, n_states if own == (n_states,) else None) in done:
            continue
        if not as_json:
            say(f"\n{name}: {measure.TABLES[name].meaning}")
        if check:
            late += saved.behind(name, lambda n=name, o=own: saved.measured(n, o, _ignored), then)  # type: ignore[misc]
            continue
        rows = saved.measured(name, own, _ignored if as_json else _line())
        if save is not None:
            saved.append(Path(save), rows)
        for row in rows if as_json else ():
            say(json.dumps(row))
    for change in late:
        say(f"{change.table}: {change.row}: {change.field} is {change.factor:.2g} of what it was")
    if check and not late:
        say(f"no cost is more than {saved.BEHIND} of what it was")
    return WARNED if late else 0


def _split(given: tuple[str, ...], known: Collection[str]) -> tuple[list[str], Path | None]:
    """Names of tables, and the directory that follows robust-mdps, if one does."""
    names, folder = [], None
    for k, text in enumerate(given):
        if text in known:
            names.append(text)
        elif k and given[k - 1] == "robust-mdps":
            folder = Path(text)
            if not folder.is_dir():
                raise InputError(f"robust-mdps: {text} is no directory")
        else:
            raise InputError(f"unknown table {text!r}; known: {', '.join(known)}")
    return names, folder


def _ignored(row: Any) -> None:
    """Show nothing."""


def _line() -> Callable[[Any], None]:
    """Shows a row in a line, the first one below its head."""
    shown: list[Any] = []

    def show(row: Any) -> None:
        cells = [(key, *_cell(value)) for key, value in asdict(row).items()]
        head = [f"{key[:width]:{side}{width}}" for key, _, width, side in cells]
        for line in [*([] if shown else [head]), [f"{t:{side}{w}}" for _, t, w, side in cells]]:
            say("  ".join(line).rstrip())
        shown.append(row)
        with piped():
            sys.stdout.flush()

    return show


def _cell(value: Any) -> tuple[str, int, str]:
    """Text, width and side."""
    if isinstance(value, dict):
        return " ".join(f"{key}: {number:.3g}" for key, number in value.items()), 30, "<"
    if value is None or isinstance(value, float):
        return "–" if value is None else f"{value:.3g}", 9, ">"
    return str(value), 15 if isinstance(value, str) else 8, "<" if isinstance(value, str) else ">"


@command(
    ["max_seconds", "progress"],
    scale=option(
        "How much to run.", type=click.Choice(["quick", "standard", "paper"]), default="quick"
    ),
    spec="JSON file with blocks of runs, instead of a scale.",
    only=option(
        f"One study of the scale, may be repeated: {', '.join(STUDIES)}.",
        multiple=True,
        metavar="STUDY",
    ),
    out=option(
        "Folder for rows, figures and tables; what is there is kept.",
        heading=OUTPUT,
        default="reproduction",
    ),
    figures_only=option("Draw and tabulate the rows of a folder, run nothing.", metavar="DIR"),
    no_figures=flag("Run, and draw nothing."),
    as_json="Print one JSON document.",
)
def reproduce(asked: Any) -> int:
    """Run the experiments of the paper, with figures and tables.

    quick takes a few minutes, standard some two hours, paper many. Every run appends one row to
    DIR/rows.jsonl, on one core; rows that are there are not run again, so a pass that was
    interrupted, killed or stopped by --max-seconds (exit code 3) goes on where it stopped, on the
    same machine and commit. The time limit of a single run is not part of what identifies a row: use
    a new folder to repeat runs with another one.
    """
    from drmdp_lab.paper import blocks as described
    from drmdp_lab.paper import records as stored
    from drmdp_lab.paper.specification import SCALES

    if asked.figures_only is not None:
        folder, done = Path(asked.figures_only), (0, 0)
    else:
        imported("numba", EXTRA)
        spec = asked.spec
        blocks = SCALES[asked.scale] if spec is None else described.load(spec)
        runs = described.expand(blocks, asked.only)
        if not asked.no_figures:
            _needs_matplotlib()
        folder = Path(asked.out)
        check_outputs({"--out": _outputs_of(folder)}, {"--spec": paths(spec)})
        done = _run(runs, asked.out, asked.max_seconds)
    rows = stored.read(folder / stored.NAME)
    if not rows and not done[1]:
        raise InputError(f"{folder / stored.NAME}: no rows")
    drawn, written = ([], []) if asked.no_figures or not rows else _outputs(rows, folder)
    _report(rows, folder, *done, drawn, written, asked.as_json)
    return LIMIT if done[1] else 0


def _outputs_of(folder: Path) -> list[Path]:
    """What a run appends to or writes again."""
    from drmdp_lab.paper.records import NAME

    return [folder / NAME, *(folder / "figures").glob("*"), *(folder / "tables").glob("*")]


def _needs_matplotlib() -> None:
    """Say at once, not after the runs, that figures cannot be drawn."""
    from drmdp.plot.style import pyplot

    pyplot()


def _run(runs: list[Any], out: str, max_seconds: float | None) -> tuple[int, int]:
    """Rows that were added, and runs that still have none."""
    from drmdp_lab.paper import quiet
    from drmdp_lab.paper.runner import run_all

    if busy := quiet.warning():
        say(f"drmdp: note: {busy}", err=True)
    try:
        return run_all(runs, out, max_seconds)
    except KeyboardInterrupt:
        say("interrupted: the same command goes on where this one stopped", err=True)
        raise click.Abort from None


def _outputs(rows: list[Row], folder: Path) -> tuple[list[str], list[str]]:
    import matplotlib

    matplotlib.use("Agg")
    from drmdp_lab.paper.pages import figures, tables

    return figures.draw(rows, folder / "figures"), tables.write(rows, folder / "tables")


def _report(
    rows: list[Row],
    folder: Path,
    added: int,
    left: int,
    drawn: list[str],
    written: list[str],
    as_json: bool,
) -> None:
    from drmdp_lab.paper.pages.figure_parts import FAMILIES
    from drmdp_lab.paper.pages.tables import READINGS, ratio_table, reading_table

    body, readings = ratio_table(rows), reading_table(rows)
    if as_json:
        ratios = [dict(zip(("rule", "method", *FAMILIES), row, strict=True)) for row in body]
        found = {
            "rows": len(rows),
            "added": added,
            "left": left,
            "folder": str(folder),
            "figures": drawn,
            "tables": written,
            "ratios": ratios,
            "readings": [dict(zip(READINGS, row, strict=True)) for row in readings],
        }
        print_json(found)
        return
    say(
        f"{len(rows):,} rows in {folder / 'rows.jsonl'}, {added:,} of them new; {len(drawn)} figures, {len(written)} tables"
        + (f"; {left:,} runs are left for the same command again" if left else "")
    )
    if body:
        title = "CPU time over that of the exact engine: median (least – most)"
        _print(title, ("rule", "method", *FAMILIES.values()), body)
    if readings:
        _print(
            "Garnet with rewards and with costs: median (least – most) over seeds",
            READINGS,
            readings,
        )


def _print(title: str, head: tuple[str, ...], body: list[list[str]]) -> None:
    from rich import box

    from drmdp_lab.paper.pages.tables import MARKS

    table = cli_screen.table(box=box.SIMPLE_HEAD, pad_edge=False, title=title)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in body:
        table.add_row(*row)
    screen = cli_screen.console()
    screen.print(table)
    screen.print(MARKS)
