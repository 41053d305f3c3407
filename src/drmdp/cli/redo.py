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

VERBS: dict[Any, Any] = {"solve": solve, "horizon": horizon}
PAGE = ("report", "report_radii", "title", "unit", "baseline")
"""Options of a page, which is written only to be kept."""
SAME, LISTED = 0.005, 8
"""Probabilities of actions that differ by less are the same decision; and so many pairs are told."""


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.option("--log", required=True, help="The log to estimate from this time, as `drmdp estimate` reads it.")
@click.option("--result", help="What `drmdp solve` or `horizon` saved (.npz); that beside MODEL by default.")
@click.option("-o", "--out", help="Folder for the new model, result and page, by their old names; else none is kept.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@PROGRESS
@click.pass_context
def redo(context: click.Context, model_path: str, log: str, result: str | None, out: str | None, as_json: bool) -> int:
    """Do the same again with another log, as next month, and say what has changed.

    MODEL is what `drmdp estimate` wrote: an .npz file, a .drmdp directory, or a folder of stages. The estimate is repeated with the options that it was
    made with, and so are `drmdp solve` or `drmdp horizon` with its choice of the radius and its page, if its result was saved (--out).
    """
    from drmdp import formats
    from drmdp.estimate.bands import fit_stages
    from drmdp.estimate.origin import asked_again
    from drmdp.estimate.pipeline import fit
    from drmdp.estimate.settings import log_settings

    files, path = stage_files([model_path]), Path(model_path)
    old, beside = [formats.read(file) for file in files], path.resolve().parent
    if any(model.origin is None for model in old):
        raise InputError(f"{path}: was not made of a log by `drmdp estimate`, so that there is nothing to repeat")
    before = _result(result, beside, old)
    if out is not None:
        check_parent(out)
        saved = [] if before is None else [Path(before.settings["path"])]
        pages = [] if before is None else [before.settings["command"]["options"].get("report", path.name)]
        targets = [Path(out), *(Path(out) / Path(name).name for name in (path, *saved, *pages))]
        inputs = [each for file in files for each in formats.files_of(file)]
        check_outputs(
            {"--out": list(dict.fromkeys(targets))}, {"MODEL": inputs, "--log": [Path(log)], "--result": saved}
        )
        Path(out).mkdir(exist_ok=True)
        if old[0].stages:
            check_folder(str(Path(out) / path.name))
    try:
        settings = log_settings(asked_again(old[0], beside))
    except TypeError:
        raise InputError(f"{path}: its record has options that this version does not know") from None
    made: Any = fit_stages(log, *settings) if old[0].stages else [fit(log, *settings)]
    new, code = [each.model for each in made], 0
    about = {"log": log, **_data(old, new), "written": []}
    with tempfile.TemporaryDirectory() as unkept:
        folder = Path(out or unkept)
        write_models(new, str(folder / path.name))
        written = [str(folder / path.name)]
        if before is not None:
            code, after, more = _solved(context, before, written, folder, beside, bool(out))
            about |= _compared(before, after, new, [Asked(**more).read(file, None) for file in files], more)
    about["written"] = written if out else []
    print_json(about) if as_json else _print(about)
    return code


def _result(path: str | None, beside: Path, models: list[Model]) -> Any:
    """The saved result of models whose command is known: that named, or the only one beside them; its settings have its name, too."""
    from drmdp.criteria import posed
    from drmdp.solution import HorizonSolution, Solution

    results: dict[str, Any] = {}
    for file in [Path(path)] if path is not None else sorted(beside.glob("*.npz")):
        kind: Any = {"a saved solution": Solution, PLAN: HorizonSolution}.get(describe(file))
        if kind is None and path is None:
            continue
        result = (kind or Solution).load(file)
        command = result.settings.get("command", {"options": {}})
        options = command["options"]
        seen = [starting(model, options.get("initial")) for model in models]
        seen = [posed(seen[0], options.get("criterion"))] if kind is Solution else seen
        prints = {result.fingerprint} if kind is Solution else {*result.fingerprints}
        known = command.get("verb") in VERBS
        if prints == {model.fingerprint for model in seen} and known:
            results[file.name] = result
            result.settings["path"] = str(file)
        elif path is not None:
            why = "is of another model" if known else "was not saved by `drmdp solve` or `drmdp horizon`: who knows how"
            raise InputError(f"--result {path}: {why}")
    if len(results) > 1:
        raise InputError(f"--result: there are several results beside the model, say which one: {', '.join(results)}")
    return next(iter(results.values()), None)


def _solved(context: Any, before: Any, written: list[str], folder: Path, beside: Path, kept: bool) -> Any:
    """Repeat what made a result: its exit code, the new result, and what the options say of the set."""
    from drmdp.estimate.origin import beside_or_here

    command = before.settings["command"]
    verb, given = VERBS[command["verb"]], command["options"]
    options = {name: beside_or_here(given[name], beside) for name in given if kept or name not in PAGE}
    if unknown := options.keys() - {param.name for param in verb.params}:
        raise InputError(f"{before.settings['path']}: `drmdp {command['verb']}` has no option {some(sorted(unknown))}")
    mine = signature(verb.callback).parameters  # all others are of the set
    region = {name: value for name, value in options.items() if name not in mine}
    options |= {
        "out": before.settings["path"],
        **({"model_path": written[0]} if verb is solve else {"model_paths": (written[0],)}),
    }
    for name in ("out", "report"):
        if name in options:
            options[name] = str(folder / Path(options[name]).name)
            written.append(options[name])
    with redirect_stdout(io.StringIO()):
        code = int(context.invoke(verb, **options) or 0)
    return code, type(before).load(options["out"]), {"kind": "wasserstein", "nature": "adversarial", **region}


# ---------------------------------------------------------------------- what has changed


def _rows(models: list[Model]) -> dict[Any, dict[Any, float]]:
    """How often each pair led where, all kernels and stages together, by names."""
    rows: dict[Any, dict[Any, float]] = {}
    for model in models:
        table: Any = model._counts
        total = sum(table.matrix(table.entries(i)) for i in range(table.n_kernels)).tocoo()
        for pair, t, n in zip(total.row.tolist(), total.col.tolist(), total.data.tolist(), strict=True):
            s, a = divmod(pair, model.n_actions)
            row = rows.setdefault((model.states[s], model.actions[a]), {})
            row[model.states[t]] = row.get(model.states[t], 0.0) + n
    return rows


def _data(old: list[Model], new: list[Model]) -> dict[str, Any]:
    """How much was seen before and now: rows, transitions, and each pair that differs."""
    rows = _rows(old), _rows(new)
    counts = {key: [sum(each.get(key, {}).values()) for each in rows] for key in {**rows[0], **rows[1]}}
    names = ("transitions",) if old[0].stages else ("rows", "transitions")
    seen = {name: [sum((model.origin or {})[name] for model in models) for models in (old, new)] for name in names}
    pairs = [{"state": s, "action": a, "rows": n} for (s, a), n in counts.items() if n[0] != n[1]]
    return {**seen, "pairs": pairs, "new_states": [s for s in new[0].states if s not in set(old[0].states)]}


def _compared(
    before: Any, after: Any, new: list[Model], old: list[tuple[Model, AmbiguitySet]], region: Any
) -> dict[str, Any]:
    """Decisions, values, and rows against the old set."""
    from drmdp.solution import choice

    def played(result: Any) -> dict[Any, Any]:
        stages = enumerate(result.policy) if result.policy.ndim == 3 else [(None, result.policy)]
        named = {None if t is None else result.stage_name(t): x for t, x in stages}
        return {(stage, s): x[k] for stage, x in named.items() for k, s in enumerate(result.states)}

    was, now, policy = played(before), played(after), []
    same = tuple(before.actions) == tuple(after.actions)
    for key in {**was, **now}:
        both: Any = was.get(key), now.get(key)
        told = [x if x is None else choice(x, each.actions) for x, each in zip(both, (before, after), strict=True)]
        if np.abs(both[0] - both[1]).max() > SAME if same and key in was and key in now else told[0] != told[1]:
            policy.append({"stage": key[0], "state": key[1], "before": told[0], "after": told[1]})
    starts = old[0][0].initial, starting(new[0], region.get("initial")).initial
    value = [float(x @ np.atleast_2d(each.value)[0]) for x, each in zip(starts, (before, after), strict=True)]
    noun = worst(old[0][0], old[0][1].nature, getattr(before, "criterion", "discounted"))
    return {"policy": policy, "value": value, "noun": noun, "within": _within(old, new)}


def _within(old: list[tuple[Model, AmbiguitySet]], new: list[Model]) -> list[dict[str, Any]] | None:
    """How far rows of all new data are from the old mean rows, and which are outside of the old set; None where sets have no such distance."""
    tested, now = [], {model.stages[:1]: _rows([model]) for model in new}
    for model, ball in old:
        radii = np.broadcast_to(np.reshape(ball.radii(model), (model.n_states, -1)), model.available.shape)
        mean, place = model.mean_kernel, {name: s for s, name in enumerate(model.states)}
        for s, a in np.argwhere(model.available).tolist():
            led = now.get(model.stages[:1], {}).get((model.states[s], model.actions[a]))
            if led is None:
                continue
            z, total = np.zeros(model.n_states), sum(led.values())
            for name in led.keys() & place.keys():
                z[place[name]] = led[name] / total
            beyond = bool(led.keys() - place.keys()) or bool((z[~ball.allowed(model, s, s + 1)[0][a]] > 0).any())
            centre = mean[[s * model.n_actions + a]].toarray()[0] if model.is_sparse else mean[s, a]
            try:
                far = None if beyond else float(ball.apart(z[None, None], centre[None, None], np.ones(1)).max())
            except NotImplementedError:
                return None
            outside = far is None or far > radii[s, a] * (1 + 1e-9) + 1e-12
            tested.append(
                {
                    "stages": list(model.stages), "state": model.states[s], "action": model.actions[a], "rows": total,
                    "distance": far, "radius": float(radii[s, a]), "outside": outside,
                }
            )  # fmt: skip
    return tested


# ---------------------------------------------------------------------- what is printed


def _print(about: dict[str, Any]) -> None:
    names = [name for name in ("rows", "transitions") if name in about]
    grown = [f"{about[name][1]:,} {name} ({about[name][1] - about[name][0]:+,})" for name in names]
    pairs = ["{action} when {state} {rows[0]:,.6g} → {rows[1]:,.6g}".format(**pair) for pair in about["pairs"]]
    lines = {"Log": f"{about['log']}: {', '.join(grown)}", "Seen": some(pairs, LISTED)}
    lines["New states"] = some(about["new_states"], LISTED)
    if "policy" not in about:
        lines["Solve"] = "not repeated: no result (.npz) of `drmdp solve --out` is beside the model; --result names one"
    else:
        before, after = about["value"]
        share = f", {(after - before) / abs(before):+.1%}" if before else ""
        lines["Value"] = f"{amount(after)} {about['noun']}, mean over the start; before {amount(before)}{share}"
        lines["Policy"] = f"changed in {count(len(about['policy']), 'place')}" if about["policy"] else "unchanged"
        lines |= _old_set(about["within"])
    lines["Written"] = ", ".join(about["written"])
    console().print(grid({name: text for name, text in lines.items() if text}))
    if about.get("policy"):
        table = columns(["where", "before", "now"], [])
        for change in about["policy"][:ROWS]:
            where = ", ".join(str(name) for name in (change["stage"], change["state"]) if name is not None)
            table.add_row(where, change["before"] or "", change["after"] or "")
        console().print(table)


def _old_set(tested: list[dict[str, Any]] | None) -> dict[str, str]:
    if tested is None:
        return {"Old set": "not compared: this set has no distance between rows"}
    inside = f"{sum(not pair['outside'] for pair in tested):,} of {count(len(tested), 'pair')} seen now"
    far = max((pair["distance"] or 0.0 for pair in tested), default=0.0)
    texts = []
    for pair in (pair for pair in tested if pair["outside"]):
        how = "a new next state" if pair["distance"] is None else f"{pair['distance']:.3g}"
        stage = f"{pair['stages'][0]}: " if pair["stages"] else ""
        texts.append(f"{stage}{pair['action']} when {pair['state']} ({how}, {pair['rows']:,.6g} rows)")
    told = f"{inside} are within the old radius; the farthest is {far:.3g} away"
    return {"Old set": told, "Outside": some(texts, LISTED)}
