"""A part of an array keeps what it is about: `slicer`, ``--slice`` and ``FILE#NAME[...]`` alike."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert import Array, Axis, Metadata, UsageError
from raconvert.arrays.slicing import key_of
from raconvert.cli import main

VALUES = np.arange(4 * 5 * 6, dtype="<f4").reshape(4, 5, 6)
AXES = [
    Axis("when", labels=["a", "b", "c", "d"]),
    Axis("row", spacing=0.5, origin=10.0, units="mm"),
    Axis("column", spacing=2.0, units="m"),
]
KEYS = [
    (0,), (slice(1, None),), (..., 0), (slice(None, None, -1),), (slice(3, 0, -2), 1),
    (slice(None), slice(1, 4, 2), slice(None, None, 3)), (-1, ..., -1), (0, 0, 0), (),
    (slice(2, 2),), (slice(1, 2), ..., slice(5, None, -2)), (slice(None), -2),
]  # fmt: skip


def coordinates(array: Array) -> list[list[Any] | None]:
    found = (axis.values(length) for axis, length in zip(array.axes, array.shape, strict=True))
    return [None if values is None else values.tolist() for values in found]


def wanted_coordinates(key: tuple[Any, ...]) -> list[list[Any]]:
    whole = [list("abcd"), [10 + 0.5 * n for n in range(5)], [2.0 * n for n in range(6)]]
    at = key.index(...) if ... in key else len(key)
    full = [*key[:at], *[slice(None)] * (3 - len(key) + (... in key)), *key[at + 1 :]]
    return [one[k] for one, k in zip(whole, full, strict=True) if isinstance(k, slice)]


@every("suffix", ["npy", "ra", "h5", "zarr", "mat", "nrrd", "npz", "zip"])
@every("key", KEYS, ids=str)
def test_a_part_has_its_own_coordinates(tmp_path: Path, suffix: str, key: tuple[Any, ...]) -> None:
    array = Array(VALUES, name="x", meta=Metadata(axes=AXES))
    many = suffix in ("h5", "zarr", "mat", "npz", "zip")
    raconvert.write(tmp_path / f"x.{suffix}", {"x": array} if many else array)
    with raconvert.open(tmp_path / f"x.{suffix}", "x" if many else None) as opened:
        part = opened.slicer[key]
        assert part.shape == VALUES[key].shape
        assert np.array_equal(part, VALUES[key])
        assert np.array_equal(part[...], VALUES[key])
        if opened.meta.axes:
            assert coordinates(part) == wanted_coordinates(key)
            assert [axis.units for axis in part.axes] == [
                axis.units for axis in array.slicer[key].axes
            ]
        raconvert.write(tmp_path / "part.ra", part)
    with raconvert.open(tmp_path / "part.ra") as back:
        assert np.array_equal(back, VALUES[key])
        if suffix not in ("npy", "mat", "npz"):
            assert coordinates(back) == wanted_coordinates(key)


def test_parts_of_parts(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.h5", {"x": Array(VALUES, meta=Metadata(axes=AXES))})
    chance = random.Random(5)
    with raconvert.open(tmp_path / "x.h5", "x") as array:
        for _ in range(60):
            part, values = array, VALUES
            for _ in range(3):
                key = tuple(
                    chance.randrange(-n, n) if n and chance.random() < 0.2
                    else slice(*[chance.choice([None, *range(-n - 1, n + 2)]) for _ in range(2)],
                               chance.choice([None, 1, 2, -1, -2]))
                    for n in values.shape
                )  # fmt: skip
                part, values = part.slicer[key], values[key]
            assert np.array_equal(part, values)
            assert part.shape == values.shape
            # The first axis has been cut to labels, so those that are left say which indices.
            for axis, length in zip(part.axes, part.shape, strict=True):
                assert axis.labels is None or len(axis.labels) == length


def test_positions_in_space_stay() -> None:
    """Each element of a part is where it was in the world."""
    space = raconvert.Space("LPS", (10.0, -20.0, 5.0))
    directions = [(0.0, 0.6, 0.8), (1.0, 0.0, 0.0), (0.0, -0.8, 0.6)]
    axes = [Axis(spacing=n + 0.5, direction=d) for n, d in enumerate(directions)]
    array = Array(VALUES, meta=Metadata(axes=axes, space=space))

    def positions(one: Array) -> dict[float, tuple[float, ...]]:
        found = {}
        vectors = [np.array(axis.vector) for axis in one.axes]
        origin = np.array(one.meta.space.origin)
        for index in itertools.product(*map(range, one.shape)):
            at = origin + sum(k * v for k, v in zip(index, vectors, strict=True))
            found[float(one[index])] = tuple(np.round(at, 9).tolist())
        return found

    whole = positions(array)
    for key in KEYS:
        part = array.slicer[key]
        if part.count:
            assert positions(part).items() <= whole.items(), key


def test_items_of_a_stack_are_those_of_the_part(tmp_path: Path) -> None:
    items = [{"description": str(n)} for n in range(4)]
    array = Array(VALUES, meta=Metadata(items=lambda: iter(items)))
    chosen = array.slicer[::-2].meta.items
    assert chosen is not None
    assert [one["description"] for one in chosen()] == ["3", "1"]
    assert array.slicer[2].meta.description == "2"
    assert array.slicer[2].meta.items is None


@pytest.mark.parametrize("key", [None, [0, 1], np.array([True] * 4), (0, 0, 0, 0), 7, "x", 1.5])
def test_other_keys_are_refused(key: Any) -> None:
    with pytest.raises(IndexError):
        Array(VALUES).slicer[key]


# The command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("1:, :, ::2", (slice(1, None), slice(None), slice(None, None, 2))),
        ("..., 0", (..., 0)),
        ("-1", (-1,)),
        ("::-1,2", (slice(None, None, -1), 2)),
    ],
)
def test_slices_as_text(
    tmp_path: Path, text: str, key: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert key_of(text) == key
    raconvert.write(tmp_path / "x.h5", {"x": Array(VALUES, meta=Metadata(axes=AXES)), "y": VALUES})
    raconvert.write(tmp_path / "a.ra", Array(VALUES, meta=Metadata(axes=AXES)))
    for source, more in (
        (f"x.h5#x[{text}]", ()),
        ("x.h5#x", ("--slice", text)),
        ("a.ra", (f"--slice={text}",)),
    ):
        assert main(["convert", source, "-o", "out.npy", "--overwrite", *more]) == 0
        assert np.array_equal(np.load(tmp_path / "out.npy"), VALUES[key])
    raconvert.convert(tmp_path / "a.ra", tmp_path / "b.ra", slice=text)
    with raconvert.open(tmp_path / "b.ra") as back:
        assert coordinates(back) == wanted_coordinates(key)
    with raconvert.open(f"{tmp_path / 'x.h5'}#x[{text}]") as part:
        assert np.array_equal(part, VALUES[key])


def test_a_name_with_brackets_is_a_name_first(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.npz", {"x[0]": VALUES[1], "x": VALUES})
    assert np.array_equal(raconvert.read(f"{tmp_path / 'x.npz'}#x[0]"), VALUES[1])
    assert np.array_equal(raconvert.read(f"{tmp_path / 'x.npz'}#x[2]"), VALUES[2])


@pytest.mark.parametrize(
    "text", ["", "a", "1.5", "0:1:0", "1:2:3:4", ",", "0,0,0,0", "9", "......"]
)
def test_wrong_slices_are_told(tmp_path: Path, text: str) -> None:
    raconvert.write(tmp_path / "a.ra", VALUES)
    with pytest.raises(UsageError, match="slice"):
        raconvert.convert(tmp_path / "a.ra", tmp_path / "b.ra", slice=text)
    assert not (tmp_path / "b.ra").exists()


def test_a_part_is_read_in_proportion(tmp_path: Path) -> None:
    """A sparse file of a terabyte: only what is picked can be read."""
    with (tmp_path / "x.ra").open("wb") as file:
        header = [0x7961727261776172, 0, 1, 1, 1 << 40, 2, 1 << 20, 1 << 20]
        file.write(np.array(header, "<u8").tobytes())
        file.truncate(64 + (1 << 40))
    raconvert.convert(
        tmp_path / "x.ra", tmp_path / "y.npy", slice="5:7, ::65536", max_memory=1 << 20
    )
    assert np.load(tmp_path / "y.npy").shape == (2, 16)
    with raconvert.open(tmp_path / "x.ra") as array:
        assert array.slicer[3].extent is not None
