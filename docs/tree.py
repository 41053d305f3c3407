"""Draw the tree of the package from the first sentence of every module and header: `python docs/tree.py` writes it into architecture.md."""

import ast
from itertools import takewhile
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).parent.parent / "src"
PAGE = Path(__file__).parent / "architecture.md"
FOLDERS = {
    "native": "The inner loops, in C++: the module `drmdp._native`",
    "bind": "What Python calls: arrays are checked here",
    "judge": "Proofs, which share data and views with the rest, nothing else",
    "rows": "One row of a set: the best one at a price, and what it costs",
    "solve": "One state, or all its pairs: a file for each grouping",
    "prox": "Projections and steps of first-order methods",
}
WIDTH = 92  # what a page shows without being scrolled
BEGIN, END = "<!-- tree: `python docs/tree.py` -->\n", "<!-- end of tree -->\n"


def sentence(path):
    """First sentence of a module's docstring, as it stands there."""
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text, f"{path}: no docstring"
    return first(text)


def first(text):
    """The first sentence of a text."""
    words = " ".join(text.split("\n\n")[0].split())
    end = words.find(". ")
    return words[:end] if end > 0 else words.rstrip(".").rstrip(":")


def compiled(folder, depth):
    """One line for each header of C++, and for other files that say what they are."""
    for path in sorted(path for path in folder.iterdir() if path.suffix in (".hpp", ".cpp")):
        head = [
            line[2:].strip() for line in takewhile(lambda line: line.startswith("//"), path.read_text().splitlines())
        ]
        if head:
            yield line(path.name, depth, first("\n".join(head)))
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield ""
        yield line(f"{path.name}/", depth, FOLDERS.get(path.name, ""))
        yield from compiled(path, depth + 1)


def line(name, depth, words):
    """A name and what it is; long sentences go on below, in their column."""
    head = f"{'  ' * depth}{name:{24 - 2 * depth}} "
    return fill(head + words, WIDTH, subsequent_indent=" " * 25, drop_whitespace=True, break_on_hyphens=False)


def lines(folder, depth):
    """One line for each module and folder below a package."""
    inside = sorted(path for path in folder.iterdir() if path.suffix == ".py" and path.name != "__init__.py")
    for path in inside:
        yield line(path.name, depth, sentence(path))
    for path in sorted(path for path in folder.iterdir() if (path / "__init__.py").exists()):
        yield ""
        yield line(f"{path.name}/", depth, sentence(path / "__init__.py"))
        yield from lines(path, depth + 1)


def tree():
    """The whole tree as text."""
    parts = []
    for package in ("drmdp", "drmdp_check", "drmdp_lab"):
        parts += [line(f"{package}/", 0, sentence(ROOT / package / "__init__.py")), *lines(ROOT / package, 1), ""]
    parts += [line("native/", 0, FOLDERS["native"]), *compiled(ROOT.parent / "native", 1)]
    return "```\n" + "\n".join(parts).rstrip() + "\n```\n"


def written():
    """The page with the tree as it is now."""
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + tree() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(written())
