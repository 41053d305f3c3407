"""What axe-core has to say of a page: the rules of WCAG 2.2, levels A and AA, that a program can check.

The script is not part of this repository: npm brings it once, and it is kept beside what pytest keeps. Where npm is not installed or reaches nothing, tests
that need it are skipped, but for CI where that would hide them.
"""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path

import pytest

VERSION = "4.14.0"
DIGEST = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
KEPT = Path(__file__).parents[2] / ".pytest_cache"
RUN = """async tags => {
  const found = await axe.run(document, { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] });
  return found.violations.flatMap(rule => rule.nodes.map(node => `${rule.id}: ${rule.help}: ${node.html.slice(0, 200)}`));
}"""


def violations(page):
    """A line for each element of an open page, with scripts enabled, that breaks a rule; the page's own policy does not matter."""
    page.evaluate(script())
    return page.evaluate(RUN, TAGS)


@cache
def script():
    """The source of axe-core."""
    kept = KEPT / f"axe-{VERSION}.js"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            part = Path(folder) / "axe.js"
            part.write_bytes(_fetched(folder))
            part.replace(kept)  # whole, or not at all: workers run side by side
    source = kept.read_bytes()
    assert hashlib.sha256(source).hexdigest() == DIGEST, kept
    return source.decode()


def _fetched(folder):
    npm = shutil.which("npm")
    if npm is None:
        _without("npm is not installed")
    command = [npm, "pack", "--silent", f"axe-core@{VERSION}"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        _without("npm does not answer")
    if done.returncode:
        _without("npm brings no axe-core")
    with tarfile.open(fileobj=io.BytesIO((Path(folder) / f"axe-core-{VERSION}.tgz").read_bytes())) as packed:
        return packed.extractfile("package/axe.min.js").read()


def _without(reason):
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
