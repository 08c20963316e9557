"""imageio v3 with a pinned backend, and everything that it may raise turned into our errors.

Nothing here leaks: no warning, no log line, no foreign exception. Pillow's limit on the size of an
image is replaced by the honest need of memory against ``--max-memory``, which is checked before
any pixel is decoded.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from contextlib import ExitStack, contextmanager
from itertools import count
from threading import Lock

import numpy as np

from raconvert.errors import Corrupt, RaconvertError, ReadFailed, TooLarge

from .stack import Stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from raconvert.plugin import Source

# What Pillow, tifffile and imageio raise for damaged files, as far as anybody knows.
FAILURES: tuple[type[Exception], ...] = (
    OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, AttributeError,
    ArithmeticError, AssertionError, RuntimeError, MemoryError, Warning,
    struct.error, zlib.error,
)  # fmt: skip
UNLIMITED = 1 << 62  # where what may be decoded was put together here
PILLOW_PIXEL_BYTES = 4  # Pillow keeps colours in four bytes whatever their channels

_lock = Lock()
_limits: list[int] = []  # bytes that each of the guards at work, in all threads, allows
_before = ExitStack()  # puts back what was set before the first of them


@contextmanager
def guarded(
    path: str | None, what: str, max_memory: int, *, writing: bool = False
) -> Iterator[None]:
    """Run a backend: strict about truncation, silent, its failures as `Corrupt` or `TooLarge`.

    Pillow and Python have one set of such settings for all threads: they are changed when the
    first of several guards begins, and put back when the last one ends. When `writing`, what the
    operating system refuses is left for the core to explain.
    """
    from PIL import Image

    failures: tuple[type[Exception], ...] = (*FAILURES, Image.DecompressionBombError)
    with _lock:
        if not _limits:
            _set(_before)
        _limits.append(max_memory)
        _set_limit()
    try:
        yield
    except RaconvertError:
        raise
    except failures as error:
        if writing and isinstance(error, OSError) and error.errno is not None:
            raise
        raise _translated(error, path, what) from error
    finally:
        with _lock:
            _limits.remove(max_memory)
            if _limits:
                _set_limit()
            else:
                _before.close()


def _set(before: ExitStack) -> None:
    """Set what the guards need, but for the limit; closing `before` puts back what was."""
    from PIL import Image, ImageFile

    before.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    before.callback(setattr, Image, "MAX_IMAGE_PIXELS", Image.MAX_IMAGE_PIXELS)
    before.callback(setattr, ImageFile, "LOAD_TRUNCATED_IMAGES", ImageFile.LOAD_TRUNCATED_IMAGES)
    ImageFile.LOAD_TRUNCATED_IMAGES = False


def _set_limit() -> None:
    """Set Pillow's limit to the largest that a guard at work allows."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = max(1, max(_limits) // PILLOW_PIXEL_BYTES)


def _translated(error: Exception, path: str | None, what: str) -> RaconvertError:
    """Return our error for one of a backend."""
    from PIL import Image

    cause: BaseException = error
    while cause.__cause__ is not None:  # imageio wraps what the backend said
        cause = cause.__cause__
    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError)
    if isinstance(cause, bombs):
        return TooLarge(
            f"{what} declares more pixels than --max-memory has room for",
            path=path,
            remedy="allow it with a larger --max-memory, if you trust the file",
        )
    if isinstance(cause, OSError) and cause.errno is not None:
        return ReadFailed(f"cannot be read: {cause.strerror}", path=path)
    text = str(cause).strip() or type(cause).__name__
    return Corrupt(f"{what} is damaged, cut off, or beyond what is read here ({text})", path=path)


def check_need(source: Source, pixels: int, channels: int, kept: int = 0) -> None:
    """Refuse (`TooLarge`) an image that Pillow could not decode within ``--max-memory``.

    Counted are Pillow's own pixels, two copies of what comes out of them, and what the decoder has
    `kept` of each pixel besides.
    """
    from raconvert.arrays.blocks import check_memory

    need = pixels * (PILLOW_PIXEL_BYTES + 2 * channels + kept)
    check_memory(need, source.max_memory, f"'{source.path}': its image of {pixels} pixels")


class Images(Stack):
    """Array source: the images of one file as Pillow composes and decodes them.

    `shape` has a first axis for the images if there are several. `mode` is Pillow's word for what
    the pixels are converted to, which must lose nothing.
    """

    def __init__(
        self,
        source: Source,
        what: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        mode: str | None = None,
        *,
        count: int = 1,
    ) -> None:
        super().__init__(source, shape, dtype, count)
        self._what = what
        self._mode = mode

    def images(self, first: int) -> Generator[np.ndarray[Any, Any], None, None]:
        """Yield the images from number `first` on; those before it are decoded, too."""
        with self.source.open() as file:
            # Guarded step by step: between them the caller may have images of its own.
            with self._guarded(0):
                opened = _pillow(file)
                several = self.count > 1
                images = opened.iter(mode=self._mode) if several else self._only(opened)
            try:
                for number in count():
                    with self._guarded(number):
                        image = next(images, None)
                    if image is None:
                        break
                    if number >= first:
                        yield self._as_announced(image, number)
            finally:
                opened.close()

    def _only(self, opened: Any) -> Iterator[np.ndarray[Any, Any]]:
        yield opened.read(index=0, mode=self._mode)

    def _guarded(self, number: int) -> Any:
        return guarded(self.source.path, self._where(number), self.source.max_memory)

    def _where(self, number: int) -> str:
        return f"image {number} of {self._what}" if self.count > 1 else self._what

    def _as_announced(self, image: np.ndarray[Any, Any], number: int) -> np.ndarray[Any, Any]:
        """Return the image if it is what was announced; anything else would be damage."""
        expected = self.shape[1:] if self.count > 1 else self.shape
        if image.shape != expected or image.dtype != self.dtype:
            raise Corrupt(
                f"{self._where(number)} is not what its header says",
                path=self.source.path,
                expected=f"{self.dtype} {expected}",
                got=f"{image.dtype} {image.shape}",
            )
        if image.dtype == np.bool_:  # of which Pillow makes bytes of 255, not 1
            image = image.view(np.uint8) != 0
        return np.ascontiguousarray(image)


def _pillow(file: Any) -> Any:
    """Open a file through imageio, with Pillow and nothing else."""
    import imageio.v3 as iio

    return iio.imopen(file, "r", plugin="pillow")


def probed(source: Source, what: str) -> tuple[tuple[int, ...], str]:
    """Return the shape of the image with its palette looked up, and Pillow's mode of it."""
    with (
        source.open() as file,
        guarded(source.path, what, source.max_memory),
        _pillow(file) as opened,
    ):
        mode: str = opened.metadata(index=0)["mode"]
        return opened.properties(index=0).shape, mode


def decoded(data: bytes, path: str, what: str) -> np.ndarray[Any, Any]:
    """Return the only image of a file in memory, decoded by Pillow, whatever its mode gives."""
    import imageio.v3 as iio

    with guarded(path, what, UNLIMITED):
        return iio.imread(data, plugin="pillow", index=0)


def encoded(values: np.ndarray[Any, Any], suffix: str, **options: Any) -> bytes:
    """Return one image as the bytes of a file, encoded by Pillow."""
    import imageio.v3 as iio

    with guarded(None, "the image to write", UNLIMITED):
        data: bytes = iio.imwrite(
            "<bytes>", values, plugin="pillow", extension=suffix, is_batch=False, **options
        )
    return data
