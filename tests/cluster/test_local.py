"""A model that is solved range after range has the answer of one that is solved whole, bit for
bit.
"""

import re

import numpy as np
import pytest

import drmdp
import ranges
from drmdp import formats
from drmdp.cluster import Local, Mpi, plan
from drmdp.cluster.source import DirectorySource, source_of
from drmdp.core.compact import DENSE
from drmdp.layout import partial_sort

PARTS = (1, 3, 8)
BALLS = (("l2", 2), ("linf", 1))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Writes a model, once."""
    folder, known = tmp_path_factory.mktemp("models"), {}

    def store(*features, **settings):
        key = features, tuple(settings.items())
        if key not in known:
            model = ranges.model(*features, **settings)
            known[key] = model, folder / f"{len(known)}.drmdp"
            formats.write(*known[key])
        return known[key]

    return store


def assert_same(model, path, ambiguity, parts=PARTS, **settings):
    whole = drmdp.solve(model, ambiguity, threads=1, **settings)
    for n in parts:
        found = drmdp.solve(path, ambiguity, cluster=Local(n, threads=1), **settings)
        assert ranges.digest(found) == ranges.digest(whole), n
        assert found.history[-1].gap == whole.history[-1].gap
        assert found.fingerprint == whole.fingerprint
        assert (found.status, found.gap, found.duality_gap) == (
            whole.status,
            whole.gap,
            whole.duality_gap,
        )
        assert list(found.states) == list(whole.states)
        assert found.actions == whole.actions
    return whole


@pytest.mark.parametrize("support", ["observed", "all", "state"])
@pytest.mark.parametrize("feature", ranges.FEATURES)
def test_parts_give_the_bits_of_the_whole(stored, feature, support):
    features = ranges.FEATURES[feature]
    if support != "observed" and "seen" in features:
        pytest.skip("such costs leave nature nowhere else to go")
    model, path = stored(*features)
    pair = BALLS[len(feature) % 2]
    assert_same(model, path, drmdp.Wasserstein(0.1, *pair, support=support))


@pytest.mark.parametrize("support", ["observed", "all", "state"])
def test_so_do_parts_of_a_model_whose_chains_are_sparse(stored, support):
    model, path = stored("terminal", "unavailable", "rewards", S=ranges.LARGE, A=2, N=2)
    assert model.n_states > DENSE
    ambiguity = drmdp.Wasserstein(ranges.radius_for_each(ranges.LARGE), support=support)
    assert_same(model, path, ambiguity, parts=(1, 3))


@pytest.mark.parametrize("method", ["policy-iteration", "value-iteration"])
@pytest.mark.parametrize("radius", [1e-3, 0.1])
def test_so_do_parts_that_put_the_top_of_v_in_order(stored, radius, method, monkeypatch):
    """Rows of one range may be longer than those of another, and one range may look beyond the top
    where another does not.
    """
    model, path = stored("terminal", "unavailable", "rewards", S=ranges.LARGE, A=2, N=2)
    sizes, own = set(), partial_sort.in_order

    def noted(value, layout=None):
        states = own(value, layout)
        sizes.add(states.size)
        return states

    for part in ("drmdp.layout.point", "drmdp.certificate.compressed"):
        monkeypatch.setattr(f"{part}.in_order", noted)
    monkeypatch.setattr(partial_sort, "LEAST", 8)
    assert_same(
        model,
        path,
        drmdp.Wasserstein(radius, support="all"),
        parts=(1, 3),
        method=method,
        rtol=1e-3,
    )
    assert min(sizes) < ranges.LARGE / 20


@pytest.mark.parametrize("stay", [0, 1, 2, 3])
def test_so_do_parts_that_stay_open_or_do_not(stored, stay, monkeypatch):
    model, path = stored("terminal", "rewards")
    source, ambiguity = source_of(path), drmdp.Wasserstein(0.1)
    sizes = plan.stay_open(source, ambiguity, source.ranges(3))
    assert len(sizes) == 3
    monkeypatch.setattr(plan, "OPEN", sum(sizes[:stay]))
    opened, part = [], DirectorySource.part
    monkeypatch.setattr(
        DirectorySource, "part", lambda self, lo, *rest: opened.append(lo) or part(self, lo, *rest)
    )
    assert_same(model, path, ambiguity, parts=(3,))
    often = [opened.count(lo) for lo, _ in source.ranges(3)]
    assert often[:stay] == [2] * stay  # before the facts of all ranges are known, and then
    assert min(often[stay:], default=9) > 2


def test_a_radius_for_each_state_is_that_of_all_states(stored):
    model, path = stored()
    assert_same(model, path, drmdp.Wasserstein(ranges.radius_for_each(model.n_states), "linf", 1))


@pytest.mark.parametrize("method", ["value-iteration", "accelerated", drmdp.PolicyIteration()])
def test_every_method_that_takes_parts_gives_the_bits_of_the_whole(stored, method):
    model, path = stored("terminal", "unavailable", "rewards", discount=0.8)
    assert_same(model, path, drmdp.Wasserstein(0.1), parts=(3,), method=method, rtol=1e-4)


def test_limits_are_those_of_the_whole(stored):
    model, path = stored("rewards")
    whole = assert_same(model, path, drmdp.Wasserstein(0.3), parts=(3,), max_iters=1, rtol=1e-12)
    assert whole.status == "iteration_limit"


def test_threads_change_no_bit(stored):
    _, path = stored("terminal", S=ranges.LARGE, A=2, N=2)
    ambiguity = drmdp.Wasserstein(0.1)
    one, two = (drmdp.solve(path, ambiguity, cluster=Local(3, threads=n)) for n in (1, 2))
    assert ranges.digest(one) == ranges.digest(two)


def test_results_stay_in_files_with_the_same_bits(stored, tmp_path):
    model, path = stored("named", "rewards", "float32")
    ambiguity, out = drmdp.Wasserstein(0.1), tmp_path / "found"
    whole = drmdp.solve(model, ambiguity, threads=1)
    for _ in range(2):  # a solution is replaced by another
        found = drmdp.solve(path, ambiguity, cluster=Local(3, threads=1), out=out)
        assert ranges.digest(found) == ranges.digest(whole)
        assert isinstance(found.policy, np.memmap)
    assert [entry.name for entry in tmp_path.iterdir()] == ["found"]
    again = drmdp.Solution.load(out)
    assert ranges.digest(again) == ranges.digest(whole)
    assert list(again.states) == list(found.states) == list(model.states)
    np.testing.assert_allclose(found.kernel.rows(4), np.asarray(whole.kernel)[4], atol=1e-12)


def test_a_checkpointed_run_is_resumed_with_the_same_bits(stored, tmp_path):
    model, path = stored("terminal", "rewards", S=ranges.LARGE, A=2, N=2, discount=0.99)
    ambiguity, folder = drmdp.Wasserstein(0.1), tmp_path / "run"
    whole = drmdp.solve(model, ambiguity, threads=1)
    assert whole.n_iters > 2

    def stop(record):
        if record.iteration == 2:
            raise RuntimeError("as if it had been killed")

    with pytest.raises(RuntimeError, match="as if"):
        drmdp.solve(path, ambiguity, cluster=Local(3, threads=1), checkpoint=folder, callback=stop)
    seen = []
    found = drmdp.resume(
        folder, cluster=Local(8, threads=1), callback=lambda record: seen.append(record.iteration)
    )
    assert ranges.digest(found) == ranges.digest(whole)
    assert [record.iteration for record in found.history] == [
        record.iteration for record in whole.history
    ]
    assert seen[0] == 2  # one sweep was lost


REFUSED = {
    "a method that works on the whole": (
        {"method": "anderson"},
        "method: on a cluster take policy-iteration",
    ),
    "another backend": ({"backend": "conic"}, "method: on a cluster"),
    "a start": (
        {"start": np.zeros(37)},
        "start: a model that is not read whole begins from its mean kernel",
    ),
    "what is no cluster": ({"cluster": "ray"}, "cluster: expected one of drmdp.cluster"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_work_on_parts_is_refused(stored, case):
    settings, message = REFUSED[case]
    with pytest.raises(drmdp.InputError, match=re.escape(message)):
        drmdp.solve(stored()[1], drmdp.Wasserstein(0.1), **settings)


@pytest.mark.parametrize("option", ["cluster", "checkpoint", "out"])
def test_what_goes_with_a_path_is_refused_with_a_model_in_memory(stored, option):
    with pytest.raises(
        drmdp.InputError, match=f"^{option}: goes with the path of a .drmdp directory"
    ):
        drmdp.solve(stored()[0], drmdp.Wasserstein(0.1), **{option: Mpi()})


def test_a_radius_for_other_states_is_refused(stored):
    with pytest.raises(drmdp.InputError, match="radius has shape"):
        drmdp.solve(stored()[1], drmdp.Wasserstein(np.full(12, 0.1)), cluster=Local(3))


def test_a_folder_with_anything_in_it_takes_no_checkpoints(stored, tmp_path):
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(drmdp.InputError, match=r"checkpoint: .* is not empty$"):
        drmdp.solve(stored()[1], drmdp.Wasserstein(0.1), checkpoint=tmp_path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_nothing_but_a_solution_is_overwritten_by_one(stored, tmp_path, kind):
    target = tmp_path / "found"
    target.write_text("dear") if kind == "file" else target.mkdir()
    with pytest.raises(
        drmdp.InputError, match="exists and is not a solution, and is not overwritten"
    ):
        drmdp.solve(stored()[1], drmdp.Wasserstein(0.1), out=target)


@pytest.mark.parametrize("parts", [0, -1, 1.5, True])
def test_a_number_of_parts_that_is_none_is_refused(parts):
    with pytest.raises(drmdp.InputError, match="parts"):
        Local(parts)
