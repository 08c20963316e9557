"""The digest is the SHA-256 of the canonical .ra, whatever format and order the array is in."""

from __future__ import annotations

import hashlib
import os
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from raconvert.cli import main
from raconvert.conversion.pipeline import convert
from raconvert.errors import Corrupt, UsageError
from raconvert.inspect.digest import digest, manifest_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VALUES = {
    "uint8": np.arange(24, dtype="u1").reshape(2, 3, 4),
    "float64": np.array([[0.0, -0.0, np.nan], [np.inf, 1e-300, 1.5]]),
    "complex64": np.arange(6, dtype="c8").reshape(3, 2) * 1j,
    "bool": np.array([True, False, True]),
    "rank0": np.array(7, "i4"),
    "empty": np.zeros((3, 0, 2), "f4"),
    "text": np.array(["a", "bcd"]),
    "datetime": np.array(["2020-01-01", "NaT"], "M8[ns]"),
    "structured": np.array([(1, 2.5)], [("a", "<i4"), ("b", "<f8")]),
}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", VALUES)
def test_digest_of_any_array_is_that_of_its_ra_file(name: str, tmp_path: Path) -> None:
    source, target = tmp_path / "x.npy", tmp_path / "x.ra"
    np.save(source, VALUES[name])

    convert(source, target)

    assert digest(source) == digest(target) == sha256(target)


@pytest.mark.parametrize("order", [">", "<"])
def test_byte_order_does_not_count(order: str, tmp_path: Path) -> None:
    source, target = tmp_path / "x.npy", tmp_path / "x.ra"
    np.save(source, VALUES["float64"].astype(f"{order}f8"))

    convert(source, target)

    assert digest(source) == sha256(target)


def test_equal_arrays_have_equal_digests_whatever_their_order_in_memory(tmp_path: Path) -> None:
    rows, columns = tmp_path / "c.npy", tmp_path / "f.npy"
    values = np.arange(6).reshape(2, 3)
    np.save(rows, values)
    np.save(columns, np.asfortranarray(values))
    np.savez(tmp_path / "f.npz", x=np.asfortranarray(values))
    convert(columns, tmp_path / "f.ra")

    assert (
        digest(rows) == digest(columns) == digest(tmp_path / "f.npz") == sha256(tmp_path / "f.ra")
    )


def test_the_order_of_a_column_major_format_counts(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6).reshape(2, 3))
    convert(tmp_path / "x.npy", tmp_path / "x.mat")
    convert(tmp_path / "x.mat", tmp_path / "x.ra")

    assert digest(tmp_path / "x.mat") == sha256(tmp_path / "x.ra")
    assert digest(tmp_path / "x.mat") != digest(tmp_path / "x.npy")


@pytest.mark.parametrize("encoding", ["lz4", "leb128"])
def test_encoded_ra_has_the_digest_of_the_plain_one(encoding: str, tmp_path: Path) -> None:
    source, plain, encoded = tmp_path / "x.npy", tmp_path / "p.ra", tmp_path / "e.ra"
    np.save(source, np.arange(1000) % 7)

    convert(source, plain)
    convert(source, encoded, out_opts={"encoding": encoding})

    assert sha256(encoded) != sha256(plain)
    assert digest(encoded) == sha256(plain)


def test_large_arrays_in_several_slabs(tmp_path: Path) -> None:
    source, target = tmp_path / "x.npy", tmp_path / "x.ra"
    np.save(source, np.arange(700_001, dtype=">u4"))

    convert(source, target)

    assert digest(source) == sha256(target)


def test_container_arrays_are_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=VALUES["uint8"], b=VALUES["datetime"])
    for name in ("a", "b"):
        convert(f"{path}#{name}", tmp_path / f"{name}.ra")

    assert digest(path, "a") == digest(f"{path}#a") == sha256(tmp_path / "a.ra")
    assert digest(path, "b") == sha256(tmp_path / "b.ra")
    with pytest.raises(UsageError, match="has 2 arrays"):
        digest(path)


def test_damaged_members_are_found(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(100, dtype="u1"))
    data = bytearray(path.read_bytes())
    data[data.index(bytes(range(50, 60)))] ^= 1
    path.write_bytes(data)

    with pytest.raises(Corrupt, match="CRC"):
        digest(path)


# The command line --------------------------------------------------------------------------------


def test_output_is_that_of_sha256sum(
    tmp_path: Path, tool: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "x.ra")
    np.save(tmp_path / "x.npy", VALUES["uint8"])
    convert(tmp_path / "x.npy", path)
    expected = subprocess.run(
        [tool("sha256sum"), path], capture_output=True, text=True, check=True
    ).stdout

    assert main(["digest", path]) == 0

    assert capfd.readouterr().out == expected


@pytest.mark.skipif(os.name != "posix", reason="names that Windows forbids")
@pytest.mark.parametrize(
    "name", ["a\nb.npy", "a\\b.npy", "a b.npy", "a\\n\nb.npy", "ä.npy", "#.npy"]
)
def test_odd_names_are_escaped_as_sha256sum_does(
    name: str, tmp_path: Path, tool: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / name)
    np.save(path, VALUES["uint8"])
    lines = subprocess.run(
        [tool("sha256sum"), path], capture_output=True, text=True, check=True
    ).stdout

    assert main(["digest", path]) == 0

    ours = capfd.readouterr().out
    assert (ours[:1] == "\\") == (lines[:1] == "\\")
    assert ours.lstrip("\\")[64:] == lines.lstrip("\\")[64:]


def test_carriage_returns_are_escaped() -> None:
    assert manifest_line("a\rb\\", "00") == "\\00  a\\rb\\\\"


def test_manifest_line_is_checked_by_sha256sum(
    tmp_path: Path, tool: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", VALUES["complex64"])

    assert main(["digest", "--as", "copy.ra", str(tmp_path / "x.npy")]) == 0

    convert(tmp_path / "x.npy", tmp_path / "copy.ra")
    done = subprocess.run(
        [tool("sha256sum"), "-c"],
        input=capfd.readouterr().out,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "copy.ra: OK\n")


def test_as_of_several_sources_is_the_digest_of_their_stack(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", VALUES["uint8"] + number)
    convert(str(tmp_path / "*.npy"), tmp_path / "stack.ra")

    assert main(["digest", "--as", "stack.ra", str(tmp_path / "*.npy")]) == 0

    assert capfd.readouterr().out == f"{sha256(tmp_path / 'stack.ra')}  stack.ra\n"


def test_as_names_one_array_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", a=1, b=2)

    assert main(["digest", "--as", "x.ra", str(tmp_path / "x.npz")]) == 2
    assert "choose with FILE#NAME: a, b" in capsys.readouterr().err


def test_one_bad_file_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", a=VALUES["uint8"], b=VALUES["bool"])
    paths = [str(tmp_path / name) for name in ("none.npy", "x.npz")]

    assert main(["digest", *paths]) == 1

    out, err = capsys.readouterr()
    assert [line.split("  ")[1] for line in out.splitlines()] == [f"{paths[1]}#a", f"{paths[1]}#b"]
    assert "No such file" in err
