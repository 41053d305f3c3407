"""Memory that processes of one machine share: nothing that is wanted is written over, and nothing is left of it."""

import multiprocessing
import os

import numpy as np
import pytest

from drmdp.cluster import shared as memory
from drmdp.cluster.actor import Actor, Order
from drmdp.cluster.shared import Area, Handle, InRoom, Shared

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs files without a name")

RANGES = [(0, 600), (600, 603), (603, 1003)]
S = 1003


@pytest.fixture
def shared():
    found = Shared(RANGES, S)
    yield found
    found.close()


def areas(shared):
    return [Area(handle, *own) for handle, own in zip(shared.handles, RANGES, strict=True)]


def test_a_vector_in_pieces_is_whole_for_everybody(shared):
    values = np.random.default_rng(0).normal(size=S)
    (room,), found = shared.rooms(1), []
    for k, area in enumerate(areas(shared)):
        lo, hi = RANGES[k]
        found.append(shared.kept(k, area.keep((values[lo:hi],), [room.at], shared.taken(k)), [room])[0])
    for area, (lo, hi) in zip(areas(shared), RANGES, strict=True):
        assert np.array_equal(area.view(InRoom(room.at, True)), values)
        assert np.array_equal(area.view(InRoom(room.at, False)), values[lo:hi])
    assert np.array_equal(shared.gather(found), values)


@pytest.mark.parametrize("small", [1, 2**20])
def test_what_is_wanted_is_never_written_over(shared, small, monkeypatch):
    """Arrays of all kinds come and go at random; those that are held keep their numbers, also for a worker that starts anew."""
    monkeypatch.setattr(memory, "SMALL", small)  # from so many bytes on they are written as to a file
    rng = np.random.default_rng(1)
    held, here = [], areas(shared)
    for _ in range(400):
        n = int(rng.integers(1, 4))
        rooms = shared.rooms(n)
        made = [[_array(rng, hi - lo) for lo, hi in RANGES] for _ in range(n)]
        kept = []
        for k, area in enumerate(areas(shared) if rng.random() < 0.1 else here):
            arrays = tuple(own[k] for own in made)
            kept.append(shared.kept(k, area.keep(arrays, [room.at for room in rooms], shared.taken(k)), rooms))
        held += [([own[j] for own in kept], made[j]) for j in range(n)]
        del rooms, kept
        while len(held) > 12:
            del held[int(rng.integers(len(held)))]
        for pieces, arrays in held:
            for k, (piece, array) in enumerate(zip(pieces, arrays, strict=True)):
                place = InRoom(piece.at, False) if isinstance(piece.at, int) else piece.at
                assert np.array_equal(here[k].view(place), array)
    assert shared._rooms <= 12 + 2 * 3  # rooms are used again
    assert max(end for k in range(3) for _, end in shared.taken(k)) < 2**20  # and gaps


def _array(rng, n):
    kind = rng.integers(4)
    if kind == 0:
        return rng.normal(size=(n, 3))
    if kind == 1:
        return rng.random((n, 0, 2)) > 0.5
    return rng.integers(9, size=int(rng.integers(50))).astype(np.int32) if kind == 2 else rng.normal(size=n)


def test_numbers_at_hand_are_brought_and_fetched(shared):
    values = np.arange(float(S))
    room = shared.scatter(values)
    assert np.array_equal(shared.gather([room] * 3), values)


def test_who_is_elsewhere_notices(shared):
    handle = shared.handles[0]
    others = (handle._replace(token=bytes(16)), handle._replace(own=10**6), handle._replace(process=2**22 + 1))
    assert reached(handle)
    assert [reached(other) for other in others] == [False] * 3


def reached(handle: Handle) -> bool:
    actor = Actor.__new__(Actor)
    actor._worker = type("Range", (), {"lo": 0, "hi": 600})
    actor._handle, actor._area = handle, None
    return actor._reached()


def test_a_call_that_comes_too_late_does_nothing(shared):
    actor = Actor.__new__(Actor)
    actor._last = 7
    with pytest.raises(RuntimeError, match="repeated long ago"):
        actor.call(Order(6, "survey", None, ()))


def _writes(handle):
    area = Area(handle, 600, 603)
    area.keep((np.ones(3), np.full((3, 2), 5.0)), [0], [])
    os._exit(1)


def test_what_a_process_wrote_outlives_it(shared):
    (room,) = shared.rooms(1)
    child = multiprocessing.get_context("spawn").Process(target=_writes, args=(shared.handles[1],))
    child.start()
    child.join()
    area = areas(shared)[1]
    assert np.array_equal(area.view(InRoom(room.at, False)), np.ones(3))
    assert np.array_equal(np.ndarray((3, 2), float, area._own, 4096), np.full((3, 2), 5.0))


def test_files_are_gone_with_those_who_have_them():
    before = len(os.listdir("/proc/self/fd"))
    found = Shared(RANGES, S)
    assert all("drmdp" in os.readlink(f"/proc/self/fd/{handle.own}") for handle in found.handles)
    found.close()
    del found
    assert len(os.listdir("/proc/self/fd")) == before
