"""Files that belong together: what a source reads is never replaced, and all is renamed or nothing.

A source may read more files than the one that is named: data beside a header, sources of virtual
datasets, members of a bundle, sidecars. A destination may be more files than one as well.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_atomic import unchanged

import raconvert
from raconvert import convert
from raconvert.conversion.read import open_bundle
from raconvert.errors import ReadFailed, TargetExists, Unsafe, WriteFailed
from raconvert.files.named import resolve
from raconvert.files.paths import refuse_used
from raconvert.files.source import Source
from raconvert.files.target import Target

NUMBERS = np.arange(12, dtype="<i2").reshape(3, 4)
OTHER = np.full((2, 5), 7, "<i2")


def header(path: Path, data: str, encoding: str = "raw") -> Path:
    """Write a NRRD header that names a file of the numbers."""
    lines = ["NRRD0001", "type: short", "dimension: 2", "sizes: 4 3", "endian: little"]
    path.write_text("\n".join([*lines, f"encoding: {encoding}", f"data file: {data}", ""]))
    return path


def values(path: str) -> np.ndarray:
    """Return the one array of a file, of a container as well."""
    with open_bundle(path) as bundle:
        return np.array(bundle.only())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder: y.nhdr with x.raw, x.npy and z.npy."""
    header(tmp_path / "y.nhdr", "x.raw")
    (tmp_path / "x.raw").write_bytes(NUMBERS.tobytes())
    np.save(tmp_path / "x.npy", NUMBERS)
    np.save(tmp_path / "z.npy", OTHER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(source: Any, target: str, **options: Any) -> None:
    """Assert that a conversion is refused, with exit code 5 and every file as it was."""
    with unchanged(Path()), pytest.raises(TargetExists, match="read by the source|same") as caught:
        convert(source, target, overwrite=True, **options)
    assert caught.value.exit_code == 5


# What the source reads ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [None, "float32"])
@pytest.mark.parametrize(
    ("target", "to"), [("x.nhdr", None), ("x.raw", "ra"), ("./x.raw", "nrrd"), ("link.raw", "npy")]
)
def test_the_data_of_a_header(here: Path, target: str, to: str | None, dtype: str | None) -> None:
    os.symlink("x.raw", "link.raw")
    refused("y.nhdr", target, to=to, dtype=dtype)
    refused("y.nhdr", target, to=to, dtype=dtype, dry_run=to is not None)


def test_the_data_of_a_header_by_another_name(here: Path) -> None:
    os.link("x.raw", "hard.raw")
    refused("y.nhdr", "hard.nhdr", dtype="float32")


@pytest.mark.parametrize("encoding", ["raw", "ascii"])
def test_data_in_several_files(here: Path, encoding: str) -> None:
    text = header(here / "y.nhdr", "LIST", encoding).read_text() + "0.raw\nx.raw\n2.raw\n"
    (here / "y.nhdr").write_text(text)
    for name, row in zip(("0.raw", "x.raw", "2.raw"), NUMBERS, strict=True):
        content = row.tobytes() if encoding == "raw" else " ".join(map(str, row)).encode()
        (here / name).write_bytes(content)
    assert np.array_equal(raconvert.read("y.nhdr"), NUMBERS)
    refused("y.nhdr", "x.nhdr")
    refused("y.nhdr", "2.raw", to="ra")


def test_the_source_itself_as_data_of_the_destination(here: Path) -> None:
    convert("x.npy", "x.raw", to="npy", overwrite=True)
    refused("x.raw", "x.nhdr")


@pytest.mark.parametrize("kind", ["virtual", "external storage", "external link"])
def test_files_that_an_hdf5_file_names(here: Path, kind: str) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File("src.h5", "w") as file:
        file["d"] = NUMBERS
    with h5py.File("v.h5", "w") as file:
        if kind == "virtual":
            layout = h5py.VirtualLayout((3, 4), "<i2")
            layout[:] = h5py.VirtualSource("src.h5", "d", (3, 4))
            file.create_virtual_dataset("d", layout)
        elif kind == "external link":
            file["d"] = h5py.ExternalLink("src.h5", "d")
        else:
            file.create_dataset("d", (3, 4), "<i2", external=[("src.h5", 0, 24)])
    assert values("v.h5").shape == (3, 4)
    refused("v.h5", "src.h5")
    refused("v.h5", "src.h5", to="npy", dtype="float64")


def test_a_chain_of_virtual_datasets(here: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File("0.h5", "w") as file:
        file["d"] = NUMBERS
    for n in range(2):
        with h5py.File(f"{n + 1}.h5", "w") as file:
            layout = h5py.VirtualLayout((3, 4), "<i2")
            layout[:] = h5py.VirtualSource(f"{n}.h5", "d", (3, 4))
            file.create_virtual_dataset("d", layout)
    refused("2.h5", "1.h5")
    refused("2.h5", "0.h5")


def test_the_schema_of_records(here: Path) -> None:
    convert("x.npy", "x.scidb")
    refused("x.scidb", "x.scidb.schema", to="npy")


def test_the_files_of_a_bundle(here: Path) -> None:
    convert("x.npy", "scan", to="bundle")
    [member] = Path("scan").glob("*.ra")
    refused("scan", str(member))
    refused("scan", "scan/bundle.yaml", to="npy")


def test_a_bundle_in_the_place_of_what_is_read(here: Path) -> None:
    convert("x.npy", "scan", to="bundle")
    [member] = Path("scan").glob("*.ra")
    member.with_suffix(".copy").write_bytes(member.read_bytes()[-24:])
    os.replace(member.with_suffix(".copy"), "x.raw")
    header(here / "y.nhdr", f"{member}")
    refused("y.nhdr", "scan", to="bundle")


def test_the_sidecar_of_the_source(here: Path) -> None:
    convert("x.npy", "x.ra", meta="sidecar")
    assert Path("x.ra.yaml").exists()
    refused("x.ra", "x.ra.yaml", to="npy")


def test_a_stack_and_arrays_with_names(here: Path) -> None:
    header(here / "w.nhdr", "w.raw")
    (here / "w.raw").write_bytes(NUMBERS.tobytes())
    for target in ("x.nhdr", "w.nhdr"):
        refused(["y.nhdr", "w.nhdr"], target)
        refused(["y.nhdr", "w.nhdr"], target, stack=("concat", 0))
    for target in ("x.raw", "w.raw"):
        refused(["y.nhdr", "w.nhdr"], target, to="npz")


def test_planes_and_labels(here: Path) -> None:
    Path("x.raw").rename("0.png")
    header(here / "y.nhdr", "0.png")
    refused("y.nhdr", "{}.png", dtype="uint8")
    for label in "01":
        Path(label).mkdir()
        header(here / label / "y.nhdr", "x.raw")
        (here / label / "x.raw").write_bytes(NUMBERS.tobytes())
    Path("1/x.raw").rename("1/x.npy")
    header(here / "1" / "y.nhdr", "x.npy")
    refused(["0/y.nhdr", "1/y.nhdr"], "out.ra", labels="1/x.npy")


def test_each_array_of_a_container(here: Path) -> None:
    h5py = pytest.importorskip("h5py")
    Path("out").mkdir()
    Path("x.raw").rename("out/d.npy")
    with h5py.File("v.h5", "w") as file:
        file.create_dataset("d", (3, 4), "<i2", external=[("out/d.npy", 0, 24)])
        file["e"] = OTHER
    refused("v.h5", "out/", to="npy")


@pytest.mark.parametrize("options", [{"overwrite": True}, {"update": True}])
def test_one_file_each_never_replaces_what_another_source_reads(
    here: Path, options: dict[str, Any]
) -> None:
    """The data of one source has the name that another one would become."""
    Path("in").mkdir()
    header(here / "in" / "y.nhdr", "x.ra")
    Path("x.raw").rename("in/x.ra")
    np.save("a.npy", OTHER)
    os.utime("in/x.ra", (0, 0))
    for sources in (["a.npy", "x.npy", "in/y.nhdr"], ["in/y.nhdr", "x.npy", "a.npy"]):
        with unchanged(Path()), pytest.raises(TargetExists, match=r"read by source 'in/y\.nhdr'"):
            convert(sources, out_dir="in", to="ra", stack="each", **options)
    report = convert(["a.npy", "in/y.nhdr"], out_dir="in", to="ra", stack="each", overwrite=True)
    assert sorted(report.written) == ["in/a.ra", "in/y.ra"]


def test_a_source_by_a_wrong_name_is_noticed_when_it_is_its_turn(here: Path) -> None:
    """A header that its name hides is not opened ahead: its own conversion fails, in any order."""
    Path("in").mkdir()
    header(here / "in" / "y.npy", "x.ra")
    for sources in (["a.npy", "x.npy", "in/y.npy"], ["in/y.npy", "x.npy", "a.npy"]):
        (here / "in" / "x.ra").write_bytes(NUMBERS.tobytes())
        np.save("a.npy", OTHER)
        report = convert(sources, out_dir="in", to="ra", stack="each", overwrite=True)
        ((source, error),) = report.failed
        assert source == "in/y.npy"
        assert isinstance(error, TargetExists)
        assert "which source 'x.npy' becomes" in str(error)
        assert not Path("in/y.ra").exists()


def test_arrays_of_a_container_never_replace_what_another_source_reads(here: Path) -> None:
    np.savez("v.npz", x=OTHER, y=OTHER)
    Path("out/v").mkdir(parents=True)
    header(here / "w.nhdr", "out/v/x.npy")
    Path("x.raw").rename("out/v/x.npy")
    for sources in (["v.npz", "w.nhdr"], ["w.nhdr", "v.npz"]):
        with unchanged(Path()), pytest.raises(TargetExists, match=r"read by source 'w\.nhdr'"):
            convert(sources, out_dir="out", to="npy", overwrite=True)


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"skip_existing": True}])
def test_two_sources_never_become_one_file(here: Path, options: dict[str, Any]) -> None:
    """One of them by an array inside of it."""
    for folder in ("in/v", "out"):
        Path(folder).mkdir(parents=True)
    np.savez("in/v.npz", x=OTHER, y=OTHER)
    np.save("in/v/x.npy", NUMBERS)
    report = convert("in", out_dir="out", to="nrrd", recursive=True, **options)
    assert [source for source, _ in report.failed] == ["in/v.npz"]
    assert "both become 'out/v/x.nrrd'" in str(report.failed[0][1])
    assert np.array_equal(raconvert.read("out/v/x.nrrd"), NUMBERS)
    assert not Path("out/v/y.nrrd").exists()


def test_what_is_not_read_is_replaced(here: Path) -> None:
    convert("y.nhdr", "x.npy", overwrite=True, dtype="float32")
    assert raconvert.read("x.npy").dtype == np.float32
    convert("z.npy", "y.nhdr", overwrite=True)
    convert("z.npy", "x.nhdr", overwrite=True)
    assert np.array_equal(raconvert.read("x.nhdr"), OTHER)
    assert np.array_equal(raconvert.read("y.nhdr"), OTHER)


# Links -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "beside"), [("x.nhdr", "x.raw"), ("x.scidb", "x.scidb.schema")], ids=["nrrd", "scidb"]
)
@pytest.mark.parametrize("link", ["same", "other"])
def test_a_link_is_written_through_with_what_lies_beside(
    here: Path, name: str, beside: str, link: str
) -> None:
    Path("real").mkdir()
    Path("links").mkdir()
    convert("x.npy", f"real/{name}")
    path = "links/" + (name if link == "same" else name.replace("x", "y"))
    os.symlink(f"../real/{name}", path)

    report = convert("z.npy", path, overwrite=True)

    assert sorted(os.listdir("real")) == sorted([name, beside])
    assert os.listdir("links") == [os.path.basename(path)]
    assert os.path.islink(path)
    assert [os.path.realpath(p) for p in report.written] == [
        os.path.realpath(f"real/{p}") for p in (beside, name)
    ]
    for place in (path, f"real/{name}"):
        assert np.array_equal(values(place), OTHER)


def test_a_link_in_the_place_of_what_lies_beside_is_replaced_not_what_it_leads_to(
    here: Path,
) -> None:
    Path("data").mkdir()
    Path("data/x.raw").write_bytes(b"of another")
    Path("x.raw").unlink()
    os.symlink("data/x.raw", "x.raw")
    with unchanged(here), pytest.raises(TargetExists):
        convert("z.npy", "x.nhdr")
    convert("z.npy", "x.nhdr", overwrite=True)
    assert not os.path.islink("x.raw")
    assert Path("data/x.raw").read_bytes() == b"of another"
    assert np.array_equal(raconvert.read("x.nhdr"), OTHER)


def found(path: str, name: str, **options: Any) -> str:
    return os.path.relpath(resolve(Source(path, **options), name, "the data file"))


def test_the_folder_of_a_file_comes_before_that_of_a_link_to_it(here: Path) -> None:
    Path("real").mkdir()
    Path("y.nhdr").rename("real/y.nhdr")
    os.symlink("real/y.nhdr", "y.nhdr")
    assert found("y.nhdr", "x.raw") == "x.raw"  # a store of files under other names
    assert found("y.nhdr", os.path.abspath("x.raw")) == "x.raw"
    Path("real/x.raw").write_bytes(b"")
    assert found("y.nhdr", "x.raw") == "real/x.raw"


def test_a_link_opens_no_folder_but_its_own_and_that_of_the_file(here: Path) -> None:
    for folder in ("real", "links", "far"):
        Path(folder).mkdir()
    Path("y.nhdr").rename("real/y.nhdr")
    os.symlink("../real/y.nhdr", "links/y.nhdr")
    os.symlink("../x.raw", "links/out.raw")
    for name in ("../x.raw", "out.raw", os.path.abspath("x.raw")):
        with pytest.raises(Unsafe, match="outside the folder"):
            found("links/y.nhdr", name)
        assert found("links/y.nhdr", name, trust_external=True) == "x.raw"
    with pytest.raises(ReadFailed, match="does not exist"):
        found("links/y.nhdr", "missing.raw")


def test_a_store_of_records_under_other_names(here: Path) -> None:
    convert("x.npy", "x.scidb")
    Path("store").mkdir()
    Path("x.scidb").rename("store/1a2b")
    os.symlink("store/1a2b", "x.scidb")
    assert np.array_equal(values("x.scidb"), NUMBERS)


# All or nothing ----------------------------------------------------------------------------------


def failing_replace(monkeypatch: pytest.MonkeyPatch, at: str, error: BaseException) -> None:
    """Let the rename to a file of this name fail, once."""
    real = os.replace
    waiting = [error]

    def replace(old: str, new: str) -> None:
        if os.path.basename(new) == at and waiting:
            raise waiting.pop()
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)


def no_links(*_: object, **__: object) -> None:
    raise OSError(95, "Operation not supported")


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("old", [True, False], ids=["replaced", "new"])
@pytest.mark.parametrize(
    "error",
    [PermissionError(13, "Permission denied"), KeyboardInterrupt()],
    ids=["error", "Ctrl-C"],
)
@pytest.mark.parametrize(
    ("name", "at", "options"),
    [
        ("out.nhdr", "out.nhdr", {}),
        ("out.nhdr", "out.raw", {}),
        ("out.scidb", "out.scidb", {}),
        ("out.npy", "out.npy", {"meta": "sidecar"}),
        ("out.nhdr", "out.nhdr", {"meta": "sidecar"}),
        ("out.nhdr", "out.nhdr.yaml", {"meta": "sidecar"}),
    ],
)
def test_a_rename_that_fails_undoes_those_before_it(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    at: str,
    options: dict[str, Any],
    error: BaseException,
    old: bool,
    links: bool,
) -> None:
    if old:
        convert("x.npy", name, **options)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    failing_replace(monkeypatch, at, error)
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else WriteFailed
    with unchanged(here), pytest.raises(expected):
        convert("z.npy", name, overwrite=True, **options)
    if old:
        assert np.array_equal(values(name), NUMBERS)


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("at", ["out", "out.beside"])
def test_an_interruption_right_after_a_rename(
    here: Path, monkeypatch: pytest.MonkeyPatch, at: str, links: bool
) -> None:
    Path("out").write_bytes(b"old")
    real = os.replace

    def replace(old: str, new: str) -> None:
        real(old, new)
        if new == at and not old.endswith("-old.tmp"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with unchanged(here), Target("out", overwrite=True) as target:
        target.open().write(b"new")
        target.beside(".beside").open().write(b"new")
        with pytest.raises(KeyboardInterrupt):
            target.commit()


def test_an_interruption_never_takes_a_single_file_away(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def replace(old: str, new: str) -> None:
        real(old, new)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        convert("z.npy", "x.npy", overwrite=True)
    assert np.array_equal(np.load("x.npy"), OTHER)


def test_the_folder_that_holds_a_file_which_is_read_is_named(here: Path) -> None:
    for name in ("a", "b", "c"):
        os.mkdir(name)
    shutil.copy("x.npy", "b")
    with pytest.raises(TargetExists) as caught:
        refuse_used(["a", "b", "c"], ["b/x.npy"])
    assert caught.value.path == "b"


def test_modes_are_kept_and_nothing_is_left_behind(here: Path) -> None:
    convert("x.npy", "out.nhdr")
    os.chmod("out.nhdr", 0o640)
    os.chmod("out.raw", 0o600)
    before = sorted(os.listdir())
    convert("z.npy", "out.nhdr", overwrite=True)
    assert sorted(os.listdir()) == before
    assert [os.stat(p).st_mode & 0o777 for p in ("out.nhdr", "out.raw")] == [0o640, 0o600]
