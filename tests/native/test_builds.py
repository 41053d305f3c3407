"""Builds by other compilers, for other processors, with sanitizers, without margins: what they
answer to the same calls.

`make bits` and `make sanitize`: each build takes some minutes of one core; builds stay in `build/`,
and only what changed is compiled again.
"""

import json
import os
import pickle
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import recorded

pytestmark = pytest.mark.builds

ROOT = Path(__file__).parents[2]
X86 = platform.machine() in ("x86_64", "AMD64")
V2, V3 = ("x86-64-v2", "x86-64-v3") if X86 else ("none", "none")
BUILDS = {
    "g++": ("g++", V3, ""),
    "g++ v2": ("g++", V2, ""),
    "g++ -O1": ("g++", V3, "-O1"),
    "clang++": ("clang++", V3, ""),
    "clang++ v2 -O1": ("clang++", V2, "-O1"),
}
"""Compiler, level, options."""
SANITIZED = "-O1;-g1;-fsanitize=address,undefined;-fno-sanitize-recover=all;-DDRMDP_CHECKED"


def built(compiler, level, flags):
    """A build of the routines, and its file."""
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    name = "-".join(
        [
            compiler,
            level,
            *(flag.strip("-").replace("=", "-").replace(",", "-") for flag in flags.split(";")),
        ]
    )
    folder = ROOT / "build" / name.strip("-")
    given = {
        "CMAKE_CXX_COMPILER": compiler,
        "DRMDP_LEVEL": level,
        "DRMDP_FLAGS": flags,
        "Python_EXECUTABLE": sys.executable,
    }
    commands = [
        [
            "cmake",
            "-S",
            ROOT,
            "-B",
            folder,
            "-G",
            "Ninja",
            *(f"-D{name}={value}" for name, value in given.items()),
        ],
        ["cmake", "--build", folder],
    ]
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands:
        run(list(map(str, command)), PATH=tools)
    (module,) = folder.glob("_native.*")
    return module


def run(command, **environment):
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """A file of calls."""
    path = tmp_path_factory.mktemp("calls") / "calls.pickle"
    path.write_bytes(pickle.dumps(recorded.calls_of(40)))
    return path


def digests(module, calls, how="whole", **environment):
    script = str(ROOT / "tests" / "support" / "recorded.py")
    return json.loads(run([sys.executable, script, str(module), str(calls), how], **environment))


@pytest.mark.parametrize("name", list(BUILDS)[1:])
def test_bits_do_not_depend_on_compiler_and_processor(name, calls):
    assert digests(built(*BUILDS[name]), calls) == digests(built(*BUILDS["g++"]), calls)


def test_bits_do_not_depend_on_how_states_are_split(calls):
    module = built(*BUILDS["g++"])
    assert [digests(module, calls, how) for how in recorded.HOW] == [digests(module, calls)] * len(
        recorded.HOW
    )


@pytest.mark.skipif(not X86, reason="contraction needs an instruction that is there")
def test_bits_show_a_contraction(calls):
    """Were products and sums rounded together, every set would show it: the digests are no empty
    words.
    """
    ours, fast = (
        digests(built(*BUILDS["g++"]), calls),
        digests(built("g++", V3, "-ffp-contract=fast"), calls),
    )
    assert not [name for name in ours if name.startswith("sweep") and ours[name] == fast[name]]


def sanitized(module, calls):
    library = run(["g++", "-print-file-name=libasan.so"]).strip()
    return digests(
        module,
        calls,
        LD_PRELOAD=library,
        ASAN_OPTIONS="detect_leaks=0",
        UBSAN_OPTIONS="print_stacktrace=1",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded as Linux does it")
def test_sanitizers_have_nothing_to_report(calls):
    """AddressSanitizer, UndefinedBehaviourSanitizer and views that look at every index; a report
    ends the process.
    """
    assert sanitized(built("g++", V3, SANITIZED), calls) == digests(built(*BUILDS["g++"]), calls)


OUTSIDE = """
#include "views.hpp"
int main(int n, char**) {
    const double one = 1.0;
    return int(drmdp::View<const double>(&one, 1)[n]);
}
"""


def test_checked_views_see_an_index_outside(tmp_path):
    """The border lets none through: so a program of its own."""
    (tmp_path / "outside.cpp").write_text(OUTSIDE)
    program = str(tmp_path / "outside")
    run(
        [
            "g++",
            "-std=c++17",
            "-DDRMDP_CHECKED",
            f"-I{ROOT / 'native'}",
            str(tmp_path / "outside.cpp"),
            "-o",
            program,
        ]
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode
    assert "expected 0 <= k && k < size_" in done.stderr
