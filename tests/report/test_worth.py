"""What the first screen says of figures: each is computed again here, by other means, and sentences
are true of the set that was considered.
"""

import re

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import cli
from drmdp.policies.single_kernels import noun_of, plan_singles, singles
from drmdp.report import facts, lead, plan, worth
from drmdp.ui.text import amount, every

RADIUS = 0.05


def machines(kind="costs", n=4, discount=0.95, **more):
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
    return drmdp.Model(y, **given, discount=discount, **names | more)


def by_hand(model, policy, kernel):
    """Value of a policy under a kernel (S, A, S), mean over the start: many steps, added up."""
    sign = -1 if model.maximise else 1
    chain, price = (
        np.einsum("sa,sat->st", policy, kernel),
        (policy * model.costs * sign).sum(axis=1),
    )
    value = np.zeros(model.n_states)
    for _ in range(4000):
        value = price + model.discount * chain @ value
    return float(model.initial @ value)


def told(model, ambiguity, **more):
    """The paragraphs about a solution, by what they are about, and the solution."""
    solution = drmdp.solve(model, ambiguity, **more)
    known = solution.problem[1]
    found = worth.paragraphs(facts.Subject.of(solution, model, known, "CHF"))
    return {part.head: part for part in found}, solution


def euro(value):
    return amount(value, "CHF")


@pytest.mark.parametrize("kind", ["costs", "rewards"])
@pytest.mark.parametrize("radius", [0.05, 1.2])
def test_every_figure_is_what_other_means_find(kind, radius):
    """Mean kernel, planning figure, rates, and single kernels; one kernel is beyond the smaller
    radius and none beyond the larger.
    """
    model, ambiguity = machines(kind), drmdp.Wasserstein(radius)
    parts, solution = told(model, ambiguity)
    x, y = solution.policy, model.kernels
    mean, worst = by_hand(model, x, y.mean(axis=0)), float(model.initial @ solution.value)
    each = np.array([by_hand(model, x, kernel) for kernel in y])
    does = "What it costs." if kind == "costs" else "What it earns."
    assert parts[does].text == (
        f"{euro(0.05 * mean)} a step ({euro(mean)} in all, discounted by 0.95 a step) if every step is drawn from the mean of the 4 kernels."
    )
    first = parts[f"Plan with {euro(0.05 * worst)} a step"].text
    assert first.startswith(
        f"({euro(worst)} in all). No kernels within {radius:g} of those 4, in the root mean square, have a mean that makes it "
    )
    assert ("makes it dearer, even if" in first) == (kind == "costs")
    assert "computed with a proof" in first
    assert "at most" not in str(parts)
    assert by_hand(model, x, solution.kernel) == pytest.approx(
        worst, rel=1e-5
    )  # some kernel of the set comes as near as that
    beyond = int((each > worst).sum() if kind == "costs" else (each < worst).sum())
    ends = f"{euro(each.min())} ({each.argmin()}) to {euro(each.max())} ({each.argmax()}), {euro(each.mean())} in the mean of them"
    if radius < 1:
        assert beyond == 1
        alone = parts[f"It is no {'ceiling' if kind == 'costs' else 'floor'} for a single kernel."]
        assert alone.mark == "warn"
        assert (
            f"{ends}: 1 of 4 kernels lies {'above' if kind == 'costs' else 'below'} the planning figure."
            in alone.text
        )
        far = np.mean(
            [np.sqrt(((y - y.mean(axis=0))[:, s] ** 2).sum(axis=(1, 2)).mean()) for s in range(3)]
        )
        assert (
            f"The kernels lie {far:.3g} from their mean by the measure of the set, {far / radius:.2g} times the radius."
            in alone.text
        )
        assert "--set reweight-any" in alone.text
    else:
        assert beyond == 0
        assert parts["That also covers each of the 4 kernels alone."].text.endswith(f"{ends}.")


def test_a_set_of_all_mixtures_covers_every_kernel():
    """What the page proposes does what it says."""
    parts, _ = told(machines(), drmdp.Reweighting(kind="any"))
    assert "That also covers each of the 4 kernels alone." in parts
    assert any(
        "No mixture of those 4 kernels makes it dearer" in part.text for part in parts.values()
    )


@pytest.mark.parametrize(
    "ambiguity",
    [
        drmdp.Wasserstein(0),
        drmdp.Divergence(0.0),
        drmdp.Reweighting(0.0),
        drmdp.Reweighting(kind="cvar", level=1),
    ],
)
def test_at_radius_0_nothing_is_called_a_bound(ambiguity):
    model = machines()
    parts, solution = told(model, ambiguity)
    size = "level 1" if ambiguity.short.endswith("cvar") else "radius 0"
    part = parts["No doubt about the data was considered"]
    assert part == (
        "No doubt about the data was considered",
        f"({size}): this is what it costs under the mean of the 4 kernels, not a bound.",
        "warn",
    )
    assert (
        "1 of 4 kernels lies above the figure above."
        in parts["A single kernel may be far from it."].text
    )
    assert not re.search(
        "at most|[Pp]lan|worst|proof",
        " ".join(f"{head} {text}" for head, text, _ in parts.values()),
    )
    last = solution.notes[-1]
    assert last.startswith("no doubt about the data was considered: the value, ")
    assert "1 of 4 kernels alone cost more, kernel 3 alone " in last


def test_one_kernel_has_no_single_ones():
    for radius in (0, 0.1):
        parts, solution = told(machines(n=1), drmdp.Wasserstein(radius))
        assert len(parts) == 2
        assert "if the probabilities of the model are right." in parts["What it costs."].text
        assert solution.notes == ()
    assert any(
        "No probabilities within 0.1 of these make it dearer" in part.text
        for part in parts.values()
    )


def test_one_state_and_one_step():
    model = drmdp.Model(np.ones((2, 1, 1, 1)), costs=[[2.0]], discount=0.0)
    parts, solution = told(model, drmdp.Wasserstein(0.1, support="all"))
    assert (
        parts["What it costs."].text
        == f"{euro(2)} in one step if every step is drawn from the mean of the 2 kernels."
    )
    assert f"Plan with {euro(2)} in one step." in parts
    assert "That also covers each of the 2 kernels alone." in parts
    assert not any("cost more" in note for note in solution.notes)


def test_what_rounding_makes_of_nothing_is_nothing():
    """The first state costs nothing for ever; its certified value is a margin for rounding above
    that.
    """
    y = np.zeros((2, 2, 1, 2))
    y[:, 0, 0, 0] = 1
    y[:, 1, 0] = [[0.5, 0.5], [0.4, 0.6]]
    model = drmdp.Model(y, costs=[[0.0], [5000.0]], discount=0.99, initial=[1, 0])
    parts, solution = told(model, drmdp.Wasserstein(0.1))
    assert solution.value[0] > 0
    assert f"Plan with {euro(0)} a step" in parts
    assert parts["That also covers each of the 2 kernels alone."].text.endswith(
        f"it would cost {euro(0)} under each of them."
    )


def test_where_the_process_may_end_there_is_no_rate():
    model = machines(terminal=["broken"])
    parts, solution = told(model, drmdp.Wasserstein(0.05))
    mean = float(model.initial @ drmdp.policies.under(model, solution, [None])[0])
    assert parts["What it costs."].text.startswith(
        f"{euro(mean)} in all, discounted by 0.95 a step, if every step"
    )


def test_a_nature_that_helps_is_hoped_for():
    model = machines()
    parts, solution = told(model, drmdp.Wasserstein(0.05), nature="cooperative")
    best = float(model.initial @ solution.value)
    part = parts[f"At best {euro(0.05 * best)} a step"]
    assert part.text.startswith(f"({euro(best)} in all). No kernels")
    assert "makes it cheaper" in part.text
    assert part.text.endswith("That is what may be hoped for, not planned with.")
    assert "A single kernel." in parts
    assert solution.notes == ()


def test_draws_are_never_called_observed():
    names = [f"draw {i}" for i in range(4)]
    model = machines(kernel_names=names)
    parts, solution = told(model, drmdp.Wasserstein(0.05))
    assert "if every step is drawn from the mean of the 4 draws." in parts["What it costs."].text
    assert (
        "1 of 4 draws lies above the planning figure."
        in parts["It is no ceiling for a single draw."].text
    )
    assert "1 of 4 draws alone cost more than the worst case over the set" in solution.notes[-1]
    assert (
        f"draw 3 alone {amount(by_hand(model, solution.policy, model.kernels[3]))}"
        in solution.notes[-1]
    )
    assert noun_of(["bootstrap 0", "bootstrap 1"]) == "draw"
    assert noun_of(["M01", "draw 1"]) == noun_of(range(3)) == "kernel"


def test_weights_and_what_they_leave_out():
    """A kernel without weight is none of the data; others are a weighted mean."""
    model = machines(weights=[0.5, 0.25, 0.25, 0.0])
    parts, _ = told(model, drmdp.Wasserstein(0.05))
    assert (
        "if every step is drawn from the weighted mean of the 3 kernels."
        in parts["What it costs."].text
    )
    found = singles(model, np.eye(2)[[0, 0, 1]], 0.0)
    assert found.values.size == 3


def test_many_kernels_are_not_judged_one_by_one(monkeypatch):
    monkeypatch.setattr("drmdp.policies.single_kernels.WORK", 10.0)
    parts, solution = told(machines(), drmdp.Wasserstein(0.05))
    assert parts["Single kernels."].text.startswith("The 4 were not judged one by one;")
    assert solution.notes == ()


def test_laws_of_events_are_judged_alone_too():
    """A stock of at most two; the last law asks for much more than the others."""
    laws = np.array([[[0.7, 0.2, 0.1]], [[0.6, 0.3, 0.1]], [[0.0, 0.1, 0.9]]]).transpose(1, 0, 2)

    def step(s, a, e):
        return np.clip(s + a - e, 0, 2), 1.0 * a + 8.0 * np.maximum(e - s - a, 0)

    model = drmdp.Model.from_events(3, 2, 3, step, laws[0], discount=0.9)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.05, moves="events"))
    alone = singles(model, solution.policy, float(model.initial @ solution.value))
    for i, law in enumerate(laws[0]):
        value = np.zeros(3)
        for _ in range(2000):
            now = [
                [
                    sum(
                        p * (step(s, a, e)[1] + 0.9 * value[step(s, a, e)[0]])
                        for e, p in enumerate(law)
                    )
                    for a in (0, 1)
                ]
                for s in range(3)
            ]
            value = (solution.policy * np.array(now)).sum(axis=1)
        assert alone.values[i] == pytest.approx(model.initial @ value, rel=1e-9)
    found = worth.paragraphs(facts.Subject.of(solution, model, solution.problem[1], ""))
    assert "drawn from the mean of the 3 laws." in found[0].text


# ---------------------------------------------------------------------- what radii mean


def test_what_a_radius_allows_is_true_of_nature():
    """What nature did under each set is within what its words say: how much mass moved, or how far
    one probability.
    """
    model = machines(n=4)
    mean = model.kernels.mean(axis=0)
    for ambiguity, most, apart in (
        (
            drmdp.Wasserstein(0.1, "l1", 1),
            "up to 5 in 100 transitions of a state and action go elsewhere",
            lambda d: np.abs(d).sum(axis=2).max() / 2 / 0.05,
        ),
        (
            drmdp.Wasserstein(0.1, "l1", np.inf),
            "up to 5 in 100 transitions",
            lambda d: np.abs(d).sum(axis=2).max() / 2 / 0.05,
        ),
        (
            drmdp.Divergence(0.1, "tv"),
            "up to 10 in 100 transitions",
            lambda d: np.abs(d).sum(axis=2).max() / 2 / 0.1,
        ),
        (
            drmdp.Wasserstein(0.1),
            "no probability moves by more than that",
            lambda d: np.abs(d).max() / 0.1,
        ),
        (
            drmdp.Wasserstein(0.1, "linf"),
            "no probability moves by more than that",
            lambda d: np.abs(d).max() / 0.1,
        ),
    ):
        assert ambiguity.meaning.startswith(most)
        assert ambiguity.meaning.endswith("probability moves only to next states that were seen")
        moved = apart(np.asarray(drmdp.solve(model, ambiguity).kernel) - mean)
        assert 0.2 < moved < 1 + 1e-9, ambiguity
    assert drmdp.Divergence(0.1).meaning == "probability moves only to next states that were seen"
    assert (
        drmdp.Wasserstein(3.0, "l1").size_meaning
        == drmdp.Wasserstein([0.1, 0.2, 0.3]).size_meaning
        == ""
    )
    assert drmdp.Reweighting(0.1, "tv").meaning == "up to 10 % of the weight goes to other kernels"
    assert drmdp.Intervals.of(model, 0.0).meaning == ""


@pytest.mark.parametrize(
    ("ambiguity", "n", "words"),
    [
        (drmdp.Wasserstein(0.02, "l1"), 20, "probabilities within 0.02 of that mean make"),
        (drmdp.Wasserstein(0.02), 1, "probabilities within 0.02 of these make"),
        (drmdp.Wasserstein(0.0738849), 1, "probabilities within 0.0738 of these make"),
        (drmdp.Wasserstein(0.29), 1, "probabilities within 0.29 of these make"),
        (
            drmdp.Wasserstein(0.02, "linf"),
            20,
            "kernels within 0.02 of those 20, each, have a mean that makes",
        ),
        (
            drmdp.Divergence(0.02, around="kernels"),
            3,
            "kernels within 0.02 of those 3, on average, have a mean that makes",
        ),
        (
            drmdp.Divergence([0.1, 0.2]),
            3,
            "probabilities within 0.1 to 0.2, state by state, of that mean make",
        ),
        (
            drmdp.Reweighting(0.5),
            3,
            "mixture of those 3 kernels whose weights are within 0.5 of theirs (kl) makes",
        ),
        (
            drmdp.Reweighting(kind="cvar", level=0.4),
            3,
            "mixture of those 3 kernels that gives none of them more than its weight divided by 0.4 makes",
        ),
        (drmdp.Intervals.of(machines(), 0.0), 4, "probabilities between the bounds make"),
    ],
)
def test_what_is_covered_is_told_set_by_set(ambiguity, n, words):
    assert ambiguity.covered(n) == words


def test_how_often_there_is_a_step():
    for note, words in (
        ("time step: 1 month, guessed", "a month"),
        ("time step: 1 hour", "an hour"),
        ("time step: 2 weeks", "every 2 weeks"),
        ("time step: 1, guessed", "a step"),
        ("no step: 1 month", "a step"),
    ):
        assert every([note]) == words
    parts, _ = told(machines(notes=["time step: 1 month, guessed"]), drmdp.Wasserstein(0.05))
    assert "a month) if every month is drawn from the mean" in parts["What it costs."].text


def test_a_page_at_radius_0_shows_no_nature_and_no_worst_case(tmp_path):
    model, ambiguity = machines(), drmdp.Wasserstein(0.0)
    sweep = drmdp.radius.path(model, ambiguity, [0.0, RADIUS])
    drmdp.solve(model, ambiguity).report(tmp_path / "page.html", sweep=sweep)
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "What nature does" not in text
    assert f"<p>Cost under the mean kernel {amount(float(sweep.worst[0]))}. " in text
    assert f"<p>Worst-case cost {amount(float(sweep.worst[1]))}, under the mean kernel" in text
    drmdp.solve(model, drmdp.Wasserstein(RADIUS)).report(tmp_path / "page.html")
    assert "What nature does" in (tmp_path / "page.html").read_text("utf-8")


# ---------------------------------------------------------------------- where else it is said


def test_a_solution_says_that_a_kernel_is_beyond_it(tmp_path, monkeypatch):
    """In what it prints, in a file, on the command line, in JSON; not where none is."""
    monkeypatch.chdir(tmp_path)
    model = machines(kernel_names=["M01", "M02", "M03", "M04"])
    solution = drmdp.solve(model, drmdp.Wasserstein(RADIUS))
    worst, figure = (
        by_hand(model, solution.policy, model.kernels[3]),
        float(model.initial @ solution.value),
    )
    note = f"1 of 4 kernels alone cost more than the worst case over the set, {amount(figure)}, for nature plays means of them: "
    note += f"kernel M04 alone {amount(worst)}"
    assert solution.notes == (note,)
    assert note in repr(solution)
    solution.save("s.npz")
    assert drmdp.Solution.load("s.npz").notes == (note,)
    drmdp.write(model, "m.npz")
    for call in (["solve", "m.npz"], ["evaluate", "m.npz", "s.npz"]):
        done = CliRunner().invoke(cli.main, [*call, "--radius", str(RADIUS)])
        assert note in " ".join(done.output.split())
        assert (
            note in CliRunner().invoke(cli.main, [*call, "--radius", str(RADIUS), "--json"]).output
        )
    assert drmdp.solve(model, drmdp.Wasserstein(1.2)).notes == ()


# ---------------------------------------------------------------------- plans


@pytest.mark.parametrize("kind", ["costs", "rewards"])
@pytest.mark.parametrize(("discount", "final"), [(1.0, 0.0), (0.9, 0.0), (1.0, 50.0)])
def test_figures_of_a_plan_are_what_other_means_find(kind, discount, final):
    model, T = machines(kind), 7
    found = drmdp.finite_horizon(
        model, drmdp.Wasserstein(RADIUS), T, discount=discount, final=np.full(3, final)
    )
    prices = model.costs * (-1 if model.maximise else 1)

    def value(kernel):
        v = np.full(3, final)
        for x in found.policy[::-1]:
            v = (x * (prices + discount * kernel @ v)).sum(axis=1)
        return float(model.initial @ v)

    each, mean, worst = (
        np.array([value(y) for y in model.kernels]),
        value(model.kernels.mean(axis=0)),
        float(model.initial @ found.value[0]),
    )
    np.testing.assert_allclose(plan_singles(found).values, each, rtol=1e-12)
    parts = {part.head: part.text for part in worth.paragraphs(plan.PlanFacts.of(found, "CHF"))}
    stages = sum(discount**t for t in range(T))
    first = (
        f"{euro(mean / stages)} a stage ({euro(mean)} over 7 stages"
        if not final
        else f"{euro(mean)} over 7 stages"
    )
    assert parts[f"What it {'costs' if kind == 'costs' else 'earns'}."].startswith(first)
    head = (
        f"Plan with {euro(worst / stages)} a stage"
        if not final
        else f"Plan with {euro(worst)} over 7 stages."
    )
    assert head in parts
    beyond = (each > worst).sum() if kind == "costs" else (each < worst).sum()
    alone = next(text for head, text in parts.items() if "single kernel" in head)
    assert f"{euro(each.min())} ({each.argmin()}) to {euro(each.max())} ({each.argmax()})" in alone
    assert f"{beyond} of 4 kernels" in alone


@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_a_plan_says_that_a_kernel_is_beyond_it(tmp_path, kind):
    """In what it prints and in its file; at radius 0 nothing is called a worst case."""
    model = machines(kind, kernel_names=["M01", "M02", "M03", "M04"])
    for radius, words in (
        (RADIUS, "than the worst case over the set"),
        (0.0, "no doubt about the data was considered"),
    ):
        found = drmdp.finite_horizon(model, drmdp.Wasserstein(radius), 7)
        value = np.zeros(3)
        for x in found.policy[::-1]:
            prices = model.costs if kind == "costs" else model.rewards
            value = (x * (prices + model.discount * model.kernels[3] @ value)).sum(axis=1)
        (note,) = found.notes
        assert words in note
        assert note.endswith(f"M04 alone {amount(float(model.initial @ value))}")
        assert note in repr(found)
        found.save(tmp_path / "plan.npz")
        again = drmdp.HorizonSolution.load(tmp_path / "plan.npz")
        for shown in (repr(found), found._repr_html_(), repr(again)):
            assert (
                f"worst-case {kind[:-1]}" in shown,
                f"{kind[:-1]} under the mean kernel" in shown,
            ) == (
                radius > 0,
                radius == 0,
            )
        assert again.notes == (note,)
    assert drmdp.finite_horizon(model, drmdp.Wasserstein(1.2), 7).notes == ()
    assert (
        drmdp.finite_horizon(model, drmdp.Wasserstein(RADIUS), 7, nature="cooperative").notes == ()
    )


def test_a_plan_starts_as_its_first_model_does():
    log = {
        "id": [1, 1, 1],
        "state": ["a", "b", "a"],
        "action": [0, 0, 0],
        "next_state": ["b", "a", "b"],
    }
    first, other = (
        drmdp.estimate(log, costs="1", discount=0.9, initial=initial, unvisited="unavailable")
        for initial in ("a", "b")
    )
    notes = drmdp.finite_horizon([first, other], drmdp.Wasserstein(0.1)).notes
    assert [note for note in notes if note.startswith("start: ")] == ["start: in state 'a'"]


def test_stages_are_told_apart_where_other_actions_are_played():
    """Sure for two stages, drawn for two, otherwise for one: no sentence averages them, and shares
    are told only while they stay.
    """
    policy = np.zeros((5, 2, 2))
    policy[:, 0, 0] = 1
    policy[:2, 1] = [0, 1]
    policy[2:4, 1] = [[0.3, 0.7], [0.4, 0.6]]
    policy[4, 1] = [1, 0]
    y = np.full((2, 2, 2, 2), 0.5)
    model = drmdp.Model(
        y, costs=[[0.0, 1], [1, 0]], discount=0.9, states=["fine", "ill"], actions=["wait", "drug"]
    )
    given = drmdp.evaluate(model, drmdp.Wasserstein(0.1), policy)
    told, _ = plan.decisions(given)
    assert [(when, lines) for when, lines, _ in told] == [
        ("Stages 0 to 1", ["Drug when ill; otherwise wait."]),
        ("Stages 2 to 3", ["Wait when fine; otherwise draw between drug and wait."]),
        ("Stage 4", ["Wait in every state."]),
    ]


def test_a_plan_that_draws_says_how_not_to():
    model = drmdp.instances.perturb(drmdp.instances.machine(10), 5, seed=0)
    drawn, sure = (
        drmdp.finite_horizon(model, drmdp.Wasserstein(0.5, support="all", rectangular=rect), 12)
        for rect in ("s", "sa")
    )
    assert (drawn.policy.max(axis=2) < 0.99).any()
    assert (sure.policy.max(axis=2) > 0.999).all()
    assert plan.NO_DRAWS in plan.decisions(drawn)[1]
    assert plan.NO_DRAWS not in plan.decisions(sure)[1]


# ---------------------------------------------------------------------- what it rests on


def counted(**more):
    """Nobody ever fixed a good one, and one fix of a worn one is all there is; fixing the broken is
    assumed.
    """
    counts = np.zeros((3, 2, 3))
    counts[0, 0] = [80, 20, 0]
    counts[1, 0] = [0, 30, 10]
    counts[1, 1] = [1, 0, 0]
    counts[2, 0] = [0, 0, 7]
    available = np.array([[True, False], [True, True], [True, True]])
    return machines(counts=counts, available=available, **more)


def test_what_a_policy_rests_on_is_told_with_what_was_never_tried():
    model = counted()
    policy = {"good": "run", "worn": "fix", "broken": "fix"}
    fixed = drmdp.solve(model, drmdp.Wasserstein(0.05))
    assert fixed.to_dict() == policy
    (part,) = [
        part
        for part in worth.paragraphs(facts.Subject.of(fixed, model, fixed.problem[1], ""))
        if part.head == "What it rests on."
    ]
    assert part.mark == "warn"
    assert part.text == (
        "148 transitions. The least of what is played rests on: fix when broken (no row at all), fix when worn (1 row). "
        "Never tried, and therefore not considered: fix when good. Never tried, and assumed: fix when broken."
    )


def test_where_enough_was_seen_the_rarest_pairs_are_told_without_a_warning():
    counts = np.full((3, 2, 3), 7.0)
    counts[1, 1] = [5, 0, 0]
    model = machines(counts=counts)
    parts, _ = told(model, drmdp.Wasserstein(0.05))
    assert parts["What it rests on."].mark == ""
    assert parts["What it rests on."].text == (
        "110 transitions. The least of what is played rests on: fix when worn (5 rows), run when good (21 rows), fix when broken (21 rows)."
    )
    assert "What it rests on." not in told(machines(), drmdp.Wasserstein(0.05))[0]


def test_the_headline_and_the_table_say_on_how_many_rows_an_action_rests(tmp_path):
    model = counted()
    solution = drmdp.solve(model, drmdp.Wasserstein(0.05))
    subject = facts.Subject.of(solution, model, solution.problem[1], "")
    assert lead.lead(subject)["decisions"][0][1] == ["Run when good; otherwise fix."]
    counts = model.counts.copy()
    counts[2, 1, 0] = 4
    other = drmdp.solve(
        machines(counts=counts, available={"worn": ["run"]}), drmdp.Wasserstein(0.05)
    )
    shown = facts.Subject.of(other, other.problem[0], other.problem[1], "")
    assert lead.lead(shown)["decisions"][0][1] == ["Fix when broken (4 rows); otherwise run."]
    table = facts.states_table(subject)
    assert table["columns"][:3] == ["state", "action", "rests on rows"]
    assert [row[2] for row in table["rows"]] == ["100", "1", "0"]
    assert (
        facts.states_table(
            facts.Subject.of(drmdp.solve(machines(), drmdp.Wasserstein(0.05)), machines(), None)
        )["columns"][2]
        != "rests on rows"
    )


def test_a_plan_rests_on_all_its_stages():
    model = counted()
    found = drmdp.finite_horizon(model, drmdp.Wasserstein(0.05), 30)
    played = {(s, a) for x in found.policy for s, a in zip(*np.nonzero(x > 0.5), strict=True)}
    assert (1, 1) in played
    parts = {part.head: part for part in worth.paragraphs(plan.PlanFacts.of(found, ""))}
    assert "fix when worn (1 row)" in parts["What it rests on."].text
    assert parts["What it rests on."].mark == "warn"


def test_at_radius_0_no_column_is_a_worst_case():
    model = machines()
    solution = drmdp.solve(model, drmdp.Wasserstein(0))
    table = facts.states_table(facts.Subject.of(solution, model, solution.problem[1], "CHF"))
    assert table["columns"] == [
        "state",
        "action",
        "cost under the mean kernel, CHF",
        "share of time under the mean kernel",
    ]
    assert (
        "worst"
        not in lead.lead(facts.Subject.of(solution, model, solution.problem[1], "CHF"))["assumed"]
    )


def test_why_a_single_kernel_exceeds_the_planning_figure_and_the_mean_is_weighted():
    model = machines(weights=[0.4, 0.3, 0.2, 0.1])
    parts, solution = told(model, drmdp.Wasserstein(RADIUS))
    text = parts["It is no ceiling for a single kernel."].text
    each = [by_hand(model, solution.policy, y) for y in model.kernels]
    assert f"{euro(model.weights @ each)} in the weighted mean of them" in text
    why = "in place of the weighted mean of the 4 kernels nature plays what the set allows, and such a kernel, as it stands, is outside it."
    assert f"1 of 4 kernels lies above the planning figure. Why: {why}" in text
