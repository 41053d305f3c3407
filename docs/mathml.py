"""Formulas as MathML, written when the site is built: browsers show it without a script, and without a network."""

from docutils import nodes
from latex2mathml.converter import convert


def inline(translator, node):
    """A formula in a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(translator, node):
    """A formula on its own."""
    translator.body.append(f'<div class="math">{convert(node.astext().strip(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app):
    """Register as a renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
