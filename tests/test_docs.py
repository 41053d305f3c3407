"""The site at rest: every code block is one that the build executes, and every page can be reached.
`make docs` does the rest.
"""

import ast
import importlib.util
import io
import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import drmdp

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [
    page for page in sorted(DOCS.rglob("*.md")) if page.parent.name not in ("tables", "_parts")
]  # those are parts of a page
NAMES = [page.relative_to(DOCS).as_posix() for page in PAGES]
RUN, PLAIN = (
    {"{code-cell}"},
    {"{toctree}", "{eval-rst}", "{include}", ""},
)  # a block without a language is output, or a command too long to run here


def fences(page):
    """Kind and text of each block, without its options."""
    found = re.findall(
        r"^```(\S*)\n(.*?)^```$", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return [
        (kind, code if kind in PLAIN else re.sub(r"^:\w+: .*\n", "", code, flags=re.MULTILINE))
        for kind, code in found
    ]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_is_executed_and_every_link_leads_somewhere(page):
    text = page.read_text("utf-8")
    kinds = {kind for kind, _ in fences(page)}
    assert kinds <= RUN | PLAIN, "a block of code that nothing runs"
    assert ("file_format: mystnb" in text) == bool(kinds & RUN)
    for kind, code in fences(page):
        if kind in RUN and not code.startswith("%%"):
            ast.parse(code)
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target


DRAWS = re.compile(r"drmdp\.plot\.\w+\(|plt\.subplots|picture")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_picture_says_what_it_shows(page):
    for kind, code in re.findall(
        r"^```(\S*)\n(.*?)^```$", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    ):
        if kind in RUN and DRAWS.search(code):
            assert re.search(
                r'^:mystnb: \{image: \{alt: "[^"]{20,}"\}\}$', code, flags=re.MULTILINE
            ), code


def test_every_page_is_in_the_contents():
    listed = "\n".join(
        body for kind, body in fences(DOCS / "index.md") if kind == "{toctree}"
    ).splitlines()
    patterns = [
        Path(line).with_suffix(".md") for line in listed if line and not line.startswith(":")
    ]
    for name in NAMES:
        assert name == "index.md" or any(Path(name).match(str(pattern)) for pattern in patterns), (
            name
        )


def test_the_reference_names_everything_public():
    text = (DOCS / "api.md").read_text("utf-8")
    for name in set(drmdp.__all__) - {"METHODS", "__version__"}:
        assert re.search(rf"drmdp\.{name}\b", text), name
    for module in (
        drmdp.radius,
        drmdp.instances,
        drmdp.formats,
    ):  # of others, all members are listed
        for name in module.__all__:
            if callable(getattr(module, name)):
                assert re.search(rf"\b{name}\b", text), f"{module.__name__}.{name}"


CALLED = {
    "Model": ["from_functions", "from_events", "policy"],
    "Wasserstein": ["saturation", "with_radius"],
    "Intervals": ["of"],
    "Solution": ["gap", "q_values", "to_dict", "to_frame", "save", "load", "report", "proof"],
    "HorizonSolution": ["gap", "kernel", "to_dict", "to_frame", "save", "load", "report"],
}


@pytest.mark.parametrize("owner", CALLED)
def test_the_reference_names_what_is_asked_of_a_result(owner):
    text = (DOCS / "api.md").read_text("utf-8")
    listed = (
        re.search(rf"autoclass:: drmdp\.{owner}\n   :members:(.*)", text)
        .group(1)
        .replace(",", "")
        .split()
    )
    for name in CALLED[owner]:
        assert hasattr(getattr(drmdp, owner), name)
        assert not listed or name in listed, name  # without names, all members are shown


def test_the_first_answer_takes_less_than_twenty_lines():
    first = next(code for kind, code in fences(DOCS / "quickstart.md") if kind in RUN)
    assert "drmdp.solve" in first
    assert len(first.splitlines()) < 20


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_follow_the_page():
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1], color="#0072B2", label="a")
    stream = io.StringIO()
    figure.savefig(stream, format="svg")
    text = script("pages").inline(stream.getvalue(), 'rises "fast"', "p0")
    assert text.startswith(
        '<svg class="picture" role="img" aria-label="rises &quot;fast&quot;" style="width: 216pt"'
    )
    assert "#ffffff" not in text
    assert "#000000" not in text
    assert "currentColor" in text
    assert "#0072b2" in text
    named = set(re.findall(r'\sid="([^"]+)"', text))
    assert all(name.startswith("p0-") for name in named)
    assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)) <= {
        pair for name in named for pair in ((name, ""), ("", name))
    }


def test_broken_links_of_a_site_are_found(tmp_path):
    module = script("check_links")
    (tmp_path / "a.html").write_text(
        '<h1 id="x"></h1><a href="b.html#y">ok</a><a href="#x">ok</a><a href="https://a.example/">out</a>'
    )
    (tmp_path / "b.html").write_text(
        '<h1 id="y"></h1><a href="a.html#z">no</a><a href="c.html">no</a><img src="d.png">'
    )
    assert list(module.broken(tmp_path)) == ["b.html: a.html#z", "b.html: c.html", "b.html: d.png"]


def test_short_code_stays_on_one_line_and_commands_are_shown_alone():
    pages = script("pages")
    code = '<code class="docutils literal notranslate"><span class="pre">{}</span></code>'
    assert pages.SHORT.sub(r'<code class="short \1', code.format("--help")).startswith(
        '<code class="short docutils'
    )
    assert pages.SHORT.sub(r'<code class="short \1', code.format("x" * 29)) == code.format("x" * 29)
    assert pages.SHORT.sub(r'<code class="short \1', code.format("&lt;" * 20)) != code.format(
        "&lt;" * 20
    )
    shown = '<pre><span></span><span class="o">%%</span><span class="k">bash</span> --out shown --err told\ndrmdp solve\n</pre>'
    ruled = "<pre><span></span>radius\n────────\n0.1</pre>"
    assert (
        pages.RULED.sub("<pre class>", f"<pre>no</pre>{ruled}")
        == f"<pre>no</pre>{ruled.replace('<pre>', '<pre class>')}"
    )
    assert pages.COMMAND.sub(r"\1", shown) == "<pre><span></span>drmdp solve\n</pre>"
