"""A fingerprint of routines is the same for the same bits, and says what differs."""

import json
import subprocess
import sys

import numpy as np
import pytest

import drmdp
from drmdp.operators.fingerprint import differences, fingerprint
from drmdp.operators.native import NativeFamily
from drmdp.sets import PAIRS


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_a_fingerprint_belongs_to_a_kind_of_set_and_not_to_its_radius(pair):
    here = fingerprint(drmdp.Wasserstein(0.3, *pair))
    assert here == fingerprint(drmdp.Wasserstein(np.linspace(0, 1, 7), *pair))
    assert [
        line.split(":")[0]
        for line in differences(here, fingerprint(drmdp.Wasserstein(0.3, *pair, support="all")))
    ] == ["routines"]


def test_kinds_of_sets_have_fingerprints_of_their_own():
    model = drmdp.instances.perturb(drmdp.instances.machine(4), n_kernels=2)
    others = [drmdp.Intervals.of(model), drmdp.Reweighting(0.1, "kl")]
    sets = [drmdp.Wasserstein(0.3, *pair) for pair in PAIRS] + others
    assert len({fingerprint(ambiguity)["routines"] for ambiguity in sets}) == len(sets)


def test_a_fingerprint_sees_another_last_bit(monkeypatch):
    before = fingerprint(drmdp.Wasserstein(0.3))
    usual = NativeFamily.sweep

    def other(self, fixed, start, stop, layout, arrays):
        usual(self, fixed, start, stop, layout, arrays)
        out = arrays[2]
        out.upper[5] = np.nextafter(out.upper[5], np.inf)

    monkeypatch.setattr(NativeFamily, "sweep", other)
    after = fingerprint(drmdp.Wasserstein(0.3))
    assert differences(before, after) == [f"routines: {before['routines']} and {after['routines']}"]


def test_probabilities_of_either_type_have_a_fingerprint():
    assert fingerprint(drmdp.Wasserstein(0.3), np.float32) == fingerprint(
        drmdp.Wasserstein(0.3), np.float32
    )


def test_another_process_has_the_same_fingerprint():
    script = (
        "import json, drmdp; from drmdp.operators.fingerprint import fingerprint;"
        "print(json.dumps(fingerprint(drmdp.Wasserstein(1, 'l1'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert differences(fingerprint(drmdp.Wasserstein(1, "l1")), json.loads(done.stdout)) == []


def test_differences_are_said_in_words():
    one, other = {"drmdp": "1", "routines": "a"}, {"drmdp": "2", "routines": "a", "more": "x"}
    assert differences(one, other) == ["drmdp: 1 and 2", "more: none and x"]
    assert differences(one, one) == []


def test_a_ground_of_other_states_does_not_matter():
    near, far = (
        drmdp.Wasserstein(0.1, "transport", ground=("line", np.arange(n) / 2)) for n in (3, 90)
    )
    assert fingerprint(near) == fingerprint(far)
