"""Problems drawn block by block: the same in memory and in a directory, in bounded memory."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import instances
from drmdp.cli import main
from drmdp.formats.directory import open_stored, write_drawn
from drmdp.instances import SOURCES, _source
from drmdp.instances._source import of_model, streams
from drmdp.instances.perturb import perturbed

SIZES = {
    "garnet": (25, 3, 4),
    "grid": (25, 4),
    "ring": (25, 4),
    "cycle": (25, 4),
    "reservoir": (25, 4),
}
EVERY = {name: partial(source, *SIZES.get(name, (25,))) for name, source in SOURCES.items()} | {
    "sampled": lambda: perturbed(SOURCES["garnet"](25, 3, 4), 5, seed=3, same_support=True),
    "mixed": lambda: perturbed(SOURCES["machine"](25), 5, seed=3),
    "rewards": lambda: perturbed(SOURCES["forest"](25, sparse=True), 2, same_support=True),
    "model": lambda: of_model(instances.reservoir(25)),
}


@pytest.mark.parametrize("size", [1, 4, 7, 25])
@pytest.mark.parametrize("name", EVERY)
def test_a_problem_is_the_same_in_memory_and_in_a_directory_and_any_block_of_it_alone(
    name, size, tmp_path, monkeypatch
):
    monkeypatch.setattr(_source, "DRAWN", size)
    model = EVERY[name]().model()
    write_drawn(EVERY[name](), tmp_path / "m.drmdp")
    assert open_stored(tmp_path / "m.drmdp").fingerprint == model.fingerprint
    again = drmdp.read(tmp_path / "m.drmdp")
    assert (again == model, again.is_sparse, again.maximise) == (
        True,
        model.is_sparse,
        model.maximise,
    )
    source = EVERY[name]()
    for lo in reversed(range(0, 25, size)):
        hi = min(lo + size, 25)
        found, own = source.draw(lo, hi), model.span(lo, hi)
        np.testing.assert_array_equal(found.kernels.dense(0, hi - lo), own.blocks.dense(0, hi - lo))
        if not model.maximise:
            np.testing.assert_array_equal(np.where(own.available, found.costs, 0), own.costs)


def test_single_precision_is_the_same_in_memory_and_in_a_directory(tmp_path):
    write_drawn(EVERY["sampled"](), tmp_path / "m.drmdp", np.float32)
    found = drmdp.read(tmp_path / "m.drmdp")
    assert found.blocks.data.dtype == np.float32
    assert found == EVERY["sampled"]().model(np.float32)


def test_blocks_have_streams_of_their_own():
    stream = streams(5, "garnet")
    drawn = {stream(lo).random() for lo in (0, 4096, 8192, 2**30)} | {
        streams(5, "grid")(4096).random()
    }
    assert len(drawn) == 5
    assert stream(4096).random() in drawn
    assert stream(0).random() == drmdp.core.random.generator(5, "garnet").random()


def test_a_generator_is_used_block_after_block(tmp_path, monkeypatch):
    monkeypatch.setattr(_source, "DRAWN", 4)
    rngs = (np.random.default_rng(3) for _ in range(2))
    write_drawn(SOURCES["grid"](25, 4, seed=next(rngs)), tmp_path / "m.drmdp")
    model = instances.grid(25, 4, seed=next(rngs))
    assert drmdp.read(tmp_path / "m.drmdp") == model
    assert not np.array_equal(model.costs[:4], model.costs[4:8])


def test_seeds_give_what_they_gave():
    """Only with additions and divisions, which are the same everywhere."""
    assert instances.garnet(50, 4, seed=3).fingerprint.startswith("06ee6678da8f")
    assert instances.garnet(5000, 2, 3, sparse=True).fingerprint.startswith("f79b4adf635c")


# ---------------------------------------------------------------------- memory

BOUNDED = """
import sys
from drmdp.formats.directory import write_drawn
from drmdp.instances import SOURCES
from drmdp.instances.perturb import perturbed

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

peak, made = [], perturbed(SOURCES["garnet"](int(sys.argv[1]), 4, 8, sparse=True), 5, same_support=True)
made_draw = made.draw
object.__setattr__(made, "draw", lambda lo, hi: peak.append(anonymous()) or made_draw(lo, hi))
write_drawn(made, sys.argv[2], "float32")
print(max(*peak, anonymous()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_larger_model_takes_no_more_memory_to_write(tmp_path):
    peaks = []
    for n in (20_000, 100_000):
        run = [sys.executable, "-c", BOUNDED, str(n), str(tmp_path / f"{n}.drmdp")]
        peaks.append(int(subprocess.run(run, capture_output=True, text=True, check=True).stdout))
    size = sum(file.stat().st_size for file in (tmp_path / "100000.drmdp").iterdir())
    assert size > 80e6
    assert 1024 * (peaks[1] - peaks[0]) < size / 4  # pages of the heap come and go


# ---------------------------------------------------------------------- command line


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_command_line_writes_the_same_problem_into_files_and_directories(tmp_path):
    options = "--actions 3 --branching 4 --kernels 5 --same-support --float32 --sparse --seed 2"
    for out in ("m.npz", "m.drmdp"):
        result = run(
            "instance", "garnet", "--states", 30, *options.split(), "--out", tmp_path / out
        )
        assert result.exit_code == 0
        assert "Model: 30 states × 3 actions × 5 kernels, discount 0.8\n" in result.output
    one, other = (drmdp.read(tmp_path / out) for out in ("m.npz", "m.drmdp"))
    nominal = instances.garnet(30, 3, 4, seed=2, sparse=True)
    assert (
        one == other == instances.perturb(nominal, 5, seed=2, same_support=True).astype(np.float32)
    )


def test_options_without_a_meaning_are_refused(tmp_path):
    for options in (
        ["grid", "--states", 25, "--same-support"],
        ["garnet", "--states", 25, "--same-support"],
    ):
        result = run("instance", *options, "--out", tmp_path / "m.drmdp")
        assert result.exit_code == 2
        assert (
            "--same-support: has a meaning only where --kernels are sampled around one"
            in result.output
        )


def test_a_block_that_does_not_fit_in_memory_is_refused_before_it_is_drawn(tmp_path):
    """Kernels sampled beyond the nominal one's next states reach a twentieth of all states each."""
    drawn = perturbed(SOURCES["garnet"](10_000_000, 4, 8, sparse=True), 10)
    with pytest.raises(
        drmdp.InputError,
        match=r"4,096 states × 4 actions × 10 kernels × 5,000,008 next states need",
    ):
        write_drawn(drawn, tmp_path / "large.drmdp")
    assert not list(tmp_path.iterdir())
