"""Images in compressed tiles: a table of which each row is a tile, decompressed by astropy.

All sizes in the header are checked before astropy reads the file.
"""

from __future__ import annotations

import os
import warnings
import zlib
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import MAX_SPAN, dtype_of, little, spanned
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key
from raconvert.errors import Corrupt, MissingDependency, RaconvertError, TooLarge, Unsupported

from .header import whole
from .images import image_of
from .tables import ELEMENTS, MAX_COLUMNS, MAX_RANK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from raconvert.plugin import Array, Source

    from .header import Unit

__all__ = ["tiled"]

# Damaged tiles of these make astropy's compiled code write where it must not: they are decompressed
# in a process of their own, which costs half a second for each region.
APART = ("HCOMPRESS_1",)
_PROGRAM = """
import warnings
warnings.simplefilter("ignore")
from astropy.io import fits
path, number, code, *parts = sys.argv[1:]
key = tuple(slice(*map(int, one.split(":"))) for one in parts)
with fits.open(path, memmap=False, do_not_scale_image_data=True) as file:
    values = file[int(number)].section[key]
if values.dtype.kind == code[1]:
    sys.stdout.buffer.write(values.astype(code).tobytes())
"""
GZIP_MAGIC = b"\x1f\x8b"
PIECE_BYTES = 1 << 20
WHOLE = ("RICE_1", "RICE_ONE", "PLIO_1", "HCOMPRESS_1")  # methods of whole numbers
PARAMETERS: dict[str, Sequence[int]] = {
    "BLOCKSIZE": range(8, 257), "BYTEPIX": (1, 2, 4), "SMOOTH": (0, 1),
}  # fmt: skip
LAST_SEED = 10_000
METHODS = ("RICE_1", "RICE_ONE", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1", "NOCOMPRESS")


def tiled(source: Source, unit: Unit, name: str, notes: list[str], where: str) -> Array:
    """The array of an image in tiles. Raises `Corrupt`, `Unsupported` and `TooLarge`."""
    image, tiles = _image(source, unit, where)
    stored = ELEMENTS[image.values["BITPIX"]]
    nbytes = prod(image.shape) * stored.nbytes
    limits = source.limits
    if nbytes > max(limits.memory, limits.expansion_ratio * unit.nbytes):
        raise TooLarge(
            "image declares more elements than its tiles can hold", path=source.path, where=where,
            expected=f"at most {limits.expansion_ratio} bytes for each of {unit.nbytes}",
            got=nbytes,
        )  # fmt: skip
    check_memory(prod(tiles) * stored.nbytes, limits.memory, f"'{source.path}': one tile")
    array = image_of(
        source, image, name, notes, where,
        data=lambda: _Tiles(source, unit, image.shape, tiles, where),
    )  # fmt: skip
    array.storage["encoding"] = f"tiles by {unit.values.get('ZCMPTYPE')}"
    return array


def _image(source: Source, unit: Unit, where: str) -> tuple[Unit, tuple[int, ...]]:
    """The HDU with the keywords of the image instead of the table, and the shape of a tile."""
    values = unit.values
    method, bits = values.get("ZCMPTYPE"), values.get("ZBITPIX")
    if method not in METHODS:
        raise Unsupported(
            f"has tiles compressed by {method!r:.40}", path=source.path, where=where,
            expected=f"one of {', '.join(METHODS)}", remedy="unpack it first: funpack FILE",
        )  # fmt: skip
    rank = whole(source, values, "ZNAXIS", where)
    if bits not in ELEMENTS or not 0 < rank <= MAX_RANK:
        raise Corrupt(
            "ZBITPIX or ZNAXIS does not describe an image", path=source.path, where=where,
            expected=f"BITPIX of {', '.join(map(str, ELEMENTS))}, 1 to {MAX_RANK} axes",
            got=f"{bits!r:.20}, {rank}",
        )  # fmt: skip
    lengths = [whole(source, values, f"ZNAXIS{n}", where) for n in range(1, rank + 1)]
    usual = [lengths[0], *[1] * (rank - 1)]
    sizes = [
        whole(source, values, f"ZTILE{n}", where) if f"ZTILE{n}" in values else usual[n - 1]
        for n in range(1, rank + 1)
    ]
    if 0 in sizes or spanned(lengths, 8) > MAX_SPAN or spanned(sizes, 8) > MAX_SPAN:
        raise Corrupt(
            "tiles or image have impossible sizes", path=source.path, where=where,
            got=f"{sizes[:8]} of {lengths[:8]}",
        )  # fmt: skip
    count = prod(-(-length // size) for length, size in zip(lengths, sizes, strict=True))
    if values["NAXIS"] != 2 or values["NAXIS2"] != count:
        raise Corrupt(
            "table does not have a row for each tile", path=source.path, where=where,
            expected=count, got=values.get("NAXIS2"),
        )  # fmt: skip
    _check_parameters(source, values, where)
    keywords = {k: value for k, value in values.items() if not k.startswith("NAXIS")}
    keywords |= {"BITPIX": bits, "NAXIS": rank}
    keywords |= {f"NAXIS{n}": length for n, length in enumerate(lengths, 1)}
    if type(values.get("ZBLANK")) is int and bits > 0:
        keywords.setdefault("BLANK", values["ZBLANK"])
    cards = type(unit.cards)()
    cards.values, cards.comments = keywords, unit.cards.comments
    cards.words, cards.lines, cards.twice = unit.cards.words, unit.cards.lines, unit.cards.twice
    tiles = tuple(min(size, n) or 1 for size, n in zip(sizes, lengths, strict=True))
    return unit._replace(cards=cards), tiles[::-1]


def _check_parameters(source: Source, values: Mapping[str, Any], where: str) -> None:
    """Raise `Corrupt` for wrong parameters: the compiled code of astropy does not check them."""
    for key in [key for key in values if key.startswith("ZNAME")]:
        name, value = values[key], values.get(f"ZVAL{key.removeprefix('ZNAME')}")
        allowed = PARAMETERS.get(name) if isinstance(name, str) else None
        if allowed is not None and (type(value) is not int or value not in allowed):
            raise Corrupt(
                f"{name} of the tiles is not a value of its method", path=source.path, where=where,
                expected=f"{allowed[0]} to {allowed[-1]}", got=f"{value!r:.40}",
            )  # fmt: skip
    seed = values.get("ZDITHER0", 1)
    is_dithered = str(values.get("ZQUANTIZ", "")).startswith("SUBTRACTIVE")
    if is_dithered and (type(seed) is not int or not 1 <= seed <= LAST_SEED):
        raise Corrupt(
            "ZDITHER0 is outside the seeds of noise", path=source.path, where=where,
            expected=f"1 to {LAST_SEED}", got=f"{seed!r:.40}",
        )  # fmt: skip
    method, real = values["ZCMPTYPE"], values["ZBITPIX"] < 0
    names = {values.get(f"TTYPE{n}") for n in range(1, MAX_COLUMNS + 1)}
    if real and method in WHOLE and not ({"ZSCALE"} & names or "ZSCALE" in values):
        raise Corrupt(
            f"tiles of {method} are whole numbers, but ZBITPIX is that of floats, without a scale",
            path=source.path, where=where, expected="a column ZSCALE", got=values["ZBITPIX"],
        )  # fmt: skip


class _Tiles:
    """Array source over an image in tiles; only the tiles of a region are decoded."""

    def __init__(
        self, source: Source, unit: Unit, shape: tuple[int, ...], tiles: tuple[int, ...], where: str
    ) -> None:
        self.shape = shape
        self.dtype = dtype_of(little(ELEMENTS[unit.values["ZBITPIX"]]))
        self._source = source
        self._unit = unit
        self._tiles = tiles
        self._where = where
        self._checked = False

    def stream(self, max_bytes: int) -> Iterator[Any]:
        """Yield pieces in stored order; as many rows of tiles are decoded at once as fit."""
        if not prod(self.shape):
            return
        row = prod(self.shape[1:]) * self.dtype.itemsize
        height = self._tiles[0]
        step = max(1, max_bytes // (row * height)) * height
        what = f"'{self._source.path}': a row of tiles of an image of {self.shape}"
        check_memory(min(step, self.shape[0]) * row, self._source.max_memory, what)
        with self._opened() as image:
            for first in range(0, self.shape[0], step):
                key = (slice(first, min(first + step, self.shape[0])), *self._all())
                values = self._region(image, key).reshape(-1)
                most = max(1, max_bytes // self.dtype.itemsize)
                for at in range(0, values.size, most):
                    yield values[at : at + most]

    def _all(self) -> tuple[slice, ...]:
        return tuple(slice(0, length) for length in self.shape[1:])

    def __getitem__(self, key: Any) -> Any:
        full = full_key(key, len(self.shape))
        if not prod(self.shape):
            return np.empty(self.shape, self.dtype)[full]
        boxes: list[slice] = []
        rest: list[int | slice] = []
        for length, index in zip(self.shape, full, strict=True):
            if isinstance(index, slice):
                indices = range(length)[index]
                low, high = (min(indices), max(indices) + 1) if indices else (0, 1)
                rest.append(_within(indices, low))
            else:
                low = index + length if index < 0 else index
                high = low + 1
                rest.append(0)
            boxes.append(slice(low, high))
        nbytes = prod(box.stop - box.start for box in boxes) * self.dtype.itemsize
        check_memory(nbytes, self._source.max_memory, f"'{self._source.path}': a region of tiles")
        with self._opened() as image:
            return self._region(image, tuple(boxes))[tuple(rest)]

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the image with astropy; regions are picked from the value."""
        if not self._checked:
            _check_gzip(self._source, self._unit, 8 * prod(self._tiles), self._where)
            self._checked = True
        try:
            from astropy.io import fits
        except ImportError as error:
            raise MissingDependency(
                "images in compressed tiles need a package that is not installed: astropy",
                path=self._source.path, where=self._where,
                remedy="pip install 'raconvert[fits]', or unpack it first: funpack FILE",
            ) from error  # fmt: skip
        with self._source.open() as handle, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with fits.open(
                    handle, memmap=False, do_not_scale_image_data=True, lazy_load_hdus=True,
                    ignore_missing_simple=False,
                ) as file:  # fmt: skip
                    yield file[self._unit.number].section
            except (RaconvertError, MemoryError):
                raise
            except Exception as error:
                raise self._damaged(error) from error

    def _region(self, image: Any, key: tuple[slice, ...]) -> Any:
        """Decode a box, here or in another process. Raises `Corrupt`."""
        shape = tuple(part.stop - part.start for part in key)
        if self._unit.values["ZCMPTYPE"] in APART:
            return self._apart(key, shape)
        try:
            values = np.asarray(image[key])
        except Exception as error:
            raise self._damaged(error) from error
        if values.size != prod(shape) or values.dtype.kind != self.dtype.kind:
            raise self._damaged(f"{values.size} elements of {values.dtype}")
        return np.ascontiguousarray(values.reshape(shape), self.dtype)

    def _apart(self, key: tuple[slice, ...], shape: tuple[int, ...]) -> Any:
        """Decode a box in another process."""
        import subprocess
        import sys

        path = os.path.abspath(self._source.path)
        if not os.path.isfile(path):
            raise Unsupported(
                f"has tiles compressed by {self._unit.values['ZCMPTYPE']}, and is not a local file",
                path=self._source.path, where=self._where, expected="a local file",
                remedy="copy it here first",
            )  # fmt: skip
        program = f"import sys; sys.path[:] = {sys.path!r}\n{_PROGRAM}"
        parts = [f"{part.start}:{part.stop}" for part in key]
        words = [path, str(self._unit.number), self.dtype.str, *parts]
        done = subprocess.run(  # noqa: S603 - this Python, and code of this module
            [sys.executable, "-P", "-c", program, *words], stdin=subprocess.DEVNULL,
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode or len(done.stdout) != prod(shape) * self.dtype.itemsize:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise self._damaged(lines[-1] if lines else f"the library ended with {done.returncode}")
        return np.frombuffer(done.stdout, self.dtype).reshape(shape)

    def _damaged(self, why: object) -> Corrupt:
        """The error for tiles that astropy cannot decode; `why` is an exception or a text."""
        reason = f"{type(why).__name__}: {why}" if isinstance(why, Exception) else str(why)
        return Corrupt(
            "tiles cannot be decompressed", path=self._source.path, where=self._where,
            expected=f"{self.shape} of {self.dtype.name}", got=reason[:200],
        )  # fmt: skip


def _check_gzip(source: Source, unit: Unit, most: int, where: str) -> None:
    """Raise `Corrupt` for tiles of gzip that inflate to more than `most` bytes.

    astropy inflates each tile at once, however long it becomes.
    """
    from .columns import columns_in
    from .heap import Cells

    for column in columns_in(source, unit, where)[0]:
        if column.form[:1] != "B" or not column.cells:
            continue
        cells = Cells(source, unit, column, np.dtype("u1"), where)
        for lengths, offsets in cells.extents():
            for length, offset in zip(lengths.tolist(), offsets.tolist(), strict=True):
                at = cells.begin + offset
                if length > 2 and source.read_at(at, 2) == GZIP_MAGIC:
                    _check_size(source, at, length, most, where)


def _check_size(source: Source, at: int, length: int, most: int, where: str) -> None:
    """Inflate the `length` bytes at `at`. Raises `Corrupt` beyond `most` bytes."""
    inflater, size = zlib.decompressobj(31), 0
    for first in range(0, length, PIECE_BYTES):
        piece = source.read_exact(at + first, min(PIECE_BYTES, length - first), "a tile")
        while piece and not inflater.eof:
            try:
                size += len(inflater.decompress(piece, PIECE_BYTES))
            except zlib.error as error:
                raise Corrupt(
                    "tile is damaged", path=source.path, where=f"{where}, byte {at}",
                    got=str(error),
                ) from error  # fmt: skip
            if size > most:
                raise Corrupt(
                    "tile becomes more bytes than it can have", path=source.path,
                    where=f"{where}, byte {at}", expected=f"at most {most}",
                )  # fmt: skip
            piece = inflater.unconsumed_tail
        if inflater.eof:  # what follows is not read: many tiles could share a long rest
            return


def _within(indices: range, low: int) -> slice:
    """The slice of the indices in a box that begins at `low`."""
    if not indices:
        return slice(0, 0)
    stop = indices.stop - low
    return slice(indices.start - low, stop if stop >= 0 else None, indices.step)
