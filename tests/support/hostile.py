"""Calls of the compiled routines with one argument that is something else: `python hostile.py
MODULE CALLS LOG SEED [N]`.

Each call returns or raises; what ends the process is a fault, and LOG names the last call that was
made. Needs NumPy and nothing of drmdp.
"""

import faulthandler
import pickle
import random
import signal
import sys

import numpy as np

from recorded import loaded, plain

REFUSALS = ValueError, TypeError, IndexError, OverflowError, MemoryError
SECONDS = 20
"""CPU time that one call may take, on a machine that others load as on an idle one."""
ENDLESS = {"project"}
"""Searches that do not end where numbers are infinite, which nobody hands over."""
WHOLE = [-1, 0, 1, 7, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]
REALS = [float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1e308, 5e-324]


def places(given, at=()):
    """Where something is that may be something else."""
    for k, one in enumerate(given):
        yield (*at, k)
        if isinstance(one, tuple):
            yield from places(one, (*at, k))


def field(given, place):
    """What is there."""
    return field(given[place[0]], place[1:]) if place else given


def changed(given, place, new):
    """A copy with something else there."""
    first, *rest = place
    return (*given[:first], changed(given[first], rest, new) if rest else new, *given[first + 1 :])


def others(own, names):
    """What may be there instead, by name, each made when it is asked for."""
    yield "None", lambda: None
    if isinstance(own, np.ndarray):
        yield from other_arrays(own)
    elif isinstance(own, bool):
        yield "not", lambda: not own
    elif isinstance(own, str):
        yield from ((name, lambda name=name: name) for name in [*names, "none"])
    elif isinstance(own, int):
        yield from ((str(k), lambda k=k: k) for k in WHOLE)
    elif isinstance(own, float):
        yield from ((str(x), lambda x=x: x) for x in REALS)
        yield "array", lambda: np.full(3, own)
    elif isinstance(own, tuple):
        yield "()", tuple
        yield "list", lambda: list(own)
        yield "one less", lambda: own[:-1]
    else:
        yield "float", lambda: 0.5


def other_arrays(own):
    """Arrays of another type, layout, shape or content."""
    flat = own.ravel()
    yield "list", own.tolist
    yield "complex", lambda: own.astype(complex)
    yield "bytes", lambda: bytes(own.nbytes)
    for kind in (np.float64, np.float32, np.int32, np.int64, np.uint16, bool):
        if own.dtype != kind:
            yield (
                np.dtype(kind).name,
                lambda kind=kind: np.clip(np.nan_to_num(own), 0, 1e4).astype(kind),
            )
    yield "swapped bytes", lambda: own.astype(own.dtype.newbyteorder())
    yield "stride", lambda: np.repeat(own, 2, axis=-1)[..., ::2]
    yield "backwards", lambda: own[::-1]
    yield "turned", lambda: np.asfortranarray(own.T)
    yield "read only", lambda: frozen(own)
    yield "longer", lambda: np.append(flat, np.zeros(1, own.dtype))
    yield "much longer", lambda: np.append(flat, np.zeros(1000, own.dtype))
    yield "shorter", lambda: flat[:-1].copy()
    yield "empty", lambda: flat[:0].copy()
    yield "no columns", lambda: np.zeros((2**40, 0), own.dtype)
    yield "no rows", lambda: np.zeros((0, 2**40), own.dtype)
    yield "column", lambda: flat.reshape(-1, 1).copy()
    yield "row", lambda: flat.reshape(1, -1).copy()
    yield "number", lambda: np.array(own.sum(), own.dtype)
    if own.dtype.kind in "iu":
        info = np.iinfo(own.dtype)
        for bad in (-1, own.size, own.size + 1, 10**6, info.min, info.max):
            for k in (
                {0, own.size // 2, own.size - 1} if own.size and info.min <= bad <= info.max else ()
            ):
                yield f"{bad} at {k}", lambda bad=bad, k=k: put(own, k, bad)
        yield "falling", lambda: np.sort(own, axis=None)[::-1].reshape(own.shape).copy()
        yield "zeros", lambda: np.zeros_like(own)
        yield "large", lambda: np.full_like(own, info.max)
    elif own.dtype.kind == "f" and own.size:
        for x in REALS:
            yield f"{x} at 0", lambda x=x: put(own, 0, x)
            yield f"all {x}", lambda x=x: np.full_like(own, x)


def frozen(array):
    """A copy that cannot be written to."""
    array = array.copy()
    array.setflags(write=False)
    return array


def put(array, k, x):
    """A copy with another number at k."""
    array = array.copy()
    with np.errstate(over="ignore"):
        array.ravel()[k] = x
    return array


def event_calls():
    """Rows of laws of events, which `recorded` leaves out."""
    rng, n, A, E, N, C = np.random.default_rng(0), 4, 2, 5, 3, 2
    law = rng.dirichlet(np.ones(E), (C, N)).transpose(0, 2, 1).copy()
    for merged in (True, False):
        for rising in (True, False):
            following = rng.integers(0, 9, (n, A, E)).astype(np.int32)
            asked = (
                np.sort(following) if rising else following,
                rng.random((n, A, E)),
                rng.integers(0, C, (n, A)).astype(np.uint16),
                np.ones((n, A), dtype=bool),
            )
            laws = (
                law,
                law[:, ::-1].cumsum(1)[:, ::-1].copy(),
                np.tile(np.arange(E), (C, 1)),
                np.full(C, E),
                np.ones(N) / N,
            )
            room = n * A * E
            block = (
                np.zeros(n * A + 1, dtype=np.int64),
                np.zeros(room, dtype=np.int32),
                np.zeros(N * room),
                np.zeros(room),
                np.zeros(room),
            )
            yield "fill_event_rows", (E, N, asked, laws, merged, block)


def chosen(calls):
    """One small call of every function, set, precision and way to see states, and those of
    events.
    """
    found = {}
    for name, given in calls:
        key = name, *(one if isinstance(one, (str, bool)) else shape(one) for one in given)
        found.setdefault(key, (name, given))
    return [*found.values(), *event_calls()]


def shape(given):
    """Flags and types, however deep."""
    if isinstance(given, tuple):
        return tuple(map(shape, given))
    return (
        given
        if isinstance(given, bool)
        else (given.dtype.char, given.size > 0)
        if isinstance(given, np.ndarray)
        else 0
    )


def cases(calls, names):
    """Every change of every call: the call's number, the place, and what is there."""
    for number, (name, given) in enumerate(calls):
        for place in places(given):
            for what, make in others(field(given, place), names):
                if not (name in ENDLESS and "inf" in what):
                    yield number, place, what, make


def limit(seconds):
    """End the process after so much of its own time, or 0: never; what waits takes none."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def run(module, calls, log, seed, n=None):
    """Make n of all changed calls, or all of them; how many were refused."""
    todo = list(cases(calls, module.routines()))
    random.Random(seed).shuffle(todo)
    refused = 0
    for number, place, what, make in todo[:n]:
        name, given = calls[number]
        log.seek(0)
        log.write(
            f"{name} {given[0] if isinstance(given[0], str) else ''} {place} {what}".ljust(200)
        )
        log.flush()
        limit(SECONDS)
        try:
            given = changed(plain(given), place, make())
            if name == "fill_event_rows":
                given = (module.EventRows(*given[:2]), *given[2:])
            getattr(module, name)(*given)
        except REFUSALS:
            refused += 1
        finally:
            limit(0)
    return refused, len(todo)


if __name__ == "__main__":
    if hasattr(signal, "SIGVTALRM"):
        faulthandler.register(signal.SIGVTALRM, chain=True)
    with open(sys.argv[2], "rb") as file, open(sys.argv[3], "w") as log:
        print(*run(loaded(sys.argv[1]), pickle.load(file), log, *map(int, sys.argv[4:])))  # noqa: T201
