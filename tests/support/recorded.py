"""Calls of the compiled routines, recorded while problems are solved, and repeated by any build of
them: `python recorded.py MODULE CALLS [HOW]`.

A repetition needs NumPy and nothing of drmdp. It goes over all states at once, one by one, by
threes, or in two threads at a time.
"""

import copy
import hashlib
import importlib.util
import json
import pickle
import pkgutil
import sys
import threading
from collections import defaultdict

import numpy as np

START = {"sweep": 3, "respond": 2, "prove": 1, "project": 2, "first_order_look": 0}
"""Where `start` is among the arguments."""
HOW = ("whole", "ones", "threes", "threads")
GROWING = {"EventRows", "fill_event_rows"}
"""Rows of events are an object that grows; they are not recorded."""


def plain(given):
    """Tuples and copies of arrays, which any process can read."""
    if isinstance(given, tuple):
        return tuple(map(plain, given))
    return np.array(given) if isinstance(given, np.ndarray) else given


class Recorder:
    """Stands for the module and writes down what it is asked, before it answers."""

    def __init__(self, module):
        self._module, self._calls = module, []

    def __getattr__(self, name):
        function = getattr(self._module, name)
        if name in GROWING:
            return function

        def call(*given):
            self._calls.append((name, plain(given)))
            return function(*given)

        return call


def record(work):
    """Calls that are made while `work` runs."""
    import drmdp
    from drmdp import _native

    parts = [
        part.name
        for part in pkgutil.walk_packages(drmdp.__path__, "drmdp.")
        if "__main__" not in part.name
    ]
    recorder = Recorder(_native)
    places = [
        module
        for module in map(importlib.import_module, parts)
        if vars(module).get("_native") is _native
    ]
    try:
        for module in places:
            module._native = recorder
        work()
    finally:
        for module in places:
            module._native = _native
    return recorder._calls


def calls_of(n, seed=0):
    """Calls for n problems of every set that is compiled ahead, in double and in single
    precision.
    """
    import decks
    from drmdp import instances
    from drmdp.operators.exact import ExactOperator
    from drmdp.operators.fingerprint import fingerprint
    from drmdp.operators.native import NativeFamily, family_of
    from drmdp.solvers.problem import Problem

    def work():
        for name in decks.SETS:
            for number, case in enumerate(decks.deck(name, n, seed)):
                ambiguity = case.ambiguity.fitted(case.model)
                if not isinstance(family_of(ambiguity), NativeFamily):
                    break
                model = (
                    case.model.astype("float32")
                    if number % 4 == 3 and name != "intervals"
                    else case.model
                )
                for policy in (None, decks.any_policy(np.random.default_rng(number), model)):
                    problem = Problem(ExactOperator(model, ambiguity, 1))
                    for value in (case.value, case.value * 0.9, case.value):
                        np.asarray(problem.proved(value, policy).kernel)
        small = instances.perturb(instances.garnet(4, 2), 2)
        for own in decks.SETS.values():
            ambiguity = own.make(small, 0.2, "observed")
            if isinstance(family_of(ambiguity), NativeFamily):
                fingerprint(ambiguity)
        first_order(instances.perturb(instances.garnet(9, 3), 3))
        chains()

    return record(work)


def chains():
    """Systems of all sizes, laws of events, and lists of distances."""
    import drmdp
    from drmdp.core import vectors
    from drmdp.criteria import newton_systems
    from drmdp.operators.nominal import MeanLawOperator

    for size in (12, 90):
        model = drmdp.instances.perturb(drmdp.instances.garnet(size, 2), 2)
        drmdp.solve(model, drmdp.Wasserstein(0))
    drmdp.solve(drmdp.instances.machine(90, discount=0.999), drmdp.Wasserstein(0))
    newton_systems.direct(0.9 * np.eye(90) + 0.1 * np.eye(90, k=1), 0.9, np.arange(90.0))
    laws = np.random.default_rng(0).dirichlet(np.ones(7), 3)
    stock = drmdp.Model.from_events(
        40,
        2,
        7,
        lambda s, a, e: np.clip(s + a - e, 0, 39),
        laws,
        discount=0.9,
        costs=np.ones((40, 2)),
    )
    drmdp.solve(stock, drmdp.Wasserstein(0.1))
    mean_law = MeanLawOperator(stock)
    mean_law.chain(mean_law.update(np.arange(40.0), 0, 40).policy) @ np.arange(40.0)
    far = drmdp.Wasserstein(0.1, "transport", 1, ground=("line", np.arange(12.0)))
    drmdp.solve(drmdp.instances.perturb(drmdp.instances.garnet(12, 2), 2), far)
    vectors.block_sums(np.arange(1000.0), np.arange(1000.0), 64)


def first_order(model):
    """A few steps with every projection."""
    import drmdp

    for pair in drmdp.sets.PAIRS:
        for support in ("observed", "all"):
            ambiguity = drmdp.Wasserstein(0.1, *pair, support)
            for dtype in ("float64", "float32"):
                drmdp.solve(
                    model.astype(dtype),
                    ambiguity,
                    drmdp.FirstOrder.fast(keep_kernels=True),
                    max_iters=4,
                )
    for setup in ("entropy", "entropy-both"):
        drmdp.solve(model, ambiguity, drmdp.FirstOrder(setup=setup), max_iters=4)
    point = np.stack([model.kernels[k, 0] + k for k in range(3)])
    drmdp.project(point, model.kernels[:, 0], ambiguity, [0.5, 0.5, 0])


def repeat(module, calls, how="whole"):
    """A digest of what each function leaves in its arguments, by function and set."""
    found = defaultdict(hashlib.sha256)
    for name, given in calls:
        given = copy.deepcopy(given)
        function, k = getattr(module, name), START.get(name)
        if k is None or how == "whole":
            left = function(*given)
        else:
            left = _by_ranges(function, given, k, how)
        key = f"{name} {given[0]}" if given and isinstance(given[0], str) else name
        for array in _arrays((given, left)):
            found[key].update(np.ascontiguousarray(array).tobytes())
    return {name: one.hexdigest()[:16] for name, one in sorted(found.items())}


def _by_ranges(function, given, k, how):
    first, last = given[k : k + 2]
    step = {"ones": 1, "threes": 3, "threads": max(1, (last - first + 1) // 2)}[how]
    jobs = []
    for at in range(first, last, step):
        own = (*given[:k], at, min(at + step, last), *given[k + 2 :])
        if how == "threads":
            jobs.append(threading.Thread(target=function, args=own))
            jobs[-1].start()
        else:
            function(*own)
    for job in jobs:
        job.join()


def _arrays(given):
    if isinstance(given, (tuple, list)):
        for one in given:
            yield from _arrays(one)
    elif isinstance(given, (np.ndarray, float)):
        yield np.asarray(given)


def loaded(path):
    """A build of the routines."""
    spec = importlib.util.spec_from_file_location("_native", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    with open(sys.argv[2], "rb") as file:
        print(json.dumps(repeat(loaded(sys.argv[1]), pickle.load(file), *sys.argv[3:])))  # noqa: T201
