"""Text of NumPy with numbers beyond the last code point: kept bit for bit, or refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert import registry
from raconvert.cli import main
from raconvert.errors import WouldLose

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [row for row in registry.rows() if row.writes]


def text(code: int, order: str, count: int = 40) -> np.ndarray:
    units = np.full((count, 2), 0x42, f"{order}u4")
    units[count // 2 + 3, 1] = code
    return units.view(f"{order}U2").reshape(count)


@every("code", [0x110000, 0x200000, 0xFFFFFFFF])
@every("order", "<>")
@every("row", ROWS, ids=lambda row: row.name)
def test_every_format_keeps_or_refuses_it(tmp_path: Path, row: Any, order: str, code: int) -> None:
    values = text(code, order)
    path = tmp_path / f"x{row.suffixes[0] if row.suffixes else ''}"
    try:
        raconvert.write(path, {"x": values} if row.many else values, to=row.name)
    except raconvert.RaconvertError:
        assert list(tmp_path.iterdir()) == []
        return
    found = raconvert.read(path)
    found = found if isinstance(found, np.ndarray) else found["x"]
    assert np.array_equal(found.view(f"{found.dtype.byteorder}u4"), values.view(f"{order}u4"))


@pytest.mark.parametrize(
    "options", [{}, {"strings": "fixed"}, {"compress": "gzip"}, {"chunks": "7"}]
)
@pytest.mark.parametrize("order", "<>")
def test_hdf5_names_the_element(tmp_path: Path, order: str, options: dict[str, str]) -> None:
    with pytest.raises(WouldLose, match=r"element \(23,\).*U\+10FFFF.*U\+200000"):
        raconvert.write(tmp_path / "x.h5", {"x": text(0x200000, order)}, out_opts=options)
    assert list(tmp_path.iterdir()) == []
    raconvert.write(tmp_path / "x.h5", {"x": text(0x10FFFF, order)}, out_opts=options)
    assert np.array_equal(raconvert.read(tmp_path / "x.h5")["x"], text(0x10FFFF, order))


def test_a_container_that_is_added_to_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    raconvert.write(path, {"x": np.arange(3)})
    before = path.read_bytes()
    np.save(tmp_path / "t.npy", text(0x200000, "<"))
    assert main([str(tmp_path / "t.npy"), "-o", f"{path}#t", "-q"]) == 4
    assert path.read_bytes() == before


def test_a_coordinate_is_refused(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    array = xr.DataArray(np.arange(40.0), dims="x", coords={"x": text(0x200000, "<")})
    for name in ("x.h5", "x.zarr", "x.zip", "x.ra"):
        with pytest.raises(WouldLose, match="coordinate along axis 'x'"):
            raconvert.write(tmp_path / name, array)
    assert list(tmp_path.iterdir()) == []


def test_views_show_a_replacement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, images=np.zeros((40, 8, 9), "u1"), labels=text(0x200000, "<"))
    np.save(tmp_path / "x.npy", text(0x200000, "<"))
    for file in (path, tmp_path / "x.npy"):
        for words in (["--full"], ["--json"], []):
            assert main(["peek", str(file), *words]) == 0
        assert main(["info", str(file), "--html", "-o", str(tmp_path / f"{file.name}.html")]) == 0
    assert "B\ufffd" in capsys.readouterr().out
