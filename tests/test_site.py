"""The built site in a browser, page by page, light and dark, on a screen and on a phone; `make
site` builds it first.

Nothing is asked for but files of the site, nothing is wider than the window, and axe finds nothing.
"""

from pathlib import Path

import pytest

from axe import violations
from browser import Visit, chromium

SITE = Path(__file__).parent.parent / "docs/_build/site"
PAGES = sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)
SCREEN, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def test_the_site_is_built():
    assert SITE / "index.html" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SITE).as_posix())
@pytest.mark.parametrize("colors", ["light", "dark"])
@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
def test_page(browser, page, colors, size):
    with Visit(browser, page, viewport=size, color_scheme=colors) as visit:
        assert visit.overflow() <= 0
        assert not visit.said
        assert all(url.startswith((SITE.as_uri(), "data:")) for url in visit.asked)
        assert violations(visit.page) == []


def test_formulas_have_their_font(browser):
    with Visit(browser, SITE / "mathematics.html") as visit:
        assert visit.page.evaluate(
            "document.fonts.ready.then(() => document.fonts.check('16px Formulas'))"
        )
        assert any(url.endswith("formulas.woff") for url in visit.asked)
