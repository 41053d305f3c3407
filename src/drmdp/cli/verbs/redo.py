"""`drmdp redo`: the same again with another log, and what has changed.

**Whether the new data lie within the old set**, pair by pair. Let ȳ be the old mean row of a pair,
z the row of all new data, and d the distance of the set. A tuple of the old set whose mean is z is
at least d(z, ȳ) away from the data: norms and divergences are convex, so that the mean of the N
distances is no less than the distance of the means. A row with d(z, ȳ) above the radius, or with a
next state that nature may not use, is therefore surely outside.
"""

from __future__ import annotations

import io
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
import numpy as np

from drmdp.cli.messages import spoken
from drmdp.cli.option_groups import OUTPUT, option
from drmdp.cli.options import check_outputs, command
from drmdp.cli.plans import stage_files
from drmdp.cli.report import REPORT_OPTIONS
from drmdp.cli.sets import SetOptions, region_of, starting
from drmdp.cli.show import ROWS, print_json, print_lines, print_table, worst
from drmdp.cli.verbs.estimate import check_folder, estimate, write_models
from drmdp.cli.verbs.horizon import horizon
from drmdp.cli.verbs.solve import solve
from drmdp.errors import InputError
from drmdp.io.archives import PLAN, describe
from drmdp.io.files import check_parent
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.ui.text import amount, count, first_names

VERBS: dict[Any, Any] = {"solve": solve, "horizon": horizon}
SAME, LISTED = 0.005, 8
"""Probabilities of actions that differ by less, or that print the same, are the same decision; and
so many pairs are told.
"""


@command(
    [click.Argument(["model_path"], metavar="MODEL"), "as_json", "progress"],
    log=option("The log to estimate from this time, as `drmdp estimate` reads it.", required=True),
    result="What `drmdp solve` or `horizon` saved (.npz); that beside MODEL by default.",
    out=option(
        "Folder for the new model, result and page, by their old names; else none is kept.",
        "-o",
        "--out",
        heading=OUTPUT,
    ),
)
def redo(asked: Any) -> int:
    """Do the same again with another log, as next month, and say what has changed.

    MODEL is what `drmdp estimate` wrote: an .npz file, a .drmdp directory, or a folder of stages.
    The estimate is repeated with the options that it was made with, and so are `drmdp solve` or
    `drmdp horizon` with its choice of the radius and its page, if its result was saved (--out).
    """
    from drmdp import formats
    from drmdp.estimation.bands import fit_stages
    from drmdp.estimation.pipeline import fit
    from drmdp.estimation.settings import asked_again, log_settings

    out, log = asked.out, asked.log
    files, path = stage_files([asked.model_path]), Path(asked.model_path)
    old, beside = [formats.read(file) for file in files], path.resolve().parent
    if any(model.origin is None for model in old):
        why = "was not made of a log by `drmdp estimate`, so that there is nothing to repeat"
        raise InputError(f"{path}: {why}")
    before = _result(asked.result, beside, old)
    if out is not None:
        check_parent(out)
        saved, names = [], [path]
        if before is not None:
            saved = [Path(before.settings["path"])]
            names += [*saved, Path(before.settings["command"]["options"].get("report", path.name))]
        targets = [Path(out), *(Path(out) / each.name for each in names)]
        inputs = [each for file in files for each in formats.files_of(file)]
        check_outputs(
            {"--out": list(dict.fromkeys(targets))},
            {"MODEL": inputs, "--log": [Path(log)], "--result": saved},
        )
        Path(out).mkdir(exist_ok=True)
        if old[0].stages:
            check_folder(str(Path(out) / path.name))
    try:
        settings = log_settings(asked_again(old[0], beside))
    except TypeError:
        why = "its record has options that this version does not know"
        raise InputError(f"{path}: {why}") from None
    try:
        estimates: Any = fit_stages(log, *settings) if old[0].stages else [fit(log, *settings)]
    except InputError as error:
        text = spoken(str(error), estimate)
        cure = "; redo has no such options: edit the log, or run `drmdp estimate` again with them"
        raise InputError(f"{text}{cure if ' --' in text else ''}") from None
    new, code = [each.model for each in estimates], 0
    about = {"log": log, **_data(old, new), "written": []}
    with tempfile.TemporaryDirectory() as unkept:
        folder = Path(out or unkept)
        write_models(new, str(folder / path.name))
        written = [str(folder / path.name)]
        if before is not None:
            code, after, region = _solved(before, written, folder, beside, bool(out))
            sets = [SetOptions(**region).read(file, None) for file in files]
            about |= _compared(before, after, new, sets, region)
    about["written"] = written if out else []
    print_json(about) if asked.as_json else _print(about)
    return code


def _result(path: str | None, beside: Path, models: list[Model]) -> Any:
    """The saved result of models whose command is known: that named, or the only one beside them;
    its settings have its name, too.
    """
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
        try:
            started = [starting(model, options.get("initial")) for model in models]
            if kind is Solution:
                started = [posed(started[0], options.get("criterion"))]
        except InputError:  # that start or criterion is not one of these models
            started = []
        prints = {result.fingerprint} if kind is Solution else {*result.fingerprints}
        known = command.get("verb") in VERBS
        if prints == {model.fingerprint for model in started} and known:
            results[file.name] = result
            result.settings["path"] = str(file)
        elif path is not None:
            why = "was not saved by `drmdp solve` or `drmdp horizon`: it holds no command to repeat"
            if known:
                why = "is of another model"
            raise InputError(f"--result {path}: {why}")
    if len(results) > 1:
        several = "there are several results beside the model, say which one"
        raise InputError(f"--result: {several}: {', '.join(results)}")
    return next(iter(results.values()), None)


def _solved(before: Any, written: list[str], folder: Path, beside: Path, keep: bool) -> Any:
    """Repeat what made a result: its exit code, the new result, and what the options say of the
    set.
    """
    from drmdp.estimation.settings import beside_or_here

    command = before.settings["command"]
    verb, saved = VERBS[command["verb"]], command["options"]
    # a page is written only to be kept
    kept = [name for name in saved if keep or name not in REPORT_OPTIONS]
    options = {name: beside_or_here(saved[name], beside) for name in kept}
    if unknown := options.keys() - {param.name for param in verb.params}:
        which = f"`drmdp {command['verb']}` has no option {first_names(sorted(unknown))}"
        raise InputError(f"{before.settings['path']}: {which}")
    region = {"kind": "wasserstein", "nature": "adversarial", **region_of(options)}
    models = {"model_path": written[0]} if verb is solve else {"model_paths": (written[0],)}
    options |= {"out": before.settings["path"], **models}
    for name in ("out", "report"):
        if name in options:
            options[name] = str(folder / Path(options[name]).name)
            written.append(options[name])
    with redirect_stdout(io.StringIO()):
        code = int(click.get_current_context().invoke(verb, **options) or 0)
    return code, type(before).load(options["out"]), region


# ---------------------------------------------------------------------- what has changed


def _rows(models: list[Model]) -> dict[Any, dict[Any, float]]:
    """Counts of each pair and next state, all kernels and stages together, by names."""
    rows: dict[Any, dict[Any, float]] = {}
    for model in models:
        table: Any = model._counts
        total = sum(table.matrix(table.entries(i)) for i in range(table.n_kernels)).tocoo()
        cells = (part.tolist() for part in (total.row, total.col, total.data))
        for pair, t, n in zip(*cells, strict=True):
            s, a = divmod(pair, model.n_actions)
            row = rows.setdefault((model.states[s], model.actions[a]), {})
            row[model.states[t]] = row.get(model.states[t], 0.0) + n
    return rows


def _data(old: list[Model], new: list[Model]) -> dict[str, Any]:
    """Counts before and now: rows, transitions, and each pair that differs."""
    rows = _rows(old), _rows(new)
    about: dict[str, Any] = {}
    for name in ("transitions",) if old[0].stages else ("rows", "transitions"):
        origins = [[model.origin or {} for model in models] for models in (old, new)]
        about[name] = [sum(origin[name] for origin in each) for each in origins]
    pairs = []
    for s, a in {**rows[0], **rows[1]}:
        n = [sum(each.get((s, a), {}).values()) for each in rows]
        if n[0] != n[1]:
            pairs.append({"state": s, "action": a, "rows": n})
    new_states = [s for s in new[0].states if s not in set(old[0].states)]
    return {**about, "pairs": pairs, "new_states": new_states}


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
        first = choice(was[key], before.actions) if key in was else None
        last = choice(now[key], after.actions) if key in now else None
        differs = first != last
        if same and key in was and key in now:
            differs &= bool(np.abs(was[key] - now[key]).max() > SAME)
        if differs:
            policy.append({"stage": key[0], "state": key[1], "before": first, "after": last})
    starts = old[0][0].initial, starting(new[0], region.get("initial")).initial
    pairs = zip(starts, (before, after), strict=True)
    value = [float(start @ np.atleast_2d(each.value)[0]) for start, each in pairs]
    noun = worst(old[0][0], old[0][1].nature, getattr(before, "criterion", "discounted"))
    return {"policy": policy, "value": value, "noun": noun, "within": _within(old, new)}


def _within(old: list[tuple[Model, AmbiguitySet]], new: list[Model]) -> list[dict[str, Any]] | None:
    """Distances of the rows of all new data from the old mean rows, and which are outside of the
    old set; None where sets have no such distance.
    """
    tested, now = [], {model.stages[:1]: _rows([model]) for model in new}
    for model, ambiguity in old:
        radii = np.reshape(ambiguity.radii(model), (model.n_states, -1))
        radii = np.broadcast_to(radii, model.available.shape)
        mean, place = model.mean_kernel, {name: s for s, name in enumerate(model.states)}
        for s, a in np.argwhere(model.available).tolist():
            led = now.get(model.stages[:1], {}).get((model.states[s], model.actions[a]))
            if led is None:
                continue
            z, total = np.zeros(model.n_states), sum(led.values())
            for name in led.keys() & place.keys():
                z[place[name]] = led[name] / total
            beyond = (z[~ambiguity.allowed(model, s, s + 1)[0][a]] > 0).any()
            centre = mean[[s * model.n_actions + a]].toarray()[0] if model.is_sparse else mean[s, a]
            far, radius = None, float(radii[s, a])
            if not (led.keys() - place.keys() or beyond):
                try:
                    apart = ambiguity.apart(z[None, None], centre[None, None], np.ones(1))
                except NotImplementedError:
                    return None
                far = float(apart.max())
            pair = {"state": model.states[s], "action": model.actions[a], "rows": total}
            outside = far is None or far > radius * (1 + 1e-9) + 1e-12
            against = {"distance": far, "radius": radius, "outside": outside}
            tested.append({"stages": list(model.stages), **pair, **against})
    return tested


# ---------------------------------------------------------------------- what is printed


def _print(about: dict[str, Any]) -> None:
    names = [name for name in ("rows", "transitions") if name in about]
    grown = [f"{about[name][1]:,} {name} ({about[name][1] - about[name][0]:+,})" for name in names]
    text = "{action} when {state} {rows[0]:,.6g} → {rows[1]:,.6g}"
    pairs = [text.format(**pair) for pair in about["pairs"]]
    lines = {"Log": f"{about['log']}: {', '.join(grown)}", "Seen": first_names(pairs, LISTED)}
    lines["New states"] = first_names(about["new_states"], LISTED)
    if "policy" not in about:
        missing = "no result (.npz) of `drmdp solve --out` is beside the model"
        lines["Solve"] = f"not repeated: {missing}; --result names one"
    else:
        before, after = about["value"]
        share = f", {(after - before) / abs(before):+.1%}" if before else ""
        mean = f"{amount(after)} {about['noun']}, mean over the start"
        lines["Value"] = f"{mean}; before {amount(before)}{share}"
        changed = f"changed in {count(len(about['policy']), 'place')}"
        lines["Policy"] = changed if about["policy"] else "unchanged"
        lines |= _old_set(about["within"])
    lines["Written"] = ", ".join(about["written"])
    print_lines({name: text for name, text in lines.items() if text})
    rows = []
    for change in about.get("policy", [])[:ROWS]:
        place = (str(name) for name in (change["stage"], change["state"]) if name is not None)
        rows.append((", ".join(place), change["before"] or "", change["after"] or ""))
    if rows:
        print_table(["where", "before", "now"], [], rows)


def _old_set(tested: list[dict[str, Any]] | None) -> dict[str, str]:
    if tested is None:
        return {"Old set": "not compared: this set has no distance between rows"}
    n = sum(not pair["outside"] for pair in tested)
    inside = f"{n:,} of {count(len(tested), 'pair')} seen now"
    lines, texts = f"{inside} are within the old radius", []
    known = [pair for pair in tested if pair["distance"] is not None]
    if known:
        far = max(known, key=lambda pair: float(pair["distance"]))
        lines += f"; the farthest, {_where(far)}, is {far['distance']:.3g} away"
        lines += f", and its radius is {far['radius']:.3g}"
    for pair in (pair for pair in tested if pair["outside"]):
        how = "a new next state" if pair["distance"] is None else f"{pair['distance']:.3g}"
        texts.append(f"{_where(pair)} ({how}, {pair['rows']:,.6g} rows)")
    return {"Old set": lines, "Outside": first_names(texts, LISTED)}


def _where(pair: dict[str, Any]) -> str:
    stage = f"{pair['stages'][0]}: " if pair["stages"] else ""
    return f"{stage}{pair['action']} when {pair['state']}"
