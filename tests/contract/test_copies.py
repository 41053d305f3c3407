"""Solutions, evaluations and plans of every set can be copied and sent to other processes, by many
threads at once.
"""

import copy
import pickle
import pickletools
import re
import threading

import numpy as np
import pytest
from test_registered import ambiguity_of, model

import drmdp
from decks import SETS, often

COPIES = {"pickle": lambda found: pickle.loads(pickle.dumps(found)), "deepcopy": copy.deepcopy}
NATURES = pytest.mark.parametrize("nature", ["adversarial", "cooperative"])
POLICY = np.where(model().available & ~model().terminal[:, None], 1.0, 0.0)
POLICY /= np.maximum(POLICY.sum(axis=1, keepdims=True), 1)
VERBS = {
    "solve": lambda own, ambiguity, nature: drmdp.solve(own, ambiguity, nature=nature),
    "evaluate": lambda own, ambiguity, nature: drmdp.evaluate(
        own, ambiguity, POLICY, nature=nature
    ),
    "finite_horizon": lambda own, ambiguity, nature: drmdp.finite_horizon(
        own, ambiguity, stages=2, nature=nature
    ),
    "bellman": lambda own, ambiguity, nature: drmdp.bellman(
        own, ambiguity, np.arange(5.0), nature=nature
    ),
}


def same(one, other):
    """Whether two results hold the same numbers."""
    for name in ("value", "lower", "upper", "policy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    kernels = (
        f.kernel(1) if isinstance(f, drmdp.HorizonSolution) else f.kernel for f in (one, other)
    )
    np.testing.assert_array_equal(*map(np.asarray, kernels))
    if getattr(one, "kernels", None) is not None:
        np.testing.assert_array_equal(np.asarray(one.kernels[0]), np.asarray(other.kernels[0]))


@pytest.mark.parametrize("name", often(SETS))
@NATURES
@pytest.mark.parametrize("verb", VERBS)
def test_a_copy_is_the_same_and_can_do_the_same(name, nature, verb, tmp_path):
    own = model()
    found = VERBS[verb](own, ambiguity_of(name, own), nature)
    for how, make in COPIES.items():
        again = make(found)
        same(again, found)
        if verb == "bellman":
            continue
        for at, one in (("found", found), (how, again)):
            one.proof(tmp_path / at)
        assert (tmp_path / how).read_bytes() == (tmp_path / "found").read_bytes()
        same(make(again), found)


@pytest.mark.parametrize("name", often(SETS))
def test_what_is_sent_names_neither_kernels_nor_modules(name):
    """A newer version may have others."""
    own = model()
    sent = pickle.dumps(drmdp.solve(own, ambiguity_of(name, own)))
    texts = [
        str(given)
        for op, given, _ in pickletools.genops(sent)
        if op.name in ("SHORT_BINUNICODE", "BINUNICODE")
    ]
    assert not [text for text in texts if text.startswith(("numba", "drmdp._native"))]


def test_many_threads_copy_at_once():
    own, failed = model(), []
    found = {
        name: drmdp.solve(own, ambiguity_of(name, own))
        for name in ("l2-2", "l2-2-sa", "kl-mean", "transport-1")
    }
    together = threading.Barrier(4 * len(found))

    def work(solution):
        together.wait()
        for make in COPIES.values():
            try:
                same(make(solution), solution)
            except Exception as error:
                failed.append(error)

    threads = [
        threading.Thread(target=work, args=(one,)) for one in found.values() for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_copy_is_reported_like_the_original(tmp_path):
    own = model()
    found = drmdp.solve(own, ambiguity_of("kl-mean-sa", own))
    pages = []
    for one in (found, pickle.loads(pickle.dumps(found))):
        one.report(tmp_path / "page.html", title="t")
        pages.append(re.sub(r"[0-9-]+ [0-9:]+ UTC", "", (tmp_path / "page.html").read_text()))
    assert pages[0] == pages[1]
