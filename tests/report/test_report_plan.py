"""The page and the map of a plan, and decisions in sentences."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from browser import Visit, chromium
from drmdp import cli
from drmdp.plot.plans import groups
from drmdp.report.decision_sentences import _joined, decide
from drmdp.report.plan import decisions
from drmdp.ui.text import amount

matplotlib = pytest.importorskip("matplotlib")


def plan_of(S=6, T=9, A=2, seed=0):
    rng = np.random.default_rng(seed)
    names = {
        "states": [f"<b>{s}</b>" for s in range(S)],
        "actions": ["run", "stop <i>", "third"][:A],
    }
    models = [
        drmdp.Model(
            rng.dirichlet(np.ones(S), (3, S, A)), costs=rng.random((S, A)), discount=0.9, **names
        )
        for _ in range(T)
    ]
    return drmdp.finite_horizon(models, drmdp.Wasserstein(0.1, rectangular="sa"))


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def test_the_page_of_a_plan_is_quiet_and_fits(browser, tmp_path):
    plan = plan_of()
    plan.report(tmp_path / "plan.html", title="Presses")
    with Visit(browser, tmp_path / "plan.html") as visit:
        text = visit.page.inner_text("main")
        assert "What to do" in text
        assert "This is proved." in text
        assert "<b>3</b>" in text
        for scheme, width in (("light", 1280), ("dark", 1280), ("dark", 360)):
            visit.page.emulate_media(color_scheme=scheme)
            visit.page.set_viewport_size({"width": width, "height": 740})
            assert visit.quiet, (visit.said, visit.asked, visit.tried)
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


def presses(kind="costs", **more):
    """Three conditions, two kernels, and a plan of six stages that draws nowhere."""
    y = np.array(
        [[[[0.7, 0.3, 0], [1, 0, 0]], [[0, 0.6, 0.4], [1, 0, 0]], [[0, 0, 1], [1, 0, 0.0]]]] * 2
    )
    y[1, :2, 0] = [[0.5, 0.5, 0], [0, 0.3, 0.7]]
    prices = np.array([[100, 4200], [400, 4200], [6000, 4200.0]])
    prices = -prices if kind == "rewards" else prices
    return drmdp.Model(
        y,
        **{kind: prices},
        discount=0.9,
        states=["new", "worn", "failed"],
        actions=["run", "fix"],
        **more,
    )


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_a_page_of_a_plan_says_what_it_is_worth_and_against_what(tmp_path, kind):
    """Every amount is what the library says; the three facts stand on the first screen."""
    model, ambiguity, final = (
        presses(kind),
        drmdp.Wasserstein(0.2),
        [-10.0, -500, -7000] if kind == "rewards" else [10.0, 500, 7000],
    )
    plan = drmdp.finite_horizon(model, ambiguity, 6, final=final, discount=1.0)
    practice = {"new": "run", "worn": "run", "failed": "fix"}
    plan.report(tmp_path / "p.html", baseline=practice, unit="€")
    text = (tmp_path / "p.html").read_text("utf-8")
    lead = text[text.index("What to do") : text.index("What was assumed")]
    nominal = drmdp.finite_horizon(model, drmdp.Wasserstein(0), 6, final=final, discount=1.0).policy
    does = "earns" if kind == "rewards" else "costs"
    for name, policy in (
        ("What it", plan.policy),
        ("Current practice", practice),
        ("The plan that is best if nothing is doubted", nominal),
    ):
        x = np.stack([model.policy(policy)] * 6) if policy is practice else policy
        mean, worst = (
            amount(
                float(
                    model.initial
                    @ drmdp.evaluate(model, own, x, final=final, discount=1.0).value[0]
                ),
                "€",
            )
            for own in (drmdp.Wasserstein(0), ambiguity)
        )
        if policy is plan.policy:
            assert (
                f"{mean} over 6 stages if every stage is drawn from the mean of the 2 kernels."
                in lead
            )
            assert f"<strong>Plan with {worst} over 6 stages.</strong>" in lead
            continue
        said = f"{name} {does} {mean} under the same mean and has the planning figure {worst}:"
        assert said in lead or (policy is nominal and f"{name} is the same plan." in lead)
    assert "no other plan has a better worst case over the set by even a millionth" in lead
    plan.report(tmp_path / "same.html", baseline=[plan.to_dict(t) for t in range(6)])
    assert "Current practice is the same plan." in (tmp_path / "same.html").read_text("utf-8")
    assert "against it this plan saves" in lead or "against it this plan earns" in lead
    assert "at every stage around 2 kernels: radius 0.2. " in text


@pytest.mark.usefixtures("sketched")
def test_the_page_of_a_plan_is_switched_between_radii_without_script(browser, tmp_path):
    model, ambiguity = presses(), drmdp.Wasserstein(0.2)
    plans = {r: drmdp.finite_horizon(model, ambiguity.with_radius(r), 6) for r in (1.0, 0.2, 0.0)}
    plans[0.2].report(tmp_path / "p.html", baseline=[0, 1, 1], unit="€", sweep=plans)
    with Visit(
        browser,
        tmp_path / "p.html",
        java_script_enabled=False,
        viewport={"width": 1000, "height": 900},
    ) as visit:
        assert visit.page.get_by_role("radio").count() == 3
        for fact in (
            ".decision",
            ".lead p:has-text('Current practice costs')",
            ".status:has-text('This is proved')",
        ):
            box = visit.page.locator(fact).first.bounding_box()
            assert box["y"] + box["height"] < 900, fact
        assert visit.page.locator("#p1 h3").inner_text() == "Radius 0.2, this report"
        panels = visit.page.locator(".panel")
        assert [panels.nth(k).is_visible() for k in range(3)] == [False, True, False]
        visit.page.locator("label[for=r2]").click()
        assert [panels.nth(k).is_visible() for k in range(3)] == [False, False, True]
        worst = amount(float(model.initial @ plans[1.0].value[0]), "€")
        mean = drmdp.evaluate(model, drmdp.Wasserstein(0), plans[1.0]).value[0]
        assert (
            f"Worst-case cost {worst}, under the mean kernel {amount(float(model.initial @ mean), '€')}."
            in panels.nth(2).inner_text()
        )
        marked = [visit.page.locator(f"label[for=r{k}] span").count() == 1 for k in range(3)]
        visit.page.emulate_media(media="print")
        assert [panels.nth(k).is_visible() for k in range(3)] == [
            True,
            True,
            marked[2],
        ]  # the first one, this one, and changes
        assert visit.quiet


@pytest.mark.usefixtures("sketched")
def test_what_does_not_go_with_a_plan_is_refused(tmp_path):
    model, ambiguity = presses(), drmdp.Wasserstein(0.2)
    plan = drmdp.finite_horizon(model, ambiguity, 6)
    plan.save(tmp_path / "plan.npz")
    loaded = drmdp.HorizonSolution.load(tmp_path / "plan.npz")
    loaded.report(tmp_path / "loaded.html", sweep={0.2: loaded})
    assert "is drawn from the mean" not in (tmp_path / "loaded.html").read_text("utf-8")
    practice = {"baseline": [0, 0, 1]}
    plan.report(tmp_path / "plan.html", **practice)
    loaded.report(tmp_path / "known.html", models=model, ambiguity=ambiguity, **practice)
    pages = ((tmp_path / name).read_text("utf-8") for name in ("known.html", "plan.html"))
    known, made = (re.sub(r"\d\d:\d\d UTC", "", page) for page in pages)  # a minute may pass
    assert known == made
    other = drmdp.finite_horizon(model, ambiguity, 5)
    for own, given, message in (
        (loaded, {"baseline": [0, 0, 1]}, "baseline: a loaded plan does not hold its models"),
        (loaded, {**practice, "models": model}, "models and ball go together: give both"),
        (
            loaded,
            {**practice, "models": presses(initial=[1, 0, 0]), "ambiguity": ambiguity},
            "models: the plan was made with others",
        ),
        (
            loaded,
            {**practice, "models": model, "ambiguity": drmdp.Wasserstein(0.3)},
            "ambiguity: the plan was made with others",
        ),
        (plan, {"baseline": [0, 0, 7]}, "policy: "),
        (plan, {"sweep": [plan]}, "sweep: expected a mapping of radii to plans, got a list"),
        (plan, {"sweep": {0.1: 3}}, r"sweep: radius 0.1: expected a drmdp\.HorizonSolution, got 3"),
        (plan, {"sweep": {0.1: other}}, "sweep: radius 0.1: the plan is of other models or stages"),
        (plan, {"sweep": {"far": plan}}, "sweep: radius: expected a number"),
    ):
        with pytest.raises(drmdp.InputError, match=message):
            own.report(tmp_path / "no.html", **given)
    assert not (tmp_path / "no.html").exists()


@pytest.mark.usefixtures("sketched")
def test_the_command_line_compares_plans(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(presses(), "m.npz")
    (tmp_path / "practice.json").write_text('{"new": "run", "worn": "fix", "failed": "fix"}')
    call = [
        "horizon",
        "m.npz",
        "--radius",
        "0.2",
        "--stages",
        "6",
        "--report",
        "p.html",
        "--unit",
        "€",
    ]
    for options, radios in (([], 5), (["--report-radii", "0"], 0), (["--report-radii", "2"], 3)):
        done = CliRunner().invoke(cli.main, [*call, "--baseline", "practice.json", *options])
        assert done.exit_code == 0, done.output
        text = (tmp_path / "p.html").read_text("utf-8")
        assert text.count('type="radio"') == radios
        assert "Current practice costs" in text
    CliRunner().invoke(cli.main, [*call[:6], "--out", "plan.npz"])
    done = CliRunner().invoke(cli.main, ["solve", *call[1:4], *call[6:], "--baseline", "plan.npz"])
    assert done.exit_code == 2
    assert "it has a policy for each of 6 stages" in done.output
    assert "Status" not in done.output  # nothing was solved
    done = CliRunner().invoke(cli.main, [*call[:6], "--unit", "€"])
    assert "--unit: there is no --report" in done.output


def test_the_map_has_a_row_for_states_that_act_alike():
    policy = np.zeros((4, 100, 2))
    policy[:, :50, 0] = policy[:, 50:, 1] = 1
    policy[2, 99] = [1, 0]
    first, rows = groups(policy)
    assert first.tolist() == [0, 50, 99]
    assert rows.tolist() == [0, 1, 2]
    plan = plan_of()
    ax = drmdp.plot.policy(plan)
    assert ax.get_xlabel() == "stage"
    assert [tick.get_text() for tick in ax.get_legend().get_texts()] == ["run", "stop <i>"]
    matplotlib.pyplot.close(ax.figure)
    with pytest.raises(drmdp.InputError, match=r"plan: expected a drmdp\.HorizonSolution, got"):
        drmdp.plot.plan(3)


def test_a_plan_of_hundreds_of_stages_and_states_is_drawn():
    rng = np.random.default_rng(0)
    model = drmdp.Model(
        rng.dirichlet(np.ones(120), (2, 120, 12)), costs=rng.random((120, 12)), discount=0.9
    )
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), 900)
    ax = drmdp.plot.plan(plan)
    ax.figure.canvas.draw()
    assert "groups of fewer left out" in ax.get_ylabel()
    matplotlib.pyplot.close(ax.figure)


def places(n=24, T=6):
    """Two parts that wear, each place a state; a plan of few stages."""

    def transition(s, a):
        x, y = (0, 0) if a == "replace" else s
        return [((min(x + 1, n - 1), y), 0.5), ((x, min(y + 1, n - 1)), 0.5)]

    model = drmdp.Model.from_functions(
        [(0, 0)],
        ["run", "replace"],
        transition,
        lambda s, a: 40 * s[0] + 300 * (a == "replace"),
        discount=0.9,
    )
    return model, drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), T)


def test_a_plan_of_very_many_places_is_a_map_for_each_of_some_stages(browser, tmp_path):
    """The three facts still stand on the first screen; states that were found in another order are
    sorted by their numbers.
    """
    model, plan = places(T=12)
    first, rows = groups(plan.policy)
    assert len(first) > len(rows)
    plan.report(tmp_path / "p.html", baseline=dict.fromkeys(model.states, "run"), unit="€")
    with Visit(browser, tmp_path / "p.html", viewport={"width": 1000, "height": 900}) as visit:
        assert visit.page.locator(".maps figcaption").all_inner_texts() == [
            "Stage 0.",
            "Stage 6.",
            "Stage 10.",
            "Stage 11.",
        ]
        for fact in (
            ".decision",
            ".lead p:has-text('Current practice costs')",
            ".status:has-text('This is proved')",
        ):
            box = visit.page.locator(fact).first.bounding_box()
            assert box["y"] + box["height"] < 900, fact
        assert "The 40 states visited most, of 576." in visit.page.inner_text("main")
        assert visit.page.locator("tbody tr").first.locator("td").first.inner_text() == "(0, 0)"
        assert visit.quiet
    ax = drmdp.plot.plan(plan)
    names = [tick.get_text().split(" – ")[0] for tick in ax.get_yticklabels()]
    assert names == sorted(names, key=lambda name: eval(name))
    matplotlib.pyplot.close(ax.figure)


def test_a_stage_of_a_plan_is_a_map():
    model, plan = places(n=5)
    for stage in (0, 5):
        ax = drmdp.plot.map(plan, stage=stage, by="values")
        value = np.asarray(ax.images[0].get_array())
        assert [value[s] for s in model.states] == plan.value[stage].tolist()
        matplotlib.pyplot.close(ax.figure)
    with pytest.raises(drmdp.InputError, match="stage: expected a whole number from 0 to 5, got 6"):
        drmdp.plot.map(plan, stage=6)
    with pytest.raises(
        drmdp.InputError, match="stage: a solution is the same at every stage, got 1"
    ):
        drmdp.plot.map(drmdp.solve(model, drmdp.Wasserstein(0.1)), stage=1)


# ---------------------------------------------------------------------- sentences


def one_hot(choices, A=2):
    return np.eye(A)[np.asarray(choices)]


def test_few_states_are_named_in_the_order_of_the_user():
    found = decide(["new", "good", "poor", "failed"], ["run", "replace"], one_hot([0, 0, 1, 1]))
    assert found.sentence in (
        "Run when new or good; otherwise replace.",
        "Replace when poor or failed; otherwise run.",
    )
    assert found.caveat == ""
    assert decide("ab", ["run"], one_hot([0, 0], 1)).sentence == "Run in every state."
    mixed = decide(["a", "b", "c"], ["x", "y"], np.array([[1, 0], [0.25, 0.75], [1.0, 0]]))
    assert mixed.sentence == "Draw y (75%) or x (25%) when b; otherwise x."
    assert decide("a", "x", np.zeros((1, 1))).sentence == "Nothing is to be decided in any state."


def test_names_that_count_up_are_told_by_the_first_and_the_last():
    states = [f"storage {k}" for k in range(12)] + [
        "full",
        "9",
        "v1.2",
        "v1.3",
        "v1.4",
        "007",
        "008",
        "009",
    ]
    chosen = np.zeros(20, int)
    tanks, numbers = [f"R{k}" for k in range(9)], list(range(9))
    for names, where in ((tanks, "R2 to R4 or R7"), (numbers, "the state is 2 to 4 or 7")):
        stops = one_hot([0, 0, 1, 1, 1, 0, 0, 1, 0])
        assert (
            decide(names, ["run", "stop"], stops).sentence == f"Stop when {where}; otherwise run."
        )
    rests = decide(
        ["week 1", "week 2", "week 3"], ["run", "stop"], one_hot([0, 1, 0]), rows={1: "2 rows"}
    )
    assert rests.sentence == "Stop when week is 2 (2 rows); otherwise run."
    for members, where in (
        ([4, 5, 6], "storage is 4 to 6"),
        ([0, 1, 4, 5, 6, 7], "storage is 0, 1 or 4 to 7"),
        ([3, 4, 5, 12, 13], "storage 3 to 5, full or 9"),
        ([14, 15, 16, 17, 18, 19], "v1.2, v1.3, v1.4, 007, 008 or 009"),
    ):
        own = chosen.copy()
        own[members] = 1
        assert (
            decide(states, ["run", "stop"], one_hot(own)).sentence
            == f"Stop when {where}; otherwise run."
        )


def test_runs_of_many_states_are_told_by_their_ends():
    found = decide([f"s{k}" for k in range(100)], ["run", "stop"], one_hot([0] * 40 + [1] * 60))
    assert found.sentence == "Run in the states from s0 to s39; stop in the states from s40 to s99."


@pytest.mark.parametrize("seed", range(4))
def test_thresholds_of_ten_thousand_states_are_found(seed):
    """A rule of two thresholds is told exactly; where noise is added, the exceptions are
    counted.
    """
    rng = np.random.default_rng(seed)
    states = [(i, j) for i in range(100) for j in range(100)]
    a, b = rng.integers(20, 80, 2)
    chosen = np.array([int(i <= a and j > b) for i, j in states])
    found = decide(states, ["order", "wait"], one_hot(chosen))
    assert found.exceptions == 0
    assert "otherwise" not in found.caveat
    assert f"x1 ≤ {a}" in found.sentence or f"x1 ≥ {a + 1}" in found.sentence
    assert f"x2 ≥ {b + 1}" in found.sentence or f"x2 ≤ {b}" in found.sentence
    flipped = rng.choice(10_000, 37, replace=False)
    chosen[flipped] ^= 1
    noisy = decide(states, ["order", "wait"], one_hot(chosen))
    assert 1 <= noisy.exceptions <= 37
    assert "it is otherwise" in noisy.caveat
    assert len(noisy.sentence) < 800


@pytest.mark.parametrize("text", ["({}, {})", "{}|{}", "{}-{}", "[{};-{}.5]"])
def test_numbers_in_texts_are_coordinates(text):
    """As a log has them; letters make them names."""
    places = [(i, j) for i in range(30) for j in range(30)]
    chosen = one_hot([int(i <= 12 and j > 4) for i, j in places])
    found = decide([text.format(*place) for place in places], ["order", "wait"], chosen)
    assert found.exceptions == 0
    assert "x1 ≤ 12" in found.sentence
    assert ("x2 ≤ -5.5" if "5]" in text else "x2 ≥ 5") in found.sentence
    assert (
        "x1"
        not in decide(
            [f"a{text.format(*place)}" for place in places], ["order", "wait"], chosen
        ).sentence
    )


def test_places_that_fill_a_box_are_told_as_one():
    """Unless a state between them does something else."""
    table, inf = np.arange(100.0)[:, None], np.inf
    leaves = [
        (0, range(36), (-inf, 35.0)),
        (1, [36], (36.0, 36.0)),
        (1, range(37, 100), (37.0, inf)),
    ]
    leaves = [(g, np.array(members), {0: box}) for g, members, box in leaves]
    told = [(g, members.size, box) for g, members, box in _joined(leaves, table)]
    assert told == [(0, 36, {0: (-inf, 35.0)}), (1, 64, {0: (36.0, inf)})]
    leaves[0], leaves[1] = (1, leaves[0][1], leaves[0][2]), (0, leaves[1][1], leaves[1][2])
    assert _joined(leaves, table) == leaves
    alike = _joined([(1, members, box) for _, members, box in leaves], table)
    assert [(g, members.size, box) for g, members, box in alike] == [(1, 100, {})]


def test_where_few_states_are_visited_the_others_are_told_too():
    """Nearly all of the time is spent in one corner: what is done elsewhere is told by how many
    states do it.
    """
    states = [(i, j) for i in range(60) for j in range(60)]
    chosen = np.array([0 if i < 20 and j < 20 else 1 if i < 20 else 2 for i, j in states])
    near = [states.index(place) for place in ((20, 0), (20, 1), (21, 0))]
    chosen[near] = 0  # of all where x1 ≥ 20 they are visited most
    weight = np.array([0.4 ** (i + j) for i, j in states])
    found = decide(states, ["run", "oil", "replace"], one_hot(chosen, 3), weight)
    assert found.parts == [
        "run where x1 ≤ 19 and x2 ≤ 19",
        "oil where x1 ≤ 19 and x2 ≥ 20",
        "replace where x1 ≥ 20",
    ]
    assert found.exceptions == 3
    assert found.caveat == (
        "In 3 states it is otherwise, where less than 0.1% of the time is spent."
        " x1, x2, … are the parts of the name of a state, in their order."
    )


def test_a_long_decision_is_a_list():
    states = [(i, j) for i in range(40) for j in range(40)]
    chosen = np.array([(i // 10 + j // 20) % 4 for i, j in states])
    found = decide(
        states, ["run as it is", "oil and look again", "replace", "sell"], one_hot(chosen, 4)
    )
    assert len(found.sentence) > 180
    assert [line.replace("\N{NO-BREAK SPACE}", " ").lower() for line in found.lines] == [
        part.lower() for part in found.parts
    ]
    assert decide("abc", ["x", "y"], one_hot([0, 1, 1])).lines == ["X when a; otherwise y."]


def test_an_action_is_told_if_it_is_drawn_often_enough():
    x = np.array([[0.97, 0.03], [0.5, 0.5], [0.5, 0.5]])
    assert (
        decide("abc", ["x", "y"], x, least=0.05).sentence
        == "X when a; otherwise draw x (50%) or y (50%)."
    )
    assert decide("abc", ["x", "y"], x).sentence == "Draw between x and y in every state."
    many = decide("a", range(400), np.full((1, 400), 1 / 400))  # none of them is likely
    assert many.sentence == "Draw between action 0, action 1, action 2 and others in every state."


def test_where_names_tell_no_pattern_choices_are_counted():
    rng = np.random.default_rng(0)
    chosen = rng.choice(5, 10_000, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    found = decide(
        [f"name {k}" for k in range(10_000)], ["run", "stop", "3", "c", "d"], one_hot(chosen, 5)
    )
    n = np.bincount(chosen)
    assert found.sentence == (
        f"Run in {n[0]:,} states; stop in {n[1]:,} states; action 3 in {n[2]:,} states; 2 other choices in {n[3] + n[4]:,} states."
    )
    assert found.exceptions == 0


def test_stages_are_told_together_while_nothing_changes():
    plan = plan_of()
    told, more = decisions(plan)
    assert len(told) <= 4
    assert all(when.startswith("Stage") for when, _, _ in told) or len(told) == 1
    assert more == "" or "more time" in more
