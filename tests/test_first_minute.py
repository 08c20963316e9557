"""The first minute: what people type before they have read anything works, or says what to type."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shlex
import shutil
import sqlite3
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert.cli import main
from raconvert.errors import ReadFailed, UnknownFormat
from raconvert.files import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VALUES = np.arange(12, dtype="u1").reshape(3, 4)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that has a.npy only."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", VALUES)
    return tmp_path


def run(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a line of a shell; return the exit code and what was printed."""
    code = main(shlex.split(line)[1:])
    out, err = capsys.readouterr()
    return code, out, err


def image_format(path: Path) -> str | None:
    with Image.open(path) as made:
        return made.format


# The line itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["raconvert convert a.npy b.npz", "raconvert a.npy b.npz",
                                  "raconvert a.npy 'a b.npz' -v"])  # fmt: skip
def test_a_missing_o_is_named_and_the_line_that_is_shown_works(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(line, capsys)

    assert code == 2
    first, shown = err.splitlines()
    assert "-o is missing" in first
    assert shown.strip().startswith("raconvert ")
    assert run(shown.strip(), capsys)[0] == 0
    (made,) = Path().glob("*.npz")
    assert np.load(made)["a"].tolist() == VALUES.tolist()


def test_without_any_destination_the_ways_to_name_one_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run("raconvert convert a.npy", capsys)

    assert code == 2
    assert "raconvert convert a.npy -o DST" in err
    assert "raconvert info a.npy" in err


@pytest.mark.parametrize(
    ("word", "suffix", "read"),
    [
        ("h5", ".h5", lambda path: path.read_bytes()[:8] == b"\x89HDF\r\n\x1a\n"),
        ("tif", ".tif", lambda path: image_format(path) == "TIFF"),
        ("jpg", ".jpg", lambda path: image_format(path) == "JPEG"),
        ("matlab", ".mat", lambda path: path.read_bytes().startswith(b"MATLAB 5.0")),
        (".npy", ".npy", lambda path: np.load(path).shape == (3, 4)),
        ("PNG", ".png", lambda path: image_format(path) == "PNG"),
        ("numpy", ".npy", lambda path: np.load(path).shape == (3, 4)),
        ("HDF5", ".h5", lambda path: path.read_bytes()[:8] == b"\x89HDF\r\n\x1a\n"),
    ],
)
def test_formats_are_known_by_suffix_program_and_in_capitals(
    word: str, suffix: str, read: Callable[[Path], bool], capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"raconvert a.npy --to {word} --out-dir out --allow precision"

    assert run(line, capsys)[0] == 0
    assert read(Path("out/a").with_suffix(suffix))
    assert run(f"raconvert formats {word}", capsys)[0] == 0


@pytest.mark.parametrize("flag", ["--force", "-f", "-y"])
def test_force_names_overwrite(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("b.npy", np.zeros(2))

    code, _, err = run(f"raconvert a.npy -o b.npy {flag}", capsys)

    assert code == 2
    assert "did you mean '--overwrite'?" in err
    assert np.load("b.npy").shape == (2,)
    assert run("raconvert a.npy -o b.npy --overwrite", capsys)[0] == 0
    assert np.load("b.npy").shape == (3, 4)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("b.nrdd", ".nrrd"), ("b.nyp", ".npy"), ("b.hdf", ".hdf5"), ("b.PGN", ".png")],
)
def test_a_misspelled_suffix_is_corrected(
    wrong: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(f"raconvert a.npy -o {wrong}", capsys)

    assert code == 3
    assert f"did you mean '{right}'?" in err
    assert not Path(wrong).exists()


@pytest.mark.parametrize("given", ["-8:8", "-8.5:8", "-.5:8", "-1e1:-.5"])
def test_a_negative_scale_is_a_value(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    low, high = map(float, given.split(":"))
    np.save("f.npy", np.linspace(low, high, 12).reshape(3, 4))

    code, _, err = run(f"raconvert f.npy -o f.png --scale {given}", capsys)

    assert code == 0, err
    with Image.open("f.png") as made:
        assert made.getextrema() == (0, 255)


def test_other_negative_numbers_are_values_and_flags_stay_flags(
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.save("c.npy", VALUES)

    assert run("raconvert a.npy c.npy --concat -1 -o d.npy", capsys)[0] == 0
    assert np.load("d.npy").shape == (3, 8)
    code, _, err = run("raconvert diff a.npy c.npy --atol -1", capsys)
    assert (code, "negative" in err) == (2, True)
    code, _, err = run("raconvert a.npy --scale -o d.png", capsys)
    assert (code, "expected one argument" in err) == (2, True)
    Path("list").write_bytes(b"a.npy\0c.npy")
    assert run("raconvert --files-from list -0 -o e.npy", capsys)[0] == 0


@pytest.mark.parametrize("place", ["newdir/x.npy", "new dir/deep/x.npy", "newdir/x.h5"])
def test_the_folder_that_is_missing_is_named_with_the_line_that_makes_it(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(f"raconvert a.npy -o '{place}'", capsys)

    assert code == 1
    assert f"folder '{os.path.dirname(place)}' does not exist" in err
    shown = next(line.strip() for line in err.splitlines() if "mkdir -p" in line)
    os.makedirs(shlex.split(shown)[2])
    assert run(f"raconvert a.npy -o '{place}'", capsys)[0] == 0


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("scam.npy", "scan.npy"), ("Scan.NPY", "scan.npy"), ("scan.npz", "scan.npy"),
     ("sub/imagse.h5", "sub/images.h5"), ("scan1.npy", None), ("other.npy", None),
     ("images.h5", None), ("none/scan.npy", None)],
)  # fmt: skip
@pytest.mark.parametrize("line", ["info {}", "{} -o x.ra", "diff a.npy {}", "verify {}"])
def test_a_misspelled_source_is_corrected(
    wrong: str, right: str | None, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkdir("sub")
    for name in ("scan.npy", "scan2.npy", "sub/images.h5", ".hidden.npy"):
        Path(name).write_bytes(Path("a.npy").read_bytes())

    code, _, err = run(f"raconvert {line.format(wrong)}", capsys)

    assert code == (2 if line.startswith("diff") else 1)
    assert ("did you mean" in err) == (right is not None)
    assert right is None or f"did you mean '{right}'?" in err
    with pytest.raises(ReadFailed) as refusal:
        raconvert.read(wrong)
    assert right is None or f"did you mean '{right}'?" in str(refusal.value)


def test_only_some_names_of_a_large_folder_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    monkeypatch.setattr(paths, "_likeness", lambda *names: asked.append(names) or 0.0)
    monkeypatch.setattr(paths, "MOST_NAMES", 20)
    for number in range(30):
        Path(f"{number}.x").touch()

    assert run("raconvert info none.npy", capsys)[0] == 1
    assert len(asked) == 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a folder with a.npy, as a web server has it."""
    place = tmp_path_factory.mktemp("www")
    np.save(place / "a.npy", VALUES)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(place))) as made:
        thread = Thread(target=made.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def test_a_url_is_a_source(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fsspec")

    assert "uint8" in run(f"raconvert info {server}/a.npy", capsys)[1]
    assert run(f"raconvert {server}/a.npy -o b.npz", capsys)[0] == 0
    assert np.load("b.npz")["a"].tolist() == VALUES.tolist()
    assert np.array_equal(raconvert.read(f"{server}/a.npy"), VALUES)
    code, _, err = run(f"raconvert {server}/none.npy -o c.ra", capsys)
    assert (code, Path("c.ra").exists(), "none.npy" in err) == (1, False, True)


def test_the_standard_input_is_a_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for data, code in ((Path("a.npy").read_bytes(), 0), (b"nothing of the kind", 3)):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(data)))
        found, _, err = run("raconvert - -o b.ra --overwrite", capsys)
        assert (found, "raconvert-" in err) == (code, False), err
    assert raconvert.ra.read("b.ra").tolist() == VALUES.tolist()


def test_bytes_and_open_files_are_sources() -> None:
    data = Path("a.npy").read_bytes()

    for source in (data, bytearray(data), memoryview(data), BytesIO(data)):
        assert np.array_equal(raconvert.read(source), VALUES)
    with Path("a.npy").open("rb") as file:
        raconvert.convert(file, "b.ra")
    assert raconvert.ra.read("b.ra").tolist() == VALUES.tolist()
    with pytest.raises(UnknownFormat, match="formats --why FILE"):
        raconvert.read(b"nothing of the kind")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a.npy --ov", {"--overwrite"}),  # the bare form
        ("a.npy -o b.ra --to np", {"npy", "npz"}),
        ("two.npz -o b.ra -a se", {"second"}),
        ("info two.npz#", {"two.npz#first", "two.npz#second"}),
        ("a.npy -o b.ra --out-opt enc", {"encoding="}),
        ("--from raw --in-opt sh", {"shape="}),
    ],
)
def test_completion_of_the_bare_form_array_names_and_option_keys(
    line: str, words: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez("two.npz", first=VALUES, second=VALUES)

    assert set(run(f"raconvert completion --words -- {line}", capsys)[1].splitlines()) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_every_shell_asks_the_program(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the shells themselves answer: tests/test_completion.py."""
    code, out, _ = run(f"raconvert completion {shell}", capsys)

    assert code == 0
    assert "completion --words" in out
    assert "raconvert" in out


# What a file is ----------------------------------------------------------------------------------


def sqlite() -> bytes:
    with sqlite3.connect("made.sqlite") as made:
        made.execute("create table t (x)")
    return Path("made.sqlite").read_bytes()


KNOWN: dict[str, Callable[[], bytes]] = {
    "CSV": lambda: b"x,y,z\n" + b"1,2.5,3\n" * 20,
    "TSV": lambda: b"x\ty\n1\t2\n3\t4\n",
    "Python pickle": lambda: pickle.dumps(VALUES, protocol=4),
    "SQLite": sqlite,
    "JSON": lambda: json.dumps({"values": VALUES.tolist()}).encode(),
    "references": lambda: b'{"version": 1, "refs": {".zgroup": "{\\"zarr_format\\":2}"}}',
    "HTML": lambda: b"<!DOCTYPE html><html><body>404</body></html>",
    "Git LFS": lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
    "plain text": lambda: b"nothing of the kind",
    "PDF": lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
}


@pytest.mark.parametrize("what", KNOWN)
@pytest.mark.parametrize("verb", ["info thing", "thing -o x.ra"])
def test_a_file_of_no_format_is_named_in_three_lines(
    what: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("thing").write_bytes(KNOWN[what]())

    code, _, err = run(f"raconvert {verb}", capsys)

    assert code == 3
    first, remedy, last = err.splitlines()
    assert first.startswith("raconvert: 'thing': no format claims this file")
    assert what in first
    assert remedy.strip()
    assert "allow_pickle" not in err
    shown = last.split("; ")[1].removesuffix(" has every answer")
    assert run(shown, capsys)[1].count("no") > 10


@pytest.mark.parametrize("data", [b"\x00\x01\x02" * 30, bytes(50), b"\x80", b"\xff" * 9])
def test_what_is_not_known_is_not_guessed(data: bytes) -> None:
    Path("thing").write_bytes(data)

    with pytest.raises(UnknownFormat) as refusal:
        raconvert.read("thing")
    assert "first bytes" not in str(refusal.value)


# Failures for programs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind", "code"),
    [
        ("raconvert info none.npy --json", "ReadFailed", 1),
        ("raconvert none.npy -o b.ra --json", "ReadFailed", 1),
        ("raconvert a.npy -o a.npy --json", "TargetExists", 5),
        ("raconvert a.npy -o b.nrdd --json", "UnknownFormat", 3),
        ("raconvert a.npy -o b.ra --overwite --json", "UsageError", 2),
        ("raconvert a.npy -o b.png --dtype f8 --json", "WouldLose", 4),
        ("raconvert inof --json", "UsageError", 2),
        ("raconvert diff a.npy none.npy --json", "ReadFailed", 2),
        ("raconvert verify none.npy --json", "ReadFailed", 1),
        ("raconvert digest none.npy --json", "ReadFailed", 1),
        ("raconvert formats nonesuch --json", "UnknownFormat", 3),
        ("raconvert migrate none out --to ra --json", "ReadFailed", 1),
    ],
)
def test_failures_with_json_are_json(
    line: str, kind: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(line, capsys)

    last = out.splitlines()[-1] if " migrate " in line else out  # whose result are lines
    error: dict[str, Any] = json.loads(last)["error"]
    assert (error["kind"], error["exit_code"], found) == (kind, code, code)
    assert error["what"] in err


def test_one_failure_among_several_is_told_in_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for verb in ("info", "verify", "digest"):
        code, out, _ = run(f"raconvert {verb} none.npy a.npy --json", capsys)

        first, second = json.loads(out)
        assert (code, first["path"], first["error"]["kind"]) == (1, "none.npy", "ReadFailed")
        assert "error" not in second


def test_the_standard_output_of_data_stays_that(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("raconvert none.npy -o - --to ra --json", capsys)

    assert (code, out) == (2, "")


def test_diff_with_a_missing_or_damaged_file_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cut.npy").write_bytes(Path("a.npy").read_bytes()[:-3])

    for names in ("a.npy none.npy", "none.npy a.npy", "a.npy cut.npy"):
        code, out, err = run(f"raconvert diff {names}", capsys)
        assert (code, out, err.count("\n") > 0) == (2, "", True), names


# Many files --------------------------------------------------------------------------------------


def test_notes_of_a_batch_name_their_file(capsys: pytest.CaptureFixture[str]) -> None:
    os.makedirs("in/y")
    np.save("in/one.npy", np.arange(3))
    np.save("in/two.npy", VALUES)
    np.save("in/y/two.npy", VALUES)

    code, _, err = run("raconvert in -r --to mat --out-dir out", capsys)

    assert code == 0
    assert "in/one.npy: equivalent: shape: one axis of 3 becomes 1 x 3\n" in err
    assert "in/two.npy (and 1 more file): transposed to column-major order" in err
    code, out, err = run("raconvert in -r --to mat --out-dir out2 --json -v", capsys)
    assert "in/y/two.npy: transposed" in err
    found = json.loads(out)
    assert [one["sources"] for one in found["equivalent"]] == [["in/one.npy"]]
    assert [one["sources"] for one in found["noted"]] == [["in/two.npy", "in/y/two.npy"]]


def test_one_collision_of_names_fails_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkdir("in")
    np.save("in/a.npy", VALUES)
    np.savez("in/a.npz", a=VALUES + 100)
    np.save("in/b.npy", VALUES)

    code, _, err = run("raconvert in --to h5 --out-dir out", capsys)

    assert code == 1
    assert "'in/a.npz': two sources would both become 'out/a.h5'" in err
    assert "1 of 3 files failed" in err
    assert sorted(os.listdir("out")) == ["a.h5", "b.h5"]
    assert raconvert.read("out/a.h5", "a").tolist() == VALUES.tolist()  # type: ignore[union-attr]
    code, _, err = run("raconvert in --to h5 --out-dir out3 --fail-fast", capsys)
    assert (code, os.path.exists("out3")) == (2, False)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 7,000 files, of more kinds than a summary has lines, and a few that are broken."""
    place = tmp_path_factory.mktemp("many")
    for number in range(6980):
        if number % 500 == 0:
            folder = place / f"{number // 500:02}"
            folder.mkdir()
        (folder / f"{number}.npy").write_bytes(one_by_one(number % 7 + 1))
    for number, kind in enumerate(("f8", "f4", "i8", "i4", "i2", "u8", "u4", "u2", "?", "c8")):
        np.save(place / f"00/kind{number}.npy", np.zeros(3, kind))
        (place / f"01/bad{number}.npy").write_bytes(b"\x93NUMPY" + bytes([number]) * 9)
    return place


def one_by_one(width: int) -> bytes:
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({width}, 2), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(2 * width)


def test_a_folder_of_7000_files_is_ten_lines(
    many: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(f"raconvert info -r '{many}'", capsys)

    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert len(lines) <= 10
    assert "7000 files in 14 folders" in lines[0]
    assert " ".join(lines[1].split()) == "6980 npy uint8 7 shapes, (1, 2) to (7, 2)"
    counts = [int(line.split()[0]) for line in lines[1:-1]]
    assert sum(counts) == 7000
    assert sum(int(line.split()[0]) for line in lines if "failed" in line) == 10
    code, out, _ = run(f"raconvert info -s '{many}/00'", capsys)
    assert (code, len(out.splitlines())) == (0, 510)


def test_diff_of_folders_is_summed_up(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.makedirs("a/deep")
    os.makedirs("b/deep")
    for number in range(20):
        np.save(f"a/{number}.npy", VALUES)
        raconvert.write(f"b/{number}.ra", VALUES + (number % 2))
        np.save(f"b/deep/{number}.npy", VALUES)

    code, out, _ = run("raconvert diff a b", capsys)
    assert code == 1
    assert out.splitlines() == [
        "* 1.npy   12 of 12 elements differ",
        "* and 9 more (-v shows all)",
        "20 files: 10 the same, 10 different",
    ]
    assert run("raconvert diff a b --atol 1", capsys)[0] == 0
    code, out, _ = run("raconvert diff -r a b", capsys)
    assert out.splitlines()[-1] == "40 files: 10 the same, 10 different, 20 only in b"
    assert "+ deep/0.npy" in out
    Path("a/2.npy").write_bytes(b"cut off")
    code, out, _ = run("raconvert diff a b --json", capsys)
    assert (code, json.loads(out)["counts"]["not compared"]) == (2, 1)
    code, out, _ = run(f"raconvert diff '{many}/02' '{many}/03' -q", capsys)
    assert (code, len(out.splitlines())) == (1, 5)


def test_digest_of_a_folder_is_a_manifest_or_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    os.makedirs("in/y")
    for name in ("in/1.npy", "in/y/2.npy"):
        np.save(name, VALUES)
    shutil.copytree("in", "copy")

    code, out, _ = run("raconvert digest -r in", capsys)
    assert (code, [line.split()[1] for line in out.splitlines()]) == (0, ["in/1.npy", "in/y/2.npy"])
    manifest = out.replace("in/", "")
    code, out, _ = run("raconvert digest -r -s in copy", capsys)
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    assert (code, out) == (0, f"{digest}  in\n{digest}  copy\n")
    np.save("copy/y/2.npy", VALUES + 1)
    assert run("raconvert digest -r -s copy", capsys)[1].split()[0] != digest
    Path("copy/bad.npy").write_bytes(b"cut off")
    code, out, err = run("raconvert digest -r -s copy", capsys)
    assert (code, out, "copy: has no digest" in err) == (1, "", True)


def test_diff_ignores_singletons_if_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("one.npy", VALUES[None, :, :, None])
    np.save("other.npy", VALUES[None].T)
    raconvert.write("f.mat", VALUES)

    assert run("raconvert diff a.npy one.npy", capsys)[0] == 1
    assert run("raconvert diff a.npy one.npy --ignore-singletons", capsys)[0] == 0
    assert run("raconvert diff one.npy f.mat --ignore-singletons --ignore-meta", capsys)[0] == 0
    code, out, _ = run("raconvert diff a.npy other.npy --ignore-singletons", capsys)
    assert (code, "not compared, the shapes differ" in out) == (1, True)
    changed = VALUES.copy()
    changed[1, 2] += 1
    np.save("one.npy", changed[None])
    code, out, _ = run("raconvert diff a.npy one.npy --ignore-singletons", capsys)
    assert (code, "first at [1, 2]" in out) == (1, True)
