"""`drmdp sweep`: solutions over radii, where decisions change, what robustness costs, which radius to take."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli import options
from drmdp.cli.options import INTERRUPTED, LIMIT, MAX_SECONDS, THREADS, Asked, check_outputs, common, exit_code, paths
from drmdp.cli.show import columns, console, grid, named, print_json, problem, said
from drmdp.core.files import check_file, check_suffix, write_whole
from drmdp.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from drmdp.radius import Change, Choice, Path
    from drmdp.sets import AmbiguitySet

ROWS = 20
"""Changes shown in a table."""


def _radii(context: click.Context, option: click.Parameter, text: str) -> Any:
    try:
        return [float(part) for part in text.split(",")] if "," in text or "." in text else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number of radii nor radii with commas") from None


def _by(context: click.Context, option: click.Parameter, text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.option("--radii", default="20", callback=_radii, show_default=True, help="How many, or which: 0,0.1,0.5.")
@click.option("--top", type=float, help="Largest radius, if --radii is a number; unconstrained nature by default.")
@click.option("--critical", is_flag=True, help="Find the radii at which the action of a state changes.")
@click.option("--precision", type=float, help="Of the critical radii; by default 1e-4 of the largest radius.")
@click.option("--held-out", help="Model whose kernels judge the policies.")
@click.option("--folds", type=int, help="Instead: hold out the model's own kernels in so many folds.")
@click.option(
    "--by", callback=_by, help="Choose by mean (the default), worst, or a level: 0.9; with --folds or --held-out."
)
@click.option("--seed", type=int, help="Of the folds; 0 by default.")
@click.option("--samples", type=float, help="Draws behind each row: shows the radius that holds the truth.")
@click.option("--confidence", type=float, help="With this probability; 0.95 by default.")
@options.CRITERION
@MAX_SECONDS
@THREADS
@click.option("--out", help="Write the table to this .csv file.")
@common
def sweep(
    model_path: str, radii: Any, top: float | None, critical: bool, precision: float | None, held_out: str | None,
    folds: int | None, by: Any, seed: int | None, samples: float | None, confidence: float | None,
    max_seconds: float | None, threads: int | None, out: str | None, discount: float | None, tol: float | None,
    rtol: float, as_json: bool, criterion: str | None, **region: Any,
) -> int:  # fmt: skip
    """Solve over radii, and help to choose one.

    A number of --radii is put where the policy, or its worst case, changes, from 0 to the radius from which nature is unconstrained.

    For each radius: its share of the radius from which nature is unconstrained, the value of the policy under the mean kernel (nominal) and in
    the worst case, both over the start distribution, and in how many states the policy's likeliest action differs from that of the first radius.
    """
    from drmdp import formats, radius
    from drmdp.core import clock
    from drmdp.policies import fixed_kernel as fixed
    from drmdp.radius.choose import criterion as judge
    from drmdp.radius.choose import folds_of
    from drmdp.radius.path import CUT_SHORT

    _fit_together(locals())
    by = judge("mean" if by is None else by)
    seed, confidence = seed or 0, 0.95 if confidence is None else confidence
    judges = [] if held_out is None else formats.files_of(held_out)
    check_outputs({"--out": paths(out)}, {"MODEL": formats.files_of(model_path), "--held-out": judges})
    asked = Asked(sized=False, **region)
    model, ball = asked.read(model_path, discount)
    other = None
    if held_out is not None:
        other = fixed.matrices_of(model, formats.read(held_out, discount=discount), "held_out")
    if folds is not None:
        folds_of(model, folds)
    enough = None if samples is None else radius.sufficient(model, ball, samples, confidence)
    deadline = clock.deadline(max_seconds)

    def left() -> float | None:
        return None if max_seconds is None else max(0.0, deadline - clock.now())

    ends: Any = {"threads": threads, "max_seconds": max_seconds}
    found = radius.path(model, ball, radii, tol, rtol, top=top, criterion=criterion, **ends)
    choice: Choice | None = None
    changes: tuple[Change, ...] | None = None
    code = exit_code(found.status, found.reached)
    try:
        if found.status not in CUT_SHORT:
            if other is not None:
                choice = radius.choose(found, other, by)
            elif folds is not None:
                choice = radius.cross_validate(
                    model, ball, found.radii, folds, by, tol, rtol, seed, threads=threads, max_seconds=left()
                )
            if critical:
                changes = radius.critical(found, precision, threads=threads, max_seconds=left())
    except KeyboardInterrupt:  # what is found already is printed
        code = INTERRUPTED
    except InputError:
        if left() != 0:  # not for lack of time
            raise
    if left() == 0:
        code = code or LIMIT
    if out is not None:
        _write(found, choice, out)
    if as_json:
        print_json(_document(found, choice, changes, enough))
    else:
        _print(found, choice, changes, enough, confidence, out)
    return code


def _fit_together(given: dict[str, Any]) -> None:
    """Refuse options that have no meaning beside the others, and values that none can have."""
    from drmdp.radius.critical import check_precision

    held_out, folds = (given[name] is not None for name in ("held_out", "folds"))
    if held_out and folds:
        raise InputError("give --held-out or --folds, not both")
    _needs("--by", given["by"], "--folds or --held-out", held_out or folds)
    _needs("--seed", given["seed"], "--folds", folds)
    _needs("--precision", given["precision"], "--critical", given["critical"])
    _needs("--confidence", given["confidence"], "--samples", given["samples"] is not None)
    _needs("--top", given["top"], "a number of --radii", isinstance(given["radii"], int))
    if given["precision"] is not None:
        check_precision(given["precision"])
    if given["out"] is not None:
        check_suffix(given["out"], (".csv",), "the table is written to a .csv file")
        check_file(given["out"])


def _needs(option: str, value: Any, other: str, given: bool) -> None:
    if value is not None and not given:
        raise InputError(f"{option} has a meaning only with {other}")


def _write(found: Path, choice: Choice | None, path: str) -> None:
    """A line for each radius."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    held = ["held_out", "held_out_worst"] if choice is not None else []
    rows.writerow(["radius", "share", "nominal", "worst", "gap", "status", "changed", *held])
    for k, point in enumerate(found.points):
        numbers = [point.radius, point.fraction, found.nominal[k], found.worst[k], point.gap]
        own = [] if choice is None else [choice.mean[k], choice.worst[k]]
        changed = int((point.actions != found.points[0].actions).sum())
        rows.writerow([*map(_digits, numbers), str(point.status), changed, *map(_digits, own)])
    write_whole(path, lambda stream: stream.write(text.getvalue().encode()))


def _digits(value: Any) -> str:
    return repr(float(value))


def _document(found: Path, choice: Choice | None, changes: Any, enough: Any) -> dict[str, Any]:
    model = found.model
    points = [
        {
            "radius": point.radius,
            "fraction": point.fraction,
            "status": str(point.status),
            "gap": point.gap,
            "kernel_passes": point.kernel_passes,
            "nominal": float(model.initial @ point.nominal),
            "worst": float(model.initial @ point.value),
            "value": point.value,
            "lower": point.lower,
            "upper": point.upper,
            "policy": point.policy,
        }
        for point in found.points
    ]
    document = {"status": str(found.status), "saturation": found.saturation, **asdict(found.asked), "points": points}
    if choice is not None:
        scores = {name: getattr(choice, name) for name in ("radius", "by", "samples", "mean", "worst", "scores")}
        document["choice"] = scores
    if changes is not None:
        document["critical"] = [asdict(change) for change in changes]
    if enough is not None:
        document["sufficient"] = enough
    return {**document, **named(model, found.ball.with_radius(1.0))}


def _chosen(choice: Choice, ball: AmbiguitySet) -> str:
    """The radius, how far others are as good, and what it means if it is 0."""
    told = f"radius {choice.radius:.4g} by {choice.by} over {choice.samples.shape[1]} held-out kernels"
    alike = np.isclose(choice.samples[choice.best :], choice.samples[choice.best], rtol=1e-9, atol=0).all(axis=1)
    n = int(np.argmin(np.append(alike, False)))
    if n > 1:
        told += f"; the policies of radii up to {choice.radii[choice.best + n - 1]:.4g} do the same under each of them"
    if ball.with_radius(choice.radius).certain:
        told += "; there no doubt about the data is considered, and the value is no bound"
    return told


def _print(
    found: Path, choice: Choice | None, changes: Any, enough: Any, confidence: float, written: str | None
) -> None:
    model, ball, out = found.model, found.ball, console()
    limit = found.saturation
    passes = found.kernel_passes
    most = max(point.gap for point in found.points)
    lines = {
        "Problem": problem(model),
        "Ball": f"{ball.words}; unconstrained from {limit:.4g} on",
        "Status": f"{found.status}; largest gap {most:.1e} ({found.asked.short}), {passes.mean():.2f} sweeps a radius",
    }
    if enough is not None:
        top = float(enough.max())
        share = f" ({top / limit:.0%})" if limit > 0 else ""
        lines["Sufficient"] = (
            f"radius {top:.4g}{share} holds the true kernel with probability {confidence:g}, if rows are independent draws "
            "from one truth"
        )
    if choice is not None:
        lines["Chosen"] = _chosen(choice, ball)
    if written is not None:
        lines["Written"] = written
    if notes := said(model, ball.with_radius(1.0)):
        lines["Notes"] = "\n".join(notes)
    out.print(grid(lines))
    kind = "reward" if model.maximise else "cost"
    extra = ["sweeps"] if choice is None else ["held out", "its worst"]
    table = columns([], ["radius", "share", f"nominal {kind}", f"worst {kind}", "changed", *extra])
    first = found.points[0].actions
    for k, point in enumerate(found.points):
        cells = [f"{point.radius:.4g}", f"{point.fraction:.1%}", f"{found.nominal[k]:.6g}", f"{found.worst[k]:.6g}"]
        cells.append(f"{int((point.actions != first).sum()):,}")
        if choice is None:
            cells.append(f"{point.kernel_passes:.3g}")
        else:
            mark = "*" if k == choice.best else ""
            cells += [f"{mark}{choice.mean[k]:.6g}", f"{choice.worst[k]:.6g}"]
        table.add_row(*cells)
    out.print(table)
    if changes is not None:
        _print_changes(out, changes)


def _print_changes(out: Console, changes: tuple[Change, ...]) -> None:
    if not changes:
        out.print("No action changes on the path.")
        return
    table = columns(["state", "before", "after"], ["between", "and", "share", "mix"])
    for change in changes[:ROWS]:
        names = [str(name) for name in (change.state, change.before, change.after)]
        mix = " → ".join(f"{share:.0%}" for share in change.shares)
        table.add_row(*names, f"{change.low:.5g}", f"{change.high:.5g}", f"{change.fraction:.1%}", mix)
    out.print(table)
    if len(changes) > ROWS:
        out.print(f"… {len(changes) - ROWS:,} more")
