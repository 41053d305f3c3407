"""Write the tree of both languages into architecture.md: `python docs/tree.py`.

A line for each folder, what is in it, and below it the names of its modules or headers.
"""

import ast
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).parent.parent
PAGE = Path(__file__).parent / "architecture.md"
NATIVE = {
    "native": "The inner loops, in C++: the module `drmdp._native`",
    "native/bind": "What Python calls: arrays are checked here",
    "native/judge": "Proofs, which share data and views with the rest, nothing else",
    "native/judge/rows": "What proves one row of a set",
    "native/rows": "One row of a set: the best one at a price, and what it costs",
    "native/solve": "One state, or all its pairs: a file for each grouping",
    "native/prox": "Projections and steps of first-order methods",
}
WIDTH, COLUMN = 100, 26
BEGIN, END = "<!-- tree: `python docs/tree.py` -->\n", "<!-- end of tree -->\n"


def sentence(path):
    """First sentence of a module's docstring, as it stands there."""
    words = " ".join(
        (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split()
    )
    assert words, f"{path}: no docstring"
    end = words.find(". ")
    return words[:end] if end > 0 else words.rstrip(".").rstrip(":")


def entry(folder, depth, words, names):
    """A folder and what it is; the names of its files below, in the column of the words."""
    head = f"{'  ' * depth}{folder.name}/"
    yield fill(f"{head:{COLUMN - 1}} {words}", WIDTH, subsequent_indent=" " * COLUMN)
    if names:
        yield fill(
            " ".join(names),
            WIDTH,
            initial_indent=" " * COLUMN,
            subsequent_indent=" " * COLUMN,
            break_on_hyphens=False,
        )


def package(folder, depth=0):
    """A package of Python and those inside it."""
    names = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    yield from entry(folder, depth, sentence(folder / "__init__.py"), names)
    for inside in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield from package(inside, depth + 1)


def compiled(folder, depth=0):
    """A folder of C++ and those inside it."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix in (".hpp", ".cpp"))
    yield from entry(folder, depth, NATIVE[str(folder.relative_to(ROOT))], names)
    for inside in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield from compiled(inside, depth + 1)


def tree():
    """The whole tree as text."""
    lines = [
        line
        for name in ("drmdp", "drmdp_check", "drmdp_lab")
        for line in package(ROOT / "src" / name)
    ]
    return "```\n" + "\n".join([*lines, *compiled(ROOT / "native")]) + "\n```\n"


def written():
    """The page with the tree as it is now."""
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + tree() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(written())
