"""A program of a user: checked by mypy and pyright as it stands, and run by tests/test_types.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import raconvert
import raconvert.ra
from raconvert import Array, Axis, Bundle, Metadata, Progress, RaconvertError
from raconvert.plugin import Element, Fit, element, equivalent

Values = np.ndarray[Any, Any]


def write_files(folder: Path) -> Path:
    """Write an RA file with metadata, and the same values as NPY."""
    values = np.arange(12, dtype="<i4").reshape(3, 4)
    meta = Metadata(units="m", axes=[Axis(name="x", spacing=0.5), Axis(name="y")])
    raconvert.write(folder / "grid.ra", values, meta=meta)
    report = raconvert.convert(folder / "grid.ra", folder / "grid.npy")
    assert_type(report.nbytes, int)
    assert_type(report.sources, list[str])
    return folder / "grid.ra"


def look(path: Path) -> str:
    """Open a file lazily and describe it."""
    opened: Array | Bundle = raconvert.open(path)
    if isinstance(opened, Bundle):
        return ", ".join(opened.names)
    with opened as array:
        assert_type(array.dims, tuple[int, ...])
        assert_type(array.shape, tuple[int, ...])
        assert_type(array.element, Element)
        assert_type(array.element.nbytes, int)
        assert_type(array.index_order, str | None)
        assert_type(array.meta.axes, tuple[Axis, ...])
        assert_type(array.axes, tuple[Axis, ...])
        assert_type(array.meta.units, str | None)
        whole: Values = np.asarray(array)
        return f"{array.name}: {array.element.kind} {array.shape}, sum {whole.sum()}"


def doors(path: Path) -> None:
    """Open by the functions of which the result is known, and by a name."""
    with raconvert.open_array(path) as array:
        assert_type(array, Array)
        assert_type(array.shape, tuple[int, ...])
    with raconvert.open_bundle(path, max_memory=1 << 20) as bundle:
        assert_type(bundle, Bundle)
        assert_type(bundle.names, list[str])
    assert_type(raconvert.open(path, "grid"), Array)
    assert_type(raconvert.read(path, "grid"), Values)


def show(now: Progress) -> None:
    """Take what a conversion says of itself."""
    assert_type(now.file, str)
    assert_type(now.done, int)
    assert_type(now.count, int)
    assert_type(now.rate, float)


def sources(path: Path) -> None:
    """Read what is not one file with a name: bytes, an open file, a list, a pattern."""
    data = path.read_bytes()
    raconvert.read(data, from_="ra", in_opts={}, meta="ignore", index_order="C", trust=())
    with path.open("rb") as file:
        raconvert.info(file, arrays=["grid"], max_memory=1 << 20)
        raconvert.convert(file, path.with_suffix(".png"), dtype="uint8", progress=show)
    raconvert.open([path, path], max_memory=1 << 20).close()
    assert_type(raconvert.probe(data).format, str | None)
    assert_type(raconvert.diff(path, data, atol=0.5, ignore_meta=True), dict[str, Any])
    try:
        raconvert.read(b"nothing of the kind")
    except (raconvert.UnknownFormat, raconvert.Corrupt) as error:
        assert_type(error.remedy, str | None)


def main(folder: Path) -> int:
    """Use every public name once."""
    path = write_files(folder)
    sources(path)
    assert_type(raconvert.digest(path), str)
    assert_type(raconvert.query(path), str)
    assert_type(raconvert.info(path), dict[str, Any])
    assert_type(raconvert.verify(path), dict[str, Any])
    assert_type(raconvert.formats(), list[dict[str, Any]])
    fit = equivalent("grid", "metadata", "the form changes")
    assert_type(fit, Fit)
    assert_type(fit.flag, str | None)
    assert_type(element("float", 8), Element)
    raconvert.ra.write(folder / "fast.ra", np.ones(3))
    doors(path)
    print(look(path), raconvert.ra.read(folder / "fast.ra").sum())
    try:
        raconvert.read(folder / "missing.ra")
    except RaconvertError as error:
        assert_type(error.path, str | None)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
