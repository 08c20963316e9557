"""GGUF: what the `gguf` package writes, in both byte orders, and hostile headers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pairs import NAME, Pairs

import raconvert
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.files.source import Source
from raconvert.registry import by_name, load

RNG = np.random.default_rng(5)
PLAIN = {
    name: (RNG.random((2, 3, 4)) * 99).astype(name)
    for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64")
}

IN_PAIRS = (
    Pairs(name="gguf", suffix=".gguf", read=lambda path: load_tensors(path)[NAME], reads_only=True),
)


def load_tensors(path: Path) -> dict[str, np.ndarray]:
    """The plain tensors of a file as the `gguf` package reads them."""
    import gguf

    return {one.name: np.asarray(one.data) for one in gguf.GGUFReader(path).tensors}


def read(path: Path) -> raconvert.Bundle:
    return load(by_name("gguf")).read(Source(str(path)))


@pytest.mark.parametrize("order", ["little", "big"])
def test_what_the_package_writes(order: str, tmp_path: Path) -> None:
    """Plain and quantised tensors, bfloat16, and values of every type."""
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "test", endianess=getattr(gguf.GGUFEndian, order.upper()))
    writer.add_custom_alignment(64)
    values: dict[str, Any] = {"uint8": 200, "int8": -3, "uint16": 60000, "int16": -9,
                              "uint32": 1 << 31, "int32": -7, "float32": 0.25, "uint64": 1 << 40,
                              "int64": -(1 << 40), "float64": 0.1, "bool": True, "string": "é"}  # fmt: skip
    for kind, value in values.items():
        getattr(writer, f"add_{kind}")(f"k.{kind}", value)
    writer.add_array("k.list", [1, 2, 3])
    writer.add_array("k.tokens", [f"token{n}" for n in range(5000)])
    writer.add_array("k.scores", [0.5] * 5000)
    for name, array in PLAIN.items():
        writer.add_tensor(name, array.astype(array.dtype.newbyteorder("=")))
    kinds = gguf.GGMLQuantizationType
    blocks = {}
    if order == "little":  # the package does not swap numbers in blocks
        for kind in ("Q8_0", "Q4_0", "Q5_1", "BF16"):
            blocks[kind] = gguf.quantize(PLAIN["float32"].repeat(16, 2), kinds[kind])
            writer.add_tensor(kind, blocks[kind], raw_dtype=kinds[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    raconvert.convert(path, tmp_path / "x.zip")
    with read(path) as bundle, raconvert.open(tmp_path / "x.zip") as copy:
        assert bundle.names == [*PLAIN, *blocks]
        for name, array in PLAIN.items():
            assert bundle[name].shape == array.shape
            assert np.array_equal(bundle[name][...], array), name
            assert np.array_equal(copy[name][...], array), name
        for name, array in blocks.items():
            got = bundle[name][...]
            assert np.array_equal(got.view("u1") if name == "BF16" else got, array), name
        if blocks:  # as a note says
            meant = gguf.dequantize(bundle["Q5_1"][...], kinds["Q5_1"])
            assert np.allclose(meant, PLAIN["float32"].repeat(16, 2), rtol=0.1)
        assert {k: bundle.attributes[f"k.{k}"] for k in values} == values
        assert bundle.attributes["k.list"] == [1, 2, 3]
        assert bundle.attributes["general.alignment"] == 64
        notes = "\n".join(bundle.notes)
    assert "left out: values of keys: 'k.tokens', 'k.scores'" in notes
    if blocks:
        assert "blocks of Q8_0, as uint8 (unscale=True gives their values): 'Q8_0'" in notes
        by_gguf = "(in Python gguf.dequantize gives their values)"
        assert f"blocks of Q5_1, as uint8 {by_gguf}: 'Q5_1'" in notes


def quantised(path: Path, order: str = "little") -> dict[str, tuple[np.ndarray, str]]:
    """Write random blocks of each kind that has values, and one that has none here."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "test", endianess=getattr(gguf.GGUFEndian, order.upper()))
    kinds, made = gguf.GGMLQuantizationType, {}
    for kind, width in (("Q8_0", 34), ("Q4_0", 18), ("Q6_K", 210)):
        for shape in ((3,), (5, 2), (2, 3, 4)):
            raw = RNG.integers(0, 256, (*shape[:-1], shape[-1] * width)).astype("u1")
            name = f"{kind}.{len(shape)}"
            made[name] = raw, kind
            writer.add_tensor(name, raw, raw_dtype=kinds[kind])
    writer.add_tensor("plain", PLAIN["float32"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return made


def test_blocks_have_the_values_of_the_package(tmp_path: Path) -> None:
    """Any bytes, the scales NaN and infinite among them: `--unscale` gives the same bits."""
    gguf = pytest.importorskip("gguf")
    made = quantised(tmp_path / "x.gguf")
    report = raconvert.convert(tmp_path / "x.gguf", tmp_path / "x.npz", unscale=True)
    assert any("Q6_K" in note for note in report.notes)
    assert not any("changes nothing" in note for note in report.notes)
    found = np.load(tmp_path / "x.npz")
    keys = (np.s_[...], np.s_[0], np.s_[-1:], np.s_[..., 5], np.s_[..., 30:40], np.s_[..., ::-7],
            np.s_[..., 4:4])  # fmt: skip
    with raconvert.open_bundle(tmp_path / "x.gguf", unscale=True) as bundle:
        assert np.array_equal(bundle["plain"][...], PLAIN["float32"])
        for name, (raw, kind) in made.items():
            wanted = raw
            if kind != "Q6_K":
                with np.errstate(all="ignore"):
                    wanted = gguf.dequantize(raw, gguf.GGMLQuantizationType[kind])
                pieces = [piece.copy() for piece in bundle[name].data.stream(300)]
                assert np.array_equal(np.concatenate(pieces), wanted.ravel(), equal_nan=True)
            assert found[name].dtype == wanted.dtype
            assert np.array_equal(found[name], wanted, equal_nan=kind != "Q6_K"), name
            for key in keys:
                got = bundle[name][key]
                assert np.array_equal(got, wanted[key], equal_nan=kind != "Q6_K"), (name, key)


def test_blocks_of_a_big_endian_file(tmp_path: Path) -> None:
    """The scale of a block has the byte order of the file."""
    blocks = RNG.integers(0, 256, (2, 34)).astype("u1")
    blocks[:, :2] = np.array([0.5, -3.0], ">f2").view("u1").reshape(2, 2)
    head = (
        b"GGUF" + struct.pack(">IQQ", 3, 1, 0) + struct.pack(">Q1sIQQIQ", 1, b"x", 2, 32, 2, 8, 0)
    )
    (tmp_path / "x.gguf").write_bytes(head + bytes(-len(head) % 32) + blocks.tobytes())
    wanted = blocks[:, 2:].view("i1") * np.array([[0.5], [-3.0]], "f4")
    assert np.array_equal(raconvert.read(tmp_path / "x.gguf", unscale=True)["x"], wanted)
    assert np.array_equal(raconvert.read(tmp_path / "x.gguf")["x"], blocks)


def text(word: str) -> bytes:
    return struct.pack("<Q", len(word)) + word.encode()


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, dims: tuple[int, ...] = (3, 2), kind: int = 25, at: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at)


def model(
    pairs: list[bytes], tensors: list[bytes], data: bytes = bytes(96), version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:  # fmt: skip
    number, keys = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, number, keys) + b"".join([*pairs, *tensors])
    return head + bytes(-len(head) % 32) + data


HOSTILE: dict[str, tuple[bytes, type[RaconvertError], str]] = {
    "version_1": (model([], [tensor("x")], version=1), Unsupported, "version 1"),
    "version_9": (model([], [tensor("x")], version=9), Unsupported, "version 9"),
    "no_tensors": (model([], []), Unsupported, "no tensors"),
    "cut_off_header": (model([], [tensor("x")])[:40], Corrupt, "ends inside|cut|expected"),
    "cut_off_data": (model([], [tensor("x")], bytes(11)), Corrupt, "cut off"),
    "very_many_tensors": (model([], [], counts=(1 << 60, 0)), TooLarge, "at most"),
    "very_many_keys": (model([], [], counts=(0, 1 << 60)), TooLarge, "at most"),
    "tensor_twice": (model([], [tensor("x"), tensor("x", at=32)]), Corrupt, "twice"),
    "tensor_without_a_name": (model([], [tensor("")]), Corrupt, "no name"),
    "tensors_that_overlap": (model([], [tensor("x", (32, 2)), tensor("y", at=32)], bytes(128)),
                             Corrupt, "overlaps"),
    "tensor_not_aligned": (model([], [tensor("x", at=2)]), Corrupt, "aligned"),
    "tensor_far_outside": (model([], [tensor("x", at=1 << 62)]), Corrupt, "cut off"),
    "tensor_beyond_any_memory": (model([], [tensor("x", (1 << 62, 1 << 62))]), Corrupt, "memory"),
    "tensor_of_many_axes": (model([], [tensor("x", (1,) * 9)]), Corrupt, "too many axes"),
    "tensor_of_very_many_axes": (model([], [text("x") + b"\xff" * 60]), Corrupt, "axes"),
    "rows_of_half_a_block": (model([], [tensor("x", (48, 1), 8)]), Corrupt, "whole blocks"),
    "type_that_is_gone": (model([], [tensor("x", kind=4)]), Unsupported, "type 4"),
    "key_twice": (model([pair("a", 0, b"1")] * 2, [tensor("x")]), Corrupt, "twice"),
    "key_of_a_gigabyte": (model([struct.pack("<Q", 1 << 30)], [tensor("x")]), Corrupt, "too long"),
    "text_of_an_exabyte": (model([pair("a", 8, b"\xff" * 8)], [tensor("x")]), Corrupt, "too long"),
    "value_of_an_unknown_type": (model([pair("a", 77, b"1")], [tensor("x")]), Corrupt, "type"),
    "truth_value_of_two": (model([pair("a", 7, b"\x02")], [tensor("x")]), Corrupt, "truth"),
    "text_not_utf8": (model([pair("a", 8, text("b")[:8] + b"\xff")], [tensor("x")]), Corrupt,
                      "UTF-8"),
    "alignment_of_zero": (model([pair("general.alignment", 4, bytes(4))], [tensor("x")]), Corrupt,
                          "power of two"),
    "alignment_as_text": (model([pair("general.alignment", 8, text("8"))], [tensor("x")]), Corrupt,
                          "power of two"),
    "list_beyond_the_file": (model([pair("a", 9, struct.pack("<IQ", 4, 1 << 62))], [tensor("x")]),
                             Corrupt, "behind the end"),
    "texts_beyond_the_file": (model([pair("a", 9, struct.pack("<IQ", 8, 1 << 62))], [tensor("x")]),
                              Corrupt, "behind the end"),
    "list_of_very_many_lists": (model([pair("a", 9, struct.pack("<IQ", 9, 1 << 62))],
                                      [tensor("x")]), TooLarge, "at most"),
    "lists_in_lists": (model([pair("a", 9, struct.pack("<IQ", 9, 1) * 100)], [tensor("x")]),
                       TooLarge, "inside each other"),
}  # fmt: skip


def test_hostile_headers_are_refused_by_name(tmp_path: Path) -> None:
    wrong = []
    for name, (content, kind, words) in HOSTILE.items():
        (tmp_path / "x.gguf").write_bytes(content)
        try:
            with pytest.raises(kind, match=words):
                raconvert.convert(tmp_path / "x.gguf", tmp_path / "x.npz")
        except (AssertionError, RaconvertError, pytest.fail.Exception) as error:
            wrong.append(f"{name}: {error!r}")
    assert not wrong, "\n".join(wrong)
    (tmp_path / "x.gguf").write_bytes(model([], [tensor("x")]))
    assert raconvert.read(tmp_path / "x.gguf")["x"].shape == (2, 3)
