"""Imports point one way, and `import drmdp` is quick and light."""

import ast
import graphlib
import json
import os
import pickle
import re
import subprocess
import sys
import types
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import drmdp
from decks import SETS

ROOT = Path(drmdp.__file__).parent
LAYERS = (
    {"errors", "_typing", "_version"},
    {"ui"},
    {"io"},
    {"core"},
    {"solution", "model", "sets"},
    {"instances"},
    {"layout"},
    {"certificate", "prox"},
    {"operators", "proof"},
    {"criteria"},
    {"solvers"},
    {"api"},
    {"formats", "estimation", "radius", "policies"},
    {"cluster"},
    {"plot"},
    {"report"},
    {"cli"},
    {"__main__"},
)
"""Lowest first; a part imports from lower layers and its own, `__init__` from all."""
UPWARDS = {
    ("solution.results", "report"),
    ("solution.plan", "report"),
    ("solution.results", "policies.values"),
    ("solution.results", "policies.radius_prices"),
    ("solution.results", "proof"),
    ("solution.rows", "policies.single_kernels"),
    ("api", "cluster"),
    ("api", "cluster.solve"),
    ("solution.results", "cluster.results"),
}
"""Imports against the layers, when called and only then: `solution.report(path)` hands the solution
to the page, `solve` a path to workers.
"""
NEVER = {
    "ui": {"io", "core"},
    "io": {"core"},
    "core": {"model", "sets", "solution", "layout"},
    "layout": {"certificate", "operators", "prox", "solvers", "api"},
    "certificate": {"operators", "prox", "solvers", "api"},
    "prox": {"operators", "certificate", "solvers", "api"},
    "operators": {"solvers", "api"},
    "solution": {"model", "operators", "solvers"},
    "formats": {"operators", "certificate", "solvers", "api"},
    "instances": {"operators", "solvers", "api"},
}
"""What a part must not reach even through others."""
HEAVY = {
    "scipy.optimize",
    "scipy.linalg",
    "jinja2",
    "clarabel",
    "highspy",
    "cvxpy",
    "matplotlib",
    "click",
    "polars",
    "pandas",
    "gymnasium",
    "quantecon",
}


def module_of(path):
    """Dotted name without the package: `src/drmdp/operators/conic.py` is `operators.conic`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def for_types(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"


@cache
def imports(module, lazy=True):
    """Find the modules of the package that a module imports; without `lazy`, only at its top level.
    Imports for hints are none.
    """
    tree = ast.parse(MODULES[module].read_text())
    hints = {id(node) for outer in ast.walk(tree) if for_types(outer) for node in ast.walk(outer)}
    found = set()
    for node in ast.walk(tree) if lazy else tree.body:
        if id(node) in hints:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import in line {node.lineno}"
            longer = [f"{node.module}.{alias.name}" for alias in node.names]
            known = [
                name == "drmdp._native" or name.removeprefix("drmdp.") in MODULES for name in longer
            ]
            names = [
                name if is_module else node.module
                for name, is_module in zip(longer, known, strict=True)
            ]
        else:
            continue
        found |= {name.removeprefix("drmdp.") for name in names if name.startswith("drmdp.")}
        assert "drmdp" not in names or module == "", (
            f"{module}: imports from the package as a whole"
        )
    return {other for other in found if (lazy is False) or (module, other) not in UPWARDS} - {
        module,
        "_native",
    }


def part(module):
    return module.split(".")[0]


def layer(module):
    return next(k for k, parts in enumerate(LAYERS) if part(module) in parts)


def test_the_architecture_page_has_the_layers():
    text = (ROOT.parents[1] / "docs" / "architecture.md").read_text()
    (line,) = [words for words in text.split("\n\n") if words.startswith("`errors, _typing` ←")]
    line = " ".join(line.split())
    shown = [set(names.split(", ")) for names in re.findall("`(.*?)`", line)]
    assert shown == [layer for own in LAYERS if (layer := own - {"_version", "__main__"})]


def test_every_part_has_a_layer():
    unplaced = {part(module) for module in MODULES if module} - set().union(*LAYERS)
    assert not unplaced, f"give {unplaced} a place in LAYERS"


def test_proofs_share_with_solvers_what_the_page_on_certificates_says():
    used = set().union(*(imports(module) for module in MODULES if part(module) == "certificate"))
    text = (ROOT.parents[1] / "docs" / "certificates.md").read_text()
    (line,) = [
        words for words in text.split("\n\n") if words.startswith("**Shared with the solver**")
    ]
    shown = set(re.findall("`drmdp[.](.*?)`", line))
    assert {other for other in used if part(other) in ("core", "layout")} == {
        name for name in shown if "." in name
    }
    assert {part(other) for other in used} - {"certificate"} == {part(name) for name in shown} | {
        "errors",
        "_typing",
    }


@pytest.mark.parametrize("module", [module for module in MODULES if module])
def test_imports_point_downwards(module):
    upwards = {other for other in imports(module) if layer(other) > layer(module)}
    assert not upwards, f"{module} imports {upwards}"


def test_no_cycles_at_the_top_level():
    graph = {module: imports(module, lazy=False) for module in MODULES if module}
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    assert order.index("errors") < order.index("model") < order.index("api")


@pytest.mark.parametrize("start", NEVER)
def test_what_is_never_reached(start):
    reached, fresh = set(), {module for module in MODULES if part(module) == start}
    while fresh:
        reached |= fresh
        fresh = set().union(*map(imports, fresh)) - reached
    assert not {part(module) for module in reached} & NEVER[start]


def test_no_two_parts_import_each_other():
    """Lazy imports count; only what UPWARDS declares is left out."""
    parts = {part(module) for module in MODULES if module}
    graph = {one: set() for one in parts}
    for module in MODULES:
        if module:
            graph[part(module)] |= {part(other) for other in imports(module)} - {part(module)}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


def test_only_the_command_line_knows_the_experiments():
    """It takes two verbs from `drmdp_lab`, which import what they run when they are called."""
    lab = re.compile(r"^\s*(from|import) (drmdp_lab[\w.]*)", re.M)
    knows = {module: lab.findall(path.read_text()) for module, path in MODULES.items()}
    assert {module: found for module, found in knows.items() if found} == {
        "cli": [("from", "drmdp_lab.verbs")]
    }
    tree = ast.parse((ROOT.parent / "drmdp_lab" / "verbs.py").read_text())
    assert not [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and "drmdp_lab" in node.module
    ]


PROBE = """
import json, sys
{}
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(statement):
    """What a process of its own has imported then."""
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement)], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout))


def test_importing_the_package_brings_nothing():
    found = modules_after("import drmdp")
    assert not {"numpy", "numba", "scipy"} & found
    assert {name for name in found if name.startswith("drmdp")} == {"drmdp"}


def test_all_its_names_are_light():
    assert not HEAVY & modules_after("from drmdp import *")


def test_the_first_help_needs_no_registry():
    """Names of methods and sets are looked up when they are needed."""
    found = modules_after(
        "from click.testing import CliRunner; from drmdp.cli import main; "
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0"
    )
    homes = {"solvers.registry", "sets.registry", "operators.operator", "formats", "instances"}
    assert not {f"drmdp.{home}" for home in homes} & found


def test_every_name_is_what_its_home_has():
    for name in drmdp.__all__:
        found = getattr(drmdp, name)
        if isinstance(found, types.ModuleType):
            assert found is sys.modules[f"drmdp.{name}"]
        else:
            assert found is getattr(sys.modules[drmdp._HOME_OF[name]], name)
    assert drmdp.errors is sys.modules["drmdp.errors"]
    with pytest.raises(AttributeError, match="module 'drmdp' has no attribute 'sovle'"):
        _ = drmdp.sovle


FIRST = """
import importlib, os
import scipy.sparse
for first in ("drmdp.operators.exact", "drmdp.estimation.pipeline", "drmdp.cluster", "drmdp.api"):
    if not os.fork():
        importlib.import_module(first)
        import drmdp
        import drmdp.radius
        assert callable(drmdp.bellman) and callable(drmdp.estimate) and drmdp.radius.path, first
        os._exit(0)
    assert os.wait()[1] == 0, first
"""


def test_parts_may_be_imported_before_the_package():
    """Whatever is imported first, in a process that has not imported the package."""
    modules_after(FIRST)


FRESH = """
import os, pickle, sys
import scipy.sparse
with open(sys.argv[1], "rb") as stream:
    given = pickle.load(stream)
for name, model, ball in given:
    if not os.fork():
        import drmdp
        found = drmdp.solve(model, ball)
        found.kernel
        drmdp.evaluate(model, ball, found.policy)
        if "numba" in sys.modules or "llvmlite" in sys.modules:
            os.write(1, (name + "\\n").encode())
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_no_set_needs_numba(tmp_path):
    """Each in a process that has solved nothing before."""
    rng = np.random.default_rng(0)
    model = drmdp.Model(
        rng.dirichlet(np.ones(4), (2, 4, 2)), costs=rng.random((4, 2)), discount=0.8
    )
    given = [(name, model, own.make(model, 0.2, "observed")) for name, own in SETS.items()]
    (tmp_path / "given").write_bytes(pickle.dumps(given))
    run = subprocess.run(
        [sys.executable, "-c", FRESH, tmp_path / "given"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
