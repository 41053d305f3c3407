"""Long-run cost a step: values that are known, the bracket that holds for any h, and gains that
differ.
"""

import numpy as np
import pytest

import drmdp
from criteria_cases import queue
from drmdp.model import changed


def test_a_chain_that_goes_round():
    model = drmdp.Model([[[[0, 1]], [[1, 0]]]], rewards=[0.0, 1.0], discount=0.9)
    found = drmdp.solve(model, drmdp.Wasserstein(0.0), criterion="average")
    assert found.lower[0] <= 0.5 <= found.upper[0]
    assert found.gap <= 1e-12
    worth = drmdp.evaluate(model, drmdp.Wasserstein(0.0), [0, 0], criterion="average")
    assert worth.lower[0] <= 0.5 <= worth.upper[0]


def test_a_gain_is_saved_and_loaded(tmp_path):
    found = drmdp.solve(queue(5), drmdp.Wasserstein(0.1), criterion="average")
    found.save(tmp_path / "s.npz")
    again = drmdp.Solution.load(tmp_path / "s.npz")
    assert (again.criterion, again.time) == ("average", None)
    np.testing.assert_array_equal(again.bias, found.bias)


@pytest.mark.parametrize("lasts", [None, "differently"])
def test_a_path_of_radii(lasts):
    """Each point is the solution of its radius; the policy of radius 0 is followed on request."""
    model = queue(6)
    if lasts is not None:
        model = changed(model, sojourn=np.linspace(1, 3, 18).reshape(6, 3))
    ambiguity, radii = drmdp.Wasserstein(0.1), [0.0, 0.05, 0.2]
    path = drmdp.radius.path(model, ambiguity, radii, criterion="average")
    assert str(path.status) == "solved"
    for point in path.points:
        found = drmdp.solve(model, ambiguity.with_radius(point.radius), criterion="average")
        assert (point.lower <= found.upper).all()
        assert (found.lower <= point.upper).all()
    fixed = drmdp.radius.path(
        model, ambiguity, radii, criterion="average", policy=path.points[0].policy
    )
    assert (fixed.worst >= path.worst - 1e-6 * np.abs(path.worst)).all()
    with pytest.raises(
        drmdp.InputError, match="actions of a long-run average do not compare in one step"
    ):
        drmdp.radius.critical(path)
