"""What is kept of a kernel answers for that kernel only, whoever writes, dies or tampers at the same time."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
import types
import warnings
from collections import namedtuple

import numpy as np
import pytest
from numba.core import config

from drmdp.core import kept
from drmdp.core.compiled import FAST, KERNEL, njit, wall
from drmdp.core.content import Content
from drmdp.errors import Notice

CALLEE = """
from typing import NamedTuple
from drmdp.core.compiled import *
SHIFT = 1.0
OFFSET = (2.0, 3)

class Pair(NamedTuple):
    one: float
    other: float

@njit(**LEAN)
def deep(x):
    '''Deep.'''
    return x + SHIFT

@njit(**INLINE)
def inner(x):
    return deep(x) * OFFSET[1]
"""
CALLER = """
from drmdp.core.compiled import *
from callee import inner
import callee as other

@njit(**KERNEL)
def outer(x, extra=0.5):  # a comment
    pair = other.Pair(inner(x), other.SHIFT)
    return pair.one - pair.other + extra
"""
USUAL = (2.0 + 1.0) * 3 - 1.0 + 0.5


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    return tmp_path / "drmdp"


def load(monkeypatch, callee=CALLEE, caller=CALLER):
    """Both modules as a fresh process would have them; the kernel."""
    for name, text in (("callee", callee), ("caller", caller)):
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, f"/{random.random()}/{name}.py", "exec"), vars(module))
    return module.outer


def files(place):
    return sorted(path.name for path in place.glob("*"))


def hits(kernel):
    return sum(kernel.stats.cache_hits.values())


# ---------------------------------------------------------------------- the right one


def test_a_kernel_is_loaded_wherever_its_source_lies(place, monkeypatch):
    assert load(monkeypatch)(2.0) == USUAL
    there = files(place)
    again = load(monkeypatch, CALLEE.replace("'Deep.'", "'Deeper.'"), CALLER.replace("# a comment", "\n"))
    assert (again(2.0), hits(again), files(place)) == (USUAL, 1, there)
    assert [name.split("-")[0] for name in there] == ["callee.deep", "caller.outer"]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("x + SHIFT", "x + SHIFT + 1000", USUAL + 3000),  # the code of a callee's callee
        ("SHIFT = 1.0", "SHIFT = 2.0", USUAL + 2),  # a constant, used there and through the module
        ("(2.0, 3)", "(2.0, 4)", USUAL + 3),  # one inside a tuple, used by what is inlined
        ("extra=0.5", "extra=1.5", USUAL + 1),  # a default
        ("one: float\n    other: float", "other: float\n    one: float", 2 - USUAL + 2 * 0.5 - 2),  # fields
    ],
)
def test_whatever_changes_is_compiled_again(place, monkeypatch, old, new, value):
    assert load(monkeypatch)(2.0) == USUAL
    changed = load(monkeypatch, CALLEE.replace(old, new), CALLER.replace(old, new))
    assert (changed(2.0), hits(changed)) == (value, 0)
    usual = load(monkeypatch)
    assert (usual(2.0), hits(usual)) == (USUAL, 1)


def test_a_constant_that_is_replaced_in_memory_is_seen(place, monkeypatch):
    kernel = load(monkeypatch)
    monkeypatch.setattr(sys.modules["callee"], "SHIFT", 5.0)
    assert kernel(2.0) == 7 * 3 - 5.0 + 0.5
    assert load(monkeypatch)(2.0) == USUAL


def test_closures_of_one_name_are_told_apart(place):
    def scaled(factor):
        def times(x):
            return x * factor

        return times

    def ask():
        found = [njit(**KERNEL)(scaled(factor)) for factor in (2.0, 3.0)]
        walls = [wall(scaled(factor), 0.0, 0.0) for factor in (4.0, 5.0)]
        return [f(1.0) for f in found], [w.ctypes(1.0) for w in walls], [hits(f) for f in found]

    assert ask() == ([2.0, 3.0], [4.0, 5.0], [0, 0])
    assert ask() == ([2.0, 3.0], [4.0, 5.0], [1, 1])
    assert len(files(place)) == 4


def test_types_and_options_belong_to_the_key(place):
    def first(x):
        return x[0]

    one, other = namedtuple("Pair", "a, b"), namedtuple("Pair", "b, a")
    arguments = (2, 1), (2.0, 1.0), (2, 1.0), one(2, 1), other(2, 1), np.array([2.0]), np.array([2.0, 0.0, 0.0])[::2]
    for options in (KERNEL, KERNEL | {"fastmath": FAST}, KERNEL | {"inline": "always"}):
        for argument in arguments:
            found = njit(**options)(first)
            assert (found(argument), hits(found)) == (2, 0)
    assert len(files(place)) == 21


@pytest.mark.parametrize("what", ["settings"])
def test_another_version_or_setting_has_other_files(place, monkeypatch, what):
    load(monkeypatch)(2.0)
    there = set(files(place))
    monkeypatch.setattr(kept, what, lambda *_: "another")
    kernel = load(monkeypatch)
    assert (kernel(2.0), hits(kernel)) == (USUAL, 0)
    assert len(set(files(place)) - there) == 2


def test_what_has_no_text_is_not_kept(place):
    one = wall(lambda x: x + 1, 0.0, 0.0)
    there = files(place)

    @njit(**KERNEL)
    def through(x):
        return one(x)

    assert through(1.0) == 2.0
    assert files(place) == there


# ---------------------------------------------------------------------- files


def truncated(path, k):
    path.write_bytes(path.read_bytes()[: [0, 1, 31, 32, 33, 1000, -1][k]])


def flipped(path, k):
    content = bytearray(path.read_bytes())
    content[(0, 31, 32, 40, len(content) // 3, len(content) // 2, -1)[k]] ^= 1 << k
    path.write_bytes(content)


@pytest.mark.parametrize("k", range(7))
@pytest.mark.parametrize("spoil", [truncated, flipped])
def test_a_file_that_is_not_whole_is_replaced(place, monkeypatch, spoil, k):
    load(monkeypatch)(2.0)
    for path in place.iterdir():
        spoil(path, k)
    kernel = load(monkeypatch)
    assert (kernel(2.0), hits(kernel)) == (USUAL, 0)
    kernel = load(monkeypatch)
    assert (kernel(2.0), hits(kernel)) == (USUAL, 1)


def test_where_nothing_can_be_written_it_works_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(Notice, match="compiled kernels are not kept.*NUMBA_CACHE_DIR") as said:
        assert load(monkeypatch)(2.0) == USUAL
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(monkeypatch)(2.0) == USUAL


def test_what_cannot_be_replaced_is_no_error(place, monkeypatch):
    load(monkeypatch)(2.0)
    for path in place.iterdir():
        path.unlink()
        path.mkdir()
    with pytest.warns(Notice, match="not kept"):
        assert load(monkeypatch)(2.0) == USUAL
    assert all(path.is_dir() for path in place.iterdir())


def test_without_a_folder_of_its_own_it_is_kept_for_the_user(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert load(monkeypatch)(2.0) == USUAL
    assert len(list(tmp_path.rglob(f"*{kept.SUFFIX}"))) == 2
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(kept, "__file__", str(tmp_path / "package" / "core" / "kept.py"))
    assert load(monkeypatch)(2.0) == USUAL
    assert len(list((tmp_path / "package" / "__pycache__").iterdir())) == 2


def test_what_was_not_used_for_long_goes_first(place, monkeypatch):
    load(monkeypatch)(2.0)
    past = time.time() - 10 * kept.DAY
    for path in place.iterdir():
        os.utime(path, (past, past))
    load(monkeypatch)(2.0)  # looks at the outer one only
    (place / ".dead.part").touch()
    os.utime(place / ".dead.part", (past, past))
    (place / ".writing.part").touch()
    monkeypatch.setattr(kept, "LIMIT", sum(path.stat().st_size for path in place.iterdir()) - 1)
    kept._prune.__wrapped__(place)
    assert [name.split("-")[0] for name in files(place)] == [".writing.part", "caller.outer"]


# ---------------------------------------------------------------------- processes


def compile_both(monkeypatch, kind, pause):
    """In a child: compile for a type, at some moment."""
    time.sleep(pause)
    kernel = load(monkeypatch)
    assert kernel(kind(2.0)) == USUAL


def in_child(task, *args):
    number = os.fork()
    if number == 0:
        code = 1
        try:
            task(*args)
            code = 0
        finally:
            os._exit(code)
    return number


def interleave(place, monkeypatch, k):
    """Two processes at once, for two types or the same one; one of them may be killed on its way."""
    deck = random.Random(k)
    types_of = deck.choice([(float, np.float32), (float, float), (np.float32, np.float32)])
    children = [in_child(compile_both, monkeypatch, kind, deck.uniform(0.0, 0.05)) for kind in types_of]
    killed = deck.random() < 0.3
    if killed:
        time.sleep(deck.uniform(0.0, 0.5))
        os.kill(children[0], signal.SIGKILL)
    codes = [os.waitpid(child, 0)[1] for child in children]
    assert codes[killed:] == [0] * (2 - killed)
    for kind in types_of[killed:]:
        kernel = load(monkeypatch)
        assert (kernel(kind(2.0)), hits(kernel)) == (USUAL, 1)
    if not killed:
        assert not list(place.glob(".*"))
        assert len(files(place)) == 2 * len(set(types_of))
    assert load(monkeypatch)(types_of[0](2.0)) == USUAL


@pytest.mark.parametrize("k", range(3))
def test_processes_at_once(place, monkeypatch, k):
    interleave(place, monkeypatch, k)


@pytest.mark.fuzz
@pytest.mark.parametrize("k", range(3, 103))
def test_many_processes_at_once(place, monkeypatch, k):
    interleave(place, monkeypatch, k)


def digest_of_texts():
    """Of all kernels of the package."""
    from tests.contract.test_same_bits import compiled

    found = hashlib.sha256()
    for kernel in compiled():
        found.update(str(Content(kernel, ())).encode())
    return found.hexdigest()


def test_the_text_of_a_kernel_is_the_same_in_every_process():
    """Sets have another order in each."""
    script = "from tests.core.test_kept import digest_of_texts; print(digest_of_texts())"
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    command = [sys.executable, "-c", script]
    there = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert there.strip() == digest_of_texts()
