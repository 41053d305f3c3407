"""`drmdp evaluate`: bound the worst case of a policy."""

from __future__ import annotations

from typing import Any

from drmdp.cli.methods import METHOD_OPTIONS
from drmdp.cli.option_groups import PROBLEM, choice, option
from drmdp.cli.options import BALL, CRITERIA, LIMITS, MODELS, POLICY, command, exit_code, refuse
from drmdp.cli.plans import document, print_plan, read_stages
from drmdp.cli.policy_file import read_policy
from drmdp.cli.sets import set_of
from drmdp.cli.show import fields, named, print_json, print_summary, worst
from drmdp.cli.verbs.reach import QUESTION, read_question
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets import AmbiguitySet


@command(
    [MODELS, POLICY, *BALL, METHOD_OPTIONS["backend"], *LIMITS],
    criterion=option(
        "What is asked for: total, until a terminal state, where the discount is 1, else "
        "discounted, unless this says average, or reach, the probability of reaching --target.",
        type=choice(*CRITERIA, "reach"),
        heading=PROBLEM,
    ),
    **QUESTION | {"within": option("In at most so many steps, all with the policy.", type=int)},
)
def evaluate(asked: Any) -> int:
    """Bound the worst-case value of a policy.

    MODEL is read as by `drmdp solve`. POLICY is a saved solution (.npz, or a folder), or a .json
    file that maps every state to an action, or to probabilities of actions: {"1": "repair", "2":
    {"repair": 0.6, "no repair": 0.4}}. Or it is a table (.csv, .tsv, .xlsx, .parquet) with the
    columns state and action, and probability where it is not 1, as --out or a spreadsheet writes
    it. Where one that `drmdp reach --out` saved has ended, all available actions are alike.

    A plan that `drmdp horizon --out` saved is evaluated over its stages, with several models as
    there; a table of a plan, and what `drmdp reach --within` saved, hold policies only: discount
    and costs are then those of the models, and final values 0.

    With --criterion reach it is the probability that the policy reaches --target, as `drmdp reach`
    has it; of a plan, within its stages.
    """
    from drmdp import api
    from drmdp.core.tolerance import Tolerance
    from drmdp.criteria import posed
    from drmdp.operators.build import DEFAULT_BACKEND
    from drmdp.policies import single_kernels
    from drmdp.solution import HorizonSolution
    from drmdp.solvers.reachability.reach import answer as answer_of
    from drmdp.ui import clock

    models, sets, played, question = _read(asked)
    model, ambiguity = models[0], sets[0]
    policy, path = read_policy(asked.policy_path, played), asked.policy_path
    asked.backend = asked.backend or DEFAULT_BACKEND
    begin = clock.now()
    several = len(models) > 1
    result: Any = api.evaluate(
        models if several else model,
        sets if several else ambiguity,
        policy,
        **fields(asked, "tol", "rtol", "backend", "max_seconds", "threads", "criterion"),
        **question,
    )
    if isinstance(result, HorizonSolution):
        if asked.as_json:
            print_json(document(models, result))
        else:
            print_plan(model, result, {"Policy": path})
        return exit_code(result)
    seconds = clock.now() - begin
    mean = float(model.initial @ result.value)
    problem = played if question else posed(model, result.criterion)
    alone = single_kernels.remarks(problem, ambiguity, played.policy(policy), mean)
    notes = [*ambiguity.notes(model), *alone]
    answer = {}
    if question:
        answer["answer"] = answer_of(played, question["avoid"], ambiguity, result.value)
    if asked.as_json:
        bounds = fields(result, "status", "gap", "scale", "criterion", "value", "lower", "upper")
        settings = {"ambiguity": repr(ambiguity), **fields(asked, "tol", "rtol", "backend")}
        settings |= answer
        about = {"seconds": seconds, "policy": policy, "settings": {**settings, "policy": path}}
        print_json({**bounds, **about, **named(model, ambiguity), "notes": notes})
        return exit_code(result)
    lines = {
        "Policy": path,
        "Status": f"{result.status}: {result.status.sentence}",
        "Gap": Tolerance(asked.tol, asked.rtol).compare(result.gap, result.scale),
        "Work": f"{seconds:.3g} s, backend {asked.backend}",
        **{name.capitalize(): text for name, text in answer.items()},
    }
    goal = "reach" if question else "discounted"
    case = f"{worst(model, ambiguity.nature, goal)}, at least"
    figures = {case: result.lower, "at most": result.upper}
    print_summary(model, ambiguity, lines, result, figures, notes, policy)
    return exit_code(result)


def _read(asked: Any) -> tuple[list[Model], list[AmbiguitySet], Model, dict[str, Any]]:
    """Models, sets, the model whose policy is read, and what is to be reached, if that is asked."""
    from drmdp.solvers.reachability.reach import asked as posed

    if asked.criterion == "reach":
        if len(asked.model_paths) > 1:
            raise InputError("--criterion reach takes one MODEL")
        model, ambiguity, question = read_question(asked, asked.model_paths[0])
        wanted = (question[name] for name in ("target", "avoid", "minimise"))
        played = posed(model, ambiguity, *wanted)  # states that end it need no action
        return [model], [ambiguity], played, question
    refuse(asked, QUESTION, "goes with --criterion reach")
    models, sets = read_stages(set_of(asked), asked)
    return models, sets, models[0], {}
