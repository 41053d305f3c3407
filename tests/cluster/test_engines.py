"""Every engine gives the bits of one process: threads, parts, workers of Ray, ranks of MPI; for
every set that is registered.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import drmdp
import engines
import ranges
from drmdp.cluster import Local, Ray
from drmdp.cluster.worker import Worker
from drmdp.sets.registry import ENTRIES

SHORT = ("l2-2 observed", "linf-1 all", "intervals", "kl around mean s", "kl of weights sa")
DECKS = {
    "short": (engines.FEW, SHORT),
    "balls": (tuple(engines.MODELS), engines.BALLS),
    "others": (engines.FEW, engines.OTHERS),
}
SUPPORT = str(Path(engines.__file__).parent)
decks = pytest.mark.parametrize(
    "deck",
    [
        pytest.param("short", marks=pytest.mark.cluster),
        pytest.param("balls", marks=pytest.mark.faults),
        pytest.param("others", marks=pytest.mark.faults),
    ],
    scope="module",
)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The folder of a deck, and what one process finds."""
    known = {}

    def find(deck):
        if deck not in known:
            folder = tmp_path_factory.mktemp(deck)
            engines.write(folder, *DECKS[deck])
            known[deck] = folder, engines.digests(folder, threads=1)
        return known[deck]

    return find


def differing(found, want):
    """Names of the jobs whose digests are others."""
    assert found.keys() == want.keys()
    return [name for name in want if found[name] != want[name]]


def test_every_registered_set_is_tried():
    names = {name for key in ENTRIES for name in engines.sets([key])}
    assert names == engines.BALLS.keys() | engines.OTHERS.keys()
    assert len(engines.MODELS) >= 20
    assert len(engines.FEW) >= 3


@decks
def test_threads_and_parts_give_the_bits_of_one_process(deck, solved):
    folder, want = solved(deck)
    assert differing(engines.digests(folder, threads=2), want) == []
    for parts in (1, 3, 8):
        assert differing(engines.digests(folder, cluster=Local(parts, threads=1)), want) == [], (
            parts
        )


@decks
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_so_do_workers_of_ray(deck, workers, solved, session):
    from pool import Pooled

    folder, want = solved(deck)
    assert differing(engines.digests(folder, cluster=Pooled(workers)), want) == []


@decks
@pytest.mark.parametrize("ranks", [2, 4])
def test_so_do_ranks_of_mpi(deck, ranks, solved, tmp_path):
    folder, want = solved(deck)
    mpi(["-n", str(ranks)], engines.__file__, folder, tmp_path / "found.json")
    for told in json.loads((tmp_path / "found.json").read_text()):
        assert differing(told, want) == []


def mpi(how, *command, **settings):
    """Run a script with Python on ranks; `how` are arguments of mpiexec before it."""
    paths = [SUPPORT, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    words = ["mpiexec", *how, sys.executable, *map(str, command)]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=3000
    )
    if settings.get("check", True):
        assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.cluster
def test_an_engine_of_ray_starts_and_ends_its_own_workers(solved, session):
    folder, want = solved("short")
    name, path, _, ambiguity = next(iter(engines.read(folder)))
    found = drmdp.solve(path, ambiguity, rtol=engines.RTOL, cluster=Ray(2))
    assert ranges.digest(found) == want[name]
    assert "drmdp" not in session.util.list_named_actors()


def test_workers_that_would_give_other_bits_are_refused(tmp_path, monkeypatch):
    drmdp.write(ranges.model(), tmp_path / "model.drmdp")

    def other(self):
        return (), {"drmdp": "1", "routines": "a" if self.lo else "b"}

    monkeypatch.setattr(Worker, "fingerprint", other)
    with pytest.raises(
        drmdp.InputError, match="workers 0 and 1 would not give the same bits: routines: b and a"
    ):
        drmdp.solve(tmp_path / "model.drmdp", drmdp.Wasserstein(0.1), cluster=Local(2))


def test_arrays_that_cannot_be_written_are_handed_on_as_views_that_do_not_say_so():
    from drmdp.cluster.ray import plain

    held = np.arange(6.0).reshape(2, 3)
    assert plain(held) is held
    held.setflags(write=False)
    view = plain(held)
    assert view.flags.writeable
    assert np.shares_memory(view, held)
    assert np.array_equal(view, held)
