"""Pages can be read by everybody: axe finds nothing of level A or AA, and the radius switch is
reached, named and used by keyboard.
"""

import numpy as np
import pytest

import axe
import drmdp
from browser import Visit, chromium


def press():
    """Five conditions of a press, as a log of four of them tells."""
    states = ["new", "good", "fair", "poor", "failed"]
    kernels = np.zeros((4, 5, 2, 5))
    for i, wear in enumerate((0.2, 0.25, 0.3, 0.35)):
        kernels[i, :, 0] = (1 - wear) * np.eye(5) + wear * np.eye(5)[[1, 2, 3, 4, 4]]
        kernels[i, :, 1, 0] = 1
    costs = np.array([[150, 4200], [220, 4200], [410, 4200], [1300, 4200], [6000, 4200.0]])
    return drmdp.Model(
        kernels, costs=costs, discount=0.8, states=states, actions=["run", "replace"]
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder, model, ambiguity = tmp_path_factory.mktemp("pages"), press(), drmdp.Wasserstein(0.2)
    practice = [0, 0, 0, 0, 1]  # run until it fails
    drmdp.solve(model, ambiguity).report(
        folder / "small.html",
        drmdp.radius.path(model, ambiguity, radii=[0, 0.2, 0.9]),
        baseline=practice,
        unit="€",
    )
    drmdp.finite_horizon(model, ambiguity, 24).report(folder / "plan.html")
    many = drmdp.instances.garnet(500, 3, branching=3, discount=0.9, sparse=True)
    drmdp.solve(many, drmdp.Wasserstein(0.3), tol=1e-2).report(folder / "large.html")
    return folder


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.mark.parametrize("name", ["small", "large", "plan"])
def test_axe_finds_nothing(browser, pages, name):
    with Visit(browser, pages / f"{name}.html") as visit:
        assert axe.violations(visit.page) == []
        assert axe.violations_in_the_dark(visit.page) == []


def test_axe_finds_what_is_wrong(browser, pages):
    """A picture without words, an input without a label, and letters as pale as their ground."""
    with Visit(browser, pages / "small.html") as visit:
        visit.page.evaluate("document.querySelector('svg').removeAttribute('aria-label')")
        visit.page.evaluate("document.querySelector('.switch label').remove()")
        visit.page.evaluate("document.querySelector('.decision').style.color = '#eee'")
        found = " ".join(axe.violations(visit.page))
        visit.page.evaluate("document.querySelector('.decision').style.color = '#222'")
        dark = " ".join(axe.violations_in_the_dark(visit.page))
    assert all(rule in found for rule in ("svg-img-alt", "label", "color-contrast"))
    assert "color-contrast" in dark


def test_the_switch_is_reached_by_the_tab_key_and_named(browser, pages):
    """One stop for all radii, as radio buttons have; arrows go on from there. What a screen reader
    says is the radius, and the group's name.
    """
    with Visit(browser, pages / "small.html", java_script_enabled=False) as visit:
        group = visit.page.get_by_role("group", name="Radius", exact=True)
        radios = group.get_by_role("radio")
        assert radios.count() == 3
        for _ in range(20):
            visit.page.keyboard.press("Tab")
            if radios.nth(1).evaluate("own => own === document.activeElement"):
                break
        else:
            pytest.fail("the switch was not reached")
        visit.page.keyboard.press("ArrowRight")
        assert visit.page.locator("#p2").is_visible()
        assert group.get_by_role("radio", name="0.2").count() == 1
        assert group.get_by_role("radio", name="0.9 the decision changes here").count() == 1
