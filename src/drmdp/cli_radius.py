"""`drmdp sweep`: solutions over radii, where decisions change, what robustness costs, which radius to take."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli_common import (
    INTERRUPTED,
    ball_of,
    bar,
    columns,
    common,
    console,
    exit_code,
    grid,
    named,
    print_json,
    problem,
)
from drmdp.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from drmdp.radius import Change, Choice, Path

ROWS = 20
"""Changes shown in a table."""


def _radii(context: click.Context, option: click.Parameter, text: str) -> Any:
    try:
        return [float(part) for part in text.split(",")] if "," in text or "." in text else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number of radii nor radii with commas") from None


def _by(context: click.Context, option: click.Parameter, text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.option("--radii", default="20", callback=_radii, show_default=True, help="How many, or which: 0,0.1,0.5.")
@click.option("--critical", is_flag=True, help="Find the radii at which the action of a state changes.")
@click.option("--precision", type=float, help="Of the critical radii; by default 1e-4 of the largest radius.")
@click.option("--held-out", help="Model whose kernels judge the policies.")
@click.option("--folds", type=int, help="Instead: hold out the model's own kernels in so many folds.")
@click.option("--by", default="mean", callback=_by, show_default=True, help="Choose by mean, worst, or a level: 0.9.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the folds.")
@click.option("--samples", type=float, help="Draws behind each row: shows the radius that holds the truth.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="With this probability.")
@common
def sweep(
    model_path: str, radii: Any, critical: bool, precision: float | None, held_out: str | None, folds: int | None,
    by: Any, seed: int, samples: float | None, confidence: float, discount: float | None, metric: str, order: str,
    support: str, tol: float, as_json: bool, progress: bool | None,
) -> int:  # fmt: skip
    """Solve over radii, and help to choose one.

    For each radius: its share of the radius from which nature is unconstrained, the value of the policy under the mean kernel (nominal) and in
    the worst case, both over the start distribution, and in how many states the policy's likeliest action differs from that of the first radius.
    """
    from drmdp import formats, radius

    if held_out is not None and folds is not None:
        raise InputError("give --held-out or --folds, not both")
    ball = ball_of(0.0, metric, order, support)
    model = formats.read(model_path, discount=discount)
    other = None if held_out is None else formats.read(held_out, discount=discount)
    enough = None if samples is None else radius.sufficient(model, ball, samples, confidence)
    total = radii if isinstance(radii, int) else len(radii)
    with bar("Radii", total, progress) as step:
        found = radius.path(model, ball, radii, tol, callback=step)
    choice: Choice | None = None
    changes: tuple[Change, ...] | None = None
    code = exit_code(found.status)
    try:
        if other is not None and code != INTERRUPTED:
            choice = radius.choose(found, other, by)
        elif folds is not None and code != INTERRUPTED:
            with bar("Folds", folds * total, progress) as step:
                choice = radius.cross_validate(model, ball, found.radii, folds, by, tol, seed, callback=step)
        if critical and code != INTERRUPTED:
            with bar("Critical radii", None, progress) as step:
                changes = radius.critical(found, precision, callback=step)
    except KeyboardInterrupt:  # what is found already is printed
        code = INTERRUPTED
    if as_json:
        print_json(_document(found, choice, changes, enough))
    else:
        _print(found, choice, changes, enough, confidence)
    return code


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
    document = {"status": str(found.status), "saturation": found.saturation, "tol": found.tol, "points": points}
    if choice is not None:
        scores = {name: getattr(choice, name) for name in ("radius", "by", "samples", "mean", "worst", "scores")}
        document["choice"] = scores
    if changes is not None:
        document["critical"] = [asdict(change) for change in changes]
    if enough is not None:
        document["sufficient"] = enough
    return {**document, **named(model)}


def _print(found: Path, choice: Choice | None, changes: Any, enough: Any, confidence: float) -> None:
    model, ball, out = found.model, found.ball, console()
    limit = found.saturation
    passes = found.kernel_passes
    most = max(point.gap for point in found.points)
    lines = {
        "Problem": problem(model),
        "Ball": f"metric {ball.metric}, order {ball.order:g}, support {ball.support}; unconstrained from {limit:.4g} on",
        "Status": f"{found.status}; largest gap {most:.1e} (tolerance {found.tol:g}), {passes.mean():.2f} sweeps a radius",
    }
    if enough is not None:
        top = float(enough.max())
        share = f" ({top / limit:.0%})" if limit > 0 else ""
        lines["Sufficient"] = (
            f"radius {top:.4g}{share} holds the true kernel with probability {confidence:g}, if rows are independent draws "
            "from one truth"
        )
    if choice is not None:
        lines["Chosen"] = f"radius {choice.radius:.4g} by {choice.by} over {choice.samples.shape[1]} held-out kernels"
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
