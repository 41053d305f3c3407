"""`drmdp sensitivity`: how much it matters which kernel is true."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from drmdp.cli.option_groups import option
from drmdp.cli.options import MODEL, TABLE, check_outputs, command, paths
from drmdp.cli.outputs import TABLES, check_labels, check_out, write_out
from drmdp.cli.plans import inputs
from drmdp.cli.policy_file import read_policy
from drmdp.cli.screen import say
from drmdp.cli.sets import starting
from drmdp.cli.show import fields, print_json, print_lines, problem
from drmdp.errors import InputError
from drmdp.io.files import check_suffix

REGRETS = ("names", "values", "best", "regret", "mean", "mean_regret")
SHARES = ("acceptability", "share", "reached", "evpi", "evpi_given", "weights")
FIELDS = (*REGRETS, *SHARES, "criterion")


POLICIES = click.Argument(["policy_paths"], metavar="[POLICY...]", nargs=-1)


@command(
    [MODEL, POLICIES, "discount", "initial", "criterion", "threads", "as_json", *TABLE, "progress"],
    out="Write a table (.csv, .xlsx, .parquet) or the document (.json) here.",
    table=option(
        "Each policy under each kernel, each over all, or how often actions are optimal.",
        type=click.Choice(["kernels", "policies", "actions"]),
        default="kernels",
    ),
    seed=option("Of the optima that count beyond 100 kernels.", default=0, show_default=False),
)
def sensitivity(asked: Any) -> None:
    """Judge policies under each kernel of a model alone.

    Beside each stands what is best if that kernel is true: what a policy loses, how often it is the
    best of those given, which actions are optimal how often, and what knowing the kernel would be
    worth at most.

    MODEL and POLICY are read as by `drmdp evaluate`, plans included; policies are called by their
    files. Without POLICY, what is best for the mean kernel is judged.
    """
    from drmdp import formats
    from drmdp.policies.kernel_sensitivity import ALONE
    from drmdp.policies.kernel_sensitivity import sensitivity as judged

    out, files = asked.out, asked.policy_paths
    if out is not None:
        check_suffix(out, (*TABLES, ".json"), "tables are .csv, .xlsx or .parquet, documents .json")
    style = check_out(asked)
    read = {f"POLICY {path}": paths(path) for path in files}
    check_outputs({"--out": paths(out)}, {**inputs([asked.model_path]), **read})
    model = starting(formats.read(asked.model_path, discount=asked.discount), asked.initial)
    check_labels(model, asked, ("states", "actions", "kernel_names"))
    alone = f"{ALONE}; estimate with --by posterior --kernels 200"
    if (model.weights > 0).sum() == 1 and not files:
        raise InputError(alone)
    stems = {path: Path(path).stem for path in files}
    short = len(set(stems.values())) == len(files)
    policies = {stems[path] if short else path: read_policy(path, model) for path in files}
    judgement = judged(model, policies or None, **fields(asked, "criterion", "seed", "threads"))
    about = fields(judgement, *FIELDS)
    about |= dict(zip(("q05", "median", "q95"), judgement.quantiles().T, strict=True))
    about |= {"worst_kernel": [model.kernel_names[i] for i in judgement.worst]}
    about |= {name: list(getattr(model, name)) for name in ("states", "actions", "kernel_names")}
    notes = [alone if note.startswith(ALONE) else note for note in judgement.notes]
    about |= {"notes": [*model.notes, *notes], "fingerprint": model.fingerprint}
    if alone in notes:
        say(f"drmdp: note: {alone}", err=True)
    if out is not None:
        frame = SimpleNamespace(to_frame=lambda: judgement.to_frame(asked.table))
        write_out(out, frame, about, style)
    if asked.as_json:
        print_json(about)
        return
    start = f"mean over the start distribution{f' ({model.start})' if model.start else ''}"
    lines = {"Problem": problem(model), "Values": f"{judgement.noun}, {start}", **judgement.facts()}
    lines |= {"Notes": "\n".join(about["notes"])} if about["notes"] else {}
    print_lines(lines | ({} if out is None else {"Written": out}))
