"""What commands share that take plans over finitely many stages: their models, and how plans are printed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drmdp.cli.show import ROWS, columns, console, grid, problem
from drmdp.core.text import discount as shown_discount

if TYPE_CHECKING:
    from drmdp.cli.options import Asked, Files
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import HorizonSolution

FIELDS = (
    "status",
    "gap",
    "scale",
    "value",
    "lower",
    "upper",
    "policy",
    "kernel_passes",
    "actions",
    "discount",
    "settings",
    "notes",
)


def inputs(model_paths: Sequence[str], **others: str) -> Files:
    """The files that a command reads."""
    from drmdp import formats
    from drmdp.cli.options import paths

    given = stage_files(model_paths)
    found = {f"MODEL {path}" if len(given) > 1 else "MODEL": formats.files_of(path) for path in given}
    return found | {name.upper(): paths(path) for name, path in others.items()}


def stage_files(model_paths: Sequence[str]) -> list[str]:
    """The files of models, those in a folder that `drmdp estimate --stage` wrote among them, in the order of their names."""
    found: list[str] = []
    for path in model_paths:
        folder = Path(path)
        inside = sorted(str(file) for file in folder.glob("*.npz")) if folder.is_dir() else []
        found += inside if inside and not (folder / "model.json").exists() else [path]
    return found


def read_stages(
    asked: Asked, model_paths: Sequence[str], discount: float | None
) -> tuple[list[Model], list[AmbiguitySet]]:
    """Models and the sets around them; a set that is the same for all is made once."""
    pairs = [asked.read(path, discount) for path in stage_files(model_paths)]
    return [model for model, _ in pairs], [ball for _, ball in pairs]


def document(models: Sequence[Model], plan: HorizonSolution) -> dict[str, Any]:
    """A plan as JSON."""
    names = [list(model.kernel_names) for model in models]
    return {
        "kernel_names": names if len(models) > 1 else names[0],
        **{name: getattr(plan, name) for name in FIELDS},
        "states": list(plan.states),
        "stages": plan.n_stages,
        "fingerprints": list(plan.fingerprints),
    }


def print_plan(model: Model, plan: HorizonSolution, written: dict[str, str | None]) -> None:
    """Print what was asked, how it ended, and the first states."""
    from drmdp.solution.rows import fewest_rows

    out = console()
    kinds = len(set(plan.fingerprints))
    models = "" if kinds == 1 else f", {kinds:,} models" if kinds < plan.n_stages else ", a model for each"
    lines = {
        "Problem": problem(model),
        "Horizon": f"{plan.n_stages:,} stages{_named(plan)}{models}, discount {shown_discount(plan.discount)}",
        "Ball": plan.ball_in_words,
        "Status": f"{plan.status}: {plan.status.sentence}",
        "Gap": plan.gap_in_words,
        "Value": plan.value_in_words,
        **({"Notes": "\n".join(plan.notes)} if plan.notes else {}),
        **{name: path for name, path in written.items() if path is not None},
    }
    out.print(grid(lines))
    fewest = fewest_rows(plan)
    table = columns(["state"], [plan.value_noun, *([] if fewest is None else ["fewest rows"])])
    table.add_column(f"likeliest action by {plan.stage_labels[0]}", overflow="fold")
    for s in range(min(len(plan.states), ROWS)):
        rests = [] if fewest is None else [fewest[s]]
        table.add_row(str(plan.states[s]), f"{plan.value[0, s]:.6g}", *rests, _by_stage(plan, s))
    out.print(table)
    if len(plan.states) > ROWS:
        out.print(f"… {len(plan.states) - ROWS:,} more")


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
        parts.append(f"{names[t] if n == 1 else f'{names[t]}–{names[t + n - 1]}'} {plan.actions[a]}")
        t += n
    return ", ".join(parts[:6]) + (", …" if len(parts) > 6 else "")
