"""The proof of a small model in one compiled call is the proof, bit for bit, and refuses what it refuses."""

import numpy as np
import pytest

import drmdp
from drmdp.bellman.exact import ExactOperator
from drmdp.certificate import RobustProver, small
from drmdp.errors import InputError
from drmdp.sets import PAIRS

IDS = [f"{metric}-{order:g}" for metric, order in PAIRS]


def random_model(rng, dtype=None):
    S, A, N = int(rng.integers(1, 12)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    kernels = rng.dirichlet(np.full(S, 0.4), size=(N, S, A))
    kernels *= kernels > 0.02
    kernels /= kernels.sum(axis=3, keepdims=True)
    costs = rng.uniform(-1, 1, (S, A) if rng.random() < 0.6 else (S, A, S))
    terminal = rng.random(S) < 0.1
    return drmdp.Model(kernels, costs=costs, discount=float(rng.choice([0.5, 0.95])), terminal=terminal, dtype=dtype)


def same(one, other):
    for name in ("lower_step", "upper_step", "share"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_one_call_has_the_bits_of_many(pair, monkeypatch):
    rng = np.random.default_rng(PAIRS.index(pair))
    counts = []
    for n in range(8):
        model = random_model(rng, "float32" if n % 4 == 3 else None)
        support = "observed" if n % 2 else "all"
        for radius in (0.0, 0.2, 1.0):
            ball = drmdp.Wasserstein(radius, *pair, support)
            value = rng.uniform(-5, 5, model.n_states)
            update = ExactOperator(model, ball, 1).update(value, 0, model.n_states)
            policy = update.policy if n % 3 else np.zeros_like(update.policy)
            for fixed in (False, True):
                given = value, policy, update.claim, fixed
                with monkeypatch.context() as alone:
                    alone.setattr(small, "prove", lambda *given: None)
                    slow = RobustProver(model, ball, 1).prove(*given)
                fast = [RobustProver(model, ball, 1).prove(*given) for _ in range(2)][1]
                same(slow, fast)
                counts.append(small.prove(model, ball, *given) is not None)
    assert all(counts)


def test_claims_of_another_shape_are_refused_there_too():
    model, ball = drmdp.instances.perturb(drmdp.instances.garnet(5, 2), 3), drmdp.Wasserstein(0.2)
    value = np.zeros(5)
    update, prover = ExactOperator(model, ball, 1).update(value, 0, 5), RobustProver(model, ball, 1)
    for _ in range(3):
        prover.prove(value, update.policy, update.claim, False)
        for claim in (update.claim._replace(by_action=np.zeros((5, 3))), update.claim._replace(by_row=None), None):
            with pytest.raises(InputError, match="claim"):
                prover.prove(value, update.policy, claim, False)
        with pytest.raises(InputError, match="policy"):
            prover.prove(value, update.policy[:4], update.claim, False)
    strided = np.repeat(update.claim.by_row, 2, axis=2)[:, :, ::2]
    same(
        prover.prove(value, update.policy, update.claim, False),
        prover.prove(value, update.policy, update.claim._replace(by_row=strided), False),
    )
