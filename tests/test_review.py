"""Every file of the corpus's `review/` behaves as its README says, from the command line.

`wrong/`: what is read equals what h5py, SciPy or the plain twin of the file gives. `attack/`: each
file, and the larger ones that the README tells to make, is refused by an error of ours or read,
in a process with limits of CPU time and memory, and with nothing read from outside its folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, NamedTuple

import h5py
import numpy as np
import pytest
import scipy.io
from cases import every
from test_unreadable import datasets_of

import raconvert
from raconvert.conversion.pipeline import convert
from raconvert.inspect.digest import digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = 6.0  # of CPU, with the start of the interpreter; the attacks took 9 to 49
PEAK = 300 << 20
VERBS = ["info", "verify", "digest", "convert"]


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


# A process counts as its own what the one that started it has in memory: a small one starts it.
STARTER = """
import os, resource, sys
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
resource.prlimit(child, resource.RLIMIT_CPU, (10, 10))
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    file.write(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}")
sys.exit(os.waitstatus_to_exitcode(status) & 255)
"""


def run(*words: object, cwd: Path | None = None) -> Ran:
    """Run the command line; it may use no more CPU and memory than an attack is worth."""
    with tempfile.NamedTemporaryFile("r") as usage:
        done = subprocess.run(
            [sys.executable, "-S", "-c", STARTER, usage.name,
             sys.executable, "-m", "raconvert", *map(str, words)],
            cwd=cwd, capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds, peak = map(float, usage.read().split())
    assert done.returncode in (0, 1, 2, 3, 4), f"{done.returncode}: {done.stderr[-2000:]}"
    assert "Traceback" not in done.stderr
    assert seconds < SECONDS
    assert peak * 1024 < PEAK
    return Ran(done.returncode, done.stdout, done.stderr)


def attacked(path: Path, verb: str, folder: Path, **more: Path) -> Ran:
    """Do one thing with a hostile file; what is refused names it and leaves nothing behind."""
    out = folder / "out"
    out.mkdir()
    target = ["-o", out / "x.npz"] if verb == "convert" else []
    ran = run(verb, path, *target, **more)
    if ran.code:
        assert path.name in ran.out + ran.err
        assert verb != "convert" or os.listdir(out) == []
        assert len(ran.err) < 100_000
    return ran


# --- wrong --------------------------------------------------------------------------------------


def equals_h5py(path: Path, folder: Path) -> None:
    convert(path, folder / "x.npz")
    with h5py.File(path) as file, np.load(folder / "x.npz") as written:
        names = datasets_of(file)
        assert sorted(written.files) == sorted(names)
        for name in names:
            assert written[name].tobytes() == file[name][()].tobytes()


@pytest.mark.parametrize(
    "name",
    ["hdf5_unlimited_last_axis.h5", "h5fc_edge_v3.h5", "hdf5_partial_edge_chunks_unfiltered.h5",
     "4_vds.h5", "4_0.h5", "4_1.h5", "4_2.h5"],
)  # fmt: skip
def test_hdf5_is_as_h5py_reads_it(corpus: Callable[..., Path], tmp_path: Path, name: str) -> None:
    equals_h5py(corpus("review", "wrong", name), tmp_path)


def test_the_unlimited_axis_is_as_expected(corpus: Callable[..., Path]) -> None:
    found = raconvert.read(corpus("review", "wrong", "hdf5_unlimited_last_axis.h5"), "adc")
    expected = np.load(corpus("review", "wrong", "hdf5_unlimited_last_axis.expected.npy"))
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", ["f4", "i4"])
def test_ra_of_the_author_is_its_plain_twin(
    corpus: Callable[..., Path], tmp_path: Path, kind: str
) -> None:
    packed, plain = (
        corpus("review", "wrong", f"ra_{kind}_{form}.ra")
        for form in ("compressed_by_author_tool", "plain")
    )
    convert(packed, tmp_path / "x.ra")
    assert (tmp_path / "x.ra").read_bytes() == plain.read_bytes()


def test_orders_of_one_array_are_one_array(corpus: Callable[..., Path], tmp_path: Path) -> None:
    paths = [corpus("review", "wrong", f"{order}_order_3x4.npy") for order in ("c", "fortran")]
    assert np.array_equal(*map(np.load, paths))
    assert len({digest(path) for path in paths}) == 1
    for suffix in (".ra", ".nrrd"):
        written = set()
        for number, path in enumerate(paths):
            convert(path, tmp_path / f"{number}{suffix}")
            written.add((tmp_path / f"{number}{suffix}").read_bytes())
        assert len(written) == 1


def test_struct_without_fields_is_noted(corpus: Callable[..., Path]) -> None:
    path = corpus("review", "wrong", "mat73_struct_no_fields.mat")
    ran = run("info", path)
    assert ran.code == 0
    assert "struct_no_fields" in ran.out
    with raconvert.open(path) as bundle:
        assert len(bundle) == 4680


def test_octave_sparse_logical(corpus: Callable[..., Path]) -> None:
    path = corpus("review", "wrong", "mat_octave_sparse_logical_one_nonzero.mat")
    assert raconvert.read(path, "y").tolist() == [[2.0]]
    assert raconvert.read(path, "x").tolist() == [[True, False]]


def test_duplicate_field_names(corpus: Callable[..., Path], tmp_path: Path) -> None:
    path = corpus("review", "wrong", "mat_nasty_duplicate_fieldnames.mat")
    report = convert(path, tmp_path / "x.npz", allow=["arrays"])
    assert len(report.arrays) >= 26
    assert any("'Station_Q~2'" in note for note in report.notes)
    struct = scipy.io.loadmat(path)["Summary"][0, 0]
    with np.load(tmp_path / "x.npz") as written:
        for name in ("Top_Q", "Middle_Q", "Bottom_Q", "Left_Q"):
            assert np.array_equal(written[f"Summary/{name}"], struct[name])


def test_accented_text(corpus: Callable[..., Path]) -> None:
    path = corpus("review", "wrong", "mat_v6_accented_string.mat")
    assert raconvert.read(path, "accented_string").tolist() == ["thé qüîck browñ fòx"]


def test_a_file_whose_virtual_sources_are_missing(
    corpus: Callable[..., Path], tmp_path: Path
) -> None:
    path = corpus("review", "wrong", "Therm_6_2.nxs")
    refused = run(path, "-o", tmp_path / "x.npz")
    assert refused.code == 4
    assert "entry/data/data" in refused.err
    assert "--allow arrays" in refused.err
    assert run(path, "-o", tmp_path / "x.npz", "--allow", "arrays").code == 0
    with h5py.File(path) as file:
        names = [name for name in datasets_of(file) if name != "entry/data/data"]
    assert len(names) >= 47
    for name in names[::8]:
        assert run("digest", f"{path}#{name}").code == 0


def test_bools_that_are_none(corpus: Callable[..., Path], tmp_path: Path) -> None:
    path = corpus("review", "wrong", "gen_bool_enum_value2.h5")
    refused = run(path, "-o", tmp_path / "x.npz")
    assert refused.code in (1, 4)
    assert "be2" in refused.err
    assert run(path, "-o", tmp_path / "x.npz", "--in-opt", "bools=integers").code == 0
    with h5py.File(path) as file, np.load(tmp_path / "x.npz") as written:
        assert {2, 255} <= set(written["be2"].view("u1").tolist())
        for name in written.files:
            assert written[name].tobytes() == file[name][()].tobytes()


def test_strings_that_the_library_refuses(corpus: Callable[..., Path], tmp_path: Path) -> None:
    path = corpus("review", "wrong", "var-length-strings-reused.hdf5")
    for words in (["info", path], ["verify", path], [path, "-o", tmp_path / "x.npz"]):
        ran = run(*words)
        assert ran.code in (1, 4)
        assert path.name in ran.out + ran.err


# --- attack -------------------------------------------------------------------------------------

# The file and whether it can be read (True), must not be (False), or either (None).
ATTACKS: dict[str, bool | None] = {
    "bt2.h5": True,
    "seed.h5": True,
    "bt2_bad.h5": None,
    "hdf5_segv.h5": None,
    "idx_bad.h5": None,
    "ra_dims_valueerror.ra": False,
    "redos.npz": False,
    "redos_16000.npy": False,
    "deep10000.zip": None,
    "deep10000.npz": None,
    "soft2000.h5": None,
    "cell30000.mat": None,
    "fillmany.h5": None,
    "z.npz": None,
}


@every("verb", VERBS)
@every("name", ATTACKS)
def test_attack(corpus: Callable[..., Path], tmp_path: Path, name: str, verb: str) -> None:
    ran = attacked(corpus("review", "attack", name), verb, tmp_path)
    if ATTACKS[name] is not None:
        assert (ran.code == 0) == ATTACKS[name]


def test_every_file_of_the_attack_is_tried(corpus: Callable[..., Path]) -> None:
    there = {path.name for path in corpus("review", "attack").iterdir() if path.is_file()}
    assert there == set(ATTACKS)


@pytest.fixture
def folders(corpus: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of the folders of the attack, with the links that a copy may have made texts of."""
    there = tmp_path / "attack"
    shutil.copytree(corpus("review", "attack"), there, symlinks=True)
    for folder, _, _ in os.walk(there):
        os.chmod(folder, 0o755)
    for name, to in (("src.h5", "../out/secret.h5"), ("v.h5", "../d2/v.h5")):
        link = there / "vds_symlink" / "d1" / name
        link.unlink()
        link.symlink_to(to)
    return there


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["dl/v.h5", "dl/v.h5#v"])
def test_external_storage_of_a_source_is_not_of_the_working_directory(
    folders: Path, tmp_path: Path, name: str, verb: str
) -> None:
    here = folders / "vds_external_cwd"
    target = ["-o", tmp_path / "x.npy"] if verb == "convert" else []
    ran = run(verb, name, *target, cwd=here)
    if verb == "convert" and ran.code == 0:
        inside = (here / "dl" / "secret.bin").read_bytes()
        assert np.load(tmp_path / "x.npy").tobytes() == inside != (here / "secret.bin").read_bytes()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["d1/v.h5", "x/v.h5"])
def test_a_linked_header_leads_nowhere_else(
    folders: Path, tmp_path: Path, name: str, verb: str
) -> None:
    here = folders / "vds_symlink"
    target = ["-o", tmp_path / "x.npy"] if verb == "convert" else []
    ran = run(verb, name, *target, cwd=here)
    if verb == "convert" and ran.code == 0:
        with h5py.File(here / "d2" / "src.h5") as mine, h5py.File(here / "out/secret.h5") as secret:
            mine_, secret_ = (file[next(iter(file))][()] for file in (mine, secret))
        found = np.load(tmp_path / "x.npy")
        assert np.array_equal(found, mine_)
        assert not np.array_equal(found, secret_)


def test_prefixes_of_the_environment_lead_nowhere(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HDF5_VDS_PREFIX", str(folders / "vds_symlink"))
    monkeypatch.setenv("HDF5_EXTFILE_PREFIX", str(folders / "vds_external_cwd"))
    assert run("digest", "v.h5", cwd=folders / "vds_symlink" / "x").code == 1
    ran = run("v.h5", "-o", tmp_path / "x.npy", cwd=folders / "vds_external_cwd" / "dl")
    if ran.code == 0:
        assert b"SECRET" not in (tmp_path / "x.npy").read_bytes()


# --- the larger ones ----------------------------------------------------------------------------

KEYS = [number * (2**61 - 1) for number in range(1, 20_001)]


def ra_of_many_dims(path: Path) -> None:
    dims = np.full(100_000, 3, "<u8")
    head = np.array([0x7961727261776172, 0, 2, 8, 24, len(dims)], "<u8")
    path.write_bytes(head.tobytes() + dims.tobytes() + bytes(24))


def with_sidecar(path: Path, more: str) -> None:
    raconvert.write(
        path, np.asfortranarray(np.arange(12).reshape(3, 4)), meta=raconvert.Metadata(units="m")
    )
    with open(f"{path}.yaml", "a") as sidecar:
        sidecar.write(more)


def nrrd_of_keys(path: Path) -> None:
    pairs = ",".join(f"[{key},0]" for key in KEYS)
    path.write_text(
        "NRRD0005\ntype: uint8\ndimension: 1\nsizes: 3\nencoding: raw\n"
        f'raconvert:={{"attributes":{{"$dict":[{pairs}]}}}}\n\nabc'
    )


def gif_of_comments(path: Path) -> None:
    head = b"GIF89a" + bytes([1, 0, 1, 0, 0x80, 0, 0]) + bytes(6)
    image = b",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0"
    path.write_bytes(head + b"!\xfe" + b"\1a" * 200_000 + b"\0" + image + b";")


def plain_ppm(path: Path) -> None:
    pixels = 600_000
    path.write_bytes(b"P3\n1000 600\n255\n" + b"200 100 50 \n" * pixels)


LARGE: dict[str, Callable[[Path], None]] = {
    "dims.ra": ra_of_many_dims,
    "keys.ra": lambda path: with_sidecar(
        path, "attributes:\n" + "".join(f"  {key}: 1\n" for key in KEYS)
    ),
    "keys.nrrd": nrrd_of_keys,
    "comments.gif": gif_of_comments,
    "plain.ppm": plain_ppm,
    "text.ra": lambda path: with_sidecar(path, "attributes:\n  k: " + "word " * 1_000_000 + "\n"),
    "fields.ra": lambda path: with_sidecar(
        path, "attributes:\n" + "".join(f"  k{n}: {n}\n" for n in range(350_000))
    ),
    "list.ra": lambda path: with_sidecar(path, f"attributes: {{k: [{'1, ' * 1_600_000}1]}}\n"),
}


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", LARGE)
def test_large_attack(tmp_path: Path, name: str, verb: str) -> None:
    path = tmp_path / name
    LARGE[name](path)
    attacked(path, verb, tmp_path)
