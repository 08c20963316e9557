"""`--verify`: shape, type and metadata of what was written, besides its elements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raconvert.plugins import nrrd

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.catalogue import ROWS
from raconvert.errors import RaconvertError, UsageError, WouldLose, WriteFailed

VALUES = np.arange(12, dtype="i4").reshape(3, 4)
TOLD = Metadata("a text", units="K", attributes={"k": 1})


def turned(array: Array) -> Array:
    return array.replace(dims=array.dims[::-1])


FAULTS: dict[str, Callable[[Array], Array]] = {
    "shape": turned,
    "type": lambda array: array.replace(element=raconvert.plugin.element("uint", 4)),
    "units": lambda array: array.replace(meta=array.meta.replace(units="m")),
    "attributes": lambda array: array.replace(meta=array.meta.replace(attributes={"k": 2})),
    "axes": lambda array: array.replace(meta=array.meta.replace(axes=[])),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_writer_that_changes_more_than_it_says(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin reads something else than was written, as if its writer had a bug."""
    meta = TOLD.replace(axes=[Axis("y"), Axis("x")])
    raconvert.write(tmp_path / "x.ra", VALUES, meta=meta)
    raconvert.convert(tmp_path / "x.ra", tmp_path / "good.nrrd", verify=True)
    whole = nrrd.read

    def read(*words: Any, **options: Any) -> Any:
        bundle = whole(*words, **options)
        return bundle.like([FAULTS[fault](array) for array in bundle.arrays])

    monkeypatch.setattr(nrrd, "read", read)

    with pytest.raises(WriteFailed, match="does not read back as it was"):
        raconvert.convert(tmp_path / "x.ra", tmp_path / "y.nrrd", verify=True)

    assert not (tmp_path / "y.nrrd").exists()


SHAPES = [(), (1,), (3,), (1, 1), (5, 1), (2, 1, 3), (4, 3, 3), (3, 2, 2, 2)]
TYPES = ["u1", ">i4", "<i8", "f2", "<f4", "c8", "?", "S3", "<U2", "<M8[s]", "V5"]


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_every_writer_says_what_it_changes(name: str, tmp_path: Path) -> None:
    """Each shape and type, with and without metadata: written and verified, or refused."""
    row = next(row for row in ROWS if row.name == name)
    target, done = tmp_path / f"y{row.suffixes[0] if row.suffixes else ''}", 0
    for shape in SHAPES:
        for code in TYPES:
            values = np.frombuffer(bytes(np.dtype(code).itemsize * int(np.prod(shape))), code)
            values = values.reshape(shape)
            for meta in (Metadata(), TOLD.replace(axes=[Axis(f"n{n}") for n in range(len(shape))])):
                raconvert.write(tmp_path / "x.ra", values, meta=meta, overwrite=True)
                try:
                    raconvert.convert(
                        tmp_path / "x.ra", target, to=name, verify=True, overwrite=True
                    )
                except RaconvertError as error:
                    assert "does not read back" not in str(error), (shape, code)  # noqa: PT017
                else:
                    done += 1
    assert done or name in {"cifar", "raw", "har", "png", "jpeg"}


# Opaque elements, numbers of NumPy in metadata, options as numbers, casts -----------------------


@pytest.mark.parametrize("suffix", ["ra", "h5", "zarr", "zip", "npz", "nrrd"])
def test_opaque_elements_are_one_type(suffix: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.frombuffer(bytes(range(18)), "V9"))
    path = tmp_path / f"v.{suffix}"
    raconvert.convert(tmp_path / "v.npy", path)

    found = raconvert.diff(tmp_path / "v.npy", path, ignore_meta=True, bitwise=True)
    assert found["same"]
    assert raconvert.verify(path, against=[tmp_path / "v.npy"])["against"]["changed"] == 0


@pytest.mark.parametrize("suffix", ["zarr", "h5", "ra", "nrrd", "zip"])
@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float32(1.5), 1.5), (np.float64(2.5), 2.5), (np.int16(3), 3), (np.bool_(True), True),
        (np.str_("x"), "x"), (np.bytes_(b"ab"), b"ab"), (np.arange(3), [0, 1, 2]),
        ({"a": [np.uint8(1)]}, {"a": [1]}),
        (np.datetime64("2020-01-01T00:00:00.123456789"), "2020-01-01T00:00:00.123456789"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_attributes_of_numpy(suffix: str, value: object, plain: object, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    raconvert.write(path, VALUES, meta=Metadata(attributes={"k": value}))

    with raconvert.open(path) as found:
        array = found if isinstance(found, Array) else found[found.names[0]]
        assert array.meta.attributes == {"k": plain}
        assert type(array.meta.attributes["k"]) is type(plain)


def test_options_are_numbers_too(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.zarr", {"x": VALUES}, out_opts={"format": 2})
    assert (tmp_path / "x.zarr" / ".zgroup").exists()
    raconvert.write(tmp_path / "x.mat", {"x": VALUES}, out_opts={"version": 7.3})
    assert b"MATLAB 7.3" in (tmp_path / "x.mat").read_bytes()[:128]
    for wrong in (4, 2.0, True, None):
        with pytest.raises(UsageError, match="is not allowed"):
            raconvert.write(tmp_path / "y.zarr", {"x": VALUES}, out_opts={"format": wrong})


def test_complex_numbers_are_rounded_to_whole_ones(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.array([1.5 + 0j, -2.7 + 0j, 3]))
    raconvert.convert(tmp_path / "c.npy", tmp_path / "c.ra", dtype="int16", allow=["precision"])
    assert raconvert.read(tmp_path / "c.ra").tolist() == [2, -3, 3]

    np.save(tmp_path / "d.npy", np.array([1.5 + 0.1j]))
    with pytest.raises(WouldLose, match="choose a complex type"):
        raconvert.convert(tmp_path / "d.npy", tmp_path / "d.ra", dtype="int16", allow=["precision"])


@pytest.mark.parametrize("code", ["f2", "f4", "f8", "c16"])
def test_the_sign_of_zero_is_lost_only_with_leave(code: str, tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.array([-0.0, 1], code))
    with pytest.raises(WouldLose, match=r'allow=\["precision"\]'):
        raconvert.convert(tmp_path / "z.npy", tmp_path / "z.ra", dtype="int8")
    raconvert.convert(tmp_path / "z.npy", tmp_path / "z.ra", dtype="int8", allow=["precision"])
    assert raconvert.read(tmp_path / "z.ra").tolist() == [0, 1]
