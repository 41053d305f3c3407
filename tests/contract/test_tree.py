"""The map shows the tree, and the tree keeps its measures."""

import ast
import runpy
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent.name != "drmdp_check")  # one file, by design
MOST_ARGUMENTS, MOST_LINES, LONGEST_FILE, TOP = 9, 60, 450, 27
WIDE = {}
"""Compiled functions with more arguments, and how many they have. This list only gets shorter."""
LONG = {}
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


@cache
def is_compiled(node):
    return any("njit" in ast.unparse(decorator) for decorator in node.decorator_list)


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


def test_compiled_functions_have_few_arguments():
    wide = {name: len(node.args.args) for name, node in functions() if is_compiled(node)}
    assert {name: n for name, n in wide.items() if n > MOST_ARGUMENTS} == WIDE


def test_functions_fit_on_a_screen():
    lines = {name: node.end_lineno - body(node)[0].lineno + 1 for name, node in functions()}
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == LONG


def test_files_are_short():
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in FILES}
    assert not {name: n for name, n in lengths.items() if n > LONGEST_FILE}


RETIRED = {"own", "found", "given", "made", "more", "most", "rest", "room", "one"}


def test_signatures_of_compiled_functions_say_what_they_take():
    for name, node in functions():
        if is_compiled(node):
            assert not {argument.arg for argument in node.args.args} & RETIRED, name


@pytest.mark.parametrize("word", ["reads", "fills", "returns"])
def test_contracts_of_compiled_functions_name_their_arguments(word):
    """A line "reads x, y (N,)" in a docstring names parameters only."""
    for name, node in functions():
        for line in (ast.get_docstring(node) or "").splitlines() if is_compiled(node) else ():
            head, _, text = line.strip().partition(" ")
            if head == word and word != "returns":
                arguments = {argument.arg for argument in node.args.args}
                names = {part.split("(")[0].split(":")[0].split(".")[0].split("[")[0].strip() for part in _parts(text)}
                assert not {one for one in names if one.isidentifier()} - arguments, f"{name}: {line}"


CONTRACTED = tuple(f"drmdp/{part}/" for part in ("bellman", "certificate", "layout", "prox", "solvers/first_order"))
SILENT = set()
"""Compiled functions that do not say what they read, fill or return. This list only gets shorter."""


def test_compiled_functions_have_contracts():
    """Lines "reads", "fills", "returns"; for up to three arguments a sentence will do."""
    silent = {
        name for name, node in functions() if name.startswith(CONTRACTED) and is_compiled(node) and not _says(node)
    }
    assert silent == SILENT


def _says(node):
    lines = (ast.get_docstring(node) or "").splitlines()
    if any(line.split(" ")[0] in {"reads", "fills", "returns"} for line in lines):
        return True
    return len(lines) == 1 and len(node.args.args) <= 3


def _parts(text):
    """Pieces of a list, commas in brackets left alone."""
    depth, piece = 0, ""
    for mark in text.split(":")[0]:
        depth += (mark in "([") - (mark in ")]")
        if mark in ",;" and depth == 0:
            yield piece.strip()
            piece = ""
        else:
            piece += mark
    yield piece.strip()
