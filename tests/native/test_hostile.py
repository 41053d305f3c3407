"""Whatever Python hands to a routine, it returns or raises: one argument of real calls is something
else, and nothing ends the process.
"""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import hostile
import recorded
from drmdp import _native

SCRIPT = Path(hostile.__file__)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """A file of calls, one of each kind."""
    path = tmp_path_factory.mktemp("calls") / "calls.pickle"
    path.write_bytes(pickle.dumps(hostile.chosen(recorded.calls_of(2, seed=3))))
    return path


def attack(calls, seed, n):
    """How many of n changed calls were refused, in a process of their own."""
    log = calls.with_suffix(f".{seed}")
    command = [
        sys.executable,
        "-W",
        "ignore",
        SCRIPT,
        _native.__file__,
        calls,
        log,
        str(seed),
        str(n),
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{log.read_text().strip()}: {done.stderr[-2000:]}"
    return int(done.stdout.split()[0])


def test_nothing_that_is_handed_over_ends_the_process(calls):
    assert attack(calls, 0, 2000) > 500


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(1, 9))
def test_nothing_ends_the_process_however_often(calls, seed):
    assert attack(calls, seed, 20_000) > 5000
