"""What is said of a release in several places is said alike."""

import re
import tomllib
from pathlib import Path

import drmdp

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_recipe_for_conda_asks_for_what_the_project_asks_for():
    recipe = (ROOT / "release" / "conda" / "recipe.yaml").read_text("utf-8")
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1]
    asked = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    assert asked == {f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]}
    assert f"drmdp = {PROJECT['scripts']['drmdp']}" in recipe
    assert PROJECT["description"] in recipe


def test_the_version_is_the_same_everywhere():
    for name in ("release/conda/recipe.yaml", "CITATION.cff"):
        text = (ROOT / name).read_text("utf-8")
        assert (
            re.search(r'^ *version: "?([\d.]+)"?$', text, re.MULTILINE)[1] == drmdp.__version__
        ), name
    short = drmdp.__version__.rpartition(".")[0]
    assert re.search(
        rf"^## (Unreleased: {short}|{drmdp.__version__})\b",
        (ROOT / "CHANGELOG.md").read_text("utf-8"),
        re.M,
    )
