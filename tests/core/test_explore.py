"""Models of plain functions: what is visited, in which order, what functions may say, and how a
slip is told.
"""

import enum
import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import InputError, Model
from drmdp.cli import main


@dataclass(frozen=True)
class Stock:
    new: int
    old: int


def walk(transition, cost=lambda s, a: 1.0, initial=(0,), actions=("go",), **given):
    return Model.from_functions(initial, list(actions), transition, cost, discount=0.9, **given)


def queue(wrap=lambda n, late: (n, late), rates=(0.3, 0.4, 0.55), size=6):
    speed = {"slow": 0.4, "fast": 0.7}
    plain = {wrap(n, n > 3): (n, n > 3) for n in range(size + 1)}

    def transition(s, a):
        n, _ = plain[s]
        laws = []
        for rate in rates:
            law = Counter()
            for arrive, p in ((1, rate), (0, 1 - rate)):
                for leave, q in ((1, speed[a]), (0, 1 - speed[a])):
                    m = min(max(n - leave, 0) + arrive, size)
                    law[wrap(m, m > 3)] += p * q
            laws.append(law)
        return laws

    def cost(s, a):
        n, late = plain[s]
        return n + 2.0 * (a == "fast") + 20.0 * late

    return Model.from_functions([wrap(0, False)], list(speed), transition, cost, discount=0.95)


def by_hand(rates=(0.3, 0.4, 0.55), size=6):
    """The same queue as arrays."""
    y = np.zeros((len(rates), size + 1, 2, size + 1))
    for i, rate in enumerate(rates):
        for n in range(size + 1):
            for a, q in enumerate((0.4, 0.7)):
                for arrive, p in ((1, rate), (0, 1 - rate)):
                    y[i, n, a, min(max(n - 1, 0) + arrive, size)] += p * q
                    y[i, n, a, min(n + arrive, size)] += p * (1 - q)
    costs = [[n + 20 * (n > 3), n + 2 + 20 * (n > 3)] for n in range(size + 1)]
    return y, costs


def test_a_queue_of_functions_is_that_of_arrays():
    model = queue()
    y, costs = by_hand()
    assert model.states == tuple((n, n > 3) for n in range(7))
    assert model.actions == ("slow", "fast")
    np.testing.assert_allclose(model.kernels, y, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(model.costs, costs)
    np.testing.assert_array_equal(model.initial, [1, 0, 0, 0, 0, 0, 0])
    twin = Model(y, costs=costs, discount=0.95)
    for ambiguity in (drmdp.Wasserstein(0.1), drmdp.Wasserstein(0.1, "l1")):
        one, two = drmdp.solve(model, ambiguity), drmdp.solve(twin, ambiguity)
        np.testing.assert_allclose(one.value, two.value, rtol=1e-6)


LAW = {"a": [0.25, 0.5], "b": [0.75, 0.5]}
FORMS = {
    "mapping of lists": LAW,
    "mapping of tuples": {t: tuple(p) for t, p in LAW.items()},
    "mapping of arrays": {t: np.array(p) for t, p in LAW.items()},
    "pairs with lists": list(LAW.items()),
    "N mappings": [{t: p[i] for t, p in LAW.items()} for i in range(2)],
    "N counters": tuple(Counter({t: p[i] for t, p in LAW.items()}) for i in range(2)),
    "N lists of pairs": [[(t, p[i]) for t, p in LAW.items()] for i in range(2)],
    "repeated": [[("a", 0.125), ("b", 0.75), ("a", 0.125)], [("a", 0.5), ("b", 0.25), ("b", 0.25)]],
    "repeated lists": [("a", [0.125, 0.5]), ("b", [0.75, 0.5]), ("a", [0.125, 0.0])],
    "fractions": {t: [Fraction(x) for x in p] for t, p in LAW.items()},
    "a state that no kernel reaches": {"a": [0.25, 0.5], "b": [0.75, 0.5], "c": [0, 0.0]},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_law_is_the_same_model(form):
    model = walk(lambda s, a: FORMS[form], initial=["a", "b"])
    twin = walk(lambda s, a: LAW, initial=["a", "b"])
    assert model == twin
    assert model.n_kernels == 2
    np.testing.assert_array_equal(model.kernels[1, 0, 0], [0.5, 0.5])


def test_one_kernel_costs_by_next_state_and_rewards():
    def transition(s, a):
        return [(s, 0.5), (min(s + 1, 3), 0.5)]

    model = walk(transition, lambda s, a, t: 10.0 * s + t)
    dense = np.asarray(model.costs.todense()).reshape(4, 1, 4)
    assert [dense[s, 0, min(s + 1, 3)] for s in range(4)] == [1, 12, 23, 33]
    bonus = walk(transition, None, rewards=lambda s, a, t: 10.0 * s + t)
    assert bonus.maximise
    np.testing.assert_array_equal(bonus.rewards.toarray(), model.costs.toarray())
    with_default = walk(transition, lambda s, a, rate=2.0: rate * s)
    np.testing.assert_array_equal(with_default.costs[:, 0], [0, 2, 4, 6])


def test_actions_that_differ_terminal_states_and_the_order_of_things():
    asked = []

    def actions(s):
        return ["wait"] if s == 0 else ["wait", "stop"] if s == 1 else ["stop"]

    def transition(s, a):
        asked.append((s, a))
        return {s + 1: 1.0} if a == "wait" else {"end": 1.0}

    model = Model.from_functions(
        [0], actions, transition, lambda s, a: 1.0, discount=0.5, terminal=lambda s: s == "end"
    )
    assert model.states == (0, 1, 2, "end")
    assert asked == [(0, "wait"), (1, "wait"), (1, "stop"), (2, "stop")]
    np.testing.assert_array_equal(model.available, [[1, 0], [1, 1], [0, 1], [0, 0]])
    np.testing.assert_array_equal(model.terminal, [0, 0, 0, 1])
    named = Model.from_functions(
        {0: 0.25, 1: 0.75}, actions, transition, lambda s, a: 1.0, discount=0.5, terminal=["end"]
    )
    np.testing.assert_array_equal(named.initial, [0.25, 0.75, 0, 0])


# ---------------------------------------------------------------------- what is refused


def slip(answer, **given):
    """A walk 0, 1, 2, … that goes wrong at (3, "go")."""
    return walk(lambda s, a: {s + 1: 1.0} if s < 3 else answer, **given)


SLIPS = {
    "sum": ({4: 0.98}, r"transition\(3, 'go'\) sums to 0.98, not 1"),
    "negative": (
        {4: 1.5, 5: -0.5},
        r"transition\(3, 'go'\): next state 5 is -0.5, not a probability",
    ),
    "NaN": ({4: np.nan}, r"transition\(3, 'go'\): next state 4 is nan"),
    "infinite": ({4: np.inf}, r"next state 4 is inf"),
    "text": ({4: "1"}, r"transition\(3, 'go'\): next state 4 is '1', not a number"),
    "none": (None, r"transition\(3, 'go'\) is None: expected {next: p}"),
    "a state alone": (4, r"transition\(3, 'go'\) is 4: expected"),
    "a string": ("four", r"transition\(3, 'go'\) is 'four'"),
    "empty": ({}, r"transition\(3, 'go'\) is empty"),
    "empty list": ([], r"transition\(3, 'go'\) is empty"),
    "nothing left": ({4: 0.0}, r"transition\(3, 'go'\) sums to 0"),
    "other N": (
        {4: [1.0, 1.0]},
        r"transition\(3, 'go'\) gives 2 .* but transition\(0, 'go'\) gives one",
    ),
    "unhashable": ([([4], 1.0)], r"transition\(3, 'go'\), next state: names are hashable"),
    "no name": ({None: 1.0}, r"transition\(3, 'go'\), next state: names are hashable"),
    "nan state": ({float("nan"): 1.0}, "names are hashable"),
    "a triple": ([(4, 1.0, 2.0)], r"transition\(3, 'go'\) holds 4|expected"),
    "complex": ({4: 1 + 0j}, r"next state 4 is \(1\+0j\), not a number"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_what_a_transition_may_not_say(name):
    answer, message = SLIPS[name]
    with pytest.raises(InputError, match=message):
        slip(answer)


def test_kernels_are_named_in_messages():
    with pytest.raises(InputError, match=r"transition\(0, 'go'\), kernel 1, sums to 0.5"):
        walk(lambda s, a: {0: [1.0, 0.5]})
    with pytest.raises(InputError, match=r"transition\(0, 'go'\): kernel 1, next state 1 is -0.5"):
        walk(lambda s, a: {0: [1.0, 1.5], 1: [0.0, -0.5]})
    with pytest.raises(InputError, match=r"next state 1 has \[0.5\]: expected 2 numbers"):
        walk(lambda s, a: {0: [1.0, 0.5], 1: [0.5]})
    with pytest.raises(InputError, match=r"kernel 0: next state 0 has \[1.0, 2.0\]"):
        walk(lambda s, a: [{0: [1.0, 2.0]}, {0: 1.0}])


def test_what_costs_may_not_be():
    for bad, told in (
        (np.nan, "nan"),
        (np.inf, "inf"),
        (None, "None"),
        ("1", "'1'"),
        ([1.0], r"\[1.0\]"),
    ):
        with pytest.raises(InputError, match=rf"cost\(3, 'go'\) is {told}"):
            walk(lambda s, a: {min(s + 1, 4): 1.0}, lambda s, a, bad=bad: bad if s == 3 else 1.0)
    with pytest.raises(InputError, match=r"rewards\(3, 'go', 4\) is nan"):
        walk(
            lambda s, a: {min(s + 1, 4): 1.0},
            None,
            rewards=lambda s, a, t: np.nan if s == 3 else 1.0,
        )
    with pytest.raises(
        InputError, match=r"costs must be at most .* state 0, action 'go' has 1e\+300"
    ):
        walk(lambda s, a: {0: 1.0}, lambda s, a: 1e300)


def test_a_function_that_fails_tells_of_what_it_was_asked():
    with pytest.raises(ZeroDivisionError) as caught:
        walk(lambda s, a: {s + 1: 1 / (3 - s)} if s == 3 else {s + 1: 1.0})
    assert caught.value.__notes__ == ["drmdp asked for transition(3, 'go')"]


def test_other_slips():
    stay = {"discount": 0.9}

    def loop(s, a):
        return {s: 1.0}

    with pytest.raises(
        InputError, match="limit: more than 100 states can be reached: 100 was met at transition"
    ):
        walk(lambda s, a: {s + 1: 1.0}, limit=100)
    for limit in (0, 1.5, True):
        with pytest.raises(InputError, match="limit"):
            walk(loop, limit=limit)
    with pytest.raises(InputError, match="exactly one of cost and rewards, got neither"):
        Model.from_functions([0], ["go"], loop, **stay)
    with pytest.raises(InputError, match=r"cost: expected a function, got 3\.0"):
        Model.from_functions([0], ["go"], loop, 3.0, **stay)
    with pytest.raises(InputError, match=r"state 0 has no action: .* terminal="):
        Model.from_functions([0], lambda s: [], loop, lambda s, a: 1.0, **stay)
    with pytest.raises(
        InputError,
        match=r"initial: a state is given twice; one state that is a tuple is \[\(0, 0\)\]",
    ):
        Model.from_functions((0, 0), ["go"], loop, lambda s, a: 1.0, **stay)
    with pytest.raises(InputError, match="actions of state 0: 'go' is given twice"):
        walk(loop, actions=["go", "go"])
    with pytest.raises(InputError, match="actions of state 0: names are hashable"):
        walk(loop, actions=[["go"]])
    with pytest.raises(InputError, match="actions: expected a collection, got 'go'"):
        Model.from_functions([0], "go", loop, lambda s, a: 1.0, **stay)
    for bad in ("up", [], [0, 0], [True], {0: 0.5}, 3):
        with pytest.raises(InputError, match="initial"):
            walk(loop, initial=bad)
    with pytest.raises(InputError, match="ends in every state"):
        walk(loop, terminal=[0])
    with pytest.raises(InputError, match="discount"):
        Model.from_functions([0], ["go"], lambda s, a: 1 / 0, lambda s, a: 1.0, discount=1.5)


# ---------------------------------------------------------------------- names of any kind,
# everywhere

KINDS = {
    "tuples": lambda n, late: (n, late),
    "nested": lambda n, late: ("queue", (n, (late, None, 0.5))),
    "dataclasses": lambda n, late: Stock(n, int(late)),
    "strings": lambda n, late: f"{n} waiting",
    "floats": lambda n, late: n + 0.5,
    "frozen sets": lambda n, late: frozenset([n]),
    "numbers": lambda n, late: n,
    "large": lambda n, late: 10**20 + n,
    "surrogates": lambda n, late: f"\ud800{n}",
    "classes of strings": lambda n, late: enum.StrEnum(
        "Size", {f"s{k}": f"s{k}" for k in range(7)}
    )(f"s{n}"),
}
BACK = ("tuples", "nested", "strings", "floats", "numbers", "large", "surrogates")
"""Kinds that files give back as they were."""


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "classes of strings"])
@pytest.mark.parametrize("suffix", ["npz", "drmdp"])
def test_names_of_any_kind_go_through_files(kind, suffix, tmp_path):
    model = queue(KINDS[kind])
    drmdp.write(model, tmp_path / f"m.{suffix}")
    again = drmdp.read(tmp_path / f"m.{suffix}")
    assert again == model
    assert again.fingerprint == model.fingerprint
    expected = [KINDS[kind](n, n > 3) for n in range(7)]
    assert list(model.states) == expected
    assert list(again.states) == (expected if kind in BACK else [repr(name) for name in expected])
    solution = drmdp.solve(model, drmdp.Wasserstein(0.1))
    solution.save(tmp_path / "s.npz")
    loaded = drmdp.Solution.load(tmp_path / "s.npz")
    assert list(loaded.states) == list(again.states)
    for one in (model, again):
        found = drmdp.evaluate(one, drmdp.Wasserstein(0.1), loaded)
        np.testing.assert_allclose(found.value, solution.value, rtol=1e-6)
    assert repr(solution)
    assert solution._repr_html_()
    by_name = dict.fromkeys(model.states, "fast")
    np.testing.assert_array_equal(model.policy(by_name)[:, 1], 1)


def test_actions_of_any_kind_go_through_files(tmp_path):
    model = walk(lambda s, a: {s: 1.0}, actions=[("buy", 2), Stock(1, 2)])
    for suffix in ("npz", "drmdp"):
        drmdp.write(model, tmp_path / f"m.{suffix}")
        again = drmdp.read(tmp_path / f"m.{suffix}")
        assert again == model
        assert tuple(again.actions) == (("buy", 2), "Stock(new=1, old=2)")
    solution = drmdp.solve(model, drmdp.Wasserstein(0.1))
    solution.save(tmp_path / "s.npz")
    assert drmdp.Solution.load(tmp_path / "s.npz").actions == (("buy", 2), "Stock(new=1, old=2)")


def test_names_that_files_cannot_tell_apart_are_refused(tmp_path):
    class Nameless:
        pass

    for names, message in (
        ([Stock(1, 2), "Stock(new=1, old=2)"], "Stock"),
        ([Nameless(), "b"], "no `__repr__` of its own"),
    ):
        model = Model(np.full((2, 1, 2), 0.5), costs=[1.0, 2.0], discount=0.5, states=names)
        assert model.fingerprint
        for suffix in ("npz", "drmdp"):
            with pytest.raises(InputError, match=message):
                drmdp.write(model, tmp_path / f"m.{suffix}")
    with pytest.raises(InputError, match="no `__repr__`"):
        drmdp.solve(model, drmdp.Wasserstein(0.1)).save(tmp_path / "s.npz")


@pytest.mark.usefixtures("sketched")
def test_the_command_line_takes_names_of_any_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(queue(KINDS["tuples"]), "m.drmdp")

    def run(*words):
        found = CliRunner().invoke(main, list(words))
        assert found.exit_code == 0, found.output
        return found.output

    assert "(1, False)" in run("solve", "m.drmdp", "--radius", "0.1", "--out", "s.npz")
    assert json.loads(run("solve", "m.drmdp", "--radius", "0.1", "--json"))["states"][4] == [
        4,
        True,
    ]
    run("simulate", "m.drmdp", "s.npz", "--start", "(2, False)")
    policy = {str((n, n > 3)): "fast" for n in range(7)}
    (tmp_path / "p.json").write_text(json.dumps(policy))
    assert "(6, True)" in run("evaluate", "m.drmdp", "p.json", "--radius", "0.1")
    drmdp.write(queue(KINDS["dataclasses"]), "d.npz")
    run("solve", "d.npz", "--radius", "0.1", "--report", "page.html")
    assert "Stock(new=1, old=0)" in (tmp_path / "page.html").read_text()
    model = drmdp.read("m.drmdp")
    assert (
        drmdp.simulate(
            model, policy=dict.fromkeys(model.states, "fast"), n=3, steps=2, start=(2, False)
        ).states[:, 0]
        == 2
    ).all()
