"""Laws of many events, and the rows made of them: what rounding leaves is some ε, however many
events there are.
"""

from fractions import Fraction

import numpy as np
import pytest

import drmdp
from drmdp.core.storage import rounding
from drmdp.model.events.laws import OFF

EPS = float(np.finfo(float).eps)
MANY = 10_001
RULES = {
    "one": lambda e, E: 0 * e,
    "halves": lambda e, E: (2 * e >= E) * 1,
    "turned": lambda e, E: (2 * e < E) * 1,
    "mixed": lambda e, E: e % 3,
    "tail": lambda e, E: np.minimum(e, 2),
}


def laws(E):
    """Laws whose naive sums are off: by many equal numbers, by a rising and a falling scale, by
    what came before.
    """
    x, steep = np.random.default_rng(E).random(E), 0.9 ** np.minimum(np.arange(E), 400.0)
    return {
        "equal": np.full(E, 1 / E),
        "random": x / x.sum(),
        "rising": np.arange(1, E + 1) / (E * (E + 1) / 2),
        "high": np.full(E, 1 / E) * (1 + 1.9 * E * EPS),
        "low": np.full(E, 1 / E) * (1 - 1.9 * E * EPS),
        "steep": steep / steep.sum(),
    }


def exact(numbers):
    """The sum of numbers as it is."""
    return sum(map(Fraction, numbers), Fraction(0))


def model_of(rule, own):
    """A model of three states whose events lead where a rule says, from each of them alike."""
    E = own.shape[1]

    def transition(s, a, e):
        return RULES[rule](e, E) + 0 * s + 0 * a

    return drmdp.Model.from_events(3, 1, E, transition, own, costs=np.arange(3.0), discount=0.9)


@pytest.mark.parametrize("E", [1, 2, 300, MANY])
def test_laws_are_divided_by_their_sums_once(E):
    for name, given in laws(E).items():
        for slip in (0.0, 1e-12, -9e-10):
            own = given / float(exact(given.tolist())) * (1 + slip)
            model = model_of("mixed", own[None])
            found, total = model.laws[0, 0], exact(own.tolist())
            assert abs(exact(found.tolist()) - 1) <= OFF + EPS, (name, slip)
            parts = list(zip(found.tolist(), own.tolist(), strict=True))[:: max(1, E // 100)]
            assert all(
                abs(Fraction(p) * total - Fraction(q)) <= 6 * EPS * Fraction(q) for p, q in parts
            )
            assert model.with_laws(model.laws) == model


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("E", [1, 7, MANY])
def test_rows_are_sums_of_laws_however_many_events_there_are(rule, E):
    found = laws(E)
    model = model_of(rule, np.stack(list(found.values())))
    blocks, there = model.stored().blocks, RULES[rule](np.arange(E), E)
    for i in range(len(found)):
        law = [Fraction(p) for p in model.laws[0, i].tolist()]
        total, row = (
            sum(law),
            [Fraction(p) for p in blocks.entries(i)[: blocks.lengths[0]].tolist()],
        )
        assert abs(sum(row) - 1) <= 6 * EPS
        for t, p in zip(blocks.indices[: len(row)].tolist(), row, strict=True):
            true = sum(law[e] for e in np.flatnonzero(there == t)) / total
            assert abs(p / sum(row) - true) <= 2 * EPS * true


@pytest.mark.parametrize("suffix", [".npz", ".drmdp", ".csv"])
def test_what_is_stored_is_read_back_as_it_is(tmp_path, suffix):
    stored = model_of("mixed", np.stack(list(laws(MANY).values()))).stored()
    drmdp.write(stored, path := tmp_path / f"model{suffix}")
    again = drmdp.read(path, discount=0.9) if suffix == ".csv" else drmdp.read(path)
    assert not again.notes
    assert np.array_equal(again.blocks.data, stored.blocks.data)
    assert (np.abs(stored.blocks.sums() - 1) <= rounding(3)).all()
