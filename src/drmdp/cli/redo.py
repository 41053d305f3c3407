"""`drmdp redo`: the same again with another log, and what has changed.

**Whether the new data lie within the old set**, pair by pair. Let ȳ be the old mean row of a pair, z the row of all new data, and d the distance of the set. A
tuple of the old set whose mean is z is at least d(z, ȳ) away from the data: norms and divergences are convex, so that the mean of the N distances is no
less than the distance of the means. A row with d(z, ȳ) above the radius, or with a next state that nature may not use, is therefore surely outside.
"""

from __future__ import annotations

import io
import tempfile
from contextlib import redirect_stdout
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli.estimate import check_folder, write_models
from drmdp.cli.horizon import horizon
from drmdp.cli.options import PROGRESS, Asked, check_outputs, starting
from drmdp.cli.plans import stage_files
from drmdp.cli.show import ROWS, columns, console, grid, print_json, worst
from drmdp.cli.solve import solve
from drmdp.core.archives import PLAN, describe
from drmdp.core.files import check_parent
from drmdp.core.text import amount, count, some
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet

PAGE = ("report", "report_radii", "title", "unit", "baseline")
"""Those of a page, which is written only to be kept."""
SAME = 0.005
"""Probabilities of actions that differ by less are the same decision."""


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.option("--log", required=True, help="The log to estimate from this time, as `drmdp estimate` reads it.")
@click.option("--result", help="What `drmdp solve` or `horizon` saved (.npz); that beside MODEL by default.")
@click.option("-o", "--out", help="Folder for the new model, result and page, by their old names; else none is kept.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@PROGRESS
@click.pass_context
def redo(
    context: click.Context, /, model_path: str, log: str, result: str | None, out: str | None, as_json: bool
) -> int:
    """Do the same again with another log, as next month, and say what has changed.

    MODEL is what `drmdp estimate` wrote: an .npz file, a .drmdp directory, or a folder of stages. The estimate is repeated with the options that it was
    made with, and so are `drmdp solve` or `drmdp horizon` with its choice of the radius and its page, if its result was saved (--out).
    """
    from drmdp import formats
    from drmdp.estimate.bands import fit_stages
    from drmdp.estimate.origin import asked_again
    from drmdp.estimate.pipeline import fit
    from drmdp.estimate.settings import log_settings

    files = stage_files([model_path])
    old, beside = [formats.read(path) for path in files], Path(model_path).resolve().parent
    for path, model in zip(files, old, strict=True):
        if model.origin is None:
            raise InputError(f"{path}: was not made of a log by `drmdp estimate`, so that there is nothing to repeat")
    before = _result(result, beside, old)
    if out is not None:
        check_parent(out)
        check_outputs({"--out": [Path(out)]}, {"MODEL": [beside], "--log": [Path(log)]})
        Path(out).mkdir(exist_ok=True)
        if old[0].stages:
            check_folder(str(Path(out) / Path(model_path).name))
    settings = log_settings(asked_again(old[0], beside))
    made: Any = fit_stages(log, *settings) if old[0].stages else [fit(log, *settings)]
    new, code = [each.model for each in made], 0
    about: dict[str, Any] = {"log": log, **_data(old, new)}
    with tempfile.TemporaryDirectory() as unkept:
        folder = Path(out or unkept)
        written = [str(folder / Path(model_path).name)]
        write_models(new, written[0])
        if before is not None:
            asked = before.settings["command"]
            kept = {name: value for name, value in asked["options"].items() if out or name not in PAGE}
            options = {name: _found(value, beside) for name, value in kept.items()}
            once = asked["verb"] == "solve"
            verb: Any = solve if once else horizon
            others = signature(verb.callback).parameters  # what is no parameter of its own says what the set is
            region = {name: value for name, value in options.items() if name not in others}
            sets = Asked(**{"kind": "wasserstein", "nature": "adversarial", **region})
            options["model_path" if once else "model_paths"] = written[0] if once else (written[0],)
            for name in {"out", "report"} & {"out", *options}:
                options[name] = str(folder / Path(options.get(name, before.settings["path"])).name)
                written.append(options[name])
            with redirect_stdout(io.StringIO()):
                code = context.invoke(verb, **options)
            after = type(before).load(options["out"])
            pairs = [sets.read(path, None) for path in files]
            starts = pairs[0][0].initial, starting(new[0], options.get("initial")).initial
            values = [
                float(mass @ np.atleast_2d(each.value)[0]) for mass, each in zip(starts, (before, after), strict=True)
            ]
            about |= {"policy": _decisions(before, after), "value": values, "within": _within(pairs, new)}
            about["noun"] = worst(pairs[0][0], pairs[0][1].nature, getattr(before, "criterion", "discounted"))
    about["written"] = written if out else []
    print_json(about) if as_json else _print(about)
    return int(code or 0)


def _result(path: str | None, beside: Path, models: list[Model]) -> Any:
    """The saved result of some models whose command is known: that named, or the only one beside them; its settings have its name, too."""
    from drmdp.criteria import posed
    from drmdp.solution import HorizonSolution, Solution

    found = []
    for file in [Path(path)] if path is not None else sorted(beside.glob("*.npz")):
        kind: Any = {"a saved solution": Solution, PLAN: HorizonSolution}.get(describe(file))
        if kind is None and path is None:
            continue
        solution = (kind or Solution).load(file)
        asked = solution.settings.get("command", {}).get("options", {})
        begun = [starting(model, asked.get("initial")) for model in models]
        if kind is HorizonSolution:
            ours = {*solution.fingerprints} == {model.fingerprint for model in begun}
        else:
            ours = solution.fingerprint == posed(begun[0], asked.get("criterion")).fingerprint
        if ours and "command" in solution.settings:
            solution.settings["path"] = file.name
            found.append(solution)
        elif path is not None:
            why = "nobody knows how to repeat it: it was not saved by `drmdp solve` or `drmdp horizon`"
            raise InputError(f"--result {path}: {why if ours else 'is of another model'}")
    if len(found) > 1:
        names = ", ".join(solution.settings["path"] for solution in found)
        raise InputError(f"--result: there are several results beside the model, say which one: {names}")
    return found[0] if found else None


def _found(value: Any, beside: Path) -> Any:
    """An option of a command; a file that is not here is beside the model."""
    here = isinstance(value, str) and not Path(value).exists() and (beside / value).is_file()
    return str(beside / value) if here else value


# ---------------------------------------------------------------------- what has changed


def _rows(models: list[Model]) -> dict[Any, dict[Any, float]]:
    """How often each pair led where, all kernels and stages together, by names."""
    found: dict[Any, dict[Any, float]] = {}
    for model in models:
        table = model._counts
        assert table is not None
        total = sum(table.matrix(table.entries(i)) for i in range(table.n_kernels)).tocoo()
        for pair, t, n in zip(total.row.tolist(), total.col.tolist(), total.data.tolist(), strict=True):
            key = model.states[pair // model.n_actions], model.actions[pair % model.n_actions]
            own = found.setdefault(key, {})
            own[model.states[t]] = own.get(model.states[t], 0.0) + n
    return found


def _data(old: list[Model], new: list[Model]) -> dict[str, Any]:
    """How much was seen before and now: rows, transitions, and each pair that differs."""
    before, after = _rows(old), _rows(new)
    counts = {key: [sum(rows.get(key, {}).values()) for rows in (before, after)] for key in {**before, **after}}
    names = ("transitions",) if old[0].stages else ("rows", "transitions")
    seen = {name: [sum((model.origin or {})[name] for model in both) for both in (old, new)] for name in names}
    states = [list(both[0].states) for both in (old, new)]
    differ = [{"state": s, "action": a, "rows": n} for (s, a), n in counts.items() if n[0] != n[1]]
    return {**seen, "pairs": differ, "new_states": [s for s in states[1] if s not in states[0]]}


def _decisions(before: Any, after: Any) -> list[dict[str, Any]]:
    """States, of plans at each stage, in which something else is to be done; None where there is no such state or stage, or no action."""
    from drmdp.solution import choice

    def played(result: Any) -> dict[Any, Any]:
        plan = result.policy.ndim == 3
        stages = {result.stage_name(t): x for t, x in enumerate(result.policy)} if plan else {None: result.policy}
        return {(name, s): x[k] for name, x in stages.items() for k, s in enumerate(result.states)}

    one, other, found = played(before), played(after), []
    same = tuple(before.actions) == tuple(after.actions)
    for stage, state in {**one, **other}:
        was, now = (each.get((stage, state)) for each in (one, other))
        told = [x if x is None else choice(x, own.actions) for x, own in ((was, before), (now, after))]
        if np.abs(was - now).max() > SAME if same and was is not None and now is not None else told[0] != told[1]:
            found.append({"stage": stage, "state": state, "before": told[0], "after": told[1]})
    return found


def _within(old: list[tuple[Model, AmbiguitySet]], new: list[Model]) -> list[dict[str, Any]] | None:
    """How far rows of all new data are from the old mean rows, and which are outside of the old set; None where sets have no such distance."""
    found, now = [], {model.stages[:1]: _rows([model]) for model in new}
    for model, ball in old:
        radii = np.asarray(ball.radii(model)).reshape(model.n_states, -1)
        mean, place = model.mean_kernel, {name: s for s, name in enumerate(model.states)}
        rows = now.get(model.stages[:1], {})
        for s, a in np.argwhere(model.available).tolist():
            led = rows.get((model.states[s], model.actions[a]), {})
            if not led:
                continue
            z, total = np.zeros(model.n_states), sum(led.values())
            for name in led.keys() & place.keys():
                z[place[name]] = led[name] / total
            beyond = bool(led.keys() - place.keys()) or bool((z[~ball.allowed(model, s, s + 1)[0][a]] > 0).any())
            centre = np.asarray(mean[[s * model.n_actions + a]].todense()).ravel() if model.is_sparse else mean[s, a]
            try:
                far = None if beyond else float(ball.apart(z[None, None], centre[None, None], np.ones(1)).max())
            except NotImplementedError:
                return None
            radius = float(radii[s, a if radii.shape[1] > 1 else 0])
            outside = far is None or far > radius * (1 + 1e-9) + 1e-12
            own = {"stages": list(model.stages), "state": model.states[s], "action": model.actions[a], "rows": total}
            found.append({**own, "distance": far, "radius": radius, "outside": outside})
    return found


# ---------------------------------------------------------------------- what is printed


def _print(about: dict[str, Any]) -> None:
    changes = [
        f"{about[name][1]:,} {name} ({np.subtract(*about[name][::-1]):+,})"
        for name in ("rows", "transitions")
        if name in about
    ]
    seen = ["{action} when {state} {rows[0]:,.6g} → {rows[1]:,.6g}".format(**own) for own in about["pairs"]]
    lines = {
        "Log": f"{about['log']}: {', '.join(changes)}",
        "Seen": some(seen, 8),
        "New states": some(about["new_states"], 8),
    }
    if "policy" in about:
        before, after = about["value"]
        share = f", {(after - before) / abs(before):+.1%}" if before else ""
        lines["Value"] = (
            f"{amount(after)} {about['noun']}, mean over the start distribution; before {amount(before)}{share}"
        )
        lines["Policy"] = f"changed in {count(len(about['policy']), 'place')}" if about["policy"] else "unchanged"
    else:
        lines["Solve"] = (
            "not repeated: beside the model is no result that `drmdp solve --out` saved (.npz); --result names one"
        )
    tested = about.get("within", [])
    if tested is None:
        lines["Old set"] = "not compared: this set has no distance between rows"
    elif tested:
        out = [own for own in tested if own["outside"]]
        far = max((own["distance"] or 0.0 for own in tested), default=0.0)
        lines["Old set"] = (
            f"{len(tested) - len(out):,} of {count(len(tested), 'pair')} seen now are within the old radius; the farthest is {far:.3g} away"
        )
        lines["Outside"] = some([_told(own) for own in out], 8)
    lines["Written"] = ", ".join(about["written"])
    screen = console()
    screen.print(grid({name: text for name, text in lines.items() if text}))
    if about.get("policy"):
        table = columns(["where", "before", "now"], [])
        for own in about["policy"][:ROWS]:
            where = f"{own['stage']}, {own['state']}" if own["stage"] else str(own["state"])
            table.add_row(where, own["before"] or "", own["after"] or "")
        screen.print(table)


def _told(own: dict[str, Any]) -> str:
    """A pair that is outside of the old set."""
    how = "a new next state" if own["distance"] is None else f"{own['distance']:.3g}"
    where = f"{own['stages'][0]}: " if own["stages"] else ""
    return f"{where}{own['action']} when {own['state']} ({how}, {own['rows']:,.6g} rows)"
