"""Options that choose a method, and settings of the paper's Algorithm 1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from drmdp.cli import option_groups as groups
from drmdp.cli.option_groups import Registered, choice, number, option, options
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.solvers.problem import Method

RULES = ("certified", "duality-gap", "puterman", "paper")
STEPS = ("mirror-prox", "mirror-descent", "entropy", "entropy-nature")
CHANGES = ("centred", "last", "restart", *STEPS)
VARIANTS = ("paper", "fast", *CHANGES)
"""Those of `drmdp.solvers.first_order`."""
METHOD_OPTIONS = options(
    groups.METHOD,
    method=option(
        "{names}; auto is policy iteration.",
        type=Registered("drmdp.solvers.registry:METHODS", first="auto"),
        metavar="METHOD",
        default="auto",
    ),
    stop=option(
        "Stopping rule: the certified gap in every state, the default; the same weighted by the "
        "start distribution, the paper's (DG); or a rule on residuals.",
        type=choice(*RULES),
    ),
    backend=option(
        "How the robust Bellman operator is computed; chosen for you by default.",
        type=Registered("drmdp.operators.operator:ENGINES"),
    ),
    start="Saved solution to begin from.",
) | options(
    groups.FIRST_ORDER,
    variant=option(
        "Of Algorithm 1: paper, the default; fast, the one to use; or the paper's with one thing "
        f"changed: {', '.join(CHANGES)}. entropy-nature goes with --metric linf --order inf only.",
        type=choice(*VARIANTS),
        metavar="VARIANT",
    ),
    epochs=number(
        "Power q of Algorithm 1, not the number of epochs: epoch l has l^q steps; 2 in the paper."
    ),
    weights=number("Power p of Algorithm 1: step t weighs t^p; 1 in the paper."),
)


SETTINGS = {"epochs": "epoch_power", "weights": "weight_power", "stop": "stop"}
"""Settings of the first-order method, by their options."""


def method_of(method: str, variant: str | None = None, **options: Any) -> Method:
    """Make the method of the options, some of which are those of `SETTINGS`."""
    from drmdp.solvers.first_order import VARIANTS, FirstOrder
    from drmdp.solvers.registry import resolve

    given = {SETTINGS[name]: value for name, value in options.items() if value is not None}
    names = {setting: f"--{option}" for option, setting in SETTINGS.items()}
    if method != "first-order":
        for setting in (["--variant"] if variant is not None else []) + [*given]:
            if setting != "stop":
                option = names.get(setting, setting)
                raise InputError(f"{option}: goes with --method first-order")
        return cast("Method", replace(cast("Any", resolve(method)[1]), **given))
    try:
        return FirstOrder(**{**VARIANTS[variant or "paper"], **given})
    except InputError as error:
        where, _, what = str(error).partition(": ")
        raise InputError(f"{names.get(where, where)}: {what}") from None
