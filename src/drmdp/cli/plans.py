"""Finite-horizon plans on the command line: their models, and how plans are printed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drmdp.cli.options import Files
from drmdp.cli.show import ROWS, answered, fields, print_lines, print_notes, print_table, problem
from drmdp.model import Model
from drmdp.ui.text import discount as shown_discount

if TYPE_CHECKING:
    from drmdp.cli.sets import SetOptions
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import HorizonSolution

BOUNDS = ("status", "gap", "scale", "value", "lower", "upper")
FIELDS = (*BOUNDS, "policy", "kernel_passes", "actions", "discount", "settings", "notes")


def inputs(model_paths: Sequence[str]) -> Files:
    """The files that a command reads."""
    from drmdp import formats

    files = stage_files(model_paths)
    names = [f"MODEL {path}" if len(files) > 1 else "MODEL" for path in files]
    return dict(zip(names, map(formats.files_of, files), strict=True))


def stage_files(model_paths: Sequence[str]) -> list[str]:
    """The files of models, those in a folder that `drmdp estimate --stage` wrote among them, in the
    order of their names.
    """
    files: list[str] = []
    for path in model_paths:
        folder = Path(path)
        inside = sorted(str(file) for file in folder.glob("*.npz")) if folder.is_dir() else []
        files += inside if inside and not (folder / "model.json").exists() else [path]
    return files


def read_stages(region: SetOptions, asked: Any) -> tuple[list[Model], list[AmbiguitySet]]:
    """Models and the sets around them; a set that is the same for all is made once."""
    pairs = [region.read(path, asked.discount) for path in stage_files(asked.model_paths)]
    return [model for model, _ in pairs], [ambiguity for _, ambiguity in pairs]


def document(models: Sequence[Model], plan: HorizonSolution) -> dict[str, Any]:
    """A plan as JSON."""
    names = [list(model.kernel_names) for model in models]
    return {
        "kernel_names": names if len(models) > 1 else names[0],
        **fields(plan, *FIELDS),
        "states": list(plan.states),
        "stages": plan.n_stages,
        "fingerprints": list(plan.fingerprints),
    }


def print_plan(model: Model, plan: HorizonSolution, written: dict[str, str]) -> None:
    """Print what was asked, how it ended, and the first states."""
    from drmdp.solution.rows import fewest_rows

    kinds = len(set(plan.fingerprints))
    models = f", {kinds:,} models" if kinds < plan.n_stages else ", a model for each"
    models = "" if kinds == 1 else models
    lines = {
        "Problem": problem(model),
        "Horizon": f"{plan.n_stages:,} stages{_named(plan)}{models}, discount "
        f"{shown_discount(plan.discount)}",
        "Set": plan.ambiguity_in_words,
        "Status": f"{plan.status}: {plan.status.sentence}",
        "Gap": plan.gap_in_words,
        **answered(plan),
        "Value": plan.value_in_words,
        **written,
    }
    print_lines(lines)
    fewest, first = fewest_rows(plan), range(min(len(plan.states), ROWS))
    rests = [[] if fewest is None else [fewest[s]] for s in first]
    rows = [
        (plan.states[s], plan.digits(plan.value[0, s]), *rests[s], _by_stage(plan, s))
        for s in first
    ]
    numbers = [plan.value_noun, *([] if fewest is None else ["fewest rows"])]
    last = f"likeliest action by {plan.stage_labels[0]}"
    print_table(["state"], numbers, rows, len(plan.states), last)
    print_notes(plan.notes)


def _named(plan: HorizonSolution) -> str:
    """The first and the last stage, and how they are counted."""
    names = plan.stage_names
    half = ", half of each in the state after it" if plan.half_cycle else ""
    return half if names is None else f" ({names[0]} to {names[-1]}){half}"


def _by_stage(plan: HorizonSolution, s: int) -> str:
    """Runs of equal actions: "0–6 wait, 7–9 treat"."""
    policy = plan.policy[:, s]
    if not policy.any():
        return "(end)"
    parts, t, names = [], 0, plan.stage_labels[1]
    for a, run in groupby(policy.argmax(axis=1).tolist()):
        n = len(list(run))
        when = names[t] if n == 1 else f"{names[t]}–{names[t + n - 1]}"
        parts.append(f"{when} {plan.actions[a]}")
        t += n
    return ", ".join(parts[:6]) + (", …" if len(parts) > 6 else "")
