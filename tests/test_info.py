"""What `info` and `formats` say, as values: complete, stable, JSON-safe, from headers only."""

from __future__ import annotations

import datetime
import json
import os
from importlib import import_module
from typing import TYPE_CHECKING

import bundles
import numpy as np
import pytest
from cases import every

from raconvert.api import array_of
from raconvert.arrays.bundle import Bundle
from raconvert.catalogue import ROWS
from raconvert.cli import info as cli_info
from raconvert.cli import main
from raconvert.cli.console import Console
from raconvert.conversion.pipeline import convert
from raconvert.errors import Corrupt, UnknownFormat
from raconvert.files.source import Extent
from raconvert.inspect.info import describe, format_details, formats, info, plain, why

if TYPE_CHECKING:
    from pathlib import Path

    from raconvert.catalogue import Row

FILE_KEYS = {
    "path", "format", "title", "reason", "plugin", "container", "stored_bytes", "nbytes",
    "sidecar", "attributes", "groups", "aliases", "arrays", "notes", "references",
}  # fmt: skip
ARRAY_KEYS = {
    "name", "type", "kind", "element_bytes", "byte_order", "descr", "index_order", "shape",
    "dims", "count", "nbytes", "layout", "storage", "metadata", "to_ra", "problem",
}  # fmt: skip


def save(path: Path, values: np.ndarray) -> str:
    np.save(path, values)
    return str(path)


# What the formats hold that do not hold bytes of any shape.
HELD = {
    "cfl": {"x": np.ones((2, 3), "c8")},
    "cifar": {"labels": np.ones(2, "u1"), "images": np.ones((2, 3, 32, 32), "u1")},
    "mrc": {"x": np.ones((2, 3), "u2")},
    "webp": {"x": np.ones((2, 3, 3), "u1")},  # which has only colors
}


@every("row", ROWS, ids=lambda row: row.name)
def test_keys_are_the_same_for_every_format(tmp_path: Path, row: Row) -> None:
    arrays = HELD.get(row.name, {"x": np.ones((2, 3), "u1")})
    samples = import_module(row.module).FORMAT.samples
    target = tmp_path / f"copy{next(iter(row.suffixes), '')}"
    if row.writes:
        np.savez(tmp_path / "x.npz", **arrays)
        convert(tmp_path / "x.npz", target, to=row.name, allow=["precision"])
        (tmp_path / "x.npz").unlink()
        facts = info(target)
        assert len(facts["arrays"]) == len(arrays)
    elif samples:
        name, content = next(iter(samples.items()))
        target = tmp_path / name
        target.write_bytes(content)
        facts = info(target)
        assert facts["arrays"]
    else:
        target.write_bytes(arrays["x"].tobytes())
        facts = info(target, from_=row.name, in_opts={"dtype": "u1"})

    files = [path for path in target.rglob("*") if path.is_file()] if target.is_dir() else [target]
    assert set(facts) == FILE_KEYS
    assert [set(array) for array in facts["arrays"]] == [ARRAY_KEYS] * len(facts["arrays"])
    assert facts["format"] == row.name
    assert facts["stored_bytes"] == sum(path.stat().st_size for path in files)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_groups_are_a_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = [array_of(np.zeros(3), "g/deep/x"), array_of(np.zeros((2, 2), "u1"), "y")]
    groups = {"g": {"title": "group"}, "empty/group": {}}
    bundles.save(tmp_path / "x.zip", Bundle(arrays, groups=groups, attributes={"n": [1, 2]}))

    assert info(tmp_path / "x.zip")["groups"] == groups
    assert main(["info", str(tmp_path / "x.zip")]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split("   shape")[0] for line in lines[1:-1]] == [
        "  g/",
        "      title = 'group'",
        "    deep/",
        "      x   float64",
        "  y       uint8  ",
        "  empty/",
        "    group/",
        "  attributes: n = [1, 2]",
    ]


def test_a_group_is_shown_once_with_all_that_lies_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = [array_of(np.zeros(3), name) for name in ("a/x", "b/y", "a/z", "b/c/d")]
    about = {"one": 1, "two": 2}
    bundle = Bundle(arrays, groups={"a/empty": {"k": 1}, "last": {}}, attributes=about)
    bundles.save(tmp_path / "x.zip", bundle)
    assert main(["info", str(tmp_path / "x.zip")]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split("   float64")[0].rstrip() for line in lines[1:-1]] == [
        "  a/", "    x", "    z", "    empty/", "        k = 1",
        "  b/", "    y", "    c/", "      d",
        "  last/",
        "  attributes:", "    one = 1", "    two = 2",
    ]  # fmt: skip


def test_storage_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    array = array_of(np.zeros(3), "x")
    array.storage = {
        "layout": "chunked",
        "chunks": [2, 3],
        "filters": ["shuffle", "gzip 4"],
        "stored_bytes": 1234,
        "odd\x1b": "a\nb",
    }
    bundle = Bundle([array])
    bundle.path, bundle.format = __file__, "npz"
    facts = describe(bundle, "x.npz")

    assert facts["arrays"][0]["storage"] == array.storage
    (_, line, _) = cli_info.lines(facts, Console())
    assert line.endswith("chunked, chunks 2×3, shuffle, gzip 4, 1.2 kB stored, odd\\x1b a\\nb")


def test_both_axis_views(tmp_path: Path) -> None:
    values = np.zeros((5, 3, 4), "i2")

    rows = info(save(tmp_path / "c.npy", values))["arrays"][0]
    columns = info(save(tmp_path / "f.npy", np.asfortranarray(values)))["arrays"][0]

    assert (rows["index_order"], rows["shape"], rows["dims"]) == ("C", [5, 3, 4], [4, 3, 5])
    assert (columns["index_order"], columns["shape"], columns["dims"]) == (
        "F",
        [5, 3, 4],
        [5, 3, 4],
    )


def test_type_and_byte_order_are_told_apart(tmp_path: Path) -> None:
    array = info(save(tmp_path / "x.npy", np.zeros(3, ">f4")))["arrays"][0]

    assert (array["type"], array["byte_order"]) == ("float32", "big")
    assert array["layout"] == {"kind": "plain", "offset": 128, "nbytes": 12, "swap": 4}


def test_user_types_are_described_and_need_a_sidecar(tmp_path: Path) -> None:
    values = np.zeros(2, [("a", "<i4"), ("b", "<U3")])

    array = info(save(tmp_path / "x.npy", values))["arrays"][0]

    assert array["descr"] == [["a", "<i4"], ["b", "<U3"]]
    assert array["to_ra"] == {"exact": True, "sidecar": ["dtype"]}


def test_sidecar_is_honoured_and_named(tmp_path: Path) -> None:
    source = save(tmp_path / "f.npy", np.asfortranarray(np.zeros((2, 3))))
    target = tmp_path / "f.ra"
    convert(source, target, axes="fortran")

    facts = info(target)

    assert facts["sidecar"] == f"{target}.yaml"
    assert facts["arrays"][0]["index_order"] == "F"
    assert info(target, meta="ignore")["arrays"][0]["index_order"] is None


def test_elements_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.ra"
    header = np.array([0, 2, 1, 1 << 40, 1, 1 << 40], "<u8").tobytes()
    path.write_bytes(b"rawarray" + header)
    os.truncate(path, 56 + (1 << 40))  # a hole of one TiB

    assert info(path)["nbytes"] == 1 << 40


def test_damage_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    save(path, np.arange(10))
    os.truncate(path, path.stat().st_size - 1)

    with pytest.raises(Corrupt):
        info(path)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1.5, 1.5),
        (b"\x00\xff", {"hex": "00ff"}),
        ((1, [2]), [1, [2]]),
        ({1: None}, {"1": None}),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (Extent("x", 8, 16), {"offset": 8, "nbytes": 16}),
        (np.float32(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        (1j, "1j"),
    ],
)
def test_plain_values(value: object, expected: object) -> None:
    assert plain(value) == expected


# The command line --------------------------------------------------------------------------------


def test_long_form_shows_both_views(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "x.npy", np.zeros((60, 28, 14), "u1"))

    assert main(["info", path]) == 0

    out = capsys.readouterr().out
    assert (
        "shape (60, 28, 14) C · dims 14 \N{MULTIPLICATION SIGN} 28 \N{MULTIPLICATION SIGN} 60 (RA, Julia, MATLAB)"
        in out
    )
    assert "NumPy NPY (signature at byte 0; plugin raconvert.plugins.npy)" in out
    assert "plain from byte 128" in out
    assert out.endswith("to RA: exact\n")


def test_containers_list_their_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "x.npz")
    np.savez(path, first=np.zeros(3), b=np.zeros((2, 2), "u1"))

    assert main(["info", path]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  first   float64   shape (3,) C")
    assert lines[2].startswith("  b       uint8     shape (2, 2) C")
    assert lines[-1] == "to RA: 2 arrays, each exact in a file of its own, as far as headers tell"


def test_short_form_is_one_line_per_array(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "x.npy", np.zeros((2, 3), "u1"))
    np.savez(tmp_path / "x.npz", a=1.0, b=[True])

    assert main(["info", "-s", path, str(tmp_path / "x.npz")]) == 0

    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{path}  npy  uint8  (2, 3) C · dims 3 ")
    assert [line.split("  ")[0] for line in out[1:]] == [f"{tmp_path}/x.npz#{n}" for n in "ab"]


def test_folders_and_globs_are_expanded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (10, 9):
        save(tmp_path / f"{number}.npy", np.zeros(number))

    assert main(["info", "-s", str(tmp_path)]) == 0
    assert main(["info", "-s", str(tmp_path / "*.npy")]) == 0

    names = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    assert [os.path.basename(name) for name in names] == ["9.npy", "10.npy"] * 2


def test_control_characters_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", **{"a\x1b[31m\nb": np.zeros(1)})

    assert main(["info", str(tmp_path / "x.npz")]) == 0

    assert "a\\x1b[31m\\nb" in capsys.readouterr().out


def test_json_is_one_object_or_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "x.npy", np.zeros(1))

    assert main(["info", "--json", path]) == 0
    assert json.loads(capsys.readouterr().out) == info(path)
    assert main(["info", "--json", path, path, path + "none"]) == 1
    *found, lost = json.loads(capsys.readouterr().out)
    assert found == [info(path)] * 2
    assert (lost["path"], lost["error"]["exit_code"]) == (path + "none", 1)


def test_codes_of_several_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = save(tmp_path / "x.npy", np.zeros(1))
    foreign = tmp_path / "x.txt"
    foreign.write_text("hello")

    assert main(["info", good, str(foreign), str(foreign)]) == UnknownFormat.exit_code
    assert main(["info", good, str(foreign), str(tmp_path / "none")]) == 1
    assert capsys.readouterr().out.count("to RA: exact") == 2


def test_chunks_without_filters_leave_no_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.zeros((4, 4)), chunks=(2, 2), maxshape=(None, 4))
    assert main(["info", str(tmp_path / "x.h5")]) == 0
    assert "chunks 2\N{MULTIPLICATION SIGN}2, maxshape" in capsys.readouterr().out


# Formats -----------------------------------------------------------------------------------------


def test_formats_follow_the_catalogue() -> None:
    rows = {row["name"]: row for row in formats()}

    for row in ROWS:
        listed = rows[row.name]
        assert listed["suffixes"] == list(row.suffixes)
        assert (listed["reads"], listed["writes"]) == (row.reads, row.writes)
        assert listed["built_in"]


@every("row", ROWS, ids=lambda row: row.name)
def test_details_name_every_option(row: object, capsys: pytest.CaptureFixture[str]) -> None:
    details = format_details(row.name)

    assert main(["formats", row.name]) == 0

    out = capsys.readouterr().out
    assert details["title"] in out
    assert details["spec"] in out
    for option in details["read_options"] + details["write_options"]:
        assert f"    {option['name']}=" in out
        assert option["help"] in out


def test_a_missing_package_is_named_with_its_install_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("raconvert.registry._importable", lambda module: False)

    assert main(["formats"]) == 0

    assert "missing: pip install pillow" in capsys.readouterr().out


def test_format_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0

    table, _, _ = capsys.readouterr().out.partition("KEEPS:")
    lines = table.splitlines()
    assert lines[0].split() == ["NAME", "RW", "ARRAYS", "KEEPS", "FILES"]
    assert max(map(len, lines)) <= 80
    assert ["ra", "rw", "one", "all", ".ra"] in [line.split() for line in lines]
    assert {line.split()[0] for line in lines[1:]} == {row["name"] for row in formats()}


def test_unknown_format_has_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "pgn"]) == 3
    assert "did you mean 'png'?" in capsys.readouterr().err


def test_why_lists_every_candidate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "named.png.npy", np.zeros(1))

    assert main(["formats", "--why", path]) == 0

    out = capsys.readouterr().out
    assert f"{path}: is npy (signature at byte 0)" in out
    assert all(f"\n  {row.name}" in out for row in ROWS)


def test_why_answers_even_when_detection_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"what is it")

    found = why(str(path))

    assert found["format"] is None
    assert [candidate["name"] for candidate in found["candidates"]][:1] == ["ra"]
    assert main(["formats", "--why", str(path), "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == found


def test_what_one_format_knows_is_told_in_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    array = array_of(np.arange(3), "x")
    own = {"type": {"class": "string", "padding": "n"}, "long": "y" * 200}
    array.meta = array.meta.replace(units="mm", formats={"hdf5": own})
    bundles.save(tmp_path / "x.zip", Bundle([array]))

    assert main(["info", str(tmp_path / "x.zip")]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    short = [line for line in lines if "hdf5" in line]
    assert short[0].startswith("hdf5: type.class = 'string', type.padding = 'n', long = 'yyy")
    assert len(short) == 1
    assert len(short[0]) < 130
    assert "units = 'mm'" in lines

    assert main(["info", "-v", str(tmp_path / "x.zip")]) == 0
    assert "formats.hdf5.type.padding = 'n'" in capsys.readouterr().out


@pytest.mark.parametrize("count", [20, 21, 500])
def test_what_a_format_knows_is_all_there_with_v(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    array = array_of(np.arange(3), "x")
    own = {f"f{number:03d}": number for number in range(count)}
    array.meta = array.meta.replace(formats={"hdf5": own})
    bundles.save(tmp_path / "x.zip", Bundle([array]))

    assert main(["info", str(tmp_path / "x.zip")]) == 0
    short = next(line for line in capsys.readouterr().out.splitlines() if "hdf5" in line)
    assert short.strip().startswith("hdf5: f000 = 0, f001 = 1")
    assert short.endswith("… (-v shows all)")

    assert main(["info", "-v", str(tmp_path / "x.zip")]) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines() if ".f" in line]
    assert shown == [f"formats.hdf5.f{number:03d} = {number}" for number in range(count)]

    assert main(["info", "--help"]) == 0
    assert "-v shows all metadata" in capsys.readouterr().out


def test_what_a_format_knows_is_whole_where_it_is_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    array = array_of(np.arange(3), "x")
    array.meta = array.meta.replace(formats={"hdf5": {"a": 1, "b": 2}})
    bundles.save(tmp_path / "x.zip", Bundle([array]))
    assert main(["info", str(tmp_path / "x.zip")]) == 0
    assert "    hdf5: a = 1, b = 2" in capsys.readouterr().out.splitlines()[2]
