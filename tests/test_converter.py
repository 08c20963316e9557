"""The shortcut of a `Converter`: small files become what they become by the ordinary way."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import raconvert
from raconvert.conversion.converter import Converter
from raconvert.errors import TargetExists
from raconvert.files import small

SHAPES = ((), (0,), (3,), (2, 3), (2, 0, 3), (4, 1, 2, 3))
TYPES = ("|b1", "|u1", "<u2", "<i4", "<f4", "<f8", "<c8", ">u2", ">f4", ">f8", ">c16", "<M8[s]",
         "<U3")  # fmt: skip
FORMATS = ("ra", "npy", "nrrd")
EACH = 4  # files of a kind: the first goes the usual way


@pytest.fixture(autouse=True, params=["compiled", "python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both forms of the system calls."""
    if not small.POSSIBLE:
        pytest.skip("files without a name are a thing of Linux")
    if request.param == "python":
        monkeypatch.setattr(small, "read_small", small.IN_PYTHON[0])
        monkeypatch.setattr(small, "write_small", small.IN_PYTHON[1])
        monkeypatch.setattr(small, "look_at_all", small.IN_PYTHON[2])
    elif small.read_small is small.IN_PYTHON[0]:
        pytest.skip("_small.c was not compiled: python setup.py build_ext --inplace")
    return request.param


@pytest.fixture
def made(way: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that the shortcut makes."""
    names = []
    really = small.write_small

    def write(name: str, *args: Any, **named: Any) -> int | None:
        done = really(name, *args, **named)
        if done is not None:
            names.append(name)
        return done

    monkeypatch.setattr(small, "write_small", write)
    return names


def fill(root: Path) -> None:
    """A folder of files for each type and shape, in NPY of both orders."""
    random = np.random.default_rng(7)
    for code in TYPES:
        for shape in SHAPES:
            folder = root / f"{code[1:]}{'b' if code[0] == '>' else ''}-{'x'.join(map(str, shape))}"
            folder.mkdir(parents=True)
            for number in range(EACH):
                values = random.integers(0, 2 if code == "|b1" else 100, shape).astype(code)
                np.save(folder / f"c{number}.npy", values)
                np.save(folder / f"f{number}.npy", np.asfortranarray(values))


def migrate(source: Path, target: Path, to: str, **options: Any) -> list[Any]:
    """What a migration says of every file, without its times."""
    result = raconvert.migrate(source, target, to=to, jobs=1, **options)
    assert not any("nothing was" not in str(e) and "bug" in str(e) for _, e in result.failed)
    return sorted(
        (u.source, u.target, o.state, o.size, o.digest, str(o.said),
         str(o.error and {**o.error, "path": ""}).replace(str(target), ""))
        for u, o in result.outcomes
    )  # fmt: skip


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode)
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.mark.parametrize("to", FORMATS)
def test_both_ways_make_the_same(
    to: str, tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "npy")
    for source in FORMATS:
        if not (tmp_path / source).is_dir():
            migrate(tmp_path / "npy", tmp_path / source, source)
        made.clear()
        by_lane = migrate(tmp_path / source, tmp_path / f"{source}-lane", to)
        taken = len(made)
        with monkeypatch.context() as patch:
            patch.setattr(Converter, "tried", lambda *_: None)
            made.clear()
            usual = migrate(tmp_path / source, tmp_path / f"{source}-usual", to)

        assert not made
        assert taken > 60, source
        assert by_lane == usual
        assert contents(tmp_path / f"{source}-lane") == contents(tmp_path / f"{source}-usual")


# PNG ---------------------------------------------------------------------------------------------


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def picture(
    values: np.ndarray, *, color: int, depth: int = 8, early: bytes = b"", late: bytes = b"",
    interlaced: bool = False, filter: int = 0, cuts: int = 1, stream: bytes = b"", more: bytes = b"",
) -> bytes:  # fmt: skip
    """A PNG of rows of whole samples, each row behind one filter byte."""
    height, width = values.shape[:2]
    rows = values.astype(values.dtype.newbyteorder(">")).reshape(height, -1)
    raw = b"".join(bytes([filter]) + row.tobytes() for row in rows)
    packed = zlib.compress(raw + more) + stream
    step = -(-len(packed) // cuts)
    pixels = [packed[at : at + step] for at in range(0, len(packed), step)]
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    return b"".join([
        b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", head), early,
        *(chunk(b"IDAT", piece) for piece in pixels), late, chunk(b"IEND", b""),
    ])  # fmt: skip


def pictures(root: Path) -> None:
    """A folder of PNG files for each kind of image, and for each way in which one is odd."""
    random = np.random.default_rng(11)
    text = chunk(b"tEXt", b"Title\0x")
    gamma, broken = chunk(b"gAMA", b"\0\0\xb1\x8f"), chunk(b"tEXt", b"a\0b")[:-1] + b"?"
    kinds: dict[str, dict[str, Any]] = {
        "grey": {}, "rgb": {"color": 2}, "rgba": {"color": 6}, "greyalpha": {"color": 4},
        "grey16": {"depth": 16}, "rgb16": {"color": 2, "depth": 16}, "pixel": {"size": (1, 1)},
        "sub": {"filter": 1}, "up": {"filter": 2}, "average": {"filter": 3}, "paeth": {"filter": 4},
        "paeth16": {"filter": 4, "depth": 16, "color": 6}, "interlaced": {"interlaced": True,
        "size": (1, 1)}, "pieces": {"cuts": 3}, "text": {"early": text}, "late": {"late": text},
        "gamma": {"early": gamma}, "key": {"early": chunk(b"tRNS", b"\0\7")},
        "suggested": {"color": 2, "early": chunk(b"PLTE", bytes(6))},
        "palette": {"color": 3, "early": chunk(b"PLTE", bytes(range(60))), "most": 20},
        "note": {"early": broken}, "empty": {"late": chunk(b"IDAT", b"")},
        "animated": {"early": chunk(b"acTL", bytes(3) + b"\2" + bytes(4))},
    }  # fmt: skip
    for name, how in kinds.items():
        (root / name).mkdir(parents=True)
        how = {"color": 0, "depth": 8, **how}  # noqa: PLW2901
        shape, most = how.pop("size", (5, 4)), how.pop("most", 256)
        channels = {0: (), 2: (3,), 3: (), 4: (2,), 6: (4,)}[how["color"]]
        for number in range(EACH):
            values = random.integers(0, most, (*shape, *channels)).astype(f"u{how['depth'] // 8}")
            (root / name / f"{number}.png").write_bytes(picture(values, **how))
    odd = root / "odd"
    odd.mkdir()
    values = random.integers(0, 256, (5, 4), "u1")
    whole = picture(values, color=0)
    pixels = whole.index(b"IDAT") + 4
    cases = {
        "0": whole, "1": whole, "text": picture(values, color=0, late=text), "cut": whole[:-1],
        "trailing": whole + b"more", "palette": picture(values, color=0, early=kinds["palette"]
        ["early"]), "checksum": whole[: pixels + 3] + b"\0" + whole[pixels + 4 :],
        "checksum0": whole[: -16] + bytes(4) + whole[-12:], "end": whole[:-1] + b"x",
        "filter": picture(values, color=0, filter=5), "short": picture(values[:4], color=0),
        "long": picture(values, color=0, more=b"x"), "behind": picture(values, color=0, stream=b"x"),
        "behind4": picture(values, color=0, stream=bytes(4)),
        "size": whole[:16] + struct.pack(">II", 4, 6) + whole[24:], "twice": whole + whole[8:],
        "second": picture(values, color=0, late=chunk(b"IEND", b"")), "head": whole[:33],
        "none": picture(values, color=0)[:33] + chunk(b"IEND", b""), "empty": b"",
        "rows": whole[:33] + chunk(b"IDAT", zlib.compress(bytes(24))) + chunk(b"IEND", b""),
        "notzlib": whole[:33] + chunk(b"IDAT", b"rubbish") + chunk(b"IEND", b""),
        "length": whole[:33] + b"\xff" + whole[34:], "kind": whole.replace(b"IDAT", b"IDAS"),
        "z": whole,
    }  # fmt: skip
    for name, content in cases.items():
        (odd / f"{name}.png").write_bytes(content)


TAKEN = {"grey", "rgb", "rgba", "greyalpha", "grey16", "rgb16", "pixel", "sub", "up", "average",
         "paeth", "paeth16", "odd"}  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("to", [*FORMATS, "png"])
def test_images_become_the_same_both_ways(
    to: str, compiled: bool, tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.plugins.png import engine

    if compiled and engine.fast is None:
        pytest.skip("_fast.c was not compiled: python setup.py build_ext --inplace")
    if not compiled:
        monkeypatch.setattr(engine, "fast", None)
    pictures(tmp_path / "png")

    by_lane = migrate(tmp_path / "png", tmp_path / "lane", to)
    taken = [unit for unit in by_lane if Path(unit[1]).name in made]
    count = len(made)
    with monkeypatch.context() as patch:
        patch.setattr(Converter, "tried", lambda *_: None)
        made.clear()
        usual = migrate(tmp_path / "png", tmp_path / "usual", to)

    assert not made
    assert by_lane == usual
    assert contents(tmp_path / "lane") == contents(tmp_path / "usual")
    assert {Path(unit[0]).parent.name for unit in taken} >= TAKEN
    assert count >= (EACH - 1) * 11
    folders = {unit[0].split("/")[0] for unit in by_lane if unit[2] == "done"}
    assert folders == {path.name for path in (tmp_path / "png").iterdir()}
    assert sum(unit[2] == "failed" for unit in by_lane) > 10


@pytest.mark.parametrize("source", FORMATS)
def test_arrays_become_the_same_images_both_ways(
    source: str, tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(3)
    for code in ("u1", "<u2", ">u2", "i1"):
        for shape in ((5, 4), (5, 4, 1), (5, 4, 2), (5, 4, 3), (5, 4, 4), (5, 4, 5), (6,), (0, 3)):
            fits = code != "i1" and shape[2:] not in ((1,), (5,)) and len(shape) > 1
            # The others last: after many in vain it is tried less often.
            folder = tmp_path / f"npy/{'a' if fits else 'z'}-{code}-{'x'.join(map(str, shape))}"
            folder.mkdir(parents=True)
            for number in range(3):
                values = random.integers(0, 100, shape).astype(code)
                np.save(folder / f"{number}.npy", values)
                np.save(tmp_path / f"npy/{folder.name}-f{number}.npy", np.asfortranarray(values))
    if source != "npy":
        migrate(tmp_path / "npy", tmp_path / source, source)
    for options in ({}, {"out_opts": {"level": 1, "filter": "paeth"}}, {"max_memory": 10}):
        made.clear()
        by_lane = migrate(tmp_path / source, tmp_path / f"lane{len(options)}", "png", **options)
        taken = len(made)
        with monkeypatch.context() as patch:
            patch.setattr(Converter, "tried", lambda *_: None)
            usual = migrate(tmp_path / source, tmp_path / f"usual{len(options)}", "png", **options)

        assert taken == 0 if "max_memory" in options else taken >= 15
        assert by_lane == usual
        for name, (content, _) in contents(tmp_path / f"lane{len(options)}").items():
            assert content == (tmp_path / f"usual{len(options)}" / name).read_bytes()
        shutil.rmtree(tmp_path / f"lane{len(options)}")
        shutil.rmtree(tmp_path / f"usual{len(options)}")


@pytest.mark.parametrize("to", FORMATS)
def test_convert_in_a_loop_reports_and_makes_the_same(
    to: str, tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        np.save(tmp_path / f"x{number}.npy", np.full((2, 3), number, ">i4"))

    def convert(folder: str) -> list[dict[str, Any]]:
        (tmp_path / folder).mkdir()
        reports = [
            raconvert.convert(tmp_path / f"x{n}.npy", tmp_path / folder / f"x{n}.{to}")
            for n in range(6)
        ]
        plain = [{"sources": report.sources, **report.to_plain()} for report in reports]
        return [json.loads(json.dumps(one).replace(f"/{folder}/", "/")) for one in plain]

    with monkeypatch.context() as patch:
        patch.setattr(Converter, "tried", lambda *_: None)
        usual = convert("usual")
    assert not made
    by_lane = convert("lane")

    assert made == [f"x{n}.{to}" for n in range(6)]  # the calls before were alike
    assert by_lane == usual
    assert contents(tmp_path / "lane") == contents(tmp_path / "usual")


def six(folder: Path) -> list[Path]:
    """Six files of one header."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"x{number}.npy" for number in range(6)]
    for number, path in enumerate(paths):
        np.save(path, np.full((2, 3), number, "f4"))
    return paths


def by_lane(source: Path, target: Path, made: list[str], **options: Any) -> list[str]:
    """What the shortcut makes of a tree whose first file is learned from."""
    made.clear()
    raconvert.migrate(source, target, to="ra", jobs=1, **options)
    return sorted(made)


ALL = [f"x{number}.ra" for number in range(1, 6)]


def test_the_first_file_goes_the_usual_way(tmp_path: Path, made: list[str]) -> None:
    six(tmp_path / "s")
    assert by_lane(tmp_path / "s", tmp_path / "o", made) == ALL


def test_one_file_proves_its_kind(tmp_path: Path, made: list[str]) -> None:
    """Of other lengths: planned; of another type, rank or order: first the usual way."""
    source = tmp_path / "s"
    source.mkdir()
    shapes = [(2, 3), (3, 2), (5, 7), (1, 1), (4, 9), (9, 4)]
    for number, shape in enumerate(shapes):
        np.save(source / f"x{number}.npy", np.full(shape, number, "f4"))
    np.save(source / "y0.npy", np.full((2, 3), 6, ">f4"))
    np.save(source / "y1.npy", np.full((2, 3, 1), 7, "f4"))
    np.save(source / "y2.npy", np.full((2, 3), 8, "f4", order="F"))
    np.save(source / "y3.npy", np.full((0, 3), 9, "f4"))

    assert by_lane(source, tmp_path / "o", made) == ALL
    assert {path.name for path in (tmp_path / "o").glob("*.ra")} >= {*ALL, "y3.ra"}
    for path in source.iterdir():
        assert np.array_equal(raconvert.read(tmp_path / "o" / f"{path.stem}.ra"), np.load(path))


@pytest.mark.parametrize(
    "options",
    [{"verify": True}, {"meta": "trailer"}, {"meta": "ignore"}, {"dtype": "f8"}, {"dry_run": True},
     {"out_opts": {"encoding": "lz4"}}, {"axes": "fortran"}],
    ids=str,
)  # fmt: skip
def test_options_that_do_more_keep_it_closed(
    options: dict[str, Any], tmp_path: Path, made: list[str]
) -> None:
    six(tmp_path / "s")
    assert by_lane(tmp_path / "s", tmp_path / "o", made, **options) == []


@pytest.mark.parametrize(
    "options", [{"strict": True}, {"allow": ["all"]}, {"overwrite": True}, {"update": True},
                {"skip_existing": True}, {"max_memory": 10_000_000}], ids=str,
)  # fmt: skip
def test_options_that_change_nothing_leave_it_open(
    options: dict[str, Any], tmp_path: Path, made: list[str]
) -> None:
    six(tmp_path / "s")
    assert by_lane(tmp_path / "s", tmp_path / "o", made, **options) == ALL


def test_a_sidecar_of_the_source_is_honoured(tmp_path: Path, made: list[str]) -> None:
    paths = six(tmp_path / "s")
    (tmp_path / "more").mkdir()
    raconvert.write(tmp_path / "more/x3.ra", np.load(paths[3]), meta=raconvert.Metadata(units="mm"))
    raconvert.convert(tmp_path / "more/x3.ra", tmp_path / "more/x3.npy", meta="sidecar")
    os.replace(tmp_path / "more/x3.npy.yaml", tmp_path / "s/x3.npy.yaml")

    assert by_lane(tmp_path / "s", tmp_path / "o", made) == ["x1.ra", "x2.ra", "x4.ra", "x5.ra"]
    with raconvert.open(tmp_path / "o/x3.ra") as array:
        assert array.meta.units == "mm"


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling"])
def test_what_exists_is_left_as_it_is(kind: str, tmp_path: Path, made: list[str]) -> None:
    six(tmp_path / "s")
    place = tmp_path / "o/x3.ra"
    place.parent.mkdir()
    (tmp_path / "there").write_bytes(b"mine")
    if kind == "file":
        place.write_bytes(b"mine")
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(tmp_path / ("there" if kind == "link" else "nowhere"))

    result = raconvert.migrate(tmp_path / "s", tmp_path / "o", to="ra", jobs=1)

    assert [path for path, _ in result.failed] == ["x3.npy"]
    assert isinstance(result.failed[0][1], TargetExists)
    assert (tmp_path / "there").read_bytes() == b"mine"
    assert not (tmp_path / "nowhere").exists()
    assert kind != "file" or place.read_bytes() == b"mine"


def test_a_left_over_sidecar_of_the_destination_is_not_honoured(
    tmp_path: Path, made: list[str]
) -> None:
    six(tmp_path / "s")
    (tmp_path / "o").mkdir()
    (tmp_path / "o/x3.ra.yaml").write_bytes(b"describes: {size: 1}\nunits: mm\n")
    by_lane(tmp_path / "s", tmp_path / "o", made)

    assert "x3.ra" not in made
    assert not (tmp_path / "o/x3.ra.yaml").exists()
    assert raconvert.read(tmp_path / "o/x3.ra").tolist() == [[3.0] * 3] * 2


def test_odd_files_among_them(tmp_path: Path, made: list[str]) -> None:
    """What only looks alike gets the error, or the note, that it gets alone."""
    paths = six(tmp_path / "s")
    whole = paths[0].read_bytes()
    cases = {
        "cut": whole[:-1],
        "longer": whole + b"more",
        "empty": b"",
        "magic": whole[:6],
        "header": whole[:100],
        "object": whole.replace(b"'<f4'", b"'|O' "),
        "huge": whole.replace(b"(2, 3)", b"(2,9999999)"),
        "fortran": whole.replace(b"False", b"True "),
    }
    for name, content in cases.items():
        (tmp_path / "s" / f"x3{name}.npy").write_bytes(content)
    os.mkfifo(tmp_path / "s/pipe.npy")
    (tmp_path / "s/x4link.npy").symlink_to(paths[2])

    result = raconvert.migrate(tmp_path / "s", tmp_path / "o", to="ra", jobs=1)

    alone = {}
    for name in cases:
        try:
            raconvert.convert(tmp_path / "s" / f"x3{name}.npy", tmp_path / f"{name}.ra")
        except raconvert.RaconvertError as error:
            alone[f"x3{name}.npy"] = str(error)
    assert {path: str(error) for path, error in result.failed} == alone
    assert set(alone) == {f"x3{n}.npy" for n in cases} - {"x3longer.npy", "x3fortran.npy"}
    assert "x4link.ra" in made
    for name in ("longer", "fortran"):
        there = (tmp_path / "o" / f"x3{name}.ra").read_bytes()
        assert there == (tmp_path / f"{name}.ra").read_bytes()


def test_a_source_that_is_written_to_is_left_to_the_usual_way(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "read_small", small.IN_PYTHON[0])
    paths = six(tmp_path / "s")
    really = os.read

    def read(descriptor: int, nbytes: int) -> bytes:
        data = really(descriptor, nbytes)
        if data[-4:] == np.float32(3).tobytes():
            os.utime(paths[3], ns=(5, 5))
        return data

    monkeypatch.setattr(small.os, "read", read)
    assert by_lane(tmp_path / "s", tmp_path / "o", made) == ["x1.ra", "x2.ra", "x4.ra", "x5.ra"]


def test_a_full_disk_leaves_nothing(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "write_small", small.IN_PYTHON[1])
    six(tmp_path / "s")
    really = os.write

    def write(descriptor: int, data: bytes) -> int:
        if data[-4:] == np.float32(3).tobytes():
            raise OSError(28, os.strerror(28))
        return really(descriptor, data[: len(data) - (data[-4:] == np.float32(4).tobytes())])

    with monkeypatch.context() as patch:
        patch.setattr(small.os, "write", write)
        patch.setattr("raconvert.files.copy.write_all", really_full)
        result = raconvert.migrate(tmp_path / "s", tmp_path / "o", to="ra", jobs=1)
    assert made == []
    assert len(result.failed) == 6
    assert [path.name for path in (tmp_path / "o").iterdir() if path.suffix == ".ra"] == []


def really_full(*_: object) -> int:
    raise OSError(28, os.strerror(28))


def test_names_are_nothing_but_names(tmp_path: Path) -> None:
    for folder in ("s", "s/a{0}b"):
        for name in ("x{}", "x#y", "x[1]", "{stem}", "x*", "é"):
            (tmp_path / folder).mkdir(exist_ok=True)
            np.save(tmp_path / folder / f"{name}.npy", np.arange(3))

    for to in ("ra", "npz"):
        result = raconvert.migrate(tmp_path / "s", tmp_path / to, to=to, jobs=1)

        assert result.failed == []
        there = {os.fspath(p.relative_to(tmp_path / to)) for p in (tmp_path / to).rglob(f"*.{to}")}
        assert there == {u.source.removesuffix(".npy") + f".{to}" for u, _ in result.outcomes}
        assert len(there) == 12


def test_the_mode_is_what_the_umask_leaves(tmp_path: Path, made: list[str]) -> None:
    paths = six(tmp_path / "s")
    for path in paths:
        path.chmod(0o600)
    before = os.umask(0o037)
    try:
        by_lane(tmp_path / "s", tmp_path / "o", made)
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "o").glob("*.ra")} == {0o640}


def test_a_large_file_and_a_hole_go_the_usual_way(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "s").mkdir()
    for number in range(3):
        with open(tmp_path / f"s/x{number}.npy", "wb") as file:
            np.save(file, np.zeros(1))
            head = (
                (tmp_path / "s/x0.npy").read_bytes()[:128].replace(b"(1,), }    ", b"(25000,), }")
            )
            file.seek(0)
            file.write(head)
            file.truncate(128 + 200_000)
    np.save(tmp_path / "s/y.npy", np.zeros(small.MOST, "u1"))

    assert by_lane(tmp_path / "s", tmp_path / "o", made) == []
    assert (tmp_path / "o/x1.ra").stat().st_blocks * 512 < 100_000


def calls_with_paths(log: Path) -> int:
    """How many system calls took a path, as strace tells; `fstat` is one with an empty path."""
    return sum(', "' in line and ', "", ' not in line for line in log.read_text().splitlines())


@pytest.mark.parametrize("count", [800])
def test_at_most_eight_calls_with_paths_for_each_file(
    count: int, tmp_path: Path, tool: Callable[..., str]
) -> None:
    strace = tool("strace")
    found = []
    for number in (count, 2 * count):
        root = tmp_path / str(number)
        root.mkdir()
        for one in range(number):
            np.save(root / f"x{one}.npy", np.full(750, one, "f4"))
        words = [sys.executable, "-m", "raconvert", "migrate", str(root), f"{root}-out",
                 "--to", "ra", "--jobs", "1", "-q"]  # fmt: skip
        log = tmp_path / f"{number}.log"
        subprocess.run(
            [strace, "-f", "-e", "trace=%file", "-o", str(log), *words],
            check=True,
            capture_output=True,
        )
        assert len(list(Path(f"{root}-out").glob("*.ra"))) == number
        found.append(calls_with_paths(log))

    assert 2 * count < found[1] - found[0] <= 8 * count


def test_what_is_odd_is_none(tmp_path: Path) -> None:
    """Whatever is not as usual is neither read nor written, and nothing is left of it."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "large").write_bytes(bytes(small.MOST + 1))
    (tmp_path / "there").write_bytes(b"mine")
    before = sorted(os.listdir(tmp_path))
    place = small.open_folder(str(tmp_path))
    assert place is not None
    try:
        for name in (
            "pipe",
            "folder",
            "dangling",
            "large",
            "missing",
            "",
            "a\0b",
            "\ud800",
            "x" * 300,
        ):
            assert small.read_small(name, place) is None, name
        for name in ("there", "folder", "dangling", "", "a\0b", "\ud800", "x" * 300, "no/where"):
            assert small.write_small(name, "beside", b"new", 0o644, place, 0) is None, name
        assert small.write_small("new", "there", b"new", 0o644, place, 0) is None
        assert small.read_small("there", place) == b"mine"
        names = [*before, "missing", "", "a\0b", "\ud800", "x" * 300]
        for name, facts in zip(names, small.look_at_all(names, place), strict=True):
            regular = name in ("large", "there")
            status = (tmp_path / name).stat() if regular else None
            assert facts == (status and (status.st_size, status.st_mtime_ns)), name
    finally:
        os.close(place)
    assert small.read_small("there", place) is None
    assert small.look_at_all(["there"], place) == [None]
    assert small.write_small("new", "beside", b"new", 0o644, place, 0) is None
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "there").read_bytes() == b"mine"


@pytest.mark.parametrize("to", FORMATS)
def test_each_and_out_dir_make_and_report_the_same(
    to: str, tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("", "a", "b/c"):
        (tmp_path / "s" / folder).mkdir(parents=True, exist_ok=True)
        for number in range(4):
            np.save(tmp_path / "s" / folder / f"x{number}.npy", np.full((2, 3), number, ">i4"))
    (tmp_path / "s/x1bad.npy").write_bytes(b"bad")

    def convert(out: str) -> Any:
        steps: list[tuple[int, int]] = []
        report = raconvert.convert(
            tmp_path / "s", out_dir=tmp_path / out, to=to, recursive=True,
            progress=lambda now: steps.append((now.done, now.total)),
        )  # fmt: skip
        failed = [(path, str(error)) for path, error in report.failed]
        plain = json.loads(json.dumps(report.to_plain()).replace(f"/{out}/", "/"))
        return plain, failed, steps

    with monkeypatch.context() as patch:
        patch.setattr(Converter, "tried", lambda *_: None)
        usual = convert("usual")
    assert not made
    by_lane = convert("lane")

    assert len(made) >= 9  # the first of all, and the first in each new folder, make the folder
    assert by_lane == usual
    assert contents(tmp_path / "lane") == contents(tmp_path / "usual")


def test_each_waits_once_for_the_disk(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    six(tmp_path / "s")
    asked: list[list[str]] = []
    monkeypatch.setattr(
        "raconvert.conversion.each.sync_files_below", lambda _, names: asked.append(names)
    )
    raconvert.convert(tmp_path / "s", out_dir=tmp_path / "o", to="ra", stack="each")

    assert sorted(made) == ALL  # the first one makes the folder, and is learned from
    assert [sorted(names) for names in asked] == [[str(tmp_path / "o" / name) for name in ALL]]


@pytest.mark.parametrize("promise", ["name", "header", "tells"])
def test_a_broken_promise_is_found(promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conformance kit sees a header that is another, and elements that tell something."""
    from raconvert.plugins import npy

    from raconvert.testing import check_headers_tell

    broken = ModuleType("broken")
    monkeypatch.setitem(sys.modules, "broken", broken)
    vars(broken).update(FORMAT=npy.FORMAT, sniff=npy.sniff, read=npy.read, plan=npy.plan)

    def plan(bundle: Any) -> Any:
        found = npy.plan(bundle)
        extra = bundle.names[0].encode() if promise == "name" else b" "
        found.header = lambda: npy.plan(bundle).header() + extra
        return found

    def read(source: Any) -> Any:
        bundle = npy.read(source)
        bundle.notes += ["odd"] * (source.read_at(source.size - 1, 1) == b"\xff")
        return bundle

    vars(broken)["read" if promise == "tells" else "plan"] = read if promise == "tells" else plan
    with pytest.raises(AssertionError, match="header|`alike`"):
        check_headers_tell(broken)


@pytest.mark.parametrize("promise", ["whole", "begin", "elements", "odd"])
def test_a_broken_promise_of_coded_elements_is_found(
    promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conformance kit sees another file, other ends, and elements that are not there."""
    from raconvert.plugins import png

    from raconvert.testing import check_headers_tell

    broken = ModuleType("broken")
    monkeypatch.setitem(sys.modules, "broken", broken)
    vars(broken).update(FORMAT=png.FORMAT, sniff=png.sniff, read=png.read, plan=png.plan)

    def plan(bundle: Any) -> Any:
        found = png.plan(bundle)
        really = found.whole
        found.whole = really and (lambda elements: really(elements) + b"x")
        return found

    def read(source: Any) -> Any:
        bundle = png.read(source)
        alike = bundle.alike()

        def elements(middle: bytes) -> bytes | None:
            found = alike.elements(middle)
            if promise == "odd":
                return found or b"x"
            return found and found[:-1]

        begin = b"x" if promise == "begin" else alike.begin if alike else b""
        bundle.alike = lambda: alike and alike._replace(begin=begin, elements=elements)
        return bundle

    check_headers_tell(png)
    vars(broken)["plan" if promise == "whole" else "read"] = plan if promise == "whole" else read
    with pytest.raises(AssertionError, match="`whole`|`alike`"):
        check_headers_tell(broken)
