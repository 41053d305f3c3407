"""What a newcomer does: install a wheel into an empty environment, follow the README line by line,
open the page.

The whole walk downloads and compiles, so it runs apart (`make walk`); that the README works and the
wheel is complete is in the default suite.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import drmdp
from browser import Visit, chromium

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TOOLS = [*PROJECT["build-system"]["requires"], "build", "cmake", "ninja"]


def blocks(language, text=README):
    """Blocks of code of a language, in order."""
    fences = re.findall(r"^```(\S*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [code for kind, code in fences if kind == language]


def commands():
    """Lines of the page about the command line that call `drmdp`, as words; what takes minutes,
    `bench` and `reproduce`, is left out.
    """
    page = (ROOT / "docs" / "command_line.md").read_text("utf-8")
    lines = "".join(blocks("", page)).replace("\\\n", " ").splitlines()
    return [
        shlex.split(line, comments=True)
        for line in lines
        if re.match(r"drmdp (?!bench|reproduce)", line)
    ]


def write_log(path):
    """A log as the README describes it: a row per bus and month, mileage grows until the engine is
    replaced.
    """
    rng = np.random.default_rng(0)
    lines = ["bus,month,state,replace"]
    for bus in range(4):
        state = 0
        for month in range(60):
            replace = int(state >= 3 + bus % 3)
            lines.append(f"B{bus},{month},{state},{replace}")
            state = 0 if replace else min(state + int(rng.integers(0, 3)), 7)
    path.write_text("\n".join(lines))


CLEAN = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DRMDP"))
}


def build(folder, *options, python=sys.executable):
    """A wheel, or what the options say; without a look at the network where everything is there."""
    command = [python, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, *options]
    subprocess.run(
        list(map(str, command)), check=True, capture_output=True, env=CLEAN | {"DRMDP_LEVEL": "all"}
    )
    (made,) = folder.iterdir()
    return made


def test_the_readme_is_short_and_names_what_there_is():
    assert {words[1] for words in commands()} == {
        "instance",
        "solve",
        "evaluate",
        "estimate",
        "sweep",
    }
    assert len(README) <= 8000
    assert all(len(line) <= 100 for line in README.splitlines() if not line.startswith("|"))
    assert re.match(r"# drmdp\n\n```\nmake demo .*\nmake test .*\n```\n", README)
    code, paper = blocks("python")
    assert len(code.splitlines()) == 6
    assert len(paper.splitlines()) == 2
    for target in re.findall(r"\]\(\s*([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert (
        {"demo", "test", "docs"}
        <= set(re.findall(r"(?:^|`)make (\w+)", README, flags=re.MULTILINE))
        <= known
    )


def test_the_changelog_is_short():
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    assert len([line for line in lines if line.startswith("## ")]) == 1
    assert len(lines) <= 40
    assert all(len(line) <= 100 for line in lines)


def test_the_code_of_the_readme_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, (code, paper) = {}, blocks("python")
    exec(compile(code, "README.md", "exec"), names)
    said, printed = (
        " ".join(text.split()) for text in (blocks("text")[0], capsys.readouterr().out)
    )
    assert stable(said) == stable(printed)
    assert names["solution"].gap <= 1e-6 * names["solution"].scale
    assert (tmp_path / "report.html").stat().st_size > 50_000
    exec(
        compile(paper.replace("drmdp.solve", "first_order = drmdp.solve"), "README.md", "exec"),
        names,
    )
    assert names["first_order"].status == "solved"


def stable(text):
    """Text without what rounding and load decide: digits of gaps, and seconds."""
    return re.sub(r"\d(?:\.\d+)?e-\d+|[\d.e-]+ s(?= method)", "#", text)


def test_what_the_readme_says_of_the_reservoir_is_so():
    model = drmdp.instances.reservoir(n_kernels=8, seed=1)
    unseen = drmdp.instances.reservoir(n_kernels=200, seed=1000, months=None)
    point = drmdp.Wasserstein(0)
    ambiguity = drmdp.Wasserstein(drmdp.radius.cross_validate(model, point).radius)
    found = (
        drmdp.solve(model, point),
        drmdp.policies.deterministic(model, ambiguity, drmdp.solve(model, ambiguity)),
    )
    costs = [
        drmdp.policies.values(unseen, point, one.policy).by_kernel @ unseen.initial for one in found
    ]
    assert f"costs {1 - costs[1].mean() / costs[0].mean():.0%} less".replace("%", " %") in README
    bad = [np.quantile(one, 0.9) for one in costs]
    assert f"{1 - bad[1] / bad[0]:.0%} less in one bad year of ten".replace("%", " %") in README


def test_the_wheel_is_complete(tmp_path):
    """But for what is compiled, which the walk looks at."""
    with zipfile.ZipFile(
        build(tmp_path, "--wheel", "-Cwheel.cmake=false", "-Cwheel.py-api=py3")
    ) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = [
        path
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".py", ".html") or path.name == "py.typed"
    ]
    assert {path.relative_to(ROOT / "src").as_posix() for path in sources} <= names
    assert "drmdp/report/page.html" in names
    assert all(name.startswith(("drmdp/", "drmdp_check/", "drmdp_lab/")) for name in names)


def environment(python, folder, *packages):
    """An environment of its own with packages; the folder of its programs."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run(
        [programs / "python", "-m", "pip", "install", "--quiet", *map(str, packages)], check=True
    )
    return programs


def test_the_source_is_complete(tmp_path):
    """What is followed by git, but for what only its host reads."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("this is no clone")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    with tarfile.open(build(tmp_path, "--sdist")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    followed = {
        name
        for name in listed.splitlines()
        if (ROOT / name).exists() and not name.startswith((".ci/", ".github/"))
    }
    assert followed <= names
    assert not [name for name in names if name.endswith((".so", ".pyd"))]


def interpreter(version):
    """A Python of a version that runs: this one, one on the path, or one that pyenv keeps without
    putting it there; None if there is none.
    """
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    tried = [
        sys.executable,
        shutil.which(f"python{version}"),
        *sorted(kept.glob(f"{version}.*/bin/python{version}")),
    ]
    for python in filter(None, tried):
        shown = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
        if shown.returncode == 0 and shown.stdout.startswith(f"Python {version}."):
            return str(python)
    return None


@pytest.mark.skipif(os.name == "nt", reason="a program is written as a script of the shell")
def test_a_python_is_found_that_only_pyenv_has(tmp_path, monkeypatch):
    folder = tmp_path / "versions" / "3.99.1" / "bin"
    folder.mkdir(parents=True)
    python = folder / "python3.99"
    python.write_text("#!/bin/sh\necho Python 3.99.1\n")
    python.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert interpreter("3.99") == str(python)
    assert interpreter("3.98") is None
    python.write_text("#!/bin/sh\nexit 127\n")  # as a shim of another version does
    assert interpreter("3.99") is None


@pytest.mark.walk
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_walk(tmp_path, version):
    """An empty environment, an empty directory, the README."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version}")
    tools = environment(python, tmp_path / "builder", *TOOLS)
    wheel = build(tmp_path / "dist", "--wheel", python=tools / "python")
    levels = re.findall(r"drmdp/_native_v\d", " ".join(zipfile.ZipFile(wheel).namelist()))
    assert levels or not platform.machine().startswith(("x86", "AMD")), (
        "a module for each level of processors"
    )
    programs = environment(python, tmp_path / "env", f"{wheel}[report,data]")
    here = tmp_path / "here"
    here.mkdir()

    def run(*words):
        shown = subprocess.run(
            [str(word) for word in words], cwd=here, env=CLEAN, capture_output=True, text=True
        )
        assert shown.returncode == 0, (words, shown.stdout, shown.stderr)
        assert all(re.fullmatch("drmdp: .*…", line) for line in shown.stderr.splitlines()), (
            words,
            shown.stderr,
        )
        return shown.stdout

    where = run(programs / "python", "-c", "import drmdp; print(drmdp.__file__)")
    assert where.startswith(str(tmp_path / "env"))
    (here / "lines.py").write_text(blocks("python")[0])
    assert "Solution: solved" in run(programs / "python", "lines.py")
    first = (here / "report.html").read_bytes()
    write_log(here / "log.csv")
    for command in commands():
        run(programs / command[0], *command[1:])
    assert (here / "report.html").read_bytes() != first
    assert {"years.npz", "solution.npz", "buses.npz"} <= {path.name for path in here.iterdir()}
    with chromium() as browser, Visit(browser, here / "report.html") as visit:
        assert visit.quiet, (visit.said, visit.asked, visit.tried)
        assert visit.page.locator("svg").count() == 7
        assert "This is proved" in visit.page.locator(".status").inner_text()
