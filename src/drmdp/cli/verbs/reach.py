"""`drmdp reach`: the probability of arriving."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from drmdp._typing import BoolArray
from drmdp.cli import show
from drmdp.cli.option_groups import About, flag, integer, repeated
from drmdp.cli.options import BALL, LIMITS, MODEL, TABLE, check_outputs, command, files_of
from drmdp.cli.outputs import check_labels, check_out, finish
from drmdp.cli.plans import document as plan_document
from drmdp.cli.plans import print_plan
from drmdp.cli.sets import set_of
from drmdp.errors import InputError, meant
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.ui.progress import stage

LISTED = 12
"""Known names in a message."""
TARGET = partial(repeated, "State to be reached, or a label of the file; may be repeated.")
QUESTION: dict[str, About] = {
    "target": TARGET(),
    "avoid": repeated("State, or label, that must not be reached before; may be repeated."),
    "minimise": flag("Keep away from the target: the least probability of reaching it."),
    "within": integer("In at most so many steps; what is written is then a plan."),
}
"""Options that say what is to be reached."""


@command(
    [MODEL, *BALL, *LIMITS, "out", "proof", *TABLE],
    **QUESTION | {"target": TARGET(required=True)},
)
def reach(asked: Any) -> int:
    """Find the policy with the best worst-case probability of reaching a target, or, with
    --minimise, of keeping away from it.

    The answer names the target, what must not come before, the deadline of --within, and the
    probability: "at least" so much where the target is to be reached, "at most" with --minimise,
    whatever nature does within the set.

    MODEL is read as by `drmdp solve`; its costs and its discount are not used. A .tra or .umb file
    needs no rewards, and may have labels of states, such as "goal", which --target and --avoid take
    as well as numbers of states.
    """
    from drmdp import formats
    from drmdp.solution import HorizonSolution
    from drmdp.solvers.reachability.reach import reach as solve

    style, path = check_out(asked), asked.model_path
    check_outputs(files_of(asked, "out", "proof"), {"MODEL": formats.files_of(path)})
    if asked.proof is not None and asked.within is not None:
        raise InputError("--proof: a plan has none; leave out --within")
    model, ambiguity, question = read_question(asked, path)
    check_labels(model, asked)
    given = show.fields(asked, "tol", "rtol", "max_seconds", "threads")
    with stage(*show.SOLVING):
        result: Any = solve(model, ambiguity, nature=ambiguity.nature, **question, **given)
    is_plan = isinstance(result, HorizonSolution)
    if is_plan:
        document = plan_document([model], result)
    else:
        names = (*show.NUMBERS, *show.ARRAYS, "criterion", "settings")
        document = show.fields(result, *names) | show.named(model, ambiguity)

    def print_result(written: dict[str, str]) -> None:
        if is_plan:
            print_plan(model, result, written)
        else:
            lines, figures = show.outcome(result) | written, show.limits(result.problem[0], result)
            lines |= show.answered(result)
            show.print_summary(model, ambiguity, lines, result, figures, result.notes)

    return finish(asked, result, document, style, print_result)


def read_question(asked: Any, path: str) -> tuple[Model, AmbiguitySet, dict[str, Any]]:
    """The model of a file, the set around it, and what is to be reached, as `drmdp.reach` takes
    it.
    """
    from drmdp import formats

    bare = formats.holds_intervals(path)  # no discount, and perhaps no rewards: none is used
    discount = 1.0 if asked.discount is None and bare else asked.discount
    model, ambiguity = set_of(asked).read(path, discount, rewards=not bare)
    known = formats.labels(path, model.n_states)
    question = show.fields(asked, "minimise", "within")
    for name in ("target", "avoid"):
        question[name] = _states(f"--{name}", getattr(asked, name), model, known)
    return model, ambiguity, question


def _states(
    option: str, texts: tuple[str, ...], model: Model, known: dict[str, BoolArray]
) -> BoolArray:
    """States by what was typed: names, integers, or labels of the file."""
    from drmdp.core.validation import lookup

    flags, places = np.zeros(model.n_states, dtype=bool), None
    for text in texts:
        if text in known:
            flags |= known[text]
            continue
        if places is None:
            places = {str(name): s for name, s in lookup(model.states).items()}
        if text not in places:
            kind, names = ("labels", known) if known else ("known", places)
            some = ", ".join(map(repr, islice(names, LISTED))) + (", …" * (len(names) > LISTED))
            near = meant(text, [*known, *places])
            raise InputError(f"{option}: unknown state {text!r}; {kind}: {some}{near}")
        flags[places[text]] = True
    return flags
