"""Every row of the table of bad inputs: what is refused, or said, and in which words."""

import numpy as np
import pytest

import drmdp
from criteria_cases import line
from drmdp.errors import InputError
from drmdp.solution import Status

BALL = drmdp.Wasserstein(0.1, "l1")
STAY = [[[[0.5, 0.5]], [[0, 1]]]]
NAMES = ["left", "right", "goal", "crash"]


def model(**given):
    return drmdp.Model(STAY, **{"costs": [1.0, 0.0], "discount": 1.0, "terminal": [1]} | given)


def lost(n=8):
    """n states that stay where they are, and an end."""
    return drmdp.Model(
        np.eye(n + 1)[None, :, None], costs=np.ones(n + 1), discount=1.0, terminal=[n]
    )


def swap():
    rows = np.zeros((4, 1, 4))
    rows[0, 0, 1] = rows[1, 0, 2] = rows[2, 0, 2] = rows[3, 0, 3] = 1
    return drmdp.Model(rows, costs=np.zeros((4, 1)), discount=1.0, states=NAMES)


ROWS = {
    "no terminal state": (
        lambda: drmdp.solve(model(terminal=None), BALL),
        "discount: 1 needs terminal states; say where the process ends (`terminal`), or solve with criterion='average'",
    ),
    "discount above 1": (
        lambda: model(discount=1.5),
        "discount: expected a number in [0, 1], got 1.5",
    ),
    "discount nan": (
        lambda: model(discount=np.nan),
        "discount: expected a number in [0, 1], got nan",
    ),
    "average of what ends": (
        lambda: drmdp.solve(model(), BALL, criterion="average"),
        "criterion: the average cost of a process that ends is 0; solve the total cost, with discount=1, or leave out its terminal states",
    ),
    "no way to an end": (
        lambda: drmdp.solve(lost(), BALL),
        "discount: 1, but no transition that was seen leads from 0, 1, 2, 3, 4, … to a terminal state; name where else it ends",
    ),
    "no way to an end, with help": (
        lambda: drmdp.solve(lost(2), drmdp.Intervals.of(lost(2), 0.0), nature="cooperative"),
        "discount: 1, but no kernel of the set leads from 0, 1 to a terminal state; name where else it ends",
    ),
    "terminal nan": (
        lambda: model(terminal={1: np.nan}),
        "terminal: state 1: expected a finite value, got nan",
    ),
    "terminal inf": (
        lambda: model(terminal={1: np.inf}),
        "terminal: state 1: expected a finite value, got inf",
    ),
    "target and avoid": (
        lambda: drmdp.reach(swap(), BALL, ["goal", "left"], ["crash", "goal"]),
        "target, avoid: 'goal' cannot be both",
    ),
    "empty target": (
        lambda: drmdp.reach(swap(), BALL, []),
        "target: no state is given: name at least one",
    ),
    "unknown target": (
        lambda: drmdp.reach(swap(), BALL, "nowhere"),
        "target: unknown state 'nowhere'; known: 'left', 'right'",
    ),
    "unknown avoid": (
        lambda: drmdp.reach(swap(), BALL, "goal", ["x"]),
        "avoid: unknown state 'x'; known: 'left'",
    ),
    "first-order": (
        lambda: drmdp.solve(model(), BALL, method="first-order"),
        "method: 'first-order' goes with a discount below 1; method='auto' solves for criterion 'total'",
    ),
    "puterman": (
        lambda: drmdp.solve(model(), BALL, method=drmdp.PolicyIteration(stop="puterman")),
        "stop: 'puterman' goes with a discount below 1; stop='certified' goes with all criteria",
    ),
    "1 for some pairs": (
        lambda: drmdp.solve(model(terminal=None, discount=[[1.0], [0.5]]), BALL),
        "discount: 1 for some pairs and less",
    ),
    "sojourn 0": (
        lambda: model(terminal=None, sojourn=[1.0, 0.0]),
        "sojourn must be positive and finite: state 1, action 0 has 0.0",
    ),
    "sojourn nan": (
        lambda: model(terminal=None, sojourn=np.nan),
        "sojourn must be positive and finite: state 0, action 0 has nan",
    ),
    "sojourn of another shape": (
        lambda: model(sojourn=[1.0, 2.0, 3.0]),
        "sojourn: expected a number, one for each state, or shape (2, 1); got (3,)",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_refused(row):
    ask, message = ROWS[row]
    with pytest.raises(InputError) as error:
        ask()
    assert message in str(error.value)


def test_an_average_says_that_a_discount_is_not_used():
    found = drmdp.solve(model(terminal=None, discount=0.95), BALL, criterion="average")
    assert "the discount 0.95 is not used: a long-run average has none" in found.notes


def test_states_without_a_way_to_the_target_have_probability_0():
    found = drmdp.reach(swap(), BALL, "goal")
    assert found.upper.tolist() == [1, 1, 1, 0]


def test_a_total_that_does_not_close_says_where_and_how_long_it_takes():
    lower, upper = np.zeros((2, 1, 2)), np.ones((2, 1, 2))
    lower[0, 0], upper[0, 0] = (0.7, 1e-8), (1 - 1e-8, 0.3)
    found = drmdp.solve(line(0.8), drmdp.Intervals(lower, upper))
    assert found.status is Status.precision_limit
    low, high = found.lower[0], found.upper[0]
    assert found.notes == (
        f"bounds are widest in 0, {low:.6g} to {high:.6g}; from there it takes some 1e+08 steps to end",
    )


def test_certify_goes_with_discount_1():
    solution = drmdp.solve(model(), BALL)
    found = drmdp.certify(model(), BALL, solution)
    assert found.lower[0] <= solution.upper[0]
    assert found.upper[0] >= solution.lower[0]
    assert found.gap <= 1e-5
