"""Models of events in .drmdp directories: the table is mapped, functions are refused, and what is
no table is named.
"""

import json

import numpy as np
import pytest
from tests.events.test_events import deal, same, start, swept

import drmdp
from drmdp import InputError, Model, Wasserstein
from drmdp.io.mapped_arrays import Mapped


@pytest.mark.parametrize("priced", [False, True])
def test_what_is_read_is_what_was_written(priced, tmp_path):
    for k, given in enumerate(
        ({}, {"law": None, "available": None, "terminal": None, "sizes": (7, 2, 4, 3, 1)})
    ):
        model = deal(k, priced, **given)
        path = tmp_path / f"{k}.drmdp"
        drmdp.write(model, path)
        again = drmdp.read(path)
        assert type(again) is type(model)
        assert again == model
        assert isinstance(again.rule.next.base, Mapped)
        ambiguity = Wasserstein(0.2)
        same(swept(again, ambiguity, start(model)), swept(model, ambiguity, start(model)))
        drmdp.write(again, path)  # over itself
        assert drmdp.read(path) == model


def test_names_rewards_and_notes_come_back(tmp_path):
    laws = [[0.5, 0.5], [0.25, 0.75]]
    given = {
        "kernel_names": ["dry", "wet"],
        "discount": 0.5,
        "initial": [0, 1, 0, 0, 0, 0],
        "rewards": True,
    }
    rule = lambda s, a, e: ((s + a + e) % 6, 1.0 * s + e)  # noqa: E731
    for states, names in ((drmdp.Grid(2, 3), None), (6, ["a", ("b", 2), 3, "d", "e", "f"])):
        model = Model.from_events(states, ["stay", "go"], 2, rule, laws, names=names, **given)
        drmdp.write(model, tmp_path / "m.drmdp")
        again = drmdp.read(tmp_path / "m.drmdp")
        assert again == model
        assert again.maximise
        assert (list(again.states), list(again.actions), list(again.kernel_names)) == (
            list(model.states),
            ["stay", "go"],
            ["dry", "wet"],
        )


def test_code_is_not_saved(tmp_path):
    model = deal(1, True, "scalar", store=False)
    with pytest.raises(InputError, match=r"code is not saved: write model\.tabulate\(\)"):
        drmdp.write(model, tmp_path / "m.drmdp")
    assert list(tmp_path.iterdir()) == []
    drmdp.write(model.tabulate(), tmp_path / "m.drmdp")
    assert drmdp.read(tmp_path / "m.drmdp").fingerprint == model.fingerprint


def spoiled(path, name, change):
    if name == "model.json":
        index = json.loads((path / name).read_text())
        change(index)
        (path / name).write_text(json.dumps(index))
    else:
        array = np.load(path / f"{name}.npy")
        found = change(array)
        np.save(path / f"{name}.npy", array if found is None else found)


def put(value, *place):
    def change(array):
        array[place] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "next",
            put(24, 3, 0, 2),
            r"next: state 3, action 0, event 2 leads to 24, expected 0 … 23",
        ),
        ("next", put(-1, 5, 0, 0), r"leads to -1"),
        ("next", lambda array: array.astype(np.int64), r"next: expected i4"),
        ("next", lambda array: array[:, :, :5].copy(), r"next: expected shape \(24, 3, 6\)"),
        ("event_costs", put(np.nan, 2, 0, 1), r"transition\(2, 0, 1\) costs nan"),
        ("laws", put(0.9, 0, 0, 0), r"laws must sum to 1"),
        ("classes", put(7, 1, 1), r"there are 2 classes"),
        ("model.json", lambda index: index.update(shape=[1, 2]), r"shape: expected four"),
        ("model.json", lambda index: index.update(size=1), r"unknown entry 'size'"),
        ("model.json", lambda index: index.pop("weights"), r"weights: missing"),
        (
            "model.json",
            lambda index: index.update(grid=[5, 5]),
            r"grid: expected sizes of 24 states",
        ),
    ],
)
def test_what_is_no_table_is_refused(name, change, message, tmp_path):
    path = tmp_path / "m.drmdp"
    drmdp.write(deal(1, True, available=None, terminal=None), path)
    spoiled(path, name, change)
    with pytest.raises(InputError, match=message):
        drmdp.read(path)
