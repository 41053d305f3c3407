"""The page about a solution, read by a real browser; names in it are data."""

import json
import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from browser import Visit, chromium
from drmdp import cli
from drmdp.cli.report import _levels as levels_of
from drmdp.report import facts
from drmdp.report.decision_sentences import decide
from drmdp.report.lead import trust
from drmdp.ui.text import amount, column

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</style><b>bold</b>",
    "{{ 7 * 7 }}",
    "$\\frac{1$",
    "a\nb\x00c",
    "\ud800",
    "\u202eright to left",
    "x" * 10_000,
    "日本語 🙂 مرحبا",
    "&lt;",
    "",
]


def machine():
    return drmdp.instances.perturb(drmdp.instances.machine(10), 20, seed=0)


def hostile():
    """Names as a stranger would choose them, a terminal state, an unavailable pair, rewards."""
    rng = np.random.default_rng(0)
    S = len(HOSTILE)
    available = np.ones((S, 3), dtype=bool)
    available[1, 0] = False
    return drmdp.Model(
        rng.dirichlet(np.ones(S), (4, S, 3)),
        rewards=rng.random((S, 3)),
        discount=0.9,
        states=HOSTILE,
        actions=["<script>alert(3)</script>", "<i>x</i>", "ok"],
        available=available,
        terminal=[HOSTILE[5]],
    )


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The machine instance with a radius curve."""
    model, ambiguity = machine(), drmdp.Wasserstein(0.5, support="all")
    path = tmp_path_factory.mktemp("report") / "machine.html"
    drmdp.solve(model, ambiguity).report(
        path, drmdp.radius.path(model, ambiguity, radii=5), title="Machine"
    )
    return path


# ---------------------------------------------------------------------- in the browser


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_page_loads_nothing_says_nothing_and_fits(browser, page, script):
    """Light and dark, on a screen and on a phone."""
    with Visit(browser, page, java_script_enabled=script) as visit:
        assert visit.page.title() == "Machine"
        assert visit.page.locator("svg").count() == 7
        assert len(visit.page.screenshot(full_page=True)) > 50_000
        for scheme, width in (("light", 1280), ("dark", 1280), ("dark", 360)):
            visit.page.emulate_media(color_scheme=scheme)
            visit.page.set_viewport_size({"width": width, "height": 740})
            assert visit.quiet, (visit.said, visit.asked, visit.tried)
            assert not script or visit.overflow() == 0


def test_dark_is_dark_and_print_is_light(browser, page):
    def colours(visit):
        return visit.page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('svg text')).fill,"
            " getComputedStyle(document.querySelector('#values-axes_1 use[style*=blue]')).fill]"
        )

    with Visit(browser, page) as light, Visit(browser, page, color_scheme="dark") as dark:
        bright, night = colours(light), colours(dark)
        assert bright[0] == "rgb(255, 255, 255)"
        assert not set(bright) & set(night)
        dark.page.emulate_media(media="print", color_scheme="dark")
        assert colours(dark)[0] == "rgb(255, 255, 255)"
        pdf = light.page.pdf(format="A4")
        assert pdf.startswith(b"%PDF")
        assert len(pdf) > 50_000


def test_names_are_text_never_markup(browser, tmp_path):
    model = hostile()
    ambiguity = drmdp.Wasserstein(0.3, support="all")
    path = tmp_path / "hostile.html"
    drmdp.solve(model, ambiguity).report(
        path, drmdp.radius.path(model, ambiguity, radii=3), title="<script>alert(0)</script>"
    )
    with Visit(browser, path) as visit:
        assert visit.quiet, (visit.said, visit.asked, visit.tried)
        assert visit.page.locator("script, img, main b b, main i").count() == 0
        assert visit.page.locator("h1").inner_text() == "<script>alert(0)</script>"
        cells = visit.page.locator("td bdi").all_inner_texts()
        for name in HOSTILE[:5]:
            assert name in cells, name
        labels = visit.page.locator("#policy-figure_1 text").all_text_contents()
        assert "<script>al…</script>" in labels
        assert visit.overflow() == 0


def press_log():
    """Three presses; the last is never repaired, and nobody repairs a good one."""
    rows = ["press,month,state,action,cost"]
    for name, wear in (("Press-01", 9), ("Press-02", 4), ("<b>Press-03</b>", 5)):
        for month in range(1, 30):
            state = "worn" if month % wear == 0 else "good"
            action = "repair" if state == "worn" and not name.startswith("<") else "run"
            rows.append(
                f"{name},{month},{state},{action},{5 if action == 'repair' else 9 if state == 'worn' else 0}"
            )
    return "\n".join(rows) + "\n"


@pytest.mark.usefixtures("sketched")
def test_what_an_estimate_assumed_reaches_the_reader(browser, tmp_path, monkeypatch):
    """`drmdp estimate`, then `drmdp solve --report`: names of kernels and notes go through the
    files to the page.
    """
    monkeypatch.chdir(tmp_path)

    def run(command):
        done = CliRunner().invoke(cli.main, command.split())
        assert done.exit_code == 0, done.stderr

    (tmp_path / "log.csv").write_text(press_log())
    run(
        "estimate log.csv -o m.npz --discount .9 --by press --episode press --time month --cost cost"
        " --partial pooled --unvisited unavailable"
    )
    run("convert m.npz m.drmdp")
    notes = list(drmdp.read(tmp_path / "m.npz").notes)
    assert notes[:5] == [
        "time step: 1, guessed",
        "3 rows begin no transition, at the end of an episode or before a gap: costs in them are left out",
        "1 pair was never seen: unavailable",
        "3 rows of kernels lack data that others have: pooled; kernels weigh the same, so that their "
        "mean need not be the kernel of all rows together (weights counts makes it so)",
        "start: as the 3 episodes began",
    ]
    (tmp_path / "practice.json").write_text('{"good": "run", "worn": "run"}')
    for model in ("m.npz", "m.drmdp"):
        run(
            f"solve {model} --radius .1 --report page.html --report-radii 0 --baseline practice.json --unit € --title Presses"
        )
        with Visit(
            browser, tmp_path / "page.html", viewport={"width": 1000, "height": 1200}
        ) as visit:
            said = dict(
                zip(
                    *(
                        visit.page.locator(f".facts {part}").all_inner_texts()
                        for part in ("th", "td")
                    ),
                    strict=True,
                )
            )
            assert visit.page.locator(".notes li").all_inner_texts() == notes
            assert said["kernels"] == "3, equally weighted: <b>Press-03</b>, Press-01, Press-02"
            assert said["actions"] == "2, 1 unavailable pair"
            assert visit.page.locator("li", has_text="lack data").is_visible()
            assert visit.page.locator("h1").inner_text() == "Presses"
            for fact in (
                ".decision",
                ".lead p:has-text('Current practice costs')",
                ".status:has-text('This is proved')",
            ):
                box = visit.page.locator(fact).first.bounding_box()
                assert box["y"] + box["height"] < 900, fact
            assert (
                visit.page.locator(".decision").first.inner_text()
                == "Repair when worn; otherwise run."
            )
            assert "€" in visit.page.locator(".lead").inner_text()
            assert visit.quiet
            assert visit.overflow() <= 0


def test_a_notebook_shows_names_as_text(browser, tmp_path):
    model = hostile()
    path = tmp_path / "cell.html"
    shown = (
        model._repr_html_()
        + drmdp.solve(model, drmdp.Wasserstein(0.3, support="all"))._repr_html_()
    )
    path.write_text(
        f'<meta charset="utf-8"><link rel="icon" href="data:,">{shown}', encoding="utf-8"
    )
    with Visit(browser, path) as visit:
        assert visit.quiet, (visit.said, visit.asked, visit.tried)
        assert visit.page.locator("script, img").count() == 0
        assert visit.page.locator("td bdi").all_inner_texts().count(HOSTILE[0]) == 2


# ---------------------------------------------------------------------- what it says


class Tree(HTMLParser):
    """Unclosed or crossed elements, repeated ids, and references to anything outside."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.wrong, self.text = [], [], [], ""
        self.feed(text)
        self.wrong += self.open + [name for name in set(self.ids) if self.ids.count(name) > 1]

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        for name in ("href", "src", "xlink:href"):
            if not given.get(name, "#").startswith(("#", "data:")):
                self.wrong.append(given[name])
        if tag not in ("meta", "link", "br", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in ("meta", "link", "br", "input"):
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"/{tag}")

    def handle_data(self, data):
        self.text += f"{data} "


def test_the_page_is_well_formed_and_refers_to_itself_only(page):
    tree = Tree(page.read_text("utf-8"))
    assert not tree.wrong
    for name in re.findall(r"(?:href=\"#|url\(#)([^\")]+)", page.read_text("utf-8")):
        assert name in tree.ids, name


def test_the_page_says_what_was_found(page):
    model, ambiguity = machine(), drmdp.Wasserstein(0.5, support="all")
    solution = drmdp.solve(model, ambiguity)
    text = " ".join(Tree(page.read_text("utf-8")).text.split())
    for expected in (
        amount(float(model.initial @ solution.value)),
        f"{solution.gap:.2g}",
        "solved",
        "20, equally weighted",
        "no repair 55%",
        solution.fingerprint,
        f"drmdp {drmdp.__version__}",
        f"numpy {np.__version__}",
        "tol=1e-06",
        *model.states,
    ):
        assert expected in text, expected
    most = drmdp.policies.bent(model, solution.kernel, 1, solution.policy)[0]
    assert f"{most.nominal:.4f} {most.worst:.4f} {most.change:+.4f}" in text
    path = drmdp.radius.path(model, ambiguity, radii=5)
    assert all(worst in text for worst in column(path.worst))


@pytest.mark.usefixtures("sketched")
def test_a_loaded_solution_says_what_is_left_out_or_is_given_its_model(tmp_path):
    model, ambiguity = machine(), drmdp.Wasserstein(0.5, support="all")
    solution = drmdp.solve(model, ambiguity)
    assert solution.problem == (model, ambiguity)
    solution.save(tmp_path / "solution.npz")
    loaded = drmdp.Solution.load(tmp_path / "solution.npz")
    loaded.report(tmp_path / "bare.html")
    loaded.report(tmp_path / "full.html", model=model, ambiguity=ambiguity)
    solution.report(tmp_path / "first.html")
    bare, full, first = (
        (tmp_path / f"{name}.html").read_text("utf-8") for name in ("bare", "full", "first")
    )
    assert "Left out: the solution was loaded" in bare
    assert "share of time" not in bare
    assert re.sub("Made on .*", "", full) == re.sub("Made on .*", "", first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": drmdp.instances.machine(10)}, "of another model"),
        (
            {"ambiguity": drmdp.Wasserstein(0.4, support="all")},
            "ambiguity: the solution is for .*radius=0.5.* got .*radius=0.4",
        ),
        ({"sweep": 3}, "sweep: expected a drmdp.radius.path, got 3"),
        (
            {
                "sweep": drmdp.radius.path(
                    drmdp.instances.machine(5), drmdp.Wasserstein(0, support="all"), [0, 0.1]
                )
            },
            "sweep: it is of another",
        ),
        ({"path": "missing/page.html"}, "cannot be written: missing: No such file"),
    ],
)
def test_what_does_not_fit_is_refused(change, message, tmp_path):
    solution = drmdp.solve(machine(), drmdp.Wasserstein(0.5, support="all"))
    with pytest.raises(drmdp.InputError, match=message):
        solution.report(**{"path": tmp_path / "page.html", **change})
    assert list(tmp_path.iterdir()) == []


def test_odd_models_have_a_page(tmp_path):
    one = drmdp.Model(np.ones((1, 1, 1)), costs=[[2.0]], discount=0.0)
    limited = drmdp.solve(machine(), drmdp.Wasserstein(0.5, support="all"), max_seconds=0)
    varied = drmdp.solve(machine(), drmdp.Wasserstein(np.linspace(0, 0.5, 10), "l1", 1, "observed"))
    for k, solution in enumerate(
        (drmdp.solve(one, drmdp.Wasserstein(0, support="all")), limited, varied)
    ):
        solution.report(tmp_path / f"{k}.html")
        assert not Tree((tmp_path / f"{k}.html").read_text("utf-8")).wrong
    assert "time_limit" in (tmp_path / "1.html").read_text("utf-8")
    assert "0 to 0.5, state by state" in (tmp_path / "2.html").read_text("utf-8")


def test_distance_of_the_kernels_from_their_mean():
    y = np.array(
        [[[[1.0, 0], [0.5, 0.5]], [[1, 0], [1, 0]]], [[[0, 1], [0.5, 0.5]], [[1, 0], [0, 1]]]]
    )
    model = drmdp.Model(y, costs=np.zeros((2, 2)), discount=0.5, weights=[0.25, 0.75])
    near, far = 0.25, 0.75  # of the one kernel and the other from the mean (.25, .75)
    for metric, order, unit in (("l1", 1, 2.0), ("l2", 2, np.sqrt(2)), ("linf", 1, 1.0)):
        expected = unit * (0.25 * far**order + 0.75 * near**order) ** (1 / order)
        np.testing.assert_allclose(
            drmdp.Wasserstein(0, metric, order).spread(model, [0, 1]), expected
        )
    np.testing.assert_allclose(drmdp.Wasserstein(0, "linf").spread(model, [1]), far)


# ---------------------------------------------------------------------- size


def test_a_policy_that_draws_names_what_finds_one_that_does_not():
    drawn = SimpleNamespace(solution=SimpleNamespace(policy=np.full((3, 2), 0.5)))
    words = facts.mixed(drawn)
    assert "drmdp inspect without POLICY, gives the best policy that draws nothing" in words


def test_the_machine_instance_is_a_small_page(page):
    assert page.stat().st_size < 1_000_000


def test_ten_thousand_states_are_a_small_page(tmp_path):
    model = drmdp.instances.garnet(10_000, 5, branching=5, discount=0.9, sparse=True)
    model = drmdp.instances.perturb(model, 2, same_support=True)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.3, support="observed"), tol=1e-2)
    path = tmp_path / "large.html"
    solution.report(path)
    assert path.stat().st_size < 5_000_000
    text = path.read_text("utf-8")
    assert "The 40 states visited most, of 10,000." in text
    assert text.count("<tr>") < 200


# ---------------------------------------------------------------------- from the shell


@pytest.mark.usefixtures("sketched")
def test_solve_writes_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(machine(), "machine.npz")
    arguments = ["solve", "machine.npz", "--radius", "0.5", "--report", "page.html", "--json"]
    monkeypatch.setattr(sys, "argv", ["drmdp", *arguments])
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "solved"
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "drmdp solve machine.npz --radius 0.5 --report page.html --json" in text
    assert 'id="radius-figure_1"' in text
    result = CliRunner().invoke(cli.main, [*arguments, "--report-radii", "0"])
    assert result.exit_code == 0
    assert 'id="radius-figure_1"' not in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "page.txt"], "page.txt: a report is a page of HTML; name it page.html"),
        (["--report", "missing/page.html"], "missing/page.html: cannot be written"),
        (
            ["--report", "page.html", "--report-radii", "1"],
            "--report-radii: expected 0 or at least 2, got 1",
        ),
        (["--report-radii", "3"], "--report-radii: there is no --report"),
    ],
)
def test_a_bad_report_is_refused_before_any_work(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.main, ["solve", "no such model.npz", "--radius", "1", *options])
    assert result.exit_code == 2
    assert message in result.output


def test_without_the_extra_the_message_says_how_to_get_it_before_anything_is_drawn(
    monkeypatch, tmp_path
):
    solution = drmdp.solve(machine(), drmdp.Wasserstein(0.5, support="all"))
    monkeypatch.setattr("drmdp.report.page.render", None)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        drmdp.MissingExtra,
        match=r"jinja2 is not installed; in a clone of drmdp: pip install '.\[report\]'",
    ):
        solution.report(tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- the first screen, and the
# switch


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_the_page_begins_with_the_decision_and_what_it_is_worth(tmp_path, kind):
    """Every amount of the first sentences is what the library says of the policies."""
    base, ambiguity = machine(), drmdp.Wasserstein(0.1)
    prices = {"costs": 1000 * base.costs} if kind == "costs" else {"rewards": -1000 * base.costs}
    model = drmdp.Model(
        base.kernels, **prices, discount=0.8, states=base.states, actions=base.actions
    )
    solution = drmdp.solve(model, ambiguity)
    practice = dict.fromkeys(model.states, "no repair")
    solution.report(tmp_path / "page.html", baseline=practice, unit="€")
    text = Tree((tmp_path / "page.html").read_text("utf-8")).text
    lead = text[text.index("What to do") : text.index("What was assumed.")]
    nominal = drmdp.solve(model, drmdp.Wasserstein(0)).policy
    does = "costs" if kind == "costs" else "earns"
    for policy, own in ((solution.policy, True), (practice, False), (nominal, False)):
        worst = float(model.initial @ drmdp.evaluate(model, ambiguity, policy).value)
        mean = float(model.initial @ drmdp.policies.under(model, policy, [None])[0])
        if own:
            assert (
                f"({amount(mean, '€')} in all, discounted by 0.8 a step) if every step is drawn from the mean of the 20 kernels."
                in lead
            )
            assert f"({amount(worst, '€')} in all). No kernels" in lead
        else:
            assert (
                f"{does} {amount(mean, '€')} under the same mean and has the planning figure {amount(worst, '€')}"
                in lead
            )
    assert "no other policy has a better worst case over the set by even a millionth" in lead
    assert (
        lead.index("otherwise")
        < lead.index("What it")
        < lead.index("Plan with")
        < lead.index("Is there a better policy?")
    )
    assert ("costs" in lead) == (kind == "costs")
    assert "data are right" not in text


def test_the_switch_shows_one_radius_at_a_time_without_script(browser, page):
    """By mouse and by keyboard; every radius has its panel, and print shows those whose decision is
    not that of the one before.
    """
    with Visit(browser, page, java_script_enabled=False) as visit:
        radios, panels = visit.page.locator(".switch input"), visit.page.locator(".panel")
        assert radios.count() == panels.count() == 5
        own = [
            "this report" in (panels.nth(i).locator("h3").text_content() or "") for i in range(5)
        ]
        assert [panels.nth(i).is_visible() for i in range(5)] == own  # before anything is touched
        assert sum(own) == 1
        for k in range(5):
            visit.page.locator(f"label[for=r{k}]").click()
            assert [panels.nth(i).is_visible() for i in range(5)] == [i == k for i in range(5)]
        radios.nth(4).focus()
        visit.page.keyboard.press("ArrowLeft")
        assert panels.nth(3).is_visible()
        assert not panels.nth(4).is_visible()
        marked = [visit.page.locator(f"label[for=r{i}] span").count() == 1 for i in range(5)]
        visit.page.emulate_media(media="print")
        assert [panels.nth(i).is_visible() for i in range(5)] == [
            i == 0 or marked[i] or own[i] for i in range(5)
        ]
        assert visit.quiet, (visit.said, visit.asked, visit.tried)


@pytest.mark.usefixtures("sketched")
def test_radii_that_change_nothing_are_not_printed(browser, tmp_path):
    model, ambiguity = machine(), drmdp.Wasserstein(0.0)
    path = drmdp.radius.path(model, ambiguity, radii=[0, 1e-9, 2e-9])
    drmdp.solve(model, ambiguity).report(tmp_path / "page.html", path)
    with Visit(browser, tmp_path / "page.html") as visit:
        assert (
            "is the same at every radius that was compared, from 0 to 2e-09."
            in visit.page.inner_text(".lead")
        )
        assert "◆" not in visit.page.inner_text("main")
        visit.page.emulate_media(media="print")
        panels = visit.page.locator(".panel")
        assert [panels.nth(k).is_visible() for k in range(3)] == [True, False, False]


def test_critical_radii_are_marked(page):
    model, ambiguity = machine(), drmdp.Wasserstein(0.5, support="all")
    text = page.read_text("utf-8")
    path = drmdp.radius.path(model, ambiguity, radii=5)
    marks = re.findall(r'<label for="r(\d)">([^<]*)(<span)?', text)
    told = [
        decide(
            model.states,
            model.actions,
            point.policy,
            drmdp.policies.visits(model, drmdp.solve(model, ambiguity)),
        ).sentence
        for point in path.points
    ]
    assert [bool(mark) for _, _, mark in marks] == [
        k > 0 and told[k] != told[k - 1] for k in range(5)
    ]
    assert any(mark for _, _, mark in marks)


def test_a_baseline_needs_a_model(tmp_path):
    solution = drmdp.solve(machine(), drmdp.Wasserstein(0.1))
    solution.save(tmp_path / "s.npz")
    with pytest.raises(
        drmdp.InputError, match="baseline: a loaded solution does not hold its model"
    ):
        drmdp.Solution.load(tmp_path / "s.npz").report(tmp_path / "p.html", baseline=solution)
    with pytest.raises(drmdp.InputError, match="policy: state '1' is missing"):
        solution.report(tmp_path / "p.html", baseline={"2": "repair"})


# ---------------------------------------------------------------------- what it says of rivals and
# of trust


@pytest.mark.usefixtures("sketched")
def test_a_rival_that_is_the_same_policy_is_called_so(tmp_path):
    """A practice that follows it; at radius 0 nothing else is best if nothing is doubted, and the
    page does not say so.
    """
    model, ambiguity = machine(), drmdp.Wasserstein(0.0)
    solution = drmdp.solve(model, ambiguity)
    solution.report(tmp_path / "page.html", baseline=solution)
    text = Tree((tmp_path / "page.html").read_text("utf-8")).text
    assert "Current practice is the same policy." in text
    assert "nothing is doubted" not in text


@pytest.mark.parametrize(
    ("marks", "here", "expected"),
    [
        ([], 1, "The decision is the same at every radius that was compared, from 0 to 3."),
        ([2], 1, "The decision is this one from radius 0 to 1; at 2 it is another one."),
        (
            [1, 3],
            2,
            "The decision is this one from radius 1 to 2; at 0 and at 3 it is another one.",
        ),
        ([2, 3], 2, "The decision is this one at radius 2; at 1 and at 3 it is another one."),
        (
            [2],
            2,
            "The decision is this one from radius 2 to 3, the largest that was compared; at 1 it is another one.",
        ),
    ],
)
def test_where_the_decision_changes_is_told_on_the_first_screen(marks, here, expected):
    between = [range(min(k, here) + 1, max(k, here) + 1) for k in range(4)]
    panels = [
        {"radius": str(k), "current": k == here, "same": not set(marks) & set(between[k])}
        for k in range(4)
    ]
    assert trust(panels) == expected
    assert trust([]) == ""


def test_other_decisions_that_agree_are_not_the_same_as_that_of_the_report():
    panels = [{"radius": str(k), "current": k == 1, "same": False} for k in range(3)]
    assert trust(panels) == "At radius 1 the decision is another one."


@pytest.mark.usefixtures("sketched")
def test_levels_are_compared_around_that_of_the_report(tmp_path, monkeypatch):
    """From half to twice its own; where they are larger there is less doubt."""
    monkeypatch.chdir(tmp_path)
    drmdp.write(drmdp.instances.perturb(drmdp.instances.machine(6), 200, seed=0), "machine.npz")
    more = "--set reweight-cvar --level 0.1 --report page.html --report-radii 5"
    assert CliRunner().invoke(cli.main, ["solve", "machine.npz", *more.split()]).exit_code == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert re.findall(r'for="r\d">([\d.]+)', page) == ["0.05", "0.0707", "0.1", "0.141", "0.2"]
    text = " ".join(Tree(page).text.split())
    assert "Level 0.1, this report" in text
    assert "A smaller or a larger level." in text
    assert "Larger levels mean less doubt." in text
    assert "adius 0" not in text
    assert re.search(r'id="r2" checked', page)


def test_levels_of_a_report_stay_between_0_and_1():
    assert levels_of(0.8, 0.01, 3).tolist() == [0.4, 0.8, 1.0]
    assert levels_of(1.0, 0.01, 3).tolist() == [0.5, pytest.approx(0.5**0.5), 1.0]
    assert levels_of(0.0, 0.25, 3).tolist() == [0.0, 0.25, 0.5]


def test_numbers_of_a_column_have_the_same_decimals():
    assert column([15165.44, 10948.0, -0.0]) == ["15,165.4", "10,948.0", "0.0"]
    assert column([1.0, 12.0]) == ["1", "12"]
    assert column([1.0, float("inf")]) == ["1", "inf"]
    assert column([1234567.8, -2.4]) == ["1,234,568", "-2"]
    assert column([1e-9, 2e-9]) == ["1e-09", "2e-09"]
    assert column([]) == []


@pytest.mark.usefixtures("sketched")
def test_a_nature_that_helps_is_told_of_as_the_best_case(tmp_path):
    """No page about the best case says that anything is worst, and the policy costs at least what
    is certified.
    """
    model, ambiguity = machine(), drmdp.Wasserstein(0.1)
    solution = drmdp.solve(model, ambiguity, nature="cooperative")
    path = drmdp.radius.path(model, ambiguity, radii=[0, 0.1], nature="cooperative")
    solution.report(tmp_path / "page.html", path)
    text = " ".join(Tree((tmp_path / "page.html").read_text("utf-8")).text.split())
    best = float(model.initial @ solution.value)
    assert f"At best {amount((1 - model.discount) * best)} a step ({amount(best)} in all)." in text
    assert "best-case cost" in text
    assert "worst" not in text.lower()
