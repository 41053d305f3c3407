"""Draw the tree of the package from the first sentence of every module: `python docs/tree.py` writes it into architecture.md."""

import ast
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).parent.parent / "src"
PAGE = Path(__file__).parent / "architecture.md"
WIDTH = 92  # what a page shows without being scrolled
BEGIN, END = "<!-- tree: `python docs/tree.py` -->\n", "<!-- end of tree -->\n"


def sentence(path):
    """First sentence of a module's docstring, as it stands there."""
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text, f"{path}: no docstring"
    words = " ".join(text.split("\n\n")[0].split())
    end = words.find(". ")
    return words[:end] if end > 0 else words.rstrip(".")


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
    return "```\n" + "\n".join(parts).rstrip() + "\n```\n"


def written():
    """The page with the tree as it is now."""
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + tree() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(written())
