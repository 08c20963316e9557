"""The picture of a file as Pillow decodes it, guarded.

Pillow is called inside `guarded`: no warning, no log line, no foreign exception leaks. Its limit on
the size of an image is replaced by the honest need of memory against ``--max-memory``, which is
checked before any pixel is decoded. Only modes whose pixels are not converted are read.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from io import BufferedReader, BytesIO
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageFile, UnidentifiedImageError

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.files.source import read_failed
from raconvert.plugin import Array, Bundle, element, trailing_note

from .metadata import EXIF, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from raconvert.plugin import Source

PIXEL_BYTES = 4  # Pillow stores a colour in four bytes, whatever its channels
SMALL_BYTES = 1 << 20  # files up to this size are read at once: cheaper than Pillow's many reads
ORIENTATION = 274  # tag of EXIF
UNITS = ("none", "inch", "cm")  # of the density in a JFIF header
CHANNELS = {"1": 1, "L": 1, "RGB": 3, "RGBA": 4}  # of modes whose pixels are not converted
_lock = RLock()  # the settings of Pillow are those of all threads


@contextmanager
def guarded(path: str | None, what: str) -> Iterator[None]:
    """Return a context for a library: strict about cut files, silent; failures become `Corrupt`."""
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
        Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = None, False
        try:
            yield
        except (RaconvertError, MemoryError):  # the core explains a MemoryError
            raise
        except Exception as error:  # nobody knows all that a backend raises for a damaged file
            if isinstance(error, OSError) and error.errno is not None:
                raise read_failed(path, error) from error
            text = str(error).strip() or type(error).__name__
            if isinstance(error, UnidentifiedImageError):  # its text has an address in memory
                text = "Pillow does not know it by its first bytes"
            message = f"{what} is damaged, cut off, or beyond what is read here ({text})"
            raise Corrupt(message, path=path) from error
        finally:
            Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = before


def contents(source: Source) -> bytes:
    """Read a whole file. Raises `TooLarge` if it is above the memory allowed."""
    check_memory(source.size, source.max_memory, f"'{source.path}': its compressed bytes")
    return source.read_exact(0, source.size, "the file")


def read_picture(
    source: Source,
    form: str,
    *,
    end: int = 0,
    notes: Iterable[str] = (),
    check: Callable[[Any, Source], tuple[dict[str, Any], int]] | None = None,
    spans: Iterable[tuple[int, int]] = (),
    most: int | None = None,
    more: int = 0,
    data: bytes | None = None,
) -> Bundle:
    """The bundle of the one picture of a file in Pillow's format `form`, decoded when needed.

    `end` is the offset of its end in the file. `check` gets Pillow's image before it is decoded,
    and returns further fields and the end. Pillow sees only the `spans` (offset, bytes) of the
    file, if there are any. `data` are the bytes of the file, if they were read before.

    Raises `Corrupt` for more pixels than `most`, those that the compressed bytes can hold;
    `TooLarge` if the pixels, two copies of them, and the `more` bytes that the decoder needs for
    each of them are above the memory allowed; `Unsupported` for modes that are not read.
    """

    @contextmanager
    def opened(data: bytes | None = None) -> Iterator[Any]:
        if spans:
            data = b"".join(source.read_exact(*span, "the picture") for span in spans)
        elif data is None and source.size <= SMALL_BYTES:
            data = contents(source)
        with (
            BytesIO(data) if data is not None else BufferedReader(source.open()) as file,
            guarded(source.path, f"the {form} image"),
            Image.open(file, formats=(form,)) as image,
        ):
            yield image

    with opened(data) as image:
        stored, palette = (image.mode, image.size), image.palette
        mode = _mode_of(image)
        more_fields, end = check(image, source) if check else ({}, end)
        meta = metadata_of(fields_of(image.info) | more_fields)
    colors = len(palette.palette) // len(palette.rawmode or palette.mode) if palette else 0
    width, height = stored[1]
    if mode not in CHANNELS or min(width, height) < 1:
        what = f"has pixels that are not read here (in Pillow's words: {mode})"
        raise Unsupported(what, path=source.path, remedy="convert it to PNG first")
    if most is not None and width * height > most:
        what = f"declares {width} × {height} pixels, more than its compressed bytes can hold"
        raise Corrupt(what, path=source.path)
    what = f"'{source.path}': its image of {width * height} pixels"
    check_memory(width * height * (3 * PIXEL_BYTES + more), source.max_memory, what)

    def decoded() -> Any:
        with opened() as image:
            values = np.array(image)
            if (image.mode, image.size) != stored:
                raise Corrupt("image is not what its header says", path=source.path)
            if stored[0] == "P" and values.max() >= colors:
                raise Corrupt(
                    "has pixels of colours that its palette does not have", path=source.path
                )
            if mode != stored[0]:
                values = np.array(image.convert(mode))
        # Pillow gives 255, not 1, for True.
        return values.view(np.uint8) != 0 if mode == "1" else values

    dims = (CHANNELS[mode],) * (CHANNELS[mode] > 1) + (width, height)
    stored_type = element("bool" if mode == "1" else "uint", 1)
    array = Array(stored_type, dims, data=decoded, name=source.stem, index_order="C", meta=meta)
    behind = source.size - end
    after = [trailing_note(behind, f"the end of the {form} image")] if behind > 0 else []
    return Bundle([array], notes=[*notes, *after])


def _mode_of(image: Any) -> str:
    """The mode in which an image is read: a palette as RGB, with a transparent colour as RGBA."""
    if "transparency" in image.info:
        return "RGBA"
    return "RGB" if image.mode == "P" else str(image.mode)


def fields_of(info: dict[str, Any]) -> dict[str, Any]:
    """The metadata fields in the `info` of Pillow, which has the same names for all formats."""
    unit, density = info.get("jfif_unit", 0), info.get("jfif_density", (0, 0))
    has_density = density not in ((0, 0), (1, 1)) and unit < len(UNITS)
    data, orientation = info.get("exif", b"").removeprefix(EXIF), None
    with suppress(Exception):  # damaged EXIF data stays as it is
        if data:
            exif = Image.Exif()
            exif.load(EXIF + data)
            orientation = exif.get(ORIENTATION)
    return {
        "icc": info.get("icc_profile"),
        "xmp": info.get("xmp"),
        "comment": info.get("comment", b"").rstrip(b"\0").decode("utf-8", "replace"),
        "resolution": [*([n, 1] for n in density), UNITS[unit]] if has_density else None,
        "exif": data,
        "orientation": orientation if orientation in range(1, 9) else None,
    }
