"""The bits of NaN in metadata: sign and payload arrive, whatever the metadata passes through."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raconvert
from raconvert.files.limits import DEFAULT
from raconvert.metadata import json, yaml

if TYPE_CHECKING:
    from pathlib import Path

BITS = {"f2": "u2", "f4": "u4", "f8": "u8"}
EXPONENTS = {"f2": 0x7C00, "f4": 0x7F800000, "f8": 0x7FF << 52}
FRACTIONS = {"f2": 10, "f4": 23, "f8": 52}
fractions = st.integers(1, (1 << 52) - 1) | st.sampled_from([1, 1 << 51, (1 << 52) - 1])


def nan_of(fraction: int, negative: bool) -> float:
    """Return the double NaN of these bits."""
    bits = (negative << 63) | EXPONENTS["f8"] | fraction
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def bits(value: Any) -> Any:
    """Return a value with its floats as their bits."""
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bits(item) for item in value]
    return struct.pack("<d", value) if isinstance(value, float) else value


nans = st.builds(nan_of, fractions, st.booleans())
odd_texts = st.sampled_from(["nan", "-nan:0x1", "nan:0x8000000000000", "$float", "$dict", ".nan"])
odd_keys = st.sampled_from(["$float", "$dict", "a", "b c"])
values = st.recursive(
    nans | odd_texts | st.floats() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(odd_keys, inner, max_size=2)
        | st.builds(lambda key, item: {"$dict": [[key, item]]}, odd_keys, inner)
    ),
    max_leaves=8,
)


@given(values)
def test_yaml_and_json_keep_all_bits(value: Any) -> None:
    fields = {"x": value}
    assert bits(yaml.parse(yaml.dump(fields), "", DEFAULT)) == bits(fields)
    assert bits(json.loads(json.dumps(fields), DEFAULT)) == bits(fields)


def test_what_others_write_as_nan_has_no_sign() -> None:
    for text in (b"x: .nan\n", b"x: .NaN\n", b"x: .NAN\n"):
        assert bits(yaml.parse(text, "", DEFAULT)) == bits({"x": float("nan")})
    assert yaml.dump({"x": float("nan")}) == b"x: .nan\n"
    odd = yaml.dump({"x": -float("nan")})
    assert odd == b"x:\n  $float: -nan:0x8000000000000\n"


def samples(kind: str) -> Any:
    """Return floats of all kinds of NaN and a few others."""
    width, exponent = FRACTIONS[kind], EXPONENTS[kind]
    top = 1 << (8 * int(kind[1]) - 1)
    random = np.random.default_rng(3).integers(1, 1 << width, 20, np.uint64).tolist()
    found = [1, 1 << (width - 1), (1 << width) - 1, (1 << (width - 1)) - 1, *random]
    stored = [exponent | fraction | sign for fraction in found for sign in (0, top)]
    stored += [0, top, exponent, exponent | top, 1, top | 1]
    return np.array(stored, BITS[kind]).view(kind)


def write(path: Path, order: str) -> None:
    """Write attributes of all widths: one number each, many, structures, complex numbers."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", data=np.arange(3.0))
        file.create_group("g")
        for place in (dataset, file, file["g"]):
            for kind in BITS:
                many = samples(kind).astype(order + kind) if order == "<" else swapped(kind)
                place.attrs.create(f"many {kind}", many)
                for number in (0, 1, 3, 7):
                    place.attrs.create(f"one {kind} {number}", many[number])
                pairs = np.zeros(4, [("a", many.dtype), ("b", "i2")])
                pairs["a"] = many[:4]
                place.attrs.create(f"structure {kind}", pairs)
                if kind != "f2":
                    place.attrs.create(
                        f"complex {kind}", many[:46].copy().view(f"{order}c{2 * int(kind[1])}")
                    )


def swapped(kind: str) -> Any:
    """Return the samples with their bytes reversed."""
    return samples(kind).view(BITS[kind]).byteswap().view(f">{kind}")


def raw(place: Any) -> dict[str, tuple[str, bytes]]:
    """Return type and bytes of each attribute as h5py has them, without the record of ours."""
    found = {}
    for name in place.attrs:
        if name != "raconvert":
            value = np.zeros(place.attrs.get_id(name).shape, place.attrs.get_id(name).dtype)
            place.attrs.get_id(name).read(value)
            found[name] = (value.dtype.str, value.tobytes())
    return found


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("way", ["hdf5", "bundle", "zip", "zarr", "npz", "ra"])
def test_attributes_keep_the_bits_of_nan(tmp_path: Path, way: str, order: str) -> None:
    write(tmp_path / "a.h5", order)
    middle = tmp_path / {"hdf5": "b.h5", "bundle": "b", "zip": "b.zip", "zarr": "b.zarr",
                         "npz": "b.npz", "ra": "b.ra"}[way]  # fmt: skip
    to = {"zip": "bundle"}.get(way, way)
    raconvert.convert(
        f"{tmp_path / 'a.h5'}#x", middle, to=to, meta="sidecar" if way == "npz" else "auto"
    )
    raconvert.convert(middle, tmp_path / "c.h5", to="hdf5")
    with h5py.File(tmp_path / "a.h5") as first, h5py.File(tmp_path / "c.h5") as last:
        found = next(item for item in last.values() if isinstance(item, h5py.Dataset))
        assert raw(found) == raw(first["x"])


@pytest.mark.parametrize("kind", BITS)
def test_fill_values_keep_the_bits_of_nan(tmp_path: Path, kind: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, value in enumerate(samples(kind)):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_fill_value(np.array(value))
            space = h5py.h5s.create_simple((2,))
            tid = h5py.h5t.py_create(np.dtype(kind))
            h5py.h5d.create(file.id, f"{number:03}".encode(), tid, space, plist)
            file[f"{number:03}"][:] = 0
    raconvert.convert(tmp_path / "a.h5", tmp_path / "b", to="bundle")
    raconvert.convert(tmp_path / "b", tmp_path / "c.h5", to="hdf5")
    with h5py.File(tmp_path / "a.h5") as first, h5py.File(tmp_path / "c.h5") as last:
        for name in first:
            stored = []
            for file in (first, last):
                value = np.zeros((), kind)
                file[name].id.get_create_plist().get_fill_value(value)
                stored.append(value.tobytes())
            assert stored[0] == stored[1], name
