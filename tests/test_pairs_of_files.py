"""Files that belong together: a mixture of two runs is never read as if it were whole.

It is what a kill between two renames leaves; mixed here by hand, in all combinations.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt

FORMS = {
    "nhdr": ("x.nhdr", {}),
    "nhdr-gzip": ("x.nhdr", {"out_opts": {"encoding": "gzip"}}),
    "nhdr-with-sidecar": ("x.nhdr", {"meta": "sidecar"}),
    "mhd": ("x.mhd", {}),
    "mhd-zlib": ("x.mhd", {"out_opts": {"compress": "zlib"}}),
    "nifti": ("x.img", {}),
    "nifti-gzip": ("x.img.gz", {}),
    "cfl": ("x.cfl", {"dtype": "complex64"}),
    "scidb": ("x.scidb", {}),
    "npy-with-sidecar": ("x.npy", {"meta": "sidecar"}),
    "ra-with-sidecar": ("x.ra", {"meta": "sidecar"}),
}

TELLING = (
    ".nhdr",
    ".mhd",
    ".hdr",
    ".hdr.gz",
    ".schema",
    ".yaml",
)  # of files that belong together, those without elements


def values_of(seed: int, large: bool) -> np.ndarray:
    """Return values of which two differ in the middle only."""
    values = np.zeros(3 << 19 if large else 600, "u1")
    middle = values.size // 2
    values[middle - 50_000 if large else middle : middle + (50_000 if large else 9)] = seed
    return values.reshape(-1, 2)


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("form", FORMS)
def test_a_mixture_of_two_runs_is_noticed(tmp_path: Path, form: str, large: bool) -> None:
    name, options = FORMS[form]
    runs = []
    for seed in (1, 2):
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        np.save(tmp_path / "x.npy", values_of(seed, large))
        raconvert.convert(tmp_path / "x.npy", folder / name, **options)
        runs.append(folder)
    names = sorted(path.name for path in runs[0].iterdir())
    assert names == sorted(path.name for path in runs[1].iterdir())
    assert len(names) > 1
    for number, choice in enumerate(itertools.product(runs, repeat=len(names))):
        mixed = tmp_path / f"mixed{number}"
        mixed.mkdir()
        for folder, file in zip(choice, names, strict=True):
            shutil.copy(folder / file, mixed / file)
        changed = {
            folder
            for folder, f in zip(choice, names, strict=True)
            if (runs[0] / f).read_bytes() != (runs[1] / f).read_bytes()
        }
        if len(changed) > 1:
            with pytest.raises(Corrupt):
                raconvert.read(mixed / name)
        else:
            seed = 1 + runs.index(changed.pop())
            got = raconvert.read(mixed / name)
            got = next(iter(got.values())) if isinstance(got, dict) else got
            assert np.array_equal(got, values_of(seed, large))


@pytest.mark.parametrize("form", FORMS)
def test_every_verb_says_that_two_runs_are_mixed(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, options = FORMS[form]
    for seed in (1, 2):
        np.save(tmp_path / "x.npy", values_of(seed, large=False))
        (tmp_path / f"{seed}").mkdir()
        raconvert.convert(tmp_path / "x.npy", tmp_path / f"{seed}" / name, **options)
    data = next(path for path in (tmp_path / "2").iterdir() if not path.name.endswith(TELLING))
    shutil.copy(data, tmp_path / "1" / data.name)
    mixed, whole = str(tmp_path / "1" / name), str(tmp_path / "2" / name)
    for words in (
        ["info", mixed], ["verify", mixed], ["digest", mixed], ["diff", mixed, whole],
        ["diff", whole, mixed], [mixed, "-o", str(tmp_path / "y.npz")],
    ):  # fmt: skip
        capsys.readouterr()
        assert main(words) == (2 if words[0] == "diff" else 1), words
        said = "".join(capsys.readouterr())
        assert "does not belong together" in said or "describes another file" in said, words
    assert not (tmp_path / "y.npz").exists()


def test_items_of_another_run_are_noticed(tmp_path: Path) -> None:
    for seed in (1, 2):
        for number in range(3):
            meta = raconvert.Metadata(attributes={"n": 10 * seed + number})
            path = tmp_path / f"item{number}.ra"
            raconvert.write(path, np.arange(4), meta=meta, overwrite=True)
        (tmp_path / f"{seed}").mkdir()
        raconvert.convert(str(tmp_path / "item?.ra"), tmp_path / f"{seed}" / "x.ra")
    shutil.copy(tmp_path / "2" / "x.ra.items.jsonl", tmp_path / "1" / "x.ra.items.jsonl")
    with raconvert.open(tmp_path / "2" / "x.ra") as array:
        assert [item["attributes"]["n"] for item in array.meta.items()] == [20, 21, 22]
    with (
        pytest.raises(Corrupt, match="not of this array"),
        raconvert.open(tmp_path / "1" / "x.ra") as array,
    ):
        list(array.meta.items())


@pytest.fixture
def header(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(24, dtype="<i2").reshape(4, 6))
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.nhdr")
    return tmp_path / "x.nhdr"


def test_bart_and_itk_take_sealed_headers(tmp_path: Path, tool: Callable[..., str]) -> None:
    import subprocess

    values = np.arange(24, dtype="<i2").reshape(4, 6)
    np.save(tmp_path / "x.npy", values)
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.cfl", dtype="complex64")
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.mhd")
    assert b"# raconvert seal: " in (tmp_path / "x.hdr").read_bytes()
    assert b"\nRaconvertSeal = raconvert seal: " in (tmp_path / "x.mhd").read_bytes()
    subprocess.run([tool("bart"), "scale", "2", tmp_path / "x", tmp_path / "y"], check=True)
    assert np.array_equal(raconvert.read(tmp_path / "y.cfl"), 2 * values)
    with raconvert.open(tmp_path / "x.cfl") as array:
        assert not array.meta.formats
    simpleitk = pytest.importorskip("SimpleITK")
    image = simpleitk.ReadImage(str(tmp_path / "x.mhd"))
    assert np.array_equal(simpleitk.GetArrayFromImage(image), values)
    simpleitk.WriteImage(image + 1, str(tmp_path / "x.mhd"))
    assert np.array_equal(raconvert.read(tmp_path / "x.mhd"), values + 1)


def test_an_edited_header_is_no_mixture(header: Path) -> None:
    text = header.read_bytes()
    header.write_bytes(text.replace(b"encoding: raw", b"encoding: raw\n# edited"))
    (header.parent / "x.raw").write_bytes(np.arange(24, 48, dtype="<i2").tobytes())
    assert raconvert.read(header)[0, 0] == 24


def test_the_line_can_be_removed(header: Path) -> None:
    (header.parent / "x.raw").write_bytes(np.arange(24, 48, dtype="<i2").tobytes())
    with pytest.raises(Corrupt, match="remove the line 'raconvert seal: …'"):
        raconvert.read(header)
    lines = header.read_bytes().splitlines(keepends=True)
    header.write_bytes(b"".join(line for line in lines if b"seal" not in line))
    assert raconvert.read(header)[0, 0] == 24


def test_the_seal_is_no_comment_of_the_user(header: Path, tmp_path: Path) -> None:
    with raconvert.open(header) as array:
        assert "comments" not in array.meta.formats.get("nrrd", {})
    raconvert.convert(header, tmp_path / "y.nhdr")
    assert (tmp_path / "y.nhdr").read_bytes().count(b"raconvert seal") == 1
    assert np.array_equal(raconvert.read(tmp_path / "y.nhdr"), raconvert.read(header))


def test_other_readers_take_a_sealed_header(header: Path) -> None:
    nrrd = pytest.importorskip("nrrd")
    data, fields = nrrd.read(str(header))
    assert data.T.tolist() == np.arange(24).reshape(4, 6).tolist()
    assert fields["data file"].endswith("x.raw")
    simpleitk = pytest.importorskip("SimpleITK")
    image = simpleitk.GetArrayFromImage(simpleitk.ReadImage(str(header)))
    assert image.tolist() == np.arange(24).reshape(4, 6).tolist()


def test_unu_takes_a_sealed_header(header: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    import subprocess

    unu = tool("teem-unu", "unu")
    subprocess.run(
        [unu, "save", "-f", "nrrd", "-i", str(header), "-o", str(tmp_path / "u.nrrd")], check=True
    )
    assert np.array_equal(raconvert.read(tmp_path / "u.nrrd"), raconvert.read(header))
    subprocess.run(
        [unu, "flip", "-a", "0", "-i", str(header), "-o", str(tmp_path / "v.nhdr")], check=True
    )
    assert raconvert.read(tmp_path / "v.nhdr")[0].tolist() == [5, 4, 3, 2, 1, 0]
