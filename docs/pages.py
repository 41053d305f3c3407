"""What Sphinx and its theme leave to do in a page.

Pictures become inline SVG: what is black on a light page is light on a dark one, and colours stay.
Tables that are wider than the window are scrolled, with the keyboard too, also those that were
printed, and the tree of the sources. Captions of the contents are headings, and get a level. Short
code in a sentence stays on one line, and commands are shown without the word that has them run.
"""

import html
import re
from pathlib import Path

WIDE = 600
"""Pictures of more points, two or more side by side, are scrolled where they would be smaller than
`LEGIBLE` of their size.
"""
LEGIBLE = 0.7
SCROLLED = 'tabindex="0" role="region" aria-label="table"'
COMMAND = re.compile(
    r'(<pre><span></span>)<span class="o">%%</span><span class="k">bash</span>[^\n]*\n'
)
RULED = re.compile(r"<pre>(?=(?:(?!</pre>).)*(?:─{8}|__main__\.py))", re.DOTALL)
SHORT = re.compile(
    r'<code class="([^"]*\bliteral\b[^"]*">(?=(?:<[^>]*>|&[a-z]+;|[^<&]){1,28}</code>))'
)
IMAGE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"/]+\.svg)")[^>]*?alt="([^"]*)"[^>]*/?>')


def inline(text, words, prefix):
    """An <svg> of Matplotlib's as a piece of a page; `prefix` keeps its names apart from those of
    others, `words` say what it shows.
    """
    text = text[text.index("<svg") :]
    text = re.sub(
        r"<metadata>.*?</metadata>|<style type=\"text/css\">.*?</style>|<!--.*?-->",
        "",
        text,
        flags=re.DOTALL,
    )
    text = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{prefix}-", text).replace(
        "xlink:href", "href"
    )
    text = re.sub(
        r'(<path d="[^"]*" style="fill: )#ffffff(?=[;"])', r"\1none", text
    )  # a white ground
    text = re.sub(r"#000000\b|(?<=fill: )black\b", "currentColor", text)
    text = re.sub(r"\n\s*", "\n", text)
    size = re.search(r'viewBox="0 0 ([\d.]+)', text)
    width = float(size[1])
    least = f"; min-width: {LEGIBLE * width:.0f}pt" if width > WIDE else ""
    head = f'<svg class="picture" role="img" aria-label="{html.escape(words)}" style="width: {width:.0f}pt{least}" '
    text = re.sub(
        r'<svg (?:xmlns:xlink="[^"]*" )?width="[^"]*" height="[^"]*" ', head, text, count=1
    )
    wide = 'class="wide" tabindex="0" role="region" aria-label="picture"'
    return f"<span {wide}>{text}</span>" if width > WIDE else text


def finish(app, pagename, templatename, context, doctree):
    """Change what the page is made of."""
    paths = {name: Path(app.srcdir, path) for path, name in app.builder.images.items()}
    count = iter(range(10**6))

    def picture(found):
        return inline(
            paths[found[1]].read_text("utf-8"), html.unescape(found[2]), f"picture{next(count)}"
        )

    for part in ("body", "furo_navigation_tree"):
        text = IMAGE.sub(picture, context.get(part) or "")
        text = re.sub(
            r'<div (?=class="(?:table-wrapper|output text_html))', f"<div {SCROLLED} ", text
        )
        text = COMMAND.sub(r"\1", text)
        text = RULED.sub('<pre class="ruled" tabindex="0" role="region" aria-label="output">', text)
        text = SHORT.sub(r'<code class="short \1', text)
        context[part] = text.replace('role="heading">', 'role="heading" aria-level="2">')


def setup(app):
    """Register; after the theme has made its tree."""
    app.connect("html-page-context", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
