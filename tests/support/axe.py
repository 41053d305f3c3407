"""What axe-core has to say of a page: the rules of WCAG 2.2, levels A and AA, that a program can
check.

The script is not part of this repository: the package axe-playwright-python holds it.
"""

from functools import cache
from importlib.resources import files

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules that see colours."""
RUN = """async only => {
  const found = await axe.run(document, { runOnly: only, resultTypes: ["violations"] });
  return found.violations.flatMap(rule => rule.nodes.map(node => `${rule.id}: ${rule.help}: ${node.html.slice(0, 200)}`));
}"""


def violations(page):
    """A line for each element of an open page, with scripts enabled, that breaks a rule; the page's
    own policy does not matter.
    """
    page.evaluate(script())
    return page.evaluate(RUN, {"type": "tag", "values": TAGS})


def violations_in_the_dark(page):
    """The same once the page is dark, of the rules that may say something else there."""
    page.emulate_media(color_scheme="dark")
    page.evaluate(script())
    return page.evaluate(RUN, {"type": "rule", "values": COLOURS})


@cache
def script():
    """The source of axe-core."""
    return (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
