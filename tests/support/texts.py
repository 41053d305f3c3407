"""Models for text formats, and what must come back of them."""

import functools

import numpy as np
from scipy import sparse

from drmdp import Model, instances


def ragged(n_kernels=1):
    """Three states and a terminal one, not every action everywhere, rewards by pair."""
    rng = np.random.default_rng(0)
    y = np.zeros((n_kernels, 4, 2, 4))
    y[:, 0, 0] = [0.25, 0.75, 0, 0]
    y[:, 1, 0] = [0, 0, 1, 0]
    y[:, 1, 1] = rng.dirichlet(np.ones(4), n_kernels)
    y[:, 2, 1] = rng.dirichlet(np.ones(4), n_kernels)
    available = np.array([[True, False], [True, True], [False, True], [True, True]])
    rewards = np.array([[-1.0, 0], [2.5, 1 / 3], [0, -7], [0, 0]])
    return Model(y, rewards=rewards, discount=0.9, available=available, terminal=[3])


def listed(n_kernels=1):
    """Rewards on the next state, known where some kernel has mass."""
    y = np.random.default_rng(1).dirichlet([0.3] * 5, (n_kernels, 5, 2))
    y[..., 4] = 0
    y[..., 0] = 1 - y[..., 1:].sum(axis=-1)
    y[:, 4, :] = np.eye(5)[4]
    matrix = sparse.csr_array(
        np.where(y.any(axis=0), np.arange(50.0).reshape(5, 2, 5) - 20, 0).reshape(10, 5)
    )
    return Model(
        [sparse.csr_array(kernel.reshape(10, 5)) for kernel in y], rewards=matrix, discount=0.5
    )


def known_everywhere(n_kernels=1):
    """Rewards on the next state, known for every transition."""
    rng = np.random.default_rng(2)
    y = rng.dirichlet(np.ones(3), (n_kernels, 3, 2))
    y[0, 0, 0] = [1, 0, 0]
    y[:, 1, 1] = [0, 0.5, 0.5]
    return Model(y, rewards=rng.normal(size=(3, 2, 3)), discount=0.95, initial=[0.2, 0.3, 0.5])


@functools.cache
def variety():
    """Name and model of what a list of transitions holds."""
    return {
        "ragged": ragged(),
        "ragged, 3 kernels": ragged(3),
        "next state": listed(),
        "next state, 3 kernels": listed(3),
        "known everywhere": known_everywhere(),
        "known everywhere, 2 kernels": known_everywhere(2),
        "costs": instances.machine(6),
        "costs, 4 kernels": instances.perturb(instances.forest(5), 4),
        "sparse": instances.garnet(12, 3, seed=1, sparse=True),
        "discount 0": instances.cycle(4, discount=0.0),
    }


def same_kernels(found, model):
    """Assert that kernels and what belongs to them agree bit by bit; also for a terminal state's
    rows, which are none.
    """
    assert (found.n_states, found.n_actions, found.n_kernels) == (
        model.n_states,
        model.n_actions,
        model.n_kernels,
    )
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found.blocks, name), getattr(model.blocks, name))
    for name in ("available", "terminal", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(model, name))
    assert found.discount == model.discount


def back(found, model):
    """Assert that a model came back, as one of rewards and without names."""
    same_kernels(found, model)
    np.testing.assert_array_equal(found.initial, model.initial)
    assert found.maximise
    assert sparse.issparse(found.costs) == sparse.issparse(model.costs)
    costs = [m.costs.toarray() if sparse.issparse(m.costs) else m.costs for m in (found, model)]
    np.testing.assert_array_equal(*costs)
    assert not found.notes
