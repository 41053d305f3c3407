"""Damaged files and objects of other programs: the answer is a usable model or an `InputError`,
nothing else.
"""

import copy
import functools
import io
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse

import drmdp
from drmdp import InputError, Model, estimate, formats
from texts import ragged, variety

FEW, MANY = 40, 600
TOKENS = [
    "",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "0.5",
    "1e-9",
    "1e308",
    "-0.0",
    "nan",
    "inf",
    "x",
    '"',
    '""',
    "'",
    ",",
    "\0",
    "é",
    "99999999999",
    "2147483647",
    "1_0",
    "٣",
    "0x1",
    " ",
    "\t",
    "\n",
    "\r",
    "#",
    "0:",
    '0="init"',
    "discount",
    "idoutcome",
    "[0,1]",
    "[0.5,0.5]",
    "[1,0]",
    "[0,",
    "[nan,1]",
    "[0.2, 0.4]",
    "[]",
]
ODD = [
    0,
    1,
    -1,
    2,
    0.5,
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    True,
    None,
    "x",
    [],
    [1],
    {},
    (1,),
    10**30,
    np.int8(3),
    object(),
]


def fuzz(check):
    """Run a check with few examples, and with many under the marker."""

    @pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
    def run(examples, tmp_path_factory):
        folder = tmp_path_factory.mktemp("fuzz")

        @settings(
            max_examples=examples,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(data=st.data())
        def inner(data):
            check(data.draw, folder)

        inner()

    run.__name__, run.__doc__ = check.__name__, check.__doc__
    return run


def damaged(draw, text):
    """Change some bytes, fields or lines of a text."""
    content = bytearray(text.encode())
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["field", "field", "field", "line", "flip", "cut", "insert"]))
        lines = bytes(content).split(b"\n")
        at = draw(st.integers(0, len(lines) - 1))
        if kind == "field":
            mark = b"," if b"," in lines[at] else b" "
            fields = lines[at].split(mark)
            fields[draw(st.integers(0, len(fields) - 1))] = draw(st.sampled_from(TOKENS)).encode()
            lines[at] = mark.join(fields)
            content = bytearray(b"\n".join(lines))
        elif kind == "line":
            lines[at : at + 1] = draw(st.sampled_from([[], [lines[at]] * 2, [lines[0]], [b""]]))
            content = bytearray(b"\n".join(lines))
        else:
            place = draw(st.integers(0, max(len(content) - 1, 0)))
            if kind == "flip" and content:
                content[place] ^= 1 << draw(st.integers(0, 7))
            elif kind == "cut":
                del content[place : place + draw(st.integers(1, 30))]
            else:
                content[place:place] = draw(st.binary(max_size=8))
    return bytes(content)


def usable_or_refused(make, prefix=""):
    """Make a model; whatever goes in, it is sound or refused with a short message."""
    try:
        with np.errstate(all="ignore"):
            model = make()
    except InputError as error:
        message = str(error)
    else:
        message = None
    if message is not None:
        assert message.startswith(prefix)
        assert len(message) < 1000
        return False
    assert isinstance(model, Model)
    assert repr(model)
    sums = model.blocks.dense(0, model.n_states).sum(axis=3)
    np.testing.assert_allclose(sums[model.available], 1, rtol=0, atol=1e-12)
    assert np.isfinite(model.cost_range).all()
    return True


@functools.cache
def texts_of(name, suffix):
    """Files of a model, by name."""
    with tempfile.TemporaryDirectory() as folder:
        drmdp.write(variety()[name], Path(folder) / f"m.{suffix}")
        return {file.name: file.read_text() for file in Path(folder).iterdir()}


@fuzz
def test_damaged_craam_files(draw, folder):
    name = draw(
        st.sampled_from(
            ["ragged", "ragged, 3 kernels", "known everywhere", "next state, 3 kernels"]
        )
    )
    files = dict(texts_of(name, "csv"))
    hit(draw, folder, files, "m.csv", base=draw(st.sampled_from([0, 0, 0, 1])))


@fuzz
def test_damaged_prism_files(draw, folder):
    name = draw(st.sampled_from(["ragged", "next state", "sparse"]))
    files = dict(texts_of(name, "tra"))
    if draw(st.booleans()):
        files["m.srew"] = "4 2\n0 1\n2 -3.5\n"
    hit(draw, folder, files, "m.tra", discount=0.9)


@functools.cache
def bounded_of(name, suffix):
    """Files of a model between bounds, by name."""
    with tempfile.TemporaryDirectory() as folder:
        model = variety()[name]
        formats.write_intervals(model, drmdp.Intervals.of(model, 0.1), Path(folder) / f"m.{suffix}")
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def bounded_or_refused(path, discount):
    """Read a model between bounds; whatever goes in, it is inside them or refused."""
    found = []

    def make():
        found[:] = formats.read_intervals(path, discount=discount)
        return found[0]

    if usable_or_refused(make, f"{path}: "):
        model, intervals = found
        assert intervals.fitted(model) is intervals
        kernel = model.blocks.matrix(model.blocks.entries(0)).toarray()
        shown = model.available.ravel()
        lower, upper = intervals.lower.toarray(), intervals.upper.toarray()
        assert (lower[shown] <= kernel[shown] + 1e-12).all()
        assert (kernel[shown] <= upper[shown] + 1e-12).all()


@fuzz
def test_damaged_prism_files_with_intervals(draw, folder):
    name = draw(st.sampled_from(["ragged", "next state", "sparse"]))
    hit(
        draw,
        folder,
        {file: text.decode() for file, text in bounded_of(name, "tra").items()},
        "m.tra",
        read=False,
    )
    bounded_or_refused(folder / "m.tra", 0.9)


@fuzz
def test_damaged_umb_files(draw, folder):
    """Members of the archive are damaged one by one; a checksum would notice damage of the
    whole.
    """
    files = bounded_of(draw(st.sampled_from(["ragged", "next state", "sparse"])), "umb")
    pytest.importorskip("umbi")
    with tarfile.open(fileobj=io.BytesIO(files["m.umb"])) as archive:
        members = {info.name: archive.extractfile(info).read() for info in archive}
    name = draw(st.sampled_from(sorted(members)))
    content = bytearray(members[name])
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(content) - 1, 0)))
        kind = draw(st.sampled_from(["flip", "cut", "drop"]))
        if kind == "flip" and content:
            content[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del content[place : place + draw(st.integers(1, 30))]
        else:
            members.pop(name, None)
    members |= {name: bytes(content)} if name in members else {}
    path = folder / "m.umb"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    bounded_or_refused(path, 0.9)


def hit(draw, folder, files, main, read=True, **options):
    """Damage one of the files and read."""
    for old in folder.iterdir():
        if old.is_file():
            old.unlink()
    name = draw(st.sampled_from([main, main, *sorted(files)]))
    for file, text in files.items():
        (folder / file).write_bytes(damaged(draw, text) if file == name else text.encode())
    path = folder / main
    if read:
        usable_or_refused(lambda: drmdp.read(path, **options), f"{path}: ")


LOG = "state,action,next_state,cost,group,episode,time\n" + "".join(
    f"{k % 3},{'ab'[k % 2]},{(k + 1) % 3},{k / 2},g{k % 2},e{k // 5},{k % 5}\n" for k in range(30)
)


@fuzz
def test_damaged_tables(draw, folder):
    by, n = draw(
        st.sampled_from(
            [(None, None), ("group", None), ("bootstrap", 3), ("folds", 2), ("posterior", 2)]
        )
    )
    steps = draw(
        st.sampled_from(
            [{}, {"next_state": None, "episode": "episode", "time": "time"}, {"episode": "episode"}]
        )
    )
    text = LOG.replace("next_state", "following") if "time" in steps else LOG
    path = folder / "log.csv"
    path.write_bytes(damaged(draw, text))
    rules = {
        "unvisited": draw(st.sampled_from(["prior", "unavailable"])),
        "partial": draw(st.sampled_from(["pooled", "prior"])),
    }
    costs = draw(st.sampled_from([{"cost": "cost"}, {"costs": "1"}]))
    usable_or_refused(
        lambda: estimate(path, discount=0.9, by=by, n_kernels=n, **steps, **rules, **costs)
    )


@fuzz
def test_parquet_that_was_cut_off(draw, folder):
    path = folder / "log.parquet"
    pl.read_csv(LOG.encode()).write_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[: draw(st.integers(0, len(content) - 1))])
    with pytest.raises(
        InputError,
        match=r"log.parquet: (not a Parquet table: it is |a Parquet table that was cut off)",
    ):
        estimate(path, discount=0.9, cost="cost", unvisited="prior")


@fuzz
def test_parquet_with_a_damaged_footer(draw, folder):
    """Not the inside of pages: Polars trusts it, and asks for any amount of memory that it says."""
    path = folder / "log.parquet"
    pl.read_csv(LOG.encode()).write_parquet(path)
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for _ in range(draw(st.integers(1, 3))):
        content[-draw(st.integers(1, footer))] ^= 1 << draw(st.integers(0, 7))
    path.write_bytes(content)
    usable_or_refused(
        lambda: estimate(path, discount=0.9, cost="cost", unvisited="prior", partial="prior"), ""
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"state,action\n", "a text"), (b"", "an empty file"), (b"PAR1", "cut off")],
)
def test_files_that_are_no_parquet_are_named(content, what, tmp_path):
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(InputError, match=f"x.parquet: .*{what}"):
        estimate(tmp_path / "x.parquet", discount=0.9, cost="cost")


def swapped(draw, array):
    """Change an array: a value, its type, its shape."""
    kind = draw(st.sampled_from(["poke", "cast", "shape", "other"]))
    if kind == "poke" and array.size:
        array = array.astype(float) if array.dtype.kind in "biuf" else np.zeros(array.shape)
        array.flat[draw(st.integers(0, array.size - 1))] = draw(
            st.sampled_from([0, -1, 0.5, 2, np.nan, np.inf, 1e308])
        )
        return array
    if kind == "cast":
        with np.errstate(all="ignore"):
            return array.astype(
                draw(st.sampled_from([np.float32, np.int8, bool, complex, str, object]))
            )
    if kind == "shape":
        return draw(
            st.sampled_from(
                [array.T, array[None], array[:1], array[:0], array.ravel(), array[..., :1]]
            )
        )
    return draw(st.sampled_from(ODD))


@fuzz
def test_damaged_mdptoolbox_arrays(draw, folder):
    P, R = formats.to_mdptoolbox(variety()["costs"])
    if draw(st.booleans()):
        P = [sparse.csr_matrix(matrix) for matrix in P]
        if draw(st.booleans()):
            P[draw(st.integers(0, 1))] = draw(
                st.sampled_from([sparse.csr_matrix((2, 2)), np.eye(6), *ODD])
            )
    else:
        P = swapped(draw, P)
    R = swapped(draw, R) if draw(st.booleans()) else R
    discount = draw(st.sampled_from([0.9, 0.9, *ODD]))
    usable_or_refused(lambda: formats.from_mdptoolbox(P, R, discount))


@fuzz
def test_damaged_discrete_dps(draw, folder):
    model = ragged()
    ddp = copy.copy(formats.to_quantecon(model, pairs=draw(st.booleans())))
    for name in draw(
        st.lists(
            st.sampled_from(["R", "Q", "beta", "s_indices", "a_indices"]),
            min_size=1,
            max_size=2,
            unique=True,
        )
    ):
        old = getattr(ddp, name)
        new = swapped(draw, old) if isinstance(old, np.ndarray) else draw(st.sampled_from(ODD))
        setattr(ddp, name, new)
    usable_or_refused(lambda: formats.from_quantecon(ddp))


@fuzz
def test_damaged_gymnasium_tables(draw, folder):
    table = formats.to_gymnasium(ragged())
    for _ in range(draw(st.integers(1, 3))):
        s = draw(st.sampled_from(sorted(table, key=str)))
        row = table[s]
        kind = draw(st.sampled_from(["entry", "entry", "row", "list", "key"]))
        if not isinstance(row, dict) or not row or kind == "row":
            table[s] = draw(st.sampled_from([{}, {0: []}, *ODD]))
            continue
        a = draw(st.sampled_from(sorted(row, key=str)))
        if kind == "key":
            row[draw(st.sampled_from([5, -1, "x", None, 1.5]))] = row[a]
        elif kind == "list" or not isinstance(row[a], list) or not row[a]:
            row[a] = draw(st.sampled_from([[], row[a], *ODD]))
        else:
            k = draw(st.integers(0, len(row[a]) - 1))
            if isinstance(row[a][k], tuple) and len(row[a][k]) == 4:
                entry = list(row[a][k])
                entry[draw(st.integers(0, 3))] = draw(st.sampled_from(ODD))
                row[a][k] = tuple(entry)
            else:
                row[a][k] = draw(st.sampled_from(ODD))
    usable_or_refused(lambda: formats.from_gymnasium(table, 0.9))


def test_undamaged_ones_are_models(tmp_path):
    """The checks above would pass on bases that are refused already."""
    for name, suffix in (
        ("ragged, 3 kernels", "csv"),
        ("known everywhere", "csv"),
        ("sparse", "tra"),
        ("ragged", "tra"),
    ):
        for file, text in texts_of(name, suffix).items():
            (tmp_path / file).write_text(text)
        options = {"discount": 0.9} if suffix == "tra" else {}
        path = tmp_path / f"m.{suffix}"
        assert usable_or_refused(lambda path=path, options=options: drmdp.read(path, **options))
    (tmp_path / "log.csv").write_text(LOG)
    assert usable_or_refused(lambda: estimate(tmp_path / "log.csv", cost="cost", discount=0.9))
    assert usable_or_refused(
        lambda: formats.from_mdptoolbox(*formats.to_mdptoolbox(variety()["costs"]), 0.9)
    )
    assert usable_or_refused(lambda: formats.from_quantecon(formats.to_quantecon(ragged())))
    assert usable_or_refused(lambda: formats.from_gymnasium(formats.to_gymnasium(ragged()), 0.9))
