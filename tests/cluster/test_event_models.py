"""Models of events past one machine: the bits of one process, and what workers are told."""

import pickle

import numba
import numpy as np
import pytest

import drmdp
import drmdp_check
import event_rules
import ranges
from drmdp import Divergence, InputError, Wasserstein
from drmdp.cluster import Local, Ray
from drmdp.cluster.source import source_of

BALLS = {
    "l2": Wasserstein(0.2),
    "l2 events": Wasserstein(0.2, moves="events"),
    "linf events s": Wasserstein(0.1, "linf", 1, moves="events", rectangular="s"),
    "l1 all": Wasserstein(0.2, "l1", support="all"),
    "kl": Divergence(0.1, "kl"),
    "radius for each": Wasserstein(ranges.radius_for_each(event_rules.LARGE)),
    "transport": Wasserstein(
        0.3, "transport", 1, ground=("grid", np.array(list(drmdp.Grid(13, 13, 13)), float))
    ),
}


def later(*names):
    """Functions that `make cluster` tries, for their loops are compiled first."""
    return [pytest.param(name, marks=pytest.mark.cluster) for name in names]


def assert_same(model, given, ambiguity, *clusters):
    whole = drmdp.solve(model, ambiguity, threads=1)
    for cluster in clusters:
        found = drmdp.solve(given, ambiguity, cluster=cluster)
        assert ranges.digest(found) == ranges.digest(whole), cluster
        assert (found.status, found.gap, found.fingerprint) == (
            whole.status,
            whole.gap,
            whole.fingerprint,
        )
        assert list(found.states) == list(whole.states)
        np.testing.assert_allclose(
            found.kernel.rows(1200), whole.kernel.rows(1200), rtol=0, atol=1e-12
        )
    return whole


@pytest.mark.parametrize("name", BALLS)
def test_ranges_that_ask_a_function_give_the_bits_of_the_whole(name):
    model = event_rules.model("free" if name in ("l1 all", "transport") else "scalar")
    assert_same(model, model, BALLS[name], Local(3, threads=1))


@pytest.mark.parametrize("rule", ["by_row", *later("arrays", "free")])
def test_so_do_other_functions(rule):
    model = event_rules.model(rule)
    assert_same(model, model, BALLS["l2"], Local(3, threads=2))


@pytest.mark.parametrize("rule", ["scalar", *later("free")])
def test_so_do_ranges_of_a_table(rule, tmp_path):
    model = event_rules.model(rule, store=True)
    drmdp.write(model, tmp_path / "m.drmdp")
    assert_same(model, tmp_path / "m.drmdp", BALLS["l2 events"], Local(3, threads=1))


def test_so_do_small_models(tmp_path):
    """Their chains are arrays, and the mean kernel is gathered."""
    model = drmdp.Model.from_events(
        60,
        2,
        4,
        lambda s, a, e: ((s + a * e) % 60, 1.0 * ((s * e) % 7)),
        [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]],
        discount=0.9,
    )
    drmdp.write(model, tmp_path / "m.drmdp")
    whole = drmdp.solve(model, BALLS["l2"], threads=1)
    found = drmdp.solve(tmp_path / "m.drmdp", BALLS["l2"], cluster=Local(3, threads=1))
    assert ranges.digest(found) == ranges.digest(whole)


@pytest.mark.cluster
@pytest.mark.parametrize("given", ["function", "table"])
def test_so_do_workers_of_ray(given, session, tmp_path):
    model = event_rules.model(store=given == "table")
    path = tmp_path / "m.drmdp"
    if given == "table":
        drmdp.write(model, path)
    for name in ("l2", "l2 events"):
        assert_same(model, path if given == "table" else model, BALLS[name], Ray(2))


def test_what_is_sent_is_the_name_laws_and_a_range():
    laws = event_rules.model().laws[0]
    model = drmdp.Model.from_events(
        drmdp.Grid(13, 13, 13), 3, 6, event_rules.scalar, laws, discount=0.9, store=False
    )
    source = source_of(model)
    sent = pickle.dumps(source.sent(*source.ranges(3)[1]))
    assert b"event_rules:scalar" in sent
    assert len(sent) < 3000
    assert b"there" not in sent  # no word of the function's code
    part = pickle.loads(sent).part(*source.ranges(3)[1], checked=False)
    assert part.rule.function is event_rules.scalar
    np.testing.assert_array_equal(part.available, True)
    held = source_of(event_rules.model())
    one, two = (
        len(pickle.dumps(held.sent(*own))) for own in (held.ranges(1)[0], held.ranges(3)[0])
    )
    assert two < one / 2  # its own rows of what was given as arrays


@numba.njit
def known(s, a, e):
    return (s + e) % 10, 1.0 * a


def test_functions_without_a_name_are_refused_with_what_to_do(monkeypatch, tmp_path):
    laws = [[0.5, 0.5]]

    def made(rule, store=False):
        return drmdp.Model.from_events(10, 2, 2, rule, laws, discount=0.9, store=store)

    ambiguity, cluster = Wasserstein(0.1), Local(3)
    assert drmdp.solve(made(known), ambiguity, cluster=cluster).status == "solved"
    for rule in (
        numba.njit(lambda s, a, e: (0, 1.0)),
        lambda s, a, e: (s + 0 * (a + e), 1.0 + 0.0 * (s + a + e)),
    ):
        with pytest.raises(
            InputError,
            match=r"lambda.* is none that they know: put it at the top of a module .* model\.tabulate\(\)",
        ):
            drmdp.solve(made(rule), ambiguity, cluster=cluster)
    with monkeypatch.context() as patch:
        patch.setattr(known.py_func, "__module__", "__main__")
        with pytest.raises(InputError, match=r"'__main__:known' is none that they know"):
            drmdp.solve(made(known), ambiguity, cluster=cluster)
        patch.setattr(known.py_func, "__module__", "gone")
        with pytest.raises(InputError, match="'gone:known' is none"):
            drmdp.solve(made(known), ambiguity, cluster=cluster)
    with pytest.raises(InputError, match=r"write it to a \.drmdp directory and solve its path"):
        drmdp.solve(made(known, store=True), ambiguity, cluster=cluster)
    with pytest.raises(InputError, match=r"checkpoint: code is not saved"):
        drmdp.solve(made(known), ambiguity, cluster=cluster, checkpoint=tmp_path / "run")
    with pytest.raises(InputError, match="checkpoint: goes with the path"):
        drmdp.solve(made(known), ambiguity, checkpoint=tmp_path / "run")


def test_a_table_is_resumed_and_its_faults_are_named(tmp_path):
    model, path = event_rules.model(store=True), tmp_path / "m.drmdp"
    drmdp.write(model, path)
    ambiguity = BALLS["l2"]
    whole = drmdp.solve(model, ambiguity, threads=1)

    def stop(record):
        raise RuntimeError("as if it had been killed")

    with pytest.raises(RuntimeError, match="as if"):
        drmdp.solve(path, ambiguity, cluster=Local(3), checkpoint=tmp_path / "run", callback=stop)
    assert ranges.digest(drmdp.resume(tmp_path / "run")) == ranges.digest(whole)
    table = np.load(path / "next.npy")
    table[2000, 0, 0] = 3000
    np.save(path / "next.npy", table)
    with pytest.raises(
        InputError, match=r"next: state 2000, action 0, event 0 leads to 3000, expected 0 … 2,196"
    ):
        drmdp.solve(path, ambiguity, cluster=Local(3))


@pytest.mark.parametrize("name", ["l2", "l2 events", "linf events s"])
def test_workers_write_the_proof_that_one_process_writes(name, tmp_path, monkeypatch):
    """And it is accepted, whether all thresholds are kept or few."""
    model = event_rules.model("by_row")
    few = model.part(0, 12)
    next_, costs = few.rule.rows(0, 12, few.available)
    small = drmdp.Model.from_events(
        12,
        3,
        6,
        lambda s, a, e: next_[s, a, e] % 12,
        model.laws,
        discount=0.9,
        law=few.classes,
        weights=model.weights,
        available=few.available,
        terminal=few.terminal,
        costs=costs[:, :, 0],
    )
    drmdp.write(small, tmp_path / "m.drmdp")
    target = tmp_path / "m.drmdp"
    drmdp.solve(target, BALLS[name], cluster=Local(3, threads=1)).proof(tmp_path / "parts")
    drmdp.solve(small, BALLS[name], threads=1).proof(tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()
    if BALLS[name].moves == "states":
        drmdp.write(small.stored(), target := tmp_path / "m.npz")
    assert not list(drmdp_check.check(tmp_path / "parts", target).failures())
