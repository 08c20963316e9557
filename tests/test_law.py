"""The law: what is reported exact is exact, and somebody else says so, for every ordered pair.

Sources are made by other programs (each format's `IN_PAIRS`) from seeded values; each is
converted with ``strict``, so that nothing but exact conversions go through, and the result is read
by an independent reader: the type, the shape, every bit, and everything that was said of the array.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import every
from pairs import NAME, Facts, quiet
from pairs_tables import DTYPES, FORMATS, IN_TABLES, order_of, seen_from

import raconvert
from raconvert.errors import WouldLose

if TYPE_CHECKING:
    from pathlib import Path

convert = partial(raconvert.convert, sync=False)
SHAPES = [
    (), (1,), (5,), (0,), (2, 3), (3, 1), (1, 4), (2, 2), (0, 3), (2, 3, 4), (3, 2, 2), (2, 1, 3),
    (4, 3, 3), (2, 3, 2, 2), (1, 1, 2, 1),
]  # fmt: skip
CASES_PER_SOURCE = 60
# Signed zeros, infinities, quiet and signalling NaNs with payloads, the least subnormal.
ODD_BITS = {
    2: [0x8000, 0x7C00, 0xFE01, 0x7E55, 0x0001],
    4: [0x80000000, 0xFF800000, 0x7FC00123, 0xFFC0BEEF, 0x00000001],
    8: [1 << 63, 0x7FF0 << 48, 0x7FF8_0000_0000_0123, 0xFFF8_DEAD_0000_0001, 1],
}


def values_for(generator: random.Random) -> np.ndarray:
    """Return values of a random type, shape and order in memory; any bits that the type has."""
    dtype, shape = DTYPES[generator.choice(list(DTYPES))], generator.choice(SHAPES)
    count = int(np.prod(shape))
    if dtype.kind in "bSU" or dtype.names is not None:
        numbers = np.array([generator.randrange(2) for _ in range(count)], "u1")
        values = numbers.astype(bool) if dtype.kind == "b" else np.zeros(count, dtype)
        if dtype.kind in "SU":
            values = np.array([generator.choice(["", "a", "Zq"]) for _ in range(count)], dtype)
        elif dtype.names is not None:
            values["a"], values["b"] = numbers, -0.5
    else:
        values = np.frombuffer(generator.randbytes(count * dtype.itemsize), dtype).copy()
    part = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    if dtype.kind in "fc" and count and part in ODD_BITS:
        order = dtype.str[0] if dtype.str[0] in "<>" else "<"
        bits = values.view(f"{order}u{part}")
        for place in range(0, bits.size, 2):
            bits[place] = generator.choice(ODD_BITS[part])
    values = values.reshape(shape)
    return np.asarray(values, order=generator.choice("CF"))


def is_same(wanted: np.ndarray, got: np.ndarray) -> bool:
    """True if type (but for byte order), shape and every bit are the same."""
    if wanted.dtype.kind != "U":
        wanted, got = (v.astype(v.dtype.newbyteorder("<")) for v in (wanted, got))
    elif wanted.dtype.byteorder != got.dtype.byteorder:
        wanted = wanted.astype(got.dtype.newbyteorder("=").newbyteorder(got.dtype.byteorder))
    types = wanted.dtype == got.dtype
    return types and wanted.shape == got.shape and wanted.tobytes() == got.tobytes()


def in_format(folder: Path, name: str) -> Path:
    return folder / f"{NAME}{FORMATS[name].suffix}"


@pytest.mark.parametrize("source", IN_TABLES)
def test_exact_values_are_exact(source: str, tmp_path: Path) -> None:
    generator = random.Random(f"law {source}")
    exact, odd = 0, []
    for number in range(CASES_PER_SOURCE * 8):
        values = values_for(generator)
        if not FORMATS[source].can_write(values):
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        path, order = in_format(folder, source), order_of(source)
        try:
            with quiet():
                write, column_major = FORMATS[source].write, FORMATS[source].write_column_major
                if column_major and generator.random() < 0.3:
                    write, order = column_major, "F"
                write(path, values)
        except (ValueError, TypeError, OverflowError):  # not everything that it can, by its words
            continue
        for target in IN_TABLES:
            result = in_format(folder / target, target)
            result.parent.mkdir()
            try:
                convert(path, result, to=target, strict=True)
            except WouldLose:
                assert not list(result.parent.iterdir())
                continue
            with quiet():
                got = FORMATS[target].read(result)
            seen = values if seen_from(target, values.shape, order) == values.shape else values.T
            if order is None and FORMATS[target].order == "F":
                seen = values.T
            exact += 1
            if not is_same(np.asarray(seen), got):
                odd.append(
                    (target, values.dtype.str, values.shape, order, got.dtype.str, got.shape)
                )
        if exact > CASES_PER_SOURCE * 5:
            break
    assert not odd, f"{len(odd)} of {exact}: {odd[:10]}"
    assert exact > CASES_PER_SOURCE


# What is said of the array -----------------------------------------------------------------------

SOURCES = [name for name, row in FORMATS.items() if row.say]
TOLD = [name for name, row in FORMATS.items() if row.said]


def missing(wanted: Facts, found: Facts) -> list[str]:
    """Return what of the facts is not found, or found as something else."""
    odd = []
    for name, value in wanted.items():
        got = found.get(name)
        if name in ("attributes", "text"):
            odd += [key for key in value if key not in (got or {}) or got[key] != value[key]]
        elif isinstance(value, list):
            got = got or [None] * len(value)
            odd += [name for a, b in zip(value, got, strict=True) if a is not None and a != b]
        elif got != value:
            odd.append(name)
    return odd


# Lists of numbers and texts together, which RA's files say: netCDF has none, and the report says so.
NAMED = {("ra", "netcdf3")}


@every("target", TOLD)
@every("source", SOURCES)
def test_exact_says_all(source: str, target: str, tmp_path: Path) -> None:
    """An exact conversion keeps every name, label, spacing and attribute, on its axis."""
    generator = random.Random(f"law {source} {target}")
    exact = 0
    for number in range(6):
        folder = tmp_path / str(number)
        (folder / "out").mkdir(parents=True)
        path, result = in_format(folder, source), in_format(folder / "out", target)
        wanted = FORMATS[source].say(path, generator)
        try:
            convert(path, result, to=target, strict=True)
        except WouldLose:
            continue
        exact += 1
        assert missing(wanted, FORMATS[target].said(result)) == [], wanted
    keeps = FORMATS[target].keeps and (source, target) not in NAMED
    assert exact == 6 or not keeps


def test_the_facts_are_noticed() -> None:
    """The judge of the test above sees what is missing, swapped or changed."""
    wanted = {"names": ["a", "b"], "attributes": {"k": 1}, "units": "K"}
    assert missing(wanted, dict(wanted)) == []
    assert missing(wanted, {**wanted, "names": ["b", "a"]}) == ["names", "names"]
    assert missing(wanted, {**wanted, "attributes": {"k": 2}}) == ["k"]
    assert missing(wanted, {}) == ["names", "names", "k", "units"]
