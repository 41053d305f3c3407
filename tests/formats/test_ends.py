"""Files keep the values of terminal states."""

import json

import numpy as np
import pytest

import drmdp
from drmdp.proof.states import digest
from drmdp_check.__main__ import Model

KERNEL = np.array([[[0.5, 0.2, 0.3]], [[0, 1, 0]], [[0, 0, 1]]])


def model(kind="costs", ends=(0.0, 7.5), **given):
    return drmdp.Model(
        KERNEL,
        **{kind: [[1.0], [0.0], [0.0]]},
        discount=0.9,
        terminal=dict(enumerate(ends, 1)),
        **given,
    )


def events():
    return drmdp.Model.from_events(
        3,
        1,
        2,
        lambda s, a, e: 1 + e,
        [[0.25, 0.75]],
        costs=[[1.0]] * 3,
        discount=0.9,
        terminal={1: -2.0, 2: 0.0},
    )


@pytest.mark.parametrize("kind", ["costs", "rewards"])
@pytest.mark.parametrize("name", ["m.npz", "m.drmdp"])
def test_files_keep_final_values(kind, name, tmp_path):
    one = model(kind)
    drmdp.write(one, tmp_path / name)
    again = drmdp.read(tmp_path / name)
    assert np.array_equal(again.ends, one.ends)
    assert again.fingerprint == one.fingerprint != model(kind, (0.0, 7.0)).fingerprint
    assert Model(tmp_path / name).digest == digest(one) != digest(model(kind, (0.0, 7.0)))
    assert Model(tmp_path / name).ends == one.ends.tolist()


def test_those_of_events_too(tmp_path):
    one = events().tabulate()
    drmdp.write(one, tmp_path / "e.drmdp")
    again = drmdp.read(tmp_path / "e.drmdp")
    assert again.ends.tolist() == [0.0, -2.0, 0.0]
    assert again.fingerprint == one.fingerprint


def test_what_a_file_may_not_say(tmp_path):
    path = tmp_path / "m.npz"
    drmdp.write(model(), path)
    fields = dict(np.load(path))
    for ends, reason in (
        ([1.0, 0.0, 0.0], "ends: state 0: expected 0, for it is not terminal, got 1.0"),
        ([0.0, np.nan, 0.0], "ends: state 1: expected a finite value, got nan"),
        ([0.0, 1.0], r"ends: expected shape \(3,\), got \(2,\)"),
    ):
        np.savez(path, **fields | {"ends": np.array(ends)})
        with pytest.raises(drmdp.InputError, match=reason):
            drmdp.read(path)


def test_other_formats_say_that_they_hold_none(tmp_path):
    with pytest.raises(drmdp.InputError, match="holds no values of terminal states"):
        drmdp.write(model(), tmp_path / "m.tra")


def test_a_model_that_is_not_read_whole_has_none(tmp_path):
    drmdp.write(model(), tmp_path / "m.drmdp")
    with pytest.raises(drmdp.InputError, match="states have final values"):
        drmdp.solve(tmp_path / "m.drmdp", drmdp.Wasserstein(0.1), cluster=drmdp.cluster.Local(2))
    assert "ends" not in json.loads((tmp_path / "m.drmdp" / "model.json").read_text())
