"""The map shows the tree, and the tree keeps its measures."""

import ast
import runpy
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
FILES = sorted(SOURCE.rglob("*.py"))
CHECKER = SOURCE / "drmdp_check" / "__main__.py"  # one file, by design
MOST_LINES, LONGEST_FILE, TOP = 60, 550, 29
LONG = {
    "drmdp/api.py:solve": 61,
    "drmdp/policies/kernel_sensitivity.py:sensitivity": 62,
    "drmdp_lab/bench/panels.py:plans": 84,
}
"""Functions with more lines, and how many they have. This list only gets shorter."""


@cache
def functions():
    """Every function of the sources by its place, read once."""
    return [
        (f"{path.relative_to(SOURCE)}:{node.name}", node)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]


def body(node):
    """A function without its docstring."""
    documented = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
    return node.body[1:] if documented and len(node.body) > 1 else node.body


def test_the_page_shows_the_tree():
    tree = runpy.run_path(str(ROOT / "docs" / "tree.py"))
    assert tree["PAGE"].read_text() == tree["written"](), "run `python docs/tree.py`"


def test_the_top_is_small():
    entries = [
        path
        for path in (SOURCE / "drmdp").iterdir()
        if path.name != "__pycache__" and not path.name.startswith("_native")
    ]
    assert len(entries) <= TOP


def test_functions_fit_on_a_screen():
    lines = {name: node.end_lineno - body(node)[0].lineno + 1 for name, node in functions()}
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == LONG


def test_files_are_short():
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text().splitlines())
        for path in FILES
        if path != CHECKER
    }
    assert not {name: n for name, n in lengths.items() if n > LONGEST_FILE}
