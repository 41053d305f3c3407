"""Formulas as MathML, written when the site is built: browsers show it without a script, and
without a network.

Their font is STIX Two Math (SIL Open Font License), the letters and signs that formulas need of it;
it is taken from a package and served by the site itself. Bars of norms and sizes are as high as
letters and stand close to them, and primes, which are high already, are not raised.
"""

import re
from importlib.resources import as_file, files
from pathlib import Path

from docutils import nodes
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from latex2mathml.converter import convert

FONT = "formulas.woff"
SIGNS = [
    *(range(0x20, 0x7F), range(0xA0, 0x100), range(0x300, 0x339)),  # Latin, and accents
    *(
        range(0x391, 0x3F7),
        range(0x2010, 0x2058),
        range(0x2100, 0x2140),
    ),  # Greek, primes and dots, ℓ and its like
    *(
        range(0x2190, 0x2200),
        range(0x2200, 0x2300),
        range(0x2308, 0x230C),
        range(0x27E6, 0x27EC),
    ),  # signs
    *(
        range(0x1D434, 0x1D4D0),
        range(0x1D538, 0x1D56C),
        range(0x1D6FC, 0x1D71C),
    ),  # italic, script, doubled, Greek
]

CLOSE = 'stretchy="false" lspace="0" rspace="0"'
BAR = re.compile(r'<mo(?: fence="false")?(?: stretchy="false")?>(&#x02016;|&#x0007C;)</mo>')
PRIME = re.compile(r"<msup>((?:(?!<msup>).)*?)<mi>(&#x02032;)</mi></msup>")


def formula(text, **options):
    """MathML of a formula."""
    found = BAR.sub(rf"<mo {CLOSE}>\1</mo>", convert(text, **options))
    return PRIME.sub(rf"<mrow>\1<mo {CLOSE}>\2</mo></mrow>", found)


def inline(translator, node):
    """A formula in a line."""
    translator.body.append(formula(node.astext()))
    raise nodes.SkipNode


def display(translator, node):
    """A formula on its own: where it is wider than the window, it is scrolled, with the keyboard
    too.
    """
    shown = formula(node.astext().strip(), display="block")
    translator.body.append(
        f'<div class="math" tabindex="0" role="region" aria-label="formula">{shown}</div>'
    )
    raise nodes.SkipNode


def write_font(app, error):
    """Put the font beside the site's style."""
    if error is None and app.builder.format == "html":
        with as_file(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf") as path:
            font = TTFont(path)
        subsetter = Subsetter(Options(hinting=False, layout_features=["ssty", "dtls", "flac"]))
        subsetter.populate(unicodes=[sign for signs in SIGNS for sign in signs])
        subsetter.subset(font)
        font.flavor = "woff"
        font.save(Path(app.outdir, "_static", FONT))


def setup(app):
    """Register as a renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
