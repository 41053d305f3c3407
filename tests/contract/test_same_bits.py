"""A kernel gives the same bits in the process that compiles it and in all that load it, whatever was used before."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import drmdp
from drmdp.core.compiled import FAST, KERNEL, LEAN, OwnCopies, njit, wall
from drmdp.core.content import Content
from drmdp.core.kept import Kept

SCRIPT = """
import hashlib, json
import numpy as np
import drmdp

def digest(S, method, metric, order, support):
    sparse = S > 100
    garnet = drmdp.instances.garnet(S, 3, 8, seed=2, discount=0.95, sparse=sparse)
    model = drmdp.instances.perturb(garnet, 4, seed=1, same_support=True)
    ball = drmdp.Wasserstein(0.1, metric, float(order), support=support)
    limits = {} if method == "auto" else {"max_iters": 60}
    return result(drmdp.solve(model, ball, method=method, rtol=1e-3, threads=1, **limits))

def result(found):
    parts = (found.lower, found.upper, found.policy)
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()

def digests(jobs):
    print(json.dumps([digest(*job) for job in jobs]))
"""
LOAD = """
import contextlib, pickle
import numba.core.registry
from drmdp.core import kept
from tests.contract.test_same_bits import compiled

context = numba.core.registry.cpu_target.target_context
by_name = {}
for function in compiled():
    by_name.setdefault(kept.plain_name(function.py_func), []).append(function)

def all_kept():
    for folder in kept.folders():
        for path in folder.glob("*" + kept.SUFFIX):
            functions, signature = by_name.get(path.name.rpartition("-")[0], ()), None
            with contextlib.suppress(ImportError, AttributeError):  # older sources, with classes elsewhere, kept it
                signature = pickle.loads(path.read_bytes()[32:])[3].args if functions else None
            for function in functions if signature else ():
                if function._cache.name(signature, context) == path.name:
                    yield path.stat().st_size, function.py_func.__qualname__, function, signature

callees_first = sorted(all_kept(), key=lambda found: found[:2])  # a caller holds copies, and is larger
some = callees_first[:: len(callees_first) // MOST + 1]
loaded = [function._cache.load_overload(signature, context) for _, _, function, signature in some]
assert len(loaded) > 20
"""
SUPPORTS = ("all", "state", "observed")


def compiled():
    """Every compiled function of the package."""
    for module in pkgutil.walk_packages(drmdp.__path__, "drmdp."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Dispatcher) and value.py_func.__module__ == module.name:
                    yield value


def digests(jobs, first="", last="", **environment):
    """What a process of its own finds, after and before it did something else."""
    script = f"{SCRIPT}\n{first}\ndigests({jobs!r})\n{last}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_compiled_function_has_copies_of_its_own():
    functions = list(compiled())
    assert len(functions) > 200
    assert not [f.py_func for f in functions if f._compiler.pipeline_class is not OwnCopies]


def test_every_compiled_function_can_be_kept():
    foreign = [f.py_func for f in compiled() if not isinstance(f._cache, Kept)]
    assert not foreign, "take `njit` from `drmdp.core.compiled`, not from Numba"
    for f in compiled():
        assert str(Content(f.py_func, ()))


def test_no_function_takes_over_what_its_callers_allow():
    @njit(**LEAN)
    def lost(x):
        return (x + 1e16) - 1e16

    @njit(fastmath=FAST, **KERNEL)
    def total(x):
        result = 0.0
        for k in range(x.size):
            result += lost(x[k])
        return result

    assert total(np.full(1000, 0.5)) == 0.0, "rounding was simplified away"


KERNELS = """
import sys
import numpy as np
from drmdp.core.compiled import FAST, KERNEL, LEAN, njit

@njit(fastmath=FAST, **LEAN)
def total(x, y):
    result = 0.0
    for k in range(x.size):
        result += x[k] * y[k] if x[k] > 0.0 else x[k] * x[k]
    for k in range(x.size):
        a, b = 0.0, 1.0
        for j in range(k % 7 + 5):
            a += x[j] * y[k] + x[k]
        for j in range(k):
            b += x[j] / (1.0 + y[j] * y[j])
        result += a + a * b
    return result

@njit(**LEAN)
def middle(x, y):
    return total(x, y) + total(y, x) + total(x[:9], y[:9])

@njit(**KERNEL)
def far(x, y):
    return middle(x, y) + middle(y, x) + total(x[3:], y[3:]) + total(y[3:], x[3:])

@njit(**KERNEL)
def near(x, y):
    return total(x, y) + total(y, x) + total(x[:9], y[:9])

x, y = np.random.default_rng(0).normal(size=(2, 1000))
print(sorted((name, globals()[name](x, y).hex()) for name in sys.argv[1:]))
"""


def test_callers_of_one_function_have_their_bits_whoever_came_first(tmp_path):
    """Compiled, loaded, and loaded in another order: an object that offered its copy of the callee to others would change theirs."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    found = []
    for names in ("near", "far"), ("near", "far"), ("far", "near"):
        command, own = [sys.executable, str(tmp_path / "kernels.py"), *names], {"NUMBA_CACHE_DIR": str(tmp_path)}
        found.append(subprocess.run(command, capture_output=True, text=True, env=os.environ | own, check=True).stdout)
    assert found[1:] == found[:1] * 2


def test_what_is_behind_a_wall_has_copies_of_its_own():
    def half(x):
        return x / 2

    assert wall(half, 1.0, 1.0)._compiler.pipeline_class is OwnCopies


@pytest.mark.parametrize("most", [100, pytest.param(100_000, marks=pytest.mark.fuzz)], ids=["some", "all"])
def test_bits_do_not_depend_on_what_was_loaded_before(most):
    """A process that has loaded what others keep answers as one that loads what it needs."""
    jobs = [(2500, "auto", "l2", 2, support) for support in SUPPORTS]
    alone = digests(jobs)
    assert digests(jobs, first=f"MOST = {most}\n{LOAD}") == alone
