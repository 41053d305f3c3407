"""Every link of the built site to a page, a file or an anchor of its own leads somewhere. Usage:
check_links.py SITE.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Collect."""
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def broken(site):
    """Links that lead nowhere, as lines of text."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    for path, page in sorted(pages.items()):
        for link in page.links:
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            target, anchor = urldefrag(link)
            found = (path.parent / unquote(urlsplit(target).path)).resolve() if target else path
            if not found.exists() or (
                anchor and found in pages and unquote(anchor) not in pages[found].anchors
            ):
                yield f"{path.relative_to(site.resolve())}: {link}"


if __name__ == "__main__":
    lines = list(broken(Path(sys.argv[1])))
    sys.exit("broken links:\n" + "\n".join(lines) if lines else 0)
