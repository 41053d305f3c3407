"""`drmdp warm-up`: compile ahead what sets need."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.options import PROGRESS
from drmdp.cli.screen import say
from drmdp.core import threads as workers
from drmdp.core.progress import counted, showing
from drmdp.errors import InputError, shown

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet

RADIUS = 0.1
MIDDLE, LARGE = 100, 2500
"""States whose linear systems are solved roughly at first, and those where that is done by products alone."""
CHILD = "import sys; from drmdp.cli.warm_up import prepare; prepare(*sys.argv[1:]); from drmdp.core.kept import Kept; print(Kept.written)"


@click.command("warm-up")
@click.argument("sets", nargs=-1, metavar="[SET]…")
@click.option("--float32", "single", is_flag=True, help="For models that keep probabilities in single precision.")
@PROGRESS
def warm_up(sets: tuple[str, ...], single: bool) -> None:
    """Compile ahead what SETs need, such as l2-2 or kl; all of them by default.

    Otherwise kernels are compiled when they are first used. They are kept in the cache folder of the user; what is there already is
    not compiled again.
    """
    from drmdp.core import kept

    known = examples()
    for name in sets:
        if name not in known:
            raise InputError(f"unknown set {shown(name)}; known: {', '.join(known)}")
    folder = kept.place()
    if folder is None:
        raise InputError("kernels can be kept nowhere; NUMBA_CACHE_DIR may name a folder")
    n, begin = 0, time.perf_counter()
    names = dict.fromkeys(sets or known)
    with counted("compiling kernels", len(names)) as step:
        for written in _in_processes(names, "float32" if single else "float64"):
            n += written
            step()
    say(f"{n} kernels compiled in {time.perf_counter() - begin:.0f} s; {folder} has {_count(folder)}")


def examples() -> dict[str, Callable[[Model], AmbiguitySet]]:
    """A set of every kind for a model, by its name."""
    from drmdp.sets import PAIRS, Divergence, Intervals, Reweighting, Wasserstein
    from drmdp.sets.registry import DIVERGENCES

    def of(kind: Any, *fields: Any) -> Callable[[Model], AmbiguitySet]:
        return lambda model: kind(RADIUS, *fields)

    def moved(order: float) -> Callable[[Model], AmbiguitySet]:
        return lambda model: Wasserstein(RADIUS, "transport", order, ground=("line", range(model.n_states)))

    found = {
        f"{metric}-{order:g}": of(Wasserstein, metric, order)
        for metric, order in (*PAIRS, ("l1", 2), ("l2", 1), ("linf", 2))
    }
    found |= {f"transport-{order:g}": moved(order) for order in (1, math.inf)}
    for around, end in (("mean", ""), ("kernels", "-kernels")):
        found |= {f"{kind}{end}": of(Divergence, kind, around) for kind in DIVERGENCES}
    found |= {f"reweighting-{kind}": of(Reweighting, kind) for kind in DIVERGENCES}
    return found | {
        "reweighting-cvar": lambda model: Reweighting(kind="cvar", level=0.5),
        "reweighting-any": lambda model: Reweighting(kind="any"),
        "intervals": lambda model: Intervals.of(model, RADIUS),
    }


def prepare(name: str, dtype: str) -> None:
    """Use a set once in every usual way, on tiny models, and on some that are large enough for other ways."""
    from drmdp import api, instances

    with showing(False):
        for sparse in (False, True):
            model = instances.perturb(instances.garnet(4, 2, sparse=sparse), 2).astype(dtype)
            for ball in _variants(examples()[name](model)):
                found = api.solve(model, ball, tol=0.05, threads=1)
                api.evaluate(model, ball, found.policy, tol=0.05, threads=1)
                api.certify(model, ball, found.policy, found.kernel)
        for S in (MIDDLE, LARGE):
            model = instances.perturb(instances.garnet(S, 2, 4, sparse=S == LARGE), 2, same_support=True).astype(dtype)
            api.solve(model, examples()[name](model), rtol=0.1, max_iters=2, threads=1)


def _variants(ball: Any) -> Iterator[AmbiguitySet]:
    """A set, and the same with other words that change what is compiled."""
    yield ball
    own = {field.name for field in fields(ball)}
    kept = {} if ball.sized or "radius" not in own else {"radius": None}
    for name, value in (("support", "all"), ("rectangular", "sa")):
        if name in own:
            yield replace(ball, **{name: value}, **kept)


def _in_processes(names: Iterable[str], dtype: str) -> Iterator[int]:
    """Prepare sets, as many at once as there are cores; yields how many kernels each wrote."""
    waiting = list(names)
    running: dict[str, subprocess.Popen[str]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers.cores():
                name = waiting.pop(0)
                running[name] = subprocess.Popen(
                    [sys.executable, "-c", CHILD, name, dtype],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            for name, job in list(running.items()):
                with suppress(subprocess.TimeoutExpired):
                    written, said = job.communicate(timeout=0.1)
                    del running[name]
                    if job.returncode:
                        raise RuntimeError(f"{name}: {said.strip()}")
                    yield int(written)
    finally:
        for job in running.values():
            job.kill()
            job.communicate()


def _count(folder: Any) -> int:
    from drmdp.core.kept import SUFFIX

    return sum(path.suffix == SUFFIX for path in folder.iterdir())
