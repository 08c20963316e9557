"""``raconvert SRC... -o DST``: what is passed on, what is said, and what interruption leaves."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from raconvert.cli import main
from raconvert.cli.options import CONVERT
from raconvert.conversion.pipeline import convert

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder with a.npy and the numbered files p/1.npy, p/2.npy, p/10.npy."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(6, dtype="f4").reshape(2, 3))
    os.mkdir("p")
    for number in (1, 2, 10):
        np.save(f"p/{number}.npy", np.full((2, 2), number))
    return tmp_path


def stack_of(path: str) -> list[int]:
    """Return the first element of each item of a stack of int64 in an .npy file."""
    return [int(item.flat[0]) for item in np.load(path)]


# Options -----------------------------------------------------------------------------------------


def test_every_option_reaches_the_pipeline() -> None:
    told = {option.dest for option in CONVERT} - {"output", "report"}

    known = set(inspect.signature(convert).parameters)

    assert told <= known


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [1, 2, 10]),
        (["--sort", "name"], [1, 10, 2]),
        (["--exclude", "2*"], [1, 10]),
        (["--include", "1*"], [1, 10]),
    ],
)
def test_folders_are_stacked_in_order(words: list[str], expected: list[int]) -> None:
    assert main(["p", "-o", "s.npy", *words]) == 0
    assert stack_of("s.npy") == expected


def test_lists_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("list").write_text("p/10.npy\np/1.npy\n")
    Path("list0").write_bytes(b"p/2.npy\0p/1.npy\0")

    assert main(["--files-from", "list", "-o", "s.npy"]) == 0
    assert main(["--files-from", "list0", "-0", "-o", "s0.npy"]) == 0

    assert stack_of("s.npy") == [10, 1]
    assert stack_of("s0.npy") == [2, 1]


def test_concat_and_each_and_stack() -> None:
    assert main(["p", "--concat", "0", "-o", "c.npy"]) == 0
    assert main(["a.npy", "--stack", "-o", "s.npy"]) == 0
    assert main(["p", "--each", "-o", "{stem}.ra", "-q"]) == 0

    assert np.load("c.npy").shape == (6, 2)
    assert np.load("s.npy").shape == (1, 2, 3)
    assert sorted(path.name for path in Path().glob("*.ra")) == ["1.ra", "10.ra", "2.ra"]


def test_options_of_formats_and_types() -> None:
    assert main(["a.npy", "-o", "z.npz", "--out-opt", "compress=deflate"]) == 0
    assert main(["a.npy", "-o", "i.npy", "--dtype", "uint8"]) == 0
    assert main(["a.npy", "-o", "t.npy", "--axes", "1,0"]) == 0

    assert np.load("i.npy").dtype == np.uint8
    assert np.load("t.npy").shape == (3, 2)


def test_arrays_of_containers() -> None:
    np.savez("x.npz", aa=np.arange(3), ab=np.arange(4), b=np.arange(5))

    assert main(["x.npz#b", "-o", "b.npy"]) == 0
    assert main(["x.npz", "-a", "aa", "-o", "aa.npy"]) == 0
    assert main(["x.npz", "-a", "a*", "-o", "y.npz"]) == 0
    assert main(["x.npz", "-o", "x.npy"]) == 2

    assert np.load("b.npy").size == 5
    assert np.load("aa.npy").size == 3
    assert np.load("y.npz").files == ["aa", "ab"]


def test_memory_limits_are_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("big.npy", np.zeros(1 << 20, "u1"))

    assert main(["big.npy", "-o", "b.ra", "--out-opt", "encoding=lz4", "--max-memory", "1M"]) == 4
    assert "--max-memory" in capsys.readouterr().err


# Destinations ------------------------------------------------------------------------------------


def test_existing_destinations(capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.ra").write_bytes(b"old")

    assert main(["a.npy", "-o", "b.ra"]) == 5
    assert Path("b.ra").read_bytes() == b"old"
    assert main(["a.npy", "-o", "b.ra", "--skip-existing"]) == 0
    assert Path("b.ra").read_bytes() == b"old"
    assert "kept b.ra: exists already" in capsys.readouterr().err
    assert main(["a.npy", "-o", "b.ra", "--overwrite"]) == 0
    assert Path("b.ra").read_bytes()[:8] == b"rawarray"
    os.utime("b.ra", (1, 1))
    assert main(["a.npy", "-o", "b.ra", "--update"]) == 0
    assert os.path.getmtime("b.ra") > 1


def test_standard_output_is_the_file(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["a.npy", "-o", "b.ra", "-q"]) == 0
    assert main(["a.npy", "-o", "-", "--to", "ra"]) == 0

    out, err = capfdbinary.readouterr()
    assert out == Path("b.ra").read_bytes()
    assert err.startswith(b"wrote -: ")


def test_a_terminal_gets_no_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert main(["a.npy", "-o", "-", "--to", "ra"]) == 2
    assert "is a terminal" in capsys.readouterr().err


# Batches -----------------------------------------------------------------------------------------


def test_one_bad_file_does_not_stop_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p/2.npy").write_bytes(b"\x93NUMPY")

    assert main(["p", "--out-dir", "out", "--to", "ra", "--report", "r.jsonl"]) == 1

    assert sorted(os.listdir("out")) == ["1.ra", "10.ra"]
    err = capsys.readouterr().err
    assert "raconvert: cannot read 'p/2.npy' as NumPy NPY: " in err
    assert err.endswith("raconvert: 1 of 3 files failed\n")
    lines = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    assert [(line["status"], line["path"], line["exit_code"]) for line in lines] == [
        ("written", "out/1.ra", 0),
        ("written", "out/10.ra", 0),
        ("failed", "p/2.npy", 1),
    ]


def test_fail_fast_stops(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p/1.npy").write_bytes(b"\x93NUMPY")

    assert main(["p", "--out-dir", "out", "--to", "ra", "--fail-fast"]) == 1
    assert not os.path.exists("out/10.ra")


def test_remedies_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["p", "--out-dir", "out", "--to", "ra"]
    assert main(words) == 0

    assert main(words) == 1

    err = capsys.readouterr().err
    assert err.count("exists already") == 3
    assert err.count("use --overwrite") == 1
    assert main([*words, "--skip-existing"]) == 0
    assert capsys.readouterr().err == "kept 3 files: exists already\n"
    assert main([*words, "--skip-existing", "-v"]) == 0
    assert "kept out/2.ra: exists already\n" in capsys.readouterr().err


def test_the_report_tells_of_a_single_failure() -> None:
    assert main(["none.npy", "-o", "b.ra", "--report", "r.jsonl"]) == 1

    line = json.loads(Path("r.jsonl").read_text())
    assert (line["status"], line["path"], line["exit_code"]) == ("failed", "none.npy", 1)


def test_the_report_tells_what_was_lost() -> None:
    with zipfile.ZipFile("worn.npz", "w") as file:
        file.write("a.npy")
        file.writestr("b.npy", b"\x93NUMPY\1\0\x10\0{broken}       \n")
    assert main(["worn.npz", "-o", "w.zip", "--allow", "arrays", "--report", "r.jsonl"]) == 0

    written, lost = map(json.loads, Path("r.jsonl").read_text().splitlines())
    assert (written["status"], written["path"]) == ("written", "w.zip")
    assert (lost["status"], lost["array"], lost["property"]) == ("lost", "b", "elements")
    assert "cannot be read" in lost["reason"]


def test_the_report_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.jsonl").write_text("old")

    assert main(["a.npy", "-o", "b.ra", "--report", "r.jsonl"]) == 5
    assert not os.path.exists("b.ra")
    assert main(["a.npy", "-o", "b.ra", "--report", "none/r.jsonl"]) == 2
    assert not os.path.exists("b.ra")
    assert main(["a.npy", "-o", "b.ra", "--report", "r.jsonl", "--overwrite"]) == 0
    assert json.loads(Path("r.jsonl").read_text())["path"] == "b.ra"


# What is said ------------------------------------------------------------------------------------


def test_json_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["p", "-o", "s.ra", "--json"]) == 0

    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["written"] == ["s.ra"]
    assert [(array["type"], array["shape"]) for array in found["arrays"]] == [("int64", [3, 2, 2])]
    assert (found["source_count"], found["target_format"]) == (3, "ra")
    assert "stacking 3 files" in found["notes"][0]
    assert "stacking 3 files" in err


def test_what_changes_is_said_on_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    pil = pytest.importorskip("PIL.Image")
    info = pytest.importorskip("PIL.PngImagePlugin").PngInfo()
    info.add_text("Title", "about")
    pil.fromarray(np.zeros((2, 3), "u1")).save("i.png", pnginfo=info)

    assert main(["i.png", "-o", "i.npy"]) == 0

    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("equivalent: array 'i': metadata")
    assert lines[1].startswith("wrote i.npy")
    assert main(["i.png", "-o", "j.npy", "--strict"]) == 4


def test_verify_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["a.npy", "-o", "b.npz", "--verify"]) == 0
    assert np.array_equal(np.load("b.npz")["a"], np.load("a.npy"))


# Interruption ------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_interruption_leaves_nothing(name: str, folder: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 9, (1, 1_000_000), dtype="u1")
    np.save("big.npy", np.broadcast_to(noise, (60, 1_000_000)))  # seconds of deflating
    before = sorted(os.listdir())
    process = subprocess.Popen(
        [sys.executable, "-m", "raconvert", "big.npy", "-o", "b.npz", "--out-opt=compress=deflate"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    # In the middle of writing. (In an import, Python may make the end by any signal one by SIGINT.)
    deadline = time.monotonic() + 60
    while sum(os.path.getsize(name) for name in {*os.listdir()} - {*before}) < 1 << 20:
        assert time.monotonic() < deadline, "nothing was ever written"
        time.sleep(0.01)

    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err == "raconvert: interrupted\n"
    assert sorted(os.listdir()) == before


def test_signal_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)

    assert main(["a.npy", "-o", "b.ra"]) == 0

    assert signal.getsignal(signal.SIGTERM) == before


def test_the_files_written_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither arrays nor sidecars are files of their own, and what failed is none."""
    monkeypatch.chdir(tmp_path)
    np.savez("v.npz", a=np.zeros(2), b=np.zeros((2, 3), order="F"), c=np.zeros(3))
    np.save("x.npy", np.zeros((2, 3), "u1"))
    np.save("y.npy", np.zeros((2, 3)))
    for command, said in (
        ("v.npz --to zip --out-dir o1", "wrote 1 file: 3 arrays"),
        ("v.npz x.npy --to zip --out-dir o2", "wrote 2 files: 4 arrays"),
        ("v.npz --to ra --out-dir o3", "wrote 3 files: 3 arrays"),
        ("v.npz x.npy --to ra --out-dir o4", "wrote 4 files: 4 arrays"),
        ("v.npz x.npy --to ra --out-dir o5 --dry-run", "would write 4 files: 4 arrays"),
        ("x.npy y.npy --each --to png --out-dir o6", "wrote 1 file: uint8"),
    ):
        assert main(command.split()) == (1 if "png" in command else 0)
        told = capsys.readouterr()
        assert said in told.err + told.out, command


def test_the_same_change_of_many_arrays_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("v.npz", **{f"v{n}": np.zeros(3) for n in range(7)}, w=np.zeros(2))

    assert main(["v.npz", "-o", "v.mat"]) == 0
    said = capsys.readouterr().err.splitlines()
    told = [line for line in said if line.startswith("equivalent: ")]
    assert len(told) == 2
    assert told[0].startswith("equivalent: 7 arrays: shape: ")
    assert told[0].endswith(": v0, v1, v2, v3, v4, and 2 more")
    assert told[1].startswith("equivalent: array 'w': shape: ")

    assert main(["v.npz", "-o", "w.mat", "-v"]) == 0
    assert capsys.readouterr().err.count("equivalent: array ") == 8


def test_a_part_of_an_hdf5_file_takes_no_links_along(tmp_path: Path) -> None:
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["y"] = [1], [2]
        file["alias"] = file["x"]
        file["out"] = h5py.ExternalLink("/etc/passwd", "/x")
        file["nowhere"] = h5py.SoftLink("/nope")
    convert(f"{tmp_path / 'a.h5'}#x", tmp_path / "part.h5")
    convert(tmp_path / "a.h5", tmp_path / "all.h5")
    with h5py.File(tmp_path / "part.h5") as part, h5py.File(tmp_path / "all.h5") as whole:
        assert sorted(part) == ["alias", "x"]
        assert sorted(whole) == ["alias", "nowhere", "out", "x", "y"]


# The types that are named ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["npy", "h5"])  # others: tests/cli/convert.txt
@pytest.mark.parametrize("dtype", [">f8", ">i4", ">c16"])
def test_the_line_names_the_type_that_was_written(
    suffix: str, dtype: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("big.npy", np.arange(6).reshape(2, 3).astype(dtype))

    assert main(["big.npy", "-o", f"x.{suffix}"]) == 0

    said = capsys.readouterr()
    assert f": {np.dtype(dtype).name} (2, 3)" in said.out + said.err
    assert "big-endian" not in said.out + said.err
    if suffix == "npy":
        assert np.load("x.npy").dtype == np.dtype(dtype).newbyteorder("<")


def test_planes_name_the_type_that_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("big.npy", np.arange(24, dtype=">u2").reshape(2, 3, 4))

    assert main(["big.npy", "-o", "x{}.png", "--planes"]) == 0

    said = capsys.readouterr()
    assert "uint16" in said.out + said.err
    assert "big-endian" not in said.out + said.err


@pytest.mark.parametrize(
    ("target", "dtype", "flag"),
    [("x.har", "c8", "float32"), ("x.har", "c16", "float32"), ("x.png", "bfloat16", "uint8")],
)
def test_the_flag_that_is_named_helps(
    target: str, dtype: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("a.npy", np.array([[1, 2], [3, 4]], "f4" if dtype == "bfloat16" else dtype))
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    assert main(["a.npy", "-o", "a.ra", "--dtype", dtype]) == 0
    assert main(["a.ra", "-o", target]) == 4
    assert f"allow with --dtype {flag}" in capsys.readouterr().err

    assert main(["a.ra", "-o", target, "--dtype", flag]) == 0
    assert main([target, "-o", "b.npy"]) == 0

    assert sorted(np.load("b.npy").ravel()) == [1, 2, 3, 4]


def test_the_flag_for_complex_numbers_loses_no_imaginary_part(
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.save("a.npy", np.array([1, 2 + 1j]))

    assert main(["a.npy", "-o", "x.har", "--dtype", "float32"]) == 4
    assert "index [1]" in capsys.readouterr().err
    assert not os.path.exists("x.har")
