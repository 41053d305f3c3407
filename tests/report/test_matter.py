"""The section on how much the data matter: figures are computed again here, and nothing is shown
that does not apply.
"""

import itertools
import re

import numpy as np
import pytest

import drmdp
from drmdp.report import facts, matter, plan, rivals
from drmdp.ui.text import amount

HEAD = "How much the data matter"


def machines(kind="costs", n=4, **more):
    """Three conditions, two actions; the last kernel wears much faster than the others."""
    wear = np.append(np.linspace(0.05, 0.1, n - 1), 0.6) if n > 1 else [0.1]
    y = np.zeros((n, 3, 2, 3))
    for i, w in enumerate(wear):
        y[i, :, 0] = [[1 - w, w, 0], [0, 1 - w, w], [0, 0, 1]]
        y[i, :, 1] = [1, 0, 0]
    prices = np.array([[10.0, 300], [60, 300], [900, 700]])
    given = {"costs": prices} if kind == "costs" else {"rewards": 1000 - prices}
    names = {
        "states": ["good", "worn", "broken"],
        "actions": ["run", "fix"],
        "initial": [0.5, 0.3, 0.2],
    }
    return drmdp.Model(y, **given, **{"discount": 0.95} | names | more)


def section(model, ambiguity, baseline=None, **more):
    solution = drmdp.solve(model, ambiguity, **more)
    known = solution.problem[1]
    subject = facts.Subject.of(solution, model, known, "CHF")
    return solution, *matter.matter(
        subject, solution, rivals.rivals(solution, model, known, baseline)
    )


def values(model, policy, kernel, stages=None):
    """Cost of a policy (…, S, A) under a kernel (S, A, S), mean over the start, in the sign of
    costs.
    """
    price = np.asarray(model.costs)
    value = np.zeros(3)
    for t in reversed(range(4000 if stages is None else stages)):
        x = policy if stages is None else policy[t]
        value = (x * price).sum(axis=1) + model.discount * np.einsum(
            "sa,sat->st", x, kernel
        ) @ value
    return float(model.initial @ value)


@pytest.mark.parametrize("kind", ["costs", "rewards"])
@pytest.mark.parametrize("weights", [None, [0.4, 0.3, 0.2, 0.1]])
def test_what_single_kernels_make_of_policies_is_what_counting_finds(kind, weights):
    rng = np.random.default_rng(3)
    prices = {kind: rng.random((3, 2))}
    names = {
        "states": ["good", "worn", "broken"],
        "actions": ["run", "fix"],
        "initial": [0.5, 0.3, 0.2],
    }
    model = drmdp.Model(
        rng.dirichlet(np.full(3, 0.3), (4, 3, 2)), **prices, discount=0.9, weights=weights, **names
    )
    ambiguity = drmdp.Wasserstein(0.5)
    practice = {"good": "fix", "worn": "run", "broken": "fix"}
    solution, told, pictures = section(model, ambiguity, practice)
    w, sign = model.weights, -1 if kind == "rewards" else 1
    nominal = drmdp.solve(model, drmdp.Wasserstein(0)).policy
    tried = {
        "this policy": solution.policy,
        "current practice": model.policy(practice),
        "the nominal policy": nominal,
    }
    assert np.abs(nominal - solution.policy).max() > 0.01
    every = [np.eye(2)[list(actions)] for actions in itertools.product((0, 1), repeat=3)]
    cost = np.array([[values(model, x, y) for y in model.kernels] for x in tried.values()])
    all_costs = np.array([[values(model, x, y) for y in model.kernels] for x in every])
    best = all_costs.min(axis=0)
    optima = all_costs[np.unique(all_costs.argmin(axis=0))]
    evpi = min((cost @ w).min(), (optima @ w).min()) - best @ w
    text = " ".join(told["kernels"])
    does, less = ("costs", "more") if kind == "costs" else ("earns", "less")
    over = "" if weights is None else ", by their weights"
    first = (np.abs(cost - cost.min(axis=0)) < 1e-6) / (np.abs(cost - cost.min(axis=0)) < 1e-6).sum(
        axis=0
    )
    for name, row, share in zip(tried, cost, first @ w, strict=True):
        regret = row - best
        worst = int(regret.argmax())
        assert f"{name} {does} {amount(sign * row @ w, 'CHF')} in all" in text
        assert f"{name} under {100 * share:.3g} % of the kernels{over}" in text
        apart = f"{amount(regret @ w, 'CHF')} {less} on average, {amount(regret[worst], 'CHF')} {less} at most ({worst})"
        assert f"{name} {does} {apart}" in text
    assert f"is on average worth at most {amount(evpi, 'CHF')} in all:" in text
    assert list(pictures) == ["kernels"]


def counted(rectangular="sa"):
    rng = np.random.default_rng(1)
    counts = rng.integers(2, 40, (3, 2, 3))
    kernel = counts / counts.sum(axis=2, keepdims=True)
    model = machines(n=1)
    names = {"states": model.states, "actions": model.actions, "initial": model.initial}
    model = drmdp.Model(kernel[None], costs=model.costs, discount=0.9, counts=counts, **names)
    rows = model.pair_counts if rectangular == "sa" else model.pair_counts.sum(axis=1)
    return model, drmdp.Divergence(3 / rows, "burg", rectangular=rectangular)


def moved(model, ambiguity, place, factor, **more):
    """The value from the start where one radius is another, by solving again."""
    radii = np.array(ambiguity.radii(model))
    radii[place] *= factor
    found = drmdp.solve(model, ambiguity.with_radius(radii), rtol=1e-11, **more)
    return float(model.initial @ found.value)


@pytest.mark.parametrize("rectangular", ["sa", "s"])
@pytest.mark.parametrize("criterion", ["discounted", "average"])
def test_prices_and_gains_are_those_of_models_that_are_solved_again(rectangular, criterion):
    """A hundredth more of a radius, and the radius of a hundred more rows."""
    model, ambiguity = counted(rectangular)
    _, told, pictures = section(model, ambiguity, criterion=criterion, rtol=1e-10)
    assert list(pictures) == ["measure"]
    assert "kernels" not in told
    width = told["prices"]["names"]
    assert width == (2 if rectangular == "sa" else 1)
    start = moved(model, ambiguity, (), 1.0, criterion=criterion)

    def place(names):
        known = (model.states, model.actions)
        return tuple(known[k].index(name) for k, name in enumerate(names))

    for row in told["prices"]["rows"]:
        change = moved(model, ambiguity, place(row[:width]), 1.01, criterion=criterion) - start
        assert float(row[-1].replace(",", "")) == pytest.approx(change, rel=2e-2, abs=1e-4)
    sizes = [abs(float(row[-1].replace(",", ""))) for row in told["prices"]["rows"]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) <= 5

    rows = model.pair_counts if width == 2 else model.pair_counts.sum(axis=1)
    gains = {}
    for at, n in np.ndenumerate(rows):
        gain = start - moved(model, ambiguity, at, n / (n + 100), criterion=criterion)
        if gain > 1e-6:
            gains[at] = gain
    parts = []
    for at in sorted(gains, key=gains.get, reverse=True)[:3]:
        state = model.states[at[0]]
        name = f"{model.actions[at[1]]} when {state}" if width == 2 else f"state {state}"
        parts.append(f"{name} (by {amount(gains[at], 'CHF')}, {rows[at]:g} rows so far)")
    assert f"most with 100 more rows of one of these: {'; '.join(parts)}. Each" in told["measure"]
    assert "shrink like 1/n " in told["measure"]
    assert "never tried" not in told["measure"]


def test_where_solving_again_takes_long_no_amount_is_told(monkeypatch):
    """An estimate to first order may be larger than what there is to gain."""
    model, ambiguity = counted()
    monkeypatch.setattr(matter, "TRIED", 2)
    told = section(model, ambiguity)[1]["measure"]
    assert "Of the 2 that an estimate puts first, each was solved again" in told
    monkeypatch.setattr(matter, "LARGE", 20)
    told, pictures = section(model, ambiguity)[1:]
    assert "rows so far). That order is an estimate: the radius is taken" in told["measure"]
    assert "CHF" not in told["measure"]
    assert not pictures


def test_gains_of_a_plan_are_those_of_plans_that_are_made_again():
    model, ambiguity = counted()
    for best in (True, False):
        found = drmdp.finite_horizon(model, ambiguity, 6)
        if not best:
            found = drmdp.evaluate([model] * 6, ambiguity, [1, 1, 0])
        subject = plan.PlanFacts.of(found, "CHF")
        text = matter.matter(subject, found, [])[0]["measure"]
        name, gain, n = re.search(r"these: (.*?) \(by ([\d.,]+)\sCHF, (\d+) rows", text).groups()
        action, state = name.split(" when ")
        at = model.states.index(state), model.actions.index(action)
        radii = np.array(ambiguity.radius)
        radii[at] *= int(n) / (int(n) + 100)
        smaller = ambiguity.with_radius(radii)
        again = drmdp.finite_horizon(model, smaller, 6)
        if not best:
            again = drmdp.evaluate([model] * 6, smaller, [1, 1, 0])
        less = float(model.initial @ (found.value[0] - again.value[0]))
        assert float(gain.replace(",", "")) == pytest.approx(less, rel=1e-3)


def test_the_price_of_a_level_is_that_of_a_lower_one():
    """Less of a level is more doubt."""
    model, ambiguity = machines(), drmdp.Reweighting(kind="cvar", level=0.5)
    told = section(model, ambiguity)[1]["prices"]
    assert (
        "If the level of one state alone fell by a hundredth of itself, the worst-case cost from"
        in told["words"]
    )
    assert told["columns"] == ["state", "level", "change by 1 % less level, CHF"]
    assert float(told["rows"][0][-1].replace(",", "")) > 0


def test_nothing_is_shown_that_does_not_apply(tmp_path, sketched):
    def page(model, ambiguity, **more):
        drmdp.solve(model, ambiguity, **more).report(tmp_path / "page.html")
        return (tmp_path / "page.html").read_text("utf-8")

    single = machines(n=1)
    assert HEAD not in page(
        single, drmdp.Intervals(np.zeros((3, 2, 3)), np.ones((3, 2, 3)))
    )  # no size
    assert HEAD not in page(single, drmdp.Wasserstein(0))
    one = page(single, drmdp.Divergence(0.1, "kl"))  # prices only
    assert HEAD in one
    assert "Where to measure next" not in one
    assert "is true, and nobody knows" not in one
    several = page(machines(), drmdp.Wasserstein(0))
    assert "is true, and nobody knows" in several
    assert "Best of these" not in several  # there is one
    assert "Where doubt matters" not in several
    solution = drmdp.solve(machines(), drmdp.Wasserstein(0.1))
    solution.save(tmp_path / "solution.npz")
    drmdp.Solution.load(tmp_path / "solution.npz").report(tmp_path / "page.html")
    assert HEAD not in (tmp_path / "page.html").read_text("utf-8")


def test_what_takes_too_long_is_left_out(monkeypatch):
    monkeypatch.setattr(matter, "WORK", 1.0)
    assert "kernels" not in section(machines(), drmdp.Wasserstein(0.5))[1]
    monkeypatch.setattr(matter, "DENSE", 2)
    assert section(machines(), drmdp.Wasserstein(0.5))[1:] == ({}, {})


@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_a_plan_has_the_section_too(tmp_path, sketched, kind):
    model, ambiguity = machines(kind), drmdp.Wasserstein(1.0)
    found = drmdp.finite_horizon(model, ambiguity, 6)
    subject = plan.PlanFacts.of(found, "CHF")
    others = rivals.plan_rivals(found)
    told, pictures = matter.matter(subject, found, others)
    cost = [values(model, found.policy, y, 6) for y in model.kernels]
    mean = (
        f"costs {amount(np.mean(cost), 'CHF')}"
        if kind == "costs"
        else f"earns {amount(-np.mean(cost), 'CHF')}"
    )
    assert f"this plan {mean} over 6 stages" in told["kernels"][0]
    assert list(pictures) == ["kernels"]
    shown = float(told["prices"]["rows"][0][-1].replace(",", ""))
    assert (shown < 0) == (kind == "rewards")
    assert abs(shown) == pytest.approx(np.abs(found.prices.sum(axis=0)).max() / 100, rel=1e-4)
    found.report(tmp_path / "plan.html")
    text = (tmp_path / "plan.html").read_text("utf-8")
    found.save(tmp_path / "plan.npz")
    drmdp.HorizonSolution.load(tmp_path / "plan.npz").report(
        tmp_path / "loaded.html", models=model, ambiguity=ambiguity
    )
    assert (tmp_path / "loaded.html").read_text("utf-8") == text
    assert re.search(
        "<h2>How much the data matter</h2>.*<h3>Where doubt matters most</h3>", text, re.DOTALL
    )


def test_a_refusal_leaves_the_rest(monkeypatch):
    def refuse(*_, **__):
        raise drmdp.InputError("no")

    monkeypatch.setattr(matter, "sensitivity", refuse)
    told, pictures = section(machines(), drmdp.Wasserstein(0.5))[1:]
    assert list(told) == ["prices"]
    assert not pictures
