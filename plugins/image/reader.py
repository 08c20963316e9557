"""The picture of a file as Pillow decodes it, guarded.

Pillow is called inside `guarded`: no warning, no log line, no foreign exception leaks. Its limit on
the size of an image is replaced by the honest need of memory against ``--max-memory``, which is
checked before any pixel is decoded. Only modes whose pixels come out as they are get through.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from contextlib import contextmanager
from io import BufferedReader
from math import prod
from threading import RLock

import numpy as np

from raconvert.arrays.blocks import check_memory
from raconvert.arrays.lazy import Decoded
from raconvert.errors import Corrupt, RaconvertError, ReadFailed, TooLarge, Unsupported
from raconvert.plugin import Array, Bundle, element

from .metadata import EXIF, metadata_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]

# What Pillow, tifffile and imageio raise for damaged files, as far as anybody knows.
FAILURES: tuple[type[Exception], ...] = (
    OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, AttributeError,
    ArithmeticError, AssertionError, RuntimeError, MemoryError, Warning, struct.error, zlib.error,
)  # fmt: skip
PIXEL_BYTES = 4  # Pillow keeps colours in four bytes whatever their channels
UNITS = ("none", "inch", "cm")  # of the density in a JFIF header
CHANNELS = {"1": 1, "L": 1, "RGB": 3, "RGBA": 4, "CMYK": 4}  # modes of pixels as they are
_lock = RLock()  # the settings of Pillow are those of all threads


@contextmanager
def guarded(path: str | None, what: str, *, writing: bool = False) -> Iterator[None]:
    """Run a backend: strict about truncation, silent, its failures as `Corrupt` or `TooLarge`.

    When `writing`, what the operating system refuses is left for the core to explain.
    """
    from PIL import Image, ImageFile

    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
        Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = None, False
        try:
            yield
        except RaconvertError:
            raise
        except FAILURES as error:
            if writing and isinstance(error, OSError) and error.errno is not None:
                raise
            raise _translated(error, path, what) from error
        finally:
            Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = before


def _translated(error: Exception, path: str | None, what: str) -> RaconvertError:
    """Our error for one of a backend."""
    cause: BaseException = error
    while cause.__cause__ is not None:  # imageio wraps what the backend said
        cause = cause.__cause__
    if isinstance(cause, MemoryError):
        return TooLarge(f"{what} needs more memory than the system gives", path=path)
    if isinstance(cause, OSError) and cause.errno is not None:
        return ReadFailed(f"cannot be read: {cause.strerror}", path=path)
    text = str(cause).strip() or type(cause).__name__
    return Corrupt(f"{what} is damaged, cut off, or beyond what is read here ({text})", path=path)


def read_picture(
    source: Source,
    form: str,
    *,
    fields: dict[str, Any] | None = None,
    notes: list[str] | None = None,
    file: Callable[[], BinaryIO] | None = None,
    more: int = 0,
) -> Bundle:
    """The bundle of the one picture of a file in Pillow's format `form`, decoded when asked for.

    `file` opens what Pillow gets to see, where that is not the whole file. Refused (`TooLarge`) is
    what would need more than ``--max-memory``: its own pixels, two copies of what comes out of
    them, and the `more` bytes that the decoder has of each pixel.
    """
    picture = _Picture(source, form, file or (lambda: BufferedReader(source.open())))
    pixels = prod(picture.shape[:2])
    what = f"'{source.path}': its image of {pixels} pixels"
    check_memory(pixels * (3 * PIXEL_BYTES + more), source.max_memory, what)
    kind = "bool" if picture.mode == "1" else "uint"
    meta = metadata_of({**picture.fields, **(fields or {})})
    order: dict[str, Any] = {"name": source.stem, "index_order": "C", "meta": meta}
    array = Array(element(kind, 1), picture.shape[::-1], data=lambda: picture, **order)
    return Bundle([array], notes=[*(notes or []), *picture.notes])


class _Picture(Decoded):
    """A picture of which the size and the mode are known."""

    def __init__(self, source: Source, form: str, file: Callable[[], BinaryIO]) -> None:
        self._path, self._form, self._file = source.path, form, file
        self.fields: dict[str, Any] = {}
        self.notes: list[str] = []
        with self._opened() as image:
            self._stored = image.mode, image.size
            self._colors = 0
            if image.mode == "P":
                palette = image.palette
                self._colors = len(palette.palette) // len(palette.rawmode or palette.mode)
            clear = "transparency" in image.info
            self.mode = "RGBA" if clear else "RGB" if image.mode == "P" else image.mode
            self._add_fields(image)
        if self.mode not in CHANNELS or min(self._stored[1]) < 1:
            what = f"has pixels that are not read here (in Pillow's words: {self.mode})"
            raise Unsupported(what, path=source.path, remedy="convert it to PNG first")
        if self.mode == "CMYK":
            self.fields["color"] = "CMYK"
            self.notes.append("the four channels are inks (CMYK), not RGB with alpha")
        channels = CHANNELS[self.mode]
        width, height = self._stored[1]
        super().__init__(
            (height, width) + (channels,) * (channels > 1),
            np.dtype("?" if self.mode == "1" else "u1"),
            what=f"'{source.path}'",
            max_memory=source.max_memory,
        )

    def load(self) -> Values:
        """Decode the picture; `Corrupt` if it is another one than was announced."""
        with self._opened() as image:
            same = (image.mode, image.size) == self._stored
            values = np.array(image) if same else None
            if values is not None and self._colors and values.max() >= self._colors:
                raise Corrupt("has pixels of colours that its palette has not", path=self._path)
            if values is not None and self.mode != image.mode:
                values = np.array(image.convert(self.mode))
        if values is None or values.size != prod(self.shape):
            raise Corrupt("image is not what its header says", path=self._path)
        # Pillow makes bytes of 255, not of 1, of what is True.
        return values.view(np.uint8) != 0 if self.mode == "1" else values

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order: the picture is decoded as a whole."""
        flat = self.load().reshape(-1)
        for start in range(0, flat.size, max_bytes):
            yield flat[start : start + max_bytes]

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        from PIL import Image

        what = f"the {self._form} image"
        with (
            self._file() as file,
            guarded(self._path, what),
            Image.open(file, formats=(self._form,)) as image,
        ):
            yield image

    def _add_fields(self, image: Any) -> None:
        """Keep what all formats call by the same names."""
        from PIL import Image

        info = image.info
        self.fields["icc"], self.fields["xmp"] = info.get("icc_profile"), info.get("xmp")
        self.fields["comment"] = info.get("comment", b"").rstrip(b"\0").decode("utf-8", "replace")
        unit, density = info.get("jfif_unit", 0), info.get("jfif_density", (0, 0))
        if density not in ((0, 0), (1, 1)) and unit < len(UNITS):
            self.fields["resolution"] = [*density, UNITS[unit]]
        if getattr(image, "n_frames", 1) > 1 and self._form != "JPEG":
            remedy = "take its frames apart first, for instance with: webpmux -get frame"
            raise Unsupported("is an animation, not one image", path=self._path, remedy=remedy)
        if getattr(image, "n_frames", 1) > 1:
            self.notes.append("there are more pictures in this file; only the first is read")
        if data := info.get("exif", b"").removeprefix(EXIF):
            exif = Image.Exif()
            try:
                exif.load(EXIF + data)
                orientation = exif.get(274)
            except FAILURES:
                orientation = None
            self.fields["exif"] = data
            self.fields["orientation"] = orientation if orientation in range(1, 9) else None
