"""What pages and tables say of totals, averages and probabilities: the figures of plain NumPy, in
words that are true of them.
"""

import re

import numpy as np
import pytest

import drmdp
from drmdp import instances

STATES = ["far", "near", "goal", "pit"]
KERNELS = [
    [
        [[0.5, 0.5 - p, 0, p], [0.8, 0.2, 0, 0]],
        [[0.1, 0.4, 0.5, 0], [0.3, 0, 0.6, 0.1]],
        [[0, 0, 1, 0]] * 2,
        [[0, 0, 0, 1]] * 2,
    ]
    for p in (0.05, 0.15)
]
COSTS = np.array([[1.0, 2.0], [1.0, 3.0], [0, 0], [0, 0]])


@pytest.fixture(scope="module")
def solutions():
    ambiguity = drmdp.Wasserstein(0.05)
    trip = drmdp.Model(
        KERNELS, costs=COSTS, discount=1.0, terminal={"goal": 0.0, "pit": 10.0}, states=STATES
    )
    machine = instances.perturb(instances.machine(6), 4)
    return {
        "total": drmdp.solve(trip, ambiguity),
        "average": drmdp.solve(machine, ambiguity, criterion="average"),
        "per time": drmdp.solve(paced(machine), ambiguity, criterion="average"),
        "reach": drmdp.reach(trip, ambiguity, ["goal"], ["pit"]),
    }


def paced(model):
    """The same, with steps that last from 1 to 3."""
    lasts = np.linspace(1, 3, model.available.size).reshape(model.available.shape)
    return drmdp.Model(
        model.kernels,
        costs=model.costs,
        discount=0.9,
        sojourn=lasts,
        states=model.states,
        actions=model.actions,
        available=model.available,
    )


def plain(solution):
    """What the policy is worth under the mean kernel, by NumPy."""
    model, x = solution.problem[0], solution.policy
    chain = np.einsum("sa,sat->st", x, model.mean_kernel)
    if solution.criterion == "average":
        share = np.linalg.matrix_power(0.5 * chain + 0.5 * np.eye(len(x)), 1 << 14)
        lasts = 1.0 if model.sojourn is None else model.sojourn
        return share @ (x * model.costs).sum(axis=1) / (share @ (x * lasts).sum(axis=1))
    ends = (
        np.array([0, 0, 0.0, 10.0]) if solution.criterion == "total" else np.array([0, 0, 1.0, 0])
    )
    costs = (x * COSTS).sum(axis=1) if solution.criterion == "total" else np.zeros(4)
    live = np.array([True, True, False, False])
    right = np.where(live, costs, ends)
    return np.linalg.solve(np.eye(4) - chain * live[:, None], right)


@pytest.mark.parametrize("criterion", ["total", "average", "per time", "reach"])
def test_tables_hold_the_nominal_value_of_the_criterion(solutions, criterion):
    solution = solutions[criterion]
    table = solution.to_frame()
    told = dict(zip(table["state"], table["nominal_value"], strict=True))
    expected = dict(zip(map(str, solution.states), plain(solution), strict=True))
    for state, value in told.items():
        assert value == pytest.approx(expected[state], rel=1e-6)


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        (
            "total",
            [
                "What it costs. {mean} until the end if every",
                "Plan with {worst} until the end. No kernels",
            ],
        ),
        (
            "average",
            [
                "What it costs. {mean} a step in the long run if every",
                "Plan with {worst} a step in the long run.",
            ],
        ),
        (
            "per time",
            [
                "{mean} per unit of time in the long run if every",
                "Plan with {worst} per unit of time in the long run.",
            ],
        ),
        (
            "reach",
            [
                "How likely it is. {mean} if every",
                "Plan with {worst}. No kernels",
                "makes it less likely",
                "has at least the lower",
            ],
        ),
    ],
)
def test_pages_say_what_figures_are(solutions, criterion, words, tmp_path):
    from drmdp.ui.text import amount

    solution = solutions[criterion]
    solution.report(tmp_path / "page.html")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", (tmp_path / "page.html").read_text("utf-8")))
    start = solution.problem[0].initial
    figures = {
        "mean": amount(float(start @ plain(solution))),
        "worst": amount(float(start @ solution.value)),
    }
    for sentence in words:
        assert sentence.format(**figures) in text


@pytest.mark.parametrize("criterion", ["average", "per time"])
def test_what_an_action_costs_beyond_the_average(solutions, criterion):
    solution = solutions[criterion]
    q, bias = solution.q_values, solution.bias
    best = np.nanmin(q, axis=1)
    assert np.abs(best - bias).max() < 1e-4 * np.abs(bias).max()


def test_a_page_about_a_probability_compares_no_policies(solutions, tmp_path):
    with pytest.raises(drmdp.InputError, match="baseline: a page about reaching"):
        solutions["reach"].report(tmp_path / "page.html", baseline={"far": 0, "near": 0})
