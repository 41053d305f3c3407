"""`drmdp sweep`: solutions over radii, where decisions change, what robustness costs, which radius
to take.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli import options as shared
from drmdp.cli import show
from drmdp.cli.option_groups import flag, integer, number, option
from drmdp.cli.options import BALL, LIMITS, MODEL, check_outputs, command, exit_code, paths
from drmdp.cli.outputs import check_csv, write_csv
from drmdp.cli.sets import set_of
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.radius import Change, Choice, RadiusPath
    from drmdp.sets import AmbiguitySet

ROWS = 20
"""Changes shown in a table."""
SEVERAL = {"radius": "radii", "level": "levels"}


def _radii(context: click.Context, option: click.Parameter, text: str) -> Any:
    try:
        several = "," in text or "." in text
        return [float(part) for part in text.split(",")] if several else int(text)
    except ValueError:
        what = f"{text!r} is neither a number of radii nor radii with commas"
        raise click.BadParameter(what) from None


def _by(context: click.Context, option: click.Parameter, text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


@command(
    [MODEL, *(name for name in BALL if name != "radius"), "criterion", *LIMITS],
    radii=option("How many, or which: 0,0.1,0.5.", default="20", callback=_radii),
    top=number("Largest radius, if --radii is a number; unconstrained nature by default."),
    critical=flag("Find the radii at which the action of a state changes."),
    precision=number("Of the critical radii; by default 1e-4 of the largest radius."),
    held_out="Model whose kernels judge the policies.",
    folds=integer("Instead: hold out the model's own kernels in so many folds."),
    by=option(
        "Choose by mean (the default), worst, or a level: 0.9; with --folds or --held-out.",
        callback=_by,
    ),
    seed=integer("Of the folds; 0 by default."),
    samples=number("Draws behind each row: shows the radius that holds the truth."),
    confidence=number("With this probability; 0.95 by default."),
    out="Write the table to this .csv file.",
)
def sweep(asked: Any) -> int:
    """Solve over radii, and help to choose one.

    A number of --radii is put where the policy, or its worst case, changes, from 0 to the radius
    from which nature is unconstrained.

    For each radius: its share of the radius from which nature is unconstrained, the value of the
    policy under the mean kernel (nominal) and in the worst case, both over the start distribution,
    and in how many states the policy's likeliest action differs from that of the first radius. Of
    --set reweight-cvar it is the level: the larger it is, the less doubt, and its share is that of
    the way from 1 to the level from which nature is unconstrained.

    With --folds or --held-out, "held out" is the mean value under the kernels that were held out,
    of policies found without them, "its worst" the value under the worst one of these kernels, and
    * marks the radius that is chosen.
    """
    from drmdp import formats, radius
    from drmdp.policies import fixed_kernel as fixed
    from drmdp.radius.choose import folds_of, judged_by
    from drmdp.radius.path import CUT_SHORT
    from drmdp.ui import clock

    _fit_together(asked)
    by = judged_by("mean" if asked.by is None else asked.by)
    judges = [] if asked.held_out is None else formats.files_of(asked.held_out)
    read = {"MODEL": formats.files_of(asked.model_path), "--held-out": judges}
    check_outputs({"--out": paths(asked.out)}, read)
    model, ambiguity = set_of(asked, sized=False).read(asked.model_path, asked.discount)
    other = None
    if asked.held_out is not None:
        held_out = formats.read(asked.held_out, discount=asked.discount)
        other = fixed.matrices_of(model, held_out, "held_out")
    if asked.folds is not None:
        _check_folds(model)
        folds_of(model, asked.folds)
    asked.confidence = 0.95 if asked.confidence is None else asked.confidence
    enough = None
    if asked.samples is not None:
        enough = radius.sufficient(model, ambiguity, asked.samples, asked.confidence)
    deadline = clock.deadline(asked.max_seconds)

    def limits() -> dict[str, Any]:
        """Threads, and the seconds that are left."""
        left = None if asked.max_seconds is None else max(0.0, deadline - clock.now())
        return {"threads": asked.threads, "max_seconds": left}

    near = asked.tol, asked.rtol
    how = show.fields(asked, "top", "criterion", "threads", "max_seconds")
    path = radius.path(model, ambiguity, asked.radii, *near, **how)
    choice: Choice | None = None
    changes: tuple[Change, ...] | None = None
    code = exit_code(path, path.reached)
    try:
        if path.status not in CUT_SHORT:
            if other is not None:
                choice = radius.choose(path, other, by)
            elif asked.folds is not None:
                held = asked.folds, by, *near, asked.seed or 0
                how = {"criterion": asked.criterion, **limits()}
                choice = radius.cross_validate(model, ambiguity, path.radii, *held, **how)
            if asked.critical:
                changes = radius.critical(path, asked.precision, **limits())
    except KeyboardInterrupt:  # what is found already is printed
        code = shared.INTERRUPTED
    except InputError:
        if limits()["max_seconds"] != 0:  # not for lack of time
            raise
    if limits()["max_seconds"] == 0:
        code = code or shared.LIMIT
    if asked.out is not None:
        _write(path, choice, asked.out)
    if asked.as_json:
        show.print_json(_document(path, choice, changes, enough))
    else:
        _print(asked, path, choice, changes, enough)
    return code


def _check_folds(model: Model) -> None:
    """Refuse to hold out one kernel, with what to do about it."""
    if (model.weights > 0).sum() < 2:
        what = "the model has one kernel with positive weight, nothing can be held out"
        cure = "make several by drmdp estimate --by parts, or --by COLUMN"
        raise InputError(f"--folds: {what}; {cure}; drmdp solve --set counts needs no radius")


def _fit_together(asked: Any) -> None:
    """Refuse options that have no meaning beside the others, and values that none can have."""
    from drmdp.radius.critical import check_precision

    held_out, folds = asked.held_out is not None, asked.folds is not None
    if held_out and folds:
        raise InputError("give --held-out or --folds, not both")
    for name, other, is_met in (
        ("by", "--folds or --held-out", held_out or folds),
        ("seed", "--folds", folds),
        ("precision", "--critical", asked.critical),
        ("confidence", "--samples", asked.samples is not None),
        ("top", "a number of --radii", isinstance(asked.radii, int)),
    ):
        if getattr(asked, name) is not None and not is_met:
            raise InputError(f"--{name} has a meaning only with {other}")
    if asked.precision is not None:
        check_precision(asked.precision)
    check_csv(asked.out, "the table is")


def _write(radius_path: RadiusPath, choice: Choice | None, path: str) -> None:
    """A line for each radius."""
    held = ["held_out", "held_out_worst"] if choice is not None else []
    rows = []
    for k, point in enumerate(radius_path.points):
        values = radius_path.nominal[k], radius_path.worst[k]
        numbers = (point.radius, point.fraction, *values, point.gap)
        held_out = [] if choice is None else [choice.mean[k], choice.worst[k]]
        changed = int((point.actions != radius_path.points[0].actions).sum())
        rows.append([*map(_digits, numbers), str(point.status), changed, *map(_digits, held_out)])
    header = [radius_path.ambiguity.size_name, "share", "nominal", "worst", "gap", "status"]
    write_csv(path, [*header, "changed", *held], rows)


def _digits(value: Any) -> str:
    return repr(float(value))


def _document(path: RadiusPath, choice: Choice | None, changes: Any, enough: Any) -> dict[str, Any]:
    model = path.model
    points = [
        {
            **show.fields(point, "radius", "fraction"),
            "status": str(point.status),
            **show.fields(point, "gap", "kernel_passes"),
            "nominal": float(model.initial @ point.nominal),
            "worst": float(model.initial @ point.value),
            **show.fields(point, "value", "lower", "upper", "policy"),
        }
        for point in path.points
    ]
    document = {"status": str(path.status), "saturation": path.saturation, **asdict(path.asked)}
    document["points"] = points
    if choice is not None:
        names = ("radius", "by", "samples", "mean", "worst", "scores")
        document["choice"] = show.fields(choice, *names)
    if changes is not None:
        document["critical"] = [asdict(change) for change in changes]
    if enough is not None:
        document["sufficient"] = enough
    return {**document, **show.named(model, path.ambiguity.with_radius(1.0))}


def _chosen(choice: Choice, ambiguity: AmbiguitySet) -> str:
    """The radius, how far others are as good, and what it means if it is 0."""
    best, samples = choice.best, choice.samples
    size = f"{ambiguity.size_name} {choice.radius:.4g}"
    text = f"{size} by {choice.by} over {samples.shape[1]} held-out kernels"
    alike = np.isclose(samples[best:], samples[best], rtol=1e-9, atol=0).all(axis=1)
    n = int(np.argmin(np.append(alike, False)))
    if n > 1:
        sizes = SEVERAL[ambiguity.size_name]
        others = f"the policies of {sizes} up to {choice.radii[best + n - 1]:.4g}"
        text += f"; {others} do the same under each of them"
    if ambiguity.with_radius(choice.radius).certain:
        text += f"; at {size} no doubt about the data is considered, and the value is no bound"
    return text


def _print(asked: Any, path: RadiusPath, choice: Choice | None, changes: Any, enough: Any) -> None:
    model, ambiguity, limit = path.model, path.ambiguity, path.saturation
    size = ambiguity.size_name
    ends = f"{limit:.4g} on" if size == "radius" else f"level {limit:.4g} down"
    most, passes = max(point.gap for point in path.points), path.kernel_passes
    lines = {
        "Problem": show.problem(model),
        "Set": f"{ambiguity.words}; unconstrained from {ends}",
        "Status": f"{path.status}; largest gap {most:.1e} ({path.asked.short}), "
        f"{passes.mean():.2f} sweeps a {size}",
    }
    if enough is not None:
        top = float(enough.max())
        share = f" ({top / limit:.0%})" if limit > 0 else ""
        lines["Sufficient"] = (
            f"radius {top:.4g}{share} holds the true kernel with probability "
            f"{asked.confidence:g}, if rows are independent draws from one truth"
        )
    if choice is not None:
        lines["Chosen"] = _chosen(choice, ambiguity)
    if asked.out is not None:
        lines["Written"] = asked.out
    show.print_lines(lines, ambiguity.with_radius(1.0).notes(model))
    kind = "reward" if model.maximise else "cost"
    extra = ["sweeps"] if choice is None else ["held out", "its worst"]
    first, rows = path.points[0].actions, []
    for k, point in enumerate(path.points):
        values = f"{path.nominal[k]:.6g}", f"{path.worst[k]:.6g}"
        changed = f"{int((point.actions != first).sum()):,}"
        cells = [f"{point.radius:.4g}", f"{point.fraction:.1%}", *values, changed]
        if choice is None:
            cells.append(f"{point.kernel_passes:.3g}")
        else:
            mark = "*" if k == choice.best else ""
            cells += [f"{mark}{choice.mean[k]:.6g}", f"{choice.worst[k]:.6g}"]
        rows.append(cells)
    header = [size, "share", f"nominal {kind}", f"worst {kind}", "changed", *extra]
    show.print_table([], header, rows)
    if changes is not None:
        _print_changes(changes)


def _print_changes(changes: tuple[Change, ...]) -> None:
    if not changes:
        show.console().print("No action changes on the path.")
        return
    rows = []
    for change in changes[:ROWS]:
        ends = f"{change.low:.5g}", f"{change.high:.5g}", f"{change.fraction:.1%}"
        mix = " → ".join(f"{share:.0%}" for share in change.shares)
        rows.append((change.state, change.before, change.after, *ends, mix))
    left, right = ["state", "before", "after"], ["between", "and", "share", "mix"]
    show.print_table(left, right, rows, len(changes))
