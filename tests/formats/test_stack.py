"""Several models become one with N kernels, whatever they come from."""

import sys

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp import InputError, formats


def part(p, kind="costs", next_costs=False, as_sparse=False, **more):
    y = np.array(
        [[[p, 1 - p, 0], [0.5, 0.5, 0]], [[0, p, 1 - p], [0, 0, 1]], [[0, 0, 1], [1, 0, 0]]]
    )
    prices = np.arange(6.0).reshape(3, 2)
    if next_costs:
        prices = prices[:, :, None] + np.arange(3)
        prices = sparse.csr_array(prices.reshape(6, 3)) if as_sparse else prices
    kernels = [sparse.csr_array(y.reshape(6, 3))] if as_sparse else y[None]
    return drmdp.Model(
        kernels, **{kind: prices}, **{"discount": 0.9, "states": ["a", (1, 2), "c"], **more}
    )


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("next_costs", [False, True])
@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_a_stack_is_the_model_of_all_kernels(as_sparse, next_costs, kind):
    ps = (0.2, 0.5, 1.0)
    parts = [part(p, kind, next_costs, as_sparse) for p in ps]
    stacked = drmdp.stack(parts, names=["x", "y", "z"])
    assert stacked.n_kernels == 3
    assert stacked.kernel_names == ("x", "y", "z")
    assert stacked.notes == ()
    kernels = [one.kernels[0] for one in parts]
    prices = getattr(part(0.3, kind, next_costs, as_sparse), kind)  # both transitions are there
    direct = drmdp.Model(
        kernels if as_sparse else np.stack(kernels),
        **{kind: prices},
        discount=0.9,
        states=stacked.states,
        kernel_names=["x", "y", "z"],
    )
    assert stacked == direct
    for ambiguity in (drmdp.Wasserstein(0.3), drmdp.Reweighting(0.1, "kl")):
        np.testing.assert_array_equal(
            drmdp.solve(stacked, ambiguity).value, drmdp.solve(direct, ambiguity).value
        )


def test_one_model_stays_what_it_is():
    model = drmdp.instances.perturb(drmdp.instances.machine(5), 4)
    assert drmdp.stack([model]) == model


def test_weights_of_models_are_shared_by_their_kernels():
    several = drmdp.instances.perturb(drmdp.instances.machine(5), 3)
    single = drmdp.instances.machine(5)
    found = drmdp.stack([several, single], weights=[0.6, 0.4], names=["old", "new"])
    np.testing.assert_allclose(found.weights, [0.2, 0.2, 0.2, 0.4])
    assert found.kernel_names == (("old", 0), ("old", 1), ("old", 2), "new")
    mean = 0.6 * several.mean_kernel + 0.4 * single.mean_kernel
    np.testing.assert_allclose(found.mean_kernel, mean, atol=1e-15)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_costs_that_differ_are_averaged_and_a_note_says_so(as_sparse):
    """The mean kernel has the mean of the costs of the models."""
    a, b = (part(p, next_costs=True, as_sparse=as_sparse) for p in (0.2, 0.6))
    other = drmdp.Model(b.kernels, costs=2 * b.costs, discount=0.9, states=b.states)
    found = drmdp.stack([a, other], weights=[0.25, 0.75])
    assert found.notes == (
        "the models disagree on costs: of each transition it is the weighted mean",
    )
    dense = [
        np.asarray(x.toarray() if sparse.issparse(x) else x).reshape(6, 3)
        for x in (a.mean_kernel, a.costs, other.mean_kernel, other.costs)
    ]
    both = [
        np.asarray(x.toarray() if sparse.issparse(x) else x).reshape(6, 3)
        for x in (found.mean_kernel, found.costs)
    ]
    expected = 0.25 * (dense[0] * dense[1]).sum(axis=1) + 0.75 * (dense[2] * dense[3]).sum(axis=1)
    np.testing.assert_allclose((both[0] * np.nan_to_num(both[1])).sum(axis=1), expected, rtol=1e-12)
    plain = drmdp.stack(
        [
            part(0.2),
            drmdp.Model(part(0.3).kernels, costs=np.ones((3, 2)), discount=0.9, states=a.states),
        ]
    )
    np.testing.assert_allclose(plain.costs, (np.arange(6.0).reshape(3, 2) + 1) / 2)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"states": ["a", "b", "c"]}, "models: 1 has other states than 0"),
        ({"actions": ["x", "y"]}, "models: 1 has other actions than 0"),
        ({"discount": 0.5}, "models: 0 has discount 0.9, and 1 0.5"),
        ({"kind": "rewards"}, "models: 0 has costs, and 1 rewards"),
        ({"terminal": ["c"]}, "models: state 'c' is terminal in only one of 0 and 1"),
        (
            {"available": {"a": [0]}},
            "models: state 'a', action 1 is available in only one of 0 and 1",
        ),
    ],
)
def test_models_of_other_processes_are_refused(other, message):
    with pytest.raises(InputError, match=message):
        drmdp.stack([part(0.2), part(0.3, **other)])


def test_what_is_no_list_of_models_is_refused():
    for wrong in ([], "ab", 3, part(0.2)):
        with pytest.raises(InputError, match="models: expected one or more models"):
            drmdp.stack(wrong)
    with pytest.raises(InputError, match=r"models: 1: expected a drmdp\.Model"):
        drmdp.stack([part(0.2), 3])


# ---------------------------------------------------------------------- importers


def test_gymnasium_by_name_and_with_several_slip_rates():
    gymnasium = pytest.importorskip("gymnasium")
    envs = [gymnasium.make("FrozenLake-v1", success_rate=p) for p in (1 / 3, 0.6, 0.9)]
    model = formats.from_gymnasium(envs, 0.95, names=["icy", "wet", "dry"])
    assert (model.n_kernels, model.n_states, model.kernel_names) == (3, 16, ("icy", "wet", "dry"))
    assert list(model.actions) == ["LEFT", "DOWN", "RIGHT", "UP"]
    for i, env in enumerate(envs):
        alone = formats.from_gymnasium(env, 0.95)
        own, other = (
            np.asarray(k.toarray() if sparse.issparse(k) else k).reshape(-1, 16)
            for k in (model.kernels[i], alone.kernels[0])
        )
        np.testing.assert_array_equal(own, other)
    named = formats.from_gymnasium("FrozenLake-v1", 0.95, make={"success_rate": 0.6})
    assert named == formats.from_gymnasium(envs[1], 0.95)
    both = formats.from_gymnasium(["FrozenLake-v1", envs[0]], 0.95)
    assert both.n_kernels == 2
    solution = drmdp.solve(model, drmdp.Wasserstein(0.1))
    assert 0 < solution.value[0] < 1
    with pytest.raises(InputError, match=r"gymnasium.make\('NoLake-v9'\): "):
        formats.from_gymnasium("NoLake-v9", 0.9)
    with pytest.raises(InputError, match="names: they go with a list of several"):
        formats.from_gymnasium(envs[0], 0.9, names=["a"])
    with pytest.raises(InputError, match="number 1: int has no table P"):
        formats.from_gymnasium([envs[0], 3], 0.9)


def test_without_gymnasium_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(
        drmdp.MissingExtra, match=r"^gymnasium is not installed; pip install gymnasium$"
    ):
        formats.from_gymnasium("FrozenLake-v1", 0.9)


def test_quantecon_and_mdptoolbox_stack():
    parts = [part(p, "rewards", states=None) for p in (0.2, 0.7)]
    expected = drmdp.stack(parts)
    pytest.importorskip("quantecon")
    assert formats.from_quantecon([formats.to_quantecon(one) for one in parts]) == expected
    assert (
        formats.from_mdptoolbox([formats.to_mdptoolbox(one) for one in parts], discount=0.9)
        == expected
    )
    with pytest.raises(InputError, match="rewards: they are missing"):
        formats.from_mdptoolbox(np.zeros((2, 3, 3)), discount=0.9)
    with pytest.raises(
        drmdp.InputError, match=r"several models are a list of pairs \(transitions, rewards\)"
    ):
        formats.from_mdptoolbox(np.full((4, 2, 3, 3), 1 / 3), np.zeros((3, 2)), discount=0.9)


@pytest.mark.parametrize("suffix", [".csv", ".tra", ".umb", ".npz", ".drmdp"])
def test_files_stack(tmp_path, suffix):
    if suffix == ".umb":
        pytest.importorskip("umbi")
    parts = [part(p, "rewards", states=None) for p in (0.2, 0.7)]
    paths = [tmp_path / f"{name}{suffix}" for name in ("wet", "dry")]
    for one, path in zip(parts, paths, strict=True):
        drmdp.write(one, path)
    found = drmdp.read(paths, discount=0.9) if suffix in (".tra", ".umb") else drmdp.read(paths)
    assert found.kernel_names == ("wet", "dry")
    assert found.n_kernels == 2
    dense = [
        np.asarray(k.toarray() if sparse.issparse(k) else k).reshape(6, 3) for k in found.kernels
    ]
    for own, one in zip(dense, parts, strict=True):
        np.testing.assert_allclose(own, one.kernels[0].reshape(6, 3), atol=1e-12)
