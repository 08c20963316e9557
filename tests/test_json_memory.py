"""JSON of files: its need is known before it is parsed, and is never more than what was counted."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import FULL

import raconvert
from raconvert.errors import Corrupt, TooLarge
from raconvert.files.limits import DEFAULT
from raconvert.metadata.json import need_of, parsed
from raconvert.metadata.yaml import need_of as yaml_need_of
from raconvert.metadata.yaml import parse

if TYPE_CHECKING:
    from pathlib import Path

# Values in one container. Of more than 682 and 2,730 keys a dictionary has the most room per key.
COUNTS = (1, 100, 700, 3000) if FULL else (1, 100, 700)
# Values that need much for their length, and such as files have.
PIECES = (
    "[]", "{}", '""', '"a"', '"ab"', "0", "300", "-1.5", "1e9", "null", "[0]", "[[]]", "[[[]]]", "[{}]",
    '{"a":0}', '{"":[]}', '{"a":{}}', '"é"', '"中"', '"😀x"', r'"\u4e2d"', r'"\ud83d\ude00"', "[0,0,0,0,0]",
    '{"a":0,"b":1,"c":2,"d":3,"e":4,"f":5}', "[" * 200 + "]" * 200, '{"a":' * 150 + "0" + "}" * 150,
    "12345678901234567890123", '"' + "x" * 300 + '"',
    '{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}', '["file:///data/a.npy",128,8000]',
)  # fmt: skip


def peak_of(data: bytes, hook: Any) -> int:
    tracemalloc.start()
    try:
        json.loads(data.decode(), object_pairs_hook=hook)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece[:20])
@pytest.mark.parametrize("hook", [None, dict], ids=["usual", "pairs"])
def test_need_is_never_less_than_what_is_taken(piece: str, hook: Any) -> None:
    for count in COUNTS:
        for text in (
            f"[{','.join([piece] * count)}]",
            "{" + ",".join(f'"k{number}":{piece}' for number in range(count)) + "}",
        ):
            data = text.encode()
            assert peak_of(data, hook) <= need_of(data) + 4096


def test_what_is_not_json_is_a_value_error() -> None:
    for data in (b"", b"{", b"\xff", b"[" * 100_000, b"[1,]"):
        with pytest.raises(ValueError, match="."):
            parsed(data, 1 << 30, "a text")


def refused_within(path: Path, most: int, look: Any) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="JSON"):
            look(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def test_a_header_of_safetensors(tmp_path: Path) -> None:
    header = b'{"a":[' + b"[]," * 1_000_000 + b"[]]}"
    path = tmp_path / "h.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)

    refused_within(path, 10 << 20, lambda path: raconvert.info(path, max_memory=20 << 20))
    with pytest.raises(Corrupt):
        raconvert.info(path, max_memory=1 << 30)


def test_references(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(10))
    path = tmp_path / "v.json"
    raconvert.refs(tmp_path / "a.npy", path)
    said = json.loads(path.read_text())
    said["refs"]["x"] = [[]] * 1_000_000
    path.write_text(json.dumps(said, separators=(",", ":")))

    refused_within(path, 10 << 20, lambda path: raconvert.info(path, max_memory=20 << 20))


def test_lines_about_the_items_of_a_stack(tmp_path: Path) -> None:
    for number in range(2):
        meta = raconvert.Metadata(attributes={"n": number})
        raconvert.write(tmp_path / f"{number}.ra", np.zeros(3), meta=meta)
    path = tmp_path / "stack.ra"
    raconvert.convert([tmp_path / "0.ra", tmp_path / "1.ra"], path)
    items = tmp_path / "stack.ra.items.jsonl"
    if not items.exists():
        pytest.skip("has no items of its own")
    size = items.stat().st_size
    items.write_bytes((b'{"attributes":{"n":[' + b"[]," * 1_000_000 + b"[]]}}\n") * 2)
    text = (tmp_path / "stack.ra.yaml").read_text()
    new = items.stat().st_size
    (tmp_path / "stack.ra.yaml").write_text(text.replace(f"size: {size}", f"size: {new}"))

    with raconvert.open(path, max_memory=20 << 20) as opened, pytest.raises((TooLarge, Corrupt)):
        list(opened.meta.items())


# YAML ---------------------------------------------------------------------------------------------

LINES = (
    "k{n}: 1", "k{n}: a", "k{n}: 'a b'", "k{n}: []", "k{n}: {{}}", "k{n}: {{a: {{b: {{c: 1}}}}}}", "k{n}: [[], []]",
    "k{n}: [a,b,c]", "k{n}: {{a,b,c}}", "k{n}:\n- a\n- b", "k{n}:\n- - - a", "k{n}:\n- a: 1\n- b: 2", "k{n}: é中",
    'k{n}: "\\x41\\u4e2d"', "k{n}: 12345678901234567890123", "k{n}: 1.5e+300", "k{n}: !!binary AAEC", "k{n}:\n  a:\n    b: 1",
    "? k{n}\n: 1", "k{n}: [a, [b, [c, [d]]], 2020-01-01]",
)  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_need_of_yaml_is_never_less_than_what_is_taken(line: str) -> None:
    parse(b"a: 1\nb: [1, {c: d}]\n", "x", DEFAULT)  # what is imported and cached at first
    for count in COUNTS:
        text = "".join(line.format(n=n) + "\n" for n in range(count)).encode()
        tracemalloc.start()
        try:
            found = parse(text, "x", DEFAULT)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(found) == count
        assert peak <= yaml_need_of(text) + (64 << 10)


def test_a_sidecar_a_trailer_and_a_manifest(tmp_path: Path) -> None:
    """Each is counted before it is parsed, and refused where memory has no room for it."""
    path = tmp_path / "x.ra"
    raconvert.write(path, np.arange(3, dtype="u1"), meta=raconvert.Metadata(description="x"))
    beside = tmp_path / "x.ra.yaml"
    text = beside.read_bytes() + b"attributes: {k: [" + b"[]," * 50_000 + b"]}\n"
    beside.write_bytes(text)
    trailer = tmp_path / "t.ra"
    beginning, behind = path.read_bytes(), text[text.index(b"description") :]
    trailer.write_bytes(beginning + b"# raconvert metadata\n" + behind)
    folder = tmp_path / "bundle"
    raconvert.write(folder, {"a": np.arange(3)}, to="bundle")
    manifest = folder / "bundle.yaml"
    said = manifest.read_bytes().removesuffix(b"...\n")
    manifest.write_bytes(said + b"attributes: {k: [" + b"[]," * 50_000 + b"]}\n...\n")
    for one in (path, trailer, folder):
        with pytest.raises(TooLarge, match="bytes of YAML"):
            raconvert.info(one, max_memory=10 << 20)
        assert raconvert.info(one)["arrays"]


def test_a_record_inside_a_file(tmp_path: Path) -> None:
    """Text of our own, in an attribute: it is JSON that may need far more memory than it has."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["x"] = np.arange(3)
        file["x"].attrs["raconvert"] = '{"raconvert":2,"k":[' + "[]," * 100_000 + "[]]}"
    with pytest.raises(TooLarge, match="bytes of JSON"):
        raconvert.info(path, max_memory=8 << 20)
    assert raconvert.info(path)["arrays"]


def test_the_metadata_of_zarr(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    for version, name in ((3, "zarr.json"), (2, ".zattrs")):
        path = tmp_path / f"{version}.zarr"
        array = zarr.create_array(path, shape=(3,), dtype="i4", zarr_format=version)
        array[:] = 1
        array.attrs["k"] = [[]] * 200_000
        assert (path / name).stat().st_size > 400_000
        refused_within(path, 10 << 20, lambda path: raconvert.info(path, max_memory=10 << 20))
        assert raconvert.info(path)["arrays"]
