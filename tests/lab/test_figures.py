"""Figures of the pages are those of the rows, to the printed digits; others are refused."""

import runpy
from pathlib import Path

import pytest

from drmdp_lab.bench import TABLES, pages, saved

FIGURES = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "figures.py"))
ROWS = FIGURES["read"]()


def page_text(page):
    return (FIGURES["DOCS"] / page).read_text("utf-8")


@pytest.mark.parametrize("page", FIGURES["PAGES"])
def test_sentences_say_what_the_rows_say(page):
    text = page_text(page)
    assert FIGURES["filled"](page, text, ROWS) == text, "run `python docs/figures.py`"


@pytest.mark.parametrize("page", FIGURES["PAGES"])
def test_no_sentence_has_a_figure_that_no_row_has(page):
    assert not FIGURES["unbacked"](page, page_text(page))


def test_tables_are_made_from_the_rows():
    folder = FIGURES["TABLES"]
    found = {path.stem: path.read_text("utf-8") for path in folder.glob("*.md")}
    assert found == pages.made(ROWS), "run `python docs/figures.py`"


def test_every_table_is_shown_and_every_one_shown_is_there():
    shown = {
        name
        for page in FIGURES["PAGES"]
        for name in pages.TABLES
        if f"performance/tables/{name}.md" in page_text(page)
    }
    assert shown == set(pages.TABLES)


@pytest.mark.parametrize(
    "figure",
    [
        "3.2 ms",
        "14 s",
        "6,059 s",
        ".5 s",
        "1.3 times",
        "40 %",
        "7×",
        "8 CPU seconds",
        ".13 of our",
    ],
)
def test_figures_without_a_row_are_found(figure):
    found = FIGURES["unbacked"]("performance.md", f"It took {figure} here.")
    assert [text.strip() for text in found] == [figure]


@pytest.mark.parametrize(
    "text", ["1.3 states", "v1.2 s", "a grid of 100 ×\n100", "95 % intervals", "`3 s`"]
)
def test_other_numbers_are_not(text):
    assert not FIGURES["unbacked"]("methods.md", text)


def test_a_figure_follows_its_rows(monkeypatch):
    """New rows change the sentence, and none mark it as to be filled."""
    row = {"instance": "all", "seconds": 2.5, "published": 6059.0, "table": "robust-mdps"}
    quote = FIGURES["Quote"]("page", "in {} CPU seconds, not {} s", FIGURES["suite"], 3)
    monkeypatch.setitem(FIGURES["filled"].__globals__, "QUOTES", (quote,))
    text = "All in 9 CPU\nseconds, not 1 s."
    fresh = FIGURES["filled"]("page", text, pages.Rows([row], []))
    assert fresh == "All in 2.5 CPU\nseconds, not 6,060 s."
    assert FIGURES["filled"]("page", fresh, pages.Rows([], [])) == "All in … CPU\nseconds, not … s."
    with pytest.raises(AssertionError, match="0 times"):
        FIGURES["filled"]("page", "Nothing.", pages.Rows([], []))


def test_rows_are_laid_out(tmp_path):
    def made(size, name, exponent):
        return {"table": "growth", "set": name, "size": size, "exponent": exponent, "half": 0.125}

    rows = [made(size, "(l2, 2)", k) for k, size in enumerate(("S", "A", "N", "K"))]
    text = pages.growth(pages.Rows([*rows, made("K", "(l1, 1)", 4)], []))
    assert text.splitlines()[2:] == [
        "| (l2, 2) | 0.00 ± 0.12 | 1.00 ± 0.12 | 2.00 ± 0.12 | 3.00 ± 0.12 |",
        "| (l1, 1) | – | – | – | 4.00 ± 0.12 |",
    ]
    assert all(text == pages.EMPTY for text in pages.made(pages.Rows([], [])).values())


def test_every_row_has_a_key_of_its_own():
    """Else a row of an earlier run would be held against another one."""
    keys = [(row["table"], saved.key_of(row, TABLES[row["table"]])) for row in ROWS.bench]
    assert len(set(keys)) == len(keys)


def test_numbers_are_printed_short():
    told = [pages.digits(value) for value in (0.128, 1.349, 6059.0, 0.0, None)]
    assert told == [".13", "1.3", "6,100", "0", "–"]
