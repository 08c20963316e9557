"""Hostile and damaged NRRD files: refused by an error of ours, quickly, in little memory."""

from __future__ import annotations

import bz2
import gzip
import os
import random
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from attempts import MB, REFUSALS, Answer
from cases import every, rounds, some
from raconvert.plugins import nrrd

from raconvert.arrays.blocks import as_ndarray
from raconvert.errors import RaconvertError
from raconvert.files.source import Source

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "nrrd"
PEAK = 200 * MB  # the bound; the interpreter with its imports takes some 80 of them


def header(
    *lines: str, magic: str = "NRRD0005", sizes: str = "8 8", encoding: str = "raw"
) -> bytes:
    """Return a header of bytes, with `lines` at its end."""
    fields = [magic, "type: uchar", f"dimension: {len(sizes.split())}", f"sizes: {sizes}",
              f"encoding: {encoding}", *lines, "", ""]  # fmt: skip
    return "\n".join(fields).encode("utf-8", "surrogateescape")


def zeros_in_gzip(mib: int) -> bytes:
    """Return so many MiB of zeros as gzip."""
    made = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([*(made.compress(bytes(MB)) for _ in range(mib)), made.flush()])


# name -> contents, and what the message says; made when they are needed
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "gzip_bomb_of_1_mb.nrrd": (
        lambda: header(encoding="gzip") + zeros_in_gzip(1000), "goes on for much longer",
    ),
    "gzip_bomb_from_the_end.nrrd": (
        lambda: header("byte skip: -1", encoding="gzip") + zeros_in_gzip(1000),
        "goes on for much longer",
    ),
    "gzip_bomb_of_members.nrrd": (
        lambda: header(encoding="gzip") + zeros_in_gzip(10) * 100, "goes on for much longer",
    ),
    "bzip2_bomb.nrrd": (
        lambda: header(encoding="bzip2") + bz2.compress(bytes(300 * MB)), "goes on for much longer",
    ),
    "gzip_sizes_beyond_its_ratio.nrrd": (
        lambda: header(sizes="1000000 2000", encoding="gzip") + zeros_in_gzip(1),
        "data is cut off",
    ),
    "gzip_skip_beyond_its_ratio.nrrd": (
        lambda: header("byte skip: 4000000000000", encoding="gzip") + zeros_in_gzip(1),
        "data is cut off",
    ),
    "gzip_fewer_than_promised.nrrd": (
        lambda: header(sizes="1000 1000", encoding="gzip") + zeros_in_gzip(1)[:-30] + bytes(5000),
        "gzip: ",
    ),
    "bzip2_petabytes.nrrd": (
        lambda: header(sizes="1000000000 1000000", encoding="bzip2") + bz2.compress(bytes(100)),
        "",  # the disk is too small for it, or the data is
    ),
    "zrl_petabytes.nrrd": (
        lambda: header(sizes="1000000000 1000000", encoding="zrl") + bytes(100), "data is cut off",
    ),
    "zrl_cut_in_a_run.nrrd": (
        lambda: header(encoding="zrl") + b"\0\0\1", "inside a run of zeros",
    ),
    "text_one_long_number.nrrd": (
        lambda: header(sizes="1", encoding="text") + b"1" * 3_000_000, "not a number",
    ),
    "text_of_nothing_but_commas.nrrd": (
        lambda: header(encoding="text") + b"," * 3_000_000, "too few values",
    ),
    "hex_of_blanks.nrrd": (lambda: header(encoding="hex") + b" " * 3_000_000, "data is cut off"),
    "hex_odd.nrrd": (lambda: header(encoding="hex", sizes="2") + b" 123   ", "odd number"),
    "hex_letters.nrrd": (lambda: header(encoding="hex") + b"0x" * 128, "is not hexadecimal"),
    "endless_line.nrrd": (lambda: header("content: " + "a" * 5_000_000), "header is too long"),
    "endless_header.nrrd": (
        lambda: header(*(["k:=" + "a" * 3_000_000] * 6)), "header is too long",
    ),
    "million_lines.nrrd": (lambda: header(*(["a:=b"] * 1_000_000)), "header is too long"),
    "no_end.nrrd": (lambda: b"NRRD0001\n" + b"# \n" * 60_000, "no"),
    "million_sizes.nrrd": (
        lambda: b"NRRD0001\ntype: uchar\ndimension: 2\nsizes: " + b"1 " * 1_500_000 + b"\n\n",
        "2 values, one for each axis",
    ),
    "million_kinds.nrrd": (lambda: header("kinds: " + "x " * 1_500_000), "2 values"),
    "million_labels.nrrd": (lambda: header("labels: " + '"" ' * 1_000_000), "2 texts"),
    "million_quotes.nrrd": (lambda: header('labels: "' + '\\"' * 1_900_000), "2 texts"),
    "million_vectors.nrrd": (
        lambda: header("space: LPS", "space directions: " + "(1,1,1)" * 500_000), "2 vectors",
    ),
    "million_coordinates.nrrd": (
        lambda: header("space: LPS", "space origin: (" + "1," * 1_900_000 + "1)"), "3 numbers",
    ),
    "million_brackets.nrrd": (
        lambda: header("space: LPS", "space origin: " + "(" * 3_900_000), "vectors",
    ),
    "million_digits.nrrd": (lambda: header("old min: " + "1" * 3_900_000), "a number"),
    "million_digits_of_size.nrrd": (
        lambda: header().replace(b"8 8", b"8 " + b"9" * 3_900_000), "a whole number",
    ),
    "negative_size.nrrd": (lambda: header(sizes="-8 -8") + bytes(64), "a whole number"),
    "fraction_size.nrrd": (lambda: header(sizes="2.9 8") + bytes(64), "a whole number"),
    "size_of_other_digits.nrrd": (lambda: header(sizes="٣ 8") + bytes(64), "a whole number"),
    "overflowing_sizes.nrrd": (
        lambda: header(sizes=" ".join(["4294967296"] * 4)) + bytes(64), "beyond any file",
    ),
    "list_of_many_names.nhdr": (
        lambda: header(*["data file: LIST", *["x.raw"] * 65_000], sizes="1 65000"), "x.raw",
    ),
    "pattern_of_many_names.nhdr": (
        lambda: header("data file: x%d.raw 0 1999999999 1", sizes="1 2000000000"), "x0.raw",
    ),
    "percent_n.nhdr": (lambda: header("data file: %d%n%s 1 8 1"), "one number such as %03d"),
    "name_with_nul.nhdr": (lambda: header("data file: a\0b"), "name that no file can have"),
    "name_of_bytes.nhdr": (lambda: header("data file: \udcff\udcfe"), "does not exist"),
    "line_skip_endless.nrrd": (
        lambda: header("line skip: 4000000000000000000") + b"\n" * 5_000_000, "fewer lines",
    ),
    "byte_skip_endless.nrrd": (
        lambda: header("byte skip: 4000000000000000000") + bytes(64), "data is cut off",
    ),
    "byte_skip_before_the_file.nrrd": (
        lambda: header("byte skip: -4000000000000000000") + bytes(64), "data is cut off",
    ),
    "byte_skip_into_the_header.nrrd": (lambda: header("byte skip: -1") + bytes(63), "cut off"),
    "names_itself.nhdr": (
        lambda: header("data file: names_itself.nhdr", "byte skip: 100"), "data is cut off",
    ),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files_are_refused(
    name: str, attempt: Callable[..., Answer], tmp_path: Path
) -> None:
    make, words = HOSTILE[name]
    path = tmp_path / name
    path.write_bytes(make())

    found = attempt(path, tmp_path / "out.ra")

    assert found.kind in REFUSALS | {"WriteFailed"}, f"{found.kind}: {found.text}"
    assert name in found.text or "out.ra" in found.text
    assert words in found.text
    assert len(found.text) < 2000
    assert found.peak < PEAK
    assert os.listdir(tmp_path) == [name]


# Accepted, and as cheap as what is refused.
HEAVY: dict[str, Callable[[], bytes]] = {
    "json_of_lists.nrrd": lambda: header(
        'raconvert:={"attributes":{"a":[' + ",".join(["[]"] * 340_000) + "]}}"
    ) + bytes(64),
    "json_of_mappings.nrrd": lambda: header(
        'raconvert:={"attributes":{"a":[' + ",".join(["{}"] * 340_000) + "]}}"
    ) + bytes(64),
    "json_keys_of_one_hash.nrrd": lambda: header(
        'raconvert:={"attributes":{"$dict":['
        + ",".join(f"[{number * (2**61 - 1)},0]" for number in range(1, 35_001))
        + "]}}"
    ) + bytes(64),
    "json_nested.nrrd": lambda: header("raconvert:=" + "[" * 1_000_000) + bytes(64),
    "json_too_long.nrrd": lambda: header("raconvert:={" + " " * 3_900_000) + bytes(64),
    "comments.nrrd": lambda: header(*(["# comment"] * 65_000)) + bytes(64),
    "pairs.nrrd": lambda: header(*(f"{n}:={n}" for n in range(65_000))) + bytes(64),
    "backslashes.nrrd": lambda: header("k:=" + "\\" * 3_900_000) + bytes(64),
    "zrl_longer_than_the_array.nrrd": lambda: header(encoding="zrl") + b"\0\0\xff\xff" * 250_000,
    "gzip_of_members.nrrd": lambda: header(encoding="gzip") + gzip.compress(b"", 1, mtime=0) * 20_000
    + gzip.compress(bytes(64)),
}  # fmt: skip


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_files_are_read(name: str, attempt: Callable[..., Answer], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(HEAVY[name]())

    found = attempt(path, tmp_path / "out.ra", meta="drop")

    assert found.kind == "", found.text
    assert found.peak < PEAK


@pytest.mark.parametrize("name", ["pipe", "device", "passwd", "socket"])
@pytest.mark.parametrize("encoding", ["raw", "gzip", "text"])
def test_what_no_header_may_name(
    name: str, encoding: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    import socket

    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    path = tmp_path / "x.nhdr"
    path.write_bytes(header(f"data file: {name}", "byte skip: -1", encoding=encoding))
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.getcwd()
        os.chdir(tmp_path)  # the path of a socket is short
        try:
            server.bind("socket")
        finally:
            os.chdir(folder)

        told = refused(path)
        assert "outside the folder" in told or "not a regular file" in told
        if name != "passwd":
            assert "not a regular file" in refused(path, trust=["external"])


# --- damage ---------------------------------------------------------------------------------------


def attempts_at(path: Path, whole: bytes | None = None) -> str | None:
    """Decode a file; return what is wrong with the way in which that fails, or with the values."""
    try:
        got = as_ndarray(nrrd.read(Source(str(path))).arrays[0], 1 << 20)
    except RaconvertError as error:
        return None if str(path.parent) in str(error) else f"the file is not named: {error}"
    except Exception as error:  # noqa: BLE001 - any other error is what is looked for
        return f"raises {error!r}"
    return "other values" if whole not in (None, got.tobytes()) else None


def damaged(contents: bytes, seed: int) -> Iterator[bytes]:
    """Yield copies with bits flipped, bytes replaced by those that mean something, or parts gone."""
    rng = random.Random(seed)
    for _ in range(rounds(150, 20)):
        copy = bytearray(contents)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(copy))
            change = rng.randrange(4)
            if change == 0:
                copy[at] ^= 1 << rng.randrange(8)
            elif change == 1:
                copy[at : at + 1] = rng.choice([b"\n", b": ", b":=", b"-", b"9", b'"', b"(", b"%d"])
            elif change == 2:
                del copy[at : at + rng.randint(1, 9)]
            else:
                copy[at:at] = copy[at : at + rng.randint(1, 40)]
        yield bytes(copy)


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """Return a folder with copies of all fixtures."""
    for path in FIXTURES.rglob("*"):
        if path.is_file():
            (tmp_path / path.relative_to(FIXTURES)).parent.mkdir(exist_ok=True)
            (tmp_path / path.relative_to(FIXTURES)).write_bytes(path.read_bytes())
    return tmp_path


def test_damaged_files(copies: Path) -> None:
    wrong = {}
    for path in sorted(copies.iterdir()):
        if path.suffix in (".nrrd", ".nhdr"):
            for number, contents in enumerate(damaged(path.read_bytes(), len(path.name))):
                path.write_bytes(contents)
                problem = attempts_at(path)
                if problem:
                    wrong[f"{path.name} {number}"] = problem
    assert wrong == {}


# What unu takes and we refuse, each of them on purpose.
STRICTER = (
    "data is not encoded by", "a whole number from", "is repeated", "text is no number",
    "outside the folder", "is not a NRRD file", "does not exist", "gzip: data cannot be inflated",
    "numbers in each vector",
)  # fmt: skip


def test_damaged_headers_mean_what_unu_takes_them_for(
    copies: Path, tool: Callable[..., str]
) -> None:
    unu = tool("unu", "teem-unu")
    words = [b"9", b"-", b"nan", b"none", b'"', b"(", b",", b" ", b"\n", b"\r\n", b"byte skip: -1\n",
             b"line skip: 1\n", b"endian: big\n", b"type: uchar\n", b"space: LPS\n"]  # fmt: skip
    wrong, both = {}, 0
    for path in sorted(copies.iterdir()):
        if path.suffix not in (".nrrd", ".nhdr"):
            continue
        contents, rng = path.read_bytes(), random.Random(path.name)
        end = len(contents.partition(b"\n\n")[0]) + 2
        for number in range(15):
            lines = contents[:end].splitlines(keepends=True)
            at = rng.randrange(1, len(lines))
            if number % 3:
                text, place = lines[at], rng.randrange(len(lines[at]))
                lines[at] = text[:place] + rng.choice(words) + text[place + rng.randrange(2) :]
            else:
                lines.insert(rng.randrange(1, len(lines)), lines.pop(at))
            path.write_bytes(b"".join(lines) + contents[end:])
            command = [unu, "save", "-f", "nrrd", "-e", "raw", "-en", "little", "-i", str(path)]
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode:
                continue
            try:
                array = nrrd.read(Source(str(path)), restore=False).arrays[0]
                values = as_ndarray(array)
            except RaconvertError as error:
                if not any(words in str(error) for words in STRICTER):
                    wrong[f"{path.name} {number}"] = str(error)
                continue
            both += 1
            expected = np.frombuffer(done.stdout[-array.nbytes :], values.dtype)
            if not np.array_equal(values.ravel(), expected, equal_nan=values.dtype.kind == "f"):
                wrong[f"{path.name} {number}"] = "other values"
    assert wrong == {}
    assert both > 60


def test_files_cut_anywhere_are_never_taken_for_the_whole(copies: Path) -> None:
    taken = {}
    for path in sorted(copies.iterdir()):
        if path.suffix not in (".nrrd", ".nhdr"):
            continue
        contents = path.read_bytes()
        whole = as_ndarray(nrrd.read(Source(str(path))).arrays[0]).tobytes()
        for length in some(range(len(contents)), 60, path.name):
            path.write_bytes(contents[:length])
            problem = attempts_at(path, whole)
            # The last number of a text may lose digits: nothing in the format could tell.
            if problem and not (problem == "other values" and "text" in path.name):
                taken[f"{path.name} {length}"] = problem
    assert taken == {}


def test_data_files_cut_anywhere_are_refused(copies: Path) -> None:
    for name in ("itk_detached.raw", "parts/p3.bin", "parts/n-02.raw"):
        path = copies / name
        contents = path.read_bytes()
        header_path = copies / {"itk_detached.raw": "itk_detached.nhdr", "parts/p3.bin":
                                "skiplist.nhdr"}.get(name, "pattern_down.nhdr")  # fmt: skip
        for length in some(range(len(contents)), 60, name):
            path.write_bytes(contents[:length])
            with pytest.raises(RaconvertError, match="cut off"):
                nrrd.read(Source(str(header_path)))
