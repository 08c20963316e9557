"""JSON of files: its need is known before it is parsed, and is never more than what was counted."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import raconvert
from raconvert.errors import Corrupt, TooLarge
from raconvert.metadata.json import need_of, parsed

if TYPE_CHECKING:
    from pathlib import Path

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
    for count in (1, 100, 3000):
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
